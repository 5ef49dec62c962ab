//! Faults of a span, each kind against a limit of its own.

use std::sync::atomic::{AtomicU64, Ordering};

/// Faults of one kind, and how many of them take the span out of use.
#[derive(Debug)]
pub(super) struct Tally {
    count: AtomicU64,
    /// 0 is no limit.
    limit: AtomicU64,
}

impl Tally {
    /// None yet, against `limit`.
    pub(super) fn new(limit: u32) -> Self {
        Self {
            count: AtomicU64::new(0),
            limit: AtomicU64::new(limit.into()),
        }
    }

    /// Another limit; one that is reached already holds at the next fault.
    pub(super) fn set_limit(&self, limit: u32) {
        self.limit.store(limit.into(), Ordering::Relaxed);
    }

    /// Faults so far.
    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts one more; whether there are too many now.
    pub(super) fn add(&self) -> bool {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let limit = self.limit.load(Ordering::Relaxed);
        limit != 0 && count >= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_too_many_from_the_limit_on_and_never_without_one() {
        let tally = Tally::new(3);
        assert_eq!(
            [tally.add(), tally.add(), tally.add()],
            [false, false, true]
        );
        tally.set_limit(0);
        assert!(!tally.add());
        tally.set_limit(2);
        assert!(tally.add());
        assert_eq!(tally.count(), 5);
    }
}
