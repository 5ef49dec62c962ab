//! Spans under an operator's hand.

use crate::support::{Config, get};

#[test]
fn a_span_goes_offline_and_comes_back_and_readiness_follows() {
    let config = Config::new("CONFIG proxy.config.http.wait_for_cache INT 1\n");
    config.write("storage.config", "span 64M tier=fast\n");
    let server = config.start();
    assert_eq!(config.spans()[0]["state"], "online");
    assert_eq!(config.line(&["--offline", "span"]).ok(), "");
    assert_eq!(config.spans()[0]["state"], "offline");
    let answer = get(server.admin(), "/readyz", "localhost");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("no configured span is usable"), "{answer}");
    let again = config.line(&["--offline", "span"]);
    assert_eq!(again.code(), 1);
    assert!(
        again.err().contains("is out of use already"),
        "{}",
        again.err()
    );
    let told = config.ctl(&["storage", "online", "span"]).ok();
    assert!(told.starts_with("span is "), "{told}");
    assert_eq!(config.spans_read()[0]["state"], "suspect");
    let answer = get(server.admin(), "/readyz", "localhost");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let unknown = config.ctl(&["storage", "offline", "other"]);
    assert_eq!(unknown.code(), 2);
    assert!(unknown.err().contains("not a span of storage.config"));
}

#[test]
fn several_spans_go_offline_and_online_at_once_and_a_misspelt_name_changes_none() {
    let config = Config::new("");
    config.write("storage.config", "one 64M id=first\ntwo 64M\nthree 64M\n");
    let _server = config.start();
    let states = || [0, 1, 2].map(|n| config.spans()[n]["state"].clone());
    let misspelt = config.ctl(&["storage", "offline", "first", "tow"]);
    assert_eq!(misspelt.code(), 2);
    assert!(misspelt.err().contains("tow: not a span of"));
    assert_eq!(states(), ["online"; 3]);
    assert_eq!(
        config.ctl(&["storage", "offline", "first", "three"]).ok(),
        ""
    );
    assert_eq!(states(), ["offline", "online", "offline"]);
    // What can be done is done; what can't be is told of, all of it.
    let again = config.ctl(&["storage", "offline", "one", "two", "three"]);
    assert_eq!(again.code(), 2);
    assert_eq!(again.err().matches("is out of use already").count(), 2);
    assert_eq!(states(), ["offline"; 3]);
    let told = config.ctl(&["storage", "online", "first", "two"]).ok();
    let told: Vec<_> = told.lines().collect();
    assert!(told[0].starts_with("first is "), "{told:?}");
    assert!(told[1].starts_with("two is "), "{told:?}");
    assert_eq!(told.len(), 2);
    assert_eq!(states()[2], "offline");
}

#[test]
fn a_span_that_is_not_ours_is_left_alone_and_told_of() {
    let config = Config::new("");
    let foreign = "#!/bin/sh\n".repeat(4 << 20);
    config.write("span", &foreign);
    config.write("storage.config", "span tier=fast\n");
    let server = config.start();
    let answer = get(server.admin(), "/readyz", "localhost");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(
        answer.contains("\nnot ready: no configured span"),
        "{answer}"
    );
    let line = server.readiness();
    assert!(line.contains(" not ready: no configured span"), "{line}");
    assert_eq!(config.spans()[0]["state"], "refused");
    let reason = config.spans()[0]["reason"].clone();
    assert!(reason.as_str().unwrap().contains("span"), "{reason}");
    assert_eq!(config.ctl(&["storage", "init", "span"]).code(), 2);
    assert_eq!(config.read("span"), foreign);
    assert_eq!(
        config.ctl(&["storage", "init", "--force", "span"]).ok(),
        "span is an empty span; next: traffic_ctl storage online span\n"
    );
    config.ctl(&["storage", "online", "span"]).ok();
    assert_eq!(config.spans_read()[0]["state"], "online");
}

#[test]
fn the_ready_line_comes_with_readiness_and_in_plain_words() {
    let config = Config::new("");
    config.write("storage.config", "a 64M volume=1\nb 64M volume=2\n");
    for _ in 0..2 {
        let server = config.start();
        let answer = get(server.admin(), "/readyz", "localhost");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let line = server.readiness();
        for plain in [" ports=[127.", " admin=127.", " spans=2 ", " volumes=1,2 "] {
            assert!(line.contains(plain), "{line}");
        }
        server.signal("-TERM");
        assert_eq!(server.ended().0, 0);
    }
}

#[test]
fn the_ready_line_counts_the_spans_in_use_and_the_configured_ones() {
    let config = Config::new("");
    config.write("foreign", &"#!/bin/sh\n".repeat(4 << 20));
    config.write(
        "storage.config",
        "a 64M tier=fast\nforeign tier=fast\nb 64M\n",
    );
    let server = config.start();
    let line = server.readiness();
    assert!(line.contains(" spans=2 spans_configured=3 "), "{line}");
}

#[test]
fn the_ready_line_names_volume_0_where_no_other_is() {
    for spans in ["", "span 64M\n"] {
        let config = Config::new("");
        config.write("storage.config", spans);
        let server = config.start();
        let line = server.readiness();
        assert!(line.contains(" volumes=0 "), "{line}");
    }
}

#[test]
fn wait_for_cache_refuses_a_start_without_spans() {
    for wanted in [2, 3] {
        let config = Config::new(&format!(
            "CONFIG proxy.config.http.wait_for_cache INT {wanted}\n"
        ));
        config.write("span", &"x".repeat(64 << 20));
        config.write("storage.config", "span\n");
        let error = config.start_fails(&[]);
        assert!(
            error.contains(&format!("wait_for_cache {wanted}: ")),
            "{error}"
        );
    }
}

#[test]
fn a_span_that_keeps_the_server_from_starting_is_taken_over_without_one() {
    let config = Config::new("CONFIG proxy.config.http.wait_for_cache INT 2\n");
    let foreign = "#!/bin/sh\n".repeat(4 << 20);
    config.write("span", &foreign);
    config.write("storage.config", "span tier=fast\n");
    config.start_fails(&[]);
    let unknown = config.ctl(&["storage", "init", "other", "--force"]);
    assert_eq!(unknown.code(), 2);
    assert!(unknown.err().contains("not a span of storage.config"));
    let refused = config.ctl(&["storage", "init", "span"]);
    assert_eq!(refused.code(), 2);
    assert!(refused.err().contains("--force"), "{}", refused.err());
    assert_eq!(config.read("span"), foreign);
    assert_eq!(
        config.ctl(&["storage", "init", "span", "--force"]).ok(),
        "span is an empty span; next: start traffic_server\n"
    );
    let _server = config.start();
    assert_eq!(config.spans()[0]["state"], "online");
}

#[test]
fn clear_empties_spans_and_refuses_to_while_a_server_runs() {
    let config = Config::new("");
    config.write("storage.config", "span 64M\n");
    let program = env!("CARGO_BIN_EXE_traffic_server");
    let server = config.start();
    let error = config.start_fails(&["-C", "clear"]);
    assert!(error.contains("in use by another server"), "{error}");
    assert!(error.contains("; stop it, or "), "{error}");
    server.signal("-TERM");
    assert_eq!(server.ended().0, 0);
    let ran = config.run(program, &["-C", "clear"]);
    assert_eq!(ran.code(), 0, "{}", ran.err());
    let _again = config.start();
    assert_eq!(config.spans()[0]["state"], "online");
}

#[test]
fn a_span_is_named_by_its_path_its_id_or_its_uuid() {
    let config = Config::new("");
    config.write("storage.config", "one 64M id=first\ntwo 64M id=second\n");
    let server = config.start();
    let uuid = config.spans()[1]["uuid"].as_str().unwrap().to_owned();
    let list = config.ctl(&["storage", "list"]).ok();
    assert!(
        list.contains(&format!(" id=second uuid={uuid}\n")),
        "{list}"
    );
    assert_eq!(config.line(&["--offline", "first"]).ok(), "");
    assert_eq!(config.ctl(&["storage", "offline", &uuid]).ok(), "");
    let states = || [0, 1].map(|n| config.spans()[n]["state"].clone());
    assert_eq!(states(), ["offline", "offline"]);
    config.ctl(&["storage", "online", &uuid]).ok();
    config.ctl(&["storage", "init", "first"]).ok();
    assert_eq!(states()[0], "refused");
    config.ctl(&["storage", "online", "one"]).ok();
    for unknown in [
        config.ctl(&["storage", "online", "third"]),
        config.ctl(&["storage", "init", "third"]),
        config.line(&["--offline", "third"]),
    ] {
        assert_ne!(unknown.code(), 0);
        let error = unknown.err();
        assert!(
            error.contains("third: not a span of storage.config"),
            "{error}"
        );
        assert!(
            error.contains(&format!("two id=second uuid={uuid}")),
            "{error}"
        );
    }
    server.signal("-TERM");
    assert_eq!(server.ended().0, 0);
    let alone = config.ctl(&["storage", "init", "second"]);
    assert_eq!(
        alone.ok(),
        "second is an empty span; next: start traffic_server\n"
    );
}
