//! Byte ranges of a whole stored representation (RFC 9110 14).
//!
//! Several ranges in one request are treated as if Range were absent, which
//! 14.2 allows any server: the client gets the whole with 200.

use super::conditional::{Validators, if_range_holds};
use ::http::header::RANGE;
use ::http::{HeaderMap, Method, StatusCode};

/// What a Range field asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing that counts: absent, malformed, another unit, several ranges.
    Whole,
    /// From `first` to `last` inclusive, or to the end.
    From {
        /// Offset of the first byte.
        first: u64,
        /// Offset of the last byte, at least `first`.
        last: Option<u64>,
    },
    /// The last so many bytes.
    Suffix(u64),
}

/// A part of a representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Offset of its first byte.
    pub first: u64,
    /// Offset of its last byte.
    pub last: u64,
    /// Bytes of the whole representation.
    pub whole: u64,
}

impl Part {
    /// Bytes in the part; at least 1.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.last - self.first + 1
    }

    /// Always false: a part has at least one byte.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Reads Content-Range (RFC 9110 14.4): a part of a known whole, in bytes.
    #[must_use]
    pub fn parse(content_range: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(content_range).ok()?;
        let (unit, rest) = text.trim().split_once(' ')?;
        let (range, whole) = rest.trim_start().split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (first, last, whole) = (number(first)?, number(last)?, number(whole)?);
        let is_valid = unit.eq_ignore_ascii_case("bytes") && first <= last && last < whole;
        is_valid.then_some(Self { first, last, whole })
    }

    /// The value of Content-Range: `bytes 0-499/1234`.
    #[must_use]
    pub fn content_range(&self) -> String {
        format!("bytes {}-{}/{}", self.first, self.last, self.whole)
    }
}

/// What to send of a representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All of it, with its own status.
    Whole,
    /// This part, with 206 and [`Part::content_range`].
    Part(Part),
    /// Nothing: 416 with [`unsatisfied`].
    NotSatisfiable,
}

/// Decides what of a stored representation of `len` bytes to send. Range counts
/// only for GET, for 200, and when If-Range holds (RFC 9110 13.1.5, 14.2).
/// Evaluate the other conditions before (13.2.2).
#[must_use]
pub fn answer(
    method: &Method,
    request: &HeaderMap,
    status: StatusCode,
    len: u64,
    stored: &Validators<'_>,
) -> Answer {
    let counts = *method == Method::GET && status == StatusCode::OK;
    if !counts || !request.contains_key(RANGE) || !if_range_holds(request, stored) {
        return Answer::Whole;
    }
    resolve(asked(request), len)
}

/// Reads Range.
#[must_use]
pub fn asked(request: &HeaderMap) -> Asked {
    let mut lines = request.get_all(RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Asked::Whole;
    };
    let text = line.to_str().unwrap_or_default();
    parse(text).unwrap_or(Asked::Whole)
}

/// What of `len` bytes is asked for.
#[must_use]
pub fn resolve(asked: Asked, len: u64) -> Answer {
    let end = len.checked_sub(1);
    let (first, last) = match (asked, end) {
        (Asked::Whole, _) => return Answer::Whole,
        (_, None) | (Asked::Suffix(0), _) => return Answer::NotSatisfiable,
        (Asked::Suffix(count), Some(end)) => (len.saturating_sub(count), end),
        (Asked::From { first, last }, Some(end)) => (first, last.unwrap_or(end).min(end)),
    };
    if first > last {
        return Answer::NotSatisfiable;
    }
    let whole = len;
    Answer::Part(Part { first, last, whole })
}

/// The value of Content-Range for 416: `bytes */1234`.
#[must_use]
pub fn unsatisfied(len: u64) -> String {
    format!("bytes */{len}")
}

/// `None` for anything but one well-formed range of bytes.
fn parse(text: &str) -> Option<Asked> {
    let (unit, set) = text.split_once('=')?;
    let blank = [' ', '\t'];
    if !unit.trim_matches(blank).eq_ignore_ascii_case("bytes") {
        return None;
    }
    let mut specs = set.split(',').map(|s| s.trim_matches(blank));
    let mut specs = specs.by_ref().filter(|spec| !spec.is_empty());
    let (spec, None) = (specs.next()?, specs.next()) else {
        return None;
    };
    let (first, last) = spec.split_once('-')?;
    if first.is_empty() {
        return number(last).map(Asked::Suffix);
    }
    let first = number(first)?;
    let last = if last.is_empty() {
        None
    } else {
        Some(number(last)?)
    };
    let in_order = last.is_none_or(|last| first <= last);
    in_order.then_some(Asked::From { first, last })
}

/// Digits only; more than 64 bits hold count as the most that they hold.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::WallTime;
    use ::http::HeaderValue;
    use proptest::prelude::*;

    const STORED: Validators<'static> = Validators {
        etag: Some(b"\"a\""),
        last_modified: None,
        date: WallTime::from_secs(1_796_040_000),
    };

    fn request(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        map
    }

    fn of_1000(range: &str) -> Answer {
        let request = request(&[("range", range)]);
        answer(&Method::GET, &request, StatusCode::OK, 1000, &STORED)
    }

    fn part(first: u64, last: u64) -> Answer {
        Answer::Part(Part {
            first,
            last,
            whole: 1000,
        })
    }

    #[test]
    fn one_range_gives_its_part_rfc_9110_14_1_2() {
        let rows = [
            ("bytes=0-0", part(0, 0)),
            ("bytes=5-9", part(5, 9)),
            ("bytes=0-", part(0, 999)),
            ("bytes=999-", part(999, 999)),
            ("bytes=990-5000", part(990, 999)),
            ("bytes=0-18446744073709551616", part(0, 999)),
            ("bytes=-1", part(999, 999)),
            ("bytes=-5000", part(0, 999)),
            ("Bytes = 5-9 ,", part(5, 9)),
            ("bytes=1000-", Answer::NotSatisfiable),
            ("bytes=99999999999999999999-", Answer::NotSatisfiable),
            ("bytes=-0", Answer::NotSatisfiable),
        ];
        for (range, expected) in rows {
            assert_eq!(of_1000(range), expected, "{range}");
        }
    }

    #[test]
    fn malformed_and_several_ranges_do_not_count_rfc_9110_14_2() {
        let ranges = [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=a-b",
            "bytes=9-5",
            "bytes=5",
            "bytes=+5-9",
            "bytes=5--9",
            "bytes=5-9-",
            "bytes 5-9",
            "lines=5-9",
            "bytes=0-1,3-4",
            "bytes=0x1-9",
            "bytes=5 - 9",
        ];
        for range in ranges {
            assert_eq!(of_1000(range), Answer::Whole, "{range}");
        }
        let twice = request(&[("range", "bytes=0-1"), ("range", "bytes=0-1")]);
        assert_eq!(asked(&twice), Asked::Whole);
    }

    #[test]
    fn nothing_is_satisfiable_of_an_empty_representation() {
        let request = request(&[("range", "bytes=0-")]);
        let empty = answer(&Method::GET, &request, StatusCode::OK, 0, &STORED);
        assert_eq!(empty, Answer::NotSatisfiable);
        assert_eq!(unsatisfied(0), "bytes */0");
    }

    #[test]
    fn range_counts_for_get_of_a_200_with_the_right_if_range() {
        let plain = request(&[("range", "bytes=5-9")]);
        let with = |method: Method, status| answer(&method, &plain, status, 1000, &STORED);
        assert_eq!(with(Method::HEAD, StatusCode::OK), Answer::Whole);
        assert_eq!(with(Method::GET, StatusCode::NOT_FOUND), Answer::Whole);
        let tagged = |tag| {
            let request = request(&[("range", "bytes=5-9"), ("if-range", tag)]);
            answer(&Method::GET, &request, StatusCode::OK, 1000, &STORED)
        };
        assert_eq!(tagged("\"a\""), part(5, 9));
        assert_eq!(tagged("\"b\""), Answer::Whole);
    }

    #[test]
    fn only_a_part_of_a_known_whole_is_read_from_content_range() {
        let part = Part::parse(b"bytes 2-4/10");
        assert_eq!(
            part.map(|part| part.content_range()).as_deref(),
            Some("bytes 2-4/10")
        );
        for bad in [
            "bytes 2-4/*",
            "bytes */10",
            "bytes 4-2/10",
            "bytes 2-10/10",
            "items 0-1/2",
            "bytes=2-4/10",
            "bytes 2-4",
            "",
            "bytes -4/10",
            "bytes 2-/10",
            "bytes 0-18446744073709551616/18446744073709551617",
        ] {
            assert_eq!(Part::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_part_describes_itself() {
        let part = Part {
            first: 5,
            last: 9,
            whole: 1000,
        };
        assert_eq!((part.len(), part.is_empty()), (5, false));
        assert_eq!(part.content_range(), "bytes 5-9/1000");
    }

    proptest! {
        #[test]
        fn a_part_lies_inside(range in "bytes=[0-9]{0,20}-[0-9]{0,20}", len in any::<u64>()) {
            let request = request(&[("range", &range)]);
            if let Answer::Part(part) = resolve(asked(&request), len) {
                prop_assert!(part.first <= part.last && part.last < len);
                prop_assert!(part.len() <= len);
            }
        }
    }
}
