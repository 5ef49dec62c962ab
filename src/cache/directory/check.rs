//! Counts what a directory holds, and looks for what it must not hold.

use super::{Directory, Home};
use crate::cache::format::dir_entry::DirEntry;
use crate::cache::format::directory_page::PAGE_BUCKETS;
use std::sync::atomic::Ordering;

/// What is in the slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Slots there are.
    pub slots: u64,
    /// Entries that the cursor has not passed.
    pub valid: u64,
    /// Those of them that lead to a head: objects.
    pub heads: u64,
    /// Entries that the hand has yet to clear.
    pub passed: u64,
    /// Bytes that the valid entries' sizes add up to.
    pub bytes: u64,
    /// Entries that name a place twice: a fault of ours.
    pub doubled: u64,
}

impl Directory {
    /// Reads every slot; for status, tools and tests, not for a request.
    #[must_use]
    pub fn census(&self) -> Census {
        let mut census = Census::default();
        let (log, cursor) = (self.log(), self.cursor());
        for (at, bucket) in (0u64..).zip(self.buckets.all()) {
            for slot in bucket {
                let entry = DirEntry::from_bits(slot.load(Ordering::Acquire));
                census.slots += 1;
                if log.position(entry, cursor).is_some() {
                    census.valid += 1;
                    census.heads += u64::from(entry.is_head());
                    census.bytes += entry.size();
                    census.doubled += u64::from(self.count_of(at, entry) > 1);
                } else if !entry.is_free() {
                    census.passed += 1;
                }
            }
        }
        census
    }

    /// How often an entry of the bucket is in its two buckets.
    fn count_of(&self, bucket: u64, entry: DirEntry) -> usize {
        let page = u32::try_from(bucket / PAGE_BUCKETS).unwrap_or(0);
        let within = u16::try_from(bucket % PAGE_BUCKETS).unwrap_or(0);
        let home = Home::of_entry(page, within, entry.tag());
        let slots = home.buckets.into_iter().flat_map(|b| self.slots(page, b));
        slots
            .map(|slot| DirEntry::from_bits(slot.load(Ordering::Acquire)))
            .filter(|other| other.same_place(entry))
            .count()
    }
}
