//! Connections: which version they speak, and how they end.

use super::client::{H2Client, request, run, whole};
use super::raw::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frame, GET, GOAWAY, HEADERS, PING, PREFACE,
    RST_STREAM, Raw, SETTINGS, block, frame,
};
use super::{ON, proxy};
use crate::support::{Client, Origin, Proxy, ok, until};
use std::sync::{Arc, Barrier};
use strata::metrics::Metric;

const H1: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

#[test]
fn without_the_record_the_preface_is_a_bad_request_of_http_1() {
    let origin = Origin::with_body("hello");
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    assert_eq!(client.ask(PREFACE).status, 505);
    assert_eq!(proxy.counter(Metric::Http2Connections), 0);
}

#[test]
fn http_1_is_served_beside_http_2_however_its_first_bytes_come() {
    let origin = Origin::answering(|request| ok(&request.head));
    let proxy = proxy("", &origin);
    for cut in [0, 1, 3] {
        let mut client = Client::connect(proxy.address);
        let ask = format!("PRIM / HTTP/1.1\r\nHost: h\r\n\r\n{H1}");
        client.send(&ask.as_bytes()[..cut]);
        until("the first bytes", || {
            proxy.counter(Metric::NetReadBytes) >= u64::try_from(cut).unwrap()
        });
        client.send(&ask.as_bytes()[cut..]);
        assert!(
            client.response().unwrap().text().starts_with("PRIM / "),
            "{cut}"
        );
        assert!(
            client.response().unwrap().text().starts_with("GET / "),
            "{cut}"
        );
        drop(client);
    }
    let mut bad = Client::connect(proxy.address);
    assert_eq!(bad.ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\rx").status, 505);
    let mut cut = Raw::silent(proxy.address);
    for byte in PREFACE {
        cut.send(&[*byte]);
    }
    cut.frame(SETTINGS, 0, 0, b"").head(1, true, GET);
    assert_eq!(cut.until(DATA).last().unwrap().kind, DATA);
    assert_eq!(proxy.counter(Metric::Http2Connections), 1);
}

#[test]
fn a_draining_server_finishes_the_streams_it_has_and_takes_no_more() {
    let held = Arc::new(Barrier::new(2));
    let wait = Arc::clone(&held);
    let origin = Origin::answering(move |_| {
        wait.wait();
        ok("hello")
    });
    let proxy = proxy("", &origin);
    run(async {
        let client = H2Client::connect(proxy.address).await;
        let (response, _) = client.begin(request("GET", "/"), true).await;
        while origin.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        proxy.drain();
        while client.is_open().await {
            tokio::task::yield_now().await;
        }
        held.wait();
        assert_eq!(
            whole(response.await.unwrap()).await.unwrap().text(),
            "hello"
        );
    });
    proxy.ended();
}

#[test]
fn a_reload_lets_go_the_connections_whose_bounds_it_has_changed_and_no_others() {
    let origin = Origin::with_body("hello");
    let other = Origin::with_body("other");
    let proxy = proxy("", &origin);
    let mut client = Raw::connect(proxy.address);
    let bounds = format!("{ON}CONFIG proxy.config.http2.max_concurrent_streams_in INT 7\n");
    for (number, records, origin, body, is_let_go) in [
        (1, ON, &origin, b"hello", false),
        (3, ON, &other, b"other", false),
        (5, &bounds, &other, b"other", true),
    ] {
        proxy.reload(records, &origin.map("/"));
        client.head(number, true, GET);
        let mut frames = client.until(DATA);
        assert_eq!(frames.last().unwrap().payload, body);
        if is_let_go {
            frames.extend(client.until(GOAWAY));
        } else {
            frames.extend(client.settle());
        }
        let goaway = frames.iter().find(|frame| frame.kind == GOAWAY);
        assert_eq!(goaway.map(Frame::code), is_let_go.then_some(0), "{number}");
    }
    assert!(client.is_closed());
    let mut next = Raw::connect(proxy.address);
    next.head(1, true, GET);
    assert_eq!(next.until(DATA).last().unwrap().payload, b"other");
    assert!(next.settle().iter().all(|frame| frame.kind != GOAWAY));
}

/// Keeps `open` requests under way and begins the next with each that ends,
/// until the proxy says GOAWAY or `limit` were answered.
fn hurry(client: &mut Raw, open: u32, limit: u32, at: impl Fn(u32)) -> bool {
    for n in 0..open {
        client.head(2 * n + 1, true, GET);
    }
    let mut ended = 0;
    while let Some(frame) = client.next() {
        if frame.kind == GOAWAY {
            return true;
        }
        if matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0 {
            ended += 1;
            at(ended);
            client.head(2 * (open + ended) + 1, true, GET);
        }
        if ended == limit {
            break;
        }
    }
    false
}

/// A connection that always has one more request must hear of the drain too.
#[test]
fn a_client_that_never_pauses_is_asked_to_go_when_the_server_drains() {
    let origin = Origin::answering(|_| {
        let body = String::from_utf8(ok("hello")).unwrap();
        let fresh = "200 OK\r\nCache-Control: max-age=60";
        body.replacen("200 OK", fresh, 1).into_bytes()
    });
    let proxy = proxy("", &origin);
    Raw::connect(proxy.address).head(1, true, GET).until(DATA);
    let busy = |at: &dyn Fn(u32)| {
        let mut client = Raw::connect(proxy.address);
        client.wide();
        hurry(&mut client, 90, 6000, at)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| busy(&|_| {}));
        let told = busy(&|ended| {
            if ended == 500 {
                proxy.drain();
            }
        });
        assert!(told && other.join().unwrap(), "no word of the drain");
    });
}

#[test]
fn connections_that_say_nothing_do_not_hold_up_a_drain() {
    let origin = Origin::with_body("hello");
    let proxy = proxy("", &origin);
    let mut silent = Client::connect(proxy.address);
    let mut begun = Raw::silent(proxy.address);
    begun.send(&PREFACE[..10]);
    let mut deaf = Raw::connect(proxy.address);
    deaf.head(1, true, GET).until(DATA);
    let mut prefaced = Raw::silent(proxy.address);
    prefaced.send(PREFACE);
    until("all of them", || {
        proxy.counter(Metric::TotalClientConnections) == 4
            && proxy.counter(Metric::Http2Connections) == 2
            && proxy.counter(Metric::CurrentClientTransactions) == 0
    });
    proxy.drain();
    assert!(silent.is_closed());
    assert!(begun.is_closed());
    assert_eq!(deaf.goaway(), Some(0));
    assert!(deaf.is_closed(), "it answers no PING");
    assert!(prefaced.is_closed());
    proxy.ended();
}

/// Who navigates away cancels all that the page had asked for.
#[test]
fn a_burst_of_cancels_within_the_record_costs_no_connection() {
    let origin = Origin::with_body("hello");
    let proxy = proxy("", &origin);
    let mut client = Raw::connect(proxy.address);
    client.settle();
    let cancel = 8_u32.to_be_bytes();
    let asks =
        (0..100).flat_map(|n| frame(HEADERS, END_STREAM | END_HEADERS, 2 * n + 1, &block(GET)));
    let cancels = (0..100).flat_map(|n| frame(RST_STREAM, 0, 2 * n + 1, &cancel));
    let burst: Vec<u8> = asks.chain(cancels).collect();
    client.send(&burst);
    let frames = client.settle();
    assert!(
        frames.iter().all(|frame| frame.kind != GOAWAY),
        "{frames:?}"
    );
    client.head(999, true, GET);
    assert_eq!(client.until(DATA).last().unwrap().payload, b"hello");
}

#[test]
fn a_silent_connection_is_closed_in_order() {
    let origin = Origin::with_body("hello");
    let records = "CONFIG proxy.config.http2.no_activity_timeout_in INT 1\n";
    let proxy = proxy(records, &origin);
    let mut client = Raw::connect(proxy.address);
    client.head(1, true, GET);
    assert_eq!(client.goaway(), Some(0));
    assert!(client.is_closed());
    until("the account", || {
        proxy.counter(Metric::Http2SessionsInactive) == 1
    });
    until("the end", || {
        proxy.counter(Metric::Http2CurrentConnections) == 0
    });
}

#[test]
fn a_connection_that_never_gets_to_the_preface_is_closed() {
    let origin = Origin::with_body("hello");
    let records = "CONFIG proxy.config.http2.accept_no_activity_timeout INT 1\n\
                   CONFIG proxy.config.http.transaction_no_activity_timeout_in INT 1\n";
    let proxy = proxy(records, &origin);
    let mut client = Raw::silent(proxy.address);
    client.send(&PREFACE[..10]);
    assert!(client.is_closed());
}

#[test]
fn a_connection_that_is_cut_ends_its_transactions_and_is_counted() {
    let origin = Origin::answering(|_| {
        std::thread::park_timeout(std::time::Duration::from_secs(1));
        ok("late")
    });
    let proxy = proxy("", &origin);
    let mut client = Raw::connect(proxy.address);
    client.head(1, true, GET).head(3, true, GET);
    until("the request", || !origin.requests().is_empty());
    drop(client);
    until("the end", || {
        proxy.counter(Metric::Http2CurrentConnections) == 0
    });
    assert_eq!(proxy.counter(Metric::CurrentClientTransactions), 0);
    assert_eq!(proxy.counter(Metric::Http2CurrentStreams), 0);
    assert_eq!(proxy.counter(Metric::CurrentActiveClientConnections), 0);
}

#[test]
fn a_stream_too_many_is_refused_and_counted() {
    let held = Arc::new(Barrier::new(2));
    let wait = Arc::clone(&held);
    let origin = Origin::answering(move |_| {
        wait.wait();
        ok("hello")
    });
    let records = "CONFIG proxy.config.http2.max_concurrent_streams_in INT 1\n";
    let proxy = Proxy::with(&format!("{ON}{records}"), &origin.map("/"));
    let mut client = Raw::connect(proxy.address);
    client.settle();
    client.head(1, true, GET).head(3, true, GET);
    let refused = client.until(RST_STREAM);
    let last = refused.last().unwrap();
    assert_eq!((last.stream, last.code()), (3, 7));
    // Counted once it is written: the client may be faster.
    until("the count", || {
        proxy.counter(Metric::Http2StreamsRefused) == 1
    });
    held.wait();
    let frames = client.until(DATA);
    assert!(
        frames
            .iter()
            .any(|frame| frame.kind == HEADERS && frame.stream == 1)
    );
    assert!(frames.iter().all(|frame| frame.kind != GOAWAY));
}

#[test]
fn the_first_settings_say_what_the_records_say() {
    let origin = Origin::with_body("hello");
    let records = "CONFIG proxy.config.http2.header_table_size INT 1000\n\
                   CONFIG proxy.config.http2.max_concurrent_streams_in INT 7\n\
                   CONFIG proxy.config.http2.initial_window_size_in INT 70000\n\
                   CONFIG proxy.config.http2.max_frame_size INT 20000\n";
    let proxy = proxy(records, &origin);
    let mut client = Raw::connect(proxy.address);
    let settings = client.until(SETTINGS);
    let pairs = settings.last().unwrap().payload.chunks(6).map(|pair| {
        let [a, b, c, d, e, f] = pair.try_into().unwrap();
        (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]))
    });
    let pairs: Vec<_> = pairs.collect();
    for wanted in [(1, 1000), (3, 7), (4, 70_000), (5, 20_000), (8, 1)] {
        assert!(pairs.contains(&wanted), "{wanted:?} in {pairs:?}");
    }
    let mut post = GET.to_vec();
    post[0].1 = "POST";
    client
        .head(1, false, &post)
        .frame(DATA, 1, 1, &[b'x'; 20_000]);
    assert_eq!(client.until(DATA).last().unwrap().payload, b"hello");
    assert_eq!(origin.requests()[0].body.len(), 20_000);
}

#[test]
fn pings_do_not_keep_an_idle_connection() {
    let origin = Origin::with_body("hello");
    let records = "CONFIG proxy.config.http2.no_activity_timeout_in INT 1\n\
                   CONFIG proxy.config.http2.max_ping_frames_per_minute INT -1\n";
    let proxy = proxy(records, &origin);
    let mut client = Raw::connect(proxy.address);
    client.head(1, true, GET).until(DATA);
    let end = (0..200).find(|_| {
        std::thread::park_timeout(std::time::Duration::from_millis(50));
        let frames = client.frame(0xff, 0, 0, b"").settle();
        frames.last().is_none_or(|frame| frame.kind != PING)
    });
    assert!(end.is_some());
    assert_eq!(proxy.counter(Metric::Http2SessionsInactive), 1);
}

#[test]
fn a_head_that_does_not_end_is_waited_for_as_the_record_says() {
    let origin = Origin::with_body("hello");
    let records = "CONFIG proxy.config.http2.incomplete_header_timeout_in INT 1\n";
    let proxy = proxy(records, &origin);
    let whole = frame(HEADERS, END_STREAM | END_HEADERS, 1, &block(GET));
    let open = frame(HEADERS, END_STREAM, 1, &block(GET));
    let goes_on = frame(CONTINUATION, 0, 1, b"");
    for sent in [whole[..12].to_vec(), open.clone(), [open, goes_on].concat()] {
        let mut client = Raw::connect(proxy.address);
        client.settle();
        client.send(&sent);
        assert_eq!(client.goaway(), Some(0));
        assert!(client.is_closed());
    }
    let mut other = Raw::connect(proxy.address);
    other.head(1, true, GET);
    assert_eq!(other.until(DATA).last().unwrap().payload, b"hello");
}
