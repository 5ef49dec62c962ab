//! Representations that are asked for and stored part by part (RFC 9110 14.2,
//! 14.4 and 15.3.7, RFC 9111 3.3 and 3.4). A stored part is made of whole
//! fragments.

use super::conditional::strongly_equal;
use super::range::{Asked, Part, Spec, asked};
use ::http::header::{
    CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderValue, IF_RANGE, RANGE, TRANSFER_ENCODING,
};
use ::http::{HeaderMap, Method};
use std::ops::Range;

/// Why a 206 is not stored as a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPart {
    /// Content-Range is absent, as in multipart/byteranges, malformed, or names
    /// no length of the whole.
    #[error("no Content-Range of one part of a known length")]
    Range,
    /// Nothing tells the representation from another for certain (RFC 9111 3.4).
    #[error("no strong ETag")]
    Validator,
    /// It begins elsewhere than was asked, or its ends are not those of
    /// fragments.
    #[error("the part is not the one that was asked for, in whole fragments")]
    Bounds,
}

/// The bytes that a GET asks for, if it is for one range from a known offset
/// on, to an open end or not, under no If-Range.
#[must_use]
pub fn wanted(method: &Method, request: &HeaderMap) -> Option<Range<u64>> {
    let Asked::Ranges(specs) = asked(request) else {
        return None;
    };
    let counts = *method == Method::GET && !request.contains_key(IF_RANGE);
    match (&*specs, counts) {
        ([Spec::From { first, last }], true) => {
            let end = last.map_or(u64::MAX, |last| last.saturating_add(1));
            Some(*first..end)
        }
        _ => None,
    }
}

/// What to ask the origin for: the fragments of `fragment` bytes that hold
/// `wanted`, the first `most` of them.
#[must_use]
pub fn widened(wanted: &Range<u64>, fragment: u64, most: u64) -> Range<u64> {
    let fragment = fragment.max(1);
    let start = wanted.start - wanted.start % fragment;
    let end = wanted.end.div_ceil(fragment).saturating_mul(fragment);
    start..end.min(start.saturating_add(most.saturating_mul(fragment)))
}

/// Makes a request one for these bytes, at least one.
pub fn set_range(request: &mut HeaderMap, bytes: &Range<u64>) {
    let last = bytes.end.saturating_sub(1);
    let text = format!("bytes={}-{last}", bytes.start);
    // Digits and letters always make a field value.
    if let Ok(value) = HeaderValue::try_from(text) {
        request.insert(RANGE, value);
    }
}

/// The part that a 206 for `asked` brings, if it may be stored.
///
/// # Errors
/// Why it may not.
pub fn storable_part(
    response: &HeaderMap,
    asked: &Range<u64>,
    fragment: u64,
) -> Result<Part, NotPart> {
    let mut ranges = response.get_all(CONTENT_RANGE).iter();
    let (Some(range), None) = (ranges.next(), ranges.next()) else {
        return Err(NotPart::Range);
    };
    let part = Part::parse(range.as_bytes()).ok_or(NotPart::Range)?;
    let fragment = fragment.max(1);
    let end = part.last + 1;
    let ends = end == part.whole || end % fragment == 0;
    if part.first != asked.start || end > asked.end || part.first % fragment != 0 || !ends {
        return Err(NotPart::Bounds);
    }
    let tag = response.get(ETAG).map(HeaderValue::as_bytes);
    let is_strong = tag.is_some_and(|tag| strongly_equal(tag, tag));
    // What is whole needs no other part to fit.
    let is_whole = part.len() == part.whole;
    if is_strong || is_whole {
        Ok(part)
    } else {
        Err(NotPart::Validator)
    }
}

/// The fields that the whole would have, of a 206: without those that tell of
/// the part and of its framing.
#[must_use]
pub fn whole_fields(response: &HeaderMap) -> HeaderMap {
    let mut fields = response.clone();
    for name in [CONTENT_RANGE, CONTENT_LENGTH, TRANSFER_ENCODING] {
        fields.remove(name);
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::headers;
    use proptest::prelude::*;

    #[test]
    fn one_range_from_a_known_offset_is_asked_for_in_fragments() {
        let of = |lines: &[(&str, &str)]| wanted(&Method::GET, &headers(lines));
        assert_eq!(of(&[("range", "bytes=5-9")]), Some(5..10));
        assert_eq!(of(&[("range", "bytes=5-")]), Some(5..u64::MAX));
        let most = "bytes=0-18446744073709551615";
        assert_eq!(of(&[("range", most)]), Some(0..u64::MAX));
        for range in ["bytes=-5", "bytes=0-1,5-6", "bytes=9-5", "lines=1-2", ""] {
            assert_eq!(of(&[("range", range)]), None, "{range}");
        }
        let conditional = [("range", "bytes=5-9"), ("if-range", "\"a\"")];
        assert_eq!(of(&conditional), None);
        let head = wanted(&Method::HEAD, &headers(&[("range", "bytes=5-9")]));
        assert_eq!(head, None);
    }

    #[test]
    fn ranges_are_widened_to_fragments_and_bounded() {
        assert_eq!(widened(&(5..10), 100, 16), 0..100);
        assert_eq!(widened(&(100..200), 100, 16), 100..200);
        assert_eq!(widened(&(199..201), 100, 16), 100..300);
        assert_eq!(widened(&(150..u64::MAX), 100, 16), 100..1700);
        assert_eq!(widened(&(0..5), 0, 1), 0..1);
        let mut request = HeaderMap::new();
        set_range(&mut request, &(100..200));
        assert_eq!(request[RANGE], "bytes=100-199");
    }

    #[test]
    fn a_part_is_stored_in_whole_fragments_under_a_strong_tag_rfc_9111_3_4() {
        let tag = ("etag", "\"a\"");
        let judged = |range: &str, more: &[(&str, &str)]| {
            let lines = [&[("content-range", range)], more].concat();
            storable_part(&headers(&lines), &(100..300), 100)
        };
        let part = |first, last, whole| Ok(Part { first, last, whole });
        assert_eq!(judged("bytes 100-299/1000", &[tag]), part(100, 299, 1000));
        assert_eq!(judged("bytes 100-199/1000", &[tag]), part(100, 199, 1000));
        assert_eq!(judged("bytes 100-249/250", &[tag]), part(100, 249, 250));
        for range in [
            "bytes 0-299/1000",
            "bytes 100-249/1000",
            "bytes 100-399/1000",
            "bytes 150-299/1000",
        ] {
            assert_eq!(judged(range, &[tag]), Err(NotPart::Bounds), "{range}");
        }
        for range in ["bytes 100-299/*", "bytes */1000", "items 100-299/1000", ""] {
            assert_eq!(judged(range, &[tag]), Err(NotPart::Range), "{range}");
        }
        let range = "bytes 100-299/1000";
        assert_eq!(judged(range, &[]), Err(NotPart::Validator));
        assert_eq!(
            judged(range, &[("etag", "W/\"a\"")]),
            Err(NotPart::Validator)
        );
        let twice = [("content-range", range), tag];
        assert_eq!(judged(range, &twice), Err(NotPart::Range));
        let whole = headers(&[("content-range", "bytes 0-9/10")]);
        let whole = storable_part(&whole, &(0..100), 100);
        assert_eq!(whole, part(0, 9, 10), "needs no validator");
    }

    #[test]
    fn the_head_of_the_whole_tells_nothing_of_the_part() {
        let lines = [
            ("content-range", "bytes 0-9/100"),
            ("content-length", "10"),
            ("content-type", "text/plain"),
        ];
        let fields = whole_fields(&headers(&lines));
        assert_eq!(fields, headers(&lines[2..]));
    }

    proptest! {
        #[test]
        fn what_is_asked_for_is_aligned_and_holds_the_beginning(
            start in any::<u64>(), len in 1u64.., fragment in 1u64..1 << 32, most in 1u64..64,
        ) {
            let start = start >> 1;
            let wanted = start..start.saturating_add(len);
            let asked = widened(&wanted, fragment, most);
            prop_assert!(asked.start <= wanted.start && wanted.start - asked.start < fragment);
            prop_assert!(asked.end > wanted.start);
            prop_assert!(asked.end - asked.start <= most * fragment);
            prop_assert_eq!(asked.start % fragment, 0);
        }
    }
}
