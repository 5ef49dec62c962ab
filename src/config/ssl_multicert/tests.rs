//! Lines of ssl_multicert.config, good and bad.

use super::*;
use crate::config::Findings;

fn read(text: &str) -> (MulticertFile, Findings) {
    parse("ssl_multicert.config", text.as_bytes())
}

fn errors(text: &str) -> Vec<String> {
    read(text)
        .1
        .errors
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn entries(text: &str) -> Vec<Entry> {
    let (file, found) = read(text);
    assert_eq!(found, Findings::default(), "{text}");
    file.entries
}

#[test]
fn an_entry_is_its_certificates_with_their_keys_and_whom_it_is_for() {
    let text = "# comment\n\n\
        dest_ip=* ssl_cert_name=a.pem # the default\n\
        SSL_CERT_NAME=\"r.pem,e.pem\" ssl_key_name=r.key,e.key dest_ip=[::1]:443\n\
        ssl_cert_name=b.pem ssl_ca_name=chain.pem ssl_ocsp_name=b.ocsp dest_ip=10.0.0.1\n";
    let entries = entries(text);
    assert_eq!(entries[0].destination, Destination::Any);
    assert_eq!(entries[0].certificates[0].key, None);
    let v6 = "::1".parse().unwrap();
    assert_eq!(entries[1].destination, Destination::Address(v6, Some(443)));
    let names: Vec<_> = entries[1]
        .certificates
        .iter()
        .map(|files| (files.certificate.as_str(), files.key.as_deref().unwrap()))
        .collect();
    assert_eq!(names, [("r.pem", "r.key"), ("e.pem", "e.key")]);
    let v4 = "10.0.0.1".parse().unwrap();
    assert_eq!(entries[2].destination, Destination::Address(v4, None));
    let chain = entries[2].certificates[0].chain.as_deref();
    assert_eq!(chain, Some("chain.pem"));
    let staple = entries[2].certificates[0].staple.as_deref();
    assert_eq!(staple, Some("b.ocsp"));
    assert_eq!(entries[2].place.line, 5);
}

#[test]
fn tickets_are_as_the_line_says() {
    let tickets = |text: &str| entries(&format!("ssl_cert_name=a.pem {text}\n"))[0].tickets;
    let rule = |enabled, number| TicketRule { enabled, number };
    assert_eq!(tickets(""), TicketRule::default());
    assert_eq!(tickets("ssl_ticket_enabled=0"), rule(Some(false), None));
    let both = tickets("ssl_ticket_number=16 ssl_ticket_enabled=1");
    assert_eq!(both, rule(Some(true), Some(16)));
    for (text, what) in [
        ("ssl_ticket_enabled=2", "40: no number from 0 to 1"),
        ("ssl_ticket_number=17", "39: no number from 0 to 16"),
        ("ssl_ticket_number=x", "39: no number from 0 to 16"),
    ] {
        let said = errors(&format!("ssl_cert_name=a.pem {text}\n"));
        assert!(said[0].contains(what), "{said:?}");
    }
}

#[test]
fn every_fault_is_told_at_once_with_its_place() {
    let said = errors(
        "ssl_cert_name=a.pem ssl_key_name=a.key,b.key\n\
         dest_ip=*\n\
         ssl_cert_name= dest_ip=here ssl_cret_name=x\n\
         word ssl_cert_name=a ssl_cert_name=b\n",
    );
    let expected = [
        "ssl_multicert.config:1:34: ssl_key_name has 2 files for 1 certificates \
         (at \"a.key,b.key\")",
        "ssl_multicert.config:2:1: no ssl_cert_name: the entry has no certificate",
        "ssl_multicert.config:3:15: ssl_cert_name names no file",
        "ssl_multicert.config:3:24: \"here\" is no address (at \"here\"); \
         write * for any, ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT",
        "ssl_multicert.config:3:29: unknown word (at \"ssl_cret_name\"); \
         did you mean ssl_cert_name?",
        "ssl_multicert.config:4:1: no KEY=VALUE (at \"word\")",
        "ssl_multicert.config:4:22: this word stands on the line twice (at \"ssl_cert_name\")",
    ];
    assert_eq!(said, expected);
}

#[test]
fn what_ats_knows_and_strata_does_not_do_is_refused_by_name() {
    for word in [
        "action=tunnel",
        "ssl_key_dialog=builtin",
        "ssl_ticket_key_name=k",
    ] {
        let said = errors(&format!("ssl_cert_name=a.pem {word}\n"));
        let name = word.split('=').next().unwrap();
        assert_eq!(said.len(), 1);
        assert!(said[0].contains(&format!("21: {name} (")), "{said:?}");
    }
}
