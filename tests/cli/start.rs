//! Starting, stopping, and what stands in the way.

use crate::support::{Config, exchange, exists};

#[test]
fn faults_of_storage_config_come_in_the_order_of_its_lines() {
    let config = Config::new("");
    config.write(
        "storage.config",
        "good 64M\n/dev/nosuch\nnone/span 64M\nremap.config\nnosize\nsmall 31M\n",
    );
    let server = env!("CARGO_BIN_EXE_traffic_server");
    let ran = config.run(server, &["-C", "verify_config"]);
    assert_ne!(ran.code(), 0);
    let told = ran.err();
    let lines: Vec<_> = told
        .lines()
        .filter_map(|line| line.split_once("storage.config:")?.1.split(':').next())
        .collect();
    assert_eq!(lines, ["2", "3", "4", "5", "6"], "{told}");
}

#[test]
fn sigterm_and_sigint_and_a_command_end_with_code_zero() {
    for how in ["-TERM", "-INT", "traffic_line", "traffic_ctl"] {
        let config = Config::new("");
        let server = config.start();
        match how {
            "traffic_line" => assert_eq!(config.line(&["-S"]).ok(), ""),
            "traffic_ctl" => assert_eq!(config.ctl(&["server", "stop"]).ok(), ""),
            signal => server.signal(signal),
        }
        let (code, log) = server.ended();
        assert_eq!(code, 0, "{how}: {log}");
        assert!(!exists(&config.path("var/control.sock")));
    }
}

#[test]
fn a_second_server_on_the_state_directory_names_it_and_the_first() {
    let config = Config::new("");
    let server = config.start();
    let error = config.start_fails(&[]);
    assert!(error.contains("is in use by another server"), "{error}");
    assert!(
        error.contains(&format!("process {}", server.id())),
        "{error}"
    );
    assert_eq!(config.line(&["--status"]).ok(), "Proxy -- on\n");
}

#[test]
fn a_killed_server_does_not_keep_the_next_one_from_starting_at_once() {
    let config = Config::new("");
    config.write("storage.config", "span 64M tier=fast\n");
    let mut server = config.start();
    for _ in 0..5 {
        server.signal("-KILL");
        let next = config.start();
        assert_eq!(config.spans_read()[0]["state"], "online");
        server = next;
    }
}

#[test]
fn a_start_that_is_killed_once_it_has_counted_its_run_leaves_no_span_in_doubt() {
    let config = Config::new("");
    config.write(
        "storage.config",
        "one 64M tier=fast\ntwo 64M tier=capacity\n",
    );
    let server = config.start();
    config.spans_read();
    server.signal("-TERM");
    assert_eq!(server.ended().0, 0);
    for _ in 0..5 {
        config.killed_at("cache state run=");
    }
    let server = config.start();
    let spans = config.spans_read();
    for span in [0, 1] {
        assert_eq!(spans[span]["state"], "online", "{}", server.started());
    }
}

#[test]
fn a_second_server_on_a_port_names_it() {
    let first = Config::new("");
    let server = first.start();
    let port = server.port().port();
    let second = Config::new("");
    let records = second.read("records.config");
    let records = records.replace(
        "127.0.0.1:0\nCONFIG proxy.config.admin.l",
        &format!("127.0.0.1:{port}\nCONFIG proxy.config.admin.l"),
    );
    second.write("records.config", &records);
    let error = second.start_fails(&[]);
    assert!(
        error.contains(&format!("port {port} on 127.0.0.1")),
        "{error}"
    );
}

#[test]
fn every_taken_address_is_named_at_once_with_whose_it_is() {
    let first = Config::new("");
    let server = first.start();
    let (port, admin) = (server.port(), server.admin());
    let second = Config::new("");
    let records = format!(
        "CONFIG proxy.config.http.server_ports STRING ip-in=127.0.0.1:{}\n\
         CONFIG proxy.config.admin.listen STRING {admin}\n\
         CONFIG proxy.config.admin.user_id STRING #-1\n",
        port.port()
    );
    second.write("records.config", &records);
    let error = second.start_fails(&[]);
    let owner = format!("traffic_server, process {}; ", server.id());
    for (record, address) in [
        ("http.server_ports: port", port.port().to_string()),
        ("admin.listen: cannot listen on", admin.to_string()),
    ] {
        let named = |line: &&str| {
            line.contains(&format!("proxy.config.{record} {address}")) && line.contains(&owner)
        };
        assert!(error.lines().any(|line| named(&line)), "{record}: {error}");
    }
}

#[test]
fn the_admin_listener_on_a_port_for_clients_is_told_as_a_clash_of_two_records() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap();
    drop(port);
    let config = Config::new("");
    let records = format!(
        "CONFIG proxy.config.http.server_ports STRING ip-in=127.0.0.1:{}\n\
         CONFIG proxy.config.admin.listen STRING {address}\n\
         CONFIG proxy.config.admin.user_id STRING #-1\n",
        address.port()
    );
    config.write("records.config", &records);
    let error = config.start_fails(&[]);
    let named = format!("proxy.config.admin.listen: cannot listen on {address}");
    let line = error.lines().find(|line| line.contains(&named));
    let line = line.unwrap_or_default();
    let clash = "this server has already, by proxy.config.http.server_ports";
    assert!(line.contains(clash) && !line.contains("stop it"), "{error}");
}

#[test]
fn the_port_of_the_command_line_is_a_running_value_that_reloads_keep() {
    const PORTS: &str = "proxy.config.http.server_ports";
    let config = Config::new("");
    let server = config.start_with(&["-p", "0"]);
    let used = "ip-in=127.0.0.1:0\n";
    assert_eq!(config.line(&["-r", PORTS]).ok(), used);
    let records = config.read("records.config");
    let others = records.replace("ip-in=127.0.0.1:0", "ip-in=127.0.0.1:1");
    config.write("records.config", &others);
    assert_eq!(config.line(&["-x"]).ok(), "");
    assert_eq!(config.line(&["-r", PORTS]).ok(), used);
    let json = config.ctl(&["config", "get", PORTS, "-f", "json"]).ok();
    assert!(json.contains("\"source\": \"running\""), "{json}");
    let waits = "proxy.node.config.restart_required.proxy";
    assert_eq!(config.line(&["-r", waits]).ok(), "0\n");
    drop(server);
}

#[test]
fn a_bad_file_refuses_the_start_with_every_error() {
    let config = Config::new("CONFIG proxy.config.http.cache.http INT 9\n");
    config.write(
        "remap.config",
        "map http://a.example/ http://b.example/\nmpa\n",
    );
    for args in [&[][..], &["-C", "verify_config"]] {
        let error = config.start_fails(args);
        assert!(error.contains("records.config:4:"), "{error}");
        assert!(error.contains("remap.config:2:1: "), "{error}");
    }
}

#[test]
fn a_directory_that_was_not_meant_is_named_with_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    let programs = [
        (env!("CARGO_BIN_EXE_traffic_server"), &[][..]),
        (env!("CARGO_BIN_EXE_traffic_line"), &["-x"][..]),
        (env!("CARGO_BIN_EXE_traffic_ctl"), &["server", "drain"][..]),
        (
            env!("CARGO_BIN_EXE_traffic_ctl"),
            &["storage", "init", "x"][..],
        ),
    ];
    for (program, args) in programs {
        let run = |more: &[&str], variable: &str| {
            let mut command = std::process::Command::new(program);
            let command = command.args(args).args(more).current_dir(dir.path());
            let ran = command.env("STRATA_CONFIG", variable).output().unwrap();
            assert!(!ran.status.success());
            String::from_utf8(ran.stderr).unwrap()
        };
        let is = "the configuration directory is";
        let absent = "there is no such directory";
        let by_option = format!("{is} /nonexist, by --config; {absent}");
        let said = run(&["--config", "/nonexist"], "/other");
        assert!(said.contains(&by_option), "{said}");
        let said = run(&[], "/nonexist");
        let by_variable = format!("{is} /nonexist, by $STRATA_CONFIG; {absent}");
        assert!(said.contains(&by_variable), "{said}");
    }
}

#[test]
fn good_files_verify_with_a_word_and_without_a_trace() {
    let config = Config::new("");
    config.write("storage.config", "var/span 64M tier=fast\n");
    let server = env!("CARGO_BIN_EXE_traffic_server");
    let said = config.run(server, &["-C", "verify_config"]).ok();
    assert_eq!(
        said,
        "records.config, remap.config, storage.config: \
         no errors, 0 warnings; 3 records, 1 rule, 1 span\n"
    );
    assert!(!exists(&config.path("var")));
}

#[test]
fn verify_names_spans_that_a_start_would_leave_out_and_all_else_at_once() {
    let config = Config::new("CONFIG proxy.config.local_state_dir STRING remap.config/var\n");
    config.write("remap.config", "mpa\n");
    let spans = "missing\n/dev/nosuch tier=fast\nremap.config/dir/ 64M\nnone/span 64M\nok 64M\n";
    config.write("storage.config", &format!("{spans}small 31M\nless 64m\n"));
    let error = config.start_fails(&["-C", "verify_config"]);
    for line in [6, 7] {
        let place = format!("storage.config:{line}:");
        assert_eq!(error.matches(&place).count(), 1, "{error}");
    }
    for (place, what) in [
        ("records.config:4:44: ", "local_state_dir"),
        ("remap.config:1:1: ", "unknown rule type"),
        ("storage.config:1:1: ", "no SIZE to make it with"),
        ("storage.config:2:1: ", "no such device"),
        ("storage.config:3:1: ", "the directory can't be made"),
        ("storage.config:4:1: ", "make its directory"),
    ] {
        let named = |line: &&str| line.contains(place) && line.contains(what);
        assert!(error.lines().any(|line| named(&line)), "{place}: {error}");
    }
    assert!(!error.contains("storage.config:5"), "{error}");
    assert!(!exists(&config.path("ok")));
}

#[test]
fn verify_reads_what_lies_at_the_paths_and_says_what_the_start_says() {
    let config = Config::new("CONFIG proxy.config.http.wait_for_cache INT 3\n");
    let mut image = vec![0; 33 << 20];
    image[1080..1082].copy_from_slice(b"\x53\xef");
    std::fs::write(config.path("image"), &image).unwrap();
    config.write("notes", &"notes\n".repeat(6 << 20));
    config.write("small", "notes");
    std::fs::create_dir(config.path("sub")).unwrap();
    let spans = "image\nnotes\nsmall\nspan 64M\nsub/../span 64M\n";
    config.write("storage.config", spans);
    let verified = config.start_fails(&["-C", "verify_config"]);
    let started = config.start_fails(&[]);
    for (line, what) in [
        (1, "an ext2 file system"),
        (2, "nothing known here"),
        (3, "a span needs"),
    ] {
        let place = format!("storage.config:{line}:1: ");
        let told = verified
            .lines()
            .find_map(|line| Some(line.split_once(&place)?.1));
        let told = told.unwrap_or_else(|| panic!("{place}: {verified}"));
        let (told, _) = told.split_once(" (at ").unwrap();
        assert!(told.contains(what), "{told}");
        assert!(started.contains(told), "{told}\n{started}");
    }
    let double = "storage.config:5:1: the same device as span in line 4 of storage.config";
    assert!(verified.contains(double), "{verified}");
    assert!(started.contains("listed twice"), "{started}");
    let refused = started.matches("ERROR").count();
    assert_eq!(refused, 4, "each is told of once: {started}");
    assert!(std::fs::read(config.path("image")).unwrap() == image);
}

#[test]
fn rules_in_files_without_an_effect_are_told_of_by_name() {
    let config = Config::new("");
    config.write("parent.config", "# shipped\ndest_domain=.\n");
    config.write("cache.config", "# shipped\n");
    let server = env!("CARGO_BIN_EXE_traffic_server");
    let said = config.run(server, &["-C", "verify_config"]).ok();
    let told = "warning: parent.config:2:1: this file of ATS is not supported yet";
    assert_eq!(said.matches(told).count(), 1, "{said}");
    assert!(!said.contains("warning: cache.config"), "{said}");
    let _server = config.start();
    let said = config.ctl(&["config", "reload"]).ok();
    assert_eq!(said.matches(told).count(), 1, "{said}");
    assert!(!said.contains("in force: parent.config"), "{said}");
}

#[test]
fn a_drained_server_refuses_connections_and_still_answers_operators() {
    let config = Config::new("");
    let server = config.start();
    assert_eq!(config.ctl(&["server", "drain"]).ok(), "");
    assert_eq!(
        config.line(&["-r", "proxy.node.config.draining"]).ok(),
        "1\n"
    );
    let answer = crate::support::get(server.admin(), "/readyz", "localhost");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    server.signal("-TERM");
    assert_eq!(server.ended().0, 0);
}

#[test]
fn an_unknown_user_refuses_the_start_of_root() {
    let config = Config::new("CONFIG proxy.config.admin.user_id STRING no-such-user\n");
    if !nix::unistd::geteuid().is_root() {
        let server = env!("CARGO_BIN_EXE_traffic_server");
        let said = config.run(server, &["-C", "verify_config"]).ok();
        assert!(said.contains("records.config:4:"), "{said}");
        assert!(said.contains("only root can change users"), "{said}");
        let server = config.start();
        server.signal("-TERM");
        assert_eq!(server.ended().0, 0, "only root changes users");
        return;
    }
    let error = config.start_fails(&[]);
    assert!(error.contains("no user \"no-such-user\""), "{error}");
}

#[test]
fn a_request_without_a_rule_is_answered_and_counted() {
    let config = Config::new("");
    let server = config.start();
    let head = "GET / HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n";
    let answer = exchange(server.port(), head);
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    for name in [
        "404_responses",
        "4xx_responses",
        "get_requests",
        "completed_requests",
    ] {
        let value = config.line(&["-r", &format!("proxy.process.http.{name}")]);
        assert_eq!(value.ok(), "1\n", "{name}");
    }
    let time = config.line(&["-r", "proxy.process.http.total_transactions_time"]);
    assert_ne!(time.ok(), "0\n");
}
