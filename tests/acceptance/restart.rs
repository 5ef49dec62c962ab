//! What a stop, a crash and a start leave of the cache.

use crate::http;
use crate::peers::Jtest;
use crate::site::{Site, free_port, quiet};
use crate::until::until;
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

/// Objects of each kind in the tests of a warm start.
const FEW: usize = 30;

/// A site before the generator origin, whose RAM takes all.
fn demo_site() -> Site {
    let root = env!("CARGO_MANIFEST_DIR");
    let remap = std::fs::read_to_string(format!("{root}/remap.config")).unwrap();
    Site::new("", &remap, "var/cache.span 128M tier=fast\n")
}

/// What answered for each object of a kind: `ram`, `ssd`, or the origin.
fn answered(site: &Site, kind: &str) -> Vec<String> {
    let each = (0..FEW).map(|n| {
        let answer = http::get(site.port, &format!("/demo/15000/{kind}{n}")).unwrap();
        assert_eq!((answer.status, answer.body.len()), (200, 15_000));
        let status = answer.field("cache-status").unwrap_or("").to_owned();
        let detail = status.rsplit_once("detail=").map(|(_, detail)| detail);
        detail.unwrap_or("origin").to_owned()
    });
    each.collect()
}

/// Starts the server and waits until it has read ahead all that it will.
fn start_warm(site: &mut Site) {
    site.start();
    until("warm", || {
        site.metric("proxy.process.cache.ram_cache.to_warm") == 0
    });
}

#[test]
fn what_ram_served_often_is_there_after_a_stop_and_a_kill_and_what_it_did_not_on_the_span() {
    let mut site = demo_site();
    site.start();
    for (kind, reads) in [("hot", 4), ("once", 1)] {
        for _ in 0..reads {
            answered(&site, kind);
        }
    }
    assert!(site.stop().success());
    start_warm(&mut site);
    let warmed = site.metric("proxy.process.cache.ram_cache.warmed");
    assert_eq!(warmed, u64::try_from(FEW).unwrap());
    assert_eq!(answered(&site, "hot"), ["ram"; FEW]);
    assert_eq!(answered(&site, "once"), ["ssd"; FEW]);
    // What is hot now has not been written down: the stop's file holds.
    for _ in 0..4 {
        answered(&site, "late");
    }
    quiet(Duration::from_secs(2));
    site.kill();
    start_warm(&mut site);
    assert_eq!(answered(&site, "hot"), ["ram"; FEW]);
    for kind in ["once", "late"] {
        assert_eq!(answered(&site, kind), ["ssd"; FEW], "{kind}");
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
