//! Conditions of clients and of ours.

use super::*;
use crate::http::policy::CachePolicy;
use crate::http::storable::{Times, response_storable};
use crate::http::stored::Received;
use crate::http::testing::{Lines, headers};
use ::http::Version;
use proptest::prelude::*;

const BEFORE: &str = "Mon, 30 Nov 2026 11:00:00 GMT";
const MODIFIED: &str = "Mon, 30 Nov 2026 11:30:00 GMT";
const DATE_NOW: &str = "Mon, 30 Nov 2026 12:00:00 GMT";
/// 2026-11-30 12:00:00.
const NOW: WallTime = WallTime::from_secs(1_796_040_000);

fn stored(etag: &'static str) -> Validators<'static> {
    Validators {
        etag: Some(etag.as_bytes()),
        last_modified: date::parse(MODIFIED.as_bytes(), NOW),
        date: NOW,
    }
}

fn get(request: Lines<'_>, etag: &'static str) -> Precondition {
    evaluate(
        &Method::GET,
        &headers(request),
        StatusCode::OK,
        &stored(etag),
    )
}

#[test]
fn if_none_match_compares_weakly_rfc_9110_13_1_2() {
    let rows = [
        ("\"a\"", "\"a\"", true),
        ("W/\"a\"", "\"a\"", true),
        ("\"a\"", "W/\"a\"", true),
        ("\"b\"", "\"a\"", false),
        ("\"b\" , W/\"a\"", "\"a\"", true),
        ("\"x,y\", \"z\"", "\"x,y\"", true),
        ("\"x,y\"", "\"y\"", false),
        ("*", "\"a\"", true),
        ("\"*\"", "\"a\"", false),
        ("", "\"a\"", false),
        (",,\"a\"", "\"a\"", true),
        ("a", "a", true),
        ("a", "\"a\"", false),
        ("w/\"a\"", "\"a\"", false),
        ("\"a", "\"a\"", false),
    ];
    for (list, etag, matches) in rows {
        let expected = if matches {
            Precondition::NotModified
        } else {
            Precondition::Pass
        };
        assert_eq!(
            get(&[("if-none-match", list)], etag),
            expected,
            "{list} {etag}"
        );
    }
    let lines = [("if-none-match", "\"b\""), ("if-none-match", "\"a\"")];
    assert_eq!(get(&lines, "\"a\""), Precondition::NotModified);
}

#[test]
fn if_modified_since_counts_without_if_none_match_rfc_9110_13_1_3() {
    let since = |value| get(&[("if-modified-since", value)], "\"a\"");
    assert_eq!(since(BEFORE), Precondition::Pass);
    assert_eq!(since(MODIFIED), Precondition::NotModified);
    assert_eq!(since(DATE_NOW), Precondition::NotModified);
    assert_eq!(
        since("Monday, 30-Nov-26 11:30:00 GMT"),
        Precondition::NotModified
    );
    assert_eq!(since("yesterday"), Precondition::Pass);
    let both = [("if-modified-since", DATE_NOW), ("if-none-match", "\"b\"")];
    assert_eq!(get(&both, "\"a\""), Precondition::Pass);
    let undated = Validators {
        last_modified: None,
        ..stored("\"a\"")
    };
    let at = |value| {
        let request = headers(&[("if-modified-since", value)]);
        evaluate(&Method::GET, &request, StatusCode::OK, &undated)
    };
    assert_eq!(at(MODIFIED), Precondition::Pass);
    assert_eq!(at(DATE_NOW), Precondition::NotModified);
}

#[test]
fn if_match_and_if_unmodified_since_come_first_rfc_9110_13_2_2() {
    let rows: [(Lines<'_>, Precondition); 9] = [
        (&[("if-match", "\"a\"")], Precondition::Pass),
        (&[("if-match", "W/\"a\"")], Precondition::Failed),
        (&[("if-match", "\"b\"")], Precondition::Failed),
        (&[("if-match", "*")], Precondition::Pass),
        (&[("if-unmodified-since", MODIFIED)], Precondition::Pass),
        (&[("if-unmodified-since", BEFORE)], Precondition::Failed),
        (&[("if-unmodified-since", "never")], Precondition::Pass),
        (
            &[("if-match", "\"a\""), ("if-unmodified-since", BEFORE)],
            Precondition::Pass,
        ),
        (
            &[("if-match", "\"b\""), ("if-none-match", "\"a\"")],
            Precondition::Failed,
        ),
    ];
    for (request, expected) in rows {
        assert_eq!(get(request, "\"a\""), expected, "{request:?}");
    }
    let both = [("if-match", "\"a\""), ("if-none-match", "\"a\"")];
    assert_eq!(get(&both, "\"a\""), Precondition::NotModified);
}

#[test]
fn conditions_count_for_success_only_and_fail_unsafe_methods() {
    let request = headers(&[("if-none-match", "*")]);
    let with = |method: Method, status| evaluate(&method, &request, status, &stored("\"a\""));
    assert_eq!(with(Method::GET, StatusCode::NOT_FOUND), Precondition::Pass);
    assert_eq!(
        with(Method::HEAD, StatusCode::OK),
        Precondition::NotModified
    );
    assert_eq!(with(Method::PUT, StatusCode::OK), Precondition::Failed);
}

#[test]
fn if_range_compares_strongly_rfc_9110_13_1_5() {
    let rows: [(Lines<'_>, bool); 9] = [
        (&[], true),
        (&[("if-range", "\"a\"")], true),
        (&[("if-range", "W/\"a\"")], false),
        (&[("if-range", "\"b\"")], false),
        (&[("if-range", MODIFIED)], true),
        (&[("if-range", DATE_NOW)], false),
        (&[("if-range", BEFORE)], false),
        (&[("if-range", "")], false),
        (&[("if-range", "\"a\""), ("if-range", "\"a\"")], false),
    ];
    for (request, holds) in rows {
        assert_eq!(
            if_range_holds(&headers(request), &stored("\"a\"")),
            holds,
            "{request:?}"
        );
    }
    let weak = stored("W/\"a\"");
    assert!(!if_range_holds(&headers(&[("if-range", "W/\"a\"")]), &weak));
    let same_second = Validators {
        last_modified: Some(NOW),
        ..stored("\"a\"")
    };
    assert!(!if_range_holds(
        &headers(&[("if-range", DATE_NOW)]),
        &same_second
    ));
}

fn head(lines: Lines<'_>) -> StoredHead {
    let headers = headers(lines);
    let times = Times {
        request: NOW,
        response: NOW,
    };
    let policy = CachePolicy::default();
    let storable = response_storable(StatusCode::OK, &headers, times, &policy).unwrap();
    let received = Received {
        status: StatusCode::OK,
        version: Version::HTTP_11,
        headers: &headers,
        times,
    };
    StoredHead::build(&received, &storable)
}

#[test]
fn a_revalidation_carries_our_validators_and_no_others() {
    let mut request = headers(&[
        ("if-match", "\"x\""),
        ("if-none-match", "\"x\""),
        ("if-modified-since", BEFORE),
        ("if-unmodified-since", BEFORE),
        ("if-range", "\"x\""),
        ("range", "bytes=5-9"),
        ("accept", "*/*"),
    ]);
    let stored = head(&[("etag", "W/\"a\""), ("last-modified", MODIFIED)]);
    assert!(set_revalidation(&mut request, &stored));
    assert_eq!(request[IF_NONE_MATCH], "W/\"a\"");
    assert_eq!(request[IF_MODIFIED_SINCE], MODIFIED);
    assert_eq!(request.len(), 3);
    let plain = head(&[("cache-control", "max-age=5"), ("last-modified", "x")]);
    assert!(!set_revalidation(&mut request, &plain));
    assert_eq!(request.len(), 1);
}

#[test]
fn a_304_with_another_etag_confirms_nothing_rfc_9111_4_3_4() {
    let confirms = |lines| confirms(&headers(lines), &stored("\"a\""));
    assert!(confirms(&[]));
    assert!(confirms(&[("etag", "\"a\"")]));
    assert!(confirms(&[("etag", "W/\"a\"")]));
    assert!(!confirms(&[("etag", "\"b\"")]));
}

#[test]
fn a_304_with_a_strong_etag_gives_it_to_no_body_rfc_9111_4_3_4() {
    let weak = |lines| super::confirms(&headers(lines), &stored("W/\"a\""));
    assert!(weak(&[("etag", "\"a\"")]), "what was asked for by name");
    assert!(!weak(&[("etag", "\"b\"")]));
    let none = Validators {
        etag: None,
        ..stored("")
    };
    assert!(!super::confirms(&headers(&[("etag", "\"a\"")]), &none));
    assert!(super::confirms(&headers(&[("etag", "W/\"a\"")]), &none));
    let mut held = headers(&[("etag", "W/\"a\"")]);
    merge_304(&mut held, &headers(&[("etag", "\"a\""), ("x-a", "1")]));
    assert_eq!(
        (&held["etag"], &held["x-a"]),
        (&"W/\"a\"".parse().unwrap(), &"1".parse().unwrap())
    );
    let mut held = headers(&[("etag", "\"a\"")]);
    merge_304(&mut held, &headers(&[("etag", "W/\"a\"")]));
    assert_eq!(held["etag"], "W/\"a\"");
}

/// reported.md: 304 with Content-Length, Vary, Cache-Control, Content-Encoding.
#[test]
fn a_304_never_touches_what_belongs_to_the_body_rfc_9111_3_2() {
    let mut stored = headers(&[
        ("content-length", "100"),
        ("content-encoding", "br"),
        ("cache-control", "max-age=1"),
        ("x-a", "1"),
        ("x-a", "2"),
        ("x-b", "1"),
    ]);
    let update = headers(&[
        ("content-length", "0"),
        ("content-encoding", "gzip"),
        ("content-range", "bytes 0-1/2"),
        ("transfer-encoding", "chunked"),
        ("connection", "x-secret, cache-control"),
        ("x-secret", "1"),
        ("cache-control", "max-age=9"),
        ("vary", "accept"),
        ("x-a", "3"),
    ]);
    merge_304(&mut stored, &update);
    let expected = headers(&[
        ("content-length", "100"),
        ("content-encoding", "br"),
        ("cache-control", "max-age=9"),
        ("vary", "accept"),
        ("x-a", "3"),
        ("x-b", "1"),
    ]);
    assert_eq!(stored, expected);
    let once = stored.clone();
    for _ in 0..1000 {
        merge_304(&mut stored, &update);
    }
    assert_eq!(stored, once);
}

proptest! {
    #[test]
    fn any_condition_is_evaluated(value in proptest::collection::vec(any::<u8>(), 0..30)) {
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            let mut request = HeaderMap::new();
            for name in [IF_MATCH, IF_NONE_MATCH, IF_RANGE, IF_MODIFIED_SINCE] {
                request.insert(name, value.clone());
            }
            let judged = evaluate(&Method::GET, &request, StatusCode::OK, &stored("\"a\""));
            let again = evaluate(&Method::GET, &request, StatusCode::OK, &stored("\"a\""));
            prop_assert_eq!(judged, again);
            prop_assert!(!if_range_holds(&request, &stored("\"a\"")) || value.as_bytes().contains(&b'a')
                || value.as_bytes().contains(&b':'));
        }
    }
}
