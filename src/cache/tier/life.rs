//! What a device of the fast tier was written to in its life.

/// Bytes written to a span, and the seconds that it was in use for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) written: u64,
    pub(crate) seconds: u64,
}

impl Life {
    /// The life that went on by `more`.
    pub(crate) const fn plus(self, more: Self) -> Self {
        Self {
            written: self.written.saturating_add(more.written),
            seconds: self.seconds.saturating_add(more.seconds),
        }
    }

    /// Whole days of use until `endurance` bytes are written, if it goes on as
    /// it did so far; `None` while nothing was written.
    pub(crate) fn days_to(self, endurance: u64) -> Option<u64> {
        let left = u128::from(endurance.saturating_sub(self.written));
        let seconds = left * u128::from(self.seconds);
        let days = seconds.checked_div(self.written.into())? / 86_400;
        Some(u64::try_from(days).unwrap_or(u64::MAX))
    }

    /// As it is kept.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        let both = u128::from(self.written) << 64 | u128::from(self.seconds);
        both.to_le_bytes()
    }

    /// What was kept; nothing if that is none.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        let both = bytes.try_into().map_or(0, u128::from_le_bytes);
        let [seconds, written] = [both, both >> 64].map(|part| part & u128::from(u64::MAX));
        Self {
            written: u64::try_from(written).unwrap_or(u64::MAX),
            seconds: u64::try_from(seconds).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    #[test]
    fn the_days_left_follow_from_all_that_was_written() {
        let life = Life {
            written: 1000,
            seconds: 10 * DAY,
        };
        assert_eq!(life.days_to(3000), Some(20));
        let busy = life.plus(Life {
            written: 1000,
            seconds: 0,
        });
        assert_eq!(busy.days_to(3000), Some(5));
        assert_eq!(busy.days_to(1999), Some(0), "it is worn out");
        assert_eq!(Life::default().days_to(3000), None);
        let endless = Life {
            written: 1,
            seconds: u64::MAX,
        };
        assert_eq!(endless.days_to(u64::MAX), Some(u64::MAX));
    }

    #[test]
    fn a_life_is_kept_whole_and_what_is_none_is_a_new_one() {
        let life = Life {
            written: u64::MAX - 3,
            seconds: 5,
        };
        assert_eq!(Life::of_bytes(&life.to_bytes()), life);
        assert_eq!(Life::of_bytes(b"else"), Life::default());
    }
}
