//! What is written to a stripe of the fast tier, and why.

use super::live::LiveStripe;
use crate::base::size::round_up;
use crate::cache::format::dir_entry::BLOCK_BYTES;
use crate::cache::format::fragment::fragment_bytes;
use crate::cache::format::to_u64;
use crate::cache::stripe::{Cause, NewFragment};
use crate::cache::tier::WriteCause;
use crate::metrics::Metric;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes of a stripe's log so far, since it was begun.
#[derive(Debug, Default)]
pub(super) struct Wear {
    /// Of fragments that were appended.
    appended: AtomicU64,
    /// Of batches that were written.
    written: AtomicU64,
    /// Beside the fragments, as far as it was counted.
    beside: AtomicU64,
    /// Of fragments that were appended again before the cursor came.
    evacuated: AtomicU64,
}

/// Evacuated bytes are one of so many appended ones at most.
const EVACUATED_SHARE: u64 = 10;

impl Wear {
    fn append(&self, bytes: u64) {
        self.appended.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes fragments that were appended and could not be written.
    fn lose(&self, bytes: u64) {
        self.appended.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether `bytes` more may be evacuated.
    fn may_evacuate(&self, bytes: u64) -> bool {
        let evacuated = self.evacuated.load(Ordering::Relaxed) + bytes;
        evacuated <= self.appended.load(Ordering::Relaxed) / EVACUATED_SHARE
    }

    /// Notes a batch; gives the bytes beside fragments that are known of only
    /// now. Fragments that wait in the buffer hide some for a while.
    fn write(&self, bytes: u64) -> u64 {
        let written = self.written.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let beside = written.saturating_sub(self.appended.load(Ordering::Relaxed));
        let before = self.beside.fetch_max(beside, Ordering::Relaxed);
        beside.saturating_sub(before)
    }
}

/// Bytes that a fragment takes in a log.
pub(in crate::cache) fn log_bytes_of(meta: usize, body: usize) -> u64 {
    round_up(to_u64(fragment_bytes(meta, body)), BLOCK_BYTES)
}

impl LiveStripe {
    /// Takes `bytes` of what may be written to the span, if they are left.
    pub(in crate::cache) fn take_budget(&self, bytes: u64) -> bool {
        self.span.budget().take(self.now(), bytes)
    }

    /// Gives back bytes that were taken and not written.
    pub(in crate::cache) fn return_budget(&self, bytes: u64) {
        self.span.budget().give_back(bytes);
    }

    /// Whether anything is left of what may be written to the span.
    pub(in crate::cache) fn has_budget(&self) -> bool {
        self.has_budget_for(1)
    }

    fn has_budget_for(&self, bytes: u64) -> bool {
        self.span.budget().has_room(self.now(), bytes)
    }

    /// Whether `bytes` more may be written again before the cursor comes. The
    /// budget is charged with them once they are, and wherever that is.
    pub(in crate::cache) fn may_evacuate(&self, bytes: u64) -> bool {
        self.wear.may_evacuate(bytes) && (!self.is_fast() || self.has_budget_for(bytes))
    }

    /// Counts a fragment that was appended, and charges it to the budget, unless
    /// that was taken before.
    pub(super) fn note_append(&self, new: &NewFragment<'_>, cause: WriteCause) {
        let body = new.body.iter().map(bytes::Bytes::len).sum();
        let bytes = log_bytes_of(new.meta.len(), body);
        self.wear.append(bytes);
        if cause == WriteCause::Evacuation {
            self.wear.evacuated.fetch_add(bytes, Ordering::Relaxed);
            self.counters.add(Metric::CacheEvacuatedBytes, bytes);
            self.counters.add(Metric::CacheEvacuatedFragments, 1);
        }
        if !self.is_fast() {
            return;
        }
        self.counters.add(cause.fast_bytes(), bytes);
        if cause != WriteCause::Promotion {
            self.span.budget().charge(self.now(), bytes);
        }
    }

    /// Notes fragments that could not be written.
    pub(super) fn note_lost(&self, bytes: u64) {
        self.wear.lose(bytes);
    }

    /// Counts what a plan has written.
    pub(super) fn note_written(&self, cause: Cause, bytes: u64) {
        self.span.note_written(bytes);
        if !self.is_fast() {
            return;
        }
        let (metric, bytes) = match cause {
            Cause::Batch => (Metric::TierFastWrittenLog, self.wear.write(bytes)),
            Cause::Ring | Cause::Pages | Cause::PageTable | Cause::Header | Cause::Flush => {
                (Metric::TierFastWrittenSync, bytes)
            }
        };
        self.counters.add(metric, bytes);
        self.span.budget().charge(self.now(), bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beside_the_fragments_is_counted_once_all_is_written() {
        let wear = Wear::default();
        wear.append(1000);
        assert_eq!(wear.write(1500), 500);
        wear.append(4000);
        assert_eq!(wear.write(700), 0, "hidden by what waits");
        assert_eq!(wear.write(4000), 700);
        assert_eq!(wear.write(512), 512);
    }

    #[test]
    fn fragments_that_could_not_be_written_hide_nothing_of_what_is_beside_others() {
        let wear = Wear::default();
        wear.append(4000);
        wear.lose(4000);
        wear.append(1000);
        assert_eq!(wear.write(1500), 500);
    }

    #[test]
    fn a_tenth_of_what_is_appended_may_be_evacuated() {
        let wear = Wear::default();
        assert!(!wear.may_evacuate(1));
        wear.append(10_000);
        assert!(wear.may_evacuate(1000) && !wear.may_evacuate(1001));
        wear.evacuated.fetch_add(900, Ordering::Relaxed);
        assert!(wear.may_evacuate(100) && !wear.may_evacuate(101));
    }
}
