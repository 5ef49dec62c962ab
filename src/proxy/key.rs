//! Under which key the cache has the response to a client's URL.

use super::snapshot::Snapshot;
use crate::cache::CacheKey;
use crate::config::records::Records;
use crate::http::target::RequestUrl;
use crate::remap::{Found, TargetUrl};
use std::sync::Arc;

/// The key of what a rule sends on to `target`: by the target's URL, or with
/// `url_remap.pristine_host_hdr` 1 by the client's, as the origin then sees its
/// Host.
#[must_use]
pub fn cache_key(records: &Records, url: &RequestUrl, target: &TargetUrl) -> CacheKey {
    if records.url_remap_pristine_host_hdr != 0 {
        return key_by(records, url.as_str());
    }
    key_by(records, &target.to_url())
}

/// The key of a URL as the records make it: `http.cache.ignore_query` 1 leaves
/// the query out, and `http.cache.generation` follows after a blank, which no
/// URL holds.
#[must_use]
pub fn key_by(records: &Records, url: &str) -> CacheKey {
    let keyed = match (records.http_cache_ignore_query, url.split_once('?')) {
        (0, _) | (_, None) => url,
        (_, Some((before, _))) => before,
    };
    match records.http_cache_generation {
        -1 => CacheKey::of_url(keyed.to_owned()),
        generation => CacheKey::of_url(format!("{keyed} {generation}")),
    }
}

/// The URL that a key was made by, less what [`key_by`] leaves out.
#[must_use]
pub fn keyed_url(key: &CacheKey) -> Option<RequestUrl> {
    let text = std::str::from_utf8(key.text()).ok()?;
    let url = text.split(' ').next()?;
    RequestUrl::parse(url).ok()
}

/// The key of a URL that an operator names, as a client would ask for it;
/// `None` if a client would get an answer of the proxy's own.
#[must_use]
pub fn key_of(snapshot: &Arc<Snapshot>, url: &RequestUrl) -> Option<CacheKey> {
    match snapshot.remap.find(url) {
        Found::Map { rule, target, .. } => {
            let records = &snapshot.by_rule(rule).records;
            Some(cache_key(records, url, &target))
        }
        Found::Redirect { .. } => None,
        Found::None => {
            let records = &snapshot.records;
            let forwards = records.url_remap_remap_required == 0;
            forwards.then(|| key_by(records, url.as_str()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_make_the_key_and_the_url_can_be_read_back() {
        let rows = [
            (-1, 0, "http://h/a?b=c", "http://h/a?b=c"),
            (7, 0, "http://h/a?b=c 7", "http://h/a?b=c"),
            (0, 1, "http://h/a 0", "http://h/a"),
            (-1, 1, "http://h/a", "http://h/a"),
        ];
        for (generation, ignore_query, text, url) in rows {
            let records = Records {
                http_cache_generation: generation,
                http_cache_ignore_query: ignore_query,
                ..Records::default()
            };
            let key = key_by(&records, "http://h/a?b=c");
            assert_eq!(key.text(), text.as_bytes());
            assert_eq!(keyed_url(&key).unwrap().as_str(), url);
        }
    }
}
