//! TLS with origins: who they must prove to be, and what the proxy proves.

use crate::pki::{Authority, Issued, provider};
use crate::support::{Client, Proxy};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;
use strata::metrics::Metric;
use tempfile::TempDir;

/// An origin of https that says for each request on which connection, for which
/// name and with how many certificates of the proxy it came.
struct SecureOrigin {
    address: SocketAddr,
    connections: Arc<Mutex<usize>>,
}

impl SecureOrigin {
    /// With `authority`, the proxy must prove itself.
    fn start(issued: &Issued, authority: Option<&Authority>) -> Self {
        Self::choosing(issued, authority, &[])
    }

    /// As [`Self::start`], of the protocols that it knows the first that the
    /// proxy offers; whichever it is, HTTP/1 is spoken.
    fn choosing(issued: &Issued, authority: Option<&Authority>, alpn: &[&str]) -> Self {
        Self::serve(Self::config(issued, authority, alpn))
    }

    fn config(issued: &Issued, authority: Option<&Authority>, alpn: &[&str]) -> Arc<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match authority {
            None => builder.with_no_client_auth(),
            Some(authority) => builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(roots(authority), provider())
                    .build()
                    .unwrap(),
            ),
        };
        let chain = vec![issued.certificate.clone()];
        let mut config = builder
            .with_single_cert(
                chain,
                PrivatePkcs8KeyDer::from(issued.key.serialize_der()).into(),
            )
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    fn serve(config: Arc<ServerConfig>) -> Self {
        Self::serve_at(config, ([127, 0, 0, 1], 0).into())
    }

    fn serve_at(config: Arc<ServerConfig>, at: SocketAddr) -> Self {
        let listener = TcpListener::bind(at).unwrap();
        let origin = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
        };
        let connections = Arc::clone(&origin.connections);
        thread::spawn(move || {
            while let Ok((socket, _)) = listener.accept() {
                *connections.lock().unwrap() += 1;
                let number = *connections.lock().unwrap();
                let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
                let stream = StreamOwned::new(connection, socket);
                thread::spawn(move || converse(BufReader::new(stream), number));
            }
        });
        origin
    }

    fn map(&self, host: &str) -> String {
        let port = self.address.port();
        format!("map http://a.example/ https://{host}:{port}/\n")
    }

    fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

type Secure = BufReader<StreamOwned<ServerConnection, std::net::TcpStream>>;

/// Answers until the proxy leaves, or echoes after an Upgrade.
fn converse(mut stream: Secure, number: usize) -> Option<()> {
    loop {
        let head = head(&mut stream)?;
        let connection = &stream.get_ref().conn;
        let name = connection.server_name().unwrap_or("-").to_owned();
        let shown = connection.peer_certificates().unwrap_or_default().len();
        let body = format!("{number} {name} {shown}");
        let length = body.len();
        let answer = if head.to_ascii_lowercase().contains("upgrade: websocket") {
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
             Connection: upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nhello"
                .to_owned()
        } else {
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")
        };
        stream.get_mut().write_all(answer.as_bytes()).ok()?;
        stream.get_mut().flush().ok()?;
    }
}

fn head(stream: &mut Secure) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        match stream.read_line(&mut head) {
            Ok(read) if read > 0 => {}
            _ => return None,
        }
    }
    Some(head)
}

fn roots(authority: &Authority) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.issuer.der().clone()).unwrap();
    Arc::new(roots)
}

/// An authority, and where its certificate lies.
struct Site {
    authority: Authority,
    dir: TempDir,
}

impl Site {
    fn new() -> Self {
        let site = Self {
            authority: Authority::new(),
            dir: tempfile::tempdir().unwrap(),
        };
        site.authority.write(&site.dir.path().join("ca.pem"));
        site
    }

    fn records(&self, more: &str) -> String {
        let path = self.dir.path().display();
        format!(
            "CONFIG proxy.config.ssl.client.CA.cert.filename STRING ca.pem\n\
             CONFIG proxy.config.ssl.client.CA.cert.path STRING {path}\n{more}"
        )
    }

    fn proxy(&self, more: &str, remap: &str) -> Proxy {
        Proxy::with_origin_tls(&self.records(more), remap, self.dir.path())
    }
}

/// A certificate that ended long ago.
fn expired(authority: &Authority) -> Issued {
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_before = date_time_ymd(2000, 1, 1);
    params.not_after = date_time_ymd(2001, 1, 1);
    authority.signed(&params, KeyPair::generate().unwrap())
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a.example\r\nAuthorization: x\r\n\r\n";

#[test]
fn an_origin_of_https_is_asked_by_its_name_and_its_connection_kept() {
    let site = Site::new();
    let origin = SecureOrigin::start(&site.authority.issue(&["localhost"]), None);
    let proxy = site.proxy("", &origin.map("localhost"));
    let mut client = Client::connect(proxy.address);
    for _ in 0..2 {
        assert_eq!(client.ask(GET).text(), "1 localhost 0");
    }
    assert_eq!(proxy.counter(Metric::SslAttemptsOut), 1);
    assert_eq!(proxy.counter(Metric::SslSuccessOut), 1);
}

#[test]
fn an_address_proves_itself_as_an_address_and_is_no_name_to_ask_for() {
    let site = Site::new();
    let origin = SecureOrigin::start(&site.authority.issue(&["127.0.0.1"]), None);
    let proxy = site.proxy("", &origin.map("127.0.0.1"));
    let answer = Client::connect(proxy.address).ask(GET);
    assert_eq!(answer.text(), "1 - 0");
}

#[test]
fn an_origin_that_can_t_prove_itself_is_502_unless_a_record_lets_it() {
    let site = Site::new();
    let stranger = Authority::new();
    for (issued, counted) in [
        (
            site.authority.issue(&["other.example"]),
            Metric::SslOriginCertVerifyFailed,
        ),
        (stranger.issue(&["localhost"]), Metric::SslOriginUnknownCa),
        (expired(&site.authority), Metric::SslOriginExpiredCert),
    ] {
        let origin = SecureOrigin::start(&issued, None);
        let proxy = site.proxy("", &origin.map("localhost"));
        assert_eq!(Client::connect(proxy.address).ask(GET).status, 502);
        assert!(proxy.counter(counted) > 0, "{counted:?}");
        assert_eq!(proxy.counter(Metric::SslSuccessOut), 0);
        for (policy, told) in [("PERMISSIVE", 1), ("DISABLED", 0)] {
            let policy =
                format!("CONFIG proxy.config.ssl.client.verify.server.policy STRING {policy}\n");
            let proxy = site.proxy(&policy, &origin.map("localhost"));
            assert_eq!(Client::connect(proxy.address).ask(GET).status, 200);
            assert_eq!(proxy.counter(Metric::SslOriginUnproven), told);
        }
    }
}

#[test]
fn a_server_in_clear_is_no_origin_of_https() {
    let site = Site::new();
    let origin = crate::support::Origin::answering(|_| crate::support::ok("x"));
    let remap = format!("map http://a.example/ https://{}/\n", origin.address);
    let proxy = site.proxy("", &remap);
    assert_eq!(Client::connect(proxy.address).ask(GET).status, 502);
    assert!(proxy.counter(Metric::SslOriginOtherErrors) > 0);
    assert_eq!(origin.requests().len(), 0);
}

#[test]
fn the_proxy_proves_itself_to_an_origin_that_asks() {
    let site = Site::new();
    let own = site.authority.issue(&["proxy.example"]);
    let path = |name: &str| site.dir.path().join(name);
    std::fs::create_dir(path("keys")).unwrap();
    own.write_apart(&path("own.pem"), &path("keys/own.key"));
    let issued = site.authority.issue(&["localhost"]);
    let origin = SecureOrigin::start(&issued, Some(&site.authority));
    let without = site.proxy("", &origin.map("localhost"));
    assert_eq!(Client::connect(without.address).ask(GET).status, 502);
    let records = format!(
        "CONFIG proxy.config.ssl.client.cert.filename STRING own.pem\n\
         CONFIG proxy.config.ssl.client.cert.path STRING {}\n\
         CONFIG proxy.config.ssl.client.private_key.filename STRING own.key\n\
         CONFIG proxy.config.ssl.client.private_key.path STRING {}\n",
        site.dir.path().display(),
        path("keys").display(),
    );
    let proxy = site.proxy(&records, &origin.map("localhost"));
    let answer = Client::connect(proxy.address).ask(GET);
    assert!(answer.text().ends_with(" localhost 1"), "{}", answer.text());
}

/// What the proxy proves itself by is for the origins of its operator.
#[test]
fn an_origin_that_a_client_chooses_is_not_shown_the_proxy_s_certificate() {
    let site = Site::new();
    let own = site.authority.issue(&["proxy.example"]);
    let path = |name: &str| site.dir.path().join(name);
    own.write_apart(&path("own.pem"), &path("own.key"));
    let issued = site.authority.issue(&["localhost"]);
    let origin = SecureOrigin::start(&issued, Some(&site.authority));
    let records = format!(
        "{}CONFIG proxy.config.url_remap.remap_required INT 0\n\
         CONFIG proxy.config.ssl.client.cert.filename STRING own.pem\n\
         CONFIG proxy.config.ssl.client.private_key.filename STRING own.key\n",
        site.records("")
    );
    let open = "ip_allow:\n\
        - {apply: in, ip_addrs: 127.0.0.1, action: allow, methods: ALL}\n\
        - {apply: out, ip_addrs: 127.0.0.0/8, action: allow, methods: ALL}\n";
    let files = (site.dir.path(), open);
    let proxy = Proxy::with_origin_tls_and_ip_allow(&records, &origin.map("localhost"), files);
    let mut client = Client::connect(proxy.address);
    let mapped = client.ask(GET);
    assert!(mapped.text().ends_with(" localhost 1"), "{}", mapped.text());
    let port = origin.address.port();
    let chosen = format!("GET https://localhost:{port}/x HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.ask(chosen).status, 502, "the origin wants a proof");
}

/// Two servers of one name, of which the first can't prove itself.
#[test]
fn another_address_is_tried_when_a_server_can_t_prove_itself() {
    let site = Site::new();
    let good = SecureOrigin::start(&site.authority.issue(&["two.example"]), None);
    let port = good.address.port();
    let config = SecureOrigin::config(&expired(&site.authority), None, &[]);
    let bad = SecureOrigin::serve_at(config, ([127, 0, 0, 2], port).into());
    let hosts = site.dir.path().join("hosts");
    std::fs::write(&hosts, "127.0.0.2 two.example\n127.0.0.1 two.example\n").unwrap();
    let records = format!(
        "CONFIG proxy.config.hostdb.host_file.path STRING {}\n",
        hosts.display()
    );
    let proxy = site.proxy(&records, &good.map("two.example"));
    assert_eq!(Client::connect(proxy.address).ask(GET).status, 200);
    assert_eq!(bad.connections(), 1, "it is not asked again");
    assert_eq!(proxy.counter(Metric::SslOriginExpiredCert), 1);
}

/// Renewed by whom it is for, without a reload.
#[test]
fn certificates_for_origins_are_renewed_and_the_last_good_ones_kept() {
    let site = Site::new();
    let path = |name: &str| site.dir.path().join(name);
    let stranger = Authority::new();
    let issue = |authority: &Authority| {
        let own = authority.issue(&["proxy.example"]);
        own.write_apart(&path("own.pem"), &path("own.key"));
    };
    issue(&stranger);
    let issued = site.authority.issue(&["localhost"]);
    let origin = SecureOrigin::start(&issued, Some(&site.authority));
    let records = "CONFIG proxy.config.ssl.client.cert.filename STRING own.pem\n\
         CONFIG proxy.config.ssl.client.private_key.filename STRING own.key\n";
    let port = origin.address.port();
    let ruled = format!(
        "{}map http://b.example/ https://localhost:{port}/ @plugin=conf_remap.so \
         @pparam=proxy.config.http.insert_age_in_response=0\n",
        origin.map("localhost")
    );
    let proxy = site.proxy(records, &ruled);
    let mut client = Client::connect(proxy.address);
    let by_rule = GET.replace("a.example", "b.example");
    assert_eq!(client.ask(GET).status, 502, "a stranger's is no proof");
    assert_eq!(client.ask(&by_rule).status, 502);
    assert!(
        !proxy.renew_origin_tls(site.dir.path()),
        "nothing has changed"
    );
    issue(&site.authority);
    assert!(proxy.renew_origin_tls(site.dir.path()));
    assert_eq!(client.ask(GET).status, 200);
    assert_eq!(client.ask(&by_rule).status, 200);
    std::fs::write(path("own.key"), "").unwrap();
    assert!(!proxy.renew_origin_tls(site.dir.path()));
    assert_eq!(client.ask(GET).status, 200);
}

/// `verify_server_policy`, `client_cert` and `client_key` of sni.toml.
#[test]
fn an_origin_is_asked_as_the_first_entry_for_its_name_says() {
    let site = Site::new();
    let own = site.authority.issue(&["proxy.example"]);
    let path = |name: &str| site.dir.path().join(name);
    own.write_apart(&path("own.pem"), &path("own.key"));
    let ask = |origin: &SecureOrigin, sni: &str| {
        let records = site.records("");
        let of = (site.dir.path(), sni);
        let proxy = Proxy::with_origin_names(&records, &origin.map("localhost"), of);
        Client::connect(proxy.address).ask(GET)
    };
    let entry = |name: &str, said: &str| format!("[[sni]]\nfqdn = \"{name}\"\n{said}\n");

    let lax = "verify_server_policy = \"DISABLED\"";
    let stranger = SecureOrigin::start(&Authority::new().issue(&["localhost"]), None);
    let here = entry("local*", lax);
    assert_eq!(ask(&stranger, &here).status, 200);
    assert_eq!(ask(&stranger, &entry("other.example", lax)).status, 502);
    let strict = entry("localhost", "verify_server_policy = \"ENFORCED\"");
    assert_eq!(ask(&stranger, &(strict + &here)).status, 502);
    let silent = entry("localhost", "http2 = \"off\"");
    assert_eq!(ask(&stranger, &(silent + &here)).status, 502);

    let issued = site.authority.issue(&["localhost"]);
    let asking = SecureOrigin::start(&issued, Some(&site.authority));
    let shown = "client_cert = \"own.pem\"\nclient_key = \"own.key\"";
    let answer = ask(&asking, &entry("localhost", shown));
    assert!(answer.text().ends_with(" localhost 1"), "{}", answer.text());
    assert_eq!(ask(&asking, &entry("other.example", shown)).status, 502);
}

#[test]
fn a_rule_shows_its_own_certificate_and_no_other_rule_s_requests_do() {
    let site = Site::new();
    let own = site.authority.issue(&["proxy.example"]);
    let path = |name: &str| site.dir.path().join(name);
    own.write_apart(&path("own.pem"), &path("own.key"));
    let issued = site.authority.issue(&["localhost"]);
    let origin = SecureOrigin::start(&issued, Some(&site.authority));
    let port = origin.address.port();
    let remap = format!(
        "map http://plain.example/ https://localhost:{port}/\n\
         map http://a.example/ https://localhost:{port}/ @plugin=conf_remap.so \
         @pparam=proxy.config.ssl.client.cert.filename=own.pem \
         @pparam=proxy.config.ssl.client.private_key.filename=own.key\n"
    );
    let proxy = site.proxy("", &remap);
    let mut client = Client::connect(proxy.address);
    let answer = client.ask(GET);
    assert!(answer.text().ends_with(" localhost 1"), "{}", answer.text());
    // The connection that was proven is kept, and is not for this one.
    let plain = GET.replace("a.example", "plain.example");
    assert_eq!(client.ask(plain).status, 502);
    assert_eq!(client.ask(GET).text(), answer.text());
}

#[test]
fn a_kept_connection_does_not_outlive_the_settings_it_was_made_by() {
    let site = Site::new();
    let stranger = Authority::new();
    let origin = SecureOrigin::start(&stranger.issue(&["localhost"]), None);
    let lax = "CONFIG proxy.config.ssl.client.verify.server.policy STRING DISABLED\n";
    let remap = origin.map("localhost");
    let proxy = site.proxy(lax, &remap);
    let mut client = Client::connect(proxy.address);
    assert_eq!(client.ask(GET).status, 200);
    proxy.reload_origin_tls(&site.records(lax), &remap, site.dir.path());
    assert_eq!(client.ask(GET).text(), "1 localhost 0");
    proxy.reload_origin_tls(&site.records(""), &remap, site.dir.path());
    assert_eq!(client.ask(GET).status, 502);
    assert!(origin.connections() > 1);
}

#[test]
fn a_websocket_goes_through_to_an_origin_of_https() {
    let site = Site::new();
    let origin = SecureOrigin::start(&site.authority.issue(&["localhost"]), None);
    let proxy = site.proxy("", &origin.map("localhost"));
    let mut client = Client::connect(proxy.address);
    client.send(
        "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    assert_eq!(client.head().unwrap().status, 101);
    assert_eq!(client.bytes(5), b"hello");
}

#[test]
fn a_websocket_goes_by_http_1_where_http_2_could_be_had() {
    let site = Site::new();
    let issued = site.authority.issue(&["localhost"]);
    let origin = SecureOrigin::choosing(&issued, None, &["h2", "http/1.1"]);
    let offer = "CONFIG proxy.config.ssl.client.alpn_protocols STRING h2,http/1.1\n";
    let proxy = site.proxy(offer, &origin.map("localhost"));
    let mut client = Client::connect(proxy.address);
    client.send(
        "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    assert_eq!(client.head().unwrap().status, 101);
    assert_eq!(proxy.counter(Metric::Http2OriginConnections), 0);
}

#[test]
fn an_origin_that_takes_no_http_2_is_spoken_to_in_http_1() {
    let site = Site::new();
    let issued = site.authority.issue(&["localhost"]);
    let offer = "CONFIG proxy.config.ssl.client.alpn_protocols STRING h2,http/1.1\n";
    for alpn in [&[][..], &["http/1.1"]] {
        let origin = SecureOrigin::choosing(&issued, None, alpn);
        let proxy = site.proxy(offer, &origin.map("localhost"));
        let mut client = Client::connect(proxy.address);
        for _ in 0..2 {
            assert_eq!(client.ask(GET).text(), "1 localhost 0");
        }
    }
}
