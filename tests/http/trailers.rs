//! Fields behind a chunked body: who gets them, and which ones nobody does
//! (RFC 9110 6.5, 6.6.2).

use crate::support::{Client, Origin, Proxy, ok};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

const CHUNKED: &str = "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n";

/// Trailers of every kind: one that may be, and some that frame, route,
/// authenticate or control.
const TRAILERS: &str = "Sum: 7\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\nHost: evil\r\n\
                        Authorization: x\r\nSet-Cookie: a=b\r\nCache-Control: max-age=9\r\n\
                        X-Forwarded-For: 127.0.0.1\r\nForwarded: for=127.0.0.1\r\n\
                        Client-ip: 127.0.0.1\r\nVia: 1.1 x\r\nIf-None-Match: x\r\nIf-Match: x\r\n\
                        If-Range: x\r\nIf-Modified-Since: x\r\nIf-Unmodified-Since: x\r\n\
                        Pragma: no-cache\r\nMax-Forwards: 1\r\nProxy-Connection: x\r\n\
                        Keep-Alive: x\r\nX-Forwarded-Proto: https\r\n\r\n";

/// Everything that follows the head of a response, in lower case.
fn behind_the_head(client: &mut Client) -> String {
    client.head().unwrap();
    let (rest, _) = client.rest();
    String::from_utf8(rest).unwrap().to_ascii_lowercase()
}

#[test]
fn a_response_s_trailers_go_to_who_takes_them_without_those_that_control() {
    let origin =
        Origin::answering(|_| format!("HTTP/1.1 200 OK\r\n{CHUNKED}{TRAILERS}").into_bytes());
    let proxy = Proxy::start(&origin.map("/"));
    for (fields, trailers) in [
        ("TE: trailers\r\nConnection: TE, close", "sum: 7\r\n"),
        ("TE: gzip, trailers;q=1\r\nConnection: close", ""),
        ("TE: gzip , Trailers\r\nConnection: close", "sum: 7\r\n"),
        ("Connection: close", ""),
    ] {
        let mut client = Client::connect(proxy.address);
        client.send(format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n"));
        let rest = behind_the_head(&mut client);
        assert_eq!(rest, format!("2\r\nhi\r\n0\r\n{trailers}\r\n"), "{fields}");
    }
    let mut old = Client::connect(proxy.address);
    old.send("POST / HTTP/1.0\r\nHost: h\r\nTE: trailers\r\n\r\n");
    assert_eq!(behind_the_head(&mut old), "hi");
}

#[test]
fn a_stored_response_has_no_trailers() {
    let origin = Origin::answering(|_| {
        format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{CHUNKED}{TRAILERS}").into_bytes()
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let ask = "GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE\r\n\r\n";
    while client.ask(ask).fields("age").is_empty() {}
    let hit = client.ask(ask);
    assert_eq!(
        (hit.text().as_str(), hit.fields("content-length")),
        ("hi", vec!["2"])
    );
    assert_eq!(hit.fields("sum"), [""; 0]);
}

/// The bytes of one chunked request as they arrive at an origin.
fn as_sent(fields: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start(&format!(
        "map / http://{}/\n",
        listener.local_addr().unwrap()
    ));
    let mut client = Client::connect(proxy.address);
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: h\r\n{fields}{CHUNKED}{TRAILERS}"
    ));
    let (mut stream, _) = listener.accept().unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut text = String::new();
    while !text.contains("\r\n0\r\n") || !text.ends_with("\r\n\r\n") {
        reader.read_line(&mut text).unwrap();
    }
    stream.write_all(&ok("")).unwrap();
    assert_eq!(client.response().unwrap().status, 200);
    text.to_ascii_lowercase()
}

#[test]
fn a_request_s_trailers_go_on_if_they_were_announced_without_those_that_control() {
    let told = as_sent("Trailer: Sum, Content-Length, Host, Authorization, Cache-Control\r\n");
    assert!(told.ends_with("0\r\nsum: 7\r\n\r\n"), "{told}");
    let all = "Content-Length, Host, Authorization, Set-Cookie, Cache-Control, X-Forwarded-For, \
               Forwarded, Client-ip, Via, If-None-Match, If-Match, If-Range, If-Modified-Since, \
               If-Unmodified-Since, Pragma, Max-Forwards, Proxy-Connection, Keep-Alive, \
               X-Forwarded-Proto";
    let told = as_sent(&format!("Trailer: Sum, {all}\r\n"));
    assert!(told.ends_with("0\r\nsum: 7\r\n\r\n"), "{told}");
    let nominated = as_sent("Trailer: Sum\r\nConnection: Sum\r\n");
    assert!(nominated.ends_with("0\r\n\r\n"), "{nominated}");
    let untold = as_sent("");
    assert!(untold.ends_with("0\r\n\r\n"), "{untold}");
}
