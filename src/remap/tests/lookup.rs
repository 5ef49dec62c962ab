//! Which rule takes a request.

use super::{ATS, Found, RemapOptions, built, redirect, table, table_with, to, url};
use crate::config::remap::parse;

#[test]
fn the_first_rule_in_the_file_wins_not_the_longest_path() {
    let table = table("map http://a.cn/x http://o1/\nmap http://a.cn/x/y http://o2/");
    assert_eq!(to(&table, "http://a.cn/x/y/z"), "http://o1/y/z");
}

#[test]
fn an_earlier_pattern_beats_a_later_host_and_a_later_one_does_not() {
    let pattern = r"regex_map http://\w+\.cn/ http://pattern/";
    let exact = "map http://a.cn/ http://exact/";
    assert_eq!(
        to(&table(&format!("{pattern}\n{exact}")), "http://a.cn/"),
        "http://pattern/"
    );
    assert_eq!(
        to(&table(&format!("{exact}\n{pattern}")), "http://a.cn/"),
        "http://exact/"
    );
    assert_eq!(
        to(&table(&format!("{exact}\n{pattern}")), "http://b.cn/"),
        "http://pattern/"
    );
}

#[test]
fn patterns_are_tried_in_file_order() {
    let table = table(
        "regex_map http://(.*)\\.a\\.cn http://one/\nregex_map http://(.*) http://two/\n\
         regex_map http://b\\.a\\.cn http://three/",
    );
    assert_eq!(to(&table, "http://b.a.cn/"), "http://one/");
    assert_eq!(to(&table, "http://b.cn/"), "http://two/");
}

#[test]
fn a_websocket_takes_the_rules_of_ws_before_those_of_http() {
    let table = table(
        "map http://a.cn/ http://o/\nmap ws://a.cn/chat ws://w/in\nmap / http://any/\n\
         regex_map ws://(\\w+)\\.b\\.cn:8080/ http://$1.w/",
    );
    let to = |from: &str| match table.find_websocket(&url(from)) {
        Found::Map { target, .. } => target.to_url(),
        Found::Redirect { .. } | Found::None => "-".to_owned(),
    };
    assert_eq!(to("http://a.cn/chat/1?q"), "http://w/in/1?q");
    assert_eq!(to("http://a.cn/other"), "http://o/other");
    assert_eq!(to("https://a.cn/chat"), "http://any/chat");
    assert_eq!(to("http://x.b.cn:8080/y"), "http://x.w/y");
    let plain = super::to(&table, "http://a.cn/chat");
    assert_eq!(
        plain, "http://o/chat",
        "no rule of ws takes a plain request"
    );
}

#[test]
fn scheme_and_port_must_be_the_rules() {
    let table = table("map http://a.cn/ http://o/\nmap https://a.cn:444/ http://s/");
    assert_eq!(to(&table, "http://a.cn:80/"), "http://o/");
    assert_eq!(to(&table, "http://A.CN/"), "http://o/");
    assert_eq!(to(&table, "http://a.cn:81/"), "-");
    assert_eq!(to(&table, "https://a.cn/"), "-");
    assert_eq!(to(&table, "https://a.cn:444/"), "http://s/");
}

#[test]
fn a_from_without_scheme_takes_both() {
    let table = table("map //a.cn/ http://o/\nmap b.cn:81/ http://p/");
    for taken in ["http://a.cn/", "https://a.cn/"] {
        assert_eq!(to(&table, taken), "http://o/", "{taken}");
    }
    for taken in ["http://b.cn:81/", "https://b.cn:81/"] {
        assert_eq!(to(&table, taken), "http://p/", "{taken}");
    }
    assert_eq!(to(&table, "http://a.cn:443/"), "-");
}

#[test]
fn a_pattern_without_port_takes_its_schemes_default_one() {
    for rule in [
        r"regex_map http://(.*)\.cdn\.cn/ http://o/",
        r"regex_map //(.*)\.cdn\.cn/ http://o/",
        r"regex_map http://(.*)\.(.*) http://o/",
    ] {
        for options in [RemapOptions::default(), ATS] {
            let table = table_with(rule, options);
            assert_eq!(to(&table, "http://foo.cdn.cn/"), "http://o/", "{rule}");
            assert_eq!(to(&table, "http://foo.cdn.cn:80/"), "http://o/", "{rule}");
            assert_eq!(to(&table, "http://foo.cdn.cn:81/"), "-", "{rule}");
            assert_eq!(to(&table, "http://foo.cdn.cn:443/"), "-", "{rule}");
        }
    }
    let table = table(r"regex_map //(.*)\.cdn\.cn/ http://o/");
    assert_eq!(to(&table, "https://foo.cdn.cn/"), "http://o/");
    assert_eq!(to(&table, "https://foo.cdn.cn:80/"), "-");
}

#[test]
fn a_catch_all_without_port_takes_every_port() {
    for pattern in ["(.*)", ".*", ".+", "^(.+)$"] {
        let table = table(&format!("regex_map http://{pattern} http://o/"));
        for from in ["http://a.cn/", "http://b:81/", "http://[::1]:443/"] {
            assert_eq!(to(&table, from), "http://o/", "{pattern}");
        }
        assert_eq!(to(&table, "https://a.cn/"), "-", "{pattern}");
    }
    let redirects = table("regex_redirect http://(.*) https://$1");
    let location = redirect(&redirects, "http://a.cn:8080/x");
    assert_eq!(location, "301 https://a.cn:8080/x");
}

#[test]
fn a_pattern_with_its_default_port_written_is_the_same_rule() {
    let twice = |rules: &str| {
        let no_include = |_: &str| Err("no includes here".to_owned());
        let (_, findings) = parse("remap.config", rules.as_bytes(), &no_include);
        findings.errors.len()
    };
    let both = "regex_map http://a.* http://o/\nregex_map http://a.*:80 http://p/";
    assert_eq!(twice(both), 1);
    assert_eq!(twice(&both.replace("a.*", "(.*)")), 0);
}

#[test]
fn rules_without_host_come_after_all_others_and_take_any_port() {
    let table = table("map / http://any/\nmap http://a.cn/x http://o/");
    assert_eq!(to(&table, "http://a.cn/x"), "http://o/");
    assert_eq!(to(&table, "http://a.cn/y"), "http://any/y");
    assert_eq!(to(&table, "http://b.cn:81/y"), "http://any/y");
    assert_eq!(to(&table, "https://b.cn/"), "http://any/");
}

#[test]
fn redirects_come_after_maps_and_temporary_ones_before_permanent() {
    let both = "redirect http://a.cn/ http://p/\nredirect_temporary http://a.cn/ http://t/";
    assert_eq!(redirect(&table(both), "http://a.cn/"), "307 http://t/");
    assert_eq!(
        redirect(
            &table(&format!("{both}\nmap / http://any/")),
            "http://a.cn/"
        ),
        "-"
    );
}

#[test]
fn no_rule_takes_what_none_names() {
    assert_eq!(to(&table(""), "http://a.cn/"), "-");
    assert!(table("# nothing").is_empty());
    assert_eq!(table("map /a http://o/\nredirect /b http://o/").len(), 2);
}

/// The anchor cases of ATS's regex_map_anchor test.
#[test]
fn a_host_pattern_must_match_the_whole_host() {
    for rule in [
        "regex_map http://cdn.example.com/ http://o/",
        r"regex_map http://cdn\.example\.com/ http://o/",
        r"regex_map http://(?:www|cdn)\.example\.com/ http://o/",
        "regex_map http://CDN.Example.com/ http://o/",
    ] {
        let table = table(rule);
        for not_taken in [
            "http://prefix.cdn.example.com/",
            "http://cdn.example.com.evil.com/",
            "http://cdn.example.computer/",
        ] {
            assert_eq!(to(&table, not_taken), "-", "{rule}");
        }
        assert_eq!(to(&table, "http://CDN.EXAMPLE.COM/"), "http://o/", "{rule}");
    }
}

#[test]
fn an_alternation_is_anchored_on_both_sides() {
    let table = table("regex_map http://a.cn|b.cn/ http://o/");
    for (from, expected) in [
        ("http://a.cn/", "http://o/"),
        ("http://b.cn/", "http://o/"),
        ("http://a.cn.evil/", "-"),
        ("http://evil.b.cn/", "-"),
    ] {
        assert_eq!(to(&table, from), expected, "{from}");
    }
}

#[test]
fn a_host_pattern_may_match_a_part_when_ats_way_is_asked_for() {
    let table = table_with(r"regex_map http://cdn\.a\.cn/ http://o/", ATS);
    assert_eq!(to(&table, "http://x.cdn.a.cn.evil.com/"), "http://o/");
}

#[test]
fn a_catch_all_that_lets_clients_choose_the_origin_is_warned_about() {
    let warned = |text: &str| {
        let (_, findings) = built(text, RemapOptions::default());
        findings.warnings.len()
    };
    for open in ["(.*)", "(.+)", "([^:]*)", "(?:.*)()", r"(.*)\.(.*)"] {
        assert_eq!(
            warned(&format!("regex_map http://{open} http://$0")),
            1,
            "{open}"
        );
    }
    assert_eq!(warned(r"regex_map http://(.*)\.a\.cn http://$1.b.cn"), 0);
    assert_eq!(warned("regex_map http://(.*) http://o"), 0);
    assert_eq!(warned("regex_redirect http://(.*) https://$1"), 0);
}

#[test]
fn a_pattern_too_large_to_compile_is_an_error_at_its_rule() {
    let text = "map /a http://o/\nregex_map http://(?:a{1000}){1000} http://o/";
    let (_, findings) = built(text, RemapOptions::default());
    assert_eq!(findings.errors.len(), 1);
    assert_eq!(findings.errors[0].line, 2);
}
