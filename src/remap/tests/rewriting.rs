//! The rewriting table measured on ATS, and what captures make.

use super::{ATS, redirect, table, table_with, to};
use crate::remap::Found;

/// (rule, request, target): the rows measured on ATS, and the join's corners.
const JOINS: &[(&str, &str, &str)] = &[
    (
        "map http://a.cn/b http://o/c/",
        "http://a.cn/b",
        "http://o/c/",
    ),
    (
        "map http://a.cn/b http://o/c/",
        "http://a.cn/bzz",
        "http://o/c/zz",
    ),
    (
        "map http://a.cn/b http://o/c/",
        "http://a.cn/b/d",
        "http://o/c/d",
    ),
    ("map http://b.cn/b/ http://o/c", "http://b.cn/b", "-"),
    (
        "map http://b.cn/b/ http://o/c",
        "http://b.cn/b/",
        "http://o/c",
    ),
    (
        "map http://b.cn/b/ http://o/c",
        "http://b.cn/b/d",
        "http://o/cd",
    ),
    (
        "map http://d.cn/deep/ http://o/deep",
        "http://d.cn/deep/1",
        "http://o/deep1",
    ),
    (
        "map http://ts.cn:9080/ http://127.0.0.1:9080",
        "http://ts.cn:9080/a/b?q=1",
        "http://127.0.0.1:9080/a/b?q=1",
    ),
    (
        "map http://a.cn http://o/c",
        "http://a.cn/x",
        "http://o/c/x",
    ),
    ("map http://a.cn http://o/c", "http://a.cn/", "http://o/c"),
    ("map http://a.cn/ http://o", "http://a.cn//x", "http://o/x"),
    (
        "map http://a.cn/b http://o",
        "http://a.cn/b/x",
        "http://o/x",
    ),
    (
        "map http://a.cn/b http://o",
        "http://a.cn/b//x",
        "http://o//x",
    ),
    (
        "map http://a.cn/b/ http://o/c/",
        "http://a.cn/b//x",
        "http://o/c/x",
    ),
    ("map http://a.cn/ http://o", "http://a.cn/?", "http://o/?"),
    (
        "map http://a.cn/ http://o/c",
        "http://a.cn?x",
        "http://o/c?x",
    ),
];

#[test]
fn paths_are_joined_as_ats_joins_them() {
    for (rule, from, expected) in JOINS {
        assert_eq!(
            to(&table_with(rule, ATS), from),
            *expected,
            "{rule} for {from}"
        );
        if !from.ends_with("/bzz") {
            assert_eq!(to(&table(rule), from), *expected, "{rule} for {from}");
        }
    }
}

#[test]
fn a_path_prefix_ends_at_a_slash_unless_ats_way_is_asked_for() {
    let rule = "map http://a.cn/b http://o/c/";
    assert_eq!(to(&table(rule), "http://a.cn/bzz"), "-");
    assert_eq!(
        to(&table_with(rule, ATS), "http://a.cn/bzz"),
        "http://o/c/zz"
    );
}

#[test]
fn the_demo_rule_gives_the_generator_its_path() {
    let table = table("map /demo/ http://generator.invalid/ @plugin=generator.so");
    let from = "http://127.0.0.1:8080/demo/15000/a?x";
    assert_eq!(to(&table, from), "http://generator.invalid/15000/a?x");
}

#[test]
fn captures_fill_the_host_and_never_the_path() {
    let table = table(r"regex_map http://(\w+)-(\d+)\.cn/ http://n$2.$1.o:81/$1/");
    assert_eq!(to(&table, "http://IMG-7.cn/x"), "http://n7.img.o:81/$1/x");
}

#[test]
fn a_catch_all_covers_every_port_and_keeps_the_requests() {
    let table = table("regex_map http://(.*) http://$1");
    assert_eq!(to(&table, "http://os.cn/x"), "http://os.cn/x");
    assert_eq!(to(&table, "http://OS.cn:9081/x"), "http://os.cn:9081/x");
    assert_eq!(to(&table, "http://[::1]:81/"), "http://[::1]:81/");
}

#[test]
fn a_written_port_on_either_side_holds() {
    let from = table("regex_map http://(.*):8080 http://$1");
    assert_eq!(to(&from, "http://a.cn:8080/"), "http://a.cn/");
    assert_eq!(to(&from, "http://a.cn/"), "-");
    let target = table("regex_map http://(.*) http://$1:81");
    assert_eq!(to(&target, "http://a.cn:8080/"), "http://a.cn:81/");
}

#[test]
fn a_client_chooses_no_port_of_a_literal_origin() {
    let table = table("regex_map http://.* http://o");
    assert_eq!(to(&table, "http://x.a.cn:22/"), "http://o/");
}

#[test]
fn a_target_with_a_capture_is_not_literal() {
    let table = table("regex_map http://(.*)\\.a\\.cn http://$1.o\nregex_map http://x\\d http://o");
    let literal = |from: &str| match table.find(&super::url(from)) {
        Found::Map { literal_target, .. } => Some(literal_target),
        Found::Redirect { .. } | Found::None => None,
    };
    assert_eq!(literal("http://b.a.cn/"), Some(false));
    assert_eq!(literal("http://x1/"), Some(true));
}

#[test]
fn captures_that_make_no_host_leave_the_request_to_later_rules() {
    let rules = "regex_map http://a(.*) http://$1\nmap http://a/ http://o/";
    assert_eq!(to(&table(rules), "http://a/x"), "http://o/x");
    assert_eq!(to(&table(rules), "http://ab/x"), "http://b/x");
    let missing = table("regex_map http://a|(b) http://$1");
    assert_eq!(to(&missing, "http://a/"), "-");
}

#[test]
fn redirects_answer_301_or_307_with_the_whole_url() {
    let table = table(
        "redirect http://a.cn/ https://b.cn/x/\nredirect_temporary http://c.cn/ http://d.cn:81/\n\
         regex_redirect http://(.*)\\.old\\.cn/ http://$1.new.cn/",
    );
    assert_eq!(
        redirect(&table, "http://a.cn/y?z"),
        "301 https://b.cn/x/y?z"
    );
    assert_eq!(redirect(&table, "http://c.cn/y"), "307 http://d.cn:81/y");
    assert_eq!(
        redirect(&table, "http://w.old.cn/y"),
        "301 http://w.new.cn/y"
    );
}

#[test]
fn reverse_maps_rewrite_absolute_urls_that_begin_with_from() {
    let table = table(
        "map http://pub.cn/ http://in.cn:81/app/\nreverse_map http://in.cn:81/app/ http://pub.cn/\n\
         regex_reverse_map http://(\\w+)\\.in\\.cn/ https://$1.pub.cn/",
    );
    let rewritten = |value: &str| table.rewrite_location(value).unwrap_or("-".into());
    assert_eq!(
        rewritten("http://in.cn:81/app/x?q#f"),
        "http://pub.cn/x?q#f"
    );
    assert_eq!(rewritten("HTTP://IN.cn:81/app/"), "http://pub.cn/");
    assert_eq!(rewritten("http://w.in.cn/x"), "https://w.pub.cn/x");
    for untouched in [
        "/app/x",
        "http://in.cn/app/x",
        "http://in.cn:81/other",
        "",
        "#",
        "::",
    ] {
        assert_eq!(rewritten(untouched), "-", "{untouched}");
    }
}
