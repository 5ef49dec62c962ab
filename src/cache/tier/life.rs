//! What a device of the fast tier was written to in its life, and what may be
//! written to it yet.

/// Bytes written to a span, and the seconds that it was in use for that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) written: u64,
    pub(crate) seconds: u64,
}

/// What was left of a span's write budget at a moment; less than nothing is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) bytes: i64,
    /// Unix time in seconds.
    pub(crate) at_s: u64,
}

/// What is remembered of a span's writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Writes {
    pub(crate) life: Life,
    /// `None` without a limit.
    pub(crate) left: Option<Left>,
}

impl Writes {
    /// As they are kept: life, bytes left, when; all little-endian. Without a
    /// limit the life alone.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.life.to_bytes().to_vec();
        if let Some(left) = self.left {
            bytes.extend(left.bytes.to_le_bytes());
            bytes.extend(left.at_s.to_le_bytes());
        }
        bytes
    }

    /// What was kept; nothing if that is none.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Self {
        let (life, left) = bytes.split_at_checked(16).unwrap_or_default();
        let left = left.split_at_checked(8).and_then(|(bytes, at_s)| {
            Some(Left {
                bytes: i64::from_le_bytes(bytes.try_into().ok()?),
                at_s: u64::from_le_bytes(at_s.try_into().ok()?),
            })
        });
        Self {
            life: Life::of_bytes(life),
            left,
        }
    }
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

    fn to_bytes(self) -> [u8; 16] {
        let both = u128::from(self.written) << 64 | u128::from(self.seconds);
        both.to_le_bytes()
    }

    fn of_bytes(bytes: &[u8]) -> Self {
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
        let owed = Left {
            bytes: -7,
            at_s: u64::MAX,
        };
        for left in [None, Some(owed)] {
            let writes = Writes { life, left };
            assert_eq!(Writes::of_bytes(&writes.to_bytes()), writes);
        }
        for none in [&b"else"[..], b"", &[1; 15]] {
            assert_eq!(Writes::of_bytes(none), Writes::default());
        }
        let half = [&life.to_bytes()[..], b"half"].concat();
        assert_eq!(Writes::of_bytes(&half), Writes { life, left: None });
    }
}
