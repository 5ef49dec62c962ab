//! Connections that are passed on with their TLS (`tunnel_route`).

use crate::pki::{connect, given};
use crate::support::{Client, Origin, Proxy, named_parts, ok, until};
use crate::tls::Site;
use rustls::ClientConnection;
use rustls::pki_types::ServerName;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use strata::config::ip_allow;
use strata::metrics::Metric;
use strata::proxy::snapshot::SnapshotParts;
use strata::remap::IpAllow;

/// Any port, and loopback for everybody, as for a backend on this machine.
const OPEN: &str = "CONFIG proxy.config.http.connect_ports STRING *\n";
const LOCAL: &str = "ip_allow:\n\
    - {apply: in, ip_addrs: 127.0.0.1, action: allow, methods: ALL}\n\
    - {apply: out, ip_addrs: 127.0.0.0/8, action: allow, methods: ALL}\n";

/// A proxy that leads names to `route`.
fn leading(site: &Site, (records, rules): (&str, &str), (name, route): (&str, &str)) -> Proxy {
    site.issue("front.pem", &["front.example"]);
    let (file, found) = ip_allow::parse("ip_allow.yaml", rules.as_bytes());
    assert_eq!(found.errors, []);
    let sni = format!("[[sni]]\nfqdn = \"{name}\"\ntunnel_route = \"{route}\"\n");
    let dir = site.dir.path();
    let parts = SnapshotParts {
        ip_allow: IpAllow::new(&file),
        ..named_parts((records, ""), dir, &sni)
    };
    Proxy::secure(parts, (dir, "dest_ip=* ssl_cert_name=front.pem\n"))
}

/// A proxy at the tunnel's end, which ends TLS for `*.t.example`.
fn backend(site: &Site, origin: &Origin) -> Proxy {
    site.issue("back.pem", &["*.t.example"]);
    let map = format!("map https://x.t.example/ http://{}/\n", origin.address);
    let multicert = (site.dir.path(), "dest_ip=* ssl_cert_name=back.pem\n");
    Proxy::over_tls("", &map, multicert)
}

#[test]
fn a_tunnel_leads_to_who_ends_tls_there() {
    let site = Site::new();
    let body = "0123456789abcdef".repeat(1 << 16);
    let sent = body.clone();
    let origin = Origin::answering(move |_| ok(&sent));
    let back = backend(&site, &origin);
    let route = back.address.to_string();
    let front = leading(&site, (OPEN, LOCAL), ("*.t.example", &route));
    let mut client = connect(&site.client(), front.address, "X.t.example");
    let request = b"GET / HTTP/1.1\r\nHost: x.t.example\r\nConnection: close\r\n\r\n";
    client.write_all(request).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(answer.ends_with(&body));
    drop(client);
    until("a tunnel that is counted", || {
        front.counter(Metric::OutcomeTunnel) == 1
    });
    assert_eq!(front.counter(Metric::TunnelsTls), 1);
    assert_eq!(front.counter(Metric::IncomingRequests), 1);
    assert_eq!(front.counter(Metric::SslSuccessIn), 0);
    assert_eq!(back.counter(Metric::SslSuccessIn), 1);
    until("a tunnel that is closed", || {
        front.counter(Metric::TunnelsTlsCurrent) == 0
    });
    given(&site.client(), front.address, "front.example").unwrap();
    until("a handshake that is counted", || {
        front.counter(Metric::SslSuccessIn) == 1
    });
}

/// What a client that asks for `name` says first.
fn hello(site: &Site, name: &str) -> Vec<u8> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut connection = ClientConnection::new(site.client(), name).unwrap();
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).unwrap();
    hello
}

/// Takes one connection, and answers its bytes with them once they have ended.
fn echo() -> (SocketAddr, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).unwrap();
        stream.write_all(&heard).unwrap();
        heard
    });
    (address, thread)
}

#[test]
fn every_byte_goes_through_and_one_side_may_end_before_the_other() {
    let site = Site::new();
    let (end, heard) = echo();
    let route = format!("$1:{}", end.port());
    let front = leading(&site, (OPEN, LOCAL), ("*.t.example", &route));
    let mut said = hello(&site, "localhost.t.example");
    // What comes behind the hello, in one piece with it and later.
    said.extend_from_slice(b"early data");
    let mut client = TcpStream::connect(front.address).unwrap();
    client.write_all(&said).unwrap();
    let more = [7; 100_000];
    client.write_all(&more).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    said.extend_from_slice(&more);
    let mut back = Vec::new();
    client.read_to_end(&mut back).unwrap();
    assert!(heard.join().unwrap() == said);
    assert!(back == said);
    let ends = [
        Metric::ClientRequestBodyBytes,
        Metric::OriginRequestBodyBytes,
        Metric::ClientResponseBodyBytes,
        Metric::OriginResponseBodyBytes,
    ];
    let bytes = u64::try_from(said.len()).unwrap();
    until("the counts", || {
        ends.map(|metric| front.counter(metric)) == [bytes; 4]
    });
}

#[test]
fn a_tunnel_where_nothing_moves_is_closed() {
    let site = Site::new();
    let (end, heard) = echo();
    let records =
        format!("{OPEN}CONFIG proxy.config.http.transaction_no_activity_timeout_in INT 1\n");
    let route = end.to_string();
    let front = leading(&site, (&records, LOCAL), ("x.t.example", &route));
    let mut client = TcpStream::connect(front.address).unwrap();
    client.write_all(&hello(&site, "x.t.example")).unwrap();
    assert_eq!(client.read(&mut [0; 16]).unwrap_or(0), 0);
    heard.join().unwrap();
}

#[test]
fn a_tunnel_is_refused_where_connect_would_be() {
    let site = Site::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let end = listener.local_addr().unwrap();
    let (literal, chosen) = (end.to_string(), format!("$1:{}", end.port()));
    let any_in = "ip_allow:\n- {apply: in, ip_addrs: 0/0, action: allow, methods: ALL}\n";
    let no_connect = LOCAL.replacen("allow, methods: ALL", "deny, methods: CONNECT", 1);
    let nobody = format!("{OPEN}CONFIG proxy.config.http.forward_allow STRING 10.0.0.0/8\n");
    for (why, records, rules, route) in [
        ("a reserved address", OPEN, any_in, &literal),
        ("a port of no tunnels", "", LOCAL, &literal),
        ("a client that may not CONNECT", OPEN, &no_connect, &literal),
        ("a host of the client's choice", &nobody, LOCAL, &chosen),
    ] {
        let front = leading(&site, (records, rules), ("*.t.example", route));
        let mut client = Client::connect(front.address);
        client.send(hello(&site, "localhost.t.example"));
        assert!(client.is_closed(), "{why}");
        until(why, || front.counter(Metric::OutcomeDeniedForward) == 1);
        assert_eq!(front.counter(Metric::TunnelsTlsCurrent), 0, "{why}");
    }
    assert!(listener.accept().is_err());
}

/// A balancer on this machine that does not say for whom it connects.
#[test]
fn a_tunnel_is_not_for_a_client_that_may_be_anywhere() {
    let site = Site::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let end = listener.local_addr().unwrap();
    let records =
        format!("{OPEN}CONFIG proxy.config.http.proxy_protocol_allowlist STRING 127.0.0.0/8\n");
    let anybody = LOCAL.replacen("127.0.0.1", "0/0", 1);
    let (literal, chosen) = (end.to_string(), format!("$1:{}", end.port()));
    for (why, rules, route) in [
        ("only loopback may CONNECT", LOCAL, &literal),
        ("only loopback may choose", &anybody, &chosen),
    ] {
        let front = leading(&site, (&records, rules), ("*.t.example", route));
        let mut client = Client::connect(front.address);
        client.send("PROXY UNKNOWN\r\n");
        client.send(hello(&site, "localhost.t.example"));
        assert!(client.is_closed(), "{why}");
        until(why, || front.counter(Metric::OutcomeDeniedForward) == 1);
    }
    assert!(listener.accept().is_err());
}
