//! Names of other ATS versions for records of the table.

use super::spec::RecordSpec;
use super::table::{Records, find};
use super::value::{Check, RecordValue, ValueError};
use crate::config::place::shortened;

/// A name that sets other records.
#[derive(Debug)]
pub struct Alias {
    /// The name; its type is INT.
    pub name: &'static str,
    /// The records it sets, and how its value reads for each.
    pub sets: &'static [(&'static str, Reading)],
}

/// How an alias's value reads as the value of a record.
#[derive(Clone, Copy, Debug)]
pub enum Reading {
    /// As it is written.
    Same,
    /// The value 0 as the first word, 1 as the second, and so on.
    Words(&'static [&'static str]),
}

impl Reading {
    fn read(self, spec: &RecordSpec, text: &str) -> Result<RecordValue, ValueError> {
        let words = match self {
            Self::Same => return spec.read(text),
            Self::Words(words) => words,
        };
        let number = text.parse::<usize>().ok();
        match number.and_then(|number| words.get(number)) {
            Some(word) => spec.read(word),
            None => Err(ValueError::Outside {
                value: shortened(text),
                check: Check::Int(0, i64::try_from(words.len()).unwrap_or(i64::MAX) - 1),
            }),
        }
    }
}

/// A record and what it is set to.
pub(super) type Setting = (&'static RecordSpec, RecordValue);

/// All aliases, sorted by name (byte order).
pub static ALIASES: &[Alias] = &[
    Alias {
        name: "proxy.config.hostdb.size",
        sets: &[("proxy.config.hostdb.max_count", Reading::Same)],
    },
    Alias {
        name: "proxy.config.hostdb.storage_size",
        sets: &[("proxy.config.hostdb.max_size", Reading::Same)],
    },
    Alias {
        name: "proxy.config.http.anonymize_insert_client_ip",
        sets: &[("proxy.config.http.insert_client_ip", Reading::Same)],
    },
    Alias {
        name: "proxy.config.http.connect_attempts_max_retries_dead_server",
        sets: &[(
            "proxy.config.http.connect_attempts_max_retries_down_server",
            Reading::Same,
        )],
    },
    Alias {
        name: "proxy.config.http.normalize_ae_gzip",
        sets: &[("proxy.config.http.normalize_ae", Reading::Same)],
    },
    Alias {
        name: "proxy.config.http.origin_max_connections",
        sets: &[("proxy.config.http.per_server.connection.max", Reading::Same)],
    },
    Alias {
        name: "proxy.config.http.share_server_sessions",
        sets: &[
            (
                "proxy.config.http.server_session_sharing.match",
                Reading::Words(&["none", "both", "both"]),
            ),
            (
                "proxy.config.http.server_session_sharing.pool",
                Reading::Words(&["thread", "global", "thread"]),
            ),
        ],
    },
    Alias {
        name: "proxy.config.ssl.client.verify.server",
        sets: &[(
            "proxy.config.ssl.client.verify.server.policy",
            Reading::Words(&["DISABLED", "ENFORCED", "PERMISSIVE"]),
        )],
    },
];

/// The alias of this name.
#[must_use]
pub fn alias(name: &str) -> Option<&'static Alias> {
    let at = ALIASES
        .binary_search_by(|alias| alias.name.cmp(name))
        .ok()?;
    ALIASES.get(at)
}

impl Alias {
    /// The records it sets.
    pub fn specs(&self) -> impl Iterator<Item = &'static RecordSpec> + use<> {
        self.sets.iter().filter_map(|(name, _)| find(name))
    }

    /// Its value: the one that says what its records hold; where none does,
    /// their own texts.
    #[must_use]
    pub fn text_in(&self, records: &Records) -> String {
        let specs = self.specs();
        let held: Vec<RecordValue> = specs.map(|spec| spec.value_in(records)).collect();
        let numbers = (0..self.words()).map(|number| number.to_string());
        let says = |number: &String| {
            let read = self.read(number).unwrap_or_default().into_iter();
            read.map(|(_, value)| value).eq(held.iter().cloned())
        };
        let mut numbers = numbers.filter(says);
        let texts = held.iter().map(ToString::to_string);
        numbers
            .next()
            .unwrap_or_else(|| texts.collect::<Vec<_>>().join(", "))
    }

    /// How many numbers stand for words; 0 if its values are the records' own.
    fn words(&self) -> usize {
        let words = self.sets.iter().map(|(_, reading)| match reading {
            Reading::Same => 0,
            Reading::Words(words) => words.len(),
        });
        words.min().unwrap_or(0)
    }

    /// The records it sets, with the values that `text` gives them.
    ///
    /// # Errors
    /// When one of them does not take its value.
    pub(super) fn read(&self, text: &str) -> Result<Vec<Setting>, ValueError> {
        let sets = self.sets.iter();
        sets.filter_map(|(name, reading)| Some((find(name)?, reading)))
            .map(|(spec, reading)| Ok((spec, reading.read(spec, text)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_sorted_and_are_no_records_themselves() {
        for pair in ALIASES.windows(2) {
            assert!(pair[0].name < pair[1].name, "{}", pair[1].name);
        }
        for alias in ALIASES {
            assert!(find(alias.name).is_none(), "{}", alias.name);
        }
    }

    #[test]
    fn every_alias_sets_records_of_the_table_to_values_they_take() {
        for alias in ALIASES {
            assert_eq!(alias.specs().count(), alias.sets.len(), "{}", alias.name);
            assert!(alias.read("0").is_ok(), "{}", alias.name);
        }
    }

    #[test]
    fn an_alias_shows_the_value_that_sets_its_records_so() {
        for old in ALIASES {
            for text in ["0", "1"] {
                let mut records = Records::default();
                for (spec, value) in old.read(text).unwrap() {
                    spec.store_in(&mut records, &value).unwrap();
                }
                assert_eq!(old.text_in(&records), text, "{}", old.name);
            }
        }
        let records = Records {
            http_server_session_sharing_match: "ip".into(),
            ..Records::default()
        };
        let old = alias("proxy.config.http.share_server_sessions").unwrap();
        assert!(old.text_in(&records).starts_with("ip, "));
    }

    #[test]
    fn a_shared_pool_of_4_2_reads_as_pool_and_match() {
        let old = alias("proxy.config.http.share_server_sessions").unwrap();
        let texts: Vec<_> = old
            .read("1")
            .unwrap()
            .iter()
            .map(|s| s.1.to_string())
            .collect();
        assert_eq!(texts, ["both", "global"]);
        let error = old.read("3").unwrap_err();
        assert_eq!(error.to_string(), "3 is outside its range: 0 to 2");
    }
}
