//! Devices slower than an origin, and ones that answer nothing: bodies are
//! stored as long as the device gets on, and clients get theirs anyhow.

use crate::http::{self, Answer};
use crate::site::Site;
use crate::until::until;
use std::fs;

const BODY_BYTES: usize = 64 << 20;

fn site() -> Site {
    let site = Site::new(
        "CONFIG proxy.config.cache.ram_cache_cutoff INT 1\n",
        "map /demo/ http://generator.invalid/ @plugin=generator.so\n",
        "span 200M tier=capacity\n",
    );
    fs::write(site.path("faults"), "").unwrap();
    site
}

/// From now on the span does this.
fn tell(site: &Site, fault: &str) {
    let line = format!("{} {fault}\n", site.path("span").display());
    fs::write(site.path("faults"), line).unwrap();
}

/// A whole body; and what Cache-Status says of it.
fn get(site: &Site, name: &str) -> String {
    let answer: Answer = http::get(site.port, &format!("/demo/{BODY_BYTES}/{name}")).unwrap();
    assert_eq!(answer.body.len(), BODY_BYTES, "{}", answer.head);
    answer.field("cache-status").unwrap_or("").to_owned()
}

#[test]
#[cfg_attr(
    not(feature = "faults"),
    ignore = "needs devices that fail as they are told: cargo test --features faults"
)]
fn a_body_larger_than_the_backlog_is_stored_each_time_by_a_device_slower_than_its_origin() {
    let mut site = site();
    site.start();
    tell(&site, "slow 20");
    for n in 0..20 {
        let name = format!("{n}");
        assert_eq!(get(&site, &name), "strata; fwd=uri-miss; stored");
        let again = get(&site, &name);
        assert!(again.ends_with("; detail=hdd"), "{n}: {again}");
    }
    assert_eq!(site.metric("proxy.process.cache.write.backlog.failure"), 0);
    assert!(site.stop().success());
}

#[test]
#[cfg_attr(
    not(feature = "faults"),
    ignore = "needs devices that fail as they are told: cargo test --features faults"
)]
fn a_device_that_hangs_costs_no_client_its_body_and_is_not_said_to_store() {
    let mut site = site();
    site.start();
    let port = site.port;
    let read_small = || http::get(port, "/demo/1000/small").unwrap();
    read_small();
    // Off the buffer, so that it is read from the device.
    assert!(site.stop().success());
    site.start();
    tell(&site, "hang");
    assert_eq!(get(&site, "a"), "strata; fwd=uri-miss; stored");
    let refused = || site.metric("proxy.process.cache.write.backlog.failure");
    assert_eq!(refused(), 1, "given up, and counted");
    assert_eq!(get(&site, "a"), "strata; fwd=uri-miss");
    assert_eq!(refused(), 2, "refused before its body");
    // What waits is written when the device answers again.
    fs::write(site.path("faults"), "").unwrap();
    until("a device that answers", || {
        read_small();
        get(&site, "b").ends_with("stored")
    });
    assert!(get(&site, "b").ends_with("; detail=hdd"));
    assert!(site.stop().success());
}
