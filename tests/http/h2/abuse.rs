//! Frames that are each in order and together an attack: the connection is
//! closed with ENHANCE_YOUR_CALM, or the stream reset, and others are served on.

use super::client::{H2Client, run};
use super::proxy;
use super::raw::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, GET, HEADERS, PADDED, PING,
    PRIORITY, RST_STREAM, Raw, SETTINGS, WINDOW_UPDATE, block,
};
use crate::support::{Origin, Proxy, until};
use strata::metrics::Metric;

/// What is done with a stream.
type Attack<'a> = &'a dyn Fn(&mut Raw, u32);

/// Another client, which must not notice.
fn is_unharmed(proxy: &Proxy) {
    run(async {
        let other = H2Client::connect(proxy.address).await;
        assert_eq!(other.get("/").await.text(), "hello");
    });
}

/// Sends what `attack` makes of the stream numbers 1, 3, 5 … to a proxy of this
/// record, until it has had enough, and checks that it says so and counts it
/// under `metric`.
fn closes(record: &str, attack: impl Fn(&mut Raw, u32), metric: Metric) {
    let origin = Origin::with_body("hello");
    let proxy = proxy(&format!("CONFIG {record}\n"), &origin);
    let mut client = Raw::connect(proxy.address);
    for n in 0..1000 {
        attack(&mut client, 2 * n + 1);
    }
    assert_eq!(client.goaway(), Some(ENHANCE_YOUR_CALM));
    assert!(client.is_closed());
    is_unharmed(&proxy);
    until("the end", || proxy.counter(Metric::Http2SessionsError) == 1);
    assert_eq!(proxy.counter(metric), 1);
    assert_eq!(proxy.counter(Metric::Http2ConnectionErrors), 1);
    until("the streams' end", || {
        proxy.counter(Metric::CurrentClientTransactions) == 0
    });
    // What the attacker opened before it was stopped is bounded.
    assert!(proxy.counter(Metric::Http2Streams) <= 1001);
}

#[test]
fn a_rapid_reset_closes_the_connection_cve_2023_44487() {
    let cancel = 8_u32.to_be_bytes();
    closes(
        "proxy.config.http2.max_rst_stream_frames_per_minute INT 15",
        |client, stream| {
            client
                .head(stream, true, GET)
                .frame(RST_STREAM, 0, stream, &cancel);
        },
        Metric::Http2RstStreamExceeded,
    );
}

#[test]
fn a_flood_of_settings_closes_the_connection_cve_2019_9515() {
    closes(
        "proxy.config.http2.max_settings_frames_per_minute INT 20",
        |client, _| {
            client.frame(SETTINGS, 0, 0, b"");
        },
        Metric::Http2SettingsFramesExceeded,
    );
    closes(
        "proxy.config.http2.max_settings_per_minute INT 50",
        |client, stream| {
            if stream == 1 {
                client.frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 9].repeat(100));
            }
        },
        Metric::Http2SettingsExceeded,
    );
}

#[test]
fn a_flood_of_pings_closes_the_connection_cve_2019_9512() {
    closes(
        "proxy.config.http2.max_ping_frames_per_minute INT 20",
        |client, _| {
            client.frame(PING, 0, 0, &[1; 8]);
        },
        Metric::Http2PingExceeded,
    );
}

#[test]
fn a_flood_of_priorities_closes_the_connection_cve_2019_9513() {
    closes(
        "proxy.config.http2.max_priority_frames_per_minute INT 20",
        |client, _| {
            client.frame(PRIORITY, 0, 3, &[0, 0, 0, 0, 1]);
        },
        Metric::Http2PriorityExceeded,
    );
}

#[test]
fn a_flood_of_empty_data_closes_the_connection_cve_2019_9518() {
    closes(
        "proxy.config.http2.max_empty_frames_per_minute INT 20",
        |client, stream| {
            if stream == 1 {
                let mut post = GET.to_vec();
                post[0].1 = "POST";
                client.head(1, false, &post);
            }
            client.frame(DATA, 0, 1, b"");
        },
        Metric::Http2EmptyExceeded,
    );
}

#[test]
fn a_flood_of_data_that_is_padding_alone_closes_the_connection() {
    closes(
        "proxy.config.http2.max_empty_frames_per_minute INT 20",
        |client, stream| {
            if stream == 1 {
                let mut post = GET.to_vec();
                post[0].1 = "POST";
                client.head(1, false, &post);
            }
            client.frame(DATA, PADDED, 1, &[3, 0, 0, 0]);
        },
        Metric::Http2EmptyExceeded,
    );
}

/// Each makes the proxy break off a stream that the client has broken, so that
/// the client seems to reset nothing.
#[test]
fn streams_that_the_client_makes_us_reset_close_the_connection_cve_2025_8671() {
    let full = 0x7fff_ffff_u32.to_be_bytes();
    let mut post = GET.to_vec();
    post[0].1 = "POST";
    post.push(("content-length", "1"));
    let window = |client: &mut Raw, stream: u32| {
        client
            .head(stream, true, GET)
            .frame(WINDOW_UPDATE, 0, stream, &full);
    };
    let length = |client: &mut Raw, stream: u32| {
        client
            .head(stream, false, &post)
            .frame(DATA, 0, stream, b"xx");
    };
    let parent = |client: &mut Raw, stream: u32| {
        let itself = [&stream.to_be_bytes()[..], &[0]].concat();
        client
            .head(stream, true, GET)
            .frame(PRIORITY, 0, stream, &itself);
    };
    let attacks: [Attack<'_>; 3] = [&window, &length, &parent];
    for attack in attacks {
        closes(
            "proxy.config.http2.max_rst_stream_frames_per_minute INT 15\n\
             CONFIG proxy.config.http2.max_priority_frames_per_minute INT -1",
            attack,
            Metric::Http2SessionsHighErrorRate,
        );
    }
}

#[test]
fn a_stream_error_now_and_then_costs_its_stream_alone() {
    let origin = Origin::with_body("hello");
    let proxy = proxy("", &origin);
    let mut client = Raw::connect(proxy.address);
    let mut post = GET.to_vec();
    post[0].1 = "POST";
    post.push(("content-length", "1"));
    for n in 0..50 {
        client
            .head(2 * n + 1, false, &post)
            .frame(DATA, 0, 2 * n + 1, b"xx");
        assert_eq!(client.until(RST_STREAM).last().unwrap().stream, 2 * n + 1);
    }
    client.head(101, true, GET);
    let last = client.until(DATA).pop().unwrap();
    assert_eq!((last.stream, &*last.payload), (101, &b"hello"[..]));
    until("the count", || {
        proxy.counter(Metric::Http2StreamErrors) == 50
    });
}

#[test]
fn a_head_without_end_closes_the_connection_cve_2024_27316() {
    closes(
        "proxy.config.http2.max_continuation_frames_per_minute INT 3",
        |client, stream| {
            if stream == 1 {
                client.frame(HEADERS, END_STREAM, 1, &block(GET));
            }
            client.frame(CONTINUATION, 0, 1, &block(&[("a", "b")]));
        },
        Metric::Http2ContinuationExceeded,
    );
}

#[test]
fn windows_that_open_byte_by_byte_close_the_connection_cve_2019_9511() {
    closes(
        "proxy.config.http2.min_avg_window_update FLOAT 100.0",
        |client, _| {
            client.frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]);
        },
        Metric::Http2InsufficientWindowUpdate,
    );
}

#[test]
fn a_head_that_unpacks_to_megabytes_closes_the_connection_cve_2016_6581() {
    // One field of 4000 bytes for the table, and then one byte for each more.
    let value = "x".repeat(4000);
    let mut fields = block(GET);
    let literal = block(&[("a", &value)]);
    fields.push(0x40);
    fields.extend(&literal[1..]);
    fields.extend([0xbe; 8000]);
    closes(
        "proxy.config.http2.max_header_list_size INT 65536",
        |client, stream| {
            if stream == 1 {
                client.frame(HEADERS, END_STREAM | END_HEADERS, 1, &fields);
            }
        },
        Metric::Http2HeaderListExceeded,
    );
}

#[test]
fn a_window_that_stays_shut_costs_its_stream_alone() {
    let origin = Origin::with_body("hello");
    let records = "CONFIG proxy.config.http.transaction_no_activity_timeout_in INT 1\n";
    let proxy = proxy(records, &origin);
    let mut client = Raw::with_settings(proxy.address, &[(4, 0)]);
    for n in 0..10 {
        client.head(2 * n + 1, true, GET);
    }
    for _ in 0..10 {
        let frames = client.until(RST_STREAM);
        assert!(frames.iter().all(|frame| frame.kind != DATA));
        assert_eq!(frames.last().unwrap().kind, RST_STREAM);
    }
    until("the streams' end", || {
        proxy.counter(Metric::CurrentClientTransactions) == 0
    });
    assert_eq!(proxy.counter(Metric::OutcomeClientAbort), 10);
    assert_eq!(proxy.counter(Metric::ClientStalled), 10);
    client
        .frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0xff, 0xff])
        .head(99, true, GET);
    assert_eq!(client.until(DATA).last().unwrap().payload, b"hello");
    is_unharmed(&proxy);
}

/// The library has limits of its own that no record turns off.
#[test]
fn a_rapid_reset_is_stopped_by_the_library_too() {
    closes(
        "proxy.config.http2.max_rst_stream_frames_per_minute INT -1",
        |client, stream| {
            let cancel = 8_u32.to_be_bytes();
            client
                .head(stream, true, GET)
                .frame(RST_STREAM, 0, stream, &cancel);
        },
        Metric::Http2RstStreamExceeded,
    );
}

#[test]
fn limits_that_are_off_let_everything_pass() {
    let origin = Origin::with_body("hello");
    let proxy = proxy(
        "CONFIG proxy.config.http2.max_ping_frames_per_minute INT -1\n",
        &origin,
    );
    let mut client = Raw::connect(proxy.address);
    for _ in 0..300 {
        client.settle();
    }
    client.head(1, true, GET);
    assert_eq!(client.until(DATA).last().unwrap().payload, b"hello");
}
