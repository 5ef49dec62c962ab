//! Certificates through reloads, without a socket.

use super::certificate::Certificate;
use super::ocsp::tests::response;
use super::{TlsOptions, TlsServer};
use crate::config::Findings;
use crate::config::records::Records;
use crate::config::ssl_multicert;
use crate::proxy::listener::Dialect;
use std::path::Path;
use std::sync::{Arc, Weak};
use x509_parser::prelude::{FromDer, X509Certificate};

fn issue(dir: &Path, number: usize) {
    let name = format!("h{number}.example");
    let issued = rcgen::generate_simple_self_signed(vec![name]).unwrap();
    let pem = issued.cert.pem() + &issued.signing_key.serialize_pem();
    std::fs::write(dir.join(format!("{number}.pem")), pem).unwrap();
}

/// A server of that many certificates.
fn server(dir: &Path, count: usize) -> TlsServer {
    (0..count).for_each(|number| issue(dir, number));
    let tls = TlsServer::new(TlsOptions::from_records(&Records::default(), dir)).unwrap();
    assert_eq!(tls.load(&file(0..count)), Findings::default());
    tls
}

fn file(numbers: std::ops::Range<usize>) -> ssl_multicert::MulticertFile {
    let lines = numbers.map(|number| format!("ssl_cert_name={number}.pem\n"));
    let text: String = lines.collect();
    ssl_multicert::parse("ssl_multicert.config", text.as_bytes()).0
}

fn held(tls: &TlsServer) -> Vec<Weak<Certificate>> {
    let certificates = tls.held();
    certificates.iter().map(Arc::downgrade).collect()
}

fn alive(all: &[Weak<Certificate>]) -> usize {
    all.iter().filter(|one| one.strong_count() > 0).count()
}

#[test]
fn a_reload_keeps_what_is_the_same_and_lets_go_of_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let tls = server(dir.path(), 20);
    let first = held(&tls);
    let counts: Vec<_> = first.iter().map(Weak::strong_count).collect();
    for _ in 0..10 {
        assert_eq!(tls.load(&file(0..20)), Findings::default());
    }
    assert_eq!(alive(&first), 20);
    let again: Vec<_> = first.iter().map(Weak::strong_count).collect();
    assert_eq!(again, counts);

    issue(dir.path(), 3);
    assert_eq!(tls.refresh(), []);
    assert_eq!(alive(&first), 19);
    assert_eq!(tls.load(&file(0..10)), Findings::default());
    assert_eq!(alive(&first), 9);
    assert_eq!(tls.summary().served, 10);
}

#[test]
fn a_fault_is_told_once_by_those_who_look_again() {
    let dir = tempfile::tempdir().unwrap();
    let tls = server(dir.path(), 2);
    std::fs::write(dir.path().join("1.pem"), "").unwrap();
    assert_eq!(tls.refresh().len(), 1);
    assert_eq!(tls.refresh(), []);
    assert_eq!(tls.summary().faulty, 1);
    assert_eq!(tls.summary().served, 2);
    assert_eq!(tls.load(&file(0..2)).errors.len(), 1);
}

#[test]
fn a_handshake_under_way_keeps_the_certificates_it_began_with() {
    let dir = tempfile::tempdir().unwrap();
    let tls = server(dir.path(), 1);
    let first = held(&tls);
    let settings = tls.settings().of(None).unwrap();
    let local = "127.0.0.1:443".parse().unwrap();
    let named = (Some("h0.example"), local);
    let config = tls.config(&settings, named, Dialect::default()).unwrap();
    issue(dir.path(), 0);
    assert_eq!(tls.refresh(), []);
    assert_eq!(alive(&first), 1);
    drop(config);
    assert_eq!(alive(&first), 0);
}

/// A staple that no client would take breaks the handshakes of all who ask for
/// one; the certificate alone does not.
#[test]
fn a_staple_that_is_none_is_left_out_and_named() {
    let dir = tempfile::tempdir().unwrap();
    issue(dir.path(), 0);
    let text = "ssl_cert_name=0.pem ssl_ocsp_name=0.ocsp\n";
    let (file, _) = ssl_multicert::parse("ssl_multicert.config", text.as_bytes());
    let tls = TlsServer::new(TlsOptions::from_records(&Records::default(), dir.path())).unwrap();
    let stapled = || tls.held()[0].key.ocsp.clone();
    let faults = tls.load(&file).warnings;
    assert!(faults[0].what.contains("it can't be read"), "{faults:?}");
    let certificate = tls.held()[0].key.cert[0].clone();
    let (_, parsed) = X509Certificate::from_der(&certificate).unwrap();
    let serial = parsed.raw_serial();
    let good = response(serial, "29990101000000Z");
    for (staple, fault) in [
        (Vec::new(), "it is no OCSP response"),
        (good[..good.len() - 1].to_vec(), "it is no OCSP response"),
        (response(serial, "20200102000000Z"), "its time is over"),
        (response(&[1, 2, 3], "29990101000000Z"), "it is of another"),
    ] {
        std::fs::write(dir.path().join("0.ocsp"), &staple).unwrap();
        tls.refresh();
        let faults = tls.faults();
        assert!(faults[0].what.contains(fault), "{faults:?} for {fault}");
        assert_eq!(faults[0].token, "0.ocsp");
        assert_eq!((stapled(), tls.summary().served), (None, 1));
        let told = tls.load(&file);
        assert_eq!((told.errors.len(), told.warnings.len()), (0, 1));
    }
    std::fs::write(dir.path().join("0.ocsp"), &good).unwrap();
    assert_eq!(tls.refresh(), []);
    assert_eq!(stapled(), Some(good));
}
