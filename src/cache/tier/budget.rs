//! How much may be written to a device of the fast tier: a token bucket of
//! bytes.

use crate::base::clock::MonoTime;
use std::time::Duration;

/// Nanoseconds of a day.
const DAY: i128 = 86_400_000_000_000;

/// Bytes a day, and a burst beyond them. What must be written is written and
/// charged, even below zero; what may be left out asks first.
#[derive(Clone, Debug)]
pub(crate) struct WriteBudget {
    /// Bytes a day; 0 is no limit.
    per_day: u64,
    burst: u64,
    /// Bytes left, times the nanoseconds of a day: nothing is lost by
    /// rounding, however often it is asked.
    left: i128,
    /// When `left` was true.
    at: MonoTime,
}

impl WriteBudget {
    /// A budget of `per_day` bytes a day (0: no limit), with `burst` bytes at
    /// once.
    pub(crate) fn new(now: MonoTime, per_day: u64, burst: u64) -> Self {
        Self {
            per_day,
            burst,
            left: scaled(burst),
            at: now,
        }
    }

    /// Other limits from now on; what is left is kept, up to the new burst. A
    /// budget that had no limit begins with its burst.
    pub(crate) fn configure(&mut self, now: MonoTime, per_day: u64, burst: u64) {
        if self.per_day == 0 {
            *self = Self::new(now, per_day, burst);
            return;
        }
        self.refill(now);
        self.per_day = per_day;
        self.burst = burst;
        self.left = self.left.min(scaled(burst));
    }

    /// Takes `bytes` if they are there: all or nothing.
    pub(crate) fn take(&mut self, now: MonoTime, bytes: u64) -> bool {
        let fits = self.has_room(now, bytes);
        if fits && self.per_day > 0 {
            self.left -= scaled(bytes);
        }
        fits
    }

    /// Whether `bytes` are left.
    pub(crate) fn has_room(&mut self, now: MonoTime, bytes: u64) -> bool {
        if self.per_day == 0 {
            return true;
        }
        self.refill(now);
        self.left >= scaled(bytes)
    }

    /// Bytes left; `None` without a limit.
    pub(crate) fn left(&mut self, now: MonoTime) -> Option<u64> {
        if self.per_day == 0 {
            return None;
        }
        self.refill(now);
        Some(u64::try_from(self.left / DAY).unwrap_or(0))
    }

    /// Bytes left, less than none if some are owed; `None` without a limit.
    pub(crate) fn balance(&mut self, now: MonoTime) -> Option<i64> {
        if self.per_day == 0 {
            return None;
        }
        self.refill(now);
        Some(i64::try_from(self.left.div_euclid(DAY)).unwrap_or(i64::MAX))
    }

    /// Goes on from a balance of so long ago.
    pub(crate) fn resume(&mut self, balance: i64, ago: Duration) {
        let owed_most = -scaled(self.per_day);
        self.left = (i128::from(balance) * DAY).max(owed_most);
        self.gain(ago);
    }

    /// Takes `bytes` that are written in any case. The debt is a day's bytes
    /// at most.
    pub(crate) fn charge(&mut self, now: MonoTime, bytes: u64) {
        if self.per_day == 0 {
            return;
        }
        self.refill(now);
        self.left = (self.left - scaled(bytes)).max(-scaled(self.per_day));
    }

    /// Gives back what was taken and not written.
    pub(crate) fn give_back(&mut self, bytes: u64) {
        self.left = (self.left + scaled(bytes)).min(scaled(self.burst));
    }

    fn refill(&mut self, now: MonoTime) {
        self.gain(now.since(self.at));
        self.at = self.at.max(now);
    }

    fn gain(&mut self, time: Duration) {
        let time = i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
        let more = time.saturating_mul(i128::from(self.per_day));
        self.left = self.left.saturating_add(more).min(scaled(self.burst));
    }
}

fn scaled(bytes: u64) -> i128 {
    i128::from(bytes) * DAY
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(hours: u32) -> MonoTime {
        MonoTime::default().plus(HOUR * hours)
    }

    #[test]
    fn the_burst_goes_at_once_and_the_day_s_share_comes_back_evenly() {
        let mut budget = WriteBudget::new(at(0), 2400, 100);
        assert!(budget.take(at(0), 60));
        assert!(!budget.take(at(0), 41), "all or nothing");
        assert!(budget.take(at(0), 40));
        assert!(!budget.take(at(0), 1));
        assert!(!budget.has_room(at(0), 1));
        assert!(budget.take(at(1), 100));
        assert!(!budget.take(at(1), 1));
        assert!(
            budget.take(at(1000), 100),
            "no more than the burst is saved"
        );
        assert!(!budget.take(at(1000), 1));
    }

    #[test]
    fn a_day_never_gives_more_than_its_bytes_and_a_burst_however_it_is_asked() {
        let mut budget = WriteBudget::new(at(0), 1_000_003, 5000);
        let mut taken = 0_u64;
        let step = Duration::from_nanos(86_400_000_000_000 / 100_000);
        for n in 0..100_000 {
            let now = MonoTime::default().plus(step * n);
            while budget.take(now, 7) {
                taken += 7;
            }
        }
        assert!((1_000_003..=1_005_003).contains(&taken), "{taken}");
    }

    #[test]
    fn what_must_be_written_is_owed_for_a_day_at_most() {
        let mut budget = WriteBudget::new(at(0), 2400, 100);
        budget.charge(at(0), 200);
        assert!(!budget.take(at(1), 1), "200 - 100 were owed");
        assert!(budget.take(at(2), 100));
        budget.charge(at(2), u64::MAX);
        assert!(!budget.take(at(26), 1));
        assert!(budget.take(at(27), 100));
    }

    #[test]
    fn without_a_limit_everything_fits_and_a_limit_set_later_begins_with_its_burst() {
        let mut budget = WriteBudget::new(at(0), 0, 0);
        budget.charge(at(0), 1 << 50);
        assert!(budget.take(at(0), u64::MAX) && budget.has_room(at(0), 1));
        budget.configure(at(0), 2400, 100);
        assert!(budget.take(at(0), 100) && !budget.take(at(0), 1));
        budget.configure(at(1), 2400, 50);
        assert!(!budget.take(at(1), 51));
        assert!(budget.take(at(1), 50));
    }

    #[test]
    fn a_budget_that_is_resumed_has_what_was_left_and_what_came_since() {
        for (spent, balance, hours, left) in [
            (100, 0, 0, 0),
            (100, 0, 1, 100),
            (40, 60, 0, 60),
            (0, 100, 5, 100),
            (250, -150, 1, 0),
            (250, -150, 2, 50),
        ] {
            let mut before = WriteBudget::new(at(0), 2400, 100);
            before.charge(at(0), spent);
            assert_eq!(before.balance(at(0)), Some(balance));
            let mut again = WriteBudget::new(at(7), 2400, 100);
            again.resume(balance, HOUR * hours);
            assert_eq!(again.left(at(7)), Some(left), "{spent} {hours}");
        }
        let mut again = WriteBudget::new(at(7), 2400, 100);
        again.resume(i64::MIN, Duration::ZERO);
        assert_eq!(again.balance(at(7)), Some(-2400));
        assert_eq!(WriteBudget::new(at(0), 0, 0).balance(at(0)), None);
    }

    #[test]
    fn what_was_not_written_is_given_back() {
        let mut budget = WriteBudget::new(at(0), 2400, 100);
        assert!(budget.take(at(0), 100));
        budget.give_back(30);
        assert!(budget.take(at(0), 30) && !budget.take(at(0), 1));
    }

    #[test]
    fn a_clock_that_stands_or_goes_back_gives_nothing() {
        let mut budget = WriteBudget::new(at(5), 2400, 100);
        assert!(budget.take(at(5), 100));
        assert!(!budget.take(at(1), 1));
        assert!(budget.take(at(6), 100));
    }
}
