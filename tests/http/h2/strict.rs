//! What an HTTP/1 origin could misunderstand is refused, never passed on
//! (RFC 9113 8.2 and 8.3); the connection serves its other streams on.

use super::client::{H2Client, request, run};
use super::proxy;
use super::raw::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GET, GOAWAY, HEADERS, PROTOCOL_ERROR, RST_STREAM,
    Raw, block,
};
use crate::support::{Origin, Proxy, ok};
use strata::metrics::Metric;

type Fields = &'static [(&'static str, &'static str)];

/// What became of a request: `status` of an answer, or an error code.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Answer(u16),
    Reset(u32),
    Closed(u32),
}

/// Sends a head of these fields on a connection of its own.
fn fate(proxy: &Proxy, fields: &[(&str, &str)], body: &[&[u8]]) -> Fate {
    let mut client = Raw::connect(proxy.address);
    client.head(1, body.is_empty(), fields);
    for (index, part) in body.iter().enumerate() {
        let ends = index + 1 == body.len();
        client.frame(DATA, u8::from(ends), 1, part);
    }
    loop {
        let frame = client.next().expect("something becomes of it");
        match frame.kind {
            RST_STREAM => return Fate::Reset(frame.code()),
            GOAWAY => return Fate::Closed(frame.code()),
            HEADERS => return Fate::Answer(status(&frame.payload)),
            _ => {}
        }
    }
}

/// The status that begins a head, of those in the static table (RFC 7541
/// Appendix A).
fn status(block: &[u8]) -> u16 {
    match block[0] {
        0x88 => 200,
        0x8c => 400,
        _ => 0,
    }
}

/// [`GET`] with one of its fields as given, or left out, and others behind.
fn with(
    name: &str,
    value: Option<&'static str>,
    more: Fields,
) -> Vec<(&'static str, &'static str)> {
    let mut fields: Vec<_> = GET
        .iter()
        .filter(|(known, _)| *known != name)
        .copied()
        .collect();
    if let Some(value) = value {
        let name = GET.iter().find(|(known, _)| *known == name).unwrap().0;
        fields.insert(0, (name, value));
    }
    fields.extend(more);
    fields
}

#[test]
fn heads_that_break_the_grammar_reach_no_origin() {
    let origin = Origin::with_body("hello");
    let proxy = proxy("", &origin);
    let whole = |more: Fields| with("", None, more);
    for fields in [
        with(":method", None, &[]),
        with(":scheme", None, &[]),
        with(":path", None, &[]),
        with(":path", Some(""), &[]),
        with(":method", Some("GE T"), &[]),
        with(":path", Some("/a b"), &[]),
        with(":path", Some("/ HTTP/1.1\r\nX: y"), &[]),
        with(":authority", Some("h\r\nX: y"), &[]),
        with(":authority", Some("h/../x"), &[]),
        with(":method", Some("CONNECT"), &[]),
        whole(&[(":path", "/again")]),
        whole(&[(":status", "200")]),
        whole(&[(":unknown", "x")]),
        whole(&[("a", "b"), (":late", "x")]),
        whole(&[("Upper", "x")]),
        whole(&[("", "x")]),
        whole(&[("a b", "x")]),
        whole(&[("a:", "x")]),
        whole(&[("a", "x\r\nEvil: y")]),
        whole(&[("a", "x\ny")]),
        whole(&[("a", "x\0y")]),
        whole(&[("connection", "close")]),
        whole(&[("keep-alive", "5")]),
        whole(&[("proxy-connection", "close")]),
        whole(&[("transfer-encoding", "chunked")]),
        whole(&[("upgrade", "websocket")]),
        whole(&[("te", "gzip")]),
        whole(&[("te", "trailers, gzip")]),
        whole(&[("content-length", "1")]),
        whole(&[("content-length", "x")]),
        whole(&[("content-length", "0"), ("content-length", "1")]),
        whole(&[(":protocol", "websocket")]),
    ] {
        let fate = fate(&proxy, &fields, &[]);
        assert!(!matches!(fate, Fate::Answer(_)), "{fields:?}: {fate:?}");
    }
    assert_eq!(origin.requests().len(), 0);
}

#[test]
fn targets_that_name_no_server_or_two_are_bad_requests() {
    let origin = Origin::with_body("hello");
    let proxy = proxy("", &origin);
    let whole = |more: Fields| with("", None, more);
    for fields in [
        whole(&[("host", "other")]),
        whole(&[("host", "h:81")]),
        whole(&[("host", "h"), ("host", "h")]),
        whole(&[("host", "u@h")]),
        with(":authority", None, &[]),
        with(":authority", None, &[("host", "a"), ("host", "b")]),
        with(":authority", Some("u@h"), &[]),
        with(":authority", Some("h:0"), &[]),
        with(":path", Some("a"), &[]),
        with(":path", Some("?a"), &[]),
        with(":path", Some("http://other/"), &[]),
        with(":path", Some("*"), &[]),
        with(":scheme", Some("ftp"), &[]),
    ] {
        let fate = fate(&proxy, &fields, &[]);
        let refused = Fate::Answer(400);
        assert!(
            fate == refused || fate == Fate::Reset(PROTOCOL_ERROR),
            "{fields:?}: {fate:?}"
        );
    }
    assert_eq!(origin.requests().len(), 0);
    for fields in [
        whole(&[("host", "H:80")]),
        with(":authority", None, &[("host", "h")]),
        with(":authority", Some("H:80"), &[]),
    ] {
        assert_eq!(fate(&proxy, &fields, &[]), Fate::Answer(200), "{fields:?}");
    }
    assert_eq!(
        fate(&proxy, &with(":method", Some("OPTIONS"), &[]), &[]),
        Fate::Answer(200)
    );
}

#[test]
fn a_body_of_another_length_than_it_says_is_no_request() {
    let origin = Origin::answering(|request| ok(&request.body.len().to_string()));
    let proxy = proxy("", &origin);
    let post = with(":method", Some("POST"), &[("content-length", "5")]);
    for body in [
        &[&b"four"[..]] as &[&[u8]],
        &[b"sixsix"],
        &[b"fo", b"ur"],
        &[b""],
    ] {
        assert_eq!(
            fate(&proxy, &post, body),
            Fate::Reset(PROTOCOL_ERROR),
            "{body:?}"
        );
    }
    let whole = origin
        .requests()
        .into_iter()
        .filter(|seen| seen.body.len() >= 5);
    assert_eq!(whole.count(), 0, "no origin saw a whole one");
    assert_eq!(fate(&proxy, &post, &[b"fi", b"ve5"]), Fate::Answer(200));
}

#[test]
fn what_an_origin_gets_is_one_request_of_http_1() {
    let origin = Origin::with_body("hello");
    let proxy = proxy("", &origin);
    let fields = with(
        ":path",
        Some("/p?q"),
        &[
            ("cookie", "a=1"),
            ("host", "h"),
            ("x", "y"),
            ("cookie", "b=2"),
            ("cookie", "c=3"),
            ("te", "trailers"),
            ("http2-settings", "AAMAAABkAAQAAP__"),
        ],
    );
    assert_eq!(fate(&proxy, &fields, &[]), Fate::Answer(200));
    let seen = &origin.requests()[0];
    assert_eq!(seen.target(), "/p?q");
    assert_eq!(seen.fields("cookie"), ["a=1; b=2; c=3"]);
    assert_eq!(seen.fields("host"), [origin.address.to_string()]);
    for gone in [
        "te",
        "connection",
        "transfer-encoding",
        "content-length",
        "http2-settings",
    ] {
        assert_eq!(seen.fields(gone), [""; 0], "{gone}");
    }
    assert!(
        seen.head.lines().skip(1).all(|line| !line.starts_with(':')),
        "{}",
        seen.head
    );
}

#[test]
fn a_refused_stream_leaves_the_others_alone() {
    let origin = Origin::with_body("hello");
    let proxy = proxy("", &origin);
    let mut client = Raw::connect(proxy.address);
    client.head(
        1,
        true,
        &with("", None, &[("transfer-encoding", "chunked")]),
    );
    client.head(3, true, &with("", None, &[("host", "other")]));
    client.head(5, true, GET);
    let mut frames = client.settle();
    while !frames
        .iter()
        .any(|frame| frame.kind == DATA && frame.stream == 5)
    {
        frames.push(client.next().unwrap());
    }
    let first = frames.iter().find(|frame| frame.stream == 1).unwrap();
    assert_eq!((first.kind, first.code()), (RST_STREAM, PROTOCOL_ERROR));
    assert_eq!(origin.requests().len(), 1);
    assert_eq!(proxy.counter(Metric::Http2StreamErrors), 1);
    assert_eq!(proxy.counter(Metric::Http2ConnectionErrors), 0);
}

#[test]
fn a_head_may_come_in_continuations_and_with_padding_and_priority() {
    let origin = Origin::with_body("hello");
    let proxy = proxy("", &origin);
    let mut client = Raw::connect(proxy.address);
    let bytes = block(GET);
    let (first, rest) = bytes.split_at(7);
    let (second, third) = rest.split_at(1);
    client.frame(HEADERS, END_STREAM, 1, first);
    client.frame(CONTINUATION, 0, 1, second);
    client.frame(CONTINUATION, END_HEADERS, 1, third);
    assert_eq!(client.until(DATA).last().unwrap().payload, b"hello");
    let padded = [&[3, 0, 0, 0, 1, 7], &bytes[..], &[0; 3]].concat();
    client.frame(HEADERS, END_STREAM | END_HEADERS | 0x08 | 0x20, 3, &padded);
    assert_eq!(client.until(DATA).last().unwrap().payload, b"hello");
}

#[test]
fn fields_above_the_limit_are_431_and_the_connection_goes_on() {
    let origin = Origin::with_body("hello");
    let proxy = proxy(
        "CONFIG proxy.config.http2.max_header_list_size INT 1024\n",
        &origin,
    );
    run(async {
        let client = H2Client::connect(proxy.address).await;
        let mut large = request("GET", "/");
        large
            .headers_mut()
            .insert("x", "y".repeat(1000).parse().unwrap());
        assert_eq!(client.ask(large).await.unwrap().status, 431);
        assert_eq!(client.get("/").await.status, 200);
    });
    assert_eq!(proxy.counter(Metric::Http2HeaderListExceeded), 1);
}

/// In HTTP/1 the blanks would be no part of the value.
#[test]
fn a_value_with_blanks_around_it_is_malformed_rfc_9113_8_2_1() {
    let origin = Origin::with_body("hello");
    let proxy = proxy("", &origin);
    for value in [" a", "a ", "\ta", "a\t", " "] {
        let mut fields = GET.to_vec();
        fields.push(("x", value));
        let reset = Fate::Reset(PROTOCOL_ERROR);
        assert_eq!(fate(&proxy, &fields, &[]), reset, "{value:?}");
    }
    assert_eq!(origin.requests().len(), 0);
    let within = with("", None, &[("x", "a b\tc"), ("y", "")]);
    assert_eq!(fate(&proxy, &within, &[]), Fate::Answer(200));
}
