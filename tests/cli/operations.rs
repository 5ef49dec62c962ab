//! Spans that come, go and change their lines; logs, signals, users.

use crate::support::{Config, Server, exchange};
use crate::until::until;
use std::os::unix::fs::PermissionsExt;

const DEMO: &str = "map http://a.example/ http://generator.invalid/demo/ @plugin=generator.so\n";
const OBJECTS: usize = 40;

fn get(server: &Server, path: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
    exchange(server.port(), &head)
}

/// Asks for every object; how many the cache had.
fn hits(server: &Server) -> usize {
    let paths = (0..OBJECTS).map(|n| format!("/{}/{n}", 3000 + n * 97));
    let answers = paths.map(|path| get(server, &path));
    let told: Vec<String> = answers.collect();
    assert!(
        told.iter()
            .all(|answer| answer.starts_with("HTTP/1.1 200 "))
    );
    told.iter()
        .filter(|answer| answer.contains("strata; hit"))
        .count()
}

fn demo(records: &str, spans: &str) -> Config {
    let config = Config::new(&format!(
        "CONFIG proxy.config.http.wait_for_cache INT 1\n{records}"
    ));
    config.write("remap.config", DEMO);
    config.write("storage.config", spans);
    config
}

fn stop(server: Server) {
    server.signal("-TERM");
    let (code, log) = server.ended();
    assert_eq!(code, 0, "{log}");
}

#[test]
fn lines_added_renamed_and_reordered_lose_nothing() {
    let config = demo("", "one 64M tier=fast\nother 64M tier=fast\n");
    let server = config.start();
    assert_eq!(hits(&server), 0);
    stop(server);
    std::fs::rename(config.path("other"), config.path("renamed")).unwrap();
    let spans = "renamed 64M tier=fast\none 64M tier=fast\n";
    config.write("storage.config", spans);
    let server = config.start();
    assert_eq!(hits(&server), OBJECTS, "reordered and renamed");
    stop(server);
    config.write("storage.config", &format!("third 64M tier=fast\n{spans}"));
    let server = config.start();
    assert_eq!(hits(&server), OBJECTS, "added");
    stop(server);
}

#[test]
fn a_line_removed_or_a_device_gone_loses_only_what_it_held() {
    let config = demo("", "one 64M tier=fast\nother 64M tier=fast\n");
    let server = config.start();
    hits(&server);
    stop(server);
    config.write("storage.config", "one 64M tier=fast\n/nonexistent/disk\n");
    let server = config.start();
    let kept = hits(&server);
    assert!((1..OBJECTS).contains(&kept), "{kept}");
    assert_eq!(hits(&server), OBJECTS);
    let list = config.ctl(&["storage", "list"]).ok();
    assert!(
        list.contains("/nonexistent/disk tier=- state=refused") && list.contains(" reason="),
        "{list}"
    );
    assert!(
        list.contains("one tier=fast state=online bytes_used="),
        "{list}"
    );
    let offline = config
        .line(&["-r", "proxy.process.cache.span.offline"])
        .ok();
    assert_eq!(offline, "1\n");
    stop(server);
}

#[test]
fn a_span_comes_back_though_ram_holds_objects_of_it() {
    let config = demo("", "one 64M tier=fast\n");
    let server = config.start();
    hits(&server);
    assert_eq!(hits(&server), OBJECTS);
    for _ in 0..5 {
        assert_eq!(config.ctl(&["storage", "offline", "one"]).ok(), "");
        config.ctl(&["storage", "online", "one"]).ok();
    }
    config.spans_read();
    hits(&server);
    assert_eq!(hits(&server), OBJECTS);
    stop(server);
}

#[test]
fn clear_forgets_the_objects_and_keeps_the_spans() {
    let config = demo("", "one 64M tier=fast\n");
    let server = config.start();
    hits(&server);
    stop(server);
    let program = env!("CARGO_BIN_EXE_traffic_server");
    assert_eq!(config.run(program, &["-C", "clear"]).code(), 0);
    let server = config.start();
    assert_eq!(hits(&server), 0);
    assert_eq!(hits(&server), OBJECTS);
    stop(server);
    let server = config.start();
    assert_eq!(hits(&server), OBJECTS);
    stop(server);
}

#[test]
fn a_good_span_serves_beside_a_refused_one() {
    let config = demo("", "foreign\none 64M tier=fast\n");
    config.write("foreign", &"#!/bin/sh\n".repeat(4 << 20));
    let server = config.start();
    hits(&server);
    assert_eq!(hits(&server), OBJECTS);
    let answer = crate::support::get(server.admin(), "/readyz", "localhost");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    stop(server);
}

#[test]
fn readiness_tells_what_ram_still_holds_once_all_spans_are_offline() {
    let config = demo("", "one 64M tier=fast\n");
    let server = config.start();
    let ready = || crate::support::get(server.admin(), "/readyz", "localhost");
    get(&server, "/5000/a");
    assert_eq!(config.ctl(&["storage", "offline", "one"]).ok(), "");
    assert!(get(&server, "/5000/a").contains("detail=ram"));
    get(&server, "/5000/b");
    assert!(!get(&server, "/5000/b").contains("strata; hit"));
    let answer = ready();
    for told in [
        "nothing is stored, and 1 object is left, in the RAM cache",
        "one is offline (I/O errors: 0): traffic_ctl storage online ",
    ] {
        assert!(answer.contains(told), "{answer}");
    }
    config
        .ctl(&["cache", "purge", "http://a.example/5000/a"])
        .ok();
    let answer = ready();
    assert!(
        answer.contains("every request goes to its origin"),
        "{answer}"
    );
    stop(server);
}

#[test]
fn without_a_usable_span_everything_is_proxied_and_nothing_stored() {
    let config = demo("", "foreign\n");
    config.write("foreign", &"#!/bin/sh\n".repeat(4 << 20));
    let server = config.start();
    hits(&server);
    assert_eq!(hits(&server), 0);
    let answer = crate::support::get(server.admin(), "/readyz", "localhost");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("foreign"), "{answer}");
    stop(server);
}

#[test]
fn a_file_that_its_file_system_has_no_room_for_is_refused_at_the_start() {
    let config = Config::new("CONFIG proxy.config.http.wait_for_cache INT 2\n");
    config.write("storage.config", "span 900T\n");
    let error = config.start_fails(&[]);
    assert!(error.contains("span") && error.contains("errno"), "{error}");
    let left = std::fs::metadata(config.path("span"));
    assert!(left.is_ok_and(|file| file.len() == 0) || !config.path("span").exists());
}

#[test]
fn reads_of_both_tiers_are_counted_each_for_its_own() {
    let tiers = |one: &str, other: &str| {
        let cutoff = "CONFIG proxy.config.cache.ram_cache_cutoff INT 1\n";
        (
            cutoff,
            format!("one 64M tier={one}\nother 64M tier={other}\n"),
        )
    };
    let (cutoff, spans) = tiers("fast", "fast");
    let config = demo(cutoff, &spans);
    let server = config.start();
    hits(&server);
    stop(server);
    config.write("storage.config", &tiers("fast", "capacity").1);
    let server = config.start();
    assert_eq!(hits(&server), OBJECTS);
    let count = |name: &str| {
        let value = config.line(&["-r", &format!("proxy.process.cache.{name}.success")]);
        value.ok().trim().parse::<usize>().unwrap()
    };
    let (ssd, disk) = (count("ssd.read"), count("disk.read"));
    assert!(ssd > 0 && disk > 0, "{ssd} {disk}");
    assert_eq!(
        (ssd + disk, count("ram.read"), count("read")),
        (OBJECTS, 0, OBJECTS)
    );
    stop(server);
}

#[test]
fn a_log_that_was_moved_is_opened_anew_by_usr2() {
    let config = demo("CONFIG proxy.config.log.max_secs_per_buffer INT 1\n", "");
    let server = config.start();
    let (log, moved) = ("var/log/strata.log", "var/log/strata.log.1");
    get(&server, "/10/before");
    until("the first line", || config.read(log).contains("/10/before"));
    std::fs::rename(config.path(log), config.path(moved)).unwrap();
    server.signal("-USR2");
    until("a new file", || config.path(log).exists());
    get(&server, "/10/after");
    until("the second line", || config.read(log).contains("/10/after"));
    assert!(!config.read(moved).contains("/10/after"));
    stop(server);
}

#[test]
fn a_server_whose_log_nobody_reads_any_more_serves_and_stops() {
    let config = demo("", "");
    let server = config.start();
    get(&server, "/demo/1/a");
    assert_eq!(server.stopped_unheard(), 0);
}

#[test]
fn why_a_client_was_not_served_is_told_to_who_asks_for_it() {
    // Nobody listens there.
    let config = demo("", "");
    config.write(
        "remap.config",
        "map http://a.example/ http://127.0.0.1:1/\n",
    );
    let server = config.start_telling("info,strata::proxy=debug");
    let answer = get(&server, "/gone");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    server.signal("-TERM");
    let (_, log) = server.ended();
    let told: Vec<&str> = log
        .lines()
        .filter(|l| l.contains("not served whole"))
        .collect();
    assert_eq!(told.len(), 1, "{log}");
    for part in [
        "DEBUG",
        "client=127.0.0.1",
        "method=\"GET\"",
        "/gone\"",
        "outcome=\"origin_connect\"",
        "status=502",
        "is_cut=false",
        "body_bytes=",
        "took=",
        "reason=\"",
    ] {
        assert!(told[0].contains(part), "{part}: {told:?}");
    }
}

#[test]
fn a_hangup_or_usr1_ends_nothing() {
    let config = demo("", "");
    let server = config.start();
    server.signal("-HUP");
    server.signal("-USR1");
    assert_eq!(config.line(&["--status"]).ok(), "Proxy -- on\n");
    stop(server);
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root: cargo test --features devices"
)]
fn root_is_given_up_and_the_state_is_usable_again() {
    let config = demo(
        "CONFIG proxy.config.admin.user_id STRING nobody\n",
        "one 64M tier=fast\n",
    );
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(config.path(""), open).unwrap();
    let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap();
    for round in 0..2 {
        let server = config.start();
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.id()));
        let ids = |name: &str, id: u32| {
            let status = status.as_ref().unwrap();
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            let found: Vec<u32> = line
                .split_whitespace()
                .skip(1)
                .map(|id| id.parse().unwrap())
                .collect();
            assert_eq!(found, [id; 4], "{line}");
        };
        ids("Uid:", nobody.uid.as_raw());
        ids("Gid:", nobody.gid.as_raw());
        assert!(
            status
                .as_ref()
                .unwrap()
                .contains("CapEff:\t0000000000000000")
        );
        assert_eq!(hits(&server), if round == 0 { 0 } else { OBJECTS });
        assert_eq!(config.line(&["-x"]).ok(), "");
        let record = "proxy.config.cache.ram_cache_cutoff";
        let refused = config.line(&["-s", record, "-v", "40"]);
        assert_eq!(refused.code(), 1, "root's file is not nobody's to write");
        let said = refused.err();
        assert!(said.contains("nothing has changed"), "{said}");
        assert!(!said.contains("Please correct"), "{said}");
        assert_eq!(config.line(&["-r", record]).ok(), "4194304\n");
        stop(server);
    }
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root: cargo test --features devices"
)]
fn a_log_that_the_user_to_become_can_t_write_is_told_by_check_and_start() {
    let config = demo(
        "CONFIG proxy.config.admin.user_id STRING nobody\n\
         CONFIG proxy.config.log.logfile_dir STRING logs/x\n",
        "one 64M tier=fast\n",
    );
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(config.path(""), open).unwrap();
    let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap();
    let cure = format!("for uid {}: mkdir -p ", nobody.uid);
    for args in [&["-C", "verify_config"][..], &[]] {
        let error = config.start_fails(args);
        for told in [
            "proxy.config.log.logfile_dir: ",
            "logs/x/strata.log: EACCES",
            &cure,
        ] {
            assert!(error.contains(told), "{told}: {error}");
        }
    }
    std::fs::create_dir_all(config.path("logs/x")).unwrap();
    nix::unistd::chown(&config.path("logs/x"), Some(nobody.uid), None).unwrap();
    let program = env!("CARGO_BIN_EXE_traffic_server");
    assert_eq!(config.run(program, &["-C", "verify_config"]).code(), 0);
    stop(config.start());
    assert!(config.path("logs/x/strata.log").exists());
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root: cargo test --features devices"
)]
fn who_may_not_use_the_control_socket_is_told_whose_it_is() {
    let config = Config::new("");
    let _server = config.start();
    let open = |name: &str| {
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(config.path(name), mode).unwrap();
    };
    let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap();
    open("");
    for place in ["var", "var/control.sock"] {
        let ran = config.line_as(nobody.uid.as_raw(), &["--status"]);
        assert_eq!((ran.code(), ran.out().as_str()), (1, ""));
        let whose = format!("{place} belongs to uid 0 (root); run this as that user");
        assert!(ran.err().contains(&whose), "{}", ran.err());
        open("var");
    }
}

#[test]
fn a_client_s_body_is_whole_though_the_server_is_told_to_stop() {
    let config = demo("", "one 64M tier=fast\n");
    let server = config.start();
    let port = server.port();
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..8)
            .map(|n| {
                let path = format!("/2000000/delay=500/{n}");
                let head =
                    format!("GET {path} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
                scope.spawn(move || exchange_bytes(port, &head))
            })
            .collect();
        let requests = "proxy.process.http.current_client_connections";
        until("the requests", || {
            config.line(&["-r", requests]).out() == "8\n"
        });
        server.signal("-TERM");
        for answer in asked {
            let answer = answer.join().unwrap();
            assert!(answer.len() > 2_000_000, "{}", answer.len());
        }
    });
    assert_eq!(server.ended().0, 0);
}

fn exchange_bytes(port: std::net::SocketAddr, head: &str) -> Vec<u8> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(port).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}
