//! Volumes and the hosts that go to them, by a running server.

use crate::support::{Config, exchange};
use crate::until::until;
use serde_json::Value;
use std::net::SocketAddr;

const RECORDS: &str = "CONFIG proxy.config.url_remap.pristine_host_hdr INT 1\n\
    CONFIG proxy.config.cache.ram_cache_cutoff INT 1\n\
    CONFIG proxy.config.cache.volume_filename STRING volumes\n\
    CONFIG proxy.config.cache.hosting_filename STRING hosts\n";
const DOCUMENTS: u32 = 20;

fn config() -> Config {
    let config = Config::new(RECORDS);
    config.write(
        "remap.config",
        "map http://a.example/ http://generator.invalid/demo/ @plugin=generator.so\n\
         map http://b.example/ http://generator.invalid/demo/ @plugin=generator.so\n",
    );
    config.write("storage.config", "one 128M tier=fast\ntwo 128M tier=fast\n");
    config.write(
        "volumes",
        "volume=1 scheme=http size=50%\nvolume=2 scheme=http size=50%\n",
    );
    config.write(
        "hosts",
        "hostname=a.example volume=1\nhostname=* volume=2\n",
    );
    config
}

/// Asks for every document of a host; how many of the answers were hits.
fn ask(port: SocketAddr, host: &str) -> u32 {
    let hits = (0..DOCUMENTS).filter(|n| {
        let head = format!("GET /1000/{n} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = exchange(port, &head);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        answer.contains("; hit")
    });
    u32::try_from(hits.count()).unwrap()
}

/// How many keys of a host lie in a volume.
fn listed(config: &Config, host: &str, volume: &str) -> usize {
    let prefix = format!("http://{host}/");
    let list = config.ctl(&["cache", "list", &prefix, "--volume", volume]);
    list.ok().lines().count()
}

#[test]
fn hosts_go_to_their_volumes_and_a_volume_is_listed_and_cleared_alone() {
    let config = config();
    let server = config.start();
    let ready = server.readiness();
    assert!(ready.contains(" volumes=1,2 "), "{ready}");
    for host in ["a.example", "b.example"] {
        assert_eq!(ask(server.port(), host), 0);
        assert_eq!(ask(server.port(), host), DOCUMENTS);
    }
    let counts = ["a.example", "b.example"].map(|host| {
        let of = |volume| listed(&config, host, volume);
        (of("1"), of("2"))
    });
    assert_eq!(counts, [(20, 0), (0, 20)]);
    let told = config.ctl(&["cache", "list", "http://", "--volume", "7"]);
    assert_eq!(told.code(), 2, "{}", told.err());
    assert!(told.err().contains("there is 0, 1, 2") || told.err().contains("there is 1, 2"));
    config.ctl(&["cache", "clear", "--volume", "1"]).ok();
    assert_eq!(ask(server.port(), "a.example"), 0);
    assert_eq!(ask(server.port(), "b.example"), DOCUMENTS);
}

#[test]
fn a_reload_moves_hosts_at_once_and_volumes_at_the_next_restart() {
    let config = config();
    let server = config.start();
    ask(server.port(), "a.example");
    ask(server.port(), "b.example");
    config.write("hosts", "hostname=* volume=2\n");
    config.write(
        "volumes",
        "volume=2 scheme=http size=50%\nvolume=3 scheme=http size=50%\n",
    );
    let answer = config.ctl(&["config", "reload"]).ok();
    assert!(answer.contains("in force: hosts\n"), "{answer}");
    assert!(
        answer.contains("at the next restart: volumes\n"),
        "{answer}"
    );
    assert_eq!(ask(server.port(), "a.example"), 0, "its volume is another");
    assert_eq!(ask(server.port(), "b.example"), DOCUMENTS);
    // What replaces an older copy elsewhere waits until that is gone for good.
    until("objects in their other volume", || {
        listed(&config, "a.example", "2") == 20
    });

    config.write("hosts", "hostname=* volume=4\n");
    let refused = config.ctl(&["config", "reload"]).err();
    assert!(
        refused.contains("hosts:1:19: ") && refused.contains("they have 2, 3"),
        "{refused}"
    );
    config.write("hosts", "hostname=* volume=2\n");
    server.signal("-TERM");
    assert_eq!(server.ended().0, 0);
    let server = config.start();
    assert_eq!(ask(server.port(), "a.example"), DOCUMENTS);
    assert_eq!(ask(server.port(), "b.example"), DOCUMENTS);
}

/// `storage plan` with these arguments; objects that are kept and dropped.
fn planned(config: &Config, args: &[&str]) -> (u64, u64) {
    let all = [&["storage", "plan", "-f", "json"], args].concat();
    let plan: Value = serde_json::from_str(&config.ctl(&all).ok()).unwrap();
    let objects = |sum: &str| plan[sum]["objects"].as_u64().unwrap();
    (objects("kept"), objects("dropped"))
}

#[test]
fn a_plan_says_what_a_restart_keeps_and_drops_and_changes_nothing() {
    let config = config();
    let server = config.start();
    ask(server.port(), "a.example");
    ask(server.port(), "b.example");
    assert_eq!(planned(&config, &[]), (40, 0));
    config.write("fewer", "one 128M tier=fast\nnew 64M tier=fast\nhosts\n");
    config.write(
        "other",
        "volume=1 scheme=http size=20%\nvolume=2 scheme=http size=50%\n",
    );
    let path = |name: &str| config.path(name).to_str().unwrap().to_owned();
    let (fewer, other) = (path("fewer"), path("other"));
    let (kept, dropped) = planned(&config, &["--storage", &fewer]);
    assert_eq!(kept + dropped, 40);
    assert!(kept > 5 && dropped > 5, "{kept} {dropped}");
    let (kept, dropped) = planned(&config, &["--volumes", &other]);
    assert!(
        kept + dropped == 40 && (5..=20).contains(&dropped),
        "{kept} {dropped}"
    );
    let text = config.ctl(&["storage", "plan", "--storage", &fewer]).ok();
    for told in [
        "/two: no longer configured\n",
        "/new\n  volume 1, ",
        "/hosts: left out: ",
        "in all: ",
    ] {
        assert!(text.contains(told), "{told} is not in {text}");
    }
    config.write("bad", "one 1M\n");
    let refused = config.ctl(&["storage", "plan", "--storage", &path("bad")]);
    assert_eq!(refused.code(), 2);
    assert!(
        refused.err().contains("storage.config:1:5: "),
        "{}",
        refused.err()
    );

    assert_eq!(ask(server.port(), "a.example"), DOCUMENTS);
    server.signal("-TERM");
    assert_eq!(server.ended().0, 0);
    assert!(!crate::support::exists(&config.path("new")));
    assert_eq!(planned(&config, &[]), (40, 0));
    assert_eq!(planned(&config, &["--volumes", &other]), (kept, dropped));
    let alone = config.ctl(&["storage", "plan", "--storage", &path("bad")]);
    assert_eq!(alone.code(), 2);
    assert!(
        alone.err().contains("storage.config:1:5: "),
        "{}",
        alone.err()
    );
}
