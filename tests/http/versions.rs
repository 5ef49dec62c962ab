//! HTTP/1.0 at either end (RFC 9112 9.3, Appendix C.2).

use crate::support::{Client, Origin, Proxy, ok};

const GET: &str = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

/// An origin of HTTP/1.0, whose bodies end with the connection.
fn old(fields: &'static str) -> Origin {
    Origin::answering(move |_| {
        format!("HTTP/1.0 200 OK\r\n{fields}Connection: close\r\n\r\nhello").into_bytes()
    })
}

#[test]
fn a_body_ended_by_close_is_chunked_to_1_1_and_closed_to_1_0() {
    let origin = old("Cache-Control: no-store\r\n");
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for _ in 0..2 {
        let response = client.ask(GET);
        assert!(response.head.starts_with("HTTP/1.1 "), "{}", response.head);
        assert_eq!(response.fields("transfer-encoding"), ["chunked"]);
        assert_eq!(response.fields("via"), ["1.0 strata.test (Strata)"]);
        assert_eq!(response.text(), "hello");
    }
    let mut client = Client::connect(proxy.address);
    let keeps = "GET /a HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n";
    let response = client.send(keeps).head().unwrap();
    assert_eq!(response.fields("connection"), ["close"]);
    assert_eq!(response.fields("transfer-encoding"), [""; 0]);
    assert_eq!(client.rest(), (b"hello".to_vec(), true));
}

#[test]
fn what_was_ended_by_close_has_a_length_once_it_is_stored() {
    let origin = old("Cache-Control: max-age=60\r\n");
    let proxy = Proxy::start(&origin.map("/"));
    for version in ["1.1", "1.0"] {
        let ask = format!("GET /{version} HTTP/{version}\r\nHost: h\r\n\r\n");
        assert_eq!(Client::connect(proxy.address).ask(&ask).text(), "hello");
        let mut hit = Client::connect(proxy.address).ask(&ask);
        while hit.fields("age").is_empty() {
            hit = Client::connect(proxy.address).ask(&ask);
        }
        assert_eq!(hit.fields("content-length"), ["5"]);
    }
}

#[test]
fn a_coding_that_1_0_does_not_know_is_502() {
    let origin = Origin::answering(|_| {
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n"
            .to_vec()
    });
    let proxy = Proxy::start(&origin.map("/"));
    assert_eq!(Client::connect(proxy.address).ask(GET).status, 502);
}

#[test]
fn a_1_0_client_s_request_goes_on_as_1_1() {
    let origin = Origin::answering(|request| ok(&String::from_utf8_lossy(&request.body)));
    let proxy = Proxy::start(&origin.map("/"));
    for (fields, body) in [("Content-Length: 5\r\n", "hello"), ("", "")] {
        let mut client = Client::connect(proxy.address);
        let head = format!("POST / HTTP/1.0\r\nHost: h\r\n{fields}\r\n");
        let response = client.ask(head + body);
        assert!(response.head.starts_with("HTTP/1.0 "), "{}", response.head);
        assert_eq!(response.text(), body);
        assert!(client.is_closed());
        let seen = origin.requests().pop().unwrap();
        assert!(
            seen.head.starts_with("POST / HTTP/1.1\r\n"),
            "{}",
            seen.head
        );
        assert!(seen.fields("via")[0].starts_with("1.0 "));
    }
}

#[test]
fn an_origin_of_1_0_that_keeps_its_connection_is_asked_on_it_again() {
    let origin = Origin::answering(|request| {
        let body = String::from_utf8(ok(request.target())).unwrap();
        let kept = "HTTP/1.0 200 OK\r\nConnection: keep-alive";
        body.replacen("HTTP/1.1 200 OK", kept, 1).into_bytes()
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for target in ["/1", "/2"] {
        let response = client.ask(format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(response.text(), target);
        assert_eq!(response.fields("connection"), [""; 0]);
    }
}
