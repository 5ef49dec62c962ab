//! The built-in origin (`@plugin=generator.so`): bodies by arithmetic.
//!
//! `/demo/SIZE/…/NAME?…` answers SIZE bytes that depend on the path and on
//! nothing else. Options stand as path segments between SIZE and NAME, or in
//! the query: `max-age=SECONDS` (3600 without), `no-store`, `delay=MILLISECONDS`.

use crate::base::clock::WallTime;
use crate::base::prng::Prng;
use crate::base::size::MIB;
use crate::http::framing::BodyFraming;
use crate::proxy::origin::{OriginBody, OriginRequest, OriginResponse};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use std::time::{Duration, UNIX_EPOCH};
use xxhash_rust::xxh3::xxh3_64;

/// The largest body, in bytes.
const SIZE_MAX: u64 = 64 * MIB;
/// The longest delay.
const DELAY_MAX: Duration = Duration::from_secs(10);
/// Bytes made at a time.
const BLOCK: u64 = 64 * 1024;
/// What everything was last modified at: 2024-01-01 00:00:00 UTC.
const MODIFIED_SECS: u64 = 1_704_067_200;

/// What a path and its query ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Order {
    size: u64,
    seed: u64,
    cache_control: String,
    delay: Duration,
}

impl Order {
    /// Reads a request-target; `None` is 404.
    fn parse(path_and_query: &str) -> Option<Self> {
        let (path, query) = path_and_query
            .split_once('?')
            .unwrap_or((path_and_query, ""));
        let inner = path.strip_prefix("/demo/").unwrap_or(path);
        let mut segments = inner.trim_start_matches('/').split('/');
        let size = segments.next()?.parse().ok().filter(|n| *n <= SIZE_MAX)?;
        let mut order = Self {
            size,
            seed: xxh3_64(path.as_bytes()),
            cache_control: "max-age=3600".to_owned(),
            delay: Duration::ZERO,
        };
        segments
            .chain(query.split('&'))
            .for_each(|word| order.option(word));
        Some(order)
    }

    fn option(&mut self, word: &str) {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match (name, value.parse::<u64>()) {
            ("no-store", _) => self.cache_control = "no-store".to_owned(),
            ("max-age", Ok(secs)) => self.cache_control = format!("max-age={secs}"),
            ("delay", Ok(ms)) => self.delay = Duration::from_millis(ms).min(DELAY_MAX),
            _ => {}
        }
    }

    fn etag(&self) -> String {
        format!("\"{:016x}-{}\"", self.seed, self.size)
    }
}

/// A body under way.
#[derive(Debug)]
pub struct Generated {
    seed: u64,
    at: u64,
    size: u64,
}

impl Generated {
    /// The next block; `None` at the end. Yields to the thread's other tasks,
    /// for nothing here ever waits.
    pub async fn next(&mut self) -> Option<Bytes> {
        let left = self.size.checked_sub(self.at).filter(|left| *left > 0)?;
        tokio::task::yield_now().await;
        let block = block(self.seed, self.at / BLOCK);
        self.at += left.min(BLOCK);
        let keep = usize::try_from(left.min(BLOCK)).unwrap_or(block.len());
        Some(block.slice(..keep.min(block.len())))
    }
}

/// Block `index` of a body: random bytes, each block from a seed of its own.
fn block(seed: u64, index: u64) -> Bytes {
    let mut prng = Prng::seeded(seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let words = BLOCK / 8;
    let mut bytes = BytesMut::with_capacity(65_536);
    for _ in 0..words {
        bytes.extend_from_slice(&prng.next_u64().to_le_bytes());
    }
    bytes.freeze()
}

/// Answers as an origin does, `now` being the time of the request.
pub async fn answer(request: &OriginRequest, now: WallTime) -> OriginResponse {
    let is_read = matches!(request.method, Method::GET | Method::HEAD);
    if !is_read {
        return empty(StatusCode::METHOD_NOT_ALLOWED, now);
    }
    let Some(order) = Order::parse(&request.upstream.path_and_query) else {
        return empty(StatusCode::NOT_FOUND, now);
    };
    tokio::time::sleep(order.delay).await;
    let mut response = empty(StatusCode::OK, now);
    describe(&order, &mut response.headers);
    if is_current(&order, &request.headers) {
        response.status = StatusCode::NOT_MODIFIED;
        return response;
    }
    let length = HeaderValue::from(order.size);
    response.headers.insert(header::CONTENT_LENGTH, length);
    if request.method == Method::GET {
        fill(&order, &mut response);
    }
    response
}

fn fill(order: &Order, response: &mut OriginResponse) {
    response.framing = BodyFraming::Length(order.size);
    response.body = OriginBody::Generated(Generated {
        seed: order.seed,
        at: 0,
        size: order.size,
    });
}

fn describe(order: &Order, headers: &mut HeaderMap) {
    let mut put = |name, text: &str| {
        let value = HeaderValue::from_str(text).ok();
        value.map(|value| headers.insert(name, value));
    };
    put(header::CACHE_CONTROL, &order.cache_control);
    put(header::CONTENT_TYPE, "application/octet-stream");
    put(header::ETAG, &order.etag());
    put(header::LAST_MODIFIED, &http_date(MODIFIED_SECS));
}

/// RFC 9110 13.2.2: If-None-Match comes first, else If-Modified-Since.
fn is_current(order: &Order, request: &HeaderMap) -> bool {
    let text = |name| {
        request
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    if let Some(tags) = text(header::IF_NONE_MATCH) {
        let etag = order.etag();
        let mut tags = tags
            .split(',')
            .map(|tag| tag.trim().trim_start_matches("W/"));
        return tags.any(|tag| tag == "*" || tag == etag);
    }
    let since =
        text(header::IF_MODIFIED_SINCE).and_then(|date| httpdate::parse_http_date(date).ok());
    since.is_some_and(|since| since >= UNIX_EPOCH + Duration::from_secs(MODIFIED_SECS))
}

fn empty(status: StatusCode, now: WallTime) -> OriginResponse {
    let mut headers = HeaderMap::new();
    if let Ok(date) = HeaderValue::from_str(&http_date(now.as_secs())) {
        headers.insert(header::DATE, date);
    }
    headers.insert(header::SERVER, HeaderValue::from_static("strata-generator"));
    OriginResponse {
        status,
        version: Version::HTTP_11,
        headers,
        framing: BodyFraming::None,
        body: OriginBody::Empty,
        request_time: now,
        response_time: now,
    }
}

fn http_date(secs: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(secs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::origin::{Place, Upstream};

    async fn get(target: &str, fields: &[(header::HeaderName, &str)]) -> OriginResponse {
        let upstream = Upstream {
            place: Place::Generator,
            path_and_query: target.to_owned(),
            guard: None,
        };
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.insert(name, value.parse().unwrap());
        }
        let request = OriginRequest::new(upstream, Method::GET, headers);
        answer(&request, WallTime::from_secs(1_800_000_000)).await
    }

    async fn body(mut response: OriginResponse) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(part) = response.body.next().await.unwrap() {
            all.extend_from_slice(&part);
        }
        all
    }

    #[tokio::test]
    async fn a_body_is_its_size_and_the_same_each_time() {
        let size = 64 * 1024 + 5;
        let first = body(get(&format!("/demo/{size}/a"), &[]).await).await;
        let again = body(get(&format!("/demo/{size}/a?x"), &[]).await).await;
        let other = body(get(&format!("/demo/{size}/b"), &[]).await).await;
        assert_eq!(first.len(), size);
        assert_eq!(first, again);
        assert_ne!(first, other);
        assert_ne!(first[..5], first[64 * 1024..]);
    }

    #[tokio::test]
    async fn sizes_beyond_the_limit_and_other_paths_are_not_found() {
        for target in ["/demo/67108865/a", "/demo/x/a", "/demo/", "/", "/demo/-1/a"] {
            assert_eq!(
                get(target, &[]).await.status,
                StatusCode::NOT_FOUND,
                "{target}"
            );
        }
        assert_eq!(get("/demo/67108864/a", &[]).await.status, StatusCode::OK);
    }

    #[tokio::test]
    async fn options_stand_in_the_path_or_in_the_query() {
        for (target, said) in [
            ("/demo/5/a", "max-age=3600"),
            ("/demo/5/no-store/a", "no-store"),
            ("/demo/5/a?no-store", "no-store"),
            ("/demo/5/max-age=7/a", "max-age=7"),
            ("/demo/5/a?max-age=9", "max-age=9"),
        ] {
            let response = get(target, &[]).await;
            assert_eq!(response.headers[header::CACHE_CONTROL], said, "{target}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_is_at_most_ten_seconds() {
        let before = tokio::time::Instant::now();
        get("/demo/5/a?delay=60000", &[]).await;
        assert_eq!(before.elapsed(), DELAY_MAX);
    }

    #[tokio::test]
    async fn a_current_copy_is_told_so() {
        let first = get("/demo/5/a", &[]).await;
        let etag = first.headers[header::ETAG].to_str().unwrap().to_owned();
        let same = get("/demo/5/a", &[(header::IF_NONE_MATCH, &etag)]).await;
        assert_eq!(same.status, StatusCode::NOT_MODIFIED);
        let changed = get("/demo/5/a", &[(header::IF_NONE_MATCH, "\"x\"")]).await;
        assert_eq!(changed.status, StatusCode::OK);
        let date = first.headers[header::LAST_MODIFIED].to_str().unwrap();
        let dated = get("/demo/5/a", &[(header::IF_MODIFIED_SINCE, date)]).await;
        assert_eq!(dated.status, StatusCode::NOT_MODIFIED);
    }
}
