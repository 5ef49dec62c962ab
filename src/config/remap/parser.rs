//! Statements to rules: types, FROM, TO, options, duplicates, includes.

use super::filters::NamedFilters;
use super::lexer::{self, Statement, Word};
use super::options::{self, Options};
use super::url;
use super::value::{FromUrl, HostMatch, RemapFile, Rule, RuleKind, ToUrl};
use crate::base::scheme::Scheme;
use crate::config::nearest::did_you_mean;
use crate::config::place::Place;
use crate::config::{ConfigError, Findings};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Gives the files that an `.include` path names, as (name, bytes): one for a
/// file, those of a directory in alphabetical order; or says why it can't.
pub type Include<'i> = dyn Fn(&str) -> Result<Vec<(String, Vec<u8>)>, String> + 'i;

/// How deep includes may nest.
const MAX_DEPTH: usize = 16;

/// How many files one table may be made of: nested includes multiply.
const MAX_FILES: usize = 10_000;

/// The rule types; each may have `regex_` in front.
const KINDS: [(&str, RuleKind); 4] = [
    ("map", RuleKind::Map),
    ("reverse_map", RuleKind::ReverseMap),
    ("redirect", RuleKind::Redirect),
    ("redirect_temporary", RuleKind::RedirectTemporary),
];

/// Rule types of ATS that we refuse by name.
const UNSUPPORTED_KINDS: [&str; 2] = ["map_with_recv_port", "map_with_referer"];

const REGEX_PREFIX: &str = "regex_";

const CAPTURE_IN_PATH: &str =
    "captures are put into TO's host only, as in ATS: in the path this goes out as it is written";

/// Directives by their names and aliases.
const DIRECTIVES: &[(&str, Directive)] = &[
    (".include", Directive::Include),
    (".definefilter", Directive::Define),
    (".deffilter", Directive::Define),
    (".defflt", Directive::Define),
    (".deletefilter", Directive::Delete),
    (".delfilter", Directive::Delete),
    (".delflt", Directive::Delete),
    (".activatefilter", Directive::Activate),
    (".activefilter", Directive::Activate),
    (".usefilter", Directive::Activate),
    (".useflt", Directive::Activate),
    (".deactivatefilter", Directive::Deactivate),
    (".unactivefilter", Directive::Deactivate),
    (".unusefilter", Directive::Deactivate),
    (".deuseflt", Directive::Deactivate),
    (".unuseflt", Directive::Deactivate),
];

#[derive(Clone, Copy)]
enum Directive {
    Include,
    Define,
    Delete,
    Activate,
    Deactivate,
}

/// Reads a remap.config and all that it includes; `file` is the name that
/// messages show. The value holds every rule that is right, but is only to be
/// used if no error is among the findings.
#[must_use]
pub fn parse(file: &str, text: &[u8], include: &Include<'_>) -> (RemapFile, Findings) {
    let mut parser = Parser {
        include,
        value: RemapFile::default(),
        findings: Findings::default(),
        filters: NamedFilters::default(),
        open_files: Vec::new(),
        seen: HashMap::new(),
    };
    parser.file(&Arc::from(file), text);
    (parser.value, parser.findings)
}

struct Parser<'i> {
    include: &'i Include<'i>,
    value: RemapFile,
    findings: Findings,
    filters: NamedFilters,
    /// The file being read and those that include it, outermost first.
    open_files: Vec<Arc<str>>,
    /// The rules so far, to find a second one of the same kind and FROM.
    seen: HashMap<Identity, Place>,
}

/// What two rules may not have in common.
type Identity = (RuleKind, Option<Scheme>, HostMatch, Option<u16>, String);

impl Parser<'_> {
    fn file(&mut self, name: &Arc<str>, text: &[u8]) {
        self.open_files.push(Arc::clone(name));
        for statement in lexer::statements(name, text, &mut self.findings) {
            self.statement(&statement);
        }
        self.open_files.pop();
    }

    fn statement(&mut self, statement: &Statement<'_>) {
        let (options, params): (Vec<_>, Vec<_>) = statement
            .iter()
            .partition(|word| word.text.starts_with('@'));
        let options = options::parse(&options, &mut self.findings);
        let Some((first, args)) = params.split_first() else {
            if let Some(word) = statement.first() {
                let error = word.place.error(word.text, "options without a rule");
                self.findings
                    .errors
                    .push(helped(error, "end the line above with \\"));
            }
            return;
        };
        if first.text.starts_with('.') {
            self.directive(first, args, options);
        } else {
            self.rule(first, args, options);
        }
    }

    fn directive(&mut self, name: &Word<'_>, args: &[&Word<'_>], options: Options) {
        let same = |(known, _): &&(&str, Directive)| known.eq_ignore_ascii_case(name.text);
        let Some((_, directive)) = DIRECTIVES.iter().find(same) else {
            let error = ConfigError {
                help: did_you_mean(name.text, DIRECTIVES.iter().map(|d| d.0)),
                ..name.place.error(name.text, "unknown directive")
            };
            return self.findings.errors.push(error);
        };
        let Some((first, more)) = args.split_first() else {
            let what = "the directive names nothing";
            return self.findings.errors.push(name.place.error(name.text, what));
        };
        let result = match directive {
            Directive::Include => return args.iter().for_each(|path| self.included(path)),
            Directive::Define => self.filters.define(name, first, options),
            Directive::Delete => self.filters.delete(first),
            Directive::Activate => self.filters.activate(first),
            Directive::Deactivate => self.filters.deactivate(first),
        };
        self.note(result);
        self.unexpected(more, "a filter directive takes one name");
    }

    fn included(&mut self, path: &Word<'_>) {
        let fault = |what: String| path.place.error(path.text, what);
        if self.open_files.len() > MAX_DEPTH {
            let what = format!("includes nest deeper than {MAX_DEPTH}");
            return self.findings.errors.push(fault(what));
        }
        let files = match (self.include)(path.text) {
            Ok(files) => files,
            Err(why) => {
                let error = fault(format!("can't include this: {why}"));
                return self.findings.errors.push(error);
            }
        };
        for (name, text) in files {
            self.included_file(path, &Arc::from(name), &text);
        }
    }

    fn included_file(&mut self, path: &Word<'_>, name: &Arc<str>, text: &[u8]) {
        let fault = |what: String| path.place.error(path.text, what);
        if self.open_files.contains(name) {
            let what = format!("{name} includes itself");
            return self.findings.errors.push(fault(what));
        }
        if self.value.included.len() >= MAX_FILES {
            let what = format!("more than {MAX_FILES} files are included");
            return self.findings.errors.push(fault(what));
        }
        self.value.included.push(Arc::clone(name));
        self.file(name, text);
    }

    fn rule(&mut self, first: &Word<'_>, args: &[&Word<'_>], options: Options) {
        let (kind, regex) = match kind_of(first) {
            Ok(kind) => kind,
            Err(error) => return self.findings.errors.push(error),
        };
        let [from, to, rest @ ..] = args else {
            let last = args.last().copied().unwrap_or(first);
            let end = last.place.right(last.text.chars().count());
            let missing = if args.is_empty() {
                "FROM and TO are"
            } else {
                "TO is"
            };
            let error = end.error("", format!("{missing} missing"));
            return self
                .findings
                .errors
                .push(helped(error, "a rule is: TYPE FROM TO [TAG] [@option…]"));
        };
        self.unexpected(rest.get(1..).unwrap_or_default(), "nothing follows the tag");
        let from_url = self.note(url::parse_from(from, regex));
        // A bad FROM must not bring a second error for each capture in TO.
        let groups = from_url.as_ref().map_or(9, |(_, groups)| *groups);
        let to_url = self.note(url::parse_to(to, regex.then_some(groups)));
        let (Some((from_url, _)), Some(to_url)) = (from_url, to_url) else {
            return;
        };
        self.check(kind, (from, &from_url), (to, &to_url));
        self.check_options(kind, &options);
        self.unique(kind, from, &from_url);
        let rule = Rule {
            kind,
            from: from_url,
            to: to_url,
            tag: rest.first().map(|tag| tag.text.to_owned()),
            filters: self.filters.for_rule(&options),
            ip_allow: self.filters.ip_allow(),
            plugins: options.plugins,
            overrides: options.overrides,
            place: first.place.clone(),
        };
        self.value.rules.push(rule);
    }

    /// What the URLs of a rule of this kind may not be.
    fn check(&mut self, kind: RuleKind, from: (&Word<'_>, &FromUrl), to: (&Word<'_>, &ToUrl)) {
        let ((from_word, from), (to_word, to)) = (from, to);
        if kind != RuleKind::Map && from.scheme.is_some_and(Scheme::is_websocket) {
            let what = "ws and wss stand in FROM of map and regex_map only";
            let error = from_word.place.error(from_word.text, what);
            self.findings.errors.push(helped(error, "write http://…"));
        }
        if kind == RuleKind::ReverseMap && from.host == HostMatch::Any {
            let what = "a reverse_map needs a host in FROM";
            let error = from_word.place.error(from_word.text, what);
            self.findings.errors.push(error);
        }
        if from.path.ends_with('/') && !to.path.is_empty() && !to.path.ends_with('/') {
            let what = "FROM ends in / and TO does not: the rest of a path is glued to TO";
            let warning = to_word.place.error(to_word.text, what);
            let help = format!("write {}/", to_word.text);
            self.findings.warnings.push(helped(warning, &help));
        }
        if matches!(from.host, HostMatch::Pattern(_)) {
            let captures = captures_in_path(to_word, &to.path);
            self.findings.warnings.extend(captures);
        }
    }

    fn check_options(&mut self, kind: RuleKind, options: &Options) {
        if kind == RuleKind::Map {
            return;
        }
        for used in &options.plugins {
            let what = "plugins work in map and regex_map only";
            let error = used.place.error(used.plugin.name(), what);
            self.findings.errors.push(error);
        }
        if let Some(place) = &options.filter_place {
            let what = "filters have no effect but in map and regex_map";
            self.findings.warnings.push(place.error("", what));
        }
    }

    fn unique(&mut self, kind: RuleKind, word: &Word<'_>, from: &FromUrl) {
        let mut earlier = None;
        for identity in identities(kind, from) {
            match self.seen.entry(identity) {
                Entry::Occupied(first) => earlier = Some(first.get().clone()),
                Entry::Vacant(free) => {
                    free.insert(word.place.clone());
                }
            }
        }
        if let Some(first) = earlier {
            let what = format!("a second rule of this type for this FROM; the first is at {first}");
            self.findings.errors.push(word.place.error(word.text, what));
        }
    }

    fn note<T>(&mut self, result: Result<T, ConfigError>) -> Option<T> {
        result
            .map_err(|error| self.findings.errors.push(error))
            .ok()
    }

    fn unexpected(&mut self, words: &[&Word<'_>], why: &str) {
        if let Some(word) = words.first() {
            let what = format!("unexpected word: {why}");
            self.findings.errors.push(word.place.error(word.text, what));
        }
    }
}

/// A warning for each `$1` in the path of TO, which stays as it is written.
fn captures_in_path(to: &Word<'_>, path: &str) -> Vec<ConfigError> {
    let before = to.text.len().saturating_sub(path.len());
    let places = path.match_indices('$').filter_map(|(at, _)| {
        let capture = path.get(at..at + 2)?;
        let is_capture = capture.ends_with(|c: char| c.is_ascii_digit());
        let left = to.text.get(..before + at)?.chars().count();
        is_capture.then(|| to.place.right(left).error(capture, CAPTURE_IN_PATH))
    });
    places.collect()
}

fn helped(error: ConfigError, help: &str) -> ConfigError {
    ConfigError {
        help: Some(help.to_owned()),
        ..error
    }
}

/// The type that a rule's first word names, and whether FROM is a pattern.
fn kind_of(word: &Word<'_>) -> Result<(RuleKind, bool), ConfigError> {
    let lower = word.text.to_ascii_lowercase();
    let (plain, regex) = match lower.strip_prefix(REGEX_PREFIX) {
        Some(plain) => (plain, true),
        None => (lower.as_str(), false),
    };
    if let Some((_, kind)) = KINDS.iter().find(|(name, _)| *name == plain) {
        return Ok((*kind, regex));
    }
    if UNSUPPORTED_KINDS.contains(&plain) {
        let what = format!("rule type {lower} is not supported yet");
        return Err(word.place.error(word.text, what));
    }
    let prefix = if regex { REGEX_PREFIX } else { "" };
    let names = KINDS.map(|(name, _)| format!("{prefix}{name}"));
    Err(ConfigError {
        help: did_you_mean(&lower, names.iter().map(String::as_str)),
        ..word.place.error(word.text, "unknown rule type")
    })
}

/// A FROM that takes both schemes at a named host is one rule for each.
fn identities(kind: RuleKind, from: &FromUrl) -> impl Iterator<Item = Identity> {
    let schemes = match (from.scheme, &from.host) {
        (None, HostMatch::Exact(_) | HostMatch::Pattern(_)) => {
            vec![Some(Scheme::Http), Some(Scheme::Https)]
        }
        (scheme, _) => vec![scheme],
    };
    schemes.into_iter().map(move |scheme| {
        let default = scheme.filter(|_| !from.every_port);
        let port = from.port.or(default.map(Scheme::default_port));
        (kind, scheme, from.host.clone(), port, from.path.clone())
    })
}
