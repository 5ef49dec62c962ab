//! Looking into what is stored: lookup, list, scan, check.

use crate::support::{Config, exchange};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileExt;

/// Serves one answer of 1,000 bytes after another, until the test ends.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            drop(stream.read(&mut [0; 4096]));
            let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nX-Kind: test\r\n\
                        Content-Length: 1000\r\nConnection: close\r\n\r\n";
            drop(stream.write_all(head.as_bytes()));
            drop(stream.write_all(&[b'x'; 1000]));
        }
    });
    address
}

fn config(origin: SocketAddr, records: &str) -> Config {
    let config = Config::new(records);
    config.write("storage.config", "one 64M tier=fast\n");
    config.write(
        "remap.config",
        &format!("map http://a.example/ http://{origin}/\n"),
    );
    config
}

fn fill(port: SocketAddr, documents: u32) {
    for n in 0..documents {
        let head = format!("GET /{n} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
        let answer = exchange(port, &head);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

#[test]
fn a_lookup_tells_where_each_copy_is_and_how_fresh() {
    let origin = origin();
    let config = config(origin, "");
    let server = config.start();
    let url = "http://a.example/3";
    let lookup = || config.ctl(&["cache", "lookup", url]).ok();
    assert!(lookup().ends_with("\nnot stored\n"), "{}", lookup());
    fill(server.port(), 5);
    let told = lookup();
    let first = told.lines().next().unwrap();
    let key = format!("{url} key http://{origin}/3 hash ");
    assert!(first.starts_with(&key), "{told}");
    for tier in ["\ntier=ram bytes=1000 ", "\ntier=fast span="] {
        assert!(told.contains(tier), "{told}");
    }
    assert!(told.contains(" status=200 state=fresh age=") && told.contains(" lifetime=600\n"));
    assert!(told.to_lowercase().contains("\n  x-kind: test\n"), "{told}");
    config.ctl(&["cache", "purge", url]).ok();
    assert!(lookup().ends_with("\nnot stored\n"), "{}", lookup());
    let bad = config.ctl(&["cache", "lookup", url, "-H", "no field"]);
    assert_eq!(bad.code(), 2);
    assert!(bad.err().contains("is no field line"), "{}", bad.err());
}

#[test]
fn a_list_is_of_what_begins_so_and_is_not_dead() {
    let origin = origin();
    let config = config(origin, "");
    let server = config.start();
    fill(server.port(), 12);
    let list = |prefix: &str| {
        let told = config.ctl(&["cache", "list", prefix]).ok();
        let mut lines: Vec<String> = told.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let all = list(&format!("http://{origin}/"));
    assert_eq!(all.len(), 12);
    assert_eq!(
        all[0],
        format!("http://{origin}/0 tier=fast volume=0 bytes=1000")
    );
    assert_eq!(list(&format!("http://{origin}/1")).len(), 3);
    assert_eq!(list("http://other/").len(), 0);
    let json = config.ctl(&["cache", "list", "", "-f", "json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["objects"].as_array().unwrap().len(), 12);
    config.ctl(&["cache", "clear"]).ok();
    assert_eq!(list("").len(), 0);
}

#[test]
fn a_scan_drops_what_is_damaged_and_tells_of_it() {
    let origin = origin();
    let config = config(origin, "CONFIG proxy.config.cache.ram_cache_cutoff INT 1\n");
    let server = config.start();
    fill(server.port(), 10);
    let told = config.ctl(&["storage", "scan"]).ok();
    assert!(told.starts_with("10 fragments whole, 0 damaged"), "{told}");
    let json = config
        .ctl(&["cache", "lookup", "http://a.example/4", "-f", "json"])
        .ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    // Off the buffer: a clean stop has written it.
    server.signal("-TERM");
    assert_eq!(server.ended().0, 0);
    let offset = json["copies"][0]["offset"].as_u64().unwrap();
    let span = File::options()
        .write(true)
        .open(config.path("one"))
        .unwrap();
    span.write_all_at(b"rot", offset + 500).unwrap();
    let server = config.start();
    let told = config
        .ctl(&["storage", "scan", "one", "--rate", "100000000"])
        .ok();
    assert!(
        told.starts_with("9 fragments whole, 1 damaged and dropped"),
        "{told}"
    );
    let told = config.ctl(&["storage", "scan", "one"]).ok();
    assert!(told.starts_with("9 fragments whole, 0 damaged"), "{told}");
    assert_eq!(config.spans()[0]["checksum_errors"], 1);
    assert_eq!(config.ctl(&["storage", "scan", "other"]).code(), 2);
    drop(server);
}

#[test]
fn a_check_tells_what_is_damaged_and_changes_nothing() {
    let origin = origin();
    let config = config(origin, "");
    let check = || config.run(env!("CARGO_BIN_EXE_traffic_server"), &["-C", "check"]);
    let blank = check();
    assert_eq!(blank.code(), 0, "{}", blank.err());
    assert!(blank.out().contains("blank; a start makes an empty span"));
    assert!(!config.path("one").exists());
    let server = config.start();
    assert!(check().err().contains("in use by another server"));
    fill(server.port(), 10);
    server.signal("-TERM");
    assert_eq!(server.ended().0, 0);
    let span = std::fs::read(config.path("one")).unwrap();
    let sound = check();
    assert_eq!(sound.code(), 0, "{}", sound.err());
    let told = sound.out();
    for part in [
        "2 of 2 headers good\n",
        "; stopped cleanly; ",
        "10 fragments whole, 0 damaged",
    ] {
        assert!(told.contains(part), "{told}");
    }
    assert!(std::fs::read(config.path("one")).unwrap() == span);
    let body = span
        .windows(900)
        .position(|bytes| bytes == [b'x'; 900])
        .unwrap();
    let file = File::options()
        .write(true)
        .open(config.path("one"))
        .unwrap();
    file.write_all_at(b"rot", u64::try_from(body).unwrap())
        .unwrap();
    file.write_all_at(b"rot", 8192).unwrap();
    let damaged = check();
    assert_eq!(damaged.code(), 1);
    let told = damaged.err();
    for part in ["1 of 2 headers good\n", "9 fragments whole, 1 damaged"] {
        assert!(told.contains(part), "{told}");
    }
    config.write("storage.config", "remap.config\n");
    let foreign = check();
    assert_eq!(foreign.code(), 1);
    assert!(foreign.err().contains("a span needs"), "{}", foreign.err());
}
