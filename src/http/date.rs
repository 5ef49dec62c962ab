//! HTTP-date (RFC 9110 5.6.7).

use crate::base::clock::WallTime;
use ::http::{HeaderMap, HeaderName};
use std::time::{Duration, UNIX_EPOCH};

/// 9999-12-31 23:59:59, the last second that the format can show.
const LAST_SECOND: u64 = 253_402_300_799;

/// The day names of the obsolete form with a two-digit year.
const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// Reads an HTTP-date in any of its three forms; `None` when it is none of
/// them, names another weekday than the date's, or is before 1970. A two-digit year is the one that lies at most 50 years
/// after `now`.
#[must_use]
pub fn parse(value: &[u8], now: WallTime) -> Option<WallTime> {
    let text = std::str::from_utf8(value.trim_ascii()).ok()?;
    let full = with_four_digit_year(text, now);
    let date = httpdate::parse_http_date(full.as_deref().unwrap_or(text)).ok()?;
    let secs = date.duration_since(UNIX_EPOCH).ok()?.as_secs();
    Some(WallTime::from_secs(secs))
}

/// Reads the first line of a date field; `None` when there is none or it is no
/// date.
#[must_use]
pub fn field(headers: &HeaderMap, name: &HeaderName, now: WallTime) -> Option<WallTime> {
    parse(headers.get(name)?.as_bytes(), now)
}

/// The IMF-fixdate of `at`: `Sun, 06 Nov 1994 08:49:37 GMT`, 29 bytes.
#[must_use]
pub fn format(at: WallTime) -> String {
    let secs = at.as_secs().min(LAST_SECOND);
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(secs))
}

/// The IMF-fixdate for `Sunday, 06-Nov-94 08:49:37 GMT`; `None` for a text of
/// another form.
fn with_four_digit_year(text: &str, now: WallTime) -> Option<String> {
    let (weekday, rest) = text.split_once(", ")?;
    let weekday = WEEKDAYS.contains(&weekday).then(|| weekday.get(..3))??;
    let (date, time) = rest.split_once(' ')?;
    let mut parts = date.split('-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let is_short = year.len() == 2;
    let year = is_short.then(|| full_year(year.parse().ok()?, now))??;
    Some(format!("{weekday}, {day} {month} {year:04} {time}"))
}

fn full_year(two_digits: u32, now: WallTime) -> Option<u32> {
    let this: u32 = format(now).get(12..16)?.parse().ok()?;
    let year = this - this % 100 + two_digits;
    Some(if year > this + 50 { year - 100 } else { year })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2026-11-30 12:00:00.
    const NOW: WallTime = WallTime::from_secs(1_796_040_000);

    fn read(text: &str) -> Option<u64> {
        parse(text.as_bytes(), NOW).map(WallTime::as_secs)
    }

    #[test]
    fn the_three_forms_mean_the_same_rfc_9110_5_6_7() {
        let forms = [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            " Sun, 06 Nov 1994 08:49:37 GMT ",
        ];
        for form in forms {
            assert_eq!(read(form), Some(784_111_777), "{form}");
        }
    }

    #[test]
    fn a_two_digit_year_is_at_most_50_years_ahead() {
        let rows = [
            ("Monday, 01-Jun-76", "2076"),
            ("Wednesday, 01-Jun-77", "1977"),
            ("Monday, 01-Jun-26", "2026"),
            ("Thursday, 01-Jun-00", "2000"),
            ("Tuesday, 01-Jun-99", "1999"),
        ];
        for (two, four) in rows {
            let read = parse(format!("{two} 00:00:00 GMT").as_bytes(), NOW);
            assert_eq!(
                read.map(|at| format(at).get(12..16).map(str::to_owned)),
                Some(Some(four.into())),
                "{two}"
            );
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        let texts = [
            "",
            "0",
            "-1",
            "now",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "1994-11-06T08:49:37Z",
            "784111777",
            "Sun, 06 Nov 1994 25:49:37 GMT",
            "Sat, 31 Dec 2016 23:59:60 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Thu, 01 Jan 1960 00:00:00 GMT",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-4294967295 08:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Wed, 31 Feb 2026 00:00:00 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT",
        ];
        for text in texts {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn every_time_can_be_shown() {
        assert_eq!(
            format(WallTime::from_secs(0)),
            "Thu, 01 Jan 1970 00:00:00 GMT"
        );
        let last = "Fri, 31 Dec 9999 23:59:59 GMT";
        assert_eq!(format(WallTime::from_millis(u64::MAX)), last);
    }

    proptest! {
        #[test]
        fn what_we_show_we_read(secs in 0u64..=LAST_SECOND) {
            let at = WallTime::from_secs(secs);
            prop_assert_eq!(parse(format(at).as_bytes(), NOW), Some(at));
        }

        #[test]
        fn any_text_is_read_or_refused(
            text in "[A-Za-z]{3,9}(, )?[0-9 -]{0,3}[A-Z]?[a-z]{0,3}[ -]?[0-9: ]{0,14}( GMT)?\\PC{0,3}",
            now in any::<u64>(),
        ) {
            let read = parse(text.as_bytes(), WallTime::from_millis(now));
            prop_assert!(read.is_none_or(|at| at.as_secs() <= LAST_SECOND));
        }
    }
}
