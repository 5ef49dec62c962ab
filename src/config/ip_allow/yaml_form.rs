//! `ip_allow.yaml`: a list of rules below the key `ip_allow`.

use super::value::{Direction, IpAllowRule, Methods};
use crate::config::ip_range::IpRange;
use crate::config::nearest::did_you_mean;
use crate::config::remap::Action;
use crate::config::yaml::{self, Kind, Node};
use crate::config::{ConfigError, Findings, methods};

const KEYS: [&str; 4] = ["apply", "ip_addrs", "action", "methods"];

/// Keys and actions of ATS 10 that we refuse by name.
const UNSUPPORTED: [&str; 6] = [
    "ip_categories",
    "set_allow",
    "set_deny",
    "add_allow",
    "add_deny",
    "ip_allow_category",
];

/// Reads every rule; each wrong key is an error.
pub(super) fn parse(file: &str, bytes: &[u8], findings: &mut Findings) -> Vec<IpAllowRule> {
    let root = match yaml::parse(file, bytes) {
        Ok(root) => root,
        Err(error) => {
            findings.errors.push(error);
            return Vec::new();
        }
    };
    let Some(list) = root.and_then(|root| list_of(root, findings)) else {
        return Vec::new();
    };
    let rules = list.iter().filter_map(|node| rule(node, findings));
    rules.collect()
}

/// The rules below `ip_allow`; none and an error if they are not there.
fn list_of(root: Node, findings: &mut Findings) -> Option<Vec<Node>> {
    let Kind::Mapping(pairs) = root.kind else {
        findings
            .errors
            .push(root.error("the file is no mapping with a key ip_allow"));
        return None;
    };
    let mut list = None;
    for (key, value) in pairs {
        match key.scalar() {
            Some("ip_allow") if list.is_none() => list = Some(value),
            Some("ip_allow") => findings.errors.push(key.error("a second ip_allow")),
            _ => findings.errors.push(unknown(&key, &["ip_allow"])),
        }
    }
    let list = list?;
    match list.kind {
        Kind::List(items) => Some(items),
        Kind::Scalar(text) if text.is_empty() || text == "~" || text == "null" => None,
        Kind::Scalar(_) | Kind::Mapping(_) => {
            let error = list.place.error("", "ip_allow is no list of rules");
            findings.errors.push(error);
            None
        }
    }
}

fn unknown(key: &Node, valid: &[&str]) -> ConfigError {
    let text = key.scalar().unwrap_or_default();
    if UNSUPPORTED.contains(&text) {
        return key.error(format!("{text} is not supported yet"));
    }
    ConfigError {
        help: did_you_mean(text, valid.iter().copied()),
        ..key.error("unknown key")
    }
}

/// What a rule's keys have said so far.
#[derive(Default)]
struct Draft {
    direction: Option<Direction>,
    ranges: Option<Vec<IpRange>>,
    action: Option<Action>,
    methods: Option<Methods>,
}

fn rule(node: &Node, findings: &mut Findings) -> Option<IpAllowRule> {
    let Kind::Mapping(pairs) = &node.kind else {
        findings
            .errors
            .push(node.error("a rule is a mapping of apply, ip_addrs, action, methods"));
        return None;
    };
    let before = findings.errors.len();
    let mut draft = Draft::default();
    for (key, value) in pairs {
        draft.take(key, value, findings);
    }
    if findings.errors.len() > before {
        return None;
    }
    let missing = |key: &str| node.place.error("", format!("the rule has no {key}"));
    match (draft.direction, draft.ranges, draft.action) {
        (None, ..) => findings.errors.push(missing("apply")),
        (_, None, _) => findings.errors.push(missing("ip_addrs")),
        (.., None) => findings.errors.push(missing("action")),
        (Some(direction), Some(ranges), Some(action)) => {
            return Some(IpAllowRule {
                direction,
                ranges,
                action,
                methods: draft.methods.unwrap_or(Methods::All),
                place: Some(node.place.clone()),
            });
        }
    }
    None
}

impl Draft {
    fn take(&mut self, key: &Node, value: &Node, findings: &mut Findings) {
        let again = match key.scalar() {
            Some("apply") => set(&mut self.direction, direction(value), findings),
            Some("action") => set(&mut self.action, action(value), findings),
            Some("ip_addrs") => set(&mut self.ranges, ranges(value, findings), findings),
            Some("methods") => set(&mut self.methods, method_set(value, findings), findings),
            _ => {
                findings.errors.push(unknown(key, &KEYS));
                false
            }
        };
        if again {
            findings
                .errors
                .push(key.error("a key that the rule has already"));
        }
    }
}

/// Sets the field, or notes why not; says whether it had been set before.
fn set<T>(field: &mut Option<T>, value: Result<T, ConfigError>, findings: &mut Findings) -> bool {
    match value {
        Ok(value) => field.replace(value).is_some(),
        Err(error) => {
            findings.errors.push(error);
            false
        }
    }
}

fn direction(value: &Node) -> Result<Direction, ConfigError> {
    match value.scalar() {
        Some("in") => Ok(Direction::In),
        Some("out") => Ok(Direction::Out),
        _ => Err(value.error("apply is in or out")),
    }
}

fn action(value: &Node) -> Result<Action, ConfigError> {
    match value.scalar() {
        Some("allow") => Ok(Action::Allow),
        Some("deny") => Ok(Action::Deny),
        Some(other) if UNSUPPORTED.contains(&other) => {
            Err(value.error(format!("{other} is not supported yet")))
        }
        _ => Err(value.error("action is allow or deny")),
    }
}

fn ranges(value: &Node, findings: &mut Findings) -> Result<Vec<IpRange>, ConfigError> {
    let mut ranges = Vec::new();
    for item in value.items() {
        match IpRange::parse(item.scalar().unwrap_or_default()) {
            Ok(range) => ranges.push(range),
            Err(error) => findings.errors.push(item.error(error.to_string())),
        }
    }
    if value.items().is_empty() {
        return Err(value.error("ip_addrs holds no address"));
    }
    Ok(ranges)
}

fn method_set(value: &Node, findings: &mut Findings) -> Result<Methods, ConfigError> {
    let mut all = false;
    let mut names = Vec::new();
    for item in value.items() {
        let name = item.scalar().unwrap_or_default();
        all |= name.eq_ignore_ascii_case("ALL");
        match methods::parse(name) {
            Some(name) => names.push(name),
            None => findings
                .errors
                .push(item.error("no method has such a name")),
        }
    }
    if value.items().is_empty() {
        return Err(value.error("methods holds no method"));
    }
    Ok(if all {
        Methods::All
    } else {
        Methods::Some(names)
    })
}
