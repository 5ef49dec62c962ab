//! What records and lines of certificates say of TLS with clients, and what the
//! log tells of it.

use crate::pki::{connect, given, provider};
use crate::support::{Origin, Proxy, multicert_file, named_parts, ok, until};
use crate::tls::{Site, speaking};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::cipher_suite;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, HandshakeKind, SupportedCipherSuite};
use std::io::{Read, Write};
use std::sync::Arc;
use strata::config::Findings;
use strata::config::records::Records;
use strata::metrics::Metric;
use strata::proxy::Snapshot;
use strata::proxy::access_log::{AccessLog, LogOptions};
use strata::proxy::tls::{TlsOptions, TlsServer};

fn proxy(site: &Site, records: &str, multicert: &str) -> Proxy {
    site.issue("a.pem", &["a.example"]);
    site.issue("b.pem", &["b.example"]);
    Proxy::over_tls(records, "", (site.dir.path(), multicert))
}

const ANY: &str = "dest_ip=* ssl_cert_name=a.pem\n";

/// A client that trusts the site and speaks these ciphers, best first.
fn speaking_ciphers(site: &Site, suites: &[SupportedCipherSuite]) -> Arc<ClientConfig> {
    let provider = CryptoProvider {
        cipher_suites: suites.to_vec(),
        ..Arc::unwrap_or_clone(provider())
    };
    let client = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(site.authority.roots())
        .with_no_client_auth();
    Arc::new(client)
}

/// The cipher that is agreed on; none if the hands are not shaken.
fn agreed(client: &Arc<ClientConfig>, proxy: &Proxy) -> Option<SupportedCipherSuite> {
    let mut client = connect(client, proxy.address, "a.example");
    client.conn.complete_io(&mut client.sock).ok()?;
    client.conn.negotiated_cipher_suite()
}

const AES_256: SupportedCipherSuite = cipher_suite::TLS13_AES_256_GCM_SHA384;
const AES_128: SupportedCipherSuite = cipher_suite::TLS13_AES_128_GCM_SHA256;
const CHACHA: SupportedCipherSuite = cipher_suite::TLS13_CHACHA20_POLY1305_SHA256;
const OLD_256: SupportedCipherSuite = cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384;
const OLD_128: SupportedCipherSuite = cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256;

/// `ssl.server.TLSv1_3.cipher_suites` and `ssl.server.cipher_suite`.
#[test]
fn the_ciphers_of_the_records_are_spoken_and_no_other() {
    let site = Site::new();
    let client = |suite| speaking_ciphers(&site, &[suite]);
    let default = proxy(&site, "", ANY);
    for suite in [AES_256, AES_128, CHACHA, OLD_256, OLD_128] {
        assert_eq!(agreed(&client(suite), &default), Some(suite));
    }
    let records = "CONFIG proxy.config.ssl.server.TLSv1_3.cipher_suites STRING \
        TLS_AES_128_GCM_SHA256\n\
        CONFIG proxy.config.ssl.server.cipher_suite STRING \
        ECDHE-ECDSA-AES256-GCM-SHA384:AES128-SHA\n";
    let listed = proxy(&site, records, ANY);
    for suite in [AES_128, OLD_256] {
        assert_eq!(agreed(&client(suite), &listed), Some(suite));
    }
    for suite in [AES_256, CHACHA, OLD_128] {
        assert_eq!(agreed(&client(suite), &listed), None);
    }
}

/// `ssl.server.honor_cipher_order`.
#[test]
fn the_order_of_ciphers_is_ours_or_the_client_s() {
    let site = Site::new();
    let client = speaking_ciphers(&site, &[CHACHA, AES_128]);
    for (value, expected) in [(1, AES_128), (0, CHACHA)] {
        let record = format!("CONFIG proxy.config.ssl.server.honor_cipher_order INT {value}\n");
        let proxy = proxy(&site, &record, ANY);
        assert_eq!(agreed(&client, &proxy), Some(expected));
    }
}

/// `ssl.server.version.min` and `ssl.server.version.max`.
#[test]
fn a_lowest_and_a_highest_version_go_before_the_records_of_each() {
    let site = Site::new();
    for (records, older, newer) in [
        (&[("version.min", 3)][..], false, true),
        (&[("version.max", 2)], true, false),
        (&[("version.min", 0), ("version.max", 3)], true, true),
        (&[("version.min", 2), ("version.max", 2)], true, false),
    ] {
        let lines = records
            .iter()
            .map(|(name, value)| format!("CONFIG proxy.config.ssl.server.{name} INT {value}\n"));
        let off = "CONFIG proxy.config.ssl.TLSv1_2 INT 0\n";
        let proxy = proxy(&site, &(lines.collect::<String>() + off), ANY);
        let spoken = |version| given(&speaking(version), proxy.address, "a.example").is_ok();
        assert_eq!(
            (spoken(&TLS12), spoken(&TLS13)),
            (older, newer),
            "{records:?}"
        );
    }
}

fn is_resumed(client: &Arc<ClientConfig>, proxy: &Proxy, name: &str) -> bool {
    let mut client = connect(client, proxy.address, name);
    let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).unwrap();
    client.read_to_end(&mut Vec::new()).unwrap();
    client.conn.handshake_kind() == Some(HandshakeKind::Resumed)
}

/// `ssl_ticket_enabled` and `ssl_ticket_number`.
#[test]
fn tickets_are_as_the_certificate_s_line_has_them_else_as_the_records_do() {
    let site = Site::new();
    let off = "CONFIG proxy.config.ssl.server.session_ticket.enable INT 0\n";
    for (records, line, expected) in [
        ("", "", true),
        ("", "ssl_ticket_enabled=0", false),
        ("", "ssl_ticket_number=0", false),
        (off, "", false),
        (off, "ssl_ticket_enabled=1", true),
    ] {
        let multicert = format!("ssl_cert_name=a.pem {line}\nssl_cert_name=b.pem\n");
        let proxy = proxy(&site, records, &multicert);
        for version in [&TLS12, &TLS13] {
            let client = speaking(version);
            assert!(!is_resumed(&client, &proxy, "a.example"));
            let resumed = is_resumed(&client, &proxy, "a.example");
            assert_eq!(resumed, expected, "{records}{line}");
            assert!(!is_resumed(&client, &proxy, "b.example"));
            assert_eq!(is_resumed(&client, &proxy, "b.example"), records.is_empty());
        }
    }
}

#[test]
fn the_log_tells_what_was_agreed_on() {
    let site = Site::new();
    site.issue("a.pem", &["a.example"]);
    let origin = Origin::answering(|_| ok("x"));
    let map = format!("map https://a.example/ http://{}/\n", origin.address);
    let dir = site.dir.path();
    let sni = "[[sni]]\nfqdn = \"t.example\"\ntunnel_route = \"127.0.0.1:1\"\n";
    let snapshot = Snapshot::new(1, named_parts(("", &map), dir, sni));
    let tls = TlsServer::new(TlsOptions::from_records(&snapshot.records, dir)).unwrap();
    assert_eq!(tls.load(&multicert_file(ANY)), Findings::default());
    let options = LogOptions::from_records(&Records::default(), dir.join("log"));
    let path = options.path();
    let log = Arc::new(AccessLog::start(options).unwrap());
    let kept = Arc::clone(&log);
    let adapt = move |shared| strata::proxy::Shared {
        tls: Some(Arc::new(tls)),
        log,
        ..shared
    };
    let proxy = Proxy::running(snapshot, Box::new(adapt));
    for version in [&TLS12, &TLS13] {
        let client = speaking(version);
        assert!(!is_resumed(&client, &proxy, "a.example"));
        assert!(is_resumed(&client, &proxy, "A.example"));
    }
    given(&site.client(), proxy.address, "t.example").unwrap_err();
    until("a tunnel that is refused", || {
        proxy.counter(Metric::OutcomeDeniedForward) == 1
    });
    drop(proxy);
    kept.stop();
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    let told: Vec<_> = lines
        .iter()
        .map(|fields| fields[10..17].join(" "))
        .collect();
    let older = "http/1.1 TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384";
    let newer = "http/1.1 TLSv1.3 TLS_AES_256_GCM_SHA384";
    let group = told[0].split(' ').nth(3).unwrap();
    assert!(["X25519", "X25519MLKEM768"].contains(&group), "{group}");
    let expected = [
        format!("{older} {group} a.example 0 -"),
        format!("{older} - a.example 1 -"),
        format!("{newer} {group} a.example 0 -"),
        format!("{newer} {group} a.example 1 -"),
        "- - - - t.example - -".to_owned(),
    ];
    assert_eq!(told, expected, "{text}");
    assert!(text.ends_with(" denied_forward\n"), "{text}");
    assert!(
        text.contains("ERR_PROXY_DENIED/000 0 CONNECT t.example:"),
        "{text}"
    );
}
