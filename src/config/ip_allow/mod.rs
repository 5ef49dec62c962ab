//! `ip_allow.config` (4.2) and `ip_allow.yaml` (9.x): who may use the proxy,
//! by which methods, and which addresses it may be sent to.

mod lines_form;
#[cfg(test)]
mod tests;
mod value;
mod yaml_form;

pub use value::{Direction, IpAllowFile, IpAllowRule, Methods};

use super::Findings;
use super::place::Place;

/// Reads an ip_allow file: YAML if its name ends in `.yaml` or `.yml`, else
/// lines. A file without a rule is an error, since nobody could use the proxy;
/// for no file at all take [`IpAllowFile::built_in`].
#[must_use]
pub fn parse(file: &str, bytes: &[u8]) -> (IpAllowFile, Findings) {
    let mut findings = Findings::default();
    let is_yaml = file.ends_with(".yaml") || file.ends_with(".yml");
    let rules = if is_yaml {
        yaml_form::parse(file, bytes, &mut findings)
    } else {
        lines_form::parse(file, bytes, &mut findings)
    };
    if rules.is_empty() && findings.is_usable() {
        let place = Place {
            file: file.into(),
            line: 1,
            column: 1,
        };
        let mut error = place.error("", "no rule is here, so every client would be refused");
        error.help = Some("remove the file to get the built-in rules".into());
        findings.errors.push(error);
    }
    (IpAllowFile { rules }, findings)
}
