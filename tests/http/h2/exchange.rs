//! Requests and responses: heads, bodies both ways, trailers, 1xx, and the pace.

use super::client::{H2Client, request, run, whole};
use super::raw::{DATA, END_STREAM, GET, HEADERS, INTERNAL_ERROR, RST_STREAM, Raw, WINDOW_UPDATE};
use super::{ON, proxy};
use crate::support::{Origin, Proxy, ok, until};
use bytes::Bytes;
use h2::client::Builder;
use http::{HeaderMap, Request};
use std::future::poll_fn;
use std::io::Write;
use std::net::TcpListener;
use std::sync::{Arc, Barrier};
use std::time::Duration;
use strata::metrics::Metric;

const CACHED: &[u8] =
    b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn a_request_goes_through_cache_and_rules_as_one_of_http_1_does() {
    let origin = Origin::answering(|_| CACHED.to_vec());
    let proxy = proxy("", &origin);
    run(async {
        let client = H2Client::connect(proxy.address).await;
        for age in ["", "0"] {
            let page = client.get("/a?b").await;
            assert_eq!((page.status, page.text().as_str()), (200, "hello"));
            assert_eq!(page.field("content-length"), "5");
            assert_eq!(page.field("age"), age);
        }
        let head = client.ask(request("HEAD", "/a?b")).await.unwrap();
        assert_eq!((head.field("content-length"), head.body.len()), ("5", 0));
        let mut part = request("GET", "/a?b");
        part.headers_mut()
            .insert("range", "bytes=1-2".parse().unwrap());
        let part = client.ask(part).await.unwrap();
        assert_eq!((part.status, part.text().as_str()), (206, "el"));
        let purge = client.ask(request("PURGE", "/a?b")).await.unwrap();
        assert_eq!(purge.status, 200);
        assert_eq!(client.get("/a?b").await.status, 200);
    });
    let seen = origin.requests();
    assert_eq!(seen.len(), 2, "one of each stretch between purges");
    assert!(
        seen[0].head.starts_with("GET /a?b HTTP/1.1\r\n"),
        "{}",
        seen[0].head
    );
    assert!(
        seen[0].fields("via")[0].starts_with("2.0 "),
        "{}",
        seen[0].head
    );
    assert_eq!(seen[0].fields("transfer-encoding"), [""; 0]);
    until("accounts", || {
        proxy.counter(Metric::CurrentClientTransactions) == 0
    });
    assert_eq!(
        proxy.counter(Metric::OutcomeHitRam),
        3,
        "GET, HEAD and a part"
    );
    assert_eq!(proxy.counter(Metric::Http2Streams), 6);
    assert_eq!(proxy.counter(Metric::Http2Connections), 1);
}

#[test]
fn content_passes_both_ways_with_and_without_a_length() {
    let origin = Origin::answering(|request| ok(std::str::from_utf8(&request.body).unwrap()));
    let proxy = proxy("", &origin);
    let body: String = (0..200_000).map(|n| format!("{n},")).collect();
    run(async {
        let client = H2Client::connect(proxy.address).await;
        for (method, length) in [("POST", Some(body.len())), ("PUT", None)] {
            let mut head = request(method, "/");
            if let Some(length) = length {
                head.headers_mut().insert("content-length", length.into());
            }
            let (response, mut send) = client.begin(head, false).await;
            let sending = async {
                let mut rest = Bytes::from(body.clone());
                while !rest.is_empty() {
                    send.reserve_capacity(rest.len().min(50_000));
                    let room = poll_fn(|cx| send.poll_capacity(cx)).await;
                    let now = rest.split_to(room.unwrap().unwrap().min(rest.len()));
                    send.send_data(now, rest.is_empty()).unwrap();
                }
            };
            let (_, response) = tokio::join!(sending, response);
            let answer = whole(response.unwrap()).await.unwrap();
            assert!(
                answer.text() == body,
                "{method}: {} bytes",
                answer.body.len()
            );
        }
    });
    let seen = origin.requests();
    assert_eq!(seen[0].fields("content-length"), [body.len().to_string()]);
    assert_eq!(seen[1].fields("transfer-encoding"), ["chunked"]);
}

#[test]
fn trailers_go_to_who_takes_them_and_none_that_control() {
    let origin = Origin::answering(|_| {
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\
          Sum: 7\r\nSet-Cookie: a=b\r\nConnection: x\r\n\r\n"
            .to_vec()
    });
    let proxy = proxy("", &origin);
    run(async {
        let client = H2Client::connect(proxy.address).await;
        for takes in [true, false] {
            let mut head = request("POST", "/");
            if takes {
                head.headers_mut().insert("te", "trailers".parse().unwrap());
            }
            let answer = client.ask(head).await.unwrap();
            assert_eq!(answer.text(), "hi");
            assert_eq!(answer.field("transfer-encoding"), "");
            let mut wanted = HeaderMap::new();
            wanted.insert("sum", "7".parse().unwrap());
            assert_eq!(answer.trailers, takes.then_some(wanted));
        }
    });
}

#[test]
fn a_request_s_trailers_end_its_body() {
    let origin = Origin::answering(|request| ok(std::str::from_utf8(&request.body).unwrap()));
    let proxy = proxy("", &origin);
    run(async {
        let client = H2Client::connect(proxy.address).await;
        let (response, mut send) = client.begin(request("POST", "/"), false).await;
        send.send_data(Bytes::from_static(b"body"), false).unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("sum", "7".parse().unwrap());
        trailers.insert("host", "evil".parse().unwrap());
        send.send_trailers(trailers).unwrap();
        assert_eq!(whole(response.await.unwrap()).await.unwrap().text(), "body");
    });
}

fn expecting(value: &str) -> Request<()> {
    let mut head = request("POST", "/");
    head.headers_mut().insert("expect", value.parse().unwrap());
    head
}

#[test]
fn a_client_that_waits_is_invited_and_early_hints_come_before_the_answer() {
    let origin = Origin::speaking(|request, mut stream| {
        let hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
        stream.write_all(hint).is_ok()
            && stream
                .write_all(&ok(std::str::from_utf8(&request.body).unwrap()))
                .is_ok()
    });
    let proxy = proxy("", &origin);
    run(async {
        let client = H2Client::connect(proxy.address).await;
        let (mut response, mut send) = client.begin(expecting("100-continue"), false).await;
        let invited = poll_fn(|cx| response.poll_informational(cx)).await;
        assert_eq!(invited.unwrap().unwrap().status(), 100);
        send.send_data(Bytes::from_static(b"body"), true).unwrap();
        let hint = poll_fn(|cx| response.poll_informational(cx)).await;
        let hint = hint.unwrap().unwrap();
        assert_eq!(
            (hint.status().as_u16(), &hint.headers()["link"]),
            (103, &"</a>".parse().unwrap())
        );
        assert_eq!(whole(response.await.unwrap()).await.unwrap().text(), "body");
        let (refused, _send) = client.begin(expecting("something"), false).await;
        assert_eq!(refused.await.unwrap().status(), 417);
    });
    assert_eq!(origin.requests()[0].fields("expect"), [""; 0]);
}

#[test]
fn a_slow_reader_is_sent_no_more_than_its_window() {
    let body = "x".repeat(1_000_000);
    let answer = ok(&body);
    let origin = Origin::answering(move |_| answer.clone());
    let proxy = proxy("", &origin);
    let mut client = Raw::connect(proxy.address);
    client.head(1, true, GET);
    let bytes = |frames: &[super::raw::Frame]| -> usize {
        let data = frames.iter().filter(|frame| frame.kind == DATA);
        data.map(|frame| frame.payload.len()).sum()
    };
    let mut got = 0;
    while got < 65_535 {
        got += bytes(&client.until(DATA));
    }
    got += bytes(&client.settle());
    assert_eq!(got, 65_535, "the window of RFC 9113 6.9.2");
    let more = 1_000_000_u32.to_be_bytes();
    client
        .frame(WINDOW_UPDATE, 0, 0, &more)
        .frame(WINDOW_UPDATE, 0, 1, &more);
    let mut ended = false;
    while !ended {
        let frames = client.until(DATA);
        got += bytes(&frames);
        ended = frames
            .iter()
            .any(|frame| frame.kind == DATA && frame.flags & END_STREAM != 0);
    }
    assert_eq!(got, body.len());
}

#[test]
fn a_reset_stream_is_that_request_s_end_and_no_other_s() {
    let held = Arc::new(Barrier::new(2));
    let wait = Arc::clone(&held);
    let origin = Origin::answering(move |request| {
        if request.target() == "/slow" {
            wait.wait();
        }
        ok("hello")
    });
    let proxy = proxy("", &origin);
    run(async {
        let client = H2Client::connect(proxy.address).await;
        let (left, mut send) = client.begin(request("POST", "/slow"), false).await;
        let (kept, _) = client.begin(request("GET", "/slow"), true).await;
        while origin.requests().is_empty() {
            client.get("/other").await;
        }
        send.send_reset(h2::Reason::CANCEL);
        drop(left);
        while proxy.counter(Metric::OutcomeClientAbort) == 0 {
            client.get("/other").await;
        }
        held.wait();
        assert_eq!(whole(kept.await.unwrap()).await.unwrap().text(), "hello");
    });
    assert_eq!(proxy.counter(Metric::OutcomeClientAbort), 1);
}

#[test]
fn a_response_that_the_origin_cuts_off_is_reset_and_never_looks_whole() {
    for head in ["Content-Length: 50", "Transfer-Encoding: chunked"] {
        let part = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n5\r\nhel");
        let origin = Origin::speaking(move |request, mut stream| match request.target() {
            "/whole" => stream.write_all(&ok("whole")).is_ok(),
            _ => {
                stream.write_all(part.as_bytes()).unwrap();
                false
            }
        });
        let proxy = proxy("", &origin);
        let mut client = Raw::connect(proxy.address);
        client.head(1, true, GET);
        let frames = client.until(RST_STREAM);
        assert_eq!(frames.last().unwrap().code(), INTERNAL_ERROR, "{head}");
        let of_stream = frames
            .iter()
            .filter(|frame| frame.stream == 1 && frame.kind != RST_STREAM);
        assert!(
            of_stream.clone().all(|frame| frame.flags & END_STREAM == 0),
            "{head}"
        );
        assert!(of_stream.clone().any(|frame| frame.kind == HEADERS));
        let mut whole = GET.to_vec();
        whole[3].1 = "/whole";
        client.head(3, true, &whole);
        assert_eq!(client.until(DATA).last().unwrap().payload, b"whole");
    }
}

#[test]
fn many_streams_of_one_connection_are_served_side_by_side() {
    let origin = Origin::answering(|request| ok(request.target()));
    let proxy = proxy("", &origin);
    run(async {
        let mut builder = Builder::new();
        builder.initial_max_send_streams(100);
        let client = H2Client::connect_as(proxy.address, &builder).await;
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..500 {
            let client = client.clone();
            tasks.spawn(async move { (format!("/{n}"), client.get(&format!("/{n}")).await) });
        }
        for (path, answer) in tasks.join_all().await {
            assert_eq!(answer.text(), path);
        }
    });
    assert_eq!(proxy.counter(Metric::Http2StreamErrors), 0);
}

/// The origin does not read, so that the upload waits for room.
#[test]
fn a_client_that_resets_an_upload_frees_its_origin_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let rule = format!("map / http://{}/\n", listener.local_addr().unwrap());
    let proxy = Proxy::with(ON, &rule);
    run(async {
        let client = H2Client::connect(proxy.address).await;
        let (_response, mut send) = client.begin(request("POST", "/"), false).await;
        let part = Bytes::from(vec![b'x'; 60_000]);
        let mut sent = 0;
        // Until the sockets between proxy and origin are full.
        while sent < 64 << 20 {
            send.reserve_capacity(part.len());
            let room = poll_fn(|cx| send.poll_capacity(cx));
            let room = tokio::time::timeout(Duration::from_secs(1), room).await;
            let Ok(room) = room else { break };
            let room = room.unwrap().unwrap();
            send.send_data(part.slice(..room.min(part.len())), false)
                .unwrap();
            sent += room;
        }
        assert!(sent < 64 << 20, "the origin reads nothing");
        send.send_reset(h2::Reason::CANCEL);
        while proxy.counter(Metric::CurrentClientTransactions) > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

/// Whether the connection's window is opened wide for an upload.
fn is_widened(client: &mut Raw, stream: u32) -> bool {
    let mut post = GET.to_vec();
    post[0].1 = "POST";
    let frames = client.head(stream, false, &post).settle();
    let wide = |frame: &&super::raw::Frame| {
        let by = frame.payload.first_chunk().copied();
        let by = u32::from_be_bytes(by.unwrap_or_default());
        (frame.kind, frame.stream) == (WINDOW_UPDATE, 0) && by > 500_000
    };
    let early = client.settle();
    frames.iter().chain(&early).any(|frame| wide(&frame))
}

/// However many connections upload to origins that do not read.
#[test]
fn what_is_held_of_uploads_is_bounded_over_all_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let rule = format!("map / http://{}/\n", listener.local_addr().unwrap());
    let proxy = Proxy::with(ON, &rule);
    let mut clients: Vec<_> = (0..80).map(|_| Raw::connect(proxy.address)).collect();
    let wide = clients.iter_mut().map(|client| is_widened(client, 1));
    let wide = wide.filter(|widened| *widened).count();
    assert!((64..70).contains(&wide), "{wide} of 1 MiB in 64");
    drop(clients.remove(0));
    until("the end", || {
        proxy.counter(Metric::Http2CurrentConnections) == 79
    });
    assert!(is_widened(&mut clients[78], 3));
}
