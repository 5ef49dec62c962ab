//! Records that say `reload`: they hold at once, and the answer is the truth.

use crate::support::{Config, Server, exchange};
use std::io::{Read, Write};
use std::net::TcpListener;
use strata::base::clock::{Clock, SystemClock};

const DEMO: &str = "map http://a.example/ http://generator.invalid/demo/ @plugin=generator.so\n";

/// What the cache said of a request, and its status line.
fn get(server: &Server, host: &str, path: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    exchange(server.port(), &head)
}

fn is_hit(server: &Server, path: &str) -> bool {
    get(server, "a.example", path).contains("strata; hit")
}

#[test]
fn the_cache_follows_its_records_without_a_restart() {
    let config = Config::new("");
    config.write("remap.config", DEMO);
    config.write("storage.config", "span 64M tier=fast\n");
    let server = config.start();
    let set = |name: &str, value: &str| {
        let name = format!("proxy.config.{name}");
        assert_eq!(config.line(&["-s", &name, "-v", value]).ok(), "");
    };
    set("cache.max_doc_size", "1000");
    is_hit(&server, "/5000/a");
    assert!(!is_hit(&server, "/5000/a"), "it is too large");
    set("cache.max_doc_size", "0");
    is_hit(&server, "/5000/a");
    assert!(is_hit(&server, "/5000/a"));
    set("cache.ram_cache.size", "33554432");
    let total = "proxy.process.cache.ram_cache.total_bytes";
    assert_eq!(config.line(&["-r", total]).ok(), "33554432\n");
    set("cache.ram_cache.size", "0");
    let used = "proxy.process.cache.ram_cache.bytes_used";
    assert_eq!(config.line(&["-r", used]).ok(), "0\n");
    assert!(is_hit(&server, "/5000/a"), "the span still has it");
    let ssd = "proxy.process.cache.ssd.read.success";
    assert_eq!(config.line(&["-r", ssd]).ok(), "1\n");
}

#[test]
fn origins_follow_their_records_and_the_hosts_file_at_a_reload() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let config = Config::new("");
    let hosts = config.path("hosts");
    let record = format!(
        "CONFIG proxy.config.hostdb.host_file.path STRING {}\n\
         CONFIG proxy.config.dns.nameservers STRING 127.0.0.1:1\n\
         CONFIG proxy.config.dns.retries INT 0\n\
         CONFIG proxy.config.hostdb.lookup_timeout INT 1\n",
        hosts.display()
    );
    let records = config.read("records.config");
    config.write("records.config", &format!("{records}{record}"));
    config.write("hosts", "");
    let rule = format!("map http://a.example/ http://origin.test:{port}/\n");
    config.write("remap.config", &rule);
    let server = config.start();
    let answer = get(&server, "a.example", "/");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    config.write("hosts", "127.0.0.1 origin.test\n");
    let silence = "proxy.config.http.transaction_no_activity_timeout_out";
    assert_eq!(config.line(&["-s", silence, "-v", "1"]).ok(), "");
    assert_eq!(config.line(&["-x"]).ok(), "");
    let clock = SystemClock::new();
    let answer = get(&server, "a.example", "/");
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    let took = clock.mono().as_nanos() / 1_000_000_000;
    assert!(took < 20, "the old limit was 30 s: {took} s");
}

#[test]
fn a_limit_of_zero_seconds_is_no_limit() {
    let config = Config::new(
        "CONFIG proxy.config.http.transaction_active_timeout_in INT 0\n\
         CONFIG proxy.config.http.transaction_no_activity_timeout_in INT 0\n\
         CONFIG proxy.config.http.transaction_no_activity_timeout_out INT 0\n\
         CONFIG proxy.config.http.keep_alive_no_activity_timeout_in INT 0\n\
         CONFIG proxy.config.http.keep_alive_no_activity_timeout_out INT 0\n\
         CONFIG proxy.config.http.accept_no_activity_timeout INT 0\n",
    );
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = origin.local_addr().unwrap().port();
    let rule = format!("map http://a.example/ http://127.0.0.1:{port}/\n");
    config.write("remap.config", &rule);
    let server = config.start();
    let answers = std::thread::spawn(move || {
        let (mut stream, _) = origin.accept().unwrap();
        let mut head = [0; 4096];
        assert_ne!(stream.read(&mut head).unwrap(), 0);
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        stream.write_all(answer).unwrap();
    });
    let answer = get(&server, "a.example", "/");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.ends_with("ok"), "{answer}");
    answers.join().unwrap();
}

#[test]
fn values_without_effect_are_warned_about_by_name() {
    let config = Config::new(
        "CONFIG proxy.config.log.logging_enabled INT 4\n\
         CONFIG proxy.config.net.sock_option_flag_in INT 9\n\
         CONFIG proxy.config.log.rolling_enabled INT 1\n\
         CONFIG proxy.config.aio.mode STRING native\n",
    );
    let server = env!("CARGO_BIN_EXE_traffic_server");
    let ran = config.run(server, &["-C", "verify_config"]);
    assert_eq!(ran.code(), 0);
    for name in [
        "log.logging_enabled 4",
        "net.sock_option_flag_in 9",
        "log.rolling_enabled",
        "aio.mode native",
    ] {
        let said = format!("proxy.config.{name} is not honoured yet");
        let (out, err) = (ran.out(), ran.err());
        assert!(out.contains(&said) || err.contains(&said), "{out}{err}");
    }
}

#[test]
fn a_record_that_waits_for_a_restart_is_told_of() {
    let config = Config::new("");
    let _server = config.start();
    let backlog = "proxy.config.net.listen_backlog";
    let ran = config.line(&["-s", backlog, "-v", "100"]);
    assert_eq!(ran.code(), 0);
    let said = ran.out() + &ran.err();
    assert!(said.contains("holds after a restart"), "{said}");
    let said = config.ctl(&["config", "set", backlog, "101"]).out();
    assert!(said.contains("restart is required"), "{said}");
    assert!(said.contains("note: has no effect: "), "{said}");
    let said = config.ctl(&["config", "status"]).out();
    assert!(said.contains(backlog), "{said}");
    let waits = "proxy.node.config.restart_required.proxy";
    assert_eq!(config.line(&["-r", waits]).ok(), "1\n");
}

#[test]
fn many_sets_and_reloads_at_once_leave_a_whole_file_and_a_value_of_it() {
    let config = Config::new("");
    let _server = config.start();
    let name = "proxy.config.cache.ram_cache_cutoff";
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let config = &config;
            scope.spawn(move || {
                for turn in 0..5 {
                    let value = (1000 + worker * 10 + turn).to_string();
                    assert_eq!(config.line(&["-s", name, "-v", &value]).ok(), "");
                    assert_eq!(config.line(&["-x"]).ok(), "");
                }
            });
        }
    });
    let text = config.read("records.config");
    assert_eq!(text.matches(name).count(), 1, "{text}");
    let value = config.line(&["-r", name]).ok();
    assert!(text.ends_with(&format!("{name} INT {value}")), "{text}");
}

#[test]
fn a_set_keeps_the_style_of_the_file() {
    let config = Config::new("");
    let name = "proxy.config.cache.ram_cache_cutoff";
    let records = config.read("records.config").replace('\n', "\r\n");
    config.write(
        "records.config",
        &format!("{records}CONFIG {name} INT 5 # x"),
    );
    let _server = config.start();
    assert_eq!(config.line(&["-s", name, "-v", "6"]).ok(), "");
    let expected = format!("{records}CONFIG {name} INT 6 # x");
    assert_eq!(config.read("records.config"), expected);
    let other = "proxy.config.http.cache.http";
    assert_eq!(config.line(&["-s", other, "-v", "0"]).ok(), "");
    let expected = format!("{expected}\r\nCONFIG {other} INT 0\r\n");
    assert_eq!(config.read("records.config"), expected);
}
