//! Responses that may be stored and that may not, by section of RFC 9111.

use super::*;
use crate::http::testing::{Lines, headers};

/// 2026-11-30 12:00:00.
const NOW: WallTime = WallTime::from_secs(1_796_040_000);

fn judge_with(
    policy: &CachePolicy,
    request: Lines<'_>,
    status: u16,
    response: Lines<'_>,
) -> Result<Storable, NotStorable> {
    let exchange = Exchange {
        method: &Method::GET,
        url: &RequestUrl::parse("http://h/x").unwrap(),
        request: &headers(request),
        status: StatusCode::from_u16(status).unwrap(),
        response: &headers(response),
        times: Times {
            request: NOW,
            response: NOW,
        },
    };
    storable(&exchange, policy)
}

fn judge(request: Lines<'_>, status: u16, response: Lines<'_>) -> Result<Storable, NotStorable> {
    judge_with(&CachePolicy::default(), request, status, response)
}

/// Judges an answer of 200 with this Cache-Control to a plain request.
fn says(cache_control: &str) -> Result<Storable, NotStorable> {
    judge(&[], 200, &[("cache-control", cache_control)])
}

#[test]
fn directives_decide_rfc_9111_3() {
    assert!(says("max-age=60").is_ok());
    assert!(says("s-maxage=60, max-age=0").is_ok());
    assert!(says("private=\"x-a\", max-age=60").is_ok());
    let rows = [
        ("no-store, max-age=60", NotStorable::NoStore),
        ("private, max-age=60", NotStorable::Private),
        ("max-age=0", NotStorable::NoLifetime),
        ("no-cache", NotStorable::NoLifetime),
        ("no-cache, max-age=60", NotStorable::NoLifetime),
        ("public", NotStorable::NoLifetime),
    ];
    for (line, reason) in rows {
        assert_eq!(says(line), Err(reason), "{line}");
    }
    let request = [("cache-control", "no-store")];
    let refused = judge(&request, 200, &[("cache-control", "max-age=60")]);
    assert_eq!(refused, Err(NotStorable::RequestNoStore));
}

#[test]
fn a_validator_makes_a_stale_response_worth_storing() {
    let no_cache = ("cache-control", "no-cache");
    assert!(judge(&[], 200, &[no_cache, ("etag", "\"a\"")]).is_ok());
    let modified = ("last-modified", "Mon, 30 Nov 2026 12:00:00 GMT");
    assert!(judge(&[], 200, &[modified]).is_ok());
    let garbage = ("last-modified", "yesterday");
    assert_eq!(judge(&[], 200, &[garbage]), Err(NotStorable::NoLifetime));
    assert!(says("max-age=0, stale-if-error=60").is_ok());
    let aged = [("cache-control", "max-age=60"), ("age", "60")];
    assert_eq!(judge(&[], 200, &aged), Err(NotStorable::NoLifetime));
}

#[test]
fn statuses_decide_rfc_9110_15() {
    let explicit = [("cache-control", "max-age=60")];
    let stored = [
        200, 203, 204, 299, 300, 301, 302, 303, 307, 308, 404, 410, 500, 503, 599,
    ];
    for status in stored {
        assert!(judge(&[], status, &explicit).is_ok(), "{status}");
    }
    for status in [103, 206, 304, 401, 407, 412, 416] {
        let refused = Err(NotStorable::Status(status));
        assert_eq!(judge(&[], status, &explicit), refused);
    }
    let validator = [("etag", "\"a\"")];
    assert!(judge(&[], 404, &validator).is_ok());
    for status in [302, 307, 403, 500, 503] {
        assert_eq!(
            judge(&[], status, &validator),
            Err(NotStorable::Status(status))
        );
    }
    let public = [("cache-control", "public"), ("etag", "\"a\"")];
    assert!(judge(&[], 302, &public).is_ok());
}

#[test]
fn negative_caching_admits_its_statuses() {
    let policy = CachePolicy {
        negative: vec![(503, 30)],
        ..CachePolicy::default()
    };
    let stored = judge_with(&policy, &[], 503, &[]).unwrap();
    assert_eq!(stored.lifetime.secs, 30);
    assert_eq!(stored.lifetime.source, LifetimeSource::Negative);
    let refused = judge_with(&policy, &[], 502, &[]);
    assert_eq!(refused, Err(NotStorable::Status(502)));
    let no_store = [("cache-control", "no-store")];
    let refused = judge_with(&policy, &[], 503, &no_store);
    assert_eq!(refused, Err(NotStorable::NoStore));
}

#[test]
fn a_lifetime_by_rule_stores_what_the_origin_would_not() {
    let policy = CachePolicy {
        ttl: Some(9),
        cookies: CookieRule::Nothing,
        ..CachePolicy::default()
    };
    let ruled = |fields: &[(&str, &str)]| judge_with(&policy, &[], 200, fields);
    for directives in ["no-store", "private", "no-cache", "max-age=0", "s-maxage=7"] {
        let stored = ruled(&[("cache-control", directives), ("age", "70")]).unwrap();
        let lifetime = (stored.lifetime.secs, stored.age_at_receipt);
        assert_eq!(lifetime, (9, 0), "{directives}");
        assert!(!stored.directives.no_cache.is_whole());
    }
    let stored = ruled(&[("set-cookie", "a=1")]).unwrap();
    assert_eq!(stored.dropped, ["set-cookie"]);
    let named = ruled(&[("cache-control", "private=\"x-own\", no-cache=\"x-too\"")]);
    let dropped = named.unwrap().dropped;
    assert_eq!(dropped, ["x-too", "x-own", "set-cookie"]);
    assert_eq!(ruled(&[("vary", "*")]), Err(NotStorable::VaryStar));
    let authorized = judge_with(&policy, &[("authorization", "x")], 200, &[]);
    assert_eq!(authorized, Err(NotStorable::Authorization));
    assert!(judge_with(&policy, &[], 206, &[]).is_err());
}

#[test]
fn must_understand_overrides_no_store_for_known_statuses_rfc_9111_5_2_2_3() {
    let both = [("cache-control", "must-understand, no-store, max-age=60")];
    assert!(judge(&[], 200, &both).is_ok());
    let refused = Err(NotStorable::MustUnderstand(299));
    assert_eq!(judge(&[], 299, &both), refused);
}

#[test]
fn statuses_about_one_client_are_never_stored_rfc_6585() {
    for status in [428, 429, 431, 511] {
        for value in ["max-age=100", "public, s-maxage=100"] {
            let judged = judge(&[], status, &[("cache-control", value)]);
            assert_eq!(judged, Err(NotStorable::Status(status)), "{value}");
        }
    }
}

#[test]
fn authorization_needs_leave_to_share_rfc_9111_3_5() {
    let authorized = [("authorization", "Basic x")];
    let answer = |value: &str| judge(&authorized, 200, &[("cache-control", value)]);
    assert_eq!(answer("max-age=100"), Err(NotStorable::Authorization));
    let proxy = "max-age=100, proxy-revalidate";
    assert_eq!(answer(proxy), Err(NotStorable::Authorization));
    for allowed in ["public", "s-maxage=100", "must-revalidate"] {
        assert!(
            answer(&format!("max-age=100, {allowed}")).is_ok(),
            "{allowed}"
        );
    }
    let policy = CachePolicy {
        ignore_authentication: true,
        ..CachePolicy::default()
    };
    let answer = [("cache-control", "max-age=9"), ("www-authenticate", "x")];
    assert!(judge_with(&policy, &authorized, 200, &answer).is_ok());
    assert_eq!(judge(&[], 200, &answer), Err(NotStorable::WwwAuthenticate));
}

#[test]
fn set_cookie_needs_an_explicit_lifetime_and_is_not_replayed() {
    let cookie = ("set-cookie", "a=b");
    let explicit = [cookie, ("cache-control", "max-age=60")];
    let modified = [cookie, ("last-modified", "Mon, 30 Nov 2020 12:00:00 GMT")];
    let public = [cookie, ("cache-control", "public, max-age=60")];
    assert_eq!(judge(&[], 200, &explicit).unwrap().dropped, [SET_COOKIE]);
    assert!(judge(&[], 200, &public).unwrap().dropped.is_empty());
    assert_eq!(judge(&[], 200, &modified), Err(NotStorable::SetCookie));
    let with = |set_cookie| {
        let policy = CachePolicy {
            set_cookie,
            ..CachePolicy::default()
        };
        judge_with(&policy, &[], 200, &explicit)
    };
    assert!(with(SetCookiePolicy::Keep).unwrap().dropped.is_empty());
    assert_eq!(with(SetCookiePolicy::NoStore), Err(NotStorable::SetCookie));
}

#[test]
fn fields_that_private_or_no_cache_name_are_left_out() {
    let stored = says("max-age=60, private=\"x-a\", no-cache=\"x-b, set-cookie\"").unwrap();
    let mut names: Vec<_> = stored.dropped.iter().map(HeaderName::as_str).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names, ["set-cookie", "x-a", "x-b"]);
}

#[test]
fn the_cookie_rule_goes_by_content_type() {
    let explicit = ("cache-control", "max-age=60");
    let stores = |cookies, kind, request: Lines<'_>, sets: bool| {
        let policy = CachePolicy {
            cookies,
            ..CachePolicy::default()
        };
        let mut response = vec![explicit, ("content-type", kind)];
        if sets {
            response.push(("set-cookie", "a=b"));
        }
        judge_with(&policy, request, 200, &response).is_ok()
    };
    let cookie = [("cookie", "a=b")];
    let rows = [
        (CookieRule::Nothing, "image/png", false, false),
        (CookieRule::Anything, "text/html", true, true),
        (CookieRule::Images, "Image/PNG", true, true),
        (CookieRule::Images, "video/mp4", false, false),
        (CookieRule::NotText, "video/mp4", true, true),
        (CookieRule::NotText, "text/css", false, false),
        (CookieRule::NotTextUnlessPublic, "text/css", true, false),
    ];
    for (rule, kind, with_cookie, with_set_cookie) in rows {
        assert!(stores(rule, kind, &[], false), "{rule:?} without cookies");
        assert_eq!(
            stores(rule, kind, &cookie, false),
            with_cookie,
            "{rule:?} {kind}"
        );
        assert_eq!(
            stores(rule, kind, &[], true),
            with_set_cookie,
            "{rule:?} {kind}"
        );
    }
}

#[test]
fn vary_star_matches_nothing_and_is_not_stored() {
    let explicit = ("cache-control", "max-age=60");
    let star = [explicit, ("vary", "x-a"), ("vary", "*")];
    assert_eq!(judge(&[], 200, &star), Err(NotStorable::VaryStar));
    assert!(judge(&[], 200, &star[..2]).is_ok());
}

#[test]
fn required_headers_hold_for_200_only() {
    let with = |required_headers, status, response: Lines<'_>| {
        let policy = CachePolicy {
            required_headers,
            ..CachePolicy::default()
        };
        judge_with(&policy, &[], status, response)
    };
    let modified = [("last-modified", "Mon, 30 Nov 2020 12:00:00 GMT")];
    let tagged = [("etag", "\"a\"")];
    let refused = Err(NotStorable::RequiredHeaders);
    assert_eq!(with(RequiredHeaders::Lifetime, 200, &modified), refused);
    assert!(with(RequiredHeaders::Lifetime, 404, &modified).is_ok());
    assert!(with(RequiredHeaders::LifetimeOrLastModified, 200, &modified).is_ok());
    let refused = Err(NotStorable::RequiredHeaders);
    assert_eq!(
        with(RequiredHeaders::LifetimeOrLastModified, 200, &tagged),
        refused
    );
    assert!(with(RequiredHeaders::Nothing, 200, &tagged).is_ok());
}

#[test]
fn ignore_server_no_cache_ignores_no_store_too_but_not_private() {
    let policy = CachePolicy {
        ignore_server_no_cache: true,
        ..CachePolicy::default()
    };
    let with = |value| judge_with(&policy, &[], 200, &[("cache-control", value)]);
    let stored = with("no-store, no-cache, max-age=60").unwrap();
    assert!(!stored.directives.no_cache.is_whole());
    assert_eq!(with("private, max-age=60"), Err(NotStorable::Private));
}

#[test]
fn lookups_depend_on_method_url_and_switch() {
    let policy = CachePolicy {
        cache_dynamic: false,
        ..CachePolicy::default()
    };
    let look = |method: Method, url, policy: &CachePolicy| {
        may_look_up(&method, &RequestUrl::parse(url).unwrap(), policy)
    };
    assert_eq!(look(Method::HEAD, "http://h/x", &policy), Ok(()));
    assert_eq!(
        look(Method::POST, "http://h/x", &policy),
        Err(NotStorable::Method)
    );
    for url in [
        "http://h/x?",
        "http://h/a;b",
        "http://h/CGI-bin/x",
        "http://h/a.aspx",
    ] {
        assert_eq!(
            look(Method::GET, url, &policy),
            Err(NotStorable::Dynamic),
            "{url}"
        );
        assert_eq!(look(Method::GET, url, &CachePolicy::default()), Ok(()));
    }
    let off = CachePolicy {
        enabled: false,
        ..CachePolicy::default()
    };
    assert_eq!(
        look(Method::GET, "http://h/x", &off),
        Err(NotStorable::CacheOff)
    );
}
