//! Clients that a balancer introduces by the PROXY protocol.

use crate::pki::{Authority, connect};
use crate::support::{Client, Origin, Proxy, ok, until};
use std::io::{Read, Write};
use std::sync::Arc;
use strata::metrics::Metric;

const BELIEVED: &str = "CONFIG proxy.config.http.proxy_protocol_allowlist STRING 127.0.0.0/8\n";
const V1: &[u8] = b"PROXY TCP4 192.0.2.1 192.0.2.2 4660 80\r\n";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\xc0\0\x02\x02\x12\x34\0\x50";
const LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\0\0";
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a.example\r\nAuthorization: x\r\n\r\n";

fn origin() -> Origin {
    Origin::answering(|request| ok(&request.fields("x-forwarded-for").join(",")))
}

#[test]
fn the_client_is_who_was_introduced_for_every_request_of_the_connection() {
    let origin = origin();
    let remap = format!("map http://a.example/ http://{}/\n", origin.address);
    let proxy = Proxy::with(BELIEVED, &remap);
    for (introduction, client) in [(V1, "192.0.2.1"), (V2, "192.0.2.1"), (LOCAL, "127.0.0.1")] {
        let mut balancer = Client::connect(proxy.address);
        balancer.send(introduction);
        for _ in 0..2 {
            assert_eq!(balancer.ask(GET).text(), client);
        }
    }
}

#[test]
fn an_introduction_goes_before_the_handshake_of_tls() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let issued = authority.issue(&["a.example"]);
    issued.write(&dir.path().join("a.pem"));
    let remap = format!("map https://a.example/ http://{}/\n", origin.address);
    let multicert = "ssl_cert_name=a.pem\n";
    let proxy = Proxy::over_tls(BELIEVED, &remap, (dir.path(), multicert));
    let config = Arc::new(authority.client());
    let mut client = connect(&config, proxy.address, "a.example");
    client.sock.write_all(V2).unwrap();
    let request = b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
    client.write_all(request).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("192.0.2.1"), "{answer}");
}

#[test]
fn who_is_not_introduced_by_somebody_believed_is_not_served() {
    let origin = origin();
    let remap = format!("map http://a.example/ http://{}/\n", origin.address);
    let strangers = BELIEVED.replace("127.0.0.0/8", "192.0.2.0/24");
    for (records, sent) in [(BELIEVED, GET), (&strangers, V1), (&strangers, GET)] {
        let proxy = Proxy::with(records, &remap);
        let mut client = Client::connect(proxy.address);
        assert!(client.send(sent).is_closed());
        assert_eq!(proxy.counter(Metric::NetIntroductionsRefused), 1);
    }
    assert_eq!(origin.requests().len(), 0);
}

/// A balancer that can't tell whom it speaks for (a socket of Unix, say) is on
/// this machine, and its client need not be.
#[test]
fn a_client_without_an_address_is_nobody_of_this_machine() {
    let origin = origin();
    let records = format!(
        "{BELIEVED}CONFIG proxy.config.url_remap.remap_required INT 0\n\
         CONFIG proxy.config.http.push_method_enabled INT 1\n"
    );
    let remap = format!("map http://a.example/ http://{}/\n", origin.address);
    let proxy = Proxy::with(&records, &remap);
    let unspecified = b"\r\n\r\n\0\r\nQUIT\n\x21\x00\0\0".to_vec();
    let unix = [
        b"\r\n\r\n\0\r\nQUIT\n\x21\x31\0\xd8".to_vec(),
        vec![b'a'; 216],
    ]
    .concat();
    let ask = |balancer: &mut Client, method: &str, target: &str| {
        let body = "Content-Length: 0\r\n\r\n";
        let ask = format!("{method} {target} HTTP/1.1\r\nHost: a.example\r\n{body}");
        balancer.ask(ask)
    };
    for (introduction, is_here) in [
        (b"PROXY UNKNOWN\r\n".to_vec(), false),
        (b"PROXY UNKNOWN ::1 ::1 1 2\r\n".to_vec(), false),
        (unspecified, false),
        (unix, false),
        (LOCAL.to_vec(), true),
    ] {
        let refused = if is_here { 404 } else { 403 };
        for (method, target, status) in [
            ("GET", "/", 200),
            ("PURGE", "/nothing", refused),
            ("GET", "http://192.0.2.1:1/", 403),
        ] {
            if is_here && target.starts_with("http:") {
                // To ask of that address would be to wait for it.
                continue;
            }
            let mut balancer = Client::connect(proxy.address);
            balancer.send(&introduction);
            let answer = ask(&mut balancer, method, target);
            assert_eq!(answer.status, status, "{method} {target} {introduction:?}");
            let told = !answer.fields("cache-status").is_empty();
            assert_eq!(told, is_here && method == "GET", "{introduction:?}");
        }
    }
}

#[test]
fn a_connection_that_is_never_introduced_does_not_hold_up_a_drain() {
    let proxy = Proxy::with(BELIEVED, "");
    let mut silent = Client::connect(proxy.address);
    silent.send(&V1[..10]);
    until("its bytes", || {
        proxy.counter(Metric::TotalClientConnections) == 1
    });
    proxy.drain();
    assert!(silent.is_closed());
    proxy.ended();
}

#[test]
fn an_origin_is_told_who_the_client_is_on_a_connection_for_that_request_alone() {
    let origin = origin();
    let remap = format!("map http://a.example/ http://{}/\n", origin.address);
    let inner = Proxy::with(BELIEVED, &remap);
    for version in ["1", "2"] {
        let remap = format!(
            "map http://a.example/ http://{}/ @plugin=conf_remap.so \
             @pparam=proxy.config.http.proxy_protocol_out={version} \
             @pparam=proxy.config.http.insert_request_via_str=0 \
             @pparam=proxy.config.url_remap.pristine_host_hdr=1\n",
            inner.address
        );
        let outer = Proxy::with(BELIEVED, &remap);
        for introduction in [V1, LOCAL, V2] {
            let mut balancer = Client::connect(outer.address);
            balancer.send(introduction);
            let client = if introduction == LOCAL {
                "127.0.0.1"
            } else {
                "192.0.2.1"
            };
            let told = format!("{client}, {client}");
            assert_eq!(balancer.ask(GET).text(), told, "{version}");
            assert_eq!(balancer.ask(GET).text(), told, "{version}");
        }
        assert_eq!(outer.counter(Metric::OriginMakeNew), 6);
    }
}
