//! What goes over the wire for each kind of response.

use super::*;
use crate::proxy::h1::recorder::{Recorder, Writes};
use crate::proxy::h1::write::WriteSide;
use bytes::Bytes;
use http::HeaderValue;
use std::time::Duration;
use tokio::io::{AsyncReadExt, DuplexStream, duplex};

const V11: Asker = Asker {
    keep_alive: true,
    ..Asker::UNKNOWN
};

const V10: Asker = Asker { minor: 0, ..V11 };

fn side(asker: Asker) -> (WriteSide<DuplexStream>, DuplexStream) {
    let (ours, theirs) = duplex(1 << 20);
    let mut side = WriteSide::new(ours, Duration::from_secs(5));
    side.begin(asker);
    (side, theirs)
}

async fn wire(side: WriteSide<DuplexStream>, mut peer: DuplexStream) -> String {
    drop(side);
    let mut seen = String::new();
    peer.read_to_string(&mut seen).await.unwrap();
    seen
}

async fn whole(asker: Asker, status: u16, body: &'static str) -> String {
    let (mut side, peer) = side(asker);
    let mut reply = Reply::new(&mut side);
    reply.begin(StatusCode::from_u16(status).unwrap());
    reply.field("Age", b"7");
    let body = [Bytes::from_static(body.as_bytes())];
    reply.send(b"ETag: \"a\"\r\n", &body).await.unwrap();
    assert!(reply.is_whole());
    wire(side, peer).await
}

#[tokio::test]
async fn a_stored_response_is_status_dynamic_fields_stored_fields_body() {
    assert_eq!(
        whole(V11, 200, "hello").await,
        "HTTP/1.1 200 OK\r\nAge: 7\r\nContent-Length: 5\r\nETag: \"a\"\r\n\r\nhello"
    );
}

#[tokio::test]
async fn a_stored_response_is_one_write_that_copies_neither_fields_nor_body() {
    let (ours, _peer) = duplex(1 << 20);
    let writes = Writes::default();
    let mut side = WriteSide::new(Recorder::new(ours, &writes), Duration::from_secs(5));
    side.begin(V11);
    let mut reply = Reply::new(&mut side);
    reply.begin(StatusCode::OK);
    reply.field("Age", b"7");
    let stored = b"ETag: \"a\"\r\n";
    let body = [Bytes::from_static(b"hello "), Bytes::from_static(b"world")];
    reply.send(stored, &body).await.unwrap();
    let writes = writes.take();
    let [write] = &*writes else {
        panic!("{} writes: {writes:?}", writes.len());
    };
    let dynamic = "HTTP/1.1 200 OK\r\nAge: 7\r\nContent-Length: 11\r\n";
    let texts: Vec<_> = write.iter().map(|part| &*part.text).collect();
    let expected = [dynamic, "ETag: \"a\"\r\n", "\r\n", "hello ", "world"];
    assert_eq!(texts, expected);
    let places = [1, 3, 4].map(|index| write[index].at);
    let expected = [stored.as_ptr(), body[0].as_ptr(), body[1].as_ptr()];
    assert_eq!(places, expected);
}

#[tokio::test]
async fn an_http10_proxy_connection_is_kept_alive_in_its_own_words() {
    let asker = Asker {
        proxy_connection: true,
        ..V10
    };
    assert_eq!(
        whole(asker, 200, "hi").await,
        "HTTP/1.0 200 OK\r\nAge: 7\r\nContent-Length: 2\r\n\
         Proxy-Connection: keep-alive\r\nETag: \"a\"\r\n\r\nhi"
    );
    let plain = whole(V10, 200, "hi").await;
    assert!(plain.contains("\r\nConnection: keep-alive\r\n"), "{plain}");
}

#[tokio::test]
async fn head_has_the_length_without_the_body() {
    let asker = Asker {
        is_head: true,
        ..V11
    };
    let seen = whole(asker, 200, "hello").await;
    assert!(seen.contains("Content-Length: 5\r\n"), "{seen}");
    assert!(seen.ends_with("\r\n\r\n"), "{seen}");
}

#[tokio::test]
async fn neither_204_nor_304_has_length_coding_or_body() {
    for status in [204, 304] {
        let seen = whole(V11, status, "x").await;
        assert!(!seen.contains("Content-Length"), "{seen}");
        assert!(seen.ends_with("\r\n\r\n"), "{seen}");
    }
}

async fn streamed(asker: Asker, length: BodyLength, trailers: Option<&HeaderMap>) -> String {
    let (mut side, peer) = side(asker);
    let mut reply = Reply::new(&mut side);
    reply.begin(StatusCode::OK);
    reply.start(b"", length).await.unwrap();
    reply.chunk(Bytes::from_static(b"hello ")).await.unwrap();
    reply.chunk(Bytes::new()).await.unwrap();
    reply.chunk(Bytes::from_static(b"world")).await.unwrap();
    reply.finish(trailers).await.unwrap();
    assert!(reply.is_whole());
    wire(side, peer).await
}

#[tokio::test]
async fn an_unknown_length_is_chunked_to_http11_and_ended_by_close_to_http10() {
    assert_eq!(
        streamed(V11, BodyLength::Unknown, None).await,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
         6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n"
    );
    assert_eq!(
        streamed(V10, BodyLength::Unknown, None).await,
        "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nhello world"
    );
}

#[tokio::test]
async fn trailers_go_only_to_a_client_that_takes_them() {
    let mut trailers = HeaderMap::new();
    trailers.insert("digest", HeaderValue::from_static("1"));
    // RFC 9110 6.5.1: what frames a message is no trailer.
    trailers.insert("content-length", HeaderValue::from_static("9"));
    let taker = Asker {
        takes_trailers: true,
        ..V11
    };
    let with = streamed(taker, BodyLength::Unknown, Some(&trailers)).await;
    assert!(with.ends_with("0\r\nDigest: 1\r\n\r\n"), "{with}");
    let without = streamed(V11, BodyLength::Unknown, Some(&trailers)).await;
    assert!(without.ends_with("0\r\n\r\n"), "{without}");
}

#[tokio::test]
async fn a_body_off_its_length_is_never_whole() {
    for (length, off) in [(12, 1), (10, 1)] {
        let (mut side, _peer) = side(V11);
        let mut reply = Reply::new(&mut side);
        reply.begin(StatusCode::OK);
        reply.start(b"", BodyLength::Known(length)).await.unwrap();
        let sent = reply.chunk(Bytes::from_static(b"hello world")).await;
        let error = match sent {
            Ok(()) => reply.finish(None).await.unwrap_err(),
            Err(error) => error,
        };
        assert!(
            matches!(error, ReplyError::Length(by) if by == off),
            "{error}"
        );
        assert!(!reply.is_whole());
    }
}

#[tokio::test]
async fn interim_responses_go_to_http11_only_and_leave_the_final_head_free() {
    let (mut eleven, peer) = side(V11);
    let mut reply = Reply::new(&mut eleven);
    let mut fields = HeaderMap::new();
    fields.insert("link", HeaderValue::from_static("</a>"));
    let hints = StatusCode::from_u16(103).unwrap();
    reply.interim(hints, &fields).await.unwrap();
    assert!(!reply.is_started());
    assert!(wire(eleven, peer).await.ends_with("Link: </a>\r\n\r\n"));
    let (mut ten, peer) = side(V10);
    let mut reply = Reply::new(&mut ten);
    reply.interim(hints, &fields).await.unwrap();
    assert_eq!(wire(ten, peer).await, "");
}

#[tokio::test]
async fn what_was_sent_is_counted_by_head_and_body() {
    let (mut side, peer) = side(V11);
    let mut reply = Reply::new(&mut side);
    reply.begin(StatusCode::OK);
    reply.start(b"", BodyLength::Unknown).await.unwrap();
    reply.chunk(Bytes::from_static(b"hello")).await.unwrap();
    reply.finish(None).await.unwrap();
    let sent = reply.sent();
    let seen = wire(side, peer).await;
    assert_eq!(sent.body, 5);
    assert_eq!(sent.head + sent.body, count(seen.len()));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_given_up() {
    let (ours, _peer) = duplex(16);
    let mut side = WriteSide::new(ours, Duration::from_secs(5));
    side.begin(V11);
    let mut reply = Reply::new(&mut side);
    reply.begin(StatusCode::OK);
    let error = reply.send(b"", &[]).await.unwrap_err();
    assert!(matches!(error, ReplyError::Stalled(_)), "{error}");
    assert!(!reply.is_whole());
}

#[tokio::test]
async fn bodies_of_more_parts_than_one_write_takes_arrive_whole() {
    let (ours, mut peer) = duplex(7);
    let mut side = WriteSide::new(ours, Duration::from_secs(5));
    side.begin(V11);
    let body: Vec<Bytes> = (0..500).map(|n| Bytes::from(format!("{n},"))).collect();
    let expected: String = (0..500).map(|n| format!("{n},")).collect();
    let write = async move {
        let mut reply = Reply::new(&mut side);
        reply.begin(StatusCode::OK);
        reply.send(b"", &body).await.unwrap();
        drop(side);
    };
    let mut seen = String::new();
    let read = peer.read_to_string(&mut seen);
    let (_, read) = tokio::join!(write, read);
    read.unwrap();
    assert!(seen.ends_with(&format!("\r\n\r\n{expected}")), "{seen}");
}
