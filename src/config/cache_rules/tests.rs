//! Lines of cache.config that are read, and those that are not.

use super::*;
use crate::base::scheme::Scheme;
use crate::config::ip_range::IpRange;
use proptest::prelude::*;

fn one(line: &str) -> CacheRule {
    let (file, found) = parse("cache.config", line.as_bytes());
    assert_eq!((found.errors, found.warnings), (vec![], vec![]), "{line}");
    assert_eq!(file.rules.len(), 1, "{line}");
    file.rules[0].clone()
}

fn faults(text: &str) -> Vec<String> {
    let (file, found) = parse("cache.config", text.as_bytes());
    assert!(file.rules.is_empty(), "{text}: {file:?}");
    let all = found.errors.iter().chain(&found.warnings);
    all.map(ToString::to_string).collect()
}

#[test]
fn every_action_of_ats_is_read() {
    let rows = [
        ("action=never-cache", CacheAction::NeverCache),
        ("action=ignore-no-cache", CacheAction::IgnoreNoCache),
        (
            "action=ignore-client-no-cache",
            CacheAction::IgnoreClientNoCache,
        ),
        (
            "action=ignore-server-no-cache",
            CacheAction::IgnoreServerNoCache,
        ),
        ("pin-in-cache=12h", CacheAction::PinInCache(43_200)),
        ("revalidate=30", CacheAction::Revalidate(30)),
        ("ttl-in-cache=1d2h30m15s", CacheAction::TtlInCache(95_415)),
        (
            "cache-responses-to-cookies=2",
            CacheAction::ResponsesToCookies(2),
        ),
    ];
    for (text, action) in rows {
        let rule = one(&format!("dest_domain=a.test {text}"));
        assert_eq!(rule.action, action);
        assert_eq!(rule.destination, Destination::Domain("a.test".into()));
        // The order of the words is free.
        assert_eq!(one(&format!("{text} dest_domain=A.test")).action, action);
    }
}

#[test]
fn every_specifier_is_read_and_names_are_lowered() {
    let primary = [
        (
            "dest_domain=.Example.COM",
            Destination::Domain("example.com".into()),
        ),
        ("dest_domain=.", Destination::Domain(String::new())),
        (
            "dest_host=WWW.example.com",
            Destination::Host("www.example.com".into()),
        ),
        ("host_regex=^a+$", Destination::HostRegex("^a+$".into())),
        (
            r"url_regex=.*\.jpg",
            Destination::UrlRegex(r".*\.jpg".into()),
        ),
    ];
    for (text, destination) in primary {
        let rule = one(&format!("{text} ttl-in-cache=1"));
        assert_eq!(rule.destination, destination);
    }
    let rule = one(
        "dest_domain=a port=8080 scheme=https prefix=/img/a suffix=gif method=get \
         src_ip=10.0.0.0/8 ttl-in-cache=0 # for the rest",
    );
    let narrowed = Narrowed {
        port: Some(8080),
        scheme: Some(Scheme::Https),
        prefix: Some("img/a".into()),
        suffix: Some("gif".into()),
        method: Some("GET".into()),
        src_ip: Some(IpRange::parse("10.0.0.0/8").unwrap()),
    };
    assert_eq!(rule.narrowed, narrowed);
}

#[test]
fn each_fault_is_told_with_its_place_and_a_cure() {
    let rows = [
        (
            "dest_domian=a action=never-cache",
            "cache.config:1:1: unknown word (at \"dest_domian=a\"); did you mean dest_domain?",
        ),
        (
            "dest_domain=a action=never-cash",
            "cache.config:1:22: unknown action (at \"never-cash\"); did you mean never-cache?",
        ),
        (
            "dest_domain=a",
            "cache.config:1:1: the line says not what to do; \
             add action=never-cache, ttl-in-cache=1d or another action",
        ),
        (
            "  ttl-in-cache=1",
            "cache.config:1:3: the line says not which requests it is for; \
             begin it with dest_domain=, dest_host=, host_regex= or url_regex=",
        ),
        (
            "dest_domain=a dest_host=b ttl-in-cache=1",
            "cache.config:1:15: the line says such a thing twice (at \"dest_host=b\")",
        ),
        (
            "dest_domain=a ttl-in-cache=1 revalidate=2",
            "cache.config:1:30: the line says such a thing twice (at \"revalidate=2\")",
        ),
        (
            "dest_domain=a ttl-in-cache=soon",
            "cache.config:1:28: this is no time (at \"soon\"); \
             write seconds, or a text such as 1d2h30m15s",
        ),
        (
            "dest_domain= ttl-in-cache=1",
            "cache.config:1:1: a value is missing (at \"dest_domain=\")",
        ),
        (
            "dest_domain=a port=0 ttl-in-cache=1",
            "cache.config:1:20: a port is a number from 1 to 65535 (at \"0\")",
        ),
        (
            "url_regex=( ttl-in-cache=1",
            "cache.config:1:11: the pattern does not compile: unclosed group (at \"(\")",
        ),
        (
            "dest_domain=a time=08:00-14:00 ttl-in-cache=1",
            "cache.config:1:15: not supported yet: the whole line has no effect \
             (at \"time=08:00-14:00\")",
        ),
        (
            "dest_ip=10.0.0.1 ttl-in-cache=1",
            "cache.config:1:1: not supported yet: the whole line has no effect \
             (at \"dest_ip=10.0.0.1\")",
        ),
    ];
    for (line, expected) in rows {
        assert_eq!(faults(line), [expected]);
    }
}

#[test]
fn all_faults_come_at_once_and_comments_count_for_nothing() {
    let text = "# dest_domain=a\n\ndest_domain=a port=x method=é\nnothing\n";
    let lines: Vec<_> = faults(text)
        .iter()
        .map(|fault| fault.split(':').nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(lines, ["3", "3", "4"]);
}

#[test]
fn a_file_has_a_bound() {
    let text = "dest_domain=a ttl-in-cache=1\n".repeat(4097);
    let (file, found) = parse("cache.config", text.as_bytes());
    assert_eq!((file.rules.len(), found.errors.len()), (4096, 1));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        drop(parse("cache.config", &bytes));
    }

    #[test]
    fn no_words_panic(text in "(dest_domain=|url_regex=|action=|ttl-in-cache=|port=|[a-z0-9= .*(\\n]){0,12}") {
        drop(parse("cache.config", text.as_bytes()));
    }
}
