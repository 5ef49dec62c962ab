//! What a stop, a crash and a start leave of the cache.

use crate::http;
use crate::peers::Jtest;
use crate::site::{Site, free_port, quiet};
use std::time::Duration;

const DOCUMENTS: u32 = 300;

fn file_site(origin: u16) -> Site {
    Site::new(
        "CONFIG proxy.config.cache.ram_cache_cutoff INT 40\n",
        &format!("map http://127.0.0.1:{origin}/ http://127.0.0.1:{origin}\n"),
        "var/cache.span 128M tier=fast\n",
    )
}

fn filled() -> (Site, Jtest) {
    let jtest = Jtest {
        origin: free_port(),
        documents: DOCUMENTS,
    };
    let mut site = file_site(jtest.origin);
    site.start();
    let counts = jtest.sweep(&site, true);
    assert_eq!(counts.fetches, u64::from(DOCUMENTS));
    (site, jtest)
}

#[test]
fn a_stopped_server_starts_with_every_object() {
    let (mut site, jtest) = filled();
    let status = site.stop();
    assert!(status.success(), "{status}");
    site.start();
    let counts = jtest.sweep(&site, false);
    assert_eq!(counts.requests, u64::from(DOCUMENTS));
    assert_eq!(site.reads().ssd, u64::from(DOCUMENTS));
}

#[test]
fn a_killed_server_starts_with_every_object_after_two_quiet_seconds() {
    let (mut site, jtest) = filled();
    quiet(Duration::from_secs(2));
    for round in 0..3 {
        site.kill();
        site.start();
        let counts = jtest.sweep(&site, false);
        assert_eq!(counts.requests, u64::from(DOCUMENTS), "round {round}");
    }
}

#[test]
fn the_shipped_demo_misses_then_hits_in_ram_then_hits_from_the_span() {
    let root = env!("CARGO_MANIFEST_DIR");
    let remap = std::fs::read_to_string(format!("{root}/remap.config")).unwrap();
    let storage = std::fs::read_to_string(format!("{root}/storage.config")).unwrap();
    let mut site = Site::new("", &remap, &storage.replace("256M", "64M"));
    site.start();
    let details = |answer: &http::Answer| answer.field("cache-status").unwrap_or("").to_owned();
    let miss = http::get(site.port, "/demo/15000/a").unwrap();
    assert_eq!(
        (miss.status, miss.body.len()),
        (200, 15_000),
        "{}",
        miss.head
    );
    assert!(details(&miss).starts_with("strata; fwd="), "{}", miss.head);
    let ram = http::get(site.port, "/demo/15000/a").unwrap();
    assert!(
        details(&ram).starts_with("strata; hit; ttl="),
        "{}",
        ram.head
    );
    assert!(details(&ram).ends_with("; detail=ram"), "{}", ram.head);
    assert!(ram.field("age").is_some() && ram.field("via").is_some());
    assert!(site.stop().success());
    site.start();
    let span = http::get(site.port, "/demo/15000/a").unwrap();
    assert!(details(&span).ends_with("; detail=ssd"), "{}", span.head);
    assert_eq!(span.body, miss.body);
}
