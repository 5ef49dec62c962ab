//! Records and metrics from the command line.

use crate::support::Config;
use std::fs::File;
use std::process::Stdio;

const CUTOFF: &str = "proxy.config.cache.ram_cache_cutoff";

#[test]
fn a_value_set_by_traffic_line_holds_at_once_and_after_a_restart() {
    let config = Config::new(&format!("# ours\nCONFIG {CUTOFF} INT 4M # was 1M\n"));
    let server = config.start();
    assert_eq!(config.line(&["-s", CUTOFF, "-v", "40"]).ok(), "");
    assert_eq!(config.line(&["-r", CUTOFF]).ok(), "40\n");
    let text = config.read("records.config");
    assert!(text.contains("# ours\n"), "{text}");
    assert!(
        text.contains(&format!("CONFIG {CUTOFF} INT 40 # was 1M\n")),
        "{text}"
    );
    server.signal("-TERM");
    assert_eq!(server.ended().0, 0);
    let _again = config.start();
    assert_eq!(config.line(&["-r", CUTOFF]).ok(), "40\n");
}

#[test]
fn a_running_value_is_lost_with_the_process_and_written_nowhere() {
    let config = Config::new("");
    let before = config.read("records.config");
    let server = config.start();
    let said = config.ctl(&["config", "set", CUTOFF, "41"]).ok();
    assert_eq!(said, format!("set {CUTOFF}, restart is not required\n"));
    let shown = config.ctl(&["config", "get", CUTOFF]).ok();
    assert_eq!(shown, format!("{CUTOFF}: 41\n"));
    assert_eq!(config.read("records.config"), before);
    drop(server);
    let _again = config.start();
    assert_eq!(config.line(&["-r", CUTOFF]).ok(), "4194304\n");
}

#[test]
fn wrong_names_and_values_fail_with_the_text_of_4_2_and_change_nothing() {
    let config = Config::new("");
    let before = config.read("records.config");
    let _server = config.start();
    for (name, value) in [
        (CUTOFF, "-1"),
        (CUTOFF, "many"),
        ("proxy.config.nothing", "1"),
    ] {
        let ran = config.line(&["-s", name, "-v", value]);
        assert_eq!((ran.code(), ran.out().as_str()), (1, ""));
        assert!(
            ran.err()
                .contains("Please correct your variable name and|or value")
        );
    }
    assert_eq!(config.line(&["-s", CUTOFF]).code(), 1);
    assert_eq!(config.line(&["-r", "proxy.config.nothing"]).code(), 1);
    assert_eq!(config.read("records.config"), before);
}

/// Values that their records take by themselves, and a load or a start not,
/// each with what that would say.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "http.server_ports",
        "18082:ssl",
        "there is no certificate in ssl_multicert.config",
    ),
    ("http.server_ports", "foo", "no port"),
    ("http.server_ports", "8080:ipv5", "did you mean ipv4?"),
    ("http.connect_ports", "70000", "70000"),
    (
        "url_remap.filename",
        "nofile",
        "nofile:1:1: there is no such file",
    ),
    ("cache.ip_allow.filename", "empty", "empty:1:1: "),
    (
        "admin.user_id",
        "nosuch",
        "no user \"nosuch\" on this system",
    ),
    ("admin.hosts", "a/b", "host names"),
    ("header.parse.no_host_url_redirect", "zzz", "http://"),
    (
        "log.logfile_dir",
        "remap.config",
        "proxy.config.log.logfile_dir: ",
    ),
    (
        "local_state_dir",
        "elsewhere",
        "can't be changed while the server runs",
    ),
];

#[test]
fn a_value_that_a_load_or_a_start_would_refuse_is_refused_by_both_commands() {
    let config = Config::new("");
    config.write("empty", "");
    let before = config.read("records.config");
    let server = config.start();
    for (name, value, why) in REFUSED {
        let name = format!("proxy.config.{name}");
        let old = config.line(&["-r", &name]).ok();
        for ran in [
            config.line(&["-s", &name, "-v", value]),
            config.ctl(&["config", "set", &name, value]),
        ] {
            assert_ne!(ran.code(), 0, "{name} {value}");
            assert!(ran.err().contains(why), "{name} {value}: {}", ran.err());
        }
        assert_eq!(config.line(&["-r", &name]).ok(), old);
        assert_eq!(config.read("records.config"), before, "{name} {value}");
    }
    assert_eq!(config.line(&["-x"]).ok(), "");
    drop(server);
    let _again = config.start();
}

#[test]
fn what_is_wrong_in_the_files_already_keeps_no_other_record_from_being_set() {
    let config = Config::new("");
    let _server = config.start();
    config.write("remap.config", "mpa\n");
    assert_eq!(config.line(&["-s", CUTOFF, "-v", "40"]).ok(), "");
    assert_eq!(config.line(&["-r", CUTOFF]).ok(), "40\n");
    let records = config.read("records.config");
    let ports = "proxy.config.http.server_ports STRING ip-in=127.0.0.1:0";
    config.write(
        "records.config",
        &records.replace(ports, &format!("{ports}:ssl")),
    );
    assert_eq!(config.line(&["-s", CUTOFF, "-v", "41"]).ok(), "");
    let ran = config.line(&["-s", "proxy.config.http.server_ports", "-v", "1:ssl"]);
    assert!(
        ran.err()
            .contains("there is no certificate in ssl_multicert.config"),
        "{}",
        ran.err()
    );
}

#[test]
fn an_old_name_is_got_matched_and_set_under_that_name() {
    let old = "proxy.config.http.origin_max_connections";
    let new = "proxy.config.http.per_server.connection.max";
    let config = Config::new("");
    let _server = config.start();
    assert_eq!(config.line(&["-s", old, "-v", "7"]).ok(), "");
    for name in [old, new] {
        assert_eq!(config.line(&["-r", name]).ok(), "7\n");
        let shown = config.ctl(&["config", "get", name]).ok();
        assert_eq!(shown, format!("{name}: 7\n"));
        let matched = config.line(&["-m", &format!("^{name}$")]).ok();
        assert_eq!(matched, format!("{name} 7\n"));
    }
    let both = format!("{old}|{new}");
    assert_eq!(config.line(&["-m", &both]).ok(), format!("{new} 7\n"));
    let said = config.ctl(&["config", "set", old, "8"]).ok();
    assert!(said.starts_with(&format!("set {old}, ")), "{said}");
    assert_eq!(config.line(&["-r", new]).ok(), "8\n");
}

#[test]
fn a_record_of_ats_that_we_lack_is_told_alike_by_get_and_set() {
    let name = "proxy.config.admin.admin_user";
    let config = Config::new("");
    let _server = config.start();
    let told = format!("{name} is a record of ATS that Strata does not have");
    for ran in [
        config.line(&["-r", name]),
        config.line(&["-s", name, "-v", "x"]),
        config.ctl(&["config", "get", name]),
        config.ctl(&["config", "set", name, "x"]),
    ] {
        assert!(ran.err().contains(&told), "{}", ran.err());
    }
}

#[test]
fn what_a_restart_forgets_does_not_wait_for_it() {
    let name = "proxy.config.exec_thread.limit";
    let waits = "proxy.node.config.restart_required.proxy";
    let config = Config::new("");
    let _server = config.start();
    let said = config.ctl(&["config", "set", name, "3"]).ok();
    assert!(said.contains("forgets it"), "{said}");
    for args in [["config", "status"], ["config", "reload"]] {
        let told = config.ctl(&args).ok();
        assert!(!told.contains("restart: "), "{told}");
        assert_eq!(config.line(&["-r", waits]).ok(), "0\n");
    }
    let ran = config.line(&["-s", name, "-v", "4"]);
    assert!(ran.err().contains("holds after a restart"), "{}", ran.err());
    for _ in 0..2 {
        let told = config.ctl(&["config", "status"]).ok();
        assert!(told.contains(&format!("at_restart: {name}\n")), "{told}");
        assert_eq!(config.line(&["-r", waits]).ok(), "1\n");
        assert_eq!(config.line(&["-x"]).code(), 0);
    }
}

#[test]
fn a_file_that_can_not_be_rewritten_is_named_with_the_true_cause() {
    let config = Config::new("");
    let _server = config.start();
    let path = config.path("records.config");
    let set = |cause: &str| {
        let ran = config.line(&["-s", CUTOFF, "-v", "40"]);
        assert_eq!(ran.code(), 1);
        let said = ran.err();
        assert!(said.contains(cause), "{said}");
        assert!(said.contains("; nothing has changed\n"), "{said}");
        assert!(!said.contains("must be able to write"), "{said}");
        assert!(!said.contains("Please correct"), "{said}");
    };
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend(b"# caf\xe9\n");
    std::fs::write(&path, &bytes).unwrap();
    set("records.config:4: this line is not UTF-8");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    std::fs::remove_file(&path).unwrap();
    set("records.config to write it into: make one");
    assert_eq!(config.line(&["-r", CUTOFF]).ok(), "4194304\n");
    config.write("records.config", "");
    assert_eq!(config.line(&["-s", CUTOFF, "-v", "40"]).ok(), "");
}

#[test]
fn match_prints_name_and_value_of_records_and_metrics() {
    let config = Config::new("");
    let _server = config.start();
    let out = config.line(&["-m", "ram_cache_cutoff|^ssdhit$"]).ok();
    assert_eq!(out, format!("{CUTOFF} 4194304\nssdhit 0.000000\n"));
    let metric = config.ctl(&["metric", "match", "^ssdhit$"]).ok();
    assert_eq!(metric, "ssdhit 0.000000\n");
}

#[test]
fn a_record_of_type_float_is_printed_with_six_places_as_in_ats() {
    let config = Config::new("CONFIG proxy.config.http.cache.heuristic_lm_factor FLOAT 0.25\n");
    let _server = config.start();
    let name = "proxy.config.http.cache.heuristic_lm_factor";
    assert_eq!(config.line(&["-r", name]).ok(), "0.250000\n");
    assert_eq!(
        config.line(&["-m", "lm_factor"]).ok(),
        format!("{name} 0.250000\n")
    );
    let got = config.ctl(&["config", "get", name]).ok();
    assert_eq!(got, format!("{name}: 0.250000\n"));
}

#[test]
fn counters_are_zeroed_one_by_one_and_together() {
    let config = Config::new("");
    let _server = config.start();
    let requests = "strata.control.requests";
    assert_ne!(config.line(&["-r", requests]).ok(), "0\n");
    assert_eq!(config.line(&["-z", requests]).ok(), "");
    assert_eq!(config.line(&["-r", requests]).ok(), "1\n");
    assert_eq!(config.line(&["-c"]).ok(), "");
    assert_eq!(config.line(&["-r", requests]).ok(), "1\n");
    assert_eq!(config.line(&["-z", "proxy.process.nothing"]).code(), 1);
}

#[test]
fn without_a_server_commands_fail_and_status_says_off() {
    let config = Config::new("");
    let ran = config.line(&["-r", CUTOFF]);
    assert_eq!((ran.code(), ran.out().as_str()), (1, ""));
    assert!(ran.err().starts_with("traffic_line: no server answers on "));
    assert_eq!(config.line(&["--status"]).out(), "Proxy -- off\n");
    assert_eq!(config.ctl(&["server", "status"]).code(), 2);
    let _server = config.start();
    assert_eq!(config.line(&["--status"]).ok(), "Proxy -- on\n");
}

#[test]
fn a_server_is_found_after_its_file_was_given_another_state_directory() {
    let config = Config::new("");
    let server = config.start();
    let state = config.path("var").canonicalize().unwrap();
    let state = state.to_str().unwrap();
    let records = config.read("records.config");
    let elsewhere = "CONFIG proxy.config.local_state_dir STRING elsewhere\n";
    config.write("records.config", &(records.clone() + elsewhere));
    let status = config.line(&["--status"]);
    assert_eq!((status.code(), status.out().as_str()), (0, "Proxy -- on\n"));
    let cure = format!("PROXY_CONFIG_LOCAL_STATE_DIR={state}");
    for ran in [
        status,
        config.line(&["-x"]),
        config.ctl(&["server", "status"]),
        config.ctl(&["storage", "init", "span"]),
    ] {
        let said = ran.err();
        assert!(said.contains(&cure), "{said}");
        assert!(said.contains("proxy.config.local_state_dir"), "{said}");
    }
    assert_eq!(config.line(&["-x"]).code(), 1);
    assert_eq!(config.line_by(state, &["-x"]).code(), 0);
    drop(server);
    let status = config.line(&["--status"]);
    assert_eq!(
        (status.code(), status.out().as_str()),
        (1, "Proxy -- off\n")
    );
}

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

#[test]
fn what_can_not_be_printed_leaves_every_program_its_exit_code() {
    let config = Config::new("");
    let _server = config.start();
    let line = env!("CARGO_BIN_EXE_traffic_line");
    let ctl = env!("CARGO_BIN_EXE_traffic_ctl");
    let server = env!("CARGO_BIN_EXE_traffic_server");
    let restart = "proxy.config.exec_thread.limit";
    for (program, args, code) in [
        (line, &["-r", "nope"][..], 1),
        (line, &["-s", CUTOFF, "-v", "many"], 1),
        (line, &["-s", restart, "-v", "3"], 0),
        (line, &["--nope"], 1),
        (ctl, &["config", "get", "nope"], 2),
        (ctl, &["--nope"], 2),
        (server, &["--nope"], 2),
        (server, &["-C", "clear"], 1),
    ] {
        let ran = config.run_onto((program, args), Stdio::null(), full());
        assert_eq!(ran.code(), code, "{program} {args:?}");
    }
    for (program, args) in [
        (line, &["-m", "."][..]),
        (line, &["--help"]),
        (line, &["-V"]),
        (ctl, &["config", "match", "."]),
        (ctl, &["--help"]),
        (server, &["-C", "verify_config"]),
        (server, &["--help"]),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = config.run_onto((program, args), writer, Stdio::piped());
        assert_eq!(ran.code(), 0, "{program} {args:?}: {}", ran.err());
    }
    let ran = config.run_onto((line, &["-m", "."]), full(), Stdio::piped());
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("standard output"), "{}", ran.err());
}
