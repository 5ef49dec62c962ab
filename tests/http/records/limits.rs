//! Records of connections: how many to origins, and how clients' are set up.

use super::lines;
use crate::support::{Client, Origin, Proxy, ok, until};
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

/// An origin that answers as often as it is told to.
fn gated() -> (Origin, Sender<()>) {
    let (open, gate) = channel();
    let gate = std::sync::Mutex::new(gate);
    let origin = Origin::answering(move |_| {
        gate.lock().unwrap().recv().unwrap();
        ok("answer")
    });
    (origin, open)
}

#[test]
fn no_more_connections_to_origins_are_made_than_the_records_allow() {
    for name in [
        "http.per_server.connection.max",
        "http.server_max_connections",
    ] {
        let (origin, open) = gated();
        let proxy = Proxy::start(&origin.map("/"));
        proxy.reload(&lines(&[(name, "1")]), &origin.map("/"));
        let mut first = Client::connect(proxy.address);
        first.send(get("/1"));
        until(name, || origin.requests().len() == 1);
        let mut second = Client::connect(proxy.address);
        assert_eq!(second.ask(get("/2")).status, 503, "{name}");
        proxy.reload("", &origin.map("/"));
        second.send(get("/3"));
        until(name, || origin.requests().len() == 2);
        open.send(()).unwrap();
        open.send(()).unwrap();
        assert_eq!(first.response().unwrap().status, 200);
        assert_eq!(second.response().unwrap().status, 200);
    }
}

/// Whether the proxy's end of a client's connection has a timer of keep-alive
/// probes, as /proc/net/tcp tells it.
fn is_probed(proxy: SocketAddr, client: SocketAddr) -> bool {
    let hex = |at: SocketAddr| format!("0100007F:{:04X}", at.port());
    let (near, far) = (hex(proxy), hex(client));
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let mut rows = table.lines().map(|row| row.split_whitespace().collect());
    let row: Vec<&str> = rows
        .find(|row: &Vec<&str>| row[1] == near && row[2] == far)
        .unwrap();
    row[5].starts_with("02:")
}

#[test]
fn clients_are_probed_when_the_socket_options_say_so() {
    let origin = Origin::with_body("hello");
    let rules = origin.map("/");
    let proxy = Proxy::start(&rules);
    let probed = || {
        let mut client = Client::connect(proxy.address);
        assert_eq!(client.ask(get("/")).status, 200);
        is_probed(proxy.address, client.address())
    };
    assert!(!probed());
    proxy.reload(&lines(&[("net.sock_option_flag_in", "3")]), &rules);
    // The timer is another until the answer is acknowledged.
    until("the probes", probed);
}
