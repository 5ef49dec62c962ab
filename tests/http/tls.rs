//! TLS with clients: certificates by name, versions, resumption, ends.

use crate::pki::{Authority, Issued, TlsClient, connect, given, provider};
use crate::staple::staple;
use crate::support::{Client, Origin, Proxy, ok, until};
use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, HandshakeKind, SignatureScheme,
    SupportedProtocolVersion,
};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use strata::metrics::Metric;
use tempfile::TempDir;

/// An issuer, and the files of what it issued.
pub(crate) struct Site {
    pub(crate) authority: Authority,
    pub(crate) dir: TempDir,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self {
            authority: Authority::new(),
            dir: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn issue(&self, file: &str, names: &[&str]) -> CertificateDer<'static> {
        let issued = self.authority.issue(names);
        issued.write(&self.dir.path().join(file));
        issued.certificate
    }

    fn proxy(&self, records: &str, remap: &str, multicert: &str) -> Proxy {
        Proxy::over_tls(records, remap, (self.dir.path(), multicert))
    }

    /// A proxy of one certificate, for every name `a.example`.
    fn simple(&self, records: &str, origin: &Origin) -> Proxy {
        self.issue("a.pem", &["a.example"]);
        let remap = format!("map https://a.example/ http://{}/\n", origin.address);
        self.proxy(records, &remap, "dest_ip=* ssl_cert_name=a.pem\n")
    }

    pub(crate) fn client(&self) -> Arc<ClientConfig> {
        Arc::new(self.authority.client())
    }
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";

fn exchange(client: &mut TlsClient, request: &[u8]) -> (String, std::io::Result<()>) {
    client.write_all(request).unwrap();
    let mut answer = Vec::new();
    let end = client.read_to_end(&mut answer).map(drop);
    (String::from_utf8_lossy(&answer).into_owned(), end)
}

/// A client of one version.
pub(crate) fn speaking(version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
    Arc::new(trusting(&[version], Anybody::default()))
}

fn trusting(versions: &[&'static SupportedProtocolVersion], whom: Anybody) -> ClientConfig {
    ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(whom))
        .with_no_client_auth()
}

/// Takes any certificate whose key signs by one of these schemes, and keeps what
/// was stapled to it.
#[derive(Debug)]
struct Anybody(Vec<SignatureScheme>, Arc<Mutex<Vec<u8>>>);

impl Default for Anybody {
    fn default() -> Self {
        let algorithms = provider().signature_verification_algorithms;
        Self(algorithms.supported_schemes(), Arc::default())
    }
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        staple: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        *self.1.lock().unwrap() = staple.to_vec();
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.clone()
    }
}

#[test]
fn a_request_over_tls_is_https_to_the_rules_and_its_end_is_told() {
    let site = Site::new();
    let origin = Origin::answering(|request| ok(&format!("over {}", request.target())));
    let proxy = site.simple("", &origin);
    for version in [&TLS12, &TLS13] {
        let mut client = connect(&speaking(version), proxy.address, "a.example");
        let (answer, end) = exchange(&mut client, GET);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.ends_with("over /"), "{answer}");
        // Without the alert that ends a connection, this would be an error.
        assert!(end.is_ok(), "{end:?}");
    }
    let recorded = origin.requests();
    assert_eq!(recorded[0].fields("x-forwarded-proto"), [""; 0]);
    assert_eq!(proxy.counter(Metric::SslTotalTls12), 1);
    assert_eq!(proxy.counter(Metric::SslTotalTls13), 1);
    let groups = [Metric::SslGroupX25519, Metric::SslGroupX25519MlKem768];
    let by_group = groups.map(|group| proxy.counter(group));
    assert_eq!(by_group.iter().sum::<u64>(), 2);
    assert_eq!(proxy.counter(Metric::SslAttemptsIn), 2);
    assert_eq!(proxy.counter(Metric::SslSuccessIn), 2);
}

#[test]
fn one_connection_serves_many_requests_and_a_large_body_is_whole() {
    let site = Site::new();
    let body = "0123456789abcdef".repeat(1 << 16);
    let sent = body.clone();
    let origin = Origin::answering(move |_| ok(&sent));
    let proxy = site.simple("", &origin);
    let mut client = connect(&site.client(), proxy.address, "a.example");
    let request = b"GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
    client.write_all(&request.repeat(2)).unwrap();
    let (answer, _) = exchange(&mut client, GET);
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 3);
    assert_eq!(answer.matches(&body).count(), 3);
}

#[test]
fn a_client_that_takes_little_at_a_time_gets_the_last_byte_too() {
    let site = Site::new();
    let body = "0123456789abcdef".repeat(1 << 18);
    let sent = body.clone();
    let origin = Origin::answering(move |_| ok(&sent));
    let proxy = site.simple("", &origin);
    let mut client = connect(&site.client(), proxy.address, "a.example");
    let socket = socket2::SockRef::from(&client.sock);
    socket.set_recv_buffer_size(65_536).unwrap();
    client
        .write_all(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .unwrap();
    // The connection is kept, so that nothing but the body's end ends this.
    let mut answer = Vec::new();
    let mut piece = [0; 1000];
    while !answer.ends_with(&body.as_bytes()[body.len() - 1000..]) || answer.len() < body.len() {
        let read = client.read(&mut piece).unwrap();
        assert_ne!(read, 0, "an end after {}", answer.len());
        answer.extend_from_slice(&piece[..read]);
    }
}

#[test]
fn the_versions_of_the_records_are_spoken_and_no_other() {
    let site = Site::new();
    let origin = Origin::answering(|_| ok("x"));
    for (record, spoken, refused) in [
        ("ssl.TLSv1_2", &TLS13, &TLS12),
        ("ssl.TLSv1_3", &TLS12, &TLS13),
    ] {
        let records = format!("CONFIG proxy.config.{record} INT 0\n");
        let proxy = site.simple(&records, &origin);
        given(&speaking(spoken), proxy.address, "a.example").unwrap();
        let error = given(&speaking(refused), proxy.address, "a.example").unwrap_err();
        assert!(error.contains("ProtocolVersion"), "{error}");
        until("a refusal that is counted", || {
            proxy.counter(Metric::SslClientWrongVersion) == 1
        });
    }
}

#[test]
fn the_certificate_is_of_the_name_then_a_wildcard_then_the_address_then_any() {
    let site = Site::new();
    let exact = site.issue("exact.pem", &["www.a.example"]);
    let wildcard = site.issue("wildcard.pem", &["*.a.example"]);
    let any = site.issue("any.pem", &["any.example"]);
    let here = site.issue("here.pem", &["here.example"]);
    let elsewhere = site.issue("elsewhere.pem", &["elsewhere.example"]);
    let multicert = "dest_ip=* ssl_cert_name=any.pem\n\
        ssl_cert_name=wildcard.pem\nssl_cert_name=exact.pem\n\
        dest_ip=127.0.0.2 ssl_cert_name=elsewhere.pem\n";
    let proxy = site.proxy("", "", multicert);
    let client = speaking(&TLS13);
    let asked = |name| given(&client, proxy.address, name).unwrap();
    assert_eq!(asked("www.a.example"), exact);
    assert_eq!(asked("WWW.A.example"), exact);
    assert_eq!(asked("img.a.example"), wildcard);
    assert_eq!(asked("b.img.a.example"), any);
    assert_eq!(asked("elsewhere.example"), elsewhere);
    assert_eq!(asked("other.example"), any);
    // An address is no name (RFC 6066 3): such a client sends none.
    assert_eq!(asked("127.0.0.1"), any);

    let proxy = site.proxy(
        "",
        "",
        &format!("{multicert}dest_ip=127.0.0.1 ssl_cert_name=here.pem\n"),
    );
    assert_eq!(given(&client, proxy.address, "127.0.0.1").unwrap(), here);
    until("a client without a name that is counted", || {
        proxy.counter(Metric::SslClientUnnamed) == 1
    });
    assert_eq!(
        given(&client, proxy.address, "img.a.example").unwrap(),
        wildcard
    );
}

#[test]
fn a_client_without_a_certificate_for_it_is_refused() {
    let site = Site::new();
    site.issue("a.pem", &["a.example"]);
    let proxy = site.proxy("", "", "ssl_cert_name=a.pem\n");
    given(&site.client(), proxy.address, "a.example").unwrap();
    given(&site.client(), proxy.address, "b.example").unwrap_err();
    until("a refusal that is counted", || {
        proxy.counter(Metric::SslClientUnknownName) == 1
    });
}

#[test]
fn of_two_kinds_of_keys_a_client_gets_the_one_it_understands() {
    let site = Site::new();
    let rsa = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
    let rsa = site.authority.issue_for(&["a.example"], rsa);
    let ecdsa = site.authority.issue(&["a.example"]);
    let (keys, dir) = (site.dir.path().join("keys"), site.dir.path());
    std::fs::create_dir(&keys).unwrap();
    rsa.write_apart(&dir.join("rsa.pem"), &keys.join("rsa.key"));
    ecdsa.write_apart(&dir.join("ecdsa.pem"), &keys.join("ecdsa.key"));
    let records = format!(
        "CONFIG proxy.config.ssl.server.private_key.path STRING {}\n",
        keys.display()
    );
    let multicert = "ssl_cert_name=rsa.pem,ecdsa.pem ssl_key_name=rsa.key,ecdsa.key\n";
    let proxy = site.proxy(&records, "", multicert);
    for version in [&TLS12, &TLS13] {
        let rsa_only = Anybody(vec![SignatureScheme::RSA_PSS_SHA256], Arc::default());
        let rsa_only = Arc::new(trusting(&[version], rsa_only));
        let both = speaking(version);
        let asked = |client| given(client, proxy.address, "a.example").unwrap();
        assert_eq!(asked(&rsa_only), rsa.certificate);
        assert_eq!(asked(&both), ecdsa.certificate);
    }
}

fn kind(client: &Arc<ClientConfig>, proxy: &Proxy) -> HandshakeKind {
    let mut client = connect(client, proxy.address, "a.example");
    let (answer, _) = exchange(&mut client, GET);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    client.conn.handshake_kind().unwrap()
}

#[test]
fn a_session_is_resumed_by_ticket_unless_a_record_says_no() {
    let site = Site::new();
    let origin = Origin::answering(|_| ok("x"));
    let off = [
        "CONFIG proxy.config.ssl.server.session_ticket.enable INT 0\n",
        "CONFIG proxy.config.ssl.server.session_ticket.number INT 0\n",
    ];
    for version in [&TLS12, &TLS13] {
        let proxy = site.simple("", &origin);
        let client = speaking(version);
        assert_eq!(kind(&client, &proxy), HandshakeKind::Full);
        assert_eq!(kind(&client, &proxy), HandshakeKind::Resumed);
        assert_eq!(proxy.counter(Metric::SslSessionHit), 1);
        assert_eq!(proxy.counter(Metric::SslSessionMiss), 1);
        for records in off {
            let proxy = site.simple(records, &origin);
            let client = speaking(version);
            assert_eq!(kind(&client, &proxy), HandshakeKind::Full);
            assert_eq!(kind(&client, &proxy), HandshakeKind::Full, "{records}");
        }
    }
}

#[test]
fn a_body_that_breaks_off_does_not_look_whole() {
    let site = Site::new();
    let origin = Origin::speaking(|_, mut stream| {
        // Neither a length nor chunks: the end of the connection is the body's.
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nparts\r\n";
        stream.write_all(head).unwrap();
        false
    });
    let proxy = site.simple("", &origin);
    let mut client = connect(&site.client(), proxy.address, "a.example");
    let request = b"GET / HTTP/1.0\r\nHost: a.example\r\n\r\n";
    let (answer, end) = exchange(&mut client, request);
    assert!(
        answer.ends_with("parts") || answer.contains(" 502 "),
        "{answer}"
    );
    if answer.ends_with("parts") {
        let kind = end.unwrap_err().kind();
        let broken = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset];
        assert!(broken.contains(&kind), "{kind:?}");
    }
}

/// The scheme of a request is its connection's, whatever its target says.
#[test]
fn a_rule_for_http_is_not_reached_over_tls() {
    let site = Site::new();
    site.issue("a.pem", &["a.example"]);
    let origin = Origin::answering(|request| ok(request.target()));
    let remap = format!(
        "map https://a.example/ http://{0}/s/\nmap http://a.example/ http://{0}/c/\n",
        origin.address
    );
    let proxy = site.proxy("", &remap, "dest_ip=* ssl_cert_name=a.pem\n");
    for (target, status) in [
        ("http://a.example/", "421"),
        ("https://a.example/", "200"),
        ("/", "200"),
    ] {
        let mut client = connect(&site.client(), proxy.address, "a.example");
        let ask = format!("GET {target} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
        let (answer, _) = exchange(&mut client, ask.as_bytes());
        assert_eq!(answer.split(' ').nth(1), Some(status), "{target}");
    }
    let seen = origin.requests();
    assert!(seen.iter().all(|request| request.target() == "/s/"));
}

#[test]
fn a_client_that_says_nothing_is_not_waited_for() {
    let site = Site::new();
    let origin = Origin::answering(|_| ok("x"));
    let records = "CONFIG proxy.config.ssl.handshake_timeout_in INT 1\n";
    let proxy = site.simple(records, &origin);
    assert!(Client::connect(proxy.address).is_closed());
    until("a time-out that is counted", || {
        proxy.counter(Metric::SslHandshakeTimeouts) == 1
    });
}

#[test]
fn a_handshake_that_does_not_come_does_not_hold_up_a_drain() {
    let site = Site::new();
    let origin = Origin::answering(|_| ok("x"));
    let proxy = site.simple("", &origin);
    let mut silent = Client::connect(proxy.address);
    until("the connection", || {
        proxy.counter(Metric::SslAttemptsIn) == 1
    });
    proxy.drain();
    assert!(silent.is_closed());
    proxy.ended();
}

#[test]
fn handshakes_that_fail_are_counted_by_their_reason() {
    let site = Site::new();
    let origin = Origin::answering(|_| ok("x"));
    let proxy = site.simple("", &origin);
    let mut plain = Client::connect(proxy.address);
    plain.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    until("plain HTTP that is refused", || {
        proxy.counter(Metric::SslClientOtherErrors) == 1
    });
    drop(TcpStream::connect(proxy.address).unwrap());
    until("a client that left", || {
        proxy.counter(Metric::SslErrorSyscall) == 1
    });
    let stranger = Arc::new(Authority::new().client());
    given(&stranger, proxy.address, "a.example").unwrap_err();
    until("a client that knows no such issuer", || {
        proxy.counter(Metric::SslClientUnknownCa) == 1
    });
    assert_eq!(proxy.counter(Metric::SslSuccessIn), 0);
}

#[test]
fn a_chain_from_a_file_of_its_own_is_sent_along() {
    let site = Site::new();
    site.issue("a.pem", &["a.example"]);
    let authorities = site.dir.path().join("authorities");
    std::fs::create_dir(&authorities).unwrap();
    site.authority.write(&authorities.join("chain.pem"));
    let records = format!(
        "CONFIG proxy.config.ssl.CA.cert.path STRING {}\n",
        authorities.display()
    );
    let multicert = "ssl_cert_name=a.pem ssl_ca_name=chain.pem\n";
    let proxy = site.proxy(&records, "", multicert);
    let mut client = connect(&site.client(), proxy.address, "a.example");
    let TlsClient { conn, sock } = &mut client;
    while conn.is_handshaking() {
        conn.complete_io(sock).unwrap();
    }
    assert_eq!(conn.peer_certificates().unwrap().len(), 2);
}

#[test]
fn an_ocsp_response_is_stapled_to_its_certificate() {
    let site = Site::new();
    let certificate = site.issue("a.pem", &["a.example"]);
    let response = staple(&certificate);
    let staples = site.dir.path().join("staples");
    std::fs::create_dir(&staples).unwrap();
    std::fs::write(staples.join("a.ocsp"), &response).unwrap();
    let records = format!(
        "CONFIG proxy.config.ssl.ocsp.response.path STRING {}\n",
        staples.display()
    );
    let multicert = "ssl_cert_name=a.pem ssl_ocsp_name=a.ocsp\n";
    let proxy = site.proxy(&records, "", multicert);
    for version in [&TLS12, &TLS13] {
        let anybody = Anybody::default();
        let stapled = Arc::clone(&anybody.1);
        let client = Arc::new(trusting(&[version], anybody));
        given(&client, proxy.address, "a.example").unwrap();
        assert_eq!(*stapled.lock().unwrap(), response);
    }
}

/// Makes a client show that certificate to who asks for one.
pub(crate) fn showing(mut client: ClientConfig, own: &Issued) -> ClientConfig {
    let key = PrivatePkcs8KeyDer::from(own.key.serialize_der());
    let signer = provider().key_provider.load_private_key(key.into());
    let shown = CertifiedKey::new(vec![own.certificate.clone()], signer.unwrap());
    client.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(shown));
    client
}

/// The status of a request by a client that shows this certificate.
fn shown(site: &Site, proxy: &Proxy, own: Option<&Issued>) -> Option<String> {
    let client = site.authority.client();
    let client = match own {
        Some(own) => showing(client, own),
        None => client,
    };
    let mut client = connect(&Arc::new(client), proxy.address, "a.example");
    client.write_all(GET).ok()?;
    let mut answer = String::new();
    client.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1).map(str::to_owned)
}

#[test]
fn clients_prove_themselves_as_the_record_asks() {
    let site = Site::new();
    let origin = Origin::answering(|_| ok("x"));
    site.authority.write(&site.dir.path().join("ca.pem"));
    let known = site.authority.issue(&["client.example"]);
    let stranger = Authority::new().issue(&["client.example"]);
    let served = Some("200".to_owned());
    for (level, without) in [(0, true), (1, true), (2, false)] {
        let records = format!(
            "CONFIG proxy.config.ssl.client.certification_level INT {level}\n\
             CONFIG proxy.config.ssl.CA.cert.filename STRING ca.pem\n"
        );
        let proxy = site.simple(&records, &origin);
        assert_eq!(shown(&site, &proxy, Some(&known)), served, "{level}");
        assert_eq!(shown(&site, &proxy, None).is_some(), without, "{level}");
        let strange = shown(&site, &proxy, Some(&stranger)).is_some();
        assert_eq!(strange, level == 0, "{level}");
        until("a stranger that is counted", || {
            level == 0 || proxy.counter(Metric::SslClientUnknownCa) == 1
        });
    }
}
