//! What a method changes: who answers, whether content passes, what is stored
//! (RFC 9110 9, 7.6.2).

use crate::support::{Client, Origin, Proxy, Recorded};

const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";

/// An origin whose responses may be stored, and say what was sent.
fn repeating() -> Origin {
    Origin::answering(|request| {
        let body = String::from_utf8_lossy(&request.body);
        let is_head = request.head.starts_with("HEAD ");
        let sent = if is_head { "" } else { &*body };
        format!("{FRESH}Content-Length: {}\r\n\r\n{sent}", body.len()).into_bytes()
    })
}

fn last(origin: &Origin) -> Recorded {
    origin.requests().pop().unwrap()
}

#[test]
fn a_method_nobody_knows_passes_as_it_is_and_is_never_stored() {
    let origin = repeating();
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for (n, method) in ["BREW", "brew", "X-!#$%&'*+-.^_`|~9", "BREW"]
        .iter()
        .enumerate()
    {
        let head = format!("{method} /pot HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n");
        assert_eq!(client.ask(head + "tea").text(), "tea", "{method}");
        assert_eq!(origin.requests().len(), n + 1);
        let expected = format!("{method} /pot HTTP/1.1\r\n");
        assert!(last(&origin).head.starts_with(&expected), "{method}");
    }
}

#[test]
fn content_of_a_get_reaches_the_origin_and_no_stored_answer_is_its() {
    let origin = repeating();
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let plain = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(client.ask(plain).text(), "");
    for (method, framed) in [
        ("GET", "Content-Length: 5\r\n\r\nhello"),
        (
            "GET",
            "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        ),
        ("DELETE", "Content-Length: 5\r\n\r\nhello"),
        (
            "HEAD",
            "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        ),
    ] {
        client.send(format!("{method} /a HTTP/1.1\r\nHost: h\r\n{framed}"));
        let head = client.head().unwrap();
        assert_eq!(head.fields("content-length"), ["5"], "{method} {framed:?}");
        if method != "HEAD" {
            assert_eq!(client.bytes(5), b"hello");
        }
        assert_eq!(last(&origin).body, b"hello", "{method} {framed:?}");
    }
    assert_eq!(
        client.ask(plain).text(),
        "",
        "what had content was not stored"
    );
}

#[test]
fn an_empty_body_is_told_from_none_rfc_9110_8_6() {
    let origin = repeating();
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for (fields, sent) in [("Content-Length: 0\r\n", vec!["0"]), ("", Vec::new())] {
        client.ask(format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
        assert_eq!(last(&origin).fields("content-length"), sent);
    }
}

#[test]
fn max_forwards_is_counted_for_trace_and_options_alone() {
    let origin = repeating();
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for (method, given, sent) in [
        ("OPTIONS", "3", Some("2")),
        ("OPTIONS", "0", None),
        ("OPTIONS", "x", Some("x")),
        ("OPTIONS", "-1", Some("-1")),
        ("TRACE", "1", Some("0")),
        ("TRACE", "0", None),
        ("POST", "0", Some("0")),
    ] {
        let before = origin.requests().len();
        let answer = client.ask(format!(
            "{method} / HTTP/1.1\r\nHost: h\r\nMax-Forwards: {given}\r\n\r\n"
        ));
        assert_eq!(answer.status, 200, "{method} {given}");
        let asked = origin.requests().split_off(before);
        let passed: Vec<_> = asked
            .iter()
            .flat_map(|one| one.fields("max-forwards"))
            .collect();
        assert_eq!(
            passed,
            sent.into_iter().collect::<Vec<_>>(),
            "{method} {given}"
        );
    }
}

#[test]
fn options_of_the_whole_server_is_for_the_proxy() {
    let origin = repeating();
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for target in ["*", "http://h"] {
        let answer = client.ask(format!("OPTIONS {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert!(answer.fields("allow")[0].contains("OPTIONS"), "{target}");
    }
    assert!(origin.requests().is_empty());
    client.ask("OPTIONS http://h/ HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(last(&origin).target(), "/");
}

#[test]
fn an_expectation_that_is_not_understood_is_417() {
    let origin = repeating();
    let proxy = Proxy::start(&origin.map("/"));
    for (expect, version, status) in [
        ("200-ok", "1.1", 417),
        ("100-continue, x", "1.1", 417),
        ("100-Continue", "1.1", 100),
        ("200-ok", "1.0", 200),
    ] {
        let mut client = Client::connect(proxy.address);
        client.send(format!(
            "POST / HTTP/{version}\r\nHost: h\r\nExpect: {expect}\r\nContent-Length: 1\r\n\r\nx"
        ));
        assert_eq!(client.head().unwrap().status, status, "{expect}");
    }
    assert!(
        origin
            .requests()
            .iter()
            .all(|one| one.fields("expect").is_empty())
    );
}

/// A POST with this content and these fields; its response's Age, if it came
/// from the cache, and its content.
fn post(client: &mut Client, fields: &str, content: &str) -> (bool, String) {
    let length = content.len();
    let head = format!("POST /a HTTP/1.1\r\nHost: h\r\n{fields}Content-Length: {length}\r\n\r\n");
    let answer = client.ask(head + content);
    (!answer.fields("age").is_empty(), answer.text())
}

#[test]
fn by_record_a_post_is_answered_from_the_cache_if_its_content_is_the_same() {
    let origin = repeating();
    let record = "CONFIG proxy.config.http.cache.post_method INT 1\n";
    let proxy = Proxy::with(record, &origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let long = "x".repeat(70_000);
    for (fields, content, is_hit) in [
        ("", "one", false),
        ("", "one", true),
        ("", "two", false),
        ("", "one", true),
        ("Content-Type: text/plain\r\n", "one", false),
        ("Content-Encoding: x\r\n", "one", false),
        ("", "", false),
        ("", "", true),
        ("Cache-Control: no-store\r\n", "four", false),
        ("Range: bytes=0-0\r\n", "five", false),
        ("", &long, false),
        ("", &long, false),
    ] {
        let (was_hit, text) = post(&mut client, fields, content);
        assert_eq!((was_hit, text.as_str()), (is_hit, content), "{fields:?}");
    }
    client.send("POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(client.head().unwrap().status, 100);
    assert_eq!(client.send("three").response().unwrap().text(), "three");
    assert!(post(&mut client, "", "three").0);
    let get = client.ask("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(get.text(), "", "what a POST stored is none of a GET's");
    let chunked =
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n";
    assert!(client.ask(chunked).fields("age").is_empty());
    proxy.reload("", &origin.map("/"));
    assert_eq!(post(&mut client, "", "one"), (false, "one".to_owned()));
}

#[test]
fn a_post_s_response_without_a_lifetime_is_not_stored_and_one_that_is_old_not_validated() {
    let origin = Origin::answering(|request| {
        let fields = match request.target() {
            "/guess" => "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
            _ => "Cache-Control: max-age=60\r\nAge: 100\r\nETag: \"e\"",
        };
        format!("HTTP/1.1 200 OK\r\n{fields}\r\nContent-Length: 2\r\n\r\nok").into_bytes()
    });
    let record = "CONFIG proxy.config.http.cache.post_method INT 1\n";
    let proxy = Proxy::with(record, &origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for target in ["/guess", "/guess", "/old", "/old"] {
        let ask = format!("POST {target} HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx");
        assert_eq!(client.ask(ask).text(), "ok");
        let seen = last(&origin);
        assert_eq!((seen.body.as_slice(), seen.target()), (&b"x"[..], target));
        assert_eq!(seen.fields("if-none-match"), [""; 0]);
    }
    assert_eq!(origin.requests().len(), 4);
}
