//! Tests of `http::target`.

use super::*;
use ::http::HeaderValue;
use proptest::prelude::*;

fn headers(hosts: &[&[u8]]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for host in hosts {
        map.append(HOST, HeaderValue::from_bytes(host).unwrap());
    }
    map
}

fn read(method: &Method, target: &str, hosts: &[&[u8]]) -> Result<Target, TargetError> {
    read_version(Version::HTTP_11, method, target, hosts)
}

fn read_version(
    version: Version,
    method: &Method,
    target: &str,
    hosts: &[&[u8]],
) -> Result<Target, TargetError> {
    parse(&TargetInput {
        method,
        target: target.as_bytes(),
        version,
        headers: &headers(hosts),
        scheme: Scheme::Http,
    })
}

fn url_of(target: &str, host: &str) -> String {
    let target = read(&Method::GET, target, &[host.as_bytes()]).unwrap();
    target.url().unwrap().as_str().to_owned()
}

#[test]
fn origin_form_takes_its_authority_from_host() {
    let rows = [
        ("/a?b=c", "Example.COM", "http://example.com/a?b=c"),
        ("/", "h:80", "http://h/"),
        ("/", "h:", "http://h/"),
        ("/", "h:0081", "http://h:81/"),
        ("/", " h \t", "http://h/"),
        ("/", "example.com.", "http://example.com./"),
        ("/", "[::0001]:8080", "http://[::1]:8080/"),
        ("/", "[FE80::1]", "http://[fe80::1]/"),
        ("//x/%2e%2E/{a|b}?", "h", "http://h//x/%2e%2E/{a|b}?"),
    ];
    for (target, host, url) in rows {
        assert_eq!(url_of(target, host), url);
    }
}

#[test]
fn absolute_form_overrides_host_rfc_9112_3_2_2() {
    assert_eq!(url_of("http://A:81/x", "b"), "http://a:81/x");
    assert_eq!(url_of("HTTPS://a", "b"), "https://a/");
    assert_eq!(url_of("http://a?q", "b"), "http://a/?q");
    assert_eq!(
        url_of("http://a/x?http://b@c/", "b"),
        "http://a/x?http://b@c/"
    );
}

#[test]
fn the_parts_of_a_url_are_where_they_should_be() {
    let url = RequestUrl::parse("https://Host.example:444/p/a?x=?y").unwrap();
    assert_eq!(url.scheme(), "https");
    assert_eq!(url.scheme_kind(), Scheme::Https);
    assert_eq!(url.host(), "host.example");
    assert_eq!(url.port(), 444);
    assert_eq!(url.authority(), "host.example:444");
    assert_eq!(url.path(), "/p/a");
    assert_eq!(url.query(), Some("x=?y"));
    assert_eq!(url.path_and_query(), "/p/a?x=?y");
    let plain = RequestUrl::parse("http://h").unwrap();
    assert_eq!((plain.path(), plain.query()), ("/", None));
    assert_eq!(plain.authority(), "h");
}

/// reported.md: `Host: test:8080:9090:1234`, `a, b`, two lines, none, `a\xff`,
/// and their kind.
#[test]
fn hosts_that_are_no_authority_are_refused() {
    let hosts: [&[u8]; 22] = [
        b"test:8080:9090:1234",
        b"a, b",
        b"a,b",
        b"a b",
        b"a\xff",
        b"",
        b":80",
        b"a:0",
        b"a:65536",
        b"a:70000",
        b"a:+80",
        b"a:80x",
        b"a:000080",
        b"u@a",
        b"u:p@a",
        b"a/b",
        b"[::1",
        b"[::1]x",
        b"[fe80::1%25eth0]",
        b"[v1.x]",
        b"a..b",
        b"a%2eb",
    ];
    for host in hosts {
        assert!(read(&Method::GET, "/", &[host]).is_err(), "{host:?}");
        let absolute = read(&Method::GET, "http://ok/", &[host]);
        assert!(absolute.is_err(), "{host:?} with an absolute target");
    }
    assert!(read(&Method::GET, "/", &["a".repeat(256).as_bytes()]).is_err());
}

#[test]
fn host_must_be_there_once_rfc_9112_3_2() {
    let get = Method::GET;
    assert_eq!(read(&get, "/", &[]), Err(TargetError::NoHost));
    assert_eq!(read(&get, "http://a/", &[]), Err(TargetError::NoHost));
    let twice: [&[u8]; 2] = [b"a", b"a"];
    assert_eq!(read(&get, "/", &twice), Err(TargetError::SeveralHosts(2)));
}

#[test]
fn http_1_0_may_omit_host() {
    let absolute = read_version(Version::HTTP_10, &Method::GET, "http://a/x", &[]).unwrap();
    assert_eq!(absolute.url().unwrap().as_str(), "http://a/x");
    let origin = read_version(Version::HTTP_10, &Method::GET, "/x", &[]).unwrap();
    assert_eq!(origin.url().unwrap().host(), "");
    let twice: [&[u8]; 2] = [b"a", b"b"];
    assert!(read_version(Version::HTTP_10, &Method::GET, "/", &twice).is_err());
}

#[test]
fn targets_that_are_no_url_are_refused() {
    let targets = [
        "",
        "x",
        "*",
        "http:/a/",
        "http:///x",
        "http://",
        "http://h:70000/",
        "http://h:/ ",
        "ftp://h/",
        "http://u@h/",
        "http://u:p@h/",
        "/a#b",
        "http://h/#f",
        "/a b",
        "/\u{7f}",
        "/\u{e9}",
        "/\r\nX: y",
        "http://h:80:80/",
        "http://[::1/",
        "http://a,b/",
        "://h/",
    ];
    for target in targets {
        let read = read(&Method::GET, target, &[b"h"]);
        assert!(read.is_err(), "{target:?} gave {read:?}");
    }
}

#[test]
fn asterisk_is_for_options_only() {
    let options = Method::OPTIONS;
    assert!(matches!(
        read(&options, "*", &[b"h"]).unwrap(),
        Target::Asterisk(_)
    ));
    assert!(matches!(
        read(&options, "http://h", &[b"h"]).unwrap(),
        Target::Asterisk(_)
    ));
    assert!(matches!(
        read(&options, "http://h/", &[b"h"]).unwrap(),
        Target::Absolute(_)
    ));
}

#[test]
fn connect_needs_host_and_port_rfc_9112_3_2_3() {
    let connect = |target: &str| read(&Method::CONNECT, target, &[b"h"]);
    let authority = |host: &str, port| {
        let host = host.to_owned();
        Ok(Target::Authority(Authority { host, port }))
    };
    assert_eq!(connect("Host:443"), authority("host", 443));
    let mapped = connect("[::ffff:10.0.0.1]:443");
    assert_eq!(mapped, authority("[::ffff:10.0.0.1]", 443));
    for bad in [
        "h",
        "h:",
        "h:0",
        "http://h:443/",
        "/",
        "*",
        "u@h:443",
        "[::1]443",
        ":443",
    ] {
        assert!(connect(bad).is_err(), "{bad}");
    }
}

#[test]
fn origins_are_told_apart_by_scheme_host_and_port() {
    let url = |text| RequestUrl::parse(text).unwrap();
    assert!(url("http://A/x").same_origin(&url("http://a:80/y")));
    assert!(!url("http://a/").same_origin(&url("https://a/")));
    assert!(!url("http://a/").same_origin(&url("http://a:81/")));
    assert!(!url("http://a/").same_origin(&url("http://b/")));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        target in proptest::collection::vec(any::<u8>(), 0..40),
        host in "[ -~]{0,20}",
    ) {
        let read = parse(&TargetInput {
            method: &Method::GET,
            target: &target,
            version: Version::HTTP_11,
            headers: &headers(&[host.as_bytes()]),
            scheme: Scheme::Https,
        });
        if let Ok(Target::Origin(url) | Target::Absolute(url)) = read {
            prop_assert!(url.path().starts_with('/'));
            prop_assert!(!url.host().is_empty());
            let again = RequestUrl::parse(url.as_str());
            prop_assert_eq!(again.as_ref(), Ok(&url));
        }
    }
}
