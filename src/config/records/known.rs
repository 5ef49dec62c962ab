//! What a name of records.config stands for.

use std::sync::LazyLock;

use thiserror::Error;

use super::aliases::{ALIASES, Alias, alias};
use super::spec::RecordSpec;
use super::table::{RECORDS, find};
use super::value::{RecordValue, ValueError};
use crate::config::nearest::nearest;

/// Records of ATS 4.2, 9.2 and later that the table has no row for, sorted.
static ATS_NAMES: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("ats_names.txt").lines().collect());

/// The prefix that names are compared without: it says nothing about them.
const PREFIX: &str = "proxy.config.";

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known {
    /// A row of the table.
    Record(&'static RecordSpec),
    /// Other rows.
    Alias(&'static Alias),
    /// A record of ATS without a counterpart.
    Ats,
    /// A counter: it can't be set.
    Metric,
}

/// What the name stands for; `None` when nobody knows it.
pub(super) fn known(name: &str) -> Option<Known> {
    let metrics = ["proxy.process.", "proxy.node.", "proxy.cluster."];
    if metrics.iter().any(|prefix| name.starts_with(prefix)) {
        return Some(Known::Metric);
    }
    find(name)
        .map(Known::Record)
        .or_else(|| alias(name).map(Known::Alias))
        .or_else(|| ATS_NAMES.binary_search(&name).ok().map(|_| Known::Ats))
}

/// The name of a row or an alias that is nearest to `name`.
#[must_use]
pub(super) fn nearest_name(name: &str) -> Option<String> {
    let rows = RECORDS.iter().map(|spec| spec.name);
    let names = rows.chain(ALIASES.iter().map(|alias| alias.name));
    let short = name.strip_prefix(PREFIX).unwrap_or(name);
    nearest(short, names.filter_map(|full| full.strip_prefix(PREFIX)))
        .map(|found| format!("{PREFIX}{found}"))
}

/// Why a name has no value to show, as a clause.
#[must_use]
pub fn valueless(name: &str) -> String {
    if let Some(Known::Ats) = known(name) {
        return SetError::Ats(name.into()).to_string();
    }
    let nearest = nearest_name(name).map(|nearest| format!("; did you mean {nearest}?"));
    format!("{name} is not known{}", nearest.unwrap_or_default())
}

/// Why a command can't set a record.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SetError {
    /// Nobody knows the name.
    #[error("{name} is no record{}", nearest.as_ref().map_or(String::new(), |n| format!("; did you mean {n}?")))]
    Unknown {
        /// The name.
        name: String,
        /// The nearest one that is valid.
        nearest: Option<String>,
    },
    /// A record of ATS.
    #[error("{0} is a record of ATS that Strata does not have")]
    Ats(String),
    /// A metric.
    #[error("{0} is a metric, and can't be set")]
    Metric(String),
    /// The record does not take the value.
    #[error("{name}: {error}")]
    Value {
        /// The record.
        name: String,
        /// Why not.
        error: ValueError,
    },
}

/// The records that `name` sets, a record's or an alias's, with the values
/// that `text` gives them.
///
/// # Errors
/// When the name or the value is not valid.
pub fn settings(
    name: &str,
    text: &str,
) -> Result<Vec<(&'static RecordSpec, RecordValue)>, SetError> {
    let wrong = |error| SetError::Value {
        name: name.into(),
        error,
    };
    match known(name) {
        Some(Known::Record(spec)) => Ok(vec![(spec, spec.read(text).map_err(wrong)?)]),
        Some(Known::Alias(alias)) => alias.read(text).map_err(wrong),
        Some(Known::Ats) => Err(SetError::Ats(name.into())),
        Some(Known::Metric) => Err(SetError::Metric(name.into())),
        None => Err(SetError::Unknown {
            name: name.into(),
            nearest: nearest_name(name),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ats_are_sorted_and_none_is_a_row_or_an_alias() {
        for pair in ATS_NAMES.windows(2) {
            assert!(pair[0] < pair[1], "{}", pair[1]);
        }
        for name in ATS_NAMES.iter() {
            assert!(find(name).is_none() && alias(name).is_none(), "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest_one() {
        let error = settings("proxy.config.cache.ram_cache_cutof", "40").unwrap_err();
        assert_eq!(
            error.to_string(),
            "proxy.config.cache.ram_cache_cutof is no record; \
             did you mean proxy.config.cache.ram_cache_cutoff?"
        );
        let error = settings("x", "1").unwrap_err();
        assert_eq!(error.to_string(), "x is no record");
    }

    #[test]
    fn a_name_without_a_value_says_whose_it_is_or_the_nearest() {
        let ats = "proxy.config.admin.admin_user";
        assert!(valueless(ats).contains("a record of ATS"));
        let near = valueless("proxy.config.cache.ram_cache_cutof");
        assert!(near.ends_with("did you mean proxy.config.cache.ram_cache_cutoff?"));
        let metric = "proxy.process.nothing";
        assert_eq!(valueless(metric), format!("{metric} is not known"));
    }

    #[test]
    fn a_name_that_can_not_be_set_says_why() {
        let ats = settings("proxy.config.admin.admin_user", "x");
        assert!(matches!(ats, Err(SetError::Ats(_))));
        let metric = settings("proxy.process.cache.bytes_used", "1");
        assert!(matches!(metric, Err(SetError::Metric(_))));
    }

    #[test]
    fn a_value_is_read_whole_and_within_its_range() {
        let name = "proxy.config.cache.ram_cache_cutoff";
        let set = settings(name, "40K").unwrap();
        assert_eq!(set[0].1, RecordValue::Int(40_960));
        let error = settings(name, "40 # x").unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{name}: \" # x\" follows the number 40")
        );
        let error = settings("proxy.config.http.cache.http", "7").unwrap_err();
        assert_eq!(
            error.to_string(),
            "proxy.config.http.cache.http: 7 is outside its range: 0 to 1"
        );
    }

    #[test]
    fn null_unsets_a_nullable_string_and_resets_another() {
        let null = |name| settings(name, "NULL").unwrap().pop().unwrap().1;
        assert_eq!(
            null("proxy.config.hostdb.host_file.path"),
            RecordValue::String(None)
        );
        assert_eq!(
            null("proxy.config.url_remap.filename"),
            RecordValue::String(Some("remap.config".into()))
        );
    }

    #[test]
    fn a_string_that_a_line_could_not_hold_is_refused() {
        for text in ["", " x", "x ", "a\nCONFIG b INT 1", "a\0"] {
            let error = settings("proxy.config.http.server_ports", text).unwrap_err();
            assert!(matches!(
                error,
                SetError::Value {
                    error: ValueError::Unwritable,
                    ..
                }
            ));
        }
    }
}
