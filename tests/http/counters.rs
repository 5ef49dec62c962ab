//! Which counters a request moves, and that gauges come back to rest.

use crate::support::{Client, Origin, Proxy, UUID, ok, until};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use strata::metrics::Metric;

#[test]
fn each_kind_of_request_moves_its_counter() {
    let loops = format!("GET / HTTP/1.1\r\nHost: h\r\nVia: 1.1 x[{UUID}] (x)\r\n\r\n");
    let cases: &[(&str, Metric)] = &[
        ("", Metric::TransactionErrorsEmptyHangups),
        ("GET / HT", Metric::TransactionErrorsEarlyHangups),
        ("GET / HTTP/1.1\r\n\r\n", Metric::MissingHostHdr),
        ("GET / HTTP/1.0\r\n\r\n", Metric::MissingHostHdr),
        (&loops, Metric::ProxyLoopDetected),
        (
            "GET / HTTP/1.1\r\nHost: h\r\nIf-None-Match: \"x\"\r\n\r\n",
            Metric::TcpImsMiss,
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx",
            Metric::ClientRequestBodyBytes,
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
            Metric::OriginRequestBodyBytes,
        ),
    ];
    let origin = Origin::answering(|_| {
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nhello".to_vec()
    });
    for (request, metric) in cases {
        let proxy = Proxy::start(&format!("map http://h/ http://{}/\n", origin.address));
        let mut client = Client::connect(proxy.address);
        client.send(request).finish();
        client.rest();
        until(request, || proxy.counter(*metric) == 1);
    }
}

#[test]
fn gauges_count_what_is_there_and_come_back_to_rest() {
    let (open, gate) = channel();
    let gate = Mutex::new(gate);
    let origin = Origin::answering(move |_| {
        gate.lock().unwrap().recv().unwrap();
        ok("answer")
    });
    let proxy = Proxy::start(&origin.map("/"));
    let gauges = [
        (Metric::CurrentClientConnections, 1),
        (Metric::CurrentActiveClientConnections, 1),
        (Metric::CurrentClientTransactions, 1),
        (Metric::CurrentCacheConnections, 1),
        (Metric::CurrentServerTransactions, 1),
        (Metric::CurrentServerConnections, 1),
        (Metric::NetConnectionsOpen, 2),
        (Metric::NetAcceptsOpen, 1),
    ];
    let mut client = Client::connect(proxy.address);
    let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    client.send(request);
    for (gauge, value) in gauges {
        until(gauge.spec().name, || proxy.counter(gauge) == value);
    }
    open.send(()).unwrap();
    let answer = client.response().unwrap();
    let sent = u64::try_from(answer.head.len() + answer.body.len()).unwrap();
    // The client may have the bytes before the proxy has counted them.
    until("written", || proxy.counter(Metric::NetWriteBytes) == sent);
    let asked = u64::try_from(request.len()).unwrap();
    until("read", || proxy.counter(Metric::NetReadBytes) == asked);
    until("idle", || {
        proxy.counter(Metric::CurrentActiveClientConnections) == 0
            && proxy.counter(Metric::CurrentServerTransactions) == 0
            && proxy.counter(Metric::CurrentCacheConnections) == 0
    });
    drop(client);
    until("closed", || {
        proxy.counter(Metric::CurrentClientConnections) == 0
    });
}

#[test]
fn the_generator_moves_the_counters_of_an_origin() {
    let proxy = Proxy::start("map http://h/ http://g/ @plugin=generator.so\n");
    let mut client = Client::connect(proxy.address);
    for _ in 0..2 {
        let answer = client.ask("GET /100000/a HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(answer.body.len(), 100_000);
    }
    let counter = |metric| proxy.counter(metric);
    assert_eq!(counter(Metric::OriginResponseBodyBytes), 100_000);
    assert_eq!(counter(Metric::OutgoingRequests), 1);
    assert_eq!(counter(Metric::IncomingResponses), 1);
    assert!(counter(Metric::OriginRequestHeadBytes) > 0);
    assert!(counter(Metric::OriginResponseHeadBytes) > 0);
}
