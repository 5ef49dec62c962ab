//! The rules that override records, each with what holds for its requests.

use super::{Loaded, tls};
use crate::config::Findings;
use crate::config::place::Place;
use crate::config::records::{Override, Records};
use crate::config::remap::Rule;
use crate::config::sni::SniFile;
use crate::proxy::Snapshot;
use crate::proxy::snapshot::Ruled;
use crate::proxy::tls::OriginTls;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// The record of what becomes of an origin that can't prove itself.
const VERIFY_POLICY: &str = "proxy.config.ssl.client.verify.server.policy";

/// The records of what we prove ourselves by to origins.
const OWN_CERTIFICATE: [&str; 2] = [
    "proxy.config.ssl.client.cert.filename",
    "proxy.config.ssl.client.private_key.filename",
];

/// What the overrides of a rule make of the records.
type Made = (Arc<Records>, Option<Arc<OriginTls>>);

/// Rules that override the same records with the same values share what comes
/// of it.
pub(super) fn read(
    loaded: &Loaded,
    (base, before): (Option<&Arc<OriginTls>>, Option<&Snapshot>),
    found: &mut Findings,
) -> Vec<Ruled> {
    let mut made: HashMap<&[Override], Made> = HashMap::new();
    let rules = loaded.remap.rules.iter();
    let rules = rules.filter(|rule| !rule.overrides.is_empty());
    rules
        .map(|rule| {
            let make = || make(loaded, (base, before), rule, found);
            let (records, origin_tls) = made.entry(&rule.overrides).or_insert_with(make);
            Ruled {
                rule: rule.place.clone(),
                records: Arc::clone(records),
                origin_tls: origin_tls.clone(),
            }
        })
        .collect()
}

fn make(
    loaded: &Loaded,
    (base, before): (Option<&Arc<OriginTls>>, Option<&Snapshot>),
    rule: &Rule,
    found: &mut Findings,
) -> Made {
    let records = loaded.records.overridden(&rule.overrides);
    let names = left(&loaded.sni, &rule.overrides);
    let is_base = names == loaded.sni && OriginTls::says_the_same(&records, &loaded.records);
    let origin_tls = match is_base {
        true => base.cloned(),
        false => {
            let before = before.and_then(|before| before.of_rule(&rule.place));
            let old = before.and_then(|old| tls::kept(old, (&records, &names)));
            own_tls((&records, &loaded.dir, &names), (&rule.place, old), found)
        }
    };
    (Arc::new(records), origin_tls)
}

/// What sni.toml has left to say of origins: what a rule says of its origin goes
/// before what an entry says of the origin's name, each for itself, as in ATS.
fn left(names: &SniFile, overrides: &[Override]) -> SniFile {
    let says = |records: &[&str]| overrides.iter().any(|one| records.contains(&one.name()));
    let (policy, certificate) = (says(&[VERIFY_POLICY]), says(&OWN_CERTIFICATE));
    let mut left = names.clone();
    for entry in &mut left.entries {
        if policy {
            entry.verify_server = None;
        }
        if certificate {
            entry.certificate = None;
            entry.key = None;
        }
    }
    left
}

/// As a rule has it; as it was before where its files are faulty now.
fn own_tls(
    (records, dir, names): (&Records, &Path, &SniFile),
    (place, old): (&Place, Option<Arc<OriginTls>>),
    found: &mut Findings,
) -> Option<Arc<OriginTls>> {
    let faults = match OriginTls::read(records, dir, names) {
        Ok((tls, faults)) if faults.is_empty() => return Some(Arc::new(tls)),
        Ok((_, faults)) => faults,
        Err(error) => vec![place.error("", error.to_string())],
    };
    match old.is_some() {
        true => found.warnings.extend(faults.into_iter().map(tls::used_on)),
        false => found.errors.extend(faults),
    }
    old
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::records;
    use crate::config::sni;

    #[test]
    fn a_rule_takes_the_place_of_what_it_says_and_of_nothing_else() {
        let text = "[[sni]]\nfqdn = \"a.example\"\nclient_cert = \"own.pem\"\n\
                    verify_server_policy = \"ENFORCED\"\n";
        let (names, found) = sni::parse("sni.toml", text.as_bytes());
        assert_eq!(found.errors, []);
        let has = |says: &str| {
            let (overrides, _) = Override::parse(says).unwrap();
            let left = left(&names, &overrides);
            let entry = &left.entries[0];
            (entry.verify_server.is_some(), entry.certificate.is_some())
        };
        assert_eq!(
            has("proxy.config.ssl.client.alpn_protocols=h2"),
            (true, true)
        );
        let policy = format!("{VERIFY_POLICY}=DISABLED");
        assert_eq!(has(&policy), (false, true));
        for record in OWN_CERTIFICATE {
            assert_eq!(has(&format!("{record}=x")), (true, false), "{record}");
        }
        let mut known = OWN_CERTIFICATE.iter().chain([&VERIFY_POLICY]);
        assert!(known.all(|name| records::find(name).is_some()));
    }
}
