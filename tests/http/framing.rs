//! Framing on which two parties could differ is refused, never passed on
//! (RFC 9112 6.3, 11.2). Each table is one line of the reported cases.

use crate::support::{Client, Origin, Proxy, ok};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

/// Sends a request followed by a second one on the same connection; the
/// statuses of the answers, and what the origin saw.
fn smuggle(head: &str, body: &str) -> (Vec<u16>, Vec<String>) {
    let origin = Origin::with_body("fine");
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let second = "GET /second HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    client.send(format!("{head}\r\n{body}{second}"));
    let mut statuses = Vec::new();
    while let Ok(response) = client.response() {
        statuses.push(response.status);
    }
    let seen = origin.requests().into_iter().map(|request| request.head);
    (statuses, seen.collect())
}

/// What is wrong with the head reaches no origin.
fn refused(status: u16, fields: &str, body: &str) {
    let head = format!("POST /first HTTP/1.1\r\nHost: h\r\n{fields}");
    let (statuses, seen) = smuggle(&head, body);
    assert_eq!(statuses, [status], "{fields:?}");
    assert!(seen.is_empty(), "{fields:?} reached the origin: {seen:?}");
}

#[test]
fn transfer_encodings_other_than_exactly_chunked_are_refused() {
    for coding in [
        "chunked, identity",
        "gzip, chunked, x",
        "chunked, chunked",
        ",chunked",
        "xchunked",
        "chunked;q=1",
        "identity",
        "gzip, chunked",
        "\"chunked\"",
        "chunked\r\nTransfer-Encoding: chunked",
        "chunked\r\nContent-Length: 5",
    ] {
        let status = match coding {
            "gzip, chunked" => 501,
            _ => 400,
        };
        let fields = format!("Transfer-Encoding: {coding}\r\n");
        refused(status, &fields, "0\r\n\r\n");
    }
}

#[test]
fn content_lengths_that_are_no_one_number_are_refused() {
    for length in [
        "",
        "+5",
        "0x5",
        "5 5",
        "5,6",
        "-1",
        "18446744073709551616",
        "5\r\nContent-Length: 6",
        "5;",
        "5\u{b2}",
    ] {
        refused(400, &format!("Content-Length: {length}\r\n"), "hello");
    }
    refused(400, "Content-Length : 5\r\n", "hello");
}

#[test]
fn content_lengths_that_are_one_number_go_on_as_that_number() {
    for (length, sent) in [
        ("5,5", "5"),
        ("010", "10"),
        ("5 ", "5"),
        ("5\r\nContent-Length: 5", "5"),
    ] {
        let body = "x".repeat(sent.parse().unwrap());
        let head = format!("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n");
        let (statuses, seen) = smuggle(&head, &body);
        assert_eq!(statuses, [200, 200], "{length:?}");
        let lengths = crate::support::fields(&seen[0], "content-length");
        assert_eq!(lengths, [sent], "{length:?}");
    }
}

#[test]
fn chunked_bodies_off_the_grammar_are_refused() {
    for body in [
        "2\r\r;a\r\nab\r\n0\r\n\r\n",
        "5;a=\"x\r\ny\"\r\nhello\r\n0\r\n\r\n",
        "2\r\nabXX0\r\n\r\n",
        "2\r\nab\r\n0\r\n\n",
        "2\nab\n0\n\n",
        "0x2\r\nab\r\n0\r\n\r\n",
        "ffffffffffffffffff\r\nab\r\n0\r\n\r\n",
        "-2\r\nab\r\n0\r\n\r\n",
        "2 \r\nab\r\n0\r\nT : 1\r\n\r\n",
    ] {
        let head = "POST /first HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n";
        let (statuses, seen) = smuggle(head, body);
        assert_eq!(statuses, [400], "{body:?}");
        assert!(seen.len() <= 1, "{body:?}: {seen:?}");
        assert!(!seen.iter().any(|head| head.contains("second")), "{seen:?}");
    }
}

#[test]
fn a_chunk_extension_is_dropped_on_the_way() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = origin.local_addr().unwrap();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = origin.accept().unwrap();
        let mut heard = Vec::new();
        while !heard.ends_with(b"\r\n0\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            heard.extend(byte);
        }
        stream.write_all(&ok("")).unwrap();
        String::from_utf8(heard).unwrap()
    });
    let proxy = Proxy::start(&format!("map http://h/ http://{address}/\n"));
    let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    let ask = format!("{head}5;a=b\r\nhello\r\n0;c\r\n\r\n");
    assert_eq!(Client::connect(proxy.address).ask(ask).status, 200);
    let heard = heard.join().unwrap();
    assert!(
        heard.ends_with("\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        "{heard}"
    );
}

#[test]
fn hosts_that_name_no_one_authority_are_refused() {
    for host in [
        "Host: test:8080:9090:1234",
        "Host: a, b",
        "Host: a\r\nHost: a",
        "Host: a\r\nHost: b",
        "Host: a b",
        "Host: a/b",
        "Host: u@a",
        "X: y",
        "Host: a:70000",
        "Host: [::1",
        "Host: a\u{ff}",
    ] {
        let (statuses, seen) = smuggle(&format!("GET / HTTP/1.1\r\n{host}\r\n"), "");
        assert_eq!(statuses, [400], "{host:?}");
        assert!(seen.is_empty(), "{host:?} reached the origin");
    }
    let (statuses, _) = smuggle("GET http://h:70000/ HTTP/1.1\r\nHost: h\r\n", "");
    assert_eq!(statuses, [400]);
}

#[test]
fn a_folded_line_is_refused_however_it_is_cut() {
    let input = "GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n";
    for step in [1, 2, 3, input.len()] {
        let proxy = Proxy::start("");
        let mut client = Client::connect(proxy.address);
        for piece in input.as_bytes().chunks(step) {
            client.send(piece);
        }
        assert_eq!(client.response().unwrap().status, 400);
        assert!(client.is_closed());
    }
}

#[test]
fn a_framing_fault_of_the_origin_is_502_and_ends_there() {
    for fields in [
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: gzip, chunked, x",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: ,chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length:",
        "Content-Length: +5",
        "Content-Length: 0x5",
        "Content-Length: 5 5",
        "Content-Length: 5,6",
        "Content-Length: -1",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 18446744073709551616",
    ] {
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nConnection: close";
        let answer = format!("{head}\r\n{fields}\r\n\r\nhello");
        let origin = Origin::answering(move |_| answer.clone().into_bytes());
        let proxy = Proxy::start(&origin.map("/"));
        let mut client = Client::connect(proxy.address);
        for _ in 0..2 {
            let response = client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            assert_eq!(response.status, 502, "{fields}");
            assert!(!response.text().contains("hello"), "{fields}");
        }
        assert_eq!(origin.requests().len(), 2, "{fields}: nothing is stored");
    }
}

#[test]
fn a_head_of_an_origin_that_is_off_the_grammar_is_502() {
    const NEXT: &str = "Content-Length: 5\r\n\r\nhello";
    for head in [
        "HTTP/1.1 200 OK\nCache-Control: max-age=60\r\n",
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\nX: y\r\n",
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n",
        "HTTP/1.1 200 OK\r\nX : a\r\n",
        "HTTP/1.1 200 OK\r\nX: a\rb\r\n",
        "HTTP/1.1 200 OK\r\nX: a\0b\r\n",
        "HTTP/1.1 200 O\x07K\r\n",
        "HTTP/1.1 200 OK\r\nX: a\r\n\nHTTP/1.1 200 OK\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: a\n\r\nHTTP/1.1 200 OK\r\n",
    ] {
        let answer = format!("{head}{NEXT}");
        let origin = Origin::speaking(move |request, mut stream| {
            if request.target() == "/next" {
                return stream.write_all(&ok("next")).is_ok();
            }
            stream.write_all(answer.as_bytes()).is_ok()
        });
        let proxy = Proxy::start(&origin.map("/"));
        let mut client = Client::connect(proxy.address);
        for _ in 0..2 {
            let response = client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            assert_eq!(response.status, 502, "{head:?}");
            assert!(!response.text().contains("hello"), "{head:?}");
        }
        let next = client.ask("GET /next HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(next.text(), "next", "{head:?}");
        assert_eq!(origin.requests().len(), 3, "{head:?}: nothing is stored");
    }
}

#[test]
fn a_body_that_breaks_off_is_never_ended_cleanly() {
    for (fields, body) in [
        ("Content-Length: 10\r\n", "hello"),
        ("Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n"),
        ("Transfer-Encoding: chunked\r\n", "5\r\nhel"),
    ] {
        for version in ["1.1", "1.0"] {
            let answer = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{fields}\r\n{body}");
            let origin = Origin::answering(move |_| answer.clone().into_bytes());
            let proxy = Proxy::start(&origin.map("/"));
            let mut client = Client::connect(proxy.address);
            client.send(format!("GET / HTTP/{version}\r\nHost: h\r\n\r\n"));
            // A 502 is right too, where the fault shows before the head left.
            let broken = client.response().is_err_and(|_| true);
            assert!(
                broken,
                "{fields:?} {body:?} to HTTP/{version} ended cleanly"
            );
        }
    }
}

#[test]
fn the_request_after_a_whole_body_is_its_own() {
    let origin = Origin::answering(|request| ok(&String::from_utf8_lossy(&request.body)));
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";
    let length = smuggled.len();
    let head = format!("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n");
    let response = client.ask(format!("{head}{smuggled}"));
    assert_eq!(response.text(), smuggled);
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn a_101_nobody_asked_for_is_502_and_the_end_of_its_connection() {
    let (told, ended) = std::sync::mpsc::channel();
    let told = std::sync::Mutex::new(told);
    let origin = Origin::speaking(move |_, mut stream| {
        let switching =
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n";
        stream.write_all(switching).unwrap();
        let end = stream.read(&mut [0]).unwrap_or(0);
        told.lock().unwrap().send(end).unwrap();
        false
    });
    let proxy = Proxy::start(&origin.map("/"));
    for line in ["GET /a", "POST /a", "HEAD /a"] {
        let mut client = Client::connect(proxy.address);
        let fields = "Host: h\r\nUpgrade: x\r\nConnection: Upgrade\r\nContent-Length: 0";
        client.send(format!("{line} HTTP/1.1\r\n{fields}\r\n\r\n"));
        let answer = if line.starts_with("HEAD") {
            client.head()
        } else {
            client.response()
        };
        assert_eq!(answer.unwrap().status, 502, "{line}");
        let end = ended.recv_timeout(Duration::from_secs(10));
        assert_eq!(end, Ok(0), "{line}: the connection is still open");
    }
}
