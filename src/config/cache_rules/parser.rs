//! Lines of cache.config to rules.

use super::seconds::seconds;
use super::value::{CacheAction, CacheRule, CacheRulesFile, Destination, Narrowed};
use crate::base::scheme::Scheme;
use crate::config::ip_range::IpRange;
use crate::config::lines::{Line, Word, decode, lines};
use crate::config::methods;
use crate::config::nearest::did_you_mean;
use crate::config::place::Place;
use crate::config::{ConfigError, Findings};

/// Rules of a file: each request is compared with all of them.
const RULES_MAX: usize = 4096;
/// The most bytes that one compiled pattern may take.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Every word that a line may have before its `=`.
const KEYS: [&str; 18] = [
    "dest_domain",
    "dest_host",
    "dest_ip",
    "host_regex",
    "url_regex",
    "port",
    "scheme",
    "prefix",
    "suffix",
    "method",
    "time",
    "src_ip",
    "internal",
    "action",
    "pin-in-cache",
    "revalidate",
    "ttl-in-cache",
    "cache-responses-to-cookies",
];

/// The values of `action=`.
const ACTIONS: [(&str, CacheAction); 4] = [
    ("never-cache", CacheAction::NeverCache),
    ("ignore-no-cache", CacheAction::IgnoreNoCache),
    ("ignore-client-no-cache", CacheAction::IgnoreClientNoCache),
    ("ignore-server-no-cache", CacheAction::IgnoreServerNoCache),
];

/// Reads a file of this name. A line with a word that is not supported yet is
/// left out as a whole, with a warning: without it, it would hold for more
/// than is meant.
#[must_use]
pub fn parse(file: &str, bytes: &[u8]) -> (CacheRulesFile, Findings) {
    let mut found = Findings::default();
    let mut rules = CacheRulesFile::default();
    match decode(file, bytes) {
        Ok(text) => {
            let mut lines = lines(file, text).filter(|line| !line.is_blank());
            for line in lines.by_ref().take(RULES_MAX) {
                rules.rules.extend(rule(&line, &mut found));
            }
            let surplus = lines.next().map(|line| too_many(&line));
            found.errors.extend(surplus);
        }
        Err(error) => found.errors.push(error),
    }
    (rules, found)
}

fn too_many(line: &Line<'_>) -> ConfigError {
    line.place(1)
        .error("", format!("more than {RULES_MAX} rules"))
}

/// What a line has said so far.
#[derive(Default)]
struct Draft {
    destination: Option<Destination>,
    narrowed: Narrowed,
    action: Option<CacheAction>,
    /// The first word that has no effect yet.
    unheeded: Option<(Place, String)>,
}

fn rule(line: &Line<'_>, found: &mut Findings) -> Option<CacheRule> {
    let before = found.errors.len();
    let mut draft = Draft::default();
    for word in line.words().take_while(|word| !word.text.starts_with('#')) {
        let taken = draft.take(line, word);
        found.errors.extend(taken.err());
    }
    let place = line.place(line.words().next()?.column);
    if found.errors.len() > before {
        return None;
    }
    if let Some((place, token)) = draft.unheeded {
        let what = "not supported yet: the whole line has no effect";
        found.warnings.push(place.error(&token, what));
        return None;
    }
    match (draft.destination, draft.action) {
        (Some(destination), Some(action)) => Some(CacheRule {
            destination,
            narrowed: draft.narrowed,
            action,
            place,
        }),
        (destination, _) => {
            found.errors.push(incomplete(&place, destination.is_some()));
            None
        }
    }
}

fn incomplete(place: &Place, has_destination: bool) -> ConfigError {
    let (missing, help) = if has_destination {
        let help = "add action=never-cache, ttl-in-cache=1d or another action";
        ("the line says not what to do", help)
    } else {
        let help = "begin it with dest_domain=, dest_host=, host_regex= or url_regex=";
        ("the line says not which requests it is for", help)
    };
    ConfigError {
        help: Some(help.into()),
        ..place.error("", missing)
    }
}

impl Draft {
    fn take(&mut self, line: &Line<'_>, word: Word<'_>) -> Result<(), ConfigError> {
        let place = line.place(word.column);
        let (key, value) = word.text.split_once('=').unwrap_or((word.text, ""));
        if !KEYS.contains(&key) {
            return Err(ConfigError {
                help: did_you_mean(key, KEYS),
                ..place.error(word.text, "unknown word")
            });
        }
        let value_place = place.right(key.chars().count() + 1);
        if value.is_empty() {
            return Err(place.error(word.text, "a value is missing"));
        }
        let at = At {
            place: &place,
            value_place: &value_place,
            word: word.text,
        };
        match key {
            "dest_domain" | "dest_host" | "host_regex" | "url_regex" => {
                let destination = destination(key, value, &value_place)?;
                at.once(&mut self.destination, destination)
            }
            "dest_ip" | "time" | "internal" => {
                self.unheeded
                    .get_or_insert_with(|| (place.clone(), word.text.to_owned()));
                let any = Destination::Domain(String::new());
                match key {
                    "dest_ip" => at.once(&mut self.destination, any),
                    _ => Ok(()),
                }
            }
            "port" | "scheme" | "prefix" | "suffix" | "method" | "src_ip" => {
                self.narrow(key, value, &at)
            }
            _ => {
                let action = action(key, value, &value_place)?;
                at.once(&mut self.action, action)
            }
        }
    }

    fn narrow(&mut self, key: &str, value: &str, at: &At<'_>) -> Result<(), ConfigError> {
        let narrowed = &mut self.narrowed;
        match key {
            "port" => {
                let port = value.parse().ok().filter(|port| *port > 0);
                let what = "a port is a number from 1 to 65535";
                at.once(&mut narrowed.port, at.some(value, port, what)?)
            }
            "scheme" => {
                let scheme = Scheme::named(value);
                let what = "a scheme is http or https";
                at.once(&mut narrowed.scheme, at.some(value, scheme, what)?)
            }
            "prefix" => {
                let path = value.strip_prefix('/').unwrap_or(value);
                at.once(&mut narrowed.prefix, path.to_owned())
            }
            "suffix" => at.once(&mut narrowed.suffix, value.to_owned()),
            "method" => {
                let method = methods::parse(value);
                let what = "no method has such a name";
                at.once(&mut narrowed.method, at.some(value, method, what)?)
            }
            _ => {
                let range = IpRange::parse(value)
                    .map_err(|error| at.value_place.error(value, error.to_string()))?;
                at.once(&mut narrowed.src_ip, range)
            }
        }
    }
}

/// Where a word stands.
struct At<'a> {
    place: &'a Place,
    value_place: &'a Place,
    word: &'a str,
}

impl At<'_> {
    /// Sets what a line may say once.
    fn once<T>(&self, slot: &mut Option<T>, value: T) -> Result<(), ConfigError> {
        match slot.replace(value) {
            None => Ok(()),
            Some(_) => {
                let what = "the line says such a thing twice";
                Err(self.place.error(self.word, what))
            }
        }
    }

    fn some<T>(&self, value: &str, read: Option<T>, what: &str) -> Result<T, ConfigError> {
        read.ok_or_else(|| self.value_place.error(value, what))
    }
}

fn destination(key: &str, value: &str, place: &Place) -> Result<Destination, ConfigError> {
    let lower = || value.trim_start_matches('.').to_ascii_lowercase();
    match key {
        "dest_domain" => Ok(Destination::Domain(lower())),
        "dest_host" => Ok(Destination::Host(value.to_ascii_lowercase())),
        "host_regex" => pattern(value, place).map(Destination::HostRegex),
        _ => pattern(value, place).map(Destination::UrlRegex),
    }
}

/// A pattern that compiles.
fn pattern(value: &str, place: &Place) -> Result<String, ConfigError> {
    let mut builder = regex::RegexBuilder::new(value);
    match builder.size_limit(PATTERN_BYTES_MAX).build() {
        Ok(_) => Ok(value.to_owned()),
        Err(error) => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            let why = last.trim_start_matches("error: ");
            Err(place.error(value, format!("the pattern does not compile: {why}")))
        }
    }
}

fn action(key: &str, value: &str, place: &Place) -> Result<CacheAction, ConfigError> {
    let time = || {
        seconds(value).ok_or_else(|| ConfigError {
            help: Some("write seconds, or a text such as 1d2h30m15s".into()),
            ..place.error(value, "this is no time")
        })
    };
    match key {
        "pin-in-cache" => time().map(CacheAction::PinInCache),
        "revalidate" => time().map(CacheAction::Revalidate),
        "ttl-in-cache" => time().map(CacheAction::TtlInCache),
        "cache-responses-to-cookies" => {
            let number = value.parse().ok().filter(|n| (0..=4).contains(n));
            let what = "it takes 0 to 4";
            let number = number.ok_or_else(|| place.error(value, what))?;
            Ok(CacheAction::ResponsesToCookies(number))
        }
        _ => {
            let named = ACTIONS.iter().find(|(name, _)| *name == value);
            named.map(|(_, action)| *action).ok_or_else(|| ConfigError {
                help: did_you_mean(value, ACTIONS.map(|(name, _)| name))
                    .or_else(|| Some("write never-cache or one of the ignore-… actions".into())),
                ..place.error(value, "unknown action")
            })
        }
    }
}
