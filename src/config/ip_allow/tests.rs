//! Both forms of ip_allow, by what they mean.

use super::{Direction, IpAllowFile, IpAllowRule, Methods, parse};
use crate::config::Findings;
use crate::config::remap::Action;
use proptest::prelude::*;

/// The file that ATS 9 installs, shortened in its comments.
const ATS_9: &str = "\
# YAML
ip_allow:
  - apply: in
    ip_addrs: 127.0.0.1
    action: allow
    methods: ALL
  - apply: in
    ip_addrs: ::1
    action: allow
    methods: ALL
  - apply: in
    ip_addrs: 0/0
    action: deny
    methods:
      - PURGE
      - PUSH
      - DELETE
      - TRACE
  - apply: in
    ip_addrs: ::/0
    action: deny
    methods: [PURGE, push, DELETE, TRACE]
";

/// The file that ATS 4.2 installs.
const ATS_4: &str = "\
src_ip=127.0.0.1                                  action=ip_allow method=ALL
src_ip=::1                                        action=ip_allow method=ALL
# Deny PURGE, DELETE, and PUSH for all (this implies allow other methods for all)
src_ip=0.0.0.0-255.255.255.255                    action=ip_deny  method=PUSH|PURGE|DELETE
src_ip=::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff action=ip_deny  method=PUSH|PURGE|DELETE
";

fn rules(file: &str, text: &str) -> Vec<IpAllowRule> {
    let (value, findings) = parse(file, text.as_bytes());
    assert_eq!(findings, Findings::default(), "{text}");
    value.rules
}

fn errors(file: &str, text: &str) -> Vec<String> {
    let (_, findings) = parse(file, text.as_bytes());
    findings.errors.iter().map(ToString::to_string).collect()
}

fn first_error(file: &str, text: &str) -> String {
    errors(file, text).into_iter().next().unwrap_or_default()
}

#[test]
fn the_installed_files_of_both_versions_are_read() {
    for (file, text) in [("ip_allow.yaml", ATS_9), ("ip_allow.config", ATS_4)] {
        let rules = rules(file, text);
        assert_eq!(rules.len(), 4);
        assert!(rules.iter().all(|rule| rule.direction == Direction::In));
        assert_eq!(rules[0].methods, Methods::All);
        assert_eq!(rules[3].action, Action::Deny);
        let passed = ["GET", "PUSH"].map(|method| rules[3].passes(method));
        assert_eq!(passed, [true, false], "{file}");
    }
}

#[test]
fn an_allow_rule_with_methods_passes_only_those() {
    let text = "src_ip=10.0.0.0/8 action=ip_allow method=GET|HEAD method=bake";
    let rule = &rules("ip_allow.config", text)[0];
    let passed = ["GET", "HEAD", "bake", "POST"].map(|method| rule.passes(method));
    assert_eq!(passed, [true, true, true, false]);
}

#[test]
fn yaml_lists_and_scalars_mean_the_same_and_methods_default_to_all() {
    let text = "ip_allow:\n- {apply: out, ip_addrs: [127.0.0.0/8, '::1'], action: allow}\n";
    let rule = &rules("ip_allow.yaml", text)[0];
    assert_eq!((rule.direction, rule.ranges.len()), (Direction::Out, 2));
    assert_eq!(rule.methods, Methods::All);
    assert_eq!(
        rule.place.as_ref().unwrap().to_string(),
        "ip_allow.yaml:2:3"
    );
}

#[test]
fn a_file_without_rules_is_an_error() {
    for (file, text) in [
        ("ip_allow.config", ""),
        ("ip_allow.config", "# none\n"),
        ("ip_allow.yaml", ""),
        ("ip_allow.yaml", "# none\n"),
        ("ip_allow.yaml", "ip_allow:\n"),
        ("ip_allow.yaml", "ip_allow: []\n"),
    ] {
        let errors = errors(file, text);
        assert_eq!(errors.len(), 1, "{text}");
        assert!(errors[0].contains("no rule is here"), "{errors:?}");
    }
}

#[test]
fn wrong_lines_are_errors_at_their_place() {
    for (text, expected) in [
        (
            "src_ip=10.0.0 action=ip_allow",
            "1:8: \"10.0.0\" is no IPv4",
        ),
        ("src_ip=::1 action=allow", "1:19: unknown action"),
        ("src_ip=::1", "1:1: the line has no action="),
        (" action=ip_deny", "1:2: the line has no src_ip="),
        (
            "src_ipp=::1 action=ip_deny",
            "1:1: unknown word (at \"src_ipp=::1\"); did you mean src_ip?",
        ),
        ("src_ip=::1 action=ip_deny method=G/T", "1:34: no method"),
        (
            "src_ip=::1 src_ip=::2 action=ip_deny",
            "1:12: a second range",
        ),
    ] {
        let error = first_error("f", text);
        assert!(error.starts_with(&format!("f:{expected}")), "{error}");
    }
    assert_eq!(
        errors("f", "x=1\nsrc_ip=::1 action=ip_deny # fine\ny=2\n").len(),
        2
    );
}

#[test]
fn wrong_keys_of_yaml_are_errors_at_their_place() {
    let rule = |keys: &str| format!("ip_allow:\n  - {{{keys}}}\n");
    let full = "apply: in, ip_addrs: ::1, action: allow";
    for (text, expected) in [
        (
            rule("apply: both, ip_addrs: ::1, action: allow"),
            "2:13: apply is in or out",
        ),
        (
            rule("apply: in, ip_addrs: [10.0.0.1, 10.0], action: allow"),
            "2:38: \"10.0\" is no IPv4",
        ),
        (
            rule("apply: in, ip_addrs: ::1, action: alow"),
            "2:40: action is allow or deny",
        ),
        (
            rule(&format!("{full}, method: GET")),
            "2:47: unknown key (at \"method\"); did you mean methods?",
        ),
        (rule(&format!("{full}, methods: [G/T]")), "2:57: no method"),
        (
            rule(&format!("{full}, apply: in")),
            "2:47: a key that the rule has already",
        ),
        (
            rule("ip_addrs: ::1, action: allow"),
            "2:5: the rule has no apply",
        ),
        (
            rule("apply: in, action: allow"),
            "2:5: the rule has no ip_addrs",
        ),
        (
            rule("apply: in, ip_addrs: ::1"),
            "2:5: the rule has no action",
        ),
        (
            rule("apply: in, ip_categories: x"),
            "2:17: ip_categories is not supported yet",
        ),
        (
            "ip_alow: []".into(),
            "1:1: unknown key (at \"ip_alow\"); did you mean ip_allow?",
        ),
        ("- apply: in".into(), "1:1: the file is no mapping"),
        ("ip_allow: x".into(), "1:11: ip_allow is no list"),
        ("ip_allow: [x]".into(), "1:12: a rule is a mapping"),
    ] {
        let error = first_error("f.yaml", &text);
        assert!(
            error.starts_with(&format!("f.yaml:{expected}")),
            "{text}: {error}"
        );
    }
}

#[test]
fn the_built_in_rules_keep_purge_and_push_to_loopback() {
    let IpAllowFile { rules } = IpAllowFile::built_in();
    let passed = |rule: &IpAllowRule| ["GET", "DELETE", "PURGE", "PUSH"].map(|m| rule.passes(m));
    assert_eq!(passed(&rules[0]), [true; 4]);
    assert_eq!(passed(&rules[1]), [true, true, false, false]);
}

proptest! {
    #[test]
    fn no_text_makes_either_form_panic(text in "[-:\\[\\]{}, \n=|#.0-9a-z/]{0,100}|(ip_allow:\n)?(- apply: in\n  |ip_addrs: ::1\n  |src_ip=|action=ip_deny ){0,9}") {
        for file in ["f.yaml", "f.config"] {
            let (value, findings) = parse(file, text.as_bytes());
            prop_assert!(!value.rules.is_empty() || !findings.is_usable());
        }
    }
}
