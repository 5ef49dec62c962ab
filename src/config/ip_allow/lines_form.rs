//! `ip_allow.config`: a rule a line, `src_ip=RANGE action=ip_allow method=ALL`.

use super::value::{Direction, IpAllowRule, Methods};
use crate::config::ip_range::IpRange;
use crate::config::lines::{self, Line, Word};
use crate::config::nearest::did_you_mean;
use crate::config::remap::Action;
use crate::config::{ConfigError, Findings, methods};

const KEYS: [&str; 4] = ["src_ip", "dest_ip", "action", "method"];

/// Reads every rule; each wrong line is an error.
pub(super) fn parse(file: &str, bytes: &[u8], findings: &mut Findings) -> Vec<IpAllowRule> {
    let text = match lines::decode(file, bytes) {
        Ok(text) => text,
        Err(error) => {
            findings.errors.push(error);
            return Vec::new();
        }
    };
    let lines = lines::lines(file, text).filter(|line| !line.is_blank());
    lines.filter_map(|line| rule(&line, findings)).collect()
}

/// What a line has said so far.
#[derive(Default)]
struct Draft {
    range: Option<(Direction, IpRange)>,
    action: Option<Action>,
    methods: Vec<String>,
    all_methods: bool,
}

fn rule(line: &Line<'_>, findings: &mut Findings) -> Option<IpAllowRule> {
    let before = findings.errors.len();
    let mut draft = Draft::default();
    for word in line.words().take_while(|word| !word.text.starts_with('#')) {
        if let Err(error) = draft.take(line, word) {
            findings.errors.push(error);
        }
    }
    let first = line.words().next()?;
    let place = line.place(first.column);
    if findings.errors.len() > before {
        return None;
    }
    let (Some((direction, range)), Some(action)) = (draft.range, draft.action) else {
        let missing = if draft.range.is_none() {
            "src_ip="
        } else {
            "action="
        };
        let mut error = place.error("", format!("the line has no {missing}"));
        error.help = Some("a line is: src_ip=RANGE action=ip_allow|ip_deny [method=M|M]".into());
        findings.errors.push(error);
        return None;
    };
    let all = draft.all_methods || draft.methods.is_empty();
    Some(IpAllowRule {
        direction,
        ranges: vec![range],
        action,
        methods: if all {
            Methods::All
        } else {
            Methods::Some(draft.methods)
        },
        place: Some(place),
    })
}

impl Draft {
    fn take(&mut self, line: &Line<'_>, word: Word<'_>) -> Result<(), ConfigError> {
        let place = line.place(word.column);
        let (key, value) = word.text.split_once('=').unwrap_or((word.text, ""));
        let value_place = place.right(key.chars().count() + 1);
        match key {
            "src_ip" | "dest_ip" => {
                let range = IpRange::parse(value)
                    .map_err(|error| value_place.error(value, error.to_string()))?;
                let direction = if key == "src_ip" {
                    Direction::In
                } else {
                    Direction::Out
                };
                if self.range.replace((direction, range)).is_some() {
                    return Err(place.error(word.text, "a second range on the line"));
                }
            }
            "action" => {
                self.action = Some(action(value).ok_or_else(|| {
                    ConfigError {
                        help: did_you_mean(value, ["ip_allow", "ip_deny"])
                            .or_else(|| Some("write ip_allow or ip_deny".into())),
                        ..value_place.error(value, "unknown action")
                    }
                })?);
            }
            "method" => self
                .methods(value)
                .map_err(|name| value_place.error(name, "no method has such a name"))?,
            _ => {
                return Err(ConfigError {
                    help: did_you_mean(key, KEYS),
                    ..place.error(word.text, "unknown word")
                });
            }
        }
        Ok(())
    }

    /// Takes `M|M|…`; gives back a name that is none.
    fn methods<'v>(&mut self, value: &'v str) -> Result<(), &'v str> {
        for name in value.split('|') {
            if name.eq_ignore_ascii_case("ALL") {
                self.all_methods = true;
            } else {
                self.methods.push(methods::parse(name).ok_or(name)?);
            }
        }
        Ok(())
    }
}

fn action(value: &str) -> Option<Action> {
    match value {
        "ip_allow" => Some(Action::Allow),
        "ip_deny" => Some(Action::Deny),
        _ => None,
    }
}
