//! The grammar of remap.config, by the behaviour that operators see.

mod directives;
mod odd_input;
mod options;
mod rules;

use super::{RemapFile, Rule, parse};
use crate::config::Findings;

pub(super) fn no_include(path: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
    Err(format!("{path} does not exist"))
}

pub(super) fn parsed(text: &str) -> (RemapFile, Findings) {
    parse("remap.config", text.as_bytes(), &no_include)
}

/// The rules of a file in which nothing is wrong or odd.
pub(super) fn rules(text: &str) -> Vec<Rule> {
    let (file, findings) = parsed(text);
    assert_eq!(findings, Findings::default(), "{text}");
    file.rules
}

pub(super) fn rule(text: &str) -> Rule {
    let mut all = rules(text);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

pub(super) fn errors(text: &str) -> Vec<String> {
    let (_, findings) = parsed(text);
    findings.errors.iter().map(ToString::to_string).collect()
}

/// The only error, without the file's name.
pub(super) fn error(text: &str) -> String {
    let all = errors(text);
    assert_eq!(all.len(), 1, "{text}: {all:?}");
    all[0].strip_prefix("remap.config:").unwrap().to_owned()
}

pub(super) fn warnings(text: &str) -> Vec<String> {
    let (_, findings) = parsed(text);
    assert_eq!(findings.errors, [], "{text}");
    findings.warnings.iter().map(ToString::to_string).collect()
}
