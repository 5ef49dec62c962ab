//! Bounds: connections, times, sizes, and what happens at each.

use crate::support::{Client, Origin, Proxy, ok};
use std::time::Duration;

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn connections_above_the_limit_wait_until_one_ends() {
    let origin = Origin::with_body("hello");
    let records = "CONFIG proxy.config.net.max_connections_in INT 1\n";
    let proxy = Proxy::with(records, &origin.map("/"));
    let mut first = Client::connect(proxy.address);
    assert_eq!(first.ask(GET).status, 200);
    let mut second = Client::connect(proxy.address);
    second.send(GET);
    assert!(!second.has_answer_within(Duration::from_millis(200)));
    drop(first);
    assert_eq!(second.response().unwrap().status, 200);
}

#[test]
fn bodies_larger_than_any_buffer_pass_both_ways() {
    let origin = Origin::answering(|request| ok(std::str::from_utf8(&request.body).unwrap()));
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let body: String = (0..700_000).map(|n| format!("{n},")).collect();
    let length = body.len();
    let head = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n");
    let response = client.ask(head + &body);
    assert!(
        response.text() == body,
        "{} of {length} bytes",
        response.body.len()
    );
}

#[test]
fn an_origin_that_cannot_be_reached_is_502() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let records = "CONFIG proxy.config.http.connect_attempts_max_retries INT 0\n";
    let proxy = Proxy::with(records, &format!("map / http://{address}/\n"));
    let mut client = Client::connect(proxy.address);
    assert_eq!(client.ask(GET).status, 502);
    assert_eq!(
        client.ask(GET).status,
        502,
        "the client's connection goes on"
    );
}

#[test]
fn a_response_head_is_bounded_by_its_bytes_and_2048_fields() {
    let answer = |fields: usize| {
        let lines: String = (0..fields).map(|n| format!("X-{n}: {n}\r\n")).collect();
        format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 0\r\n\r\n").into_bytes()
    };
    let origin = Origin::answering(move |request| {
        answer(request.target().trim_start_matches('/').parse().unwrap())
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for (fields, status) in [(300, 200), (2047, 200), (2048, 502)] {
        let request = format!("GET /{fields} HTTP/1.1\r\nHost: h\r\n\r\n");
        let response = client.ask(request);
        assert_eq!(response.status, status, "{fields} fields");
        let last = format!("x-{}", fields - 1);
        assert_eq!(response.fields(&last).len(), usize::from(status == 200));
    }
}

#[test]
fn a_silent_origin_is_504() {
    let origin = Origin::answering(|_| Vec::new());
    let records = "CONFIG proxy.config.http.transaction_no_activity_timeout_out INT 1\n";
    let proxy = Proxy::with(records, &origin.map("/"));
    let mut client = Client::connect(proxy.address);
    assert_eq!(client.ask(GET).status, 504);
}

#[test]
fn a_transaction_that_takes_too_long_is_cut_off() {
    let origin = Origin::answering(|_| Vec::new());
    let records = "CONFIG proxy.config.http.transaction_active_timeout_in INT 1\n";
    let proxy = Proxy::with(records, &origin.map("/"));
    let mut client = Client::connect(proxy.address);
    client.send(GET);
    assert!(client.is_closed());
}

#[test]
fn a_client_that_stalls_inside_a_body_is_answered_and_let_go() {
    let origin = Origin::with_body("hello");
    let records = "CONFIG proxy.config.http.transaction_no_activity_timeout_in INT 1\n";
    let proxy = Proxy::with(records, &origin.map("/"));
    for body in [
        "Content-Length: 9\r\n\r\nhello",
        "Content-Length: 9\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhe",
    ] {
        let mut client = Client::connect(proxy.address);
        let response = client.ask(format!("POST / HTTP/1.1\r\nHost: h\r\n{body}"));
        assert_eq!(response.status, 408, "{body}");
        assert!(client.is_closed());
    }
    assert!(
        origin.requests().is_empty(),
        "a part was taken for the whole"
    );
}

#[test]
fn a_request_is_not_tried_on_every_connection_that_was_kept() {
    let (open, gate) = std::sync::mpsc::channel();
    let gate = std::sync::Mutex::new(gate);
    let origin = Origin::speaking(move |request, mut stream| {
        if request.target() == "/x" {
            return false;
        }
        gate.lock().unwrap().recv().unwrap();
        std::io::Write::write_all(&mut stream, &ok("y")).is_ok()
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut clients: Vec<_> = (0..10)
        .map(|n| {
            let mut client = Client::connect(proxy.address);
            client.send(format!("GET /{n} HTTP/1.1\r\nHost: h\r\n\r\n"));
            client
        })
        .collect();
    (0..10).for_each(|_| open.send(()).unwrap());
    for client in &mut clients {
        assert_eq!(client.response().unwrap().status, 200);
    }
    let mut client = Client::connect(proxy.address);
    assert_eq!(client.ask("GET /x HTTP/1.1\r\nHost: h\r\n\r\n").status, 502);
    let asked = origin.requests();
    let tries = asked.iter().filter(|request| request.target() == "/x");
    assert_eq!(tries.count(), 2);
}
