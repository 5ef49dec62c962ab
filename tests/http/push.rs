//! PUSH: responses that a client puts into the cache.

use crate::support::{Client, Origin, Proxy, Response, until};
use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use strata::metrics::Metric;

const ENABLED: &str = "CONFIG proxy.config.http.push_method_enabled INT 1\n";

/// An origin that tells itself apart, and a proxy that takes PUSH.
fn running() -> (Origin, Proxy) {
    let origin = Origin::with_body("from the origin");
    let proxy = Proxy::with(ENABLED, &origin.map("/"));
    (origin, proxy)
}

fn push(proxy: &Proxy, fields: &str, enclosed: &[u8]) -> Response {
    let length = enclosed.len();
    let head = format!("PUSH /a HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n{fields}\r\n");
    Client::connect(proxy.address).ask([head.as_bytes(), enclosed].concat())
}

fn get(proxy: &Proxy, fields: &str) -> Response {
    let request = format!("GET /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    Client::connect(proxy.address).ask(request)
}

/// A response that may be stored, with these field lines more.
fn fresh(fields: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{fields}\r\n{body}").into_bytes()
}

#[test]
fn a_pushed_response_is_a_hit_without_an_origin() {
    let (origin, proxy) = running();
    let length = "Content-Length: 5\r\n";
    assert_eq!(push(&proxy, "", &fresh(length, "first")).status, 201);
    let hit = get(&proxy, "");
    assert_eq!((hit.status, hit.text()), (200, "first".to_owned()));
    assert_eq!(hit.fields("cache-control"), ["max-age=60"]);
    assert_eq!(push(&proxy, "", &fresh("", "without length")).status, 200);
    assert_eq!(get(&proxy, "").text(), "without length");
    assert_eq!(origin.requests().len(), 0);
}

#[test]
fn a_push_may_come_in_chunks_and_after_an_invitation_on_a_kept_connection() {
    let (origin, proxy) = running();
    let mut client = Client::connect(proxy.address);
    client.send(
        "PUSH /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
    );
    assert_eq!(client.response().unwrap().status, 100);
    for piece in fresh("Content-Length: 70000\r\n", &"x".repeat(70_000)).chunks(37_000) {
        client
            .send(format!("{:x}\r\n", piece.len()))
            .send(piece)
            .send("\r\n");
    }
    assert_eq!(client.ask("0\r\n\r\n").status, 201);
    let hit = client.ask("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(hit.body == [b'x'; 70_000]);
    assert_eq!(origin.requests().len(), 0);
}

#[test]
fn a_pushed_response_that_varies_is_for_those_who_ask_as_the_push_did() {
    let (origin, proxy) = running();
    let french = fresh("Vary: Accept-Language\r\n", "salut");
    let (fr, en) = ("Accept-Language: fr\r\n", "Accept-Language: en\r\n");
    assert_eq!(push(&proxy, fr, &french).status, 201);
    let english = fresh("Vary: Accept-Language\r\n", "hello");
    assert_eq!(push(&proxy, en, &english).status, 201);
    assert_eq!(get(&proxy, fr).text(), "salut");
    assert_eq!(get(&proxy, en).text(), "hello");
    assert_eq!(get(&proxy, "").text(), "from the origin");
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn an_enclosed_response_that_is_malformed_is_400_and_stores_nothing() {
    let (origin, proxy) = running();
    for enclosed in [
        "",
        "\r\n\r\n",
        "nonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n",
        "HTTP/1.1 200 OK\nCache-Control: max-age=60\n\nx",
        "HTTP/2.0 200 OK\r\nCache-Control: max-age=60\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nCache-Control : max-age=60\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nA: \"\0\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nxyz",
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: \"1\"\r\n\r\nx",
        "HTTP/1.1 204 No Content\r\nCache-Control: max-age=60\r\n\r\nx",
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    ] {
        let answer = push(&proxy, "", enclosed.as_bytes());
        assert_eq!(answer.status, 400, "{enclosed:?}");
        assert_eq!(get(&proxy, "").text(), "from the origin", "{enclosed:?}");
    }
    let chunked = fresh("Transfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\n\r\n");
    assert_eq!(push(&proxy, "", &chunked).status, 501);
    let without = "PUSH /a HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(Client::connect(proxy.address).ask(without).status, 400);
    assert_eq!(origin.requests().len(), 13);
}

#[test]
fn what_may_not_be_stored_is_422_with_the_reason() {
    let (_origin, proxy) = running();
    for (enclosed, reason) in [
        (
            "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n\r\nx",
            "no-store",
        ),
        (
            "HTTP/1.1 200 OK\r\nCache-Control: private\r\n\r\nx",
            "private",
        ),
        (
            "HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=60\r\n\r\nx",
            "206",
        ),
        (
            "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\n\r\n",
            "304",
        ),
        (
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nVary: *\r\n\r\nx",
            "varies",
        ),
        ("HTTP/1.1 200 OK\r\n\r\nx", "lifetime"),
    ] {
        let answer = push(&proxy, "", enclosed.as_bytes());
        assert_eq!(answer.status, 422, "{enclosed:?}");
        let said = answer.fields("cache-status");
        assert!(said[0].contains(reason), "{said:?}");
        assert_eq!(get(&proxy, "").text(), "from the origin", "{enclosed:?}");
    }
}

#[test]
fn a_push_is_for_those_whom_the_record_and_ip_allow_let() {
    let origin = Origin::with_body("from the origin");
    let enclosed = fresh("", "pushed");
    let off = Proxy::with("", &origin.map("/"));
    assert_eq!(push(&off, "", &enclosed).status, 403);
    let on = Proxy::with(ENABLED, &origin.map("/"));
    for relayed in [
        "Via: 1.1 b",
        "Forwarded: for=10.0.0.1",
        "X-Forwarded-For: 10.0.0.1",
    ] {
        let fields = format!("{relayed}\r\n");
        assert_eq!(push(&on, &fields, &enclosed).status, 403, "{relayed}");
    }
    let rules = "ip_allow:\n- {apply: in, ip_addrs: 0/0, action: deny, methods: [PUSH]}\n";
    let denied = Proxy::with_ip_allow(ENABLED, &origin.map("/"), rules);
    assert_eq!(push(&denied, "", &enclosed).status, 403);
    for proxy in [&off, &on] {
        assert_eq!(get(proxy, "").text(), "from the origin");
    }
}

#[test]
fn a_push_that_breaks_off_stores_nothing() {
    let (_origin, proxy) = running();
    let mut client = Client::connect(proxy.address);
    let enclosed = String::from_utf8(fresh("", "half")).unwrap();
    client.send(format!(
        "PUSH /a HTTP/1.1\r\nHost: h\r\nContent-Length: 999\r\n\r\n{enclosed}"
    ));
    client.finish();
    assert_eq!(client.response().unwrap().status, 400);
    assert_eq!(get(&proxy, "").text(), "from the origin");
}

#[test]
fn a_fetch_from_before_does_not_take_the_place_of_what_was_pushed_meanwhile() {
    let (open, gate) = channel();
    let gate = Mutex::new(gate);
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 3\r\n\r\no";
    let origin = Origin::speaking(move |_, mut stream| {
        stream.write_all(head.as_bytes()).unwrap();
        gate.lock().unwrap().recv().is_ok() && stream.write_all(b"ld").is_ok()
    });
    let proxy = Proxy::with(ENABLED, &origin.map("/"));
    let mut slow = Client::connect(proxy.address);
    slow.send("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")
        .head()
        .unwrap();
    let length = "Content-Length: 6\r\n";
    assert_eq!(push(&proxy, "", &fresh(length, "pushed")).status, 201);
    open.send(()).unwrap();
    assert_eq!(slow.bytes(3), b"old");
    let ended = || proxy.counter(Metric::OutcomeMissCold) == 1;
    until("the end of the fetch", ended);
    assert_eq!(get(&proxy, "").text(), "pushed");
    assert_eq!(origin.requests().len(), 1);
}
