//! The rule table: a request's URL to its rule and target.

use super::rule::CompiledRule;
use super::rules::{Rules, Taken};
use super::target::{RemapOptions, TargetUrl};
use crate::base::scheme::Scheme;
use crate::config::remap::{RemapFile, RuleKind};
use crate::config::{ConfigError, Findings};
use crate::http::target::RequestUrl;

/// The rules of a remap.config, indexed.
///
/// Lookup, after ATS:
/// 1. The map rules for the request's host, scheme and port whose path begins
///    the request's: the first in the file holds, not the longest.
/// 2. Regex rules above it in the file go before it.
/// 3. With neither, rules without host, for any host and port.
/// 4. With none, redirects in the same way: `redirect_temporary`, then
///    `redirect`.
#[derive(Debug, Default)]
pub struct Table {
    map: Rules,
    temporary: Rules,
    permanent: Rules,
    reverse: Rules,
}

/// What the table says about a URL.
#[derive(Debug)]
pub enum Found<'t> {
    /// Send it to `target`.
    Map {
        /// The rule that took it.
        rule: &'t CompiledRule,
        /// Where to.
        target: TargetUrl,
        /// The operator wrote the whole host; false when a capture of the
        /// request's host is in it, so that the client chooses the origin.
        literal_target: bool,
    },
    /// Answer with a redirect.
    Redirect {
        /// 301 or 307.
        status: u16,
        /// The whole URL for Location.
        location: String,
    },
    /// No rule takes it.
    None,
}

impl Table {
    /// Compiles the rules. Only a table without errors among the findings is
    /// to be used: it lacks the rules that they name. A rule by which clients
    /// reach any host they name is warned about.
    #[must_use]
    pub fn build(file: &RemapFile, options: &RemapOptions) -> (Self, Findings) {
        let mut findings = Findings::default();
        let mut rules = |kind| Rules::new(kind, file.rules.iter(), *options, &mut findings);
        let table = Self {
            map: rules(RuleKind::Map),
            temporary: rules(RuleKind::RedirectTemporary),
            permanent: rules(RuleKind::Redirect),
            reverse: rules(RuleKind::ReverseMap),
        };
        let open = table.map.open_to_any_host().map(open_warning);
        findings.warnings.extend(open);
        (table, findings)
    }

    /// Finds what becomes of a request for `url`.
    #[must_use]
    pub fn find(&self, url: &RequestUrl) -> Found<'_> {
        if let Some(taken) = self.map.find(url) {
            return mapped(taken);
        }
        for (rules, status) in [(&self.temporary, 307), (&self.permanent, 301)] {
            if let Some(taken) = rules.find(url) {
                let location = taken.target.to_url();
                return Found::Redirect { status, location };
            }
        }
        Found::None
    }

    /// Finds what becomes of a request for `url` that asks for a WebSocket: what
    /// a rule of ws or wss says, else what [`Self::find`] says.
    #[must_use]
    pub fn find_websocket(&self, url: &RequestUrl) -> Found<'_> {
        let taken = self.map.find(&url.as_websocket()).filter(|taken| {
            let scheme = taken.rule.rule().from.scheme;
            scheme.is_some_and(Scheme::is_websocket)
        });
        taken.map_or_else(|| self.find(url), mapped)
    }

    /// Whether there is a reverse_map at all.
    #[must_use]
    pub fn rewrites_locations(&self) -> bool {
        self.reverse.len() != 0
    }

    /// What a reverse_map makes of the value of Location, Content-Location,
    /// URI or Destination in a response; none if the value is no absolute URL
    /// or no rule takes it. A fragment is kept.
    #[must_use]
    pub fn rewrite_location(&self, value: &str) -> Option<String> {
        if self.reverse.len() == 0 {
            return None;
        }
        let end = value.find('#').unwrap_or(value.len());
        let (url, fragment) = value.split_at_checked(end)?;
        let url = RequestUrl::parse(url).ok()?;
        let taken = self.reverse.find(&url)?;
        Some(taken.target.to_url() + fragment)
    }

    /// How many rules the table holds, of every kind.
    #[must_use]
    pub fn len(&self) -> usize {
        let kinds = [&self.map, &self.temporary, &self.permanent, &self.reverse];
        kinds.iter().map(|rules| rules.len()).sum()
    }

    /// Whether the table holds no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn mapped(taken: Taken<'_>) -> Found<'_> {
    Found::Map {
        literal_target: taken.rule.rule().to.is_literal(),
        rule: taken.rule,
        target: taken.target,
    }
}

fn open_warning(rule: &CompiledRule) -> ConfigError {
    let what = "clients reach any host they name by this rule";
    ConfigError {
        help: Some("forward_allow and ip_allow's out rules decide who may, and where to".into()),
        ..rule.place().error("", what)
    }
}
