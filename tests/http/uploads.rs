//! Answers that come before the request is whole (RFC 9112 9.5, RFC 9110 10.1.1).

use crate::support::{Client, Proxy, ok};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

const TOO_LARGE: &[u8] = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nless";

/// The head of the next request.
fn head(stream: &TcpStream) -> String {
    let mut head = String::new();
    let mut reader = BufReader::with_capacity(1, stream);
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
    head
}

/// An origin that answers the first request by its head alone, keeps the
/// connection and tells when that ends; it serves one more on another.
fn hasty() -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let rule = format!("map / http://{}/\n", listener.local_addr().unwrap());
    let (ended, gone) = channel();
    std::thread::spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        head(&first);
        first.write_all(TOO_LARGE).unwrap();
        // Whether by FIN or RST does not matter.
        drop(std::io::copy(&mut first, &mut std::io::sink()));
        ended.send(()).unwrap();
        let (mut second, _) = listener.accept().unwrap();
        head(&second);
        second.write_all(&ok("next")).unwrap();
        drop(second.read(&mut [0]));
    });
    (rule, gone)
}

#[test]
fn an_answer_to_the_head_alone_passes_and_ends_both_connections() {
    for (framing, begun) in [
        ("Content-Length: 10000000", "x".repeat(100_000)),
        (
            "Transfer-Encoding: chunked",
            format!("186a0\r\n{}\r\n", "x".repeat(100_000)),
        ),
    ] {
        let (rule, gone) = hasty();
        let proxy = Proxy::start(&rule);
        let mut client = Client::connect(proxy.address);
        client.send(format!(
            "POST / HTTP/1.1\r\nHost: h\r\n{framing}\r\n\r\n{begun}"
        ));
        let answer = client.response().unwrap();
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (413, "less"),
            "{framing}"
        );
        // What it still sends is no request of its.
        client
            .send("GET /second HTTP/1.1\r\nHost: h\r\n\r\n")
            .finish();
        assert!(client.is_closed(), "{framing}");
        let long = std::time::Duration::from_secs(10);
        gone.recv_timeout(long)
            .expect("the origin's connection ends");
        let next = Client::connect(proxy.address).ask("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(next.text(), "next", "{framing}");
    }
}

#[test]
fn an_invitation_of_the_origin_s_own_is_one_more_interim_response() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::start(&format!(
        "map / http://{}/\n",
        listener.local_addr().unwrap()
    ));
    let origin = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        head(&stream);
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
        let mut body = [0; 5];
        stream.read_exact(&mut body).unwrap();
        stream
            .write_all(&ok(std::str::from_utf8(&body).unwrap()))
            .unwrap();
    });
    let mut client = Client::connect(proxy.address);
    client.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(client.head().unwrap().status, 100, "the proxy's");
    assert_eq!(client.head().unwrap().status, 100, "the origin's");
    assert_eq!(client.ask("hello").text(), "hello");
    origin.join().unwrap();
}
