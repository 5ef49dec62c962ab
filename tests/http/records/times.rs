//! Records that bound a time: what ends when it is over.

use super::lines;
use crate::support::{Client, Origin, Proxy, until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use strata::metrics::Metric;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

/// A proxy that began with the default records.
fn reloaded(records: &[(&str, &str)], rules: &str) -> Proxy {
    let proxy = Proxy::start(rules);
    proxy.reload(&lines(records), rules);
    proxy
}

/// An origin that sends these bytes and no more, and tells when the proxy ends
/// its connection.
fn stopping(bytes: &'static [u8]) -> (Origin, Receiver<()>) {
    let (ended, gone) = channel();
    let origin = Origin::speaking(move |_, mut stream: &TcpStream| {
        stream.write_all(bytes).unwrap();
        // Whether by FIN or RST does not matter.
        drop(stream.read(&mut [0]));
        ended.send(()).ok();
        false
    });
    (origin, gone)
}

fn ends(gone: &Receiver<()>) -> bool {
    gone.recv_timeout(Duration::from_secs(20)).is_ok()
}

#[test]
fn a_client_that_says_nothing_is_let_go() {
    let proxy = reloaded(&[("http.accept_no_activity_timeout", "1")], "");
    assert!(Client::connect(proxy.address).is_closed());
}

#[test]
fn a_kept_connection_to_an_origin_is_let_go() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let (origin, gone) = stopping(answer);
    let records = [("http.keep_alive_no_activity_timeout_out", "1")];
    let proxy = reloaded(&records, &origin.map("/"));
    assert_eq!(Client::connect(proxy.address).ask(GET).status, 200);
    assert!(ends(&gone));
}

#[test]
fn an_exchange_with_an_origin_ends() {
    let (origin, _) = stopping(b"");
    let records = [("http.transaction_active_timeout_out", "1")];
    let proxy = reloaded(&records, &origin.map("/"));
    assert_eq!(Client::connect(proxy.address).ask(GET).status, 504);
}

#[test]
fn a_fill_without_its_client_ends_by_its_time_or_for_what_has_come() {
    let half = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 8\r\n\r\nhalf";
    for (name, value) in [
        ("http.background_fill_active_timeout", "1"),
        ("http.background_fill_completed_threshold", "0.6"),
    ] {
        let (origin, gone) = stopping(half);
        let proxy = reloaded(&[(name, value)], &origin.map("/"));
        let mut client = Client::connect(proxy.address);
        client.send(GET).head().unwrap();
        client.bytes(4);
        client.reset();
        assert!(ends(&gone), "{name}");
    }
}

#[test]
fn a_fill_without_its_client_goes_on_once_enough_has_come() {
    let (open, gate) = channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let origin = Origin::speaking(move |_, mut stream: &TcpStream| {
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 8\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(b"half").unwrap();
        gate.lock().unwrap().recv().unwrap();
        stream.write_all(b"full").is_ok()
    });
    let records = [("http.background_fill_completed_threshold", "0.4")];
    let proxy = reloaded(&records, &origin.map("/"));
    let mut client = Client::connect(proxy.address);
    client.send(GET).head().unwrap();
    client.bytes(4);
    client.reset();
    until("the fill is alone", || {
        proxy.counter(Metric::BackgroundFillCurrentCount) == 1
    });
    open.send(()).unwrap();
    assert_eq!(Client::connect(proxy.address).ask(GET).text(), "halffull");
    assert_eq!(origin.requests().len(), 1);
}
