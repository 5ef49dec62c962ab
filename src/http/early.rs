//! When a response is asked for again though it is still fresh, so that it
//! need not expire under load (`http.cache.fuzz.*`).

use super::reuse::Facts;
use crate::base::clock::WallTime;

/// The records of early refreshes. Times are in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EarlyRefresh {
    /// `http.cache.fuzz.time`: the longest window before the expiry; 0 is none.
    pub time: u64,
    /// `http.cache.fuzz.min_time`: the window of the shortest lifetimes; 0
    /// gives all the longest one.
    pub min_time: u64,
    /// `http.cache.fuzz.probability`: the part of the requests within the
    /// window that cause a refresh.
    pub probability: f64,
}

impl EarlyRefresh {
    /// Whether any request may cause one, so that it has to draw a number.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.time > 0 && self.probability > 0.0
    }

    /// Whether a request that drew `draw` causes one: of all numbers that can
    /// be drawn, the lowest ones do.
    #[must_use]
    pub fn is_due(&self, facts: &Facts, draw: u32, now: WallTime) -> bool {
        self.is_on()
            && facts.ttl(now) <= self.window(facts.lifetime.secs)
            && f64::from(draw) / 4_294_967_296.0 < self.probability
    }

    /// Seconds before the expiry from which on it may be: those of the shortest
    /// lifetimes are few, and double with each `time` that a lifetime is longer.
    fn window(&self, lifetime: u64) -> u64 {
        if self.min_time == 0 {
            return self.time;
        }
        let doublings = u32::try_from(lifetime / self.time.max(1)).unwrap_or(u32::MAX);
        let factor = 2_u64.checked_pow(doublings).unwrap_or(u64::MAX);
        self.min_time.saturating_mul(factor).min(self.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::freshness::{Lifetime, LifetimeSource};

    fn facts(lifetime: u64) -> Facts {
        Facts {
            response_time: WallTime::from_secs(0),
            age_at_receipt: 0,
            lifetime: Lifetime {
                secs: lifetime,
                source: LifetimeSource::MaxAge,
            },
            no_cache: false,
            must_revalidate: false,
            s_maxage: false,
            immutable: false,
            stale_while_revalidate: None,
            stale_if_error: None,
        }
    }

    #[test]
    fn the_window_grows_with_the_lifetime_from_the_least_to_the_longest() {
        let early = |time, min_time| EarlyRefresh {
            time,
            min_time,
            probability: 1.0,
        };
        for (lifetime, expected) in [
            (10, 30),
            (240, 60),
            (500, 120),
            (10_000, 240),
            (u64::MAX, 240),
        ] {
            assert_eq!(early(240, 30).window(lifetime), expected, "{lifetime}");
        }
        assert_eq!(early(240, 0).window(10), 240);
        assert_eq!(early(10, 60).window(10), 10);
        assert_eq!(early(0, 60).window(10), 0);
    }

    #[test]
    fn only_those_are_due_that_are_in_the_window_and_drew_a_low_number() {
        let early = EarlyRefresh {
            time: 20,
            min_time: 0,
            probability: 0.25,
        };
        let due = |early: EarlyRefresh, draw, secs| {
            early.is_due(&facts(100), draw, WallTime::from_secs(secs))
        };
        let quarter = 1 << 30;
        assert!(due(early, quarter - 1, 80) && due(early, 0, 99));
        assert!(!due(early, quarter, 99) && !due(early, 0, 79));
        for off in [
            EarlyRefresh { time: 0, ..early },
            EarlyRefresh {
                probability: 0.0,
                ..early
            },
            EarlyRefresh {
                probability: f64::NAN,
                ..early
            },
        ] {
            assert!(!due(off, 0, 99), "{off:?}");
        }
        let always = EarlyRefresh {
            probability: 1.0,
            ..early
        };
        assert!(due(always, u32::MAX, 99));
    }
}
