//! A connection that becomes a tunnel by the origin's 101, and by nothing less
//! (RFC 9110 7.8, RFC 6455).

use crate::support::{Client, Origin, Proxy, Recorded, ok, until};
use std::io::{Read, Write};
use std::net::TcpStream;
use strata::metrics::Metric;

const ASK: &str = "GET /chat HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\n\
                   Upgrade: websocket\r\nSec-WebSocket-Key: a2V5\r\n\r\n";

const SWITCH: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\n\
                        Connection: Upgrade\r\nKeep-Alive: 5\r\n\
                        Sec-WebSocket-Accept: acoMowsaMs4gzl5sy2uaF1804GA=\r\n\r\n";

/// Switches whoever asks for it, greets, and sends back whatever comes until
/// the other end is done.
fn echo(request: &Recorded, mut stream: &TcpStream) -> bool {
    if request.fields("upgrade").is_empty() {
        return stream.write_all(&ok("plain")).is_ok();
    }
    stream.write_all(&[SWITCH, b"hi"].concat()).unwrap();
    let mut buffer = [0; 1000];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    false
}

/// A client whose connection was switched, the greeting read.
fn switched(proxy: &Proxy, ask: &str) -> Client {
    let mut client = Client::connect(proxy.address);
    let head = client.send(ask).head().unwrap();
    assert_eq!(head.status, 101, "{}", head.head);
    assert_eq!(client.bytes(2), b"hi");
    client
}

#[test]
fn after_a_101_bytes_pass_both_ways_until_both_ends_are_done() {
    let origin = Origin::speaking(echo);
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let head = client.send(ASK).head().unwrap();
    assert_eq!(head.status, 101);
    assert_eq!(head.fields("upgrade"), ["WebSocket"]);
    assert_eq!(head.fields("connection"), ["Upgrade"]);
    assert_eq!(
        head.fields("sec-websocket-accept"),
        ["acoMowsaMs4gzl5sy2uaF1804GA="]
    );
    for gone in ["keep-alive", "content-length", "transfer-encoding"] {
        assert_eq!(head.fields(gone), [""; 0], "{gone}");
    }
    assert_eq!(client.bytes(2), b"hi");
    // No request any more, whatever it looks like.
    let bytes = "GET /not HTTP/1.1\r\n\r\n".repeat(5000);
    client.send(&bytes);
    assert_eq!(client.bytes(bytes.len()), bytes.as_bytes());
    assert_eq!(proxy.counter(Metric::CurrentServerConnections), 1);
    client.finish();
    assert!(client.is_closed());
    until("the outcome", || proxy.counter(Metric::OutcomeTunnel) == 1);
    until("the end", || {
        proxy.counter(Metric::CurrentServerConnections) == 0
    });
    assert_eq!(proxy.counter(Metric::Tunnels), 1);
    assert_eq!(proxy.counter(Metric::PooledServerConnections), 0);
    let seen = &origin.requests()[0];
    assert_eq!(seen.fields("upgrade"), ["websocket"]);
    assert_eq!(seen.fields("connection"), ["upgrade"]);
    assert_eq!(seen.fields("sec-websocket-key"), ["a2V5"]);
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn what_a_tunnel_carries_counts_at_both_ends_alike() {
    let origin = Origin::speaking(echo);
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = switched(&proxy, ASK);
    client.send("x".repeat(100_000)).finish();
    assert_eq!(client.bytes(100_000).len(), 100_000);
    assert!(client.is_closed());
    let counted = |metrics: [Metric; 2]| metrics.map(|metric| proxy.counter(metric));
    until("what was answered", || {
        let ends = [
            Metric::ClientResponseBodyBytes,
            Metric::OriginResponseBodyBytes,
        ];
        counted(ends) == [100_002; 2]
    });
    let ends = [
        Metric::ClientRequestBodyBytes,
        Metric::OriginRequestBodyBytes,
    ];
    assert_eq!(counted(ends), [100_000; 2]);
}

#[test]
fn what_a_client_sends_before_the_101_is_the_other_protocol_s() {
    let origin = Origin::speaking(echo);
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = switched(&proxy, &format!("{ASK}early"));
    assert_eq!(client.bytes(5), b"early");
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn a_refused_upgrade_is_an_ordinary_answer_and_no_tunnel() {
    let origin = Origin::answering(|request| {
        if request.fields("upgrade").is_empty() {
            return ok("plain");
        }
        b"HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
          Cache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nno"
            .to_vec()
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for _ in 0..2 {
        let refusal = client.ask(ASK);
        assert_eq!((refusal.status, refusal.text().as_str()), (426, "no"));
        assert_eq!(refusal.fields("upgrade"), [""; 0]);
    }
    let plain = client.ask("GET /chat HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(plain.text(), "plain", "neither stored nor a tunnel");
    assert_eq!(origin.requests().len(), 3);
    until("accounts", || proxy.counter(Metric::OutcomeMissMethod) == 2);
    assert_eq!(proxy.counter(Metric::OutcomeTunnel), 0);
}

#[test]
fn what_is_stored_does_not_answer_who_asks_for_another_protocol() {
    let origin = Origin::speaking(|request, mut stream| {
        if request.fields("upgrade").is_empty() {
            let page =
                b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\r\np";
            return stream.write_all(page).is_ok();
        }
        echo(request, stream)
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for _ in 0..2 {
        let page = client.ask("GET /chat HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(page.text(), "p");
    }
    switched(&proxy, ASK);
    assert_eq!(origin.requests().len(), 2);
}

#[test]
fn an_upgrade_that_may_not_be_is_not_passed_on() {
    let origin = Origin::speaking(echo);
    let proxy = Proxy::start(&origin.map("/"));
    for (line, fields) in [
        (
            "GET / HTTP/1.0",
            "Connection: upgrade\r\nUpgrade: websocket\r\n",
        ),
        (
            "POST / HTTP/1.1",
            "Connection: upgrade\r\nUpgrade: websocket\r\n",
        ),
        (
            "HEAD / HTTP/1.1",
            "Connection: upgrade\r\nUpgrade: websocket\r\n",
        ),
        ("GET / HTTP/1.1", "Upgrade: websocket\r\n"),
        (
            "GET / HTTP/1.1",
            "Connection: upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: a\r\n",
        ),
        (
            "GET / HTTP/1.1",
            "Connection: upgrade\r\nUpgrade: TLS/1.0\r\n",
        ),
        (
            "GET / HTTP/1.1",
            "Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n",
        ),
    ] {
        let mut client = Client::connect(proxy.address);
        let ask = format!("{line}\r\nHost: h\r\n{fields}\r\n");
        assert_eq!(client.send(&ask).head().unwrap().status, 200, "{ask}");
        let seen = origin.requests().pop().unwrap();
        assert_eq!(seen.fields("upgrade"), [""; 0], "{ask}");
        assert_eq!(seen.fields("connection"), [""; 0], "{ask}");
    }
}

#[test]
fn a_101_that_switches_to_something_else_is_502_and_no_tunnel() {
    for fields in [
        "Connection: upgrade\r\nUpgrade: h2c\r\n",
        "Connection: upgrade\r\nUpgrade: websocket, h2c\r\n",
        "Connection: upgrade\r\n",
        "Upgrade: websocket\r\n",
        "",
    ] {
        let origin = Origin::speaking(move |_, mut stream| {
            let head = format!("HTTP/1.1 101 Switching Protocols\r\n{fields}\r\nsecret");
            stream.write_all(head.as_bytes()).is_ok()
        });
        let proxy = Proxy::start(&origin.map("/"));
        let mut client = Client::connect(proxy.address);
        let answer = client.ask(ASK);
        assert_eq!(answer.status, 502, "{fields:?}");
        assert!(!answer.text().contains("secret"), "{fields:?}");
        assert_eq!(proxy.counter(Metric::Tunnels), 0);
    }
}

/// RFC 6455 4.2.2: an origin, or a cache before it, that never saw this key
/// knows nothing of the other protocol.
#[test]
fn a_101_that_does_not_prove_it_read_the_websocket_s_key_is_502_and_no_tunnel() {
    let good = "acoMowsaMs4gzl5sy2uaF1804GA=";
    let keyless = ASK.replace("Sec-WebSocket-Key: a2V5\r\n", "");
    for (ask, accepts) in [
        (ASK, &[][..]),
        (ASK, &["s3pPLMBiTxaQ9kYGzzhZRbK+xOo="]),
        (ASK, &["a2V5"]),
        (ASK, &[good, good]),
        (&keyless, &[good]),
    ] {
        let lines = accepts
            .iter()
            .map(|accept| format!("Sec-WebSocket-Accept: {accept}\r\n"));
        let lines: String = lines.collect();
        let origin = Origin::speaking(move |_, mut stream| {
            let head = format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                 Connection: Upgrade\r\n{lines}\r\nsecret"
            );
            stream.write_all(head.as_bytes()).is_ok()
        });
        let proxy = Proxy::start(&origin.map("/"));
        let answer = Client::connect(proxy.address).ask(ask);
        assert_eq!(answer.status, 502, "{accepts:?}");
        assert!(!answer.text().contains("secret"), "{accepts:?}");
        assert_eq!(proxy.counter(Metric::Tunnels), 0);
        until("the end", || {
            proxy.counter(Metric::CurrentServerConnections) == 0
        });
    }
}

#[test]
fn either_end_that_breaks_off_ends_the_other() {
    let (ended, gone) = std::sync::mpsc::channel();
    let origin = Origin::speaking(move |request, stream| {
        if request.target() == "/breaks" {
            (&*stream).write_all(&[SWITCH, b"hi"].concat()).unwrap();
            return false;
        }
        echo(request, stream);
        ended.send(()).unwrap();
        false
    });
    let proxy = Proxy::start(&origin.map("/"));
    switched(&proxy, ASK).reset();
    gone.recv_timeout(std::time::Duration::from_secs(10))
        .unwrap();
    let mut client = switched(&proxy, &ASK.replace("/chat", "/breaks"));
    assert!(client.is_closed());
    drop(client);
    until("both", || proxy.counter(Metric::OutcomeTunnel) == 2);
}

#[test]
fn a_silent_tunnel_ends_by_its_own_time_not_by_the_transaction_s() {
    const SHORT: &str = "CONFIG proxy.config.http.transaction_no_activity_timeout_in INT 1\n\
                         CONFIG proxy.config.http.transaction_no_activity_timeout_out INT 1\n\
                         CONFIG proxy.config.http.transaction_active_timeout_in INT 1\n";
    let origin = Origin::speaking(echo);
    let proxy = Proxy::with(SHORT, &origin.map("/"));
    let mut client = switched(&proxy, ASK);
    assert!(!client.has_answer_within(std::time::Duration::from_millis(1500)));
    client.send("still here");
    assert_eq!(client.bytes(10), b"still here");
    for record in [
        "proxy.config.websocket.no_activity_timeout",
        "proxy.config.websocket.active_timeout",
    ] {
        let records = format!("CONFIG {record} INT 1\n");
        proxy.reload(&records, &origin.map("/"));
        let mut client = switched(&proxy, ASK);
        assert!(client.is_closed(), "{record}");
    }
    until("the cut ones", || proxy.counter(Metric::OutcomeTunnel) == 2);
}

#[test]
fn rules_of_ws_take_who_asks_for_a_websocket_and_nobody_else() {
    let (chat, pages) = (Origin::speaking(echo), Origin::with_body("page"));
    let rules = format!(
        "map http://h/ http://{}/\nmap ws://h/chat ws://{}/in\n",
        pages.address, chat.address
    );
    let proxy = Proxy::start(&rules);
    switched(&proxy, ASK);
    assert_eq!(chat.requests()[0].target(), "/in");
    let mut client = Client::connect(proxy.address);
    assert_eq!(
        client.ask("GET /chat HTTP/1.1\r\nHost: h\r\n\r\n").text(),
        "page"
    );
    assert_eq!(client.ask(ASK.replace("/chat", "/x")).text(), "page");
}

#[test]
fn the_record_names_the_protocols_that_may_be_switched_to() {
    let origin = Origin::speaking(echo);
    let proxy = Proxy::start(&origin.map("/"));
    let other = ASK.replace("websocket", "chat/2");
    let mut client = Client::connect(proxy.address);
    assert_eq!(client.ask(&other).text(), "plain");
    let records = "CONFIG proxy.config.http.upgrade_protocols STRING chat\n";
    proxy.reload(records, &origin.map("/"));
    assert_eq!(client.ask(ASK).text(), "plain");
    client.send(&other);
    // An origin that chooses for itself is no matter of this test.
    assert_eq!(client.head().unwrap().status, 502);
    assert_eq!(origin.requests()[2].fields("upgrade"), ["chat/2"]);
}
