//! What holds for clients that ask for a name: versions, proofs, HTTP/2,
//! addresses, and requests for other hosts.

use crate::pki::{Authority, connect, given};
use crate::support::{Origin, Proxy, named_parts, ok, until};
use crate::tls::{Site, showing, speaking};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, HandshakeKind};
use std::io::{Read, Write};
use std::sync::Arc;
use strata::metrics::Metric;

const MULTICERT: &str = "dest_ip=* ssl_cert_name=a.pem\n";

/// An origin behind a proxy of two names.
struct Scene {
    site: Site,
    _origin: Origin,
    remap: String,
}

impl Scene {
    fn new() -> Self {
        let site = Site::new();
        site.issue("a.pem", &["a.example", "b.example"]);
        site.authority.write(&site.dir.path().join("ca.pem"));
        let origin = Origin::answering(|_| ok("x"));
        let to = origin.address;
        let remap =
            format!("map https://a.example/ http://{to}/\nmap https://b.example/ http://{to}/\n");
        Self {
            site,
            _origin: origin,
            remap,
        }
    }

    fn proxy(&self, records: &str, sni: &str) -> Proxy {
        let dir = self.site.dir.path();
        let parts = named_parts((records, &self.remap), dir, sni);
        Proxy::secure(parts, (dir, MULTICERT))
    }

    fn reload(&self, proxy: &Proxy, sni: &str) {
        let dir = self.site.dir.path();
        proxy.reload_parts(named_parts(("", &self.remap), dir, sni));
    }

    /// A client with a good certificate.
    fn proven(&self) -> Arc<ClientConfig> {
        let own = self.site.authority.issue(&["client.example"]);
        Arc::new(showing(self.site.authority.client(), &own))
    }
}

/// The status of a request for `host` on a connection that asks for `name`, and
/// how the hands were shaken; none if nothing is answered.
fn asked(
    client: &Arc<ClientConfig>,
    proxy: &Proxy,
    (name, host): (&str, &str),
) -> Option<(String, HandshakeKind)> {
    let mut client = connect(client, proxy.address, name);
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    client.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.to_owned();
    Some((status, client.conn.handshake_kind()?))
}

fn status(client: &Arc<ClientConfig>, proxy: &Proxy, names: (&str, &str)) -> String {
    asked(client, proxy, names).map_or_else(|| "none".to_owned(), |(status, _)| status)
}

#[test]
fn versions_are_those_of_the_name_whatever_the_records_say() {
    let scene = Scene::new();
    let sni = "[[sni]]\nfqdn = \"a.example\"\nvalid_tls_versions_in = [\"TLSv1_2\"]\n";
    let records = "CONFIG proxy.config.ssl.TLSv1_2 INT 0\n";
    let proxy = scene.proxy(records, sni);
    let given = |version, name| given(&speaking(version), proxy.address, name).is_ok();
    assert!(given(&TLS12, "a.example") && !given(&TLS13, "a.example"));
    assert!(given(&TLS13, "b.example") && !given(&TLS12, "b.example"));
}

#[test]
fn http2_is_offered_unless_the_name_has_it_off() {
    let scene = Scene::new();
    let proxy = scene.proxy("", "[[sni]]\nfqdn = \"a.example\"\nhttp2 = \"off\"\n");
    let mut client = scene.site.authority.client();
    client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let client = Arc::new(client);
    for (name, agreed) in [("a.example", "http/1.1"), ("b.example", "h2")] {
        let mut client = connect(&client, proxy.address, name);
        client.conn.complete_io(&mut client.sock).unwrap();
        assert_eq!(client.conn.alpn_protocol().unwrap(), agreed.as_bytes());
    }
}

#[test]
fn clients_prove_themselves_as_the_name_asks() {
    let scene = Scene::new();
    let entry = |check: &str| {
        format!(
            "[[sni]]\nfqdn = \"a.example\"\nverify_client = \"{check}\"\n\
             verify_client_ca_certs = \"ca.pem\"\n"
        )
    };
    let stranger = Authority::new().issue(&["client.example"]);
    let stranger = Arc::new(showing(scene.site.authority.client(), &stranger));
    let (proven, bare) = (scene.proven(), scene.site.client());
    let expected = [
        ("NONE", ["200", "200", "200"]),
        ("MODERATE", ["200", "200", "none"]),
        ("STRICT", ["200", "none", "none"]),
    ];
    for (check, expected) in expected {
        let proxy = scene.proxy("", &entry(check));
        let clients = [&proven, &bare, &stranger];
        let statuses = clients.map(|client| status(client, &proxy, ("a.example", "a.example")));
        assert_eq!(statuses, expected, "{check}");
        assert_eq!(status(&bare, &proxy, ("b.example", "b.example")), "200");
    }
}

const STRICT: &str = "[[sni]]\nfqdn = \"a.example\"\nverify_client = \"STRICT\"\n\
    verify_client_ca_certs = \"ca.pem\"\n";

#[test]
fn a_request_for_a_host_that_asks_for_more_is_misdirected() {
    let scene = Scene::new();
    let proxy = scene.proxy("", STRICT);
    let (proven, bare) = (scene.proven(), scene.site.client());
    for host in ["a.example", "A.Example", "a.example.", "a.example:443"] {
        assert_eq!(status(&bare, &proxy, ("b.example", host)), "421", "{host}");
    }
    assert_eq!(status(&bare, &proxy, ("b.example", "b.example")), "200");
    assert_eq!(status(&proven, &proxy, ("a.example", "a.example")), "200");
    // Who has proven more may ask for what asks for less, and not the other way.
    assert_eq!(status(&proven, &proxy, ("a.example", "b.example")), "200");
    assert_eq!(status(&proven, &proxy, ("b.example", "a.example")), "421");

    let mut client = connect(&bare, proxy.address, "b.example");
    let absolute =
        b"GET https://a.example/ HTTP/1.1\r\nHost: b.example\r\nConnection: close\r\n\r\n";
    client.write_all(absolute).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
}

#[test]
fn a_request_for_a_host_of_other_addresses_or_versions_is_misdirected() {
    let scene = Scene::new();
    for rule in [
        "ip_allow = [\"10.0.0.0/8\"]",
        "valid_tls_versions_in = [\"TLSv1_2\"]",
    ] {
        let proxy = scene.proxy("", &format!("[[sni]]\nfqdn = \"a.example\"\n{rule}\n"));
        let client = speaking(&TLS13);
        assert_eq!(status(&client, &proxy, ("b.example", "a.example")), "421");
        assert_eq!(status(&client, &proxy, ("b.example", "b.example")), "200");
    }
}

/// `http.host_sni_policy`, and `host_sni_policy` of the name.
#[test]
fn other_hosts_are_let_through_where_the_operator_says_so() {
    let scene = Scene::new();
    let bare = scene.site.client();
    let record = |value| format!("CONFIG proxy.config.http.host_sni_policy INT {value}\n");
    for (value, policy, expected) in [
        (2, "", "421"),
        (1, "", "200"),
        (0, "", "200"),
        (2, "host_sni_policy = \"DISABLED\"\n", "200"),
        (0, "host_sni_policy = \"ENFORCED\"\n", "421"),
    ] {
        let proxy = scene.proxy(&record(value), &format!("{STRICT}{policy}"));
        let told = status(&bare, &proxy, ("b.example", "a.example"));
        assert_eq!(told, expected, "{value} {policy}");
    }
}

#[test]
fn a_name_that_asks_for_less_than_the_records_opens_no_other() {
    let scene = Scene::new();
    let records = "CONFIG proxy.config.ssl.client.certification_level INT 2\n\
        CONFIG proxy.config.ssl.CA.cert.filename STRING ca.pem\n";
    let sni = "[[sni]]\nfqdn = \"a.example\"\nverify_client = \"NONE\"\n";
    let proxy = scene.proxy(records, sni);
    let bare = scene.site.client();
    assert_eq!(status(&bare, &proxy, ("a.example", "a.example")), "200");
    assert_eq!(status(&bare, &proxy, ("a.example", "b.example")), "421");
    assert_eq!(status(&bare, &proxy, ("b.example", "b.example")), "none");
}

#[test]
fn an_older_session_does_not_stand_for_a_proof() {
    let scene = Scene::new();
    let names = ("a.example", "a.example");
    for version in [&TLS12, &TLS13] {
        let proxy = scene.proxy("", "");
        let client = speaking(version);
        let kind = |client| asked(client, &proxy, names).map(|(_, kind)| kind);
        assert_eq!(kind(&client), Some(HandshakeKind::Full));
        assert_eq!(kind(&client), Some(HandshakeKind::Resumed));
        scene.reload(&proxy, STRICT);
        assert_eq!(kind(&client), None);

        let proven = scene.proven();
        assert_eq!(kind(&proven), Some(HandshakeKind::Full));
        assert_eq!(kind(&proven), Some(HandshakeKind::Resumed));
        // The same proof after a reload is the same; other authorities are not.
        scene.reload(&proxy, STRICT);
        assert_eq!(kind(&proven), Some(HandshakeKind::Resumed));
        let ca = scene.site.dir.path().join("ca.pem");
        Authority::new().write(&ca);
        scene.reload(&proxy, STRICT);
        assert_eq!(kind(&proven), None);
        scene.site.authority.write(&ca);
    }
}

#[test]
fn a_connection_that_is_kept_over_a_reload_meets_the_new_policy() {
    let scene = Scene::new();
    let proxy = scene.proxy("", "");
    let mut client = connect(&scene.site.client(), proxy.address, "a.example");
    let mut status = || {
        client
            .write_all(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
            .unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            head.extend_from_slice(&byte);
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let (_, length) = head.split_once("content-length: ").unwrap();
        let length = length.lines().next().unwrap().parse().unwrap();
        client.read_exact(&mut vec![0; length]).unwrap();
        head.get(..12).unwrap().to_owned()
    };
    assert_eq!(status(), "http/1.1 200");
    scene.reload(&proxy, STRICT);
    assert_eq!(status(), "http/1.1 421");
}

#[test]
fn clients_of_other_addresses_are_told_that_they_may_not() {
    let scene = Scene::new();
    let entry = |range: &str| format!("[[sni]]\nfqdn = \"a.*\"\nip_allow = [\"{range}\"]\n");
    let proxy = scene.proxy("", &entry("10.0.0.0/8"));
    let client = scene.site.client();
    let error = given(&client, proxy.address, "a.example").unwrap_err();
    assert!(error.contains("AccessDenied"), "{error}");
    given(&client, proxy.address, "b.example").unwrap();
    until("a refusal that is counted", || {
        proxy.counter(Metric::SslClientDenied) == 1
    });
    let proxy = scene.proxy("", &entry("127.0.0.0/8"));
    given(&client, proxy.address, "a.example").unwrap();
}
