//! How long a response is fresh, and how old it is (RFC 9111 4.2).

use super::cache_control::{MAX_DELTA, ResponseDirectives, delta_seconds};
use super::date;
use super::policy::CachePolicy;
use crate::base::clock::WallTime;
use ::http::header::{AGE, DATE, EXPIRES, LAST_MODIFIED};
use ::http::{HeaderMap, StatusCode};
use std::time::Duration;

/// What gave a response its lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimeSource {
    /// s-maxage (RFC 9111 5.2.2.10).
    SMaxAge,
    /// max-age (5.2.2.1).
    MaxAge,
    /// Expires − Date (5.3), or an Expires that is no date: 0.
    Expires,
    /// The list of negative caching.
    Negative,
    /// A part of Date − Last-Modified (4.2.2).
    Heuristic,
    /// Nothing: the lifetime is 0, or the guaranteed minimum.
    Nothing,
}

impl LifetimeSource {
    /// Whether the origin named the lifetime.
    #[must_use]
    pub const fn is_explicit(self) -> bool {
        matches!(self, Self::SMaxAge | Self::MaxAge | Self::Expires)
    }
}

/// A freshness lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Seconds from the response's generation at the origin.
    pub secs: u64,
    /// Where it comes from.
    pub source: LifetimeSource,
}

/// The lifetime of a response (RFC 9111 4.2.1 and 4.2.2), bounded by the
/// policy's guaranteed minimum and maximum.
///
/// A response without a valid Date counts as generated at `response_time`
/// (RFC 9110 6.6.1). Of several Expires lines the first counts.
#[must_use]
pub fn lifetime(
    status: StatusCode,
    headers: &HeaderMap,
    directives: &ResponseDirectives,
    policy: &CachePolicy,
    response_time: WallTime,
) -> Lifetime {
    let found = explicit(headers, directives, response_time)
        .or_else(|| negative(status, policy))
        .or_else(|| heuristic(status, headers, directives, policy, response_time))
        .unwrap_or(Lifetime {
            secs: 0,
            source: LifetimeSource::Nothing,
        });
    let floor = policy.guaranteed_min.min(policy.guaranteed_max);
    Lifetime {
        secs: found.secs.clamp(floor, policy.guaranteed_max),
        source: found.source,
    }
}

/// The lifetime that the origin named, before any bound.
#[must_use]
pub fn explicit(
    headers: &HeaderMap,
    directives: &ResponseDirectives,
    response_time: WallTime,
) -> Option<Lifetime> {
    let of = |secs: Option<u64>, source| secs.map(|secs| Lifetime { secs, source });
    let expires = || match directives.is_targeted {
        true => None,
        false => expires(headers, response_time),
    };
    of(directives.s_maxage, LifetimeSource::SMaxAge)
        .or_else(|| of(directives.max_age, LifetimeSource::MaxAge))
        .or_else(|| of(expires(), LifetimeSource::Expires))
}

/// Whether a response of this status may be given a heuristic lifetime though
/// it does not say `public` (RFC 9110 15.1).
#[must_use]
pub const fn is_heuristic_status(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
    )
}

/// Seconds of age at `response_time`: corrected_initial_age of RFC 9111 4.2.3.
///
/// The first member of the first Age line counts; one that is no non-negative
/// integer is ignored, and an absurdly large one is lowered to 2^31 (5.1).
#[must_use]
pub fn age_at_receipt(headers: &HeaderMap, request_time: WallTime, response_time: WallTime) -> u64 {
    let generated = date::field(headers, &DATE, response_time).unwrap_or(response_time);
    let apparent = response_time.since(generated).as_secs();
    let delay = response_time.since(request_time).as_secs();
    let corrected = age_value(headers).unwrap_or(0).saturating_add(delay);
    apparent.max(corrected).min(MAX_DELTA)
}

/// Seconds of age at `now` of a response that was `age_at_receipt` old at
/// `response_time` (RFC 9111 4.2.3); at most 2^31.
#[must_use]
pub const fn current_age(age_at_receipt: u64, response_time: WallTime, now: WallTime) -> u64 {
    let age = age_at_receipt.saturating_add(now.since(response_time).as_secs());
    if age < MAX_DELTA { age } else { MAX_DELTA }
}

fn age_value(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(AGE)?.to_str().ok()?;
    delta_seconds(text.split(',').next()?.trim_matches([' ', '\t']))
}

/// Expires − Date; 0 when Expires is no date (RFC 9111 5.3).
fn expires(headers: &HeaderMap, response_time: WallTime) -> Option<u64> {
    let value = headers.get(EXPIRES)?;
    let generated = date::field(headers, &DATE, response_time).unwrap_or(response_time);
    let until = date::parse(value.as_bytes(), response_time);
    Some(until.map_or(0, |until| until.since(generated).as_secs()))
}

fn negative(status: StatusCode, policy: &CachePolicy) -> Option<Lifetime> {
    let secs = policy.negative_lifetime(status.as_u16())?;
    let source = LifetimeSource::Negative;
    Some(Lifetime { secs, source })
}

fn heuristic(
    status: StatusCode,
    headers: &HeaderMap,
    directives: &ResponseDirectives,
    policy: &CachePolicy,
    response_time: WallTime,
) -> Option<Lifetime> {
    if !is_heuristic_status(status) && !directives.public {
        return None;
    }
    let floor = policy.heuristic_min.min(policy.heuristic_max);
    let secs = match date::field(headers, &LAST_MODIFIED, response_time) {
        Some(modified) => {
            // A Date ahead of our clock would lengthen what is a guess anyway.
            let said = date::field(headers, &DATE, response_time).unwrap_or(response_time);
            let generated = said.min(response_time);
            let part = fraction(generated.since(modified), policy.heuristic_lm_factor);
            part.clamp(floor, policy.heuristic_max)
        }
        None if floor == 0 => return None,
        None => floor,
    };
    let source = LifetimeSource::Heuristic;
    Some(Lifetime { secs, source })
}

/// Whole seconds of `factor` of `span`; 0 for a factor that is none.
fn fraction(span: Duration, factor: f64) -> u64 {
    let part = Duration::try_from_secs_f64(span.as_secs_f64() * factor);
    part.map_or(0, |part| part.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::testing::headers;
    use proptest::prelude::*;

    /// 2026-11-30 12:00:00.
    const NOW: WallTime = WallTime::from_secs(1_796_040_000);
    const DATE_NOW: &str = "Mon, 30 Nov 2026 12:00:00 GMT";

    fn lifetime_of(status: u16, lines: &[(&str, &str)], policy: &CachePolicy) -> Lifetime {
        let headers = headers(lines);
        let status = StatusCode::from_u16(status).unwrap();
        let directives = ResponseDirectives::of(&headers);
        lifetime(status, &headers, &directives, policy, NOW)
    }

    fn secs(lines: &[(&str, &str)]) -> u64 {
        lifetime_of(200, lines, &CachePolicy::default()).secs
    }

    fn age(lines: &[(&str, &str)]) -> u64 {
        age_at_receipt(&headers(lines), NOW, NOW)
    }

    #[test]
    fn s_maxage_beats_max_age_beats_expires_rfc_9111_4_2_1() {
        let all = [
            ("date", DATE_NOW),
            ("expires", "Mon, 30 Nov 2026 12:00:30 GMT"),
            ("cache-control", "max-age=20"),
            ("cache-control", "s-maxage=10"),
        ];
        assert_eq!(secs(&all), 10);
        assert_eq!(secs(&all[..3]), 20);
        assert_eq!(secs(&all[..2]), 30);
        assert_eq!(secs(&all[..1]), 0);
        assert_eq!(secs(&[("cache-control", "max-age=0, s-maxage=15")]), 15);
    }

    #[test]
    fn expires_is_relative_to_date_and_expired_when_it_is_no_date() {
        let ahead = ("expires", "Mon, 30 Nov 2026 12:01:00 GMT");
        let rows: [(&[(&str, &str)], u64); 7] = [
            (&[ahead], 60),
            (&[ahead, ("date", "Mon, 30 Nov 2026 12:00:50 GMT")], 10),
            (&[ahead, ("date", "Mon, 30 Nov 2026 13:00:00 GMT")], 0),
            (&[ahead, ("date", "garbage")], 60),
            (&[("expires", "0")], 0),
            (&[("expires", "0"), ahead], 0),
            (&[("expires", "Monday, 30-Nov-26 12:01:00 GMT")], 60),
        ];
        for (lines, lifetime) in rows {
            assert_eq!(secs(lines), lifetime, "{lines:?}");
            let modified = [lines, &[("last-modified", "Mon, 30 Nov 2020 12:00:00 GMT")]].concat();
            assert_eq!(secs(&modified), lifetime, "explicit beats heuristic");
        }
    }

    #[test]
    fn heuristic_is_a_part_of_the_time_since_last_modified_rfc_9111_4_2_2() {
        let hour_ago = ("last-modified", "Mon, 30 Nov 2026 11:00:00 GMT");
        let date = ("date", DATE_NOW);
        let policy = CachePolicy::default();
        let found = lifetime_of(200, &[date, hour_ago], &policy);
        let heuristic = LifetimeSource::Heuristic;
        assert_eq!(
            found,
            Lifetime {
                secs: 360,
                source: heuristic
            }
        );
        let old = ("last-modified", "Mon, 30 Nov 2015 11:00:00 GMT");
        assert_eq!(lifetime_of(200, &[date, old], &policy).secs, 86_400);
        assert_eq!(lifetime_of(302, &[date, old], &policy).secs, 0);
        let public = ("cache-control", "public");
        assert_eq!(lifetime_of(302, &[date, old, public], &policy).secs, 86_400);
        let ahead = ("date", "Mon, 30 Nov 2026 22:00:00 GMT");
        assert_eq!(lifetime_of(200, &[ahead, hour_ago], &policy).secs, 360);
        let future = ("last-modified", "Mon, 30 Nov 2099 11:00:00 GMT");
        assert_eq!(lifetime_of(200, &[date, future], &policy).secs, 0);
        let nothing = lifetime_of(200, &[date], &policy);
        assert_eq!(
            nothing,
            Lifetime {
                secs: 0,
                source: LifetimeSource::Nothing
            }
        );
        let floored = CachePolicy {
            heuristic_min: 70,
            ..policy.clone()
        };
        assert_eq!(lifetime_of(200, &[date], &floored).secs, 70);
        assert_eq!(lifetime_of(302, &[date], &floored).secs, 0);
        for factor in [f64::NAN, -1.0, f64::INFINITY] {
            let policy = CachePolicy {
                heuristic_lm_factor: factor,
                ..policy.clone()
            };
            assert_eq!(lifetime_of(200, &[date, old], &policy).secs, 0);
        }
    }

    #[test]
    fn negative_caching_gives_a_lifetime_where_the_origin_gives_none() {
        let policy = CachePolicy {
            negative: vec![(404, 7), (502, 8)],
            ..CachePolicy::default()
        };
        assert_eq!(lifetime_of(502, &[], &policy).secs, 8);
        assert_eq!(lifetime_of(503, &[], &policy).secs, 0);
        let explicit = [("cache-control", "max-age=60")];
        assert_eq!(lifetime_of(404, &explicit, &policy).secs, 60);
    }

    #[test]
    fn guaranteed_bounds_hold_for_every_lifetime() {
        let policy = CachePolicy {
            guaranteed_min: 10,
            guaranteed_max: 100,
            ..CachePolicy::default()
        };
        let of = |value| lifetime_of(200, &[("cache-control", value)], &policy).secs;
        assert_eq!(
            (of("max-age=1"), of("max-age=50"), of("max-age=500")),
            (10, 50, 100)
        );
        assert_eq!(of("x"), 10);
        let crossed = CachePolicy {
            guaranteed_min: 200,
            ..policy.clone()
        };
        assert_eq!(lifetime_of(200, &[], &crossed).secs, 100);
    }

    /// reported.md, `Age: 7200.0` and its kind; RFC 9111 5.1.
    #[test]
    fn hostile_age_values_are_ignored_or_lowered() {
        let rows: [(&[(&str, &str)], u64); 12] = [
            (&[("age", "7200")], 7200),
            (&[("age", " 7200 ")], 7200),
            (&[("age", "7200.0")], 0),
            (&[("age", "-5")], 0),
            (&[("age", "+5")], 0),
            (&[("age", "")], 0),
            (&[("age", "2147483648")], MAX_DELTA),
            (&[("age", "99999999999999999999999")], MAX_DELTA),
            (&[("age", "7200"), ("age", "0")], 7200),
            (&[("age", "7200, 0")], 7200),
            (&[("age", "x, 7200")], 0),
            (&[("age", "7200;a")], 0),
        ];
        for (lines, expected) in rows {
            assert_eq!(age(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn age_counts_date_delay_and_time_in_the_cache_rfc_9111_4_2_3() {
        let minute_ago = ("date", "Mon, 30 Nov 2026 11:59:00 GMT");
        assert_eq!(age(&[minute_ago]), 60);
        assert_eq!(age(&[minute_ago, ("age", "100")]), 100);
        assert_eq!(age(&[("date", "Mon, 30 Nov 2026 13:00:00 GMT")]), 0);
        let asked = WallTime::from_secs(NOW.as_secs() - 7);
        assert_eq!(age_at_receipt(&headers(&[("age", "5")]), asked, NOW), 12);
        let later = WallTime::from_millis(NOW.as_millis() + 2999);
        assert_eq!(current_age(12, NOW, later), 14);
        assert_eq!(current_age(12, NOW, WallTime::default()), 12);
        assert_eq!(current_age(u64::MAX, NOW, later), MAX_DELTA);
    }

    proptest! {
        #[test]
        fn arithmetic_never_overflows(
            age in "[0-9.,-]{0,24}", date in any::<u64>(), now in any::<u64>(), then in any::<u64>(),
        ) {
            let date = date::format(WallTime::from_millis(date));
            let headers = headers(&[("age", &age), ("date", &date), ("expires", &date)]);
            let (now, then) = (WallTime::from_millis(now), WallTime::from_millis(then));
            let at_receipt = age_at_receipt(&headers, then, now);
            prop_assert!(current_age(at_receipt, then, now) <= MAX_DELTA);
            let policy = CachePolicy::default();
            let found = lifetime(StatusCode::OK, &headers, &ResponseDirectives::of(&headers), &policy, now);
            prop_assert!(found.secs <= policy.guaranteed_max);
        }
    }
}
