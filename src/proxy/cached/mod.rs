//! GET and HEAD through the cache: look up, decide, serve, or ask the origin.

mod ask;
mod busy;
mod content;
mod job;
mod lead;
mod lookup;
mod parts;
mod plan;
mod pump;
mod push;
mod storing;
mod turned;

pub(super) use content::{is_keyed, run as run_with_content};
pub use job::{FillHead, Fills};
pub(super) use lead::error_response;
pub(super) use pump::failure;
pub(super) use push::push;
pub use storing::Storing;

use super::answer::Answer;
use super::cache_status::{CacheStatus, Forwarded};
use super::client::{ClientRead, ClientWrite};
use super::context::WorkerContext;
use super::decide::{self, Decision};
use super::fetch::{self, Passing};
use super::outcome::{Ended, Outcome, Route};
use super::parts::{PartsBody, lacks};
use super::relay::Account;
use super::routed::{Mode, Routed};
use super::serve::{self, Server, Serving};
use super::source::{Source, SourceError};
use super::via::Told;
use crate::base::clock::WallTime;
use crate::base::prng::system_u64;
use crate::cache::{BodyReader, Cache, CacheKey, Miss};
use crate::http::cache_control::RequestDirectives;
use crate::http::conditional::Precondition;
use crate::http::framing::BodyFraming;
use crate::http::policy::CachePolicy;
use crate::http::reuse::{self, ReuseRequest};
use crate::http::storable::may_look_up;
use crate::http::stored::StoredHead;
use crate::metrics::{self, Metric};
use http::header::IF_MODIFIED_SINCE;
use http::{HeaderMap, Method};
use job::Job;
use lookup::{Found, Held, Reading};
use plan::Plan;
use std::rc::Rc;
use std::sync::Arc;

/// Lookups of one request: a copy that proves unreadable, a fill that is
/// abandoned, or a validation by another request make it look again.
const ROUNDS: usize = 8;

/// Carries out a GET or a HEAD.
///
/// If the reply was not started, nothing was sent: the caller answers with the
/// status it ended in.
pub async fn run<R: ClientRead, W: ClientWrite>(
    ctx: &WorkerContext,
    routed: &Routed,
    mut body: R,
    reply: &mut W,
) -> Ended {
    let asked = asked(routed);
    let cache = match (&ctx.shared.cache, bypass(routed)) {
        (Some(cache), None) => cache,
        _ if asked.directives.only_if_cached => return only_if_cached(reply),
        (_, passing) => {
            let passing = passing.unwrap_or(Passing::OFF);
            return Box::pin(fetch::pass_as(ctx, routed, body, reply, &passing)).await;
        }
    };
    let _in_work = metrics::Held::new(&ctx.cells, Metric::CurrentCacheConnections);
    let mut request = Cached {
        ctx,
        routed,
        cache,
        asked,
        validated: false,
        has_waited: false,
        has_read: false,
        ended: 0,
        diverted: false,
        overtaken: 0,
    };
    let step = tokio::select! {
        biased;
        step = request.run(reply) => step,
        () = body.reset() => Step::Gone,
    };
    match step {
        Step::Gone => Account::new(Outcome::ClientAbort, Route::None).reset(reply),
        Step::Ended(ended) => ended,
        Step::Pass(passing) => Box::pin(fetch::pass_as(ctx, routed, body, reply, &passing)).await,
        Step::Again => {
            let account = Account::new(Outcome::AnsweredInternal, Route::None);
            let detail = "the response could not be had in several tries";
            account.failed(
                reply,
                Outcome::AnsweredInternal,
                Answer::OriginClosed,
                detail,
            )
        }
    }
}

/// Why a request is not for the cache at all.
fn bypass(routed: &Routed) -> Option<Passing> {
    let head = &routed.head;
    let method = match &routed.content {
        Some(_) => &Method::GET,
        None => &head.method,
    };
    if may_look_up(method, &routed.url, &routed.policy).is_err() {
        return Some(Passing::OFF);
    }
    if routed.upgrade.is_some() {
        return Some(Passing::SWITCH);
    }
    // RFC 9110 9.3.1: content of a GET has no meaning, so no key tells it.
    let has_content = routed.content.is_none()
        && !matches!(head.framing, BodyFraming::None | BodyFraming::Length(0));
    has_content.then_some(Passing {
        outcome: Outcome::MissMethod,
        why: Forwarded::Bypass,
    })
}

/// 504: nothing stored may answer, and nothing else is asked for
/// (RFC 9111 5.2.1.7).
fn only_if_cached<W: ClientWrite>(reply: &W) -> Ended {
    let account = Account::new(Outcome::AnsweredOnlyIfCached, Route::None);
    let answer = Answer::OnlyIfCached;
    let detail = "nothing stored may answer, and the request says only-if-cached";
    account.failed(reply, answer.outcome(), answer, detail)
}

fn asked(routed: &Routed) -> ReuseRequest {
    let fields = &routed.head.headers;
    ReuseRequest {
        directives: RequestDirectives::of(fields),
        has_if_modified_since: fields.contains_key(IF_MODIFIED_SINCE),
        mode: match routed.mode {
            Mode::Reverse => reuse::Mode::Reverse,
            Mode::Forward => reuse::Mode::Forward,
        },
        draw: draw(&routed.policy),
    }
}

/// A number for what chance decides, where it decides anything.
fn draw(policy: &CachePolicy) -> u32 {
    if !policy.early.is_on() {
        return 0;
    }
    u32::try_from(system_u64() >> 32).unwrap_or(u32::MAX)
}

/// How far a request has come.
enum Step {
    /// It is over.
    Ended(Ended),
    /// It is to be passed on as it is.
    Pass(Passing),
    /// The cache is to be looked up again.
    Again,
    /// The client has left.
    Gone,
}

/// One request on its way.
struct Cached<'a> {
    ctx: &'a WorkerContext,
    routed: &'a Routed,
    cache: &'a Arc<Cache>,
    asked: ReuseRequest,
    /// Another request's validation came while this one waited, so what is held
    /// now is good for this one too.
    validated: bool,
    /// It has waited for another request to end its fetch.
    has_waited: bool,
    /// A read of this request's was counted; further ones are not.
    has_read: bool,
    /// Fills that had ended when the cache was looked up.
    ended: u64,
    /// Another alternate's fill turned it away before.
    diverted: bool,
    /// Times that another fill ended between the lookup and the claim.
    overtaken: u32,
}

impl Cached<'_> {
    async fn run<W: ClientWrite>(&mut self, reply: &mut W) -> Step {
        if self.routed.mode == Mode::Forward
            && let Err(error) = Box::pin(self.ctx.origins.judge(&self.routed.upstream)).await
        {
            // What is stored may have come by a rule, from where its client
            // may not go.
            let account = Account::new(error.outcome(), Route::None);
            return Step::Ended(account.origin_failed(reply, &error));
        }
        self.ctx.cells.add(Metric::CacheLookups, 1);
        let mut found = self.look_up().await;
        for _ in 0..ROUNDS {
            match self.step(found, reply).await {
                Step::Again => found = self.look_up().await,
                step @ (Step::Ended(_) | Step::Pass(_) | Step::Gone) => return step,
            }
        }
        Step::Again
    }

    async fn look_up(&mut self) -> Found {
        self.ended = self.ctx.shared.fills.ended();
        let reading = if self.has_read {
            Reading::Again
        } else {
            Reading::First
        };
        let found = lookup::look_up(self.cache, self.routed, reading).await;
        self.has_read |= found.held.is_ok();
        found
    }

    async fn step<W: ClientWrite>(&mut self, found: Found, reply: &mut W) -> Step {
        let held = found.held.as_ref();
        if held.is_ok_and(|held| self.refuses(&held.head)) {
            return if self.asked.directives.only_if_cached {
                Step::Ended(only_if_cached(reply))
            } else {
                Step::Pass(Passing::CONDITION)
            };
        }
        match self.decide(&found) {
            Decision::Serve(outcome) => self.serve(found, outcome, reply).await,
            Decision::ServeAndAsk(outcome) => {
                self.revalidate_meanwhile(&found);
                self.serve(found, outcome, reply).await
            }
            Decision::Revalidate(reason) => {
                Box::pin(self.ask(found, Plan::again(reason), reply)).await
            }
            Decision::Fetch { outcome, why } => {
                let plan = Plan::anew(outcome, why);
                Box::pin(self.ask(found, plan, reply)).await
            }
            Decision::OnlyIfCached => Step::Ended(only_if_cached(reply)),
        }
    }

    /// Whether a condition of the request does not hold for the stored response.
    /// That is for the origin to say, whose own may be another by now
    /// (RFC 9111 4.3.2: a cache does not evaluate If-Match).
    fn refuses(&self, head: &StoredHead) -> bool {
        serve::precondition(self.routed, head) == Precondition::Failed
    }

    /// What the cache lacks of an object, the origin did not give.
    fn not_had<W: ClientWrite>(&self, error: &SourceError, reply: &W) -> Ended {
        let account = Account::new(error.outcome, super::relay::route(self.routed));
        account.failed(reply, error.outcome, error.answer, &error.detail)
    }

    /// Whether the origin has to be asked for some of what is to be sent.
    fn lacks(&self, held: &Held) -> bool {
        let Some(parts) = held.body.parts() else {
            return false;
        };
        let is_sent = self.routed.head.method != Method::HEAD
            && serve::precondition(self.routed, &held.head) == Precondition::Pass;
        let answer = serve::range_of(self.routed, &held.head, parts.body_len());
        is_sent && lacks(&parts, &answer)
    }

    /// A stored body; what is missing of one held in part comes from the origin.
    fn source(&self, body: BodyReader, head: &StoredHead) -> Source {
        let parts = body.parts();
        let Some(parts) = parts.filter(|_| !self.asked.directives.only_if_cached) else {
            return Source::stored(body);
        };
        let told = Told::asking(Outcome::MissPartial, Forwarded::Partial);
        let job = Job::of(self.ctx, self.routed, self.cache, (self.asked, told));
        let means = Rc::new(job.means(head.clone()));
        Source::in_part(body, PartsBody::new(parts, means))
    }

    fn decide(&self, found: &Found) -> Decision {
        let now = self.ctx.shared.clock.wall();
        let policy = &self.routed.policy;
        match &found.held {
            Ok(held) if self.validated && !held.suspect => Decision::Serve(Outcome::HitRevalidated),
            Ok(held) => {
                let object = decide::Held::Object {
                    facts: &held.head.facts(),
                    tier: held.tier,
                    suspect: held.suspect,
                };
                decide::decide(&object, &self.asked, policy, now)
            }
            Err(miss) => {
                let nothing = decide::Held::Nothing {
                    miss: *miss,
                    varies: found.marker.is_some(),
                };
                decide::decide(&nothing, &self.asked, policy, now)
            }
        }
    }

    /// Serves what was found. A body that can't be read makes it a miss, within
    /// the same request.
    async fn serve<W: ClientWrite>(
        &mut self,
        found: Found,
        outcome: Outcome,
        reply: &mut W,
    ) -> Step {
        let Found { held, marker } = found;
        let Ok(held) = held else {
            return Step::Again;
        };
        let now = self.ctx.shared.clock.wall();
        let mut status = hit_status(&held, &self.routed.policy, now);
        let lacks = self.lacks(&held);
        if lacks && self.asked.directives.only_if_cached {
            return Step::Ended(only_if_cached(reply));
        }
        let outcome = if lacks {
            status.forwarded = Some(Forwarded::Partial);
            Outcome::MissPartial
        } else {
            outcome
        };
        let key = held.alternate.as_ref().unwrap_or(&self.routed.key);
        let copy = Copy::new(&held.head, held.body, key);
        match self.serve_held(copy, (outcome, status), reply).await {
            Ok(ended) => Step::Ended(ended),
            Err(error) if !error.is_lost => Step::Ended(self.not_had(&error, reply)),
            Err(error) => {
                if error.is_gone {
                    self.cache.remove_copy(&held.copy, key);
                }
                if self.asked.directives.only_if_cached {
                    return Step::Ended(only_if_cached(reply));
                }
                let found = Found {
                    held: Err(Miss::ReadError),
                    marker,
                };
                let plan = Plan::anew(Outcome::MissReadError, Forwarded::Miss);
                Box::pin(self.ask(found, plan, reply)).await
            }
        }
    }

    /// Serves a copy. One of which a part is gone is taken out: the next request
    /// would find it no better.
    async fn serve_held<W: ClientWrite>(
        &self,
        copy: Copy<'_>,
        (outcome, status): (Outcome, CacheStatus),
        reply: &mut W,
    ) -> Result<Ended, SourceError> {
        let length = Some(copy.body.remaining());
        let named = copy.body.copy();
        let asked_origin = status.forwarded_status.is_some();
        let route = asked_origin.then(|| super::relay::route(self.routed));
        let serving = Serving {
            head: copy.head,
            own: copy.own,
            source: self.source(copy.body, copy.head),
            length,
            outcome,
            route: route.unwrap_or_default(),
            status,
        };
        let mut server = self.server(reply);
        let served = server.serve(serving).await;
        if server.gone {
            self.cache.remove_copy(&named, copy.key);
        }
        served
    }

    fn server<'b, W>(&'b self, reply: &'b mut W) -> Server<'b, W> {
        Server {
            ctx: self.ctx,
            routed: self.routed,
            reply,
            gone: false,
        }
    }
}

/// A stored response to be served.
struct Copy<'a> {
    head: &'a StoredHead,
    body: BodyReader,
    key: &'a CacheKey,
    /// Fields for this client only.
    own: HeaderMap,
}

impl<'a> Copy<'a> {
    fn new(head: &'a StoredHead, body: BodyReader, key: &'a CacheKey) -> Self {
        let own = HeaderMap::new();
        Self {
            head,
            body,
            key,
            own,
        }
    }
}

/// What Cache-Status says of a hit.
fn hit_status(held: &Held, policy: &CachePolicy, now: WallTime) -> CacheStatus {
    CacheStatus {
        ttl: Some(ttl(held, policy, now)),
        detail: Some(held.tier.word()),
        ..CacheStatus::default()
    }
}

/// Seconds of freshness left, negative when stale.
fn ttl(held: &Held, policy: &CachePolicy, now: WallTime) -> i64 {
    let facts = held.head.facts().under(policy);
    let signed = |secs: u64| i64::try_from(secs).unwrap_or(i64::MAX);
    signed(facts.lifetime.secs) - signed(facts.age(now))
}

#[cfg(test)]
#[path = "tests/mod.rs"]
mod tests;
