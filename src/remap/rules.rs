//! The rules of one kind, indexed by host.

use super::path_index::PathIndex;
use super::patterns::{Asked, Builder, Pattern, Patterns, is_catch_all};
use super::rewrite;
use super::rule::CompiledRule;
use super::target::{RemapOptions, TargetUrl};
use crate::base::scheme::Scheme;
use crate::config::Findings;
use crate::config::remap::{HostMatch, Rule, RuleKind};
use crate::http::target::RequestUrl;
use std::collections::{BTreeMap, HashMap};

/// Rules of one kind in file order, with their indexes.
#[derive(Debug, Default)]
pub(super) struct Rules {
    options: RemapOptions,
    all: Vec<CompiledRule>,
    exact: HashMap<Box<str>, BTreeMap<(Scheme, u16), PathIndex>>,
    patterns: Patterns,
    any_host: PathIndex,
}

/// A rule and what it makes of the URL.
pub(super) struct Taken<'t> {
    pub(super) rule: &'t CompiledRule,
    pub(super) target: TargetUrl,
}

/// (path prefix, rule number) pairs on their way into a [`PathIndex`].
type Prefixes = Vec<(Box<str>, usize)>;

#[derive(Default)]
struct Hosts {
    exact: HashMap<Box<str>, BTreeMap<(Scheme, u16), Prefixes>>,
    any: Prefixes,
}

impl Hosts {
    fn add(&mut self, number: usize, rule: &Rule) {
        let path: Box<str> = rule.from.path.as_str().into();
        match &rule.from.host {
            HostMatch::Pattern(_) => {}
            HostMatch::Any => self.any.push((path, number)),
            HostMatch::Exact(host) => {
                let ports = self.exact.entry(host.as_str().into()).or_default();
                for (scheme, port) in places(rule) {
                    let prefixes = ports.entry((scheme, port)).or_default();
                    prefixes.push((path.clone(), number));
                }
            }
        }
    }
}

/// The schemes and ports that a rule for one host stands at.
fn places(rule: &Rule) -> impl Iterator<Item = (Scheme, u16)> {
    let schemes = match rule.from.scheme {
        Some(scheme) => vec![scheme],
        None => vec![Scheme::Http, Scheme::Https],
    };
    let port = rule.from.port;
    let at = move |scheme: Scheme| (scheme, port.unwrap_or(scheme.default_port()));
    schemes.into_iter().map(at)
}

impl Rules {
    /// Indexes the rules of this kind.
    pub(super) fn new<'r>(
        kind: RuleKind,
        rules: impl Iterator<Item = &'r Rule>,
        options: RemapOptions,
        findings: &mut Findings,
    ) -> Self {
        let mut hosts = Hosts::default();
        let mut patterns = Builder::default();
        let mut all = Vec::new();
        for rule in rules.filter(|rule| rule.kind == kind) {
            hosts.add(all.len(), rule);
            if let Err(error) = patterns.add(all.len(), rule, options) {
                findings.errors.push(error);
            }
            all.push(CompiledRule::new(rule.clone()));
        }
        let ports_of = |ports: BTreeMap<_, Prefixes>| {
            let indexed = |(at, prefixes)| (at, PathIndex::new(prefixes));
            ports.into_iter().map(indexed).collect()
        };
        let exact = hosts.exact.into_iter();
        Self {
            options,
            all,
            exact: exact.map(|(host, ports)| (host, ports_of(ports))).collect(),
            patterns: patterns.build(),
            any_host: PathIndex::new(hosts.any),
        }
    }

    /// The rule that takes the URL: the first in the file among those for its
    /// host; where there is none, the first among those for any host.
    pub(super) fn find(&self, url: &RequestUrl) -> Option<Taken<'_>> {
        let asked = asked(url);
        let exact = self.exact(&asked);
        self.pattern(&asked, url, exact)
            .or_else(|| self.taken(exact?, None, url))
            .or_else(|| self.taken(self.any_host(&asked)?, None, url))
    }

    fn exact(&self, asked: &Asked<'_>) -> Option<usize> {
        let ports = self.exact.get(asked.host)?;
        let index = ports.get(&(asked.scheme, asked.port))?;
        index.earliest(asked.path, self.options.path_prefix)
    }

    fn any_host(&self, asked: &Asked<'_>) -> Option<usize> {
        self.any_host.earliest(asked.path, self.options.path_prefix)
    }

    /// The first pattern that stands above rule `below` and makes a URL.
    fn pattern(
        &self,
        asked: &Asked<'_>,
        url: &RequestUrl,
        below: Option<usize>,
    ) -> Option<Taken<'_>> {
        // A request without a host is for the rules without one.
        if asked.host.is_empty() {
            return None;
        }
        let is_above = |pattern: &&Pattern| below.is_none_or(|below| pattern.rule < below);
        self.patterns
            .matching(asked, self.options)
            .take_while(is_above)
            .find_map(|pattern| self.taken(pattern.rule, Some(pattern), url))
    }

    fn taken(
        &self,
        number: usize,
        pattern: Option<&Pattern>,
        url: &RequestUrl,
    ) -> Option<Taken<'_>> {
        let rule = self.all.get(number)?;
        let target = rewrite::target(rule.rule(), pattern.and_then(|p| p.host.regex()), url)?;
        Some(Taken { rule, target })
    }

    /// Rules by which a client can reach any host it names.
    pub(super) fn open_to_any_host(&self) -> impl Iterator<Item = &CompiledRule> {
        self.patterns.near_any_host().filter_map(|pattern| {
            let rule = self.all.get(pattern.rule)?;
            let open = !rule.rule().to.is_literal() && is_catch_all(&pattern.host);
            open.then_some(rule)
        })
    }

    /// How many rules there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}

fn asked(url: &RequestUrl) -> Asked<'_> {
    let path = url.path();
    Asked {
        scheme: url.scheme_kind(),
        host: url.host(),
        port: url.port(),
        path: path.strip_prefix('/').unwrap_or(path),
    }
}
