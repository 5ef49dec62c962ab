//! Stored heads: their image, their round trip, their merge.

use super::*;
use crate::http::cache_control::MAX_DELTA;
use crate::http::testing::{Lines, headers};
use proptest::prelude::*;

/// 2026-11-30 12:00:00.
const NOW: WallTime = WallTime::from_secs(1_796_040_000);
const DATE_NOW: &str = "Mon, 30 Nov 2026 12:00:00 GMT";
const MODIFIED: &str = "Sun, 30 Nov 2025 12:00:00 GMT";

fn times(secs: u64) -> Times {
    let at = WallTime::from_secs(NOW.as_secs() + secs);
    Times {
        request: at,
        response: at,
    }
}

fn build(lines: Lines<'_>) -> StoredHead {
    let headers = headers(lines);
    let policy = CachePolicy::default();
    let storable = response_storable(StatusCode::OK, &headers, times(0), &policy).unwrap();
    let received = Received {
        status: StatusCode::OK,
        version: Version::HTTP_11,
        headers: &headers,
        times: times(0),
    };
    StoredHead::build(&received, &storable)
}

const FULL: Lines<'static> = &[
    ("date", DATE_NOW),
    ("content-type", "text/plain"),
    ("content-length", "5"),
    (
        "cache-control",
        "max-age=60, s-maxage=30, stale-while-revalidate=7, public",
    ),
    ("etag", "\"abc\""),
    ("last-modified", MODIFIED),
    ("vary", "accept-encoding"),
    ("age", "3"),
    ("via", "1.0 fred"),
    ("via", "1.1 barney"),
    ("connection", "keep-alive, x-hop"),
    ("keep-alive", "timeout=5"),
    ("x-hop", "1"),
    ("transfer-encoding", "chunked"),
    ("trailer", "x-sum"),
    ("x-kept", "1"),
    ("x-kept", "2"),
];

#[test]
fn a_stored_head_is_the_golden_image() {
    let hex = |line: &[u8]| line.iter().map(|b| format!("{b:02x}")).collect::<String>() + "\n";
    let image: String = build(FULL).as_bytes().chunks(32).map(hex).collect();
    let kept = include_str!("../../../tests/golden/stored_head.hex");
    assert_eq!(image, kept, "another image needs another version");
}

#[test]
fn field_lines_are_ready_for_the_wire_without_what_each_answer_says_anew() {
    let lines = build(FULL).field_lines();
    let expected = format!(
        "Date: {DATE_NOW}\r\nContent-Type: text/plain\r\nCache-Control: max-age=60, s-maxage=30, \
         stale-while-revalidate=7, public\r\nETag: \"abc\"\r\nLast-Modified: {MODIFIED}\r\n\
         Vary: accept-encoding\r\nX-Kept: 1\r\nX-Kept: 2\r\n"
    );
    assert_eq!(std::str::from_utf8(&lines).unwrap(), expected);
}

#[test]
fn everything_survives_the_bytes_and_nothing_is_copied() {
    let head = build(FULL);
    let read = StoredHead::parse(head.as_bytes().clone()).unwrap();
    assert_eq!(read, head);
    assert_eq!(read.field_lines().as_ptr(), head.field_lines().as_ptr());
    assert_eq!(read.status(), StatusCode::OK);
    assert_eq!(read.origin_version(), Version::HTTP_11);
    assert_eq!(read.times(), times(0));
    assert_eq!(read.etag(), Some(&b"\"abc\""[..]));
    assert_eq!(read.last_modified_text(), Some(MODIFIED.as_bytes()));
    assert_eq!(read.via(), Some(&b"1.0 fred, 1.1 barney"[..]));
    assert_eq!(read.flags(), FLAG_S_MAXAGE | FLAG_PUBLIC | FLAG_VARIES);
    let validators = read.validators();
    assert_eq!(validators.date, NOW);
    assert_eq!(
        validators.last_modified,
        Some(WallTime::from_secs(1_764_504_000))
    );
    let facts = Facts {
        response_time: NOW,
        age_at_receipt: 3,
        lifetime: Lifetime {
            secs: 30,
            source: LifetimeSource::SMaxAge,
        },
        no_cache: false,
        must_revalidate: false,
        s_maxage: true,
        immutable: false,
        stale_while_revalidate: Some(7),
        stale_if_error: None,
    };
    assert_eq!(read.facts(), facts);
}

#[test]
fn a_head_without_validators_or_date_has_the_time_of_receipt() {
    let head = build(&[
        ("cache-control", "max-age=99999999999"),
        ("date", "x"),
        ("age", "-1"),
    ]);
    assert_eq!(
        (head.etag(), head.last_modified_text(), head.via()),
        (None, None, None)
    );
    assert_eq!(head.header_map()[DATE], DATE_NOW);
    assert_eq!(head.header_map().get_all(DATE).iter().count(), 1);
    assert_eq!(head.validators().last_modified, None);
    assert!(head.facts().lifetime.secs <= MAX_DELTA);
}

#[test]
fn warning_is_not_stored_rfc_9111_5_5() {
    let head = build(&[
        ("cache-control", "max-age=9"),
        ("warning", "110 - \"Response is Stale\""),
        ("x-a", "1"),
    ]);
    let lines = head.field_lines();
    assert!(!String::from_utf8_lossy(&lines).contains("arning"));
    let update = headers(&[("warning", "111 - \"Revalidation Failed\"")]);
    let merged = head.merged_with_304(&update, times(1), &CachePolicy::default());
    let lines = merged.unwrap().field_lines();
    assert!(!String::from_utf8_lossy(&lines).contains("arning"));
}

#[test]
fn immutable_is_kept_for_reuse_rfc_8246() {
    assert!(!build(&[("cache-control", "max-age=9")]).facts().immutable);
    let head = build(&[("cache-control", "immutable, max-age=9")]);
    assert!(head.facts().immutable);
}

#[test]
fn dropped_fields_are_not_stored() {
    let head = build(&[
        ("cache-control", "max-age=60, private=\"x-a\""),
        ("x-a", "1"),
        ("set-cookie", "a=b"),
        ("x-b", "1"),
    ]);
    let map = head.header_map();
    assert!(!map.contains_key("x-a") && !map.contains_key("set-cookie"));
    assert!(map.contains_key("x-b"));
}

#[test]
fn a_304_renews_fields_times_lifetime_and_age() {
    let head = build(FULL);
    let update = headers(&[
        ("cache-control", "max-age=500"),
        ("content-length", "0"),
        ("content-encoding", "gzip"),
        ("age", "9"),
        ("x-kept", "3"),
        ("date", "Mon, 30 Nov 2026 12:01:40 GMT"),
    ]);
    let policy = CachePolicy::default();
    let merged = head.merged_with_304(&update, times(100), &policy).unwrap();
    let facts = merged.facts();
    assert_eq!((facts.age_at_receipt, facts.lifetime.secs), (9, 500));
    assert_eq!(facts.response_time, times(100).response);
    let map = merged.header_map();
    assert_eq!(map["x-kept"], "3");
    assert!(!map.contains_key("content-encoding") && !map.contains_key("age"));
    assert_eq!(map["etag"], "\"abc\"");
    assert_eq!(merged.via(), head.via());
    let mut again = merged.clone();
    for _ in 0..1000 {
        again = again.merged_with_304(&update, times(100), &policy).unwrap();
    }
    assert_eq!(again, merged, "the head does not grow");
}

#[test]
fn a_304_without_date_starts_the_age_anew() {
    let head = build(FULL);
    let policy = CachePolicy::default();
    let merged = head
        .merged_with_304(&HeaderMap::new(), times(100), &policy)
        .unwrap();
    assert_eq!(merged.facts().age_at_receipt, 0);
    assert!(merged.facts().is_fresh(times(129).response));
    assert_eq!(merged.header_map()[DATE], "Mon, 30 Nov 2026 12:01:40 GMT");
}

#[test]
fn a_304_that_forbids_storing_says_so() {
    let update = headers(&[("cache-control", "no-store")]);
    let merged = build(FULL).merged_with_304(&update, times(1), &CachePolicy::default());
    assert_eq!(merged, Err(NotStorable::NoStore));
}

#[test]
fn what_is_no_head_is_refused_with_its_reason() {
    let bytes = build(FULL).as_bytes().to_vec();
    let with = |at: usize, new: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        StoredHead::parse(bytes.into()).unwrap_err()
    };
    let short = StoredHead::parse(Bytes::from_static(b"SHED"));
    assert_eq!(short, Err(StoredHeadError::Short(4)));
    assert_eq!(with(0, b"NOPE"), StoredHeadError::Magic(*b"NOPE"));
    assert_eq!(with(4, &[2, 0]), StoredHeadError::Version(2));
    let rows = [
        (6, "status"),
        (60, "lifetime_source"),
        (68, "etag_at"),
        (76, "last_modified_at"),
        (80, "fields_len"),
        (84, "fields_len"),
    ];
    for (at, field) in rows {
        assert_eq!(with(at, &[99]), StoredHeadError::Field(field), "{at}");
    }
    let cut = bytes.len() - 1;
    let cut = StoredHead::parse(Bytes::copy_from_slice(&bytes[..cut]));
    assert_eq!(cut, Err(StoredHeadError::Field("fields_len")));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        patches in proptest::collection::vec((0usize..400, any::<u8>()), 0..6),
        cut in 0usize..400,
    ) {
        let mut bytes = build(FULL).as_bytes().to_vec();
        for (at, byte) in patches {
            if let Some(slot) = bytes.get_mut(at) {
                *slot = byte;
            }
        }
        bytes.truncate(bytes.len().saturating_sub(cut.saturating_sub(350)));
        if let Ok(head) = StoredHead::parse(bytes.into()) {
            let facts = head.facts();
            prop_assert!(facts.age(NOW) <= MAX_DELTA);
            prop_assert!(head.field_lines().len() <= head.as_bytes().len());
            prop_assert!(head.status().as_u16() >= 200);
            prop_assert!(head.header_map().len() < 400);
            prop_assert!(head.etag().is_none_or(|tag| !tag.is_empty()));
            prop_assert!(head.last_modified_text().is_none_or(|text| !text.is_empty()));
            let merged = head.merged_with_304(&HeaderMap::new(), times(1), &CachePolicy::default());
            prop_assert!(merged.is_err() || merged.unwrap().status() == head.status());
        }
    }
}

#[test]
fn server_is_cut_off_the_end_of_the_lines_and_nothing_else_is() {
    for (lines, rest) in [
        ("", ""),
        ("A: 1\r\n", "A: 1\r\n"),
        ("A: 1\r\nServer: x\r\nServer: y\r\n", "A: 1\r\n"),
        ("Server: x\r\n", ""),
        ("Server: x\r\nA: 1\r\n", "Server: x\r\nA: 1\r\n"),
        ("X-Server: x\r\n", "X-Server: x\r\n"),
        ("Server: without an end", "Server: without an end"),
        ("\n\n", "\n\n"),
    ] {
        let cut = lines.get(..server_at(lines.as_bytes()));
        assert_eq!(cut, Some(rest), "{lines:?}");
    }
}
