//! The indexes against a scan of all rules in file order.

use super::{ATS, Found, RemapOptions, Table, url};
use crate::base::scheme::Scheme;
use crate::config::place::Place;
use crate::config::remap::{FromUrl, HostMatch, HostPart, RemapFile, Rule, RuleKind, ToUrl};
use crate::remap::PathPrefix;
use proptest::prelude::*;
use regex::Regex;
use std::sync::LazyLock;

const HOSTS: [&str; 6] = ["a.cn", "b.a.cn", "a.cn.b", "c", "b.b.cn", "aa.cn"];

const PATTERNS: [&str; 10] = [
    "(.*)",
    r"(.*)\.a\.cn",
    "a.cn",
    r"(?:a|b)\.cn",
    r"b\.(.+)",
    "[a-c]+",
    r"(a+)\.cn(?:\.b)?",
    r"^(.*)cn$",
    "c|aa.cn",
    "x(.*)",
];

fn host_match() -> impl Strategy<Value = HostMatch> {
    prop_oneof![
        1 => Just(HostMatch::Any),
        4 => prop::sample::select(&HOSTS[..]).prop_map(|h| HostMatch::Exact(h.into())),
        4 => prop::sample::select(&PATTERNS[..]).prop_map(|p| HostMatch::Pattern(p.into())),
    ]
}

fn scheme() -> impl Strategy<Value = Scheme> {
    prop_oneof![4 => Just(Scheme::Http), 1 => Just(Scheme::Https)]
}

fn rule() -> impl Strategy<Value = Rule> {
    let kind = prop_oneof![
        6 => Just(RuleKind::Map),
        1 => Just(RuleKind::Redirect),
        1 => Just(RuleKind::RedirectTemporary),
    ];
    let port = prop_oneof![3 => Just(None), 1 => Just(Some(80)), 1 => Just(Some(81))];
    let from = (prop::option::of(scheme()), host_match(), port, "[ab/]{0,3}");
    let from = from.prop_map(|(scheme, host, port, path)| {
        let any = host == HostMatch::Any;
        let every = any || host == HostMatch::Pattern("(.*)".into());
        FromUrl {
            scheme: scheme.filter(|_| !any),
            host,
            port: port.filter(|_| !any),
            every_port: every && (any || port.is_none()),
            path,
        }
    });
    (kind, from).prop_map(|(kind, from)| Rule {
        kind,
        from,
        to: target(0),
        tag: None,
        filters: Vec::new(),
        ip_allow: true,
        plugins: Vec::new(),
        overrides: Vec::new(),
        place: place(),
    })
}

/// A target that tells the rule's number.
fn target(number: usize) -> ToUrl {
    ToUrl {
        scheme: Scheme::Http,
        host: vec![HostPart::Text(format!("o{number}").into())],
        port: None,
        path: String::new(),
    }
}

fn place() -> Place {
    Place {
        file: "f".into(),
        line: 1,
        column: 1,
    }
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    prop::collection::vec(rule(), 0..30).prop_map(|mut rules| {
        for (number, rule) in rules.iter_mut().enumerate() {
            rule.to = target(number);
        }
        rules
    })
}

/// A request, in the words of the scan.
#[derive(Debug)]
struct Asked {
    scheme: Scheme,
    host: &'static str,
    port: u16,
    path: String,
}

impl Asked {
    fn url(&self) -> String {
        let Self {
            scheme,
            host,
            port,
            path,
        } = self;
        format!("{}://{host}:{port}/{path}", scheme.as_str())
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let port = prop::sample::select(&[80, 81, 443][..]);
    let parts = (
        scheme(),
        prop::sample::select(&HOSTS[..]),
        port,
        "[ab/]{0,6}",
    );
    parts.prop_map(|(scheme, host, port, path)| Asked {
        scheme,
        host,
        port,
        path,
    })
}

fn takes_path(from: &FromUrl, path: &str, options: RemapOptions) -> bool {
    let segment = options.path_prefix == PathPrefix::Segment;
    let ends_well = |rest: &str| {
        rest.is_empty() || rest.starts_with('/') || from.path.is_empty() || from.path.ends_with('/')
    };
    path.strip_prefix(from.path.as_str())
        .is_some_and(|rest| !segment || ends_well(rest))
}

fn takes(rule: &Rule, asked: &Asked, options: RemapOptions) -> bool {
    let scheme = rule.from.scheme.is_none_or(|scheme| scheme == asked.scheme);
    let default = asked.scheme.default_port();
    let port = rule.from.every_port || rule.from.port.unwrap_or(default) == asked.port;
    let host = match &rule.from.host {
        HostMatch::Any => true,
        HostMatch::Exact(host) => host == asked.host,
        HostMatch::Pattern(pattern) => pattern_takes(pattern, asked.host, options),
    };
    scheme && port && host && takes_path(&rule.from, &asked.path, options)
}

/// Each of `PATTERNS`, anchored and not.
static COMPILED: LazyLock<Vec<[Regex; 2]>> = LazyLock::new(|| {
    let both = |p: &&str| [format!("^(?:{p})$"), (*p).to_owned()].map(|t| Regex::new(&t).unwrap());
    PATTERNS.iter().map(both).collect()
});

fn pattern_takes(pattern: &str, host: &str, options: RemapOptions) -> bool {
    let number = PATTERNS.iter().position(|p| *p == pattern).unwrap();
    COMPILED[number][usize::from(options == ATS)].is_match(host)
}

/// The number of the rule that takes the request: named hosts and patterns
/// alike in file order, then rules without host; maps, then redirects.
fn scan(rules: &[Rule], asked: &Asked, options: RemapOptions) -> Option<usize> {
    let kinds = [
        RuleKind::Map,
        RuleKind::RedirectTemporary,
        RuleKind::Redirect,
    ];
    kinds.iter().find_map(|kind| {
        let first = |any_host: bool| {
            rules.iter().position(|rule| {
                let is_any = rule.from.host == HostMatch::Any;
                rule.kind == *kind && is_any == any_host && takes(rule, asked, options)
            })
        };
        first(false).or_else(|| first(true))
    })
}

fn number(found: &Found<'_>) -> Option<usize> {
    let host = match found {
        Found::Map { target, .. } => target.host.to_string(),
        Found::Redirect { location, .. } => location.split('/').nth(2)?.to_owned(),
        Found::None => return None,
    };
    host.strip_prefix('o')?.parse().ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_table_answers_like_a_scan(
        rules in rules(),
        requests in prop::collection::vec(asked(), 1..20),
        as_ats in any::<bool>(),
    ) {
        let options = if as_ats { ATS } else { RemapOptions::default() };
        let file = RemapFile { rules, included: Vec::new() };
        let (table, findings) = Table::build(&file, &options);
        prop_assert_eq!(findings.errors, []);
        for asked in &requests {
            let found = table.find(&url(&asked.url()));
            prop_assert_eq!(number(&found), scan(&file.rules, asked, options), "{:?}", asked);
        }
    }
}
