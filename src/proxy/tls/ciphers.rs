//! Ciphers by OpenSSL's names, as operators of ATS list them.

use super::session::CIPHERS;
use crate::config::records::Records;
use rustls::SupportedCipherSuite;
use rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES;
use rustls::version::{TLS12, TLS13};

/// The word for all of them.
const ALL: &str = "ALL";

/// Which ciphers are spoken with clients, best first.
#[derive(Clone, Debug)]
pub struct Ciphers {
    /// Of both versions.
    pub(super) suites: Vec<SupportedCipherSuite>,
    /// What the records list and is not spoken here, by record.
    unknown: Vec<(&'static str, String)>,
}

impl Ciphers {
    /// Those of the records. A list that has none of a version stands for all
    /// of it: it is one of another server, whose ciphers are not those here.
    #[must_use]
    pub fn from_records(records: &Records) -> Self {
        let mut ciphers = Self {
            suites: Vec::new(),
            unknown: Vec::new(),
        };
        let newer = &records.ssl_server_tlsv1_3_cipher_suites;
        ciphers.list(
            "proxy.config.ssl.server.TLSv1_3.cipher_suites",
            newer,
            || spoken(true),
        );
        let older = &records.ssl_server_cipher_suite;
        ciphers.list("proxy.config.ssl.server.cipher_suite", older, || {
            spoken(false)
        });
        ciphers
    }

    /// What the records list in vain: each record with its names.
    pub fn unknown(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let unknown = self.unknown.iter();
        unknown.map(|(record, names)| (*record, names.as_str()))
    }

    fn list<I: Iterator<Item = Named>>(
        &mut self,
        record: &'static str,
        text: &str,
        spoken: impl Fn() -> I,
    ) {
        let words: Vec<&str> = text.split([':', ',', ' ']).collect();
        let mut listed: Vec<Named> = Vec::new();
        let mut unknown = Vec::new();
        for word in words.into_iter().filter(|word| !word.is_empty()) {
            let taken_away = word.strip_prefix(['!', '-']);
            let found = |name: &str| spoken().find(|(known, _)| *known == name);
            match (taken_away, found(word)) {
                (Some(name), _) => listed.retain(|(known, _)| *known != name),
                (None, Some(named)) => listed.push(named),
                (None, None) if word == ALL => listed.extend(spoken()),
                (None, None) => unknown.push(word),
            }
        }
        let mut names: Vec<&str> = Vec::new();
        listed.retain(|(name, _)| {
            !names.contains(name) && {
                names.push(name);
                true
            }
        });
        if listed.is_empty() {
            listed.extend(spoken());
        }
        self.suites
            .extend(listed.into_iter().map(|(_, suite)| suite));
        if !unknown.is_empty() {
            self.unknown.push((record, unknown.join(", ")));
        }
    }
}

type Named = (&'static str, SupportedCipherSuite);

/// Every cipher of TLS 1.3, or of TLS 1.2, that is spoken here, best first.
fn spoken(newer: bool) -> impl Iterator<Item = Named> {
    let version = if newer { &TLS13 } else { &TLS12 };
    CIPHERS.iter().filter_map(move |(wanted, name)| {
        let mut suites = ALL_CIPHER_SUITES.iter();
        let suite = suites.find(|suite| suite.suite() == *wanted)?;
        (suite.version() == version).then_some((*name, *suite))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::tls::session::cipher_name;

    /// Names of TLS 1.2 that a list comes to, and what of it is unknown.
    fn listed(text: &str) -> (String, String) {
        let records = Records {
            ssl_server_cipher_suite: text.into(),
            ..Records::default()
        };
        let ciphers = Ciphers::from_records(&records);
        let older = ciphers.suites.iter().filter(|s| s.version() == &TLS12);
        let names: Vec<_> = older.map(|suite| cipher_name(suite.suite())).collect();
        let unknown: Vec<_> = ciphers
            .unknown()
            .map(|(_, names)| names.to_owned())
            .collect();
        (names.join(":"), unknown.join(";"))
    }

    #[test]
    fn a_list_is_taken_in_its_order_and_what_is_unknown_is_told() {
        let text =
            "ECDHE-RSA-AES128-GCM-SHA256:AES128-SHA:ECDHE-ECDSA-AES256-GCM-SHA384:RC4-SHA:!DES";
        let names = "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384";
        assert_eq!(listed(text), (names.into(), "AES128-SHA, RC4-SHA".into()));
        let (all, unknown) = listed("ALL");
        assert_eq!(all.split(':').count(), 6);
        assert_eq!(unknown, "");
        let (fewer, _) = listed("ALL:ALL:!ECDHE-RSA-AES128-GCM-SHA256");
        assert_eq!(fewer.split(':').count(), 5);
        assert_eq!(listed("RC4-SHA"), (all, "RC4-SHA".into()));
    }

    #[test]
    fn every_cipher_of_the_library_has_a_name() {
        let records = Records::default();
        let ciphers = Ciphers::from_records(&records);
        assert_eq!(ciphers.suites.len(), ALL_CIPHER_SUITES.len());
        assert_eq!(ciphers.unknown().count(), 0);
    }
}
