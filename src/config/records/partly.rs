//! Values that an honoured record takes and does not act on.

use super::value::RecordValue;

/// A record of which not every value has its own effect.
struct Partly {
    name: &'static str,
    /// Whether the value is one that has none.
    unheeded: fn(&RecordValue) -> bool,
    /// What Strata does then.
    instead: &'static str,
}

/// The largest body of a fragment, in bytes: two and their heads fit a batch.
const FRAGMENT_MAX: i64 = 1_835_008;
/// `net.sock_option_flag_in`: no delay, and keep-alive probes.
const SOCKET_FLAGS: i64 = 3;

static PARTLY: &[Partly] = &[
    Partly {
        name: "proxy.config.aio.mode",
        unheeded: |value| text(value) == "native",
        instead: "disks are read as by auto",
    },
    Partly {
        name: "proxy.config.cache.interim.migrate_threshold",
        unheeded: |value| int(value) > 255,
        instead: "Strata acts as with 255",
    },
    Partly {
        name: "proxy.config.cache.target_fragment_size",
        unheeded: |value| int(value) > FRAGMENT_MAX,
        instead: "fragments hold at most 1835008 bytes",
    },
    Partly {
        name: "proxy.config.http.proxy_protocol_out",
        unheeded: |value| int(value) == 0,
        instead: "origins are not told who the client is",
    },
    Partly {
        name: "proxy.config.log.logging_enabled",
        unheeded: |value| matches!(int(value), 1 | 4),
        instead: "there is no error log: errors go to standard error",
    },
    Partly {
        name: "proxy.config.net.sock_option_flag_in",
        unheeded: |value| int(value) & !SOCKET_FLAGS != 0,
        instead: "only 1 and 2 have an effect",
    },
];

/// What to say of a value that its record does not act on.
pub(super) fn unheeded(name: &str, value: &RecordValue) -> Option<String> {
    let row = PARTLY.iter().find(|row| row.name == name)?;
    let told = || format!("{name} {value} is not honoured yet: {}", row.instead);
    (row.unheeded)(value).then(told)
}

fn int(value: &RecordValue) -> i64 {
    match value {
        RecordValue::Int(number) => *number,
        RecordValue::Float(_) | RecordValue::String(_) => 0,
    }
}

fn text(value: &RecordValue) -> &str {
    match value {
        RecordValue::String(text) => text.as_deref().unwrap_or(""),
        RecordValue::Int(_) | RecordValue::Float(_) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::records::{Honour, find};

    #[test]
    fn every_row_is_an_honoured_record_whose_default_has_its_effect() {
        for row in PARTLY {
            let spec = find(row.name).unwrap();
            assert_eq!(spec.honour, Honour::Honoured, "{}", row.name);
            assert_eq!(spec.unheeded(&spec.default_value()), None, "{}", row.name);
        }
    }

    #[test]
    fn a_value_without_effect_is_named_with_what_is_done_instead() {
        let spec = find("proxy.config.log.logging_enabled").unwrap();
        assert_eq!(spec.unheeded(&RecordValue::Int(0)), None);
        let said = spec.unheeded(&RecordValue::Int(4)).unwrap();
        assert!(said.starts_with("proxy.config.log.logging_enabled 4 "));
        assert!(said.ends_with("go to standard error"), "{said}");
    }
}
