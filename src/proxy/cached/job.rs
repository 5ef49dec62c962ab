//! What asking the origin takes, apart from the client that caused it.

use super::lookup::{Found, StaleRef};
use super::storing::Storing;
use crate::base::clock::{Clock, WallTime};
use crate::cache::{Cache, CacheKey, ObjectWriter};
use crate::http::cache_control::RequestDirectives;
use crate::http::policy::CachePolicy;
use crate::http::reuse::{self, OriginFailure, ReuseRequest};
use crate::http::storable::confirmed_storable;
use crate::http::stored::StoredHead;
use crate::http::target::RequestUrl;
use crate::http::vary::normalize_accept_encoding;
use crate::http::{conditional, partial};
use crate::metrics::Cells;
use crate::proxy::context::WorkerContext;
use crate::proxy::fill::{FillTable, PartTable, Turn, Turns};
use crate::proxy::marker::Marker;
use crate::proxy::origin::{OriginPool, OriginRequest, RequestBody, Upstream};
use crate::proxy::parts::Means;
use crate::proxy::routed::Routed;
use crate::proxy::snapshot::Snapshot;
use crate::proxy::via::Told;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, Method};
use std::ops::Range;
use std::sync::Arc;

/// The fills of a server.
pub type Fills = FillTable<FillHead>;

/// What the followers of a fill learn at the head.
#[derive(Debug)]
pub struct FillHead {
    /// The head as it is stored.
    pub(in crate::proxy) head: StoredHead,
    /// The body's length in bytes, when it is known.
    pub(super) length: Option<u64>,
    /// The key it is stored by.
    pub(in crate::proxy) key: CacheKey,
    /// Its store, for who falls behind.
    pub(in crate::proxy) storing: Storing,
    /// The fields that select it (Vary), and the values that did.
    pub(super) fields: Vec<HeaderName>,
    pub(super) selected: Vec<u8>,
    /// The marker that will lead to it and to the other alternates.
    pub(super) marker: Option<Marker>,
}

/// One thread's means, owned.
#[derive(Clone)]
pub(super) struct Tools {
    pub(super) cache: Arc<Cache>,
    pub(super) origins: OriginPool,
    pub(super) cells: Arc<Cells>,
    pub(super) clock: Arc<dyn Clock>,
    /// The fragments that are being fetched.
    pub(super) parts: Arc<PartTable>,
    turns: Arc<Turns>,
}

impl Tools {
    pub(super) fn of(ctx: &WorkerContext, cache: &Arc<Cache>) -> Self {
        Self {
            cache: Arc::clone(cache),
            origins: ctx.origins.clone(),
            cells: Arc::clone(&ctx.cells),
            clock: Arc::clone(&ctx.shared.clock),
            parts: Arc::clone(ctx.shared.fills.parts()),
            turns: Arc::clone(ctx.shared.fills.turns()),
        }
    }
}

/// When the origin was asked.
pub(super) struct Moment {
    /// A purge after it refuses the store.
    pub(super) epoch: u64,
    /// So does the store of what was asked for after it.
    pub(super) turn: Turn,
}

/// What becomes of the client's own conditions and range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conditions {
    /// Taken off: the whole representation is wanted, to be stored.
    Strip,
    /// Left: the response is most likely for this client only.
    Keep,
}

/// One question to the origin.
pub(super) struct Job {
    pub(super) tools: Tools,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) policy: Arc<CachePolicy>,
    pub(super) upstream: Upstream,
    pub(super) url: RequestUrl,
    /// The URL's key.
    pub(super) key: CacheKey,
    /// What the URL leads to, as far as is known.
    pub(super) marker: Option<Marker>,
    /// The client's fields as they came.
    pub(super) client: HeaderMap,
    /// The fields as they go to the origin.
    pub(super) fields: HeaderMap,
    pub(super) asked: ReuseRequest,
    /// GET, HEAD where a client's HEAD validates what is held, or POST.
    pub(super) method: Method,
    /// The content of a POST.
    pub(super) content: Option<Bytes>,
    /// The bytes that are asked for, to be stored as parts of the whole.
    pub(super) part: Option<Range<u64>>,
}

/// A stored response that is to be validated.
pub(super) struct Stale {
    pub(super) head: StoredHead,
    pub(super) at: StaleRef,
    /// It may be older than what was stored last.
    pub(super) suspect: bool,
    /// Bytes of its body.
    pub(super) length: u64,
}

impl Stale {
    /// What was found, if anything was.
    pub(super) fn of(found: &Found, routed: &Routed) -> Option<Self> {
        let held = found.held.as_ref().ok()?;
        Some(Self {
            head: held.head.clone(),
            at: held.stale(routed),
            suspect: held.suspect,
            length: held.body.remaining(),
        })
    }
}

impl Stale {
    /// Whether it may be served because the origin failed (RFC 9111 4.2.4). An
    /// error that is held is no better than the one that came, and what may
    /// have been replaced or purged is not known to be stale only.
    pub(super) fn may_stand_in(
        &self,
        asked: (&RequestDirectives, OriginFailure),
        policy: &CachePolicy,
        now: WallTime,
    ) -> bool {
        !self.suspect
            && !reuse::is_failure(self.head.status().as_u16(), policy)
            && reuse::may_serve_on_error(&self.head.facts(), asked, policy, now)
    }
}

impl Job {
    pub(super) fn of(
        ctx: &WorkerContext,
        routed: &Routed,
        cache: &Arc<Cache>,
        (asked, told): (ReuseRequest, Told),
    ) -> Self {
        let mut fields = routed.origin_fields(&ctx.shared.identity, told);
        let rule = routed.policy.normalize_accept_encoding;
        normalize_accept_encoding(&mut fields, rule);
        Self {
            tools: Tools::of(ctx, cache),
            snapshot: Arc::clone(&routed.snapshot),
            policy: Arc::clone(&routed.policy),
            upstream: routed.upstream.clone(),
            url: routed.url.clone(),
            key: routed.key.clone(),
            marker: None,
            client: routed.head.headers.clone(),
            fields,
            asked,
            method: match routed.content {
                Some(_) => Method::POST,
                None => Method::GET,
            },
            content: routed.content.clone(),
            part: None,
        }
    }

    /// Now: taken before the request goes out.
    pub(super) fn moment(&self) -> Moment {
        Moment {
            epoch: self.tools.cache.epoch(),
            turn: self.tools.turns.take(&self.key),
        }
    }

    /// What fetching parts of the representation with this head takes.
    pub(super) fn means(&self, head: StoredHead) -> Means {
        Means {
            cache: Arc::clone(&self.tools.cache),
            cells: Arc::clone(&self.tools.cells),
            origins: self.tools.origins.clone(),
            table: Arc::clone(&self.tools.parts),
            upstream: self.upstream.clone(),
            fields: self.fields.clone(),
            policy: Arc::clone(&self.policy),
            shares: !self.asked.directives.no_store && self.may_share(&head),
            head,
        }
    }

    /// Whether Authorization of the request leaves others their use of a response
    /// with this head (RFC 9111 3.5).
    pub(super) fn may_share(&self, head: &StoredHead) -> bool {
        let is_authorized = self.client.contains_key(AUTHORIZATION);
        !is_authorized || confirmed_storable(&self.client, &head.header_map(), &self.policy).is_ok()
    }

    /// The store of an object, pinned if a rule of cache.config says so.
    pub(super) fn pinned(&self, writer: ObjectWriter) -> ObjectWriter {
        match self.pinned_until() {
            Some(until) => writer.pinned_until(until),
            None => writer,
        }
    }

    /// Unix time in seconds up to which what is stored is to be kept.
    pub(super) fn pinned_until(&self) -> Option<u64> {
        let now = self.tools.clock.wall().as_secs();
        self.policy.pin.map(|secs| now.saturating_add(secs))
    }

    fn ask_part(&self, fields: &mut HeaderMap) {
        if let Some(part) = &self.part {
            partial::set_range(fields, part);
        }
    }

    /// The request, and whether it validates `stale`.
    pub(super) fn request(
        &self,
        stale: Option<&Stale>,
        conditions: Conditions,
    ) -> (OriginRequest, bool) {
        let mut fields = self.fields.clone();
        let validates = match (stale, conditions) {
            (Some(stale), _) if self.may_validate() => {
                let validates = conditional::set_revalidation(&mut fields, &stale.head);
                self.ask_part(&mut fields);
                validates
            }
            (Some(_), _) | (None, Conditions::Strip) => {
                conditional::remove_conditions(&mut fields);
                self.ask_part(&mut fields);
                false
            }
            (None, Conditions::Keep) => false,
        };
        let mut request = OriginRequest::new(self.upstream.clone(), self.method.clone(), fields);
        if let Some(content) = &self.content {
            request.body = RequestBody::whole(content.clone());
        }
        (request, validates)
    }

    /// A POST is no question for a condition (RFC 9110 13.2.2).
    fn may_validate(&self) -> bool {
        self.content.is_none() && !reuse::wants_anew(&self.asked, &self.policy)
    }
}
