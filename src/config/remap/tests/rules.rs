//! Types, FROM, TO, duplicates.

use super::super::{HostMatch, HostPart, RuleKind};
use super::{error, parsed, rule, rules};
use crate::base::scheme::Scheme;

#[test]
fn the_seeds_two_lines_are_read() {
    let all = rules(
        "map http://ts.cn:9080/ http://10.10.110.149:9080\nregex_map http://(.*) http://$1\n",
    );
    assert_eq!(all[0].from.host, HostMatch::Exact("ts.cn".into()));
    assert_eq!(all[0].from.port, Some(9080));
    assert_eq!(all[0].to.host, [HostPart::Text("10.10.110.149".into())]);
    assert!(all[0].to.is_literal());
    assert_eq!(all[1].from.host, HostMatch::Pattern("(.*)".into()));
    assert_eq!(all[1].from.port, None);
    assert_eq!(all[1].to.host, [HostPart::Capture(1)]);
    assert!(!all[1].to.is_literal());
}

#[test]
fn every_rule_type_is_read_in_any_case() {
    for (name, kind) in [
        ("map", RuleKind::Map),
        ("MAP", RuleKind::Map),
        ("reverse_map", RuleKind::ReverseMap),
        ("redirect", RuleKind::Redirect),
        ("redirect_temporary", RuleKind::RedirectTemporary),
    ] {
        let plain = rule(&format!("{name} http://a.cn/x http://b.cn/y"));
        assert_eq!((plain.kind, plain.from.path.as_str()), (kind, "x"));
        let regex = rule(&format!("regex_{name} http://a.cn/x http://b.cn/y"));
        assert_eq!(regex.from.host, HostMatch::Pattern("a.cn".into()));
        assert_eq!(regex.kind, kind);
    }
}

#[test]
fn from_may_be_a_bare_path_or_lack_a_scheme() {
    let bare = rule("map /demo/ http://b.cn/").from;
    assert_eq!(bare.host, HostMatch::Any);
    assert_eq!((bare.scheme, bare.path.as_str()), (None, "demo/"));
    for text in ["map //A.cn/x http://b.cn/y", "map a.cn/x http://b.cn/y"] {
        let from = rule(text).from;
        assert_eq!(from.host, HostMatch::Exact("a.cn".into()));
        assert_eq!((from.scheme, from.port), (None, None));
    }
    assert_eq!(rule("map a.cn:81 http://b.cn").from.port, Some(81));
}

#[test]
fn ipv6_hosts_are_canonical_in_brackets() {
    let rule = rule("map http://[::0:1]:81/ http://[2001:DB8::1]/");
    assert_eq!(rule.from.host, HostMatch::Exact("[::1]".into()));
    assert_eq!(rule.from.port, Some(81));
    assert_eq!(rule.to.host, [HostPart::Text("[2001:db8::1]".into())]);
}

#[test]
fn a_colon_in_a_host_pattern_begins_the_port_only_at_the_end() {
    let from = |text: &str| rule(text).from;
    let grouped = from("regex_map http://(?:a|b)\\.cn http://o");
    assert_eq!(grouped.host, HostMatch::Pattern("(?:a|b)\\.cn".into()));
    assert_eq!(grouped.port, None);
    let ported = from("regex_map http://(?:a|b)\\.cn:8080/p http://o/p");
    assert_eq!(ported.host, HostMatch::Pattern("(?:a|b)\\.cn".into()));
    assert_eq!(ported.port, Some(8080));
    assert_eq!(from("regex_map http://a(?:b) http://o").port, None);
    assert!(error("regex_map http://a:\\d+ http://o").contains("only the host is a pattern"));
}

#[test]
fn captures_make_the_target_host_and_stay_literal_in_its_path() {
    let (file, found) = parsed("regex_map http://(.*)-(\\d+)\\.cn/ http://N$2.$1.$0.o:81/$1/e$/$2");
    let to = &file.rules[0].to;
    let text = |t: &str| HostPart::Text(t.into());
    let parts = [
        text("n"),
        HostPart::Capture(2),
        text("."),
        HostPart::Capture(1),
        text("."),
        HostPart::Capture(0),
        text(".o"),
    ];
    assert_eq!(to.host, parts);
    assert_eq!((to.port, to.path.as_str()), (Some(81), "$1/e$/$2"));
    let warned = found.warnings.iter().map(|w| (w.line, w.column, &*w.token));
    assert_eq!(warned.collect::<Vec<_>>(), [(1, 56, "$1"), (1, 62, "$2")]);
    assert!(found.is_usable());
    rule("map http://a.cn/ http://b/$1/");
}

#[test]
fn captures_that_do_not_exist_are_errors_at_their_place() {
    assert_eq!(
        error("regex_map http://(.*) http://a$2"),
        "1:31: FROM has 1 capture groups, so there is no $2 (at \"$2\")"
    );
    assert!(error("regex_map http://(.*) http://a$x").starts_with("1:31: $ is followed"));
    assert!(error("regex_map http://(.*) http://a$").starts_with("1:31: $ is followed"));
    assert!(error("map http://a.cn http://$1").contains("captures need a regex_ rule"));
    let ten = "regex_map http://(a)(b)(c)(d)(e)(f)(g)(h)(i)(j) http://o";
    assert!(error(ten).starts_with("1:18: 10 capture groups"));
}

#[test]
fn only_linear_time_patterns_are_taken() {
    let look = error("regex_map http://www\\.(?!evil) http://o");
    assert!(
        look.starts_with("1:23: look-around can't be matched in linear time"),
        "{look}"
    );
    let back = error(r"regex_map http://(a)\1 http://o");
    assert!(back.starts_with("1:21: a back-reference"), "{back}");
    assert!(error("regex_map http://a(b http://o").starts_with("1:19: bad pattern"));
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    for (text, name) in [
        (
            "map_with_recv_port http://a/ http://b/",
            "map_with_recv_port",
        ),
        (
            "map_with_referer http://a/ http://b/ http://c/ x",
            "map_with_referer",
        ),
        (
            "regex_map_with_recv_port http://a/ http://b/",
            "regex_map_with_recv_port",
        ),
        ("map http://a/ http://b/ @in_ip=1.2.3.4", "@in_ip"),
        ("map http://a/ http://b/ @internal", "@internal"),
        ("map http://a/ http://b/ @strategy=x", "@strategy"),
        ("map tunnel://a/ http://b/", "scheme tunnel"),
    ] {
        let error = error(text);
        assert!(
            error.contains(name) && error.contains("not supported yet"),
            "{error}"
        );
    }
}

#[test]
fn a_rule_for_websockets_leads_to_the_http_they_begin_as() {
    let rule = rule("map ws://a.cn/ ws://b.cn/");
    assert_eq!(rule.from.scheme, Some(Scheme::Ws));
    assert_eq!(rule.to.scheme, Scheme::Http);
    for kind in ["redirect", "redirect_temporary", "reverse_map"] {
        let error = error(&format!("{kind} wss://a.cn/ http://b.cn/"));
        assert!(error.contains("ws and wss stand in FROM of map"), "{error}");
    }
}

#[test]
fn rules_may_lead_to_https() {
    for text in [
        "redirect http://a.cn/ https://a.cn/",
        "map http://a.cn/ https://a.cn/",
        "map ws://a.cn/ wss://a.cn/",
    ] {
        assert_eq!(rule(text).to.scheme, Scheme::Https, "{text}");
    }
}

#[test]
fn urls_that_can_match_nothing_or_lead_nowhere_are_errors() {
    for (text, expected) in [
        ("map", "1:4: FROM and TO are missing"),
        ("map http://a/", "1:14: TO is missing"),
        ("map http://a/ /b", "1:15: TO has no host"),
        ("map http://a/ b.cn/", "1:15: TO has no scheme"),
        ("map http://a/ http://", "1:22: no host here"),
        ("map http:/a/ http://b", "1:5: a scheme without //"),
        (
            "map htp://a/ http://b",
            "1:5: unknown scheme (at \"htp\"); did you mean http?",
        ),
        (
            "map http://a:0/ http://b",
            "1:14: a port is a number from 1 to 65535 (at \"0\")",
        ),
        ("map http://a:70000/ http://b", "1:14: a port is"),
        ("map http://a:/ http://b", "1:14: a port is"),
        ("map http://::1/ http://b", "1:12: more than one :"),
        ("map http://[::g]/ http://b", "1:12: no IPv6 address"),
        ("map http://u:p@a/ http://b", "1:12: userinfo"),
        (
            "map http://*.a.cn/ http://b",
            "1:12: no host name holds this",
        ),
        (
            "map http://a/?x http://b",
            "1:14: a rule's URL has no query",
        ),
        (
            "map http://a/ http://b/#x",
            "1:24: a rule's URL has no query",
        ),
        (
            "map http://é.cn/ http://b/",
            "1:12: a URL holds visible ASCII only (at \"é\")",
        ),
        ("regex_map /a http://b/", "1:11: a regex_ rule needs a host"),
        (
            "reverse_map /a http://b/",
            "1:13: a reverse_map needs a host",
        ),
        ("map http://a/ http://b/ tag more", "1:29: unexpected word"),
        (
            "mpa http://a/ http://b/",
            "1:1: unknown rule type (at \"mpa\"); did you mean map?",
        ),
        (
            "regex_redirct http://a/ http://b/",
            "1:1: unknown rule type",
        ),
        ("@action=deny", "1:1: options without a rule"),
    ] {
        let error = error(text);
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    assert!(error("regex_redirct http://a http://b").contains("regex_redirect?"));
}

#[test]
fn a_file_tells_all_its_errors_at_once() {
    let text =
        "mpa http://a/ http://b/\nmap http://a:x/ ftp://b/ @oops=1\n\nmap http://a/ http://b/\n";
    let (file, findings) = parsed(text);
    let at: Vec<_> = findings.errors.iter().map(|e| (e.line, e.column)).collect();
    assert_eq!(at, [(1, 1), (2, 26), (2, 14), (2, 17)]);
    assert_eq!(file.rules.len(), 1);
}

#[test]
fn a_second_rule_for_the_same_from_is_an_error() {
    for (first, second) in [
        (
            "map http://a.cn/x http://b/",
            "map http://A.cn:80/x http://c/",
        ),
        ("map http://a.cn http://b/", "map http://a.cn/ http://c/"),
        ("map //a.cn/ http://b/", "map https://a.cn/ http://c/"),
        ("map / http://b/", "map / http://c/"),
        (
            "regex_map http://a.* http://b/",
            "regex_map http://a.* http://c/",
        ),
        (
            "redirect http://a.cn/ http://b/",
            "redirect http://a.cn/ http://c/",
        ),
    ] {
        let error = error(&format!("{first}\n{second}\n"));
        assert!(error.starts_with("2:"), "{error}");
        assert!(error.contains("the first is at remap.config:1:"), "{error}");
    }
    let different = "map http://a.cn/x http://b/\nmap http://a.cn/y http://b/\n\
                     map http://a.cn:81/x http://b/\nmap https://a.cn/x http://b/\n\
                     regex_map http://a.cn/x http://b/\nredirect http://a.cn/x http://b/\n\
                     redirect_temporary http://a.cn/x http://b/\nreverse_map http://a.cn/x http://b/\n";
    assert_eq!(rules(different).len(), 8);
}
