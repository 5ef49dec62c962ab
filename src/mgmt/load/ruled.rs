//! The rules that override records, each with what holds for its requests.

use super::Loaded;
use crate::config::Findings;
use crate::config::place::Place;
use crate::config::records::{Override, Records};
use crate::config::remap::Rule;
use crate::proxy::snapshot::Ruled;
use crate::proxy::tls::OriginTls;
use std::collections::HashMap;
use std::sync::Arc;

/// What the overrides of a rule make of the records.
type Made = (Arc<Records>, Option<Arc<OriginTls>>);

/// Rules that override the same records with the same values share what comes
/// of it.
pub(super) fn read(
    loaded: &Loaded,
    base: Option<&Arc<OriginTls>>,
    found: &mut Findings,
) -> Vec<Ruled> {
    let mut made: HashMap<&[Override], Made> = HashMap::new();
    let rules = loaded.remap.rules.iter();
    let rules = rules.filter(|rule| !rule.overrides.is_empty());
    rules
        .map(|rule| {
            let make = || make(loaded, base, rule, found);
            let (records, origin_tls) = made.entry(&rule.overrides).or_insert_with(make);
            Ruled {
                rule: rule.place.clone(),
                records: Arc::clone(records),
                origin_tls: origin_tls.clone(),
            }
        })
        .collect()
}

fn make(loaded: &Loaded, base: Option<&Arc<OriginTls>>, rule: &Rule, found: &mut Findings) -> Made {
    let records = loaded.records.overridden(&rule.overrides);
    let tls = match OriginTls::says_the_same(&records, &loaded.records) {
        true => base.cloned(),
        false => own_tls(loaded, &records, &rule.place, found),
    };
    (Arc::new(records), tls)
}

fn own_tls(
    loaded: &Loaded,
    records: &Records,
    place: &Place,
    found: &mut Findings,
) -> Option<Arc<OriginTls>> {
    match OriginTls::read(records, &loaded.dir) {
        Ok(tls) => Some(Arc::new(tls)),
        Err(error) => {
            found.errors.push(place.error("", error.to_string()));
            None
        }
    }
}
