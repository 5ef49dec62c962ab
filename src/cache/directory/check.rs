//! Counts what a directory holds, and looks for what it must not hold.

use super::Directory;
use crate::cache::format::dir_entry::DirEntry;
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
}

impl Directory {
    /// Reads every slot; for status and tools, not for a request.
    #[must_use]
    pub fn census(&self) -> Census {
        let mut census = Census::default();
        let (log, cursor) = (self.log(), self.cursor());
        for bucket in self.buckets.all() {
            for slot in bucket {
                let entry = DirEntry::from_bits(slot.load(Ordering::Acquire));
                census.slots += 1;
                if log.position(entry, cursor).is_some() {
                    census.valid += 1;
                    census.heads += u64::from(entry.is_head());
                    census.bytes += entry.size();
                } else if !entry.is_free() {
                    census.passed += 1;
                }
            }
        }
        census
    }
}
