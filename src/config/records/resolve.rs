//! Which of a record's values holds: environment, running, file, default.

use std::collections::BTreeMap;

use super::aliases::ALIASES;
use super::file::RecordsFile;
use super::known::{SetError, settings};
use super::spec::RecordSpec;
use super::table::{RECORDS, Records};
use crate::config::Findings;
use crate::config::place::Place;

/// Values set while the server runs, by name, as written.
pub type Running = BTreeMap<String, String>;

impl Records {
    /// The values in force. An environment variable (`env` looks it up by its
    /// name, [`variable`]) goes before a running value, that before the file's,
    /// that before the default. A variable or running value that its record
    /// can't take is an error.
    #[must_use]
    pub fn resolve(
        env: &dyn Fn(&str) -> Option<String>,
        running: &Running,
        file: &RecordsFile,
    ) -> (Self, Findings) {
        let mut layers = Layers::default();
        for (name, record) in &file.records {
            let stored =
                super::find(name).map(|spec| spec.store_in(&mut layers.records, &record.value));
            debug_assert_eq!(stored, Some(Ok(())), "a file holds checked values only");
        }
        for (name, text) in running {
            layers.set("running value", name, text);
        }
        let names = ALIASES.iter().map(|alias| alias.name);
        for name in names.chain(RECORDS.iter().map(|spec| spec.name)) {
            let variable = variable(name);
            if let Some(text) = env(&variable) {
                layers.set(&format!("${variable}"), name, &text);
            }
        }
        (layers.records, layers.found)
    }

    /// The records whose values differ in `other`, in the table's order.
    pub fn differences(&self, other: &Self) -> impl Iterator<Item = &'static RecordSpec> {
        RECORDS
            .iter()
            .filter(|spec| spec.value_in(self) != spec.value_in(other))
    }
}

/// The environment variable of a record: its name in upper case, dots as
/// underscores.
#[must_use]
pub fn variable(name: &str) -> String {
    name.to_uppercase().replace('.', "_")
}

/// The records so far.
#[derive(Default)]
struct Layers {
    records: Records,
    found: Findings,
}

impl Layers {
    /// Lays a value over those before; `source` says where it is from.
    fn set(&mut self, source: &str, name: &str, text: &str) {
        let place = Place {
            file: source.into(),
            line: 1,
            column: 1,
        };
        let stored = settings(name, text).and_then(|settings| {
            for (spec, value) in settings {
                let warning = spec.unheeded(&value).map(|what| place.error(text, what));
                self.found.warnings.extend(warning);
                let stored = spec.store_in(&mut self.records, &value);
                stored.map_err(|error| SetError::Value {
                    name: name.into(),
                    error,
                })?;
            }
            Ok(())
        });
        if let Err(error) = stored {
            self.found.errors.push(place.error(text, error.to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUTOFF: &str = "proxy.config.cache.ram_cache_cutoff";

    fn file(text: &str) -> RecordsFile {
        RecordsFile::parse("records.config", text.as_bytes()).0
    }

    fn nothing(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn environment_goes_before_running_before_file_before_default() {
        let none = RecordsFile::default();
        let file = file(&format!("CONFIG {CUTOFF} INT 1"));
        let running = Running::from([(CUTOFF.into(), "2".into())]);
        let env = |name: &str| (name == "PROXY_CONFIG_CACHE_RAM_CACHE_CUTOFF").then(|| "3".into());
        let empty = Running::new();
        let cutoff = |env: &dyn Fn(&str) -> Option<String>, running: &Running, file| {
            Records::resolve(env, running, file)
                .0
                .cache_ram_cache_cutoff
        };
        assert_eq!(cutoff(&nothing, &empty, &none), 4_194_304);
        assert_eq!(cutoff(&nothing, &empty, &file), 1);
        assert_eq!(cutoff(&nothing, &running, &file), 2);
        assert_eq!(cutoff(&env, &running, &file), 3);
    }

    #[test]
    fn a_bad_value_of_the_environment_or_at_run_time_is_an_error() {
        let env = |name: &str| (name == "PROXY_CONFIG_HTTP_CACHE_HTTP").then(|| "9".into());
        let running = Running::from([("proxy.config.nothing".into(), "2".into())]);
        let (records, found) = Records::resolve(&env, &running, &RecordsFile::default());
        assert_eq!(records, Records::default());
        let errors: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
        assert!(errors[0].starts_with("running value:1:1: proxy.config.nothing is no record"));
        assert!(
            errors[1].starts_with("$PROXY_CONFIG_HTTP_CACHE_HTTP:1:1: "),
            "{}",
            errors[1]
        );
    }

    #[test]
    fn a_variable_by_an_old_name_holds_too_unless_the_new_one_is_there() {
        let old = |name: &str| {
            (name == "PROXY_CONFIG_HTTP_ANONYMIZE_INSERT_CLIENT_IP").then(|| "0".into())
        };
        let both = |name: &str| {
            old(name).or_else(|| (name == "PROXY_CONFIG_HTTP_INSERT_CLIENT_IP").then(|| "1".into()))
        };
        let resolve = |env: &dyn Fn(&str) -> Option<String>| {
            Records::resolve(env, &Running::new(), &RecordsFile::default())
                .0
                .http_insert_client_ip
        };
        assert_eq!(resolve(&old), 0);
        assert_eq!(resolve(&both), 1);
    }

    #[test]
    fn differences_name_the_records_that_changed() {
        let changed = Records {
            cache_ram_cache_cutoff: 40,
            ..Records::default()
        };
        let names: Vec<_> = changed
            .differences(&Records::default())
            .map(|s| s.name)
            .collect();
        assert_eq!(names, [CUTOFF]);
    }
}
