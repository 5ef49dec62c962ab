//! How long a connection lives, and what it carries.

use crate::support::{Client, Origin, Proxy, ok, until};
use strata::metrics::Metric;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn http11_connections_carry_request_after_request() {
    let origin = Origin::with_body("hello");
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for _ in 0..3 {
        let response = client.ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
        assert_eq!((response.status, response.text().as_str()), (200, "hello"));
        assert_eq!(response.fields("connection"), [""; 0]);
    }
    let last = client.ask("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert_eq!(last.fields("connection"), ["close"]);
    assert!(client.is_closed());
    until("TotalClientConnections", || {
        proxy.counter(Metric::TotalClientConnections) == 1
    });
    until("IncomingRequests", || {
        proxy.counter(Metric::IncomingRequests) == 4
    });
}

#[test]
fn jtest_is_answered_in_http10_with_a_length_and_kept_alive() {
    let origin = Origin::answering(|_| {
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".to_vec()
    });
    let rule = format!("map http://ts.cn:9080/ http://{}\n", origin.address);
    let proxy = Proxy::start(&rule);
    let mut client = Client::connect(proxy.address);
    let close = "GET http://ts.cn:9080/0.5/5 HTTP/1.0\r\n\r\n";
    let response = client.ask(close);
    assert!(
        response.head.starts_with("HTTP/1.0 200 "),
        "{}",
        response.head
    );
    assert_eq!(response.text(), "hello");
    assert_eq!(origin.requests()[0].target(), "/0.5/5");

    let origin = Origin::with_body("hello");
    let rule = format!("map http://ts.cn:9080/ http://{}\n", origin.address);
    let proxy = Proxy::start(&rule);
    let mut client = Client::connect(proxy.address);
    for _ in 0..3 {
        let keep = "GET http://ts.cn:9080/0.5/5 HTTP/1.0\r\nProxy-Connection: Keep-Alive\r\n\r\n";
        let response = client.ask(keep);
        assert!(
            response.head.starts_with("HTTP/1.0 200 "),
            "{}",
            response.head
        );
        assert_eq!(response.fields("content-length"), ["5"]);
        assert_eq!(response.fields("proxy-connection"), ["keep-alive"]);
        assert_eq!(response.fields("connection"), [""; 0]);
    }
    let seen = origin.requests();
    assert_eq!(
        seen[0].fields("host"),
        [origin.address.to_string().as_str()]
    );
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let origin = Origin::answering(|request| ok(request.target()));
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let requests: String = (0..20)
        .map(|n| format!("GET /{n} HTTP/1.1\r\nHost: h\r\n\r\n"))
        .collect();
    client.send(requests);
    for n in 0..20 {
        assert_eq!(client.response().unwrap().text(), format!("/{n}"));
    }
}

#[test]
fn an_idle_connection_ends_when_its_time_is_up() {
    let records = "CONFIG proxy.config.http.keep_alive_no_activity_timeout_in INT 1\n";
    let origin = Origin::with_body("hello");
    let proxy = Proxy::with(records, &origin.map("/"));
    let mut client = Client::connect(proxy.address);
    assert_eq!(client.ask(GET).status, 200);
    assert!(client.is_closed());
}

#[test]
fn a_head_that_does_not_end_in_time_is_408() {
    let records = "CONFIG proxy.config.http.transaction_no_activity_timeout_in INT 1\n";
    let proxy = Proxy::with(records, "");
    let mut client = Client::connect(proxy.address);
    assert_eq!(client.ask("GET / HTT").status, 408);
    assert!(client.is_closed());
}

#[test]
fn keep_alive_can_be_turned_off() {
    let records = "CONFIG proxy.config.http.keep_alive_enabled_in INT 0\n";
    let origin = Origin::with_body("hello");
    let proxy = Proxy::with(records, &origin.map("/"));
    let mut client = Client::connect(proxy.address);
    assert_eq!(client.ask(GET).fields("connection"), ["close"]);
    assert!(client.is_closed());
}

#[test]
fn a_body_nobody_reads_does_not_become_the_next_request() {
    let proxy = Proxy::start("");
    for (bytes, kept) in [(1000, true), (1_000_000, false)] {
        let mut client = Client::connect(proxy.address);
        let body = "x".repeat(bytes);
        let head = format!("POST /none HTTP/1.1\r\nHost: h\r\nContent-Length: {bytes}\r\n\r\n");
        let response = client.ask(format!("{head}{body}"));
        assert_eq!(response.status, 404);
        assert_eq!(response.fields("connection").is_empty(), kept);
        if kept {
            assert_eq!(client.ask(GET).status, 404);
        } else {
            assert!(client.is_closed());
        }
    }
}

#[test]
fn draining_ends_idle_connections_and_finishes_what_is_under_way() {
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let origin = Origin::answering(move |_| {
        held.lock().unwrap().recv().unwrap();
        ok("late")
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut idle = Client::connect(proxy.address);
    let mut busy = Client::connect(proxy.address);
    busy.send(GET);
    while origin.requests().is_empty() {
        std::thread::yield_now();
    }
    proxy.drain();
    assert!(idle.is_closed());
    hold.send(()).unwrap();
    let response = busy.response().unwrap();
    assert_eq!(response.text(), "late");
    assert!(busy.is_closed());
    let address = proxy.address;
    proxy.ended();
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn a_client_that_ends_its_side_still_gets_its_answer() {
    let origin = Origin::with_body("hello");
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    client.send(GET).finish();
    assert_eq!(client.response().unwrap().text(), "hello");
    assert!(client.is_closed());
}
