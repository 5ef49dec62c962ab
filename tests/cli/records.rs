//! Records of the process: set in the file or by a reload, and seen to act.

use crate::support::{Config, Server, exchange};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const DEMO: &str = "map http://a.example/ http://generator.invalid/demo/ @plugin=generator.so\n";

/// A configuration of the generator, with these records.
fn demo(records: &str) -> Config {
    let config = Config::new(records);
    config.write("remap.config", DEMO);
    config
}

fn get(server: &Server, path: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
    exchange(server.port(), &head)
}

fn stop(server: Server) {
    server.signal("-TERM");
    let (code, log) = server.ended();
    assert_eq!(code, 0, "{log}");
}

fn set(config: &Config, name: &str, value: &str) {
    let ran = config.line(&["-s", &format!("proxy.config.{name}"), "-v", value]);
    assert_eq!(ran.ok(), "");
}

/// Waits for what another process brings about, at most 20 seconds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let came = (0..200).any(|_| {
        holds() || {
            std::thread::park_timeout(Duration::from_millis(100));
            false
        }
    });
    assert!(came, "{what} never came about");
}

/// The process's threads whose names begin so.
fn threads(server: &Server, name: &str) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.id())).unwrap();
    // A thread may end between the two looks.
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|comm| comm.starts_with(name)).count()
}

#[test]
fn there_are_as_many_event_threads_as_the_records_say() {
    let cores = std::thread::available_parallelism().unwrap().get();
    for (records, count) in [
        ("", cores),
        ("CONFIG proxy.config.exec_thread.limit INT 5\n", cores),
        (
            "CONFIG proxy.config.exec_thread.autoconfig INT 0\n\
             CONFIG proxy.config.exec_thread.limit INT 5\n",
            5,
        ),
        (
            "CONFIG proxy.config.exec_thread.autoconfig.scale FLOAT 3.0\n",
            3 * cores,
        ),
    ] {
        let server = Config::new(records).start();
        until(records, || threads(&server, "net-") == count);
    }
}

#[test]
fn each_span_has_as_many_threads_as_the_record_says() {
    for threads_per_disk in [1, 3] {
        let config = Config::new(&format!(
            "CONFIG proxy.config.cache.threads_per_disk INT {threads_per_disk}\n"
        ));
        config.write("storage.config", "one 64M\nother 64M\n");
        let server = config.start();
        until("the threads", || {
            threads(&server, "strata-disk") == 2 * threads_per_disk
        });
    }
}

#[test]
fn spans_of_ats_4_2_s_interim_cache_are_fast_ones() {
    let config = Config::new("");
    config.write("storage.config", "span 64M tier=capacity\n");
    std::fs::write(config.path("fast"), "").unwrap();
    let fast = std::fs::File::options()
        .write(true)
        .open(config.path("fast"));
    fast.unwrap().set_len(64 << 20).unwrap();
    let records = config.read("records.config");
    let record = "CONFIG proxy.config.cache.interim.storage STRING fast\n";
    config.write("records.config", &(records + record));
    let _server = config.start();
    let list = config.ctl(&["storage", "list"]).ok();
    assert!(list.contains("fast tier=fast state=online"), "{list}");
}

#[test]
fn the_directory_is_synced_as_often_as_a_reload_says() {
    let config = demo("");
    config.write("storage.config", "span 64M\n");
    let server = config.start();
    set(&config, "cache.dir.sync_frequency", "1");
    let count = || config.line(&["-r", "proxy.process.cache.sync.count"]).ok();
    let mut fetched = 0;
    // A stripe that nothing is written to needs no sync.
    until("a sync", || {
        fetched += 1;
        get(&server, &format!("/1000000/{fetched}"));
        count() != "0\n"
    });
}

#[test]
fn the_access_log_is_where_and_as_the_records_say() {
    let config = demo("CONFIG proxy.config.log.logfile_dir STRING logs\n");
    let server = config.start();
    get(&server, "/10/a");
    stop(server);
    let log = config.read("logs/strata.log");
    assert!(log.contains("/10/a") && log.contains(" miss_cold"), "{log}");

    let config = demo("CONFIG proxy.config.log.default_format STRING squid\n");
    let server = config.start();
    get(&server, "/10/a");
    stop(server);
    let log = config.read("var/log/squid.log");
    assert!(log.contains("/10/a") && !log.contains("miss_cold"), "{log}");

    let config = demo("CONFIG proxy.config.log.logging_enabled INT 0\n");
    let server = config.start();
    get(&server, "/10/a");
    stop(server);
    assert!(!config.path("var/log").exists());
}

#[test]
fn the_state_is_where_the_record_says() {
    let config = Config::new("CONFIG proxy.config.local_state_dir STRING state\n");
    let _server = config.start();
    assert!(config.path("state").exists() && !config.path("var").exists());
    assert_eq!(config.line(&["--status"]).ok(), "Proxy -- on\n");
}

/// Connections that are answered, up to `max`, all kept open.
fn answered(server: &Server, max: usize) -> usize {
    let mut held = Vec::new();
    for _ in 0..max {
        let mut stream = TcpStream::connect(server.port()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        stream
            .write_all(b"GET /10/a HTTP/1.1\r\nHost: a.example\r\n\r\n")
            .unwrap();
        if stream.read(&mut [0; 1024]).is_err() {
            break;
        }
        held.push(stream);
    }
    held.len()
}

#[test]
fn no_more_clients_are_served_at_once_than_the_throttle_allows() {
    let server = demo("CONFIG proxy.config.net.connections_throttle INT 100\n").start();
    assert_eq!(answered(&server, 120), 100);
    let server = demo("").start();
    assert_eq!(answered(&server, 120), 120);
}

#[test]
fn a_thread_without_clients_keeps_no_slot_from_the_others() {
    let server = demo(
        "CONFIG proxy.config.exec_thread.autoconfig INT 0\n\
         CONFIG proxy.config.exec_thread.limit INT 4\n\
         CONFIG proxy.config.net.max_connections_in INT 1\n",
    )
    .start();
    for _ in 0..20 {
        assert!(get(&server, "/10/a").starts_with("HTTP/1.1 200 "));
    }
}

/// Connections that the system takes while the server accepts none, up to 20.
fn waiting(records: &str) -> usize {
    let server = demo(&format!(
        "CONFIG proxy.config.exec_thread.autoconfig INT 0\n\
         CONFIG proxy.config.exec_thread.limit INT 1\n\
         CONFIG proxy.config.net.max_connections_in INT 1\n{records}"
    ))
    .start();
    assert_eq!(answered(&server, 1), 1);
    let (at, patience) = (server.port(), Duration::from_millis(500));
    let taken = (0..20).map_while(|_| TcpStream::connect_timeout(&at, patience).ok());
    taken.collect::<Vec<_>>().len()
}

#[test]
fn no_more_connections_wait_than_the_backlog_allows() {
    assert_eq!(waiting(""), 20);
    let few = waiting("CONFIG proxy.config.net.listen_backlog INT 2\n");
    assert!((1..10).contains(&few), "{few}");
}

#[test]
fn transactions_go_on_after_a_stop_for_as_long_as_a_reload_says() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = Config::new("CONFIG proxy.config.stop.shutdown_timeout INT 3600\n");
    let port = origin.local_addr().unwrap().port();
    let rule = format!("map http://a.example/ http://127.0.0.1:{port}/\n");
    config.write("remap.config", &rule);
    let server = config.start();
    set(&config, "stop.shutdown_timeout", "0");
    let client = std::thread::spawn({
        let at = server.port();
        move || {
            let mut stream = TcpStream::connect(at).unwrap();
            let head = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
            stream.write_all(head).unwrap();
            stream.read(&mut [0; 1]).unwrap_or(0)
        }
    });
    let (_silent, _) = origin.accept().unwrap();
    stop(server);
    assert_eq!(client.join().unwrap(), 0, "it was answered");
}

#[test]
fn the_files_of_rules_are_those_that_a_reload_names() {
    let config = demo("");
    let server = config.start();
    assert!(get(&server, "/10/a").starts_with("HTTP/1.1 200 "));
    config.write(
        "deny.yaml",
        "ip_allow:\n  - apply: in\n    ip_addrs: 0/0\n    action: deny\n    methods: ALL\n",
    );
    set(&config, "cache.ip_allow.filename", "deny.yaml");
    assert_eq!(config.line(&["-x"]).ok(), "");
    assert!(get(&server, "/10/a").starts_with("HTTP/1.1 403 "));
    set(&config, "cache.ip_allow.filename", "ip_allow.yaml");
    config.write("other.config", "map http://b.example/ http://c.example/\n");
    set(&config, "url_remap.filename", "other.config");
    assert_eq!(config.line(&["-x"]).ok(), "");
    assert!(get(&server, "/10/a").starts_with("HTTP/1.1 404 "));
}
