//! The host patterns of one table, looked up without trying each.

use super::host_pattern::HostPattern;
use super::literals;
use super::path_index;
use super::target::RemapOptions;
use crate::base::scheme::Scheme;
use crate::config::ConfigError;
use crate::config::remap::{FromUrl, HostMatch, Rule, parse_pattern};
use aho_corasick::AhoCorasick;
use regex_syntax::hir::Hir;
use std::collections::{BTreeMap, BTreeSet};

/// Hosts that have nothing in common.
const UNLIKE_HOSTS: [&str; 3] = ["10.0.0.1", "a.b.org", "www.example.com"];

/// What rules are looked up by, besides their host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'u> {
    pub(super) scheme: Scheme,
    /// In lower case.
    pub(super) host: &'u str,
    pub(super) port: u16,
    /// Without the leading `/`.
    pub(super) path: &'u str,
}

/// A rule with a host pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The rule's number in its table; lower ones are earlier in the file.
    pub(super) rule: usize,
    pub(super) host: HostPattern,
    scheme: Option<Scheme>,
    port: Option<u16>,
    every_port: bool,
    path: String,
}

impl Pattern {
    fn takes(&self, asked: &Asked<'_>, options: RemapOptions) -> bool {
        self.scheme.is_none_or(|scheme| scheme == asked.scheme)
            && self.takes_port(asked)
            && path_index::takes(&self.path, asked.path, options.path_prefix)
            && self.host.is_match(asked.host)
    }

    fn takes_port(&self, asked: &Asked<'_>) -> bool {
        let default = asked.scheme.default_port();
        self.every_port || asked.port == self.port.unwrap_or(default)
    }
}

/// Host patterns in file order.
///
/// A pattern is only tried on hosts that contain a text without which it
/// can't match; one search finds all such texts in a host at once.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    all: Vec<Pattern>,
    /// Places in `all` of patterns that require no text, ascending.
    always: Vec<usize>,
    literals: Option<AhoCorasick>,
    /// For each literal, the places in `all` of patterns that require it.
    requiring: Vec<Vec<usize>>,
}

/// Patterns to be indexed; ended by [`Builder::build`].
#[derive(Debug, Default)]
pub(super) struct Builder {
    patterns: Patterns,
    by_literal: BTreeMap<Vec<u8>, Vec<usize>>,
}

impl Builder {
    /// Takes in the pattern of `rule`, whose number is `number`.
    ///
    /// # Errors
    /// A pattern that is wrong or too large once compiled.
    pub(super) fn add(
        &mut self,
        number: usize,
        rule: &Rule,
        options: RemapOptions,
    ) -> Result<(), ConfigError> {
        let FromUrl {
            scheme,
            host,
            port,
            every_port,
            path,
        } = &rule.from;
        let HostMatch::Pattern(pattern) = host else {
            return Ok(());
        };
        let fault = |what: String| rule.place.error(pattern, what);
        let hir = parse_pattern(pattern).map_err(|e| fault(format!("bad pattern: {e}")))?;
        let host = HostPattern::new(pattern, &hir, options).map_err(fault)?;
        self.index(&hir);
        self.patterns.all.push(Pattern {
            rule: number,
            host,
            scheme: *scheme,
            port: *port,
            every_port: *every_port,
            path: path.clone(),
        });
        Ok(())
    }

    fn index(&mut self, hir: &Hir) {
        let place = self.patterns.all.len();
        match literals::required(hir) {
            None => self.patterns.always.push(place),
            Some(set) => {
                for literal in set {
                    self.by_literal.entry(literal).or_default().push(place);
                }
            }
        }
    }

    /// The index. If the search for literals can't be built, which takes more
    /// of them than memory holds, every pattern is tried on every host.
    pub(super) fn build(self) -> Patterns {
        let Self {
            mut patterns,
            by_literal,
        } = self;
        if by_literal.is_empty() {
            return patterns;
        }
        match AhoCorasick::new(by_literal.keys()) {
            Ok(literals) => {
                patterns.literals = Some(literals);
                patterns.requiring = by_literal.into_values().collect();
            }
            Err(_) => patterns.always = (0..patterns.all.len()).collect(),
        }
        patterns
    }
}

impl Patterns {
    /// The patterns that may take any host, in file order: those that each of
    /// some unlike hosts comes near. Whether they do, [`is_catch_all`] says.
    pub(super) fn near_any_host(&self) -> impl Iterator<Item = &Pattern> {
        let near = UNLIKE_HOSTS.map(|host| self.candidates(host).collect::<BTreeSet<_>>());
        let places = 0..self.all.len();
        let near_all = move |place: &usize| near.iter().all(|near| near.contains(place));
        places
            .filter(near_all)
            .filter_map(|place| self.all.get(place))
    }

    /// The patterns that take the request, in file order.
    pub(super) fn matching<'p>(
        &'p self,
        asked: &'p Asked<'_>,
        options: RemapOptions,
    ) -> impl Iterator<Item = &'p Pattern> {
        self.candidates(asked.host)
            .filter_map(|place| self.all.get(place))
            .filter(move |pattern| pattern.takes(asked, options))
    }

    /// Places in `all`, ascending, of every pattern that may match the host.
    fn candidates(&self, host: &str) -> impl Iterator<Item = usize> {
        let mut found = self.with_literals_of(host).into_iter().peekable();
        let mut always = self.always.iter().copied().peekable();
        std::iter::from_fn(move || match (found.peek(), always.peek()) {
            (Some(found_next), Some(always_next)) if always_next < found_next => always.next(),
            (Some(_), _) => found.next(),
            (None, _) => always.next(),
        })
    }

    fn with_literals_of(&self, host: &str) -> Vec<usize> {
        let Some(literals) = &self.literals else {
            return Vec::new();
        };
        let found = literals.find_overlapping_iter(host);
        let lists = found.filter_map(|m| self.requiring.get(m.pattern().as_usize()));
        let mut places: Vec<usize> = lists.flatten().copied().collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}

/// Whether a pattern takes hosts that have nothing in common.
pub(super) fn is_catch_all(pattern: &HostPattern) -> bool {
    UNLIKE_HOSTS.iter().all(|host| pattern.is_match(host))
}
