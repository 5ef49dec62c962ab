//! Records that a rule of remap.config overrides for its requests, as by ATS's
//! `@plugin=conf_remap.so @pparam=NAME=VALUE`.

use super::known::{SetError, settings};
use super::spec::{Honour, RecordSpec, Scope};
use super::table::{Records, find};
use super::value::RecordValue;
use thiserror::Error;

/// A record's value for the requests of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Override {
    name: &'static str,
    /// Reads back as the value.
    text: String,
}

/// Why a rule can't override what it says.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum OverrideError {
    /// There is no `=` in it.
    #[error("an override is NAME=VALUE")]
    Form,
    /// The name or the value is not valid.
    #[error(transparent)]
    Set(#[from] SetError),
    /// The record is one for the whole proxy.
    #[error("{0} holds for the whole proxy: a rule can't override it")]
    Global(&'static str),
}

impl Override {
    /// The record's full name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The overrides that `NAME=VALUE` means (a name of another ATS version may
    /// mean several), and what to warn of: those that have no effect in a rule.
    ///
    /// # Errors
    /// [`OverrideError`].
    pub fn parse(text: &str) -> Result<(Vec<Self>, Vec<String>), OverrideError> {
        let (name, value) = text.split_once('=').ok_or(OverrideError::Form)?;
        let settings = settings(name, value)?;
        let mut warnings = Vec::new();
        let mut overrides = Vec::new();
        for (spec, value) in settings {
            warnings.extend(warning(spec, &value)?);
            overrides.push(Self {
                name: spec.name,
                text: value.to_string(),
            });
        }
        Ok((overrides, warnings))
    }

    fn apply(&self, records: &mut Records) {
        let Some(spec) = find(self.name) else { return };
        if let Ok(value) = spec.read(&self.text) {
            // The text was made of a value that the record took.
            drop(spec.store_in(records, &value));
        }
    }
}

fn warning(spec: &RecordSpec, value: &RecordValue) -> Result<Option<String>, OverrideError> {
    let early = |name| format!("{name} holds before a rule is known: it has no effect in a rule");
    match (spec.scope, spec.honour) {
        (Scope::Global, _) => Err(OverrideError::Global(spec.name)),
        (Scope::Early, Honour::Honoured) => Ok(Some(early(spec.name))),
        (Scope::Early | Scope::Rule, _) => Ok(spec.unheeded(value)),
    }
}

impl Records {
    /// The values where these overrides hold; of two for a record the later.
    #[must_use]
    pub fn overridden(&self, overrides: &[Override]) -> Self {
        let mut records = self.clone();
        for one in overrides {
            one.apply(&mut records);
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::RECORDS;
    use super::*;

    fn overridden(text: &str) -> Records {
        let (overrides, warnings) = Override::parse(text).unwrap();
        assert_eq!(warnings, [] as [String; 0], "{text}");
        Records::default().overridden(&overrides)
    }

    #[test]
    fn every_honoured_record_of_a_rule_can_be_overridden_by_its_own_text() {
        let rows = RECORDS.iter().filter(|spec| spec.scope == Scope::Rule);
        for spec in rows.filter(|spec| spec.honour == Honour::Honoured) {
            let text = format!("{}={}", spec.name, spec.default_value());
            assert_eq!(overridden(&text), Records::default(), "{text}");
        }
    }

    #[test]
    fn a_value_is_overridden_by_its_own_name_and_by_an_older_one() {
        let records = overridden("proxy.config.http.insert_client_ip=0");
        assert_eq!(records.http_insert_client_ip, 0);
        let records = overridden("proxy.config.http.origin_max_connections=7");
        assert_eq!(records.http_per_server_connection_max, 7);
        let records = overridden("proxy.config.ssl.client.cert.filename=a=b.pem");
        assert_eq!(records.ssl_client_cert_filename.as_deref(), Some("a=b.pem"));
    }

    #[test]
    fn what_a_rule_can_not_override_is_refused_by_name() {
        let rows = [
            ("proxy.config.http.insert_client_ip", "NAME=VALUE"),
            ("proxy.config.http.insert_client_ip=9", "outside its range"),
            (
                "proxy.config.http.server_ports=80",
                "a rule can't override it",
            ),
            ("proxy.config.http.insert_clientip=1", "did you mean"),
            ("proxy.process.http.x=1", "is a metric"),
        ];
        for (text, expected) in rows {
            let error = Override::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn what_has_no_effect_in_a_rule_is_warned_of() {
        let early = "proxy.config.http.keep_alive_enabled_in=0";
        let (_, warnings) = Override::parse(early).unwrap();
        assert!(warnings[0].contains("holds before a rule is known"));
        let ignored = "proxy.config.http.number_of_redirections=2";
        let (_, warnings) = Override::parse(ignored).unwrap();
        assert!(warnings[0].contains("not honoured yet"), "{warnings:?}");
    }
}
