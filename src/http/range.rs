//! Byte ranges of a whole representation (RFC 9110 14).

use super::conditional::{Validators, if_range_holds};
use ::http::header::RANGE;
use ::http::{HeaderMap, Method, StatusCode};

/// Ranges that one request may ask for; a request for more gets the whole
/// (RFC 9110 14.2).
const RANGES_MAX: usize = 64;
/// Bytes of a gap between two ranges that cost less than what stands between
/// the parts of a multipart answer: such ranges are sent as one (15.3.7.2).
const GAP_MAX: u64 = 96;

/// What a Range field asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing that counts: absent, malformed, another unit, too many ranges.
    Whole,
    /// These, at least one, in the order of the field.
    Ranges(Vec<Spec>),
}

/// One range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spec {
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

    /// Whether both overlap, touch, or have next to nothing between them.
    const fn is_near(&self, other: &Self) -> bool {
        let gap = GAP_MAX + 1;
        self.first <= other.last.saturating_add(gap) && other.first <= self.last.saturating_add(gap)
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All of it, with its own status.
    Whole,
    /// This part, with 206 and [`Part::content_range`].
    Part(Part),
    /// These parts, two or more, as multipart/byteranges with 206.
    Parts(Vec<Part>),
    /// Nothing: 416 with [`unsatisfied`].
    NotSatisfiable,
}

/// What becomes of a request for several ranges
/// (`proxy.config.http.allow_multi_range`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Several {
    /// 0: as if Range were absent.
    Ignored,
    /// 1: they are served.
    Served,
    /// 2: 416.
    Refused,
}

/// A representation of which ranges may be asked.
#[derive(Clone, Copy, Debug)]
pub struct Representation<'a> {
    /// The status that all of it would be sent with.
    pub status: StatusCode,
    /// Its bytes.
    pub len: u64,
    /// What If-Range compares with.
    pub validators: Validators<'a>,
}

/// Decides what of a representation to send. Range counts only for GET, for 200,
/// and when If-Range holds (RFC 9110 13.1.5, 14.2). Evaluate the other
/// conditions before (13.2.2).
#[must_use]
pub fn answer(
    method: &Method,
    request: &HeaderMap,
    of: &Representation<'_>,
    several: Several,
) -> Answer {
    let counts = *method == Method::GET && of.status == StatusCode::OK;
    if !counts || !request.contains_key(RANGE) || !if_range_holds(request, &of.validators) {
        return Answer::Whole;
    }
    match (asked(request), several) {
        (Asked::Ranges(specs), Several::Ignored) if specs.len() > 1 => Answer::Whole,
        (Asked::Ranges(specs), Several::Refused) if specs.len() > 1 => Answer::NotSatisfiable,
        (asked, _) => resolve(&asked, of.len),
    }
}

/// Reads Range.
#[must_use]
pub fn asked(request: &HeaderMap) -> Asked {
    let mut lines = request.get_all(RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Asked::Whole;
    };
    let text = line.to_str().unwrap_or_default();
    parse(text).map_or(Asked::Whole, Asked::Ranges)
}

/// What of `len` bytes is asked for. Ranges that overlap, touch or nearly do
/// become one, in the place of the first of them; those beyond the end are left
/// out (RFC 9110 15.3.7.2).
#[must_use]
pub fn resolve(asked: &Asked, len: u64) -> Answer {
    let Asked::Ranges(specs) = asked else {
        return Answer::Whole;
    };
    let mut parts = Vec::new();
    for part in specs.iter().filter_map(|spec| spec.of(len)) {
        add(&mut parts, part);
    }
    match parts.len() {
        0 => Answer::NotSatisfiable,
        1 => Answer::Part(parts[0]),
        _ => Answer::Parts(parts),
    }
}

/// Adds a part, as one with those that it comes near.
fn add(parts: &mut Vec<Part>, mut part: Part) {
    let mut at = parts.len();
    while let Some(near) = parts.iter().position(|other| other.is_near(&part)) {
        let other = parts.remove(near);
        part.first = part.first.min(other.first);
        part.last = part.last.max(other.last);
        at = at.min(near);
    }
    parts.insert(at.min(parts.len()), part);
}

impl Spec {
    /// The part that it is of `len` bytes; `None` if it lies beyond the end.
    #[must_use]
    pub fn of(self, len: u64) -> Option<Part> {
        let end = len.checked_sub(1)?;
        let (first, last) = match self {
            Self::Suffix(0) => return None,
            Self::Suffix(count) => (len.saturating_sub(count), end),
            Self::From { first, last } => (first, last.unwrap_or(end).min(end)),
        };
        let whole = len;
        (first <= last).then_some(Part { first, last, whole })
    }
}

/// The value of Content-Range for 416: `bytes */1234`.
#[must_use]
pub fn unsatisfied(len: u64) -> String {
    format!("bytes */{len}")
}

/// `None` for anything but a list of well-formed ranges of bytes.
fn parse(text: &str) -> Option<Vec<Spec>> {
    let (unit, set) = text.split_once('=')?;
    let blank = [' ', '\t'];
    if !unit.trim_matches(blank).eq_ignore_ascii_case("bytes") {
        return None;
    }
    let texts = set.split(',').map(|spec| spec.trim_matches(blank));
    let texts = texts.filter(|spec| !spec.is_empty()).take(RANGES_MAX + 1);
    let specs: Vec<Spec> = texts.map(spec).collect::<Option<_>>()?;
    let counts = (1..=RANGES_MAX).contains(&specs.len());
    counts.then_some(specs)
}

fn spec(text: &str) -> Option<Spec> {
    let (first, last) = text.split_once('-')?;
    if first.is_empty() {
        return number(last).map(Spec::Suffix);
    }
    let first = number(first)?;
    let last = if last.is_empty() {
        None
    } else {
        Some(number(last)?)
    };
    let in_order = last.is_none_or(|last| first <= last);
    in_order.then_some(Spec::From { first, last })
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

    fn of(len: u64, status: StatusCode) -> Representation<'static> {
        Representation {
            status,
            len,
            validators: STORED,
        }
    }

    fn asked_of_1000(lines: &[(&'static str, &str)]) -> Answer {
        let whole = of(1000, StatusCode::OK);
        answer(&Method::GET, &request(lines), &whole, Several::Served)
    }

    fn of_1000(range: &str) -> Answer {
        asked_of_1000(&[("range", range)])
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
    fn malformed_ranges_do_not_count_rfc_9110_14_2() {
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
            "bytes=0-1,3",
            "bytes=0-1,a-b",
            "bytes=,",
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
    fn several_ranges_keep_their_order_rfc_9110_15_3_7_2() {
        let parts = |list: &[(u64, u64)]| {
            let whole = 1000;
            let part = |&(first, last)| Part { first, last, whole };
            Answer::Parts(list.iter().map(part).collect())
        };
        let rows = [
            ("bytes=0-1,500-501", parts(&[(0, 1), (500, 501)])),
            ("bytes=500-501, 0-1", parts(&[(500, 501), (0, 1)])),
            ("bytes=-1,0-0", parts(&[(999, 999), (0, 0)])),
            ("bytes=0-1,5000-,500-", parts(&[(0, 1), (500, 999)])),
            ("bytes=0-1,5000-", part(0, 1)),
            ("bytes=5000-,6000-", Answer::NotSatisfiable),
            // As one: overlapping, touching, nearly touching, repeated.
            ("bytes=0-9,5-20", part(0, 20)),
            ("bytes=0-9,10-20", part(0, 20)),
            ("bytes=0-9,106-120", part(0, 120)),
            ("bytes=0-9,107-120", parts(&[(0, 9), (107, 120)])),
            ("bytes=0-,0-,0-", part(0, 999)),
            (
                "bytes=0-9,800-809,600-609,5-6,805-",
                parts(&[(0, 9), (800, 999), (600, 609)]),
            ),
            ("bytes=0-9,400-409,200-209,0-350", part(0, 409)),
        ];
        for (range, expected) in rows {
            assert_eq!(of_1000(range), expected, "{range}");
        }
    }

    #[test]
    fn too_many_ranges_do_not_count_and_a_record_bars_several() {
        let list = |count: u64| {
            let specs: Vec<_> = (0..count)
                .map(|n| format!("{}-{}", n * 10, n * 10))
                .collect();
            format!("bytes={}", specs.join(","))
        };
        assert_eq!(of_1000(&list(64)), part(0, 630));
        assert_eq!(of_1000(&list(65)), Answer::Whole);
        let with = |range, several| {
            let request = request(&[("range", range)]);
            answer(&Method::GET, &request, &of(1000, StatusCode::OK), several)
        };
        let both = "bytes=0-1,500-501";
        assert_eq!(with(both, Several::Ignored), Answer::Whole);
        assert_eq!(with(both, Several::Refused), Answer::NotSatisfiable);
        assert_eq!(with("bytes=0-1", Several::Refused), part(0, 1));
        assert_eq!(with("bytes=0-1", Several::Ignored), part(0, 1));
    }

    #[test]
    fn nothing_is_satisfiable_of_an_empty_representation() {
        let request = request(&[("range", "bytes=0-")]);
        let empty = of(0, StatusCode::OK);
        let empty = answer(&Method::GET, &request, &empty, Several::Served);
        assert_eq!(empty, Answer::NotSatisfiable);
        assert_eq!(unsatisfied(0), "bytes */0");
    }

    #[test]
    fn range_counts_for_get_of_a_200_with_the_right_if_range() {
        let plain = request(&[("range", "bytes=5-9")]);
        let with =
            |method: Method, status| answer(&method, &plain, &of(1000, status), Several::Served);
        assert_eq!(with(Method::HEAD, StatusCode::OK), Answer::Whole);
        assert_eq!(with(Method::POST, StatusCode::OK), Answer::Whole);
        assert_eq!(with(Method::GET, StatusCode::NOT_FOUND), Answer::Whole);
        let tagged = |tag| asked_of_1000(&[("range", "bytes=5-9"), ("if-range", tag)]);
        assert_eq!(tagged("\"a\""), part(5, 9));
        assert_eq!(tagged("\"b\""), Answer::Whole);
        assert_eq!(tagged("W/\"a\""), Answer::Whole);
        let beyond = [("range", "bytes=5000-"), ("if-range", "\"b\"")];
        assert_eq!(asked_of_1000(&beyond), Answer::Whole);
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
            if let Answer::Part(part) = resolve(&asked(&request), len) {
                prop_assert!(part.first <= part.last && part.last < len);
                prop_assert!(part.len() <= len);
            }
        }

        #[test]
        fn parts_lie_inside_hold_all_that_was_asked_and_never_overlap(
            ends in proptest::collection::vec((0u64..2000, 0u64..300), 1..20),
            len in 1u64..2000,
        ) {
            let specs: Vec<Spec> = ends
                .iter()
                .map(|&(first, more)| Spec::From { first, last: Some(first + more) })
                .collect();
            let parts = match resolve(&Asked::Ranges(specs.clone()), len) {
                Answer::Part(part) => vec![part],
                Answer::Parts(parts) => parts,
                Answer::Whole | Answer::NotSatisfiable => vec![],
            };
            for part in &parts {
                prop_assert!(part.first <= part.last && part.last < len);
                let near = parts.iter().filter(|other| other.is_near(part)).count();
                prop_assert_eq!(near, 1);
            }
            for wanted in specs.iter().filter_map(|spec| spec.of(len)) {
                let holds = |part: &Part| part.first <= wanted.first && wanted.last <= part.last;
                prop_assert!(parts.iter().any(holds));
            }
        }
    }
}
