//! A rule as the table holds it.

use super::filter::{self, Client};
use crate::config::place::Place;
use crate::config::records::Override;
use crate::config::remap::{Filter, PluginUse, Rule};

/// A rule that a request was mapped by.
#[derive(Debug)]
pub struct CompiledRule {
    rule: Rule,
}

impl CompiledRule {
    pub(super) const fn new(rule: Rule) -> Self {
        Self { rule }
    }

    /// What the file says.
    #[must_use]
    pub const fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Where the rule stands.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.rule.place
    }

    /// Its plugins in written order.
    #[must_use]
    pub fn plugins(&self) -> &[PluginUse] {
        &self.rule.plugins
    }

    /// The records that hold otherwise for its requests.
    #[must_use]
    pub fn overrides(&self) -> &[Override] {
        &self.rule.overrides
    }

    /// Whether the ip_allow file is to be asked too.
    #[must_use]
    pub const fn ip_allow_holds(&self) -> bool {
        self.rule.ip_allow
    }

    /// The first of the rule's filters that refuses the client (answer 403);
    /// none if all let it pass.
    #[must_use]
    pub fn refused_by(&self, client: &Client<'_>) -> Option<&Filter> {
        let filters = self.rule.filters.iter().map(AsRef::as_ref);
        filters.into_iter().find(|f| !filter::passes(f, client))
    }
}
