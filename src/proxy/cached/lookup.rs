//! From a request to what the cache holds for it.

use crate::cache::{BodyReader, Cache, CacheKey, CopyRef, Hit, Miss, ObjectKind, Tier};
use crate::http::stored::StoredHead;
use crate::http::vary::normalize_accept_encoding;
use crate::proxy::marker::Marker;
use crate::proxy::routed::Routed;

/// What was found.
pub(super) struct Found {
    /// The response, or why there is none.
    pub(super) held: Result<Held, Miss>,
    /// What the URL leads to, when its responses vary.
    pub(super) marker: Option<Marker>,
}

impl Found {
    /// The key that a fill of this request is shared by: the alternate's where
    /// the URL's responses vary.
    pub(super) fn key(&self, routed: &Routed) -> CacheKey {
        let rule = routed.policy.normalize_accept_encoding;
        match (&self.held, &self.marker) {
            (Ok(held), _) => held.stale(routed).key,
            (Err(_), Some(marker)) => marker.alternate(&routed.key, &routed.head.headers, rule),
            (Err(_), None) => routed.key.clone(),
        }
    }
}

/// A stored response.
pub(super) struct Held {
    pub(super) head: StoredHead,
    pub(super) body: BodyReader,
    pub(super) tier: Tier,
    pub(super) suspect: bool,
    pub(super) copy: CopyRef,
    /// The key it was read by, where the URL's responses vary.
    pub(super) alternate: Option<CacheKey>,
}

impl Held {
    /// Whether a part of the body may be missing.
    pub(super) fn has_gaps(&self) -> bool {
        self.body.parts().is_some_and(|parts| !parts.is_whole())
    }

    /// What a revalidation needs to know of it.
    pub(super) fn stale(&self, routed: &Routed) -> StaleRef {
        StaleRef {
            copy: self.copy.clone(),
            key: self.alternate.as_ref().unwrap_or(&routed.key).clone(),
        }
    }
}

/// What a revalidation needs to know of it.
#[derive(Clone)]
pub(super) struct StaleRef {
    /// The copy that a 304 refreshes.
    pub(super) copy: CopyRef,
    /// The key it was read by.
    pub(super) key: CacheKey,
}

/// Whether a request has read an object before: it counts as one read, however
/// often it has to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    First,
    Again,
}

/// Looks a request up: one read, or two where the responses vary.
pub(super) async fn look_up(cache: &Cache, routed: &Routed, reading: Reading) -> Found {
    let hit = match read(cache, &routed.key, reading).await {
        Ok(hit) => hit,
        Err(miss) => return nothing(miss, None),
    };
    if hit.kind == ObjectKind::Object {
        let held = held(hit, routed, None);
        return Found { held, marker: None };
    }
    let Some(marker) = Marker::parse(&hit.meta) else {
        return nothing(Miss::ReadError, None);
    };
    let rule = routed.policy.normalize_accept_encoding;
    let key = marker.alternate(&routed.key, &routed.head.headers, rule);
    match read(cache, &key, reading).await {
        Ok(hit) => Found {
            held: held(hit, routed, Some(key)),
            marker: Some(marker),
        },
        Err(miss) => nothing(miss, Some(marker)),
    }
}

const fn nothing(miss: Miss, marker: Option<Marker>) -> Found {
    let held = Err(miss);
    Found { held, marker }
}

async fn read(cache: &Cache, key: &CacheKey, reading: Reading) -> Result<Hit, Miss> {
    if reading == Reading::Again {
        return cache.read_again(key).await;
    }
    match cache.read_ram(key) {
        Some(hit) => Ok(hit),
        None => cache.read(key).await,
    }
}

/// Whether the response is one for the request by what both say of content
/// negotiation, where the records ask for that.
pub(super) fn is_acceptable(routed: &Routed, head: &StoredHead) -> bool {
    let policy = &routed.policy;
    if policy.negotiation.is_off() {
        return true;
    }
    let mut request = routed.head.headers.clone();
    normalize_accept_encoding(&mut request, policy.normalize_accept_encoding);
    policy.negotiation.accepts(&request, &head.header_map())
}

/// A head of another version, or a damaged one, is a miss; so is one that may
/// be old where the origin can't be asked whether it is.
fn held(hit: Hit, routed: &Routed, alternate: Option<CacheKey>) -> Result<Held, Miss> {
    let head = StoredHead::parse(hit.meta).map_err(|_| Miss::ReadError)?;
    if hit.suspect && !head.has_validator() || !is_acceptable(routed, &head) {
        return Err(Miss::Absent);
    }
    Ok(Held {
        head,
        body: hit.body,
        tier: hit.tier,
        suspect: hit.suspect,
        copy: hit.copy,
        alternate,
    })
}
