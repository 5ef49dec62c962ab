//! HTTP/2 over TLS, where client and server agree on it (ALPN, RFC 7301).

use super::ON;
use super::client::{H2Client, run};
use super::raw::PREFACE;
use crate::pki::{Authority, connect};
use crate::support::{Client, Origin, Proxy, named_parts, ok, until};
use h2::client::Builder;
use http::Request;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::sync::Arc;
use strata::metrics::Metric;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

#[test]
fn who_offers_h2_is_served_it_and_its_scheme_is_https() {
    let authority = Authority::new();
    let dir = tempfile::tempdir().unwrap();
    authority
        .issue(&["a.example"])
        .write(&dir.path().join("a.pem"));
    let origin = Origin::answering(|request| ok(request.target()));
    let remap = format!("map https://a.example/ http://{}/\n", origin.address);
    let multicert = "dest_ip=* ssl_cert_name=a.pem\n";
    let proxy = Proxy::over_tls("", &remap, (dir.path(), multicert));
    let mut config = authority.client();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    run(async {
        let client = over_tls(config, proxy.address).await;
        for path in ["/a", "/b"] {
            let ask = Request::get(format!("https://a.example{path}")).body(());
            assert_eq!(client.ask(ask.unwrap()).await.unwrap().text(), path);
        }
    });
    assert_eq!(proxy.counter(Metric::Http2Streams), 2);
}

/// A connection that asks for `a.example` and agrees on HTTP/2.
async fn over_tls(config: ClientConfig, address: SocketAddr) -> H2Client {
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("a.example").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    H2Client::over(stream, &Builder::new()).await
}

#[test]
fn a_reload_lets_go_the_connections_whose_name_would_have_them_otherwise() {
    let authority = Authority::new();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let file = dir.join("a.pem");
    authority.issue(&["a.example"]).write(&file);
    authority.write(&dir.join("ca.pem"));
    let origin = Origin::answering(|request| ok(request.target()));
    let remap = format!("map https://a.example/ http://{}/\n", origin.address);
    let parts = |said: &str| {
        let sni = format!("[[sni]]\nfqdn = \"a.example\"\n{said}\n");
        named_parts(("", &remap), dir, &sni)
    };
    let strict = "verify_client = \"STRICT\"\nverify_client_ca_certs = \"ca.pem\"";
    for (said, status, is_kept) in [
        ("host_sni_policy = \"DISABLED\"", 200, true),
        ("ip_allow = [\"127.0.0.0/8\"]", 200, true),
        ("http2 = \"off\"", 200, false),
        ("tunnel_route = \"b.example\"", 200, false),
        ("ip_allow = [\"192.0.2.1\"]", 421, false),
        (strict, 421, false),
    ] {
        let multicert = "dest_ip=* ssl_cert_name=a.pem\n";
        let proxy = Proxy::secure(named_parts(("", &remap), dir, ""), (dir, multicert));
        let mut config = authority.client();
        config.alpn_protocols = vec![b"h2".to_vec()];
        run(async {
            let client = over_tls(config, proxy.address).await;
            let ask = || Request::get("https://a.example/").body(()).unwrap();
            assert_eq!(client.ask(ask()).await.unwrap().status, 200);
            proxy.reload_parts(parts(said));
            assert_eq!(client.ask(ask()).await.unwrap().status, status, "{said}");
            match is_kept {
                true => assert_eq!(client.ask(ask()).await.unwrap().status, status),
                false => {
                    while client.is_open().await {
                        tokio::task::yield_now().await;
                    }
                }
            }
        });
    }
}

/// `proto=http` of a port: an operator's way to do without HTTP/2.
#[test]
fn a_port_speaks_the_protocols_that_it_says() {
    let authority = Authority::new();
    let dir = tempfile::tempdir().unwrap();
    authority
        .issue(&["a.example"])
        .write(&dir.path().join("a.pem"));
    let multicert = "dest_ip=* ssl_cert_name=a.pem\n";
    for (http2, agreed) in [
        (Some(false), &b"http/1.1"[..]),
        (Some(true), b"h2"),
        (None, b"h2"),
    ] {
        let proxy = Proxy::over_tls_speaking(http2, "", (dir.path(), multicert));
        let mut config = authority.client();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut client = connect(&Arc::new(config), proxy.address, "a.example");
        client.conn.complete_io(&mut client.sock).unwrap();
        assert_eq!(client.conn.alpn_protocol(), Some(agreed), "{http2:?}");
    }
    let origin = Origin::with_body("hello");
    for (record, http2, is_spoken) in [
        ("", Some(true), true),
        (ON, Some(false), false),
        (ON, None, true),
        ("", None, false),
    ] {
        let proxy = Proxy::speaking(http2, record, &origin.map("/"));
        let mut client = Client::connect(proxy.address);
        client.send(PREFACE);
        until("an answer", || {
            proxy.counter(Metric::Http2Connections) == u64::from(is_spoken)
                && proxy.counter(Metric::NetWriteBytes) > 0
        });
    }
}
