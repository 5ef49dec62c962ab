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
}

impl Wear {
    fn append(&self, bytes: u64) {
        self.appended.fetch_add(bytes, Ordering::Relaxed);
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
    /// Counts a fragment that was appended. The budget of a promotion was
    /// asked before; the rest is charged to it.
    pub(super) fn note_append(&self, new: &NewFragment<'_>, cause: WriteCause) {
        if !self.is_fast() {
            return;
        }
        let body = new.body.iter().map(bytes::Bytes::len).sum();
        let bytes = log_bytes_of(new.meta.len(), body);
        self.wear.append(bytes);
        self.counters.add(cause.fast_bytes(), bytes);
        if cause != WriteCause::Promotion {
            self.span.budget().charge(self.now(), bytes);
        }
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
}
