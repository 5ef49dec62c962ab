//! Whole exchanges over a scripted socket, cut at every byte where it matters.

use super::*;
use crate::proxy::client::{BodyLength, ClientRead, ClientWrite};
use bytes::Bytes;
use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex};

type Conn = ClientConn<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>;

fn conn() -> (Conn, DuplexStream) {
    let (ours, theirs) = duplex(1 << 16);
    let (read, write) = tokio::io::split(ours);
    (ClientConn::new(read, write, ConnOptions::default()), theirs)
}

/// Serves every request on the connection with its method, path and body.
async fn echo(mut conn: Conn) {
    while conn.ready().await {
        match conn.request().await {
            Ok(exchange) => answer(exchange).await,
            Err(error) => {
                let mut reply = conn.refuse();
                reply.begin(error.status().unwrap_or(StatusCode::IM_A_TEAPOT));
                reply.send(b"", &[]).await.unwrap();
            }
        }
    }
    conn.close().await;
}

async fn answer<R, W>(mut exchange: Exchange<'_, R, W>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let path = exchange.head.url().map_or("-", |url| url.path()).to_owned();
    let mut text = format!("{} {path} ", exchange.head.method).into_bytes();
    if !path.starts_with("/unread") {
        exchange.body.invite(&mut exchange.reply).await.unwrap();
        loop {
            match exchange.body.next().await {
                Ok(Some(part)) => text.extend_from_slice(&part),
                Ok(None) => break,
                Err(_) => return refuse_body(exchange.reply).await,
            }
        }
    }
    exchange.reply.begin(StatusCode::OK);
    exchange
        .reply
        .send(b"", &[Bytes::from(text)])
        .await
        .unwrap();
}

async fn refuse_body<W: AsyncWrite + Unpin>(mut reply: Reply<'_, W>) {
    reply.close_after();
    reply.begin(StatusCode::BAD_REQUEST);
    reply.send(b"", &[]).await.unwrap();
}

/// What comes back for `input`, sent in pieces of `step` bytes.
async fn talk(input: &[u8], step: usize) -> String {
    let (conn, mut peer) = conn();
    let script = async {
        for piece in input.chunks(step) {
            peer.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
        peer.shutdown().await.unwrap();
        let mut seen = String::new();
        peer.read_to_string(&mut seen).await.unwrap();
        seen
    };
    tokio::join!(echo(conn), script).1
}

async fn statuses(input: &[u8]) -> Vec<String> {
    let seen = talk(input, input.len()).await;
    let answers = seen.split("HTTP/1.").skip(1);
    let codes = answers.map(|answer| answer.split(' ').nth(1).unwrap());
    codes.map(str::to_owned).collect()
}

#[tokio::test]
async fn any_segmentation_gives_the_same_answers() {
    let input = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n\
        POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello\
        POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
        3;x=y\r\nwor\r\n2\r\nld\r\n0\r\nT: 1\r\n\r\n\
        GET http://h/d HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    let whole = talk(input, input.len()).await;
    for expected in ["GET /a ", "POST /b hello", "POST /c world", "GET /d "] {
        assert!(whole.contains(expected), "{whole}");
    }
    assert!(whole.contains("Connection: close\r\n"), "{whole}");
    for step in [1, 2, 3, 7, 64] {
        assert_eq!(talk(input, step).await, whole, "in steps of {step}");
    }
}

#[tokio::test]
async fn http10_closes_unless_asked_to_keep_alive() {
    let get = |fields: &str| format!("GET http://h/ HTTP/1.0\r\n{fields}\r\n");
    for (fields, kept) in [
        ("", false),
        ("Connection: Keep-Alive\r\n", true),
        ("Proxy-Connection: Keep-Alive\r\n", true),
        (
            "Connection: close\r\nProxy-Connection: keep-alive\r\n",
            false,
        ),
    ] {
        let two = get(fields) + &get("");
        let answers = statuses(two.as_bytes()).await.len();
        assert_eq!(answers, if kept { 2 } else { 1 }, "{fields}");
    }
}

#[tokio::test]
async fn http11_keeps_alive_unless_told_to_close() {
    for (field, answers) in [
        ("", 2),
        ("Connection: close\r\n", 1),
        ("Connection: x, CLOSE\r\n", 1),
        ("Proxy-Connection: close\r\n", 1),
    ] {
        let get = format!("GET / HTTP/1.1\r\nHost: h\r\n{field}\r\n");
        assert_eq!(
            statuses(get.repeat(2).as_bytes()).await.len(),
            answers,
            "{field}"
        );
    }
}

#[tokio::test]
async fn a_head_that_cannot_be_trusted_is_refused_and_the_connection_ends() {
    let next = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let long = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(70_000));
    let huge = format!(
        "GET / HTTP/1.1\r\nHost: h\r\nA: {}\r\n\r\n",
        "a".repeat(140_000)
    );
    let many = format!(
        "GET / HTTP/1.1\r\nHost: h\r\n{}\r\n",
        "A: b\r\n".repeat(1001)
    );
    for (head, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("GET / HTTP/1.1\nHost: h\n\n", "400"),
        ("GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost : h\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", "400"),
        (
            "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: +5\r\n\r\n",
            "400",
        ),
        (
            "GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n",
            "400",
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: x\r\n\r\n",
            "417",
        ),
        (long.as_str(), "414"),
        (huge.as_str(), "431"),
        (many.as_str(), "431"),
    ] {
        let input = format!("{head}{next}");
        let shown = head.get(..60).unwrap_or(head);
        assert_eq!(statuses(input.as_bytes()).await, [status], "{shown}");
    }
}

#[tokio::test]
async fn a_broken_chunked_body_ends_the_connection() {
    let next = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    for body in [
        "2\r\nabXX0\r\n\r\n",
        "0\r\n\n",
        "2\r\r;a\r\nab\r\n0\r\n\r\n",
        "5;a=\"x\r\ny\"\r\n",
    ] {
        let input =
            format!("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{body}{next}");
        assert_eq!(statuses(input.as_bytes()).await, ["400"], "{body:?}");
    }
}

#[tokio::test]
async fn an_unread_body_is_read_past_or_ends_the_connection() {
    let post = |bytes: usize| {
        let body = "x".repeat(bytes);
        format!("POST /unread HTTP/1.1\r\nHost: h\r\nContent-Length: {bytes}\r\n\r\n{body}")
    };
    let next = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(statuses((post(1000) + next).as_bytes()).await.len(), 2);
    assert_eq!(statuses((post(100_000) + next).as_bytes()).await.len(), 1);
}

#[tokio::test]
async fn an_expecting_client_is_invited_only_when_the_body_is_wanted() {
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\nok"
        )
    };
    let next = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let wanted = head("/") + next;
    assert_eq!(statuses(wanted.as_bytes()).await, ["100", "200", "200"]);
    let unwanted = head("/unread") + next;
    assert_eq!(statuses(unwanted.as_bytes()).await, ["200"]);
    let old = head("/").replace("HTTP/1.1", "HTTP/1.0");
    assert_eq!(statuses(old.as_bytes()).await, ["200"]);
}

#[tokio::test]
async fn empty_lines_between_requests_are_passed_over() {
    let input = b"\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(statuses(input).await, ["200", "200"]);
}

#[tokio::test(start_paused = true)]
async fn a_dripping_head_is_answered_408() {
    let (conn, mut peer) = conn();
    let script = async {
        let mut buffer = [0; 12];
        for byte in b"GET / HTTP/1.1\r\nA: ".iter().cycle() {
            tokio::select! {
                read = peer.read_exact(&mut buffer) => {
                    read.unwrap();
                    break;
                }
                () = tokio::time::sleep(std::time::Duration::from_secs(5)) => {}
            }
            peer.write_all(&[*byte]).await.unwrap();
        }
        drop(peer);
        buffer
    };
    let (_, seen) = tokio::join!(echo(conn), script);
    assert_eq!(&seen, b"HTTP/1.1 408");
}

#[tokio::test]
async fn a_reply_left_unwhole_forbids_a_clean_close() {
    let (mut conn, mut peer) = conn();
    peer.write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        .await
        .unwrap();
    assert!(conn.ready().await);
    let mut exchange = conn.request().await.unwrap();
    exchange.reply.begin(StatusCode::OK);
    let length = BodyLength::Unknown;
    exchange.reply.start(b"", length).await.unwrap();
    assert!(!conn.ready().await);
    assert!(!conn.close().await);
}

#[tokio::test]
async fn a_tunnel_carries_bytes_as_they_are_both_ways() {
    let (mut conn, mut peer) = conn();
    peer.write_all(b"CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n\x16\x03")
        .await
        .unwrap();
    assert!(conn.ready().await);
    let exchange = conn.request().await.unwrap();
    assert_eq!(exchange.head.method, Method::CONNECT);
    let (mut up, mut down) = (exchange.body.into_tunnel(), exchange.reply);
    down.begin(StatusCode::OK);
    down.start_tunnel().await.unwrap();
    down.chunk(Bytes::from_static(b"\x17")).await.unwrap();
    assert_eq!(up.next().await.unwrap().unwrap(), &b"\x16\x03"[..]);
    peer.shutdown().await.unwrap();
    assert_eq!(up.next().await.unwrap(), None);
    down.end_tunnel().await;
    let mut seen = Vec::new();
    peer.read_to_end(&mut seen).await.unwrap();
    assert_eq!(seen, b"HTTP/1.1 200 OK\r\n\r\n\x17");
}
