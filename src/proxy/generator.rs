//! The built-in origin (`@plugin=generator.so`): bodies by arithmetic.
//!
//! `/demo/SIZE/…/NAME?…` answers SIZE bytes that depend on the path and on
//! nothing else. NAME may be left out. Options stand as path segments between
//! SIZE and NAME, or in the query: `max-age=SECONDS` (3600 without), `no-store`, `delay=MILLISECONDS`.
//! Another word there is refused, but in the query, where it is a client's own
//! way to tell objects apart. A refusal says why in its body.

use crate::base::clock::WallTime;
use crate::base::prng::Prng;
use crate::base::size::MIB;
use crate::http::framing::BodyFraming;
use crate::metrics::{Cells, Metric};
use crate::proxy::origin::{OriginBody, OriginRequest, OriginResponse};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use std::sync::Arc;
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

/// Why a target has no such body; the client is told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error(
        "the path is /SIZE/OPTIONS/NAME, SIZE in bytes and at most {SIZE_MAX} (64 MiB); OPTIONS and NAME may be left out"
    )]
    NoSize,
    #[error("{0} bytes are above the limit of {SIZE_MAX} (64 MiB)")]
    TooLarge(String),
    #[error("a delay of {0} is above the limit of {limit} milliseconds", limit = DELAY_MAX.as_millis())]
    TooLate(String),
    #[error("{0:?} is no option; there are max-age=SECONDS, no-store, delay=MILLISECONDS")]
    NoOption(String),
}

impl Refusal {
    const fn status(&self) -> StatusCode {
        match self {
            Self::NoSize => StatusCode::NOT_FOUND,
            Self::TooLarge(_) | Self::TooLate(_) | Self::NoOption(_) => StatusCode::BAD_REQUEST,
        }
    }
}

impl Order {
    /// Reads a request-target.
    fn parse(path_and_query: &str) -> Result<Self, Refusal> {
        let (path, query) = path_and_query
            .split_once('?')
            .unwrap_or((path_and_query, ""));
        let inner = path.strip_prefix("/demo/").unwrap_or(path);
        let mut segments = inner.trim_start_matches('/').split('/');
        let mut order = Self {
            size: size(segments.next().unwrap_or_default())?,
            seed: xxh3_64(path.as_bytes()),
            cache_control: "max-age=3600".to_owned(),
            delay: Duration::ZERO,
        };
        let name = segments.next_back();
        for word in segments {
            if !order.option(word)? {
                return Err(Refusal::NoOption(shortened(word)));
            }
        }
        for word in name.into_iter().chain(query.split('&')) {
            order.option(word)?;
        }
        Ok(order)
    }

    /// Whether the word is an option, which holds then.
    fn option(&mut self, word: &str) -> Result<bool, Refusal> {
        let wrong = || Refusal::NoOption(shortened(word));
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        match (name, value) {
            ("no-store", None) => self.cache_control = "no-store".to_owned(),
            ("max-age", Some(secs)) => {
                let secs = number(secs).ok_or_else(wrong)?;
                self.cache_control = format!("max-age={secs}");
            }
            ("delay", Some(ms)) => self.delay = delay(number(ms).ok_or_else(wrong)?)?,
            ("no-store" | "max-age" | "delay", _) => return Err(wrong()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn etag(&self) -> String {
        format!("\"{:016x}-{}\"", self.seed, self.size)
    }

    fn body(&self, cells: &Arc<Cells>) -> Generated {
        Generated {
            seed: self.seed,
            at: 0,
            size: self.size,
            cells: Arc::clone(cells),
        }
    }
}

fn size(text: &str) -> Result<u64, Refusal> {
    let bytes = number(text).ok_or(Refusal::NoSize)?;
    let within = (bytes <= SIZE_MAX).then_some(bytes);
    within.ok_or_else(|| Refusal::TooLarge(shortened(text)))
}

fn delay(ms: u64) -> Result<Duration, Refusal> {
    let delay = Duration::from_millis(ms);
    let within = (delay <= DELAY_MAX).then_some(delay);
    within.ok_or_else(|| Refusal::TooLate(ms.to_string()))
}

/// Digits and nothing else; one too large for the type is its largest.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

/// A client's word, as much of it as an answer repeats.
fn shortened(word: &str) -> String {
    word.chars().take(80).collect()
}

/// A body under way.
#[derive(Debug)]
pub struct Generated {
    seed: u64,
    at: u64,
    size: u64,
    cells: Arc<Cells>,
}

impl Generated {
    /// The next block; `None` at the end. Yields to the thread's other tasks,
    /// for nothing here ever waits.
    pub async fn next(&mut self) -> Option<Bytes> {
        let left = self.size.checked_sub(self.at).filter(|left| *left > 0)?;
        tokio::task::yield_now().await;
        let block = block(self.seed, self.at / BLOCK);
        self.at += left.min(BLOCK);
        self.cells
            .add(Metric::OriginResponseBodyBytes, left.min(BLOCK));
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

/// Answers as an origin does, `now` being the time of the request; the body's
/// bytes are counted as they are read.
pub async fn answer(request: &OriginRequest, now: WallTime, cells: &Arc<Cells>) -> OriginResponse {
    let is_read = matches!(request.method, Method::GET | Method::HEAD);
    if !is_read {
        return empty(StatusCode::METHOD_NOT_ALLOWED, now);
    }
    let order = match Order::parse(&request.upstream.path_and_query) {
        Ok(order) => order,
        Err(refusal) => return refused(&refusal, request, now),
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
        response.framing = BodyFraming::Length(order.size);
        response.body = OriginBody::Generated(order.body(cells));
    }
    response
}

fn refused(refusal: &Refusal, request: &OriginRequest, now: WallTime) -> OriginResponse {
    let reason = Bytes::from(format!("{refusal}\n"));
    let mut response = empty(refusal.status(), now);
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers.insert(header::CONTENT_TYPE, text);
    let length = HeaderValue::from(reason.len());
    response.headers.insert(header::CONTENT_LENGTH, length);
    if request.method == Method::GET {
        response.framing = BodyFraming::Length(reason.len() as u64);
        response.body = OriginBody::Whole(reason);
    }
    response
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
    use crate::metrics::Registry;
    use crate::proxy::origin::{Place, Upstream};

    async fn get(target: &str, fields: &[(header::HeaderName, &str)]) -> OriginResponse {
        let upstream = Upstream {
            place: Place::Generator,
            path_and_query: target.to_owned(),
            guard: None,
            options: None,
            introduction: None,
        };
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.insert(name, value.parse().unwrap());
        }
        let request = OriginRequest::new(upstream, Method::GET, headers);
        let cells = Registry::new().cells();
        answer(&request, WallTime::from_secs(1_800_000_000), &cells).await
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

    async fn refusal(target: &str) -> (StatusCode, String) {
        let response = get(target, &[]).await;
        let status = response.status;
        assert_eq!(
            response.headers[header::CONTENT_TYPE],
            "text/plain; charset=utf-8"
        );
        let length = response.headers[header::CONTENT_LENGTH].clone();
        let body = String::from_utf8(body(response).await).unwrap();
        assert_eq!(length, body.len().to_string(), "{target}");
        (status, body)
    }

    #[tokio::test]
    async fn paths_without_a_size_are_not_found_and_say_what_one_is() {
        for target in ["/demo/x/a", "/demo/", "/", "/demo/-1/a", "/demo/+1/a"] {
            let (status, body) = refusal(target).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{target}");
            assert!(body.contains("/SIZE/OPTIONS/NAME"), "{body}");
            assert!(body.contains("NAME may be left out"), "{body}");
        }
    }

    #[tokio::test]
    async fn what_is_above_a_limit_is_refused_with_the_limit() {
        for target in ["/demo/67108865/a", "/demo/99999999999999999999/a"] {
            let (status, body) = refusal(target).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{target}");
            assert!(body.contains("limit of 67108864 (64 MiB)"), "{body}");
        }
        for target in ["/demo/5/delay=10001/a", "/demo/5/a?delay=10001"] {
            let (status, body) = refusal(target).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{target}");
            assert!(body.contains("limit of 10000 milliseconds"), "{body}");
        }
        assert_eq!(get("/demo/67108864/a", &[]).await.status, StatusCode::OK);
    }

    #[tokio::test]
    async fn words_that_are_no_options_are_refused_by_name() {
        for (target, word) in [
            ("/demo/5/nostore/a", "nostore"),
            ("/demo/5/no-store/dealy=5/a", "dealy=5"),
            ("/demo/5/delay/a", "delay"),
            ("/demo/5/a?delay=1s", "delay=1s"),
            ("/demo/5/a?x&max-age=-1", "max-age=-1"),
            ("/demo/5/a?no-store=1", "no-store=1"),
        ] {
            let (status, body) = refusal(target).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{target}");
            let named = body.starts_with(&format!("\"{word}\" is no option"));
            assert!(named && body.contains("max-age=SECONDS"), "{body}");
        }
        for target in ["/demo/5", "/demo/5/", "/demo/5/a=b", "/demo/5/a?v=7&w"] {
            assert_eq!(get(target, &[]).await.status, StatusCode::OK, "{target}");
        }
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
    async fn an_answer_begins_after_its_delay() {
        let before = tokio::time::Instant::now();
        get("/demo/5/delay=10000/a", &[]).await;
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
