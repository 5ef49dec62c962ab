//! The only place that reads a clock; everything else is handed `now`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A point of wall-clock time, in milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(u64);

impl WallTime {
    /// The point `millis` milliseconds after the epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// The point `secs` seconds after the epoch; saturates.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1000))
    }

    /// Whole milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    #[must_use]
    pub const fn as_secs(self) -> u64 {
        self.0 / 1000
    }

    /// The time from `earlier` to `self`, or zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// A point of monotonic time, in nanoseconds since the clock was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonoTime(u64);

impl MonoTime {
    /// The point `nanos` nanoseconds after the clock was made.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock was made.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`, or zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The point `after` later than `self`; saturates.
    #[must_use]
    pub fn plus(self, after: Duration) -> Self {
        let nanos = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

/// Where time comes from: the system in production, the test's hand elsewhere.
pub trait Clock: Send + Sync {
    /// The wall-clock time, which an administrator may step.
    fn wall(&self) -> WallTime;

    /// The monotonic time, which never goes back.
    fn mono(&self) -> MonoTime;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts at zero now.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "base::clock is the one place that reads a clock"
    )]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "base::clock is the one place that reads a clock"
    )]
    fn wall(&self) -> WallTime {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        WallTime(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
    }

    fn mono(&self) -> MonoTime {
        MonoTime::default().plus(self.start.elapsed())
    }
}

/// A clock that moves only when told to, for tests and simulation.
#[derive(Debug, Default)]
pub struct ManualClock {
    wall_ms: AtomicU64,
    mono_ns: AtomicU64,
}

impl ManualClock {
    /// A clock that stands at `wall`, its monotonic time at zero.
    #[must_use]
    pub fn at(wall: WallTime) -> Self {
        Self {
            wall_ms: AtomicU64::new(wall.as_millis()),
            mono_ns: AtomicU64::new(0),
        }
    }

    /// Moves both times forward.
    pub fn advance(&self, by: Duration) {
        let millis = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        let nanos = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.wall_ms.fetch_add(millis, Ordering::Relaxed);
        self.mono_ns.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> WallTime {
        WallTime(self.wall_ms.load(Ordering::Relaxed))
    }

    fn mono(&self) -> MonoTime {
        MonoTime(self.mono_ns.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_clock_moves_both_times_by_the_same_step() {
        let clock = ManualClock::at(WallTime::from_secs(100));
        clock.advance(Duration::from_millis(2500));
        assert_eq!(clock.wall(), WallTime::from_millis(102_500));
        assert_eq!(clock.mono(), MonoTime::from_nanos(2_500_000_000));
    }

    #[test]
    fn differences_to_a_later_point_are_zero() {
        let early = WallTime::from_secs(1);
        let late = WallTime::from_secs(2);
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(late.since(early), Duration::from_secs(1));
    }

    #[test]
    fn system_clock_is_monotonic_and_after_2020() {
        let clock = SystemClock::new();
        let first = clock.mono();
        assert!(clock.mono() >= first);
        assert!(clock.wall().as_secs() > 1_577_836_800);
    }
}
