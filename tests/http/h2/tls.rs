//! HTTP/2 over TLS, where client and server agree on it (ALPN, RFC 7301).

use super::client::{H2Client, run};
use crate::pki::Authority;
use crate::support::{Origin, Proxy, ok};
use h2::client::Builder;
use http::Request;
use rustls::pki_types::ServerName;
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
        let stream = TcpStream::connect(proxy.address).await.unwrap();
        let name = ServerName::try_from("a.example").unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let client = H2Client::over(stream, &Builder::new()).await;
        for path in ["/a", "/b"] {
            let ask = Request::get(format!("https://a.example{path}")).body(());
            assert_eq!(client.ask(ask.unwrap()).await.unwrap().text(), path);
        }
    });
    assert_eq!(proxy.counter(Metric::Http2Streams), 2);
}
