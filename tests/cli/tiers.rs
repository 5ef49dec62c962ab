//! Records of the tiers, seen to act on spans of both.

use crate::support::{Config, Server, exchange};
use crate::until::until;

const DEMO: &str = "map http://a.example/ http://generator.invalid/demo/ @plugin=generator.so\n";

/// A server over a fast and a capacity span, with almost no RAM cache.
fn start(records: &str) -> (Config, Server) {
    let small = "CONFIG proxy.config.cache.ram_cache_cutoff INT 1\n";
    let config = Config::new(&format!("{small}{records}"));
    config.write("remap.config", DEMO);
    config.write(
        "storage.config",
        "quick 64M tier=fast\nslow 64M tier=capacity\n",
    );
    let server = config.start();
    config.spans_read();
    (config, server)
}

/// Asks for one object of 10,000 bytes.
fn get(server: &Server) {
    let head = "GET /10000/1 HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
    let answer = exchange(server.port(), head);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

fn count(config: &Config, metric: &str) -> u64 {
    let shown = config.line(&["-r", &format!("strata.tier.{metric}")]).ok();
    shown.trim().parse().unwrap()
}

/// Asks for the object until the metric has moved; how often that was.
fn gets_until(config: &Config, server: &Server, metric: &str) -> u32 {
    let mut gets = 0;
    until(metric, || {
        get(server);
        gets += 1;
        count(config, metric) > 0
    });
    gets
}

#[test]
fn an_object_is_promoted_at_the_number_of_reads_that_the_record_says() {
    let records = "CONFIG proxy.config.cache.interim.migrate_threshold INT 250\n";
    let (config, server) = start(records);
    let gets = gets_until(&config, &server, "promotions");
    assert!(gets > 250, "{gets}");
    let hits = gets_until(&config, &server, "fast.hits");
    assert_eq!(hits, 1);
}

#[test]
fn nothing_is_promoted_beyond_the_write_budget_and_its_burst() {
    for records in [
        "CONFIG proxy.config.strata.tier.fast.write_budget INT 48000\n",
        "CONFIG proxy.config.strata.tier.fast.write_budget INT 1000000000\n\
         CONFIG proxy.config.strata.tier.fast.write_burst INT 9000\n",
    ] {
        let (config, server) = start(records);
        gets_until(&config, &server, "refused.budget");
        assert_eq!(count(&config, "promotions"), 0);
        for record in ["write_burst", "write_budget"] {
            let name = format!("proxy.config.strata.tier.fast.{record}");
            assert_eq!(config.line(&["-s", &name, "-v", "0"]).ok(), "");
        }
        gets_until(&config, &server, "promotions");
    }
}

#[test]
fn fills_go_to_the_tier_that_the_record_says() {
    let (config, server) = start("CONFIG proxy.config.strata.tier.fills STRING fast\n");
    get(&server);
    assert!(count(&config, "fast.written.fill") > 10_000);
}

#[test]
fn the_days_to_the_endurance_are_projected_once_it_is_known() {
    let name = "proxy.config.strata.tier.fast.endurance";
    let (config, server) = start("CONFIG proxy.config.strata.tier.fills STRING fast\n");
    get(&server);
    assert_eq!(count(&config, "fast.endurance_days"), 0);
    let set = config.line(&["-s", name, "-v", "1000000000000000"]);
    assert_eq!(set.ok(), "");
    until("the days", || count(&config, "fast.endurance_days") > 0);
}
