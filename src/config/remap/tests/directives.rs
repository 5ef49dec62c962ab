//! Named filters and includes.

use super::super::{Action, Rule, parse};
use super::{error, parsed, rule, rules, warnings};
use crate::config::Findings;
use std::collections::BTreeMap;
use std::sync::Arc;

#[test]
fn filters_are_taken_by_the_rules_below_their_activation() {
    let all = rules(
        ".definefilter no_purge @action=deny @method=PURGE\n\
         map http://a.cn/ http://o/\n\
         .activatefilter no_purge\n\
         map http://b.cn/ http://o/ @src_ip=10.0.0.1\n\
         .deactivatefilter no_purge\n\
         map http://c.cn/ http://o/\n",
    );
    let names = |rule: &Rule| -> Vec<_> { rule.filters.iter().map(|f| f.name.clone()).collect() };
    assert_eq!(names(&all[0]), []);
    assert_eq!(names(&all[1]), [Some("no_purge".to_owned()), None]);
    assert_eq!(names(&all[2]), []);
}

#[test]
fn every_alias_of_a_directive_works() {
    for define in [".definefilter", ".deffilter", ".defflt"] {
        for on in [".activatefilter", ".activefilter", ".usefilter", ".useflt"] {
            let text = format!("{define} f @method=GET\n{on} f\nmap /a http://o/\n");
            assert_eq!(rule(&text).filters.len(), 1, "{text}");
        }
    }
    let offs = [
        ".deactivatefilter",
        ".unactivefilter",
        ".unusefilter",
        ".deuseflt",
        ".unuseflt",
    ];
    let deletes = [".deletefilter", ".delfilter", ".delflt"];
    for off in offs.iter().chain(&deletes) {
        let text = format!(".deffilter f @method=GET\n.usefilter f\n{off} f\nmap /a http://o/\n");
        assert_eq!(rule(&text).filters.len(), 0, "{text}");
    }
}

#[test]
fn defining_a_filter_again_adds_to_it() {
    let text = ".definefilter f @method=GET\n.definefilter f @method=HEAD @action=deny\n\
                .usefilter f\nmap /a http://o/\n";
    let rule = rule(text);
    assert_eq!(rule.filters[0].methods, ["GET", "HEAD"]);
    assert_eq!(rule.filters[0].action, Action::Deny);
}

#[test]
fn two_opposite_actions_of_one_filter_are_warned_of_and_the_last_holds() {
    for (text, place) in [
        (
            ".definefilter f @action=allow @method=GET @action=deny",
            "1:43",
        ),
        (
            "map /b http://o/ @action=allow @action=1 @action=deny",
            "1:42",
        ),
    ] {
        let told = warnings(text);
        let expected = format!("{place}: contradicts the @action before it");
        assert!(told.len() == 1 && told[0].contains(&expected), "{told:?}");
    }
    let (file, _) = parsed("map /a http://o/ @action=allow @action=deny");
    assert_eq!(file.rules[0].filters[0].action, Action::Deny);
}

#[test]
fn ip_allow_can_be_switched_off_for_rules() {
    let all = rules(
        "map http://a.cn/ http://o/\n.deactivatefilter ip_allow\nmap http://b.cn/ http://o/\n\
         .activatefilter ip_allow\nmap http://c.cn/ http://o/\n",
    );
    let held: Vec<_> = all.iter().map(|rule| rule.ip_allow).collect();
    assert_eq!(held, [true, false, true]);
}

#[test]
fn wrong_directives_are_errors() {
    for (text, expected) in [
        (".definefiltr f @method=GET", "1:1: unknown directive"),
        (".definefilter", "1:1: the directive names nothing"),
        (".definefilter f", "1:15: a filter needs"),
        (
            ".definefilter ip_allow @method=GET",
            "1:15: ip_allow is built in",
        ),
        (".deletefilter ip_allow", "1:15: ip_allow is built in"),
        (".usefilter f", "1:12: no filter of this name"),
        (".deletefilter f", "1:15: no filter of this name"),
        (
            ".definefilter f @plugin=generator.so @method=GET",
            "1:17: a filter has no plugins",
        ),
        (".definefilter f g @method=GET", "1:17: unexpected word"),
    ] {
        let error = error(text);
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    let near = ".definefilter local @src_ip=::1\n.usefilter locl";
    assert!(error(near).contains("did you mean local?"));
}

/// An include that knows these files; `dir` names all of them.
fn files(all: &[(&str, &str)]) -> impl Fn(&str) -> Result<Vec<(String, Vec<u8>)>, String> {
    let owned = |(n, t): &(&str, &str)| ((*n).to_owned(), t.as_bytes().to_vec());
    let all: BTreeMap<_, _> = all.iter().map(owned).collect();
    move |path| match all.get(path) {
        Some(text) => Ok(vec![(path.to_owned(), text.clone())]),
        None if path == "dir" => Ok(all.clone().into_iter().collect()),
        None => Err("no such file".to_owned()),
    }
}

#[test]
fn included_files_stand_where_they_are_included_and_share_filters() {
    let include = files(&[
        ("a", "map http://a.cn/ http://o/\n.usefilter f\n"),
        ("b", "map http://b.cn/ http://o/"),
    ]);
    let text = ".deffilter f @method=GET\nmap http://x.cn/ http://o/\n.include dir\nmap http://y.cn/ http://o/";
    let (file, findings) = parse("remap.config", text.as_bytes(), &include);
    assert_eq!(findings, Findings::default());
    let shown = |rule: &Rule| (rule.place.to_string(), rule.filters.len());
    let shown: Vec<_> = file.rules.iter().map(shown).collect();
    let expected = [
        ("remap.config:2:1", 0),
        ("a:1:1", 0),
        ("b:1:1", 1),
        ("remap.config:4:1", 1),
    ];
    assert_eq!(shown, expected.map(|(p, n)| (p.to_owned(), n)));
    assert_eq!(file.included, [Arc::from("a"), Arc::from("b")]);
}

#[test]
fn a_missing_include_and_one_in_a_circle_are_errors_at_their_place() {
    assert_eq!(
        error("\n.include rules/x.config"),
        "2:10: can't include this: rules/x.config does not exist (at \"rules/x.config\")"
    );
    let circle = files(&[("a", ".include b"), ("b", "\n .include a")]);
    let (_, findings) = parse("remap.config", b".include a", &circle);
    assert_eq!(findings.errors.len(), 1);
    assert_eq!(
        findings.errors[0].to_string(),
        "b:2:11: a includes itself (at \"a\")"
    );
}

#[test]
fn includes_that_multiply_end_at_a_bound() {
    // Each file includes the next ten times: 10^9 files without a bound.
    let names: Vec<String> = (0..10).map(|n| format!("f{n}")).collect();
    let text = |n: usize| format!(".include f{}\n", n + 1).repeat(10);
    let include = |path: &str| {
        let n = names.iter().position(|name| name == path).unwrap_or(9);
        Ok(vec![(path.to_owned(), text(n).into_bytes())])
    };
    let (file, findings) = parse("remap.config", b".include f0", &include);
    assert!(!findings.is_usable());
    assert_eq!(file.included.len(), 10_000);
}
