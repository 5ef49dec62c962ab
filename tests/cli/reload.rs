//! A reload takes all files or none.

use crate::support::Config;
use std::fmt::Write;

/// Rules for this many hosts.
fn rules(count: usize) -> String {
    let mut text = String::new();
    for n in 0..count {
        writeln!(text, "map http://h{n}.example/ http://o{n}.example/").unwrap();
    }
    text
}

#[test]
fn one_bad_line_among_ten_thousand_rules_changes_nothing_and_is_named() {
    let config = Config::new("");
    let _server = config.start();
    let cutoff = "proxy.config.cache.ram_cache_cutoff";
    let records = config.read("records.config");
    config.write(
        "records.config",
        &format!("{records}CONFIG {cutoff} INT 40\n"),
    );
    let mut bad: Vec<String> = rules(10_000).lines().map(str::to_owned).collect();
    bad[8_499] = "map http://broken.example/ htp://o.example/".into();
    config.write("remap.config", &bad.join("\n"));

    for ran in [config.line(&["-x"]), config.ctl(&["config", "reload"])] {
        assert_ne!(ran.code(), 0);
        assert!(
            ran.err().contains("remap.config:8500:28: "),
            "{}",
            ran.err()
        );
    }
    assert_eq!(config.line(&["-r", cutoff]).ok(), "4194304\n");
    assert_eq!(
        config.line(&["-r", "strata.config.reload_failures"]).ok(),
        "2\n"
    );
    assert_eq!(config.line(&["-r", "strata.config.generation"]).ok(), "1\n");

    config.write("remap.config", &rules(10_000));
    assert_eq!(config.line(&["-x"]).ok(), "");
    assert_eq!(config.line(&["-r", cutoff]).ok(), "40\n");
    assert_eq!(config.line(&["-r", "strata.config.reloads"]).ok(), "1\n");
}

#[test]
fn a_reload_says_what_holds_now_and_what_waits_for_a_restart() {
    let config = Config::new("");
    let _server = config.start();
    config.write("remap.config", "map http://c.example/ http://d.example/\n");
    config.write("storage.config", "span 64M tier=fast\n");
    let answer = config.ctl(&["config", "reload"]).ok();
    assert!(answer.contains("in force: remap.config\n"), "{answer}");
    assert!(
        answer.contains("at the next restart: storage.config\n"),
        "{answer}"
    );
    let json = config.ctl(&["config", "status", "-f", "json"]).ok();
    let status: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(status["generation"], 2);
    let again = config.ctl(&["config", "reload"]).ok();
    assert_eq!(
        again,
        "at the next restart: storage.config\ngeneration: 3\n"
    );
    let waits = "proxy.node.config.restart_required.proxy";
    assert_eq!(config.line(&["-r", waits]).ok(), "1\n");
}

#[test]
fn spans_and_ports_that_change_under_a_server_are_said_to_wait_for_a_restart() {
    let config = Config::new("");
    let _server = config.start();
    let records = config.read("records.config");
    let ran = config.line(&["-x"]);
    assert_eq!(
        (ran.code(), ran.out(), ran.err()),
        (0, String::new(), String::new())
    );
    config.write("storage.config", "span 64M tier=fast\n");
    let ports = "proxy.config.http.server_ports";
    config.write(
        "records.config",
        &format!("{records}CONFIG {ports} STRING ip-in=127.0.0.1:9090\n"),
    );
    for _ in 0..2 {
        let ran = config.line(&["-x"]);
        assert_eq!((ran.code(), ran.out()), (0, String::new()));
        let lines = ["storage.config", ports]
            .map(|name| format!("traffic_line: {name}: holds after a restart\n"));
        assert_eq!(ran.err(), lines.concat());
    }
}

#[test]
fn the_status_is_for_people_to_read() {
    let config = Config::new("");
    let _server = config.start();
    let said = config.ctl(&["config", "status"]).ok();
    let names: Vec<_> = said.lines().map(|line| line.split_once(": ")).collect();
    let names: Vec<_> = names.into_iter().map(|line| line.unwrap().0).collect();
    assert_eq!(names, ["directory", "generation", "loaded_at"]);
    assert!(said.ends_with(" GMT\n"), "{said}");
    config.write("storage.config", "span 64M\n");
    config.ctl(&["config", "reload"]).ok();
    config.write("remap.config", "mpa http://c.example/ http://d.example/\n");
    assert_eq!(config.ctl(&["config", "reload"]).code(), 2);
    let said = config.ctl(&["config", "status"]).ok();
    assert!(said.contains("at_restart: storage.config\n"), "{said}");
    let error = "\nlast_error: remap.config:1:1: unknown rule type (at \"mpa\")";
    assert!(said.contains(error), "{said}");
    let status = config.ctl(&["server", "status"]).ok();
    assert!(!status.contains("reasons:"), "{status}");
}

#[test]
fn verify_names_the_fault_and_counts_as_no_reload() {
    let config = Config::new("");
    let _server = config.start();
    config.write("remap.config", "mpa http://c.example/ http://d.example/\n");
    let ran = config.ctl(&["config", "verify"]);
    assert_eq!(ran.code(), 2);
    assert!(ran.err().contains("remap.config:1:1: "), "{}", ran.err());
    assert_eq!(
        config.line(&["-r", "strata.config.reload_failures"]).ok(),
        "0\n"
    );
}

#[test]
fn verify_says_what_was_checked_and_warns_of_spans_that_a_reload_takes() {
    let config = Config::new("");
    let _server = config.start();
    let good = "records.config, remap.config, storage.config: no errors, ";
    let said = config.ctl(&["config", "verify"]).ok();
    assert_eq!(
        said,
        format!(
            "warning: storage.config:1:1: it names no span; the cache is in RAM only\n\
             {good}1 warning; 3 records, 1 rule, 0 spans\n"
        )
    );
    config.write("storage.config", "/dev/nosuch\nspan 64M\n");
    let said = config.ctl(&["config", "verify"]).ok();
    assert!(
        said.starts_with("warning: storage.config:1:1: /dev/nosuch: no such device"),
        "{said}"
    );
    assert!(
        said.contains("a restart would leave the span out\n"),
        "{said}"
    );
    assert!(
        said.ends_with(&format!("{good}1 warning; 3 records, 1 rule, 2 spans\n")),
        "{said}"
    );
    let json = config.ctl(&["config", "verify", "-f", "json"]).ok();
    let verified: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&verified["spans"], &verified["rules"]),
        (&2.into(), &1.into())
    );
    assert_eq!(verified["warnings"][0]["line"], 1);
    assert_eq!(config.line(&["-x"]).code(), 0);
}
