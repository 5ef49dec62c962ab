//! HTTP/2 with origins: by prior knowledge, and over TLS as they choose.

mod origin;

use crate::pki::{Authority, provider};
use crate::support::{Client, Proxy, Response, until};
use origin::{H2Origin, large};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::sync::Arc;
use std::thread;
use strata::metrics::Metric;
use tokio_rustls::TlsAcceptor;

/// Origins of http are known to speak HTTP/2; nothing is stored.
const ON: &str = "CONFIG proxy.config.http2.prior_knowledge_out INT 1\n\
                  CONFIG proxy.config.http.cache.http INT 0\n";

fn proxy(records: &str, origin: &H2Origin) -> Proxy {
    let remap = format!("map http://h/ http://{}/\n", origin.address);
    Proxy::with(&format!("{ON}{records}"), &remap)
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

fn ask(proxy: &Proxy, path: &str) -> Response {
    Client::connect(proxy.address).ask(get(path))
}

#[test]
fn requests_share_a_connection_whose_authority_is_the_host() {
    let origin = H2Origin::start(None);
    let proxy = proxy("", &origin);
    let asks = (0..20).map(|_| {
        let mut client = Client::connect(proxy.address);
        client.send(get("/held"));
        client
    });
    let clients: Vec<_> = asks.collect();
    until("every request is at the origin", || {
        origin.asked().len() == 20
    });
    origin.notes.gate.add_permits(20);
    for mut client in clients {
        assert_eq!(client.response().unwrap().text(), "held");
    }
    assert_eq!(origin.connections(), 1);
    let asked = origin.asked().pop().unwrap();
    assert_eq!(asked.uri, format!("http://{}/held", origin.address));
    assert!(!asked.fields.contains_key("host"));
    assert!(asked.fields.contains_key("via"));
    assert_eq!(proxy.counter(Metric::Http2OriginConnections), 1);
    assert_eq!(proxy.counter(Metric::Http2OriginStreams), 20);
}

#[test]
fn no_more_requests_are_on_a_connection_than_the_record_says() {
    let origin = H2Origin::start(None);
    let limit = "CONFIG proxy.config.http2.max_concurrent_streams_out INT 2\n";
    let proxy = proxy(limit, &origin);
    let asks = (0..6).map(|_| {
        let mut client = Client::connect(proxy.address);
        client.send(get("/held"));
        client
    });
    let clients: Vec<_> = asks.collect();
    until("every request is at the origin", || {
        origin.asked().len() == 6
    });
    assert_eq!(origin.connections(), 3);
    origin.notes.gate.add_permits(6);
    for mut client in clients {
        assert_eq!(client.response().unwrap().text(), "held");
    }
}

#[test]
fn the_origin_may_send_as_much_unasked_as_the_record_says() {
    let origin = H2Origin::start(None);
    let least = "CONFIG proxy.config.http2.initial_window_size_out INT 65535\n";
    let by_default: usize = ask(&proxy("", &origin), "/window").text().parse().unwrap();
    let set = ask(&proxy(least, &origin), "/window").text();
    assert!(by_default > 65_535, "{by_default}");
    assert_eq!(set, "65535");
}

#[test]
fn bodies_and_trailers_go_both_ways_and_interim_heads_to_the_client() {
    let origin = H2Origin::start(None);
    let proxy = proxy("", &origin);
    let mut client = Client::connect(proxy.address);
    let post = "POST /post HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n\
                4\r\nbody\r\n0\r\nX-Sum: 4\r\n\r\n";
    assert_eq!(client.ask(post).text(), "1 4");
    let asked = origin.asked().pop().unwrap();
    assert_eq!((asked.body, asked.is_whole), (b"body".to_vec(), true));
    assert_eq!(asked.trailers.unwrap()["x-sum"], "4");
    assert!(!asked.fields.contains_key("transfer-encoding"));
    let post = "POST /post HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody";
    assert_eq!(client.ask(post).text(), "1 4");
    assert_eq!(origin.asked().pop().unwrap().fields["content-length"], "4");
    client.send("GET /trailers HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: te\r\n\r\n");
    assert_eq!(client.response().unwrap().text(), "before");
    client.send(get("/early"));
    let early = client.head().unwrap();
    assert_eq!((early.status, early.fields("link")), (103, vec!["</a>"]));
    assert_eq!(client.response().unwrap().text(), "late");
    assert_eq!(client.ask(get("/large")).body, large());
    assert_eq!(origin.connections(), 1);
}

#[test]
fn a_response_that_the_origin_resets_never_looks_whole() {
    let origin = H2Origin::start(None);
    let proxy = proxy("", &origin);
    let mut client = Client::connect(proxy.address);
    client.send(get("/broken"));
    assert!(client.response().is_err());
    assert_eq!(ask(&proxy, "/fails").status, 502);
    assert_eq!(ask(&proxy, "/").text(), "1 0");
}

#[test]
fn what_the_origin_has_not_looked_at_goes_out_again_and_a_body_does_not() {
    let origin = H2Origin::start(None);
    let proxy = proxy("", &origin);
    assert_eq!(ask(&proxy, "/").status, 200);
    assert_eq!(ask(&proxy, "/refused").status, 200);
    assert_eq!(origin.asked().len(), 3);
    let other = H2Origin::start(None);
    let proxy = self::proxy("", &other);
    let post = "POST /refused HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(ask(&proxy, "/").status, 200);
    assert_eq!(Client::connect(proxy.address).ask(post).status, 502);
}

#[test]
fn a_connection_that_the_origin_lets_go_serves_no_other_request() {
    let origin = H2Origin::start(None);
    let proxy = proxy("", &origin);
    assert_eq!(ask(&proxy, "/last").text(), "1 0");
    until("another connection", || ask(&proxy, "/").text() == "2 0");
    let gauge = Metric::Http2OriginCurrentConnections;
    until("the first is closed", || proxy.counter(gauge) == 1);
}

#[test]
fn a_silent_connection_is_given_up_and_the_others_requests_go_on_a_new_one() {
    let origin = H2Origin::start(None);
    let limit = "CONFIG proxy.config.http.transaction_no_activity_timeout_out INT 1\n";
    let proxy = proxy(limit, &origin);
    assert_eq!(ask(&proxy, "/silent").status, 504);
    assert_eq!(ask(&proxy, "/").text(), "2 0");
}

#[test]
fn a_client_that_leaves_ends_its_stream_and_no_other() {
    let origin = H2Origin::start(None);
    let proxy = proxy("", &origin);
    let mut leaving = Client::connect(proxy.address);
    leaving.send("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\npart");
    until("a stream", || {
        proxy.counter(Metric::Http2OriginStreams) == 1
    });
    leaving.reset();
    until("the origin sees its end", || origin.asked().len() == 1);
    assert!(!origin.asked()[0].is_whole);
    assert_eq!(ask(&proxy, "/").text(), "1 0");
}

/// An acceptor of TLS for localhost, and the records of a proxy that trusts it
/// and offers HTTP/2.
fn secured(alpn: &[&str]) -> (TlsAcceptor, tempfile::TempDir, String) {
    let authority = Authority::new();
    let dir = tempfile::tempdir().unwrap();
    authority.write(&dir.path().join("ca.pem"));
    let issued = authority.issue(&["localhost"]);
    let key = PrivatePkcs8KeyDer::from(issued.key.serialize_der()).into();
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![issued.certificate.clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let records = "CONFIG proxy.config.ssl.client.CA.cert.filename STRING ca.pem\n\
                   CONFIG proxy.config.http.cache.http INT 0\n";
    (TlsAcceptor::from(Arc::new(config)), dir, records.to_owned())
}

#[test]
fn a_rule_offers_http_2_over_tls_and_the_origin_chooses_it() {
    let (tls, dir, records) = secured(&["h2", "http/1.1"]);
    let origin = H2Origin::start(Some(tls));
    let port = origin.address.port();
    let remap = format!(
        "map http://h/ https://localhost:{port}/ @plugin=conf_remap.so \
         @pparam=proxy.config.ssl.client.alpn_protocols=h2,http/1.1\n\
         map http://one/ https://localhost:{port}/\n"
    );
    let proxy = Proxy::with_origin_tls(&records, &remap, dir.path());
    let together: Vec<_> = (0..8)
        .map(|_| {
            let address = proxy.address;
            thread::spawn(move || Client::connect(address).ask(get("/")).text())
        })
        .collect();
    for one in together {
        assert_eq!(one.join().unwrap(), "1 0");
    }
    let asked = origin.asked().pop().unwrap();
    assert_eq!(asked.uri, format!("https://localhost:{port}/"));
    // The other rule offers HTTP/1.1, which this origin does not speak.
    let plain = get("/").replace("Host: h", "Host: one");
    assert_eq!(Client::connect(proxy.address).ask(plain).status, 502);
    assert_eq!(proxy.counter(Metric::Http2OriginConnections), 1);
}
