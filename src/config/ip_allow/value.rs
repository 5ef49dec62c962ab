//! What an ip_allow file says.

use crate::config::ip_range::{ANY_V4, ANY_V6, IpRange, LOOPBACK_V4, LOOPBACK_V6};
use crate::config::place::Place;
use crate::config::remap::Action;

/// All rules of an ip_allow file, in file order: the first that covers an
/// address decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpAllowFile {
    /// At least one when read from a file.
    pub rules: Vec<IpAllowRule>,
}

impl IpAllowFile {
    /// The rules that hold without a file: loopback may use every method,
    /// everyone else all but PURGE and PUSH; nothing is said about origins.
    #[must_use]
    pub fn built_in() -> Self {
        let inbound = |ranges: [IpRange; 2], action, methods| IpAllowRule {
            direction: Direction::In,
            ranges: ranges.to_vec(),
            action,
            methods,
            place: None,
        };
        let cache_methods = Methods::Some(vec!["PURGE".into(), "PUSH".into()]);
        let loopback = [LOOPBACK_V4, LOOPBACK_V6];
        Self {
            rules: vec![
                inbound(loopback, Action::Allow, Methods::All),
                inbound([ANY_V4, ANY_V6], Action::Deny, cache_methods),
            ],
        }
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpAllowRule {
    /// Whether it judges clients or origins.
    pub direction: Direction,
    /// The addresses it covers; at least one range.
    pub ranges: Vec<IpRange>,
    /// What happens to the methods; all others get the opposite.
    pub action: Action,
    /// The methods named.
    pub methods: Methods,
    /// Where it stands; none for a built-in rule.
    pub place: Option<Place>,
}

/// Whose address a rule judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The client's.
    In,
    /// The origin's.
    Out,
}

/// The methods that a rule names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Methods {
    /// Every method.
    All,
    /// These; names of RFC 9110 are in upper case.
    Some(Vec<String>),
}

impl IpAllowRule {
    /// Whether the rule lets `method` pass for an address that it covers:
    /// an allow rule passes the methods it names and no other, a deny rule
    /// all but those it names.
    #[must_use]
    pub fn passes(&self, method: &str) -> bool {
        let named = match &self.methods {
            Methods::All => true,
            Methods::Some(methods) => methods.iter().any(|m| m == method),
        };
        named == (self.action == Action::Allow)
    }
}
