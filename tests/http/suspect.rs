//! What a span holds that was away, end to end: it may be old.

use crate::support::{Client, Origin, Proxy, snapshot};
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use strata::base::clock::{Clock, SystemClock};
use strata::cache::{Cache, CacheOptions, RamOptions, SpanOptions};
use strata::proxy::Shared;

/// An origin whose representation and mood change.
struct Site {
    origin: Origin,
    version: Arc<AtomicU8>,
}

/// What the version is while every request fails.
const DOWN: u8 = u8::MAX;

/// The answer of a site at `version` whose responses carry `validator`, a
/// whole field line or nothing.
fn site(validator: fn(u8) -> String) -> Site {
    let version = Arc::new(AtomicU8::new(1));
    let now = Arc::clone(&version);
    let origin = Origin::answering(move |request| {
        let version = now.load(Ordering::SeqCst);
        let field = validator(version);
        let asked = [
            request.fields("if-none-match"),
            request.fields("if-modified-since"),
        ];
        let same = |value: &&str| field.contains(value);
        if version == DOWN {
            return b"HTTP/1.1 503 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec();
        }
        if asked.iter().flatten().any(same) {
            return format!("HTTP/1.1 304 Not Modified\r\n{field}\r\n").into_bytes();
        }
        let body = format!("version {version}");
        let fields = "Cache-Control: max-age=9999, stale-if-error=9999\r\n";
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\n{fields}{field}Content-Length: {length}\r\n\r\n{body}")
            .into_bytes()
    });
    Site { origin, version }
}

fn tag(version: u8) -> String {
    format!("ETag: \"v{version}\"\r\n")
}

/// A proxy whose cache lies in one span, and that cache.
fn proxy(remap: &str, dir: &Path) -> (Proxy, Arc<Cache>) {
    let options = CacheOptions {
        spans: vec![SpanOptions {
            size: Some(64 << 20),
            ..SpanOptions::at(dir.join("span"))
        }],
        ram: RamOptions {
            cutoff: 1,
            ..RamOptions::default()
        },
        ..CacheOptions::default()
    };
    let made = Arc::new(OnceLock::new());
    let place = Arc::clone(&made);
    let adapt = move |shared: Shared| {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let cache = Cache::open(options, clock, &shared.registry).0;
        waited(cache.loaded());
        place.set(Arc::clone(&cache)).unwrap();
        Shared {
            cache: Some(cache),
            ..shared
        }
    };
    let proxy = Proxy::running(snapshot("", remap), Box::new(adapt));
    let cache = Arc::clone(made.get().unwrap());
    (proxy, cache)
}

fn waited<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(future)
}

/// Takes the span away and brings it back.
fn away_and_back(cache: &Cache, dir: &Path, meanwhile: impl FnOnce()) {
    let span = dir.join("span");
    waited(cache.offline(&span)).unwrap();
    meanwhile();
    cache.online(&span).unwrap();
    waited(cache.loaded());
}

/// Status and body of a GET with these field lines.
fn get(proxy: &Proxy, fields: &str) -> (u16, String) {
    let request = format!("GET /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    let answer = Client::connect(proxy.address).ask(request);
    (answer.status, String::from_utf8(answer.body).unwrap())
}

#[test]
fn what_was_away_is_used_once_the_origin_says_that_it_still_holds() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(tag);
    let (proxy, cache) = proxy(&site.origin.map("/"), dir.path());
    let first = (200, "version 1".to_owned());
    assert_eq!(get(&proxy, ""), first);
    away_and_back(&cache, dir.path(), || {});
    assert_eq!(get(&proxy, ""), first);
    let asked = site.origin.requests();
    assert_eq!(asked[1].fields("if-none-match"), ["\"v1\""]);
    assert_eq!(get(&proxy, ""), first);
    assert_eq!(site.origin.requests().len(), 2, "it holds again");
}

#[test]
fn what_changed_while_a_span_was_away_is_fetched_anew() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(tag);
    let (proxy, cache) = proxy(&site.origin.map("/"), dir.path());
    assert_eq!(get(&proxy, "").1, "version 1");
    away_and_back(&cache, dir.path(), || {
        site.version.store(2, Ordering::SeqCst);
    });
    for _ in 0..2 {
        assert_eq!(get(&proxy, ""), (200, "version 2".to_owned()));
    }
    assert_eq!(site.origin.requests().len(), 2);
}

#[test]
fn what_was_away_never_stands_in_for_an_origin_that_fails() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(tag);
    let (proxy, cache) = proxy(&site.origin.map("/"), dir.path());
    assert_eq!(get(&proxy, "").1, "version 1");
    away_and_back(&cache, dir.path(), || {
        site.version.store(DOWN, Ordering::SeqCst);
    });
    assert_eq!(get(&proxy, ""), (503, String::new()));
    assert_eq!(get(&proxy, "Cache-Control: only-if-cached\r\n").0, 504);
    drop(site);
    assert_eq!(get(&proxy, "").0, 502);
}

#[test]
fn what_was_away_and_has_no_validator_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let site = site(|_| String::new());
    let (proxy, cache) = proxy(&site.origin.map("/"), dir.path());
    assert_eq!(get(&proxy, "").1, "version 1");
    away_and_back(&cache, dir.path(), || {
        site.version.store(2, Ordering::SeqCst);
    });
    assert_eq!(get(&proxy, "").1, "version 2");
    away_and_back(&cache, dir.path(), || {
        site.version.store(DOWN, Ordering::SeqCst);
    });
    assert_eq!(get(&proxy, "").0, 503);
}

/// Such a copy is validated by a GET, whose body is nobody's here.
#[test]
fn a_head_of_what_was_away_does_not_wait_for_the_body_of_what_it_is_now() {
    let dir = tempfile::tempdir().unwrap();
    let origin = Origin::answering(|request| {
        if request.fields("if-none-match").is_empty() {
            let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=9999\r\nETag: \"v1\"";
            return format!("{head}\r\nContent-Length: 1\r\n\r\nx").into_bytes();
        }
        let head = "HTTP/1.1 200 OK\r\nCache-Control: no-store";
        format!("{head}\r\nContent-Length: 1000000\r\n\r\nbegun").into_bytes()
    });
    let (proxy, cache) = proxy(&origin.map("/"), dir.path());
    assert_eq!(get(&proxy, ""), (200, "x".to_owned()));
    away_and_back(&cache, dir.path(), || {});
    let mut client = Client::connect(proxy.address);
    for _ in 0..2 {
        client.send("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n");
        let told = client.head().unwrap();
        assert_eq!(told.fields("content-length"), ["1000000"]);
    }
}
