//! Under which key the cache has the response to a client's URL.

use super::snapshot::Snapshot;
use crate::cache::CacheKey;
use crate::config::records::Records;
use crate::http::target::RequestUrl;
use crate::remap::{Found, TargetUrl};

/// The key of what a rule sends on to `target`: the target's URL, or with
/// `url_remap.pristine_host_hdr` 1 the client's, as the origin then sees its
/// Host.
#[must_use]
pub fn cache_key(records: &Records, url: &RequestUrl, target: &TargetUrl) -> CacheKey {
    if records.url_remap_pristine_host_hdr != 0 {
        return CacheKey::of_url(url.as_str().to_owned());
    }
    CacheKey::of_url(target.to_url())
}

/// The key of a URL that an operator names, as a client would ask for it;
/// `None` if a client would get an answer of the proxy's own.
#[must_use]
pub fn key_of(snapshot: &Snapshot, url: &RequestUrl) -> Option<CacheKey> {
    match snapshot.remap.find(url) {
        Found::Map { target, .. } => Some(cache_key(&snapshot.records, url, &target)),
        Found::Redirect { .. } => None,
        Found::None => {
            let forwards = snapshot.records.url_remap_remap_required == 0;
            forwards.then(|| CacheKey::of_url(url.as_str().to_owned()))
        }
    }
}
