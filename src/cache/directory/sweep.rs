//! The hand that clears what the cursor has passed.
//!
//! An entry that stays for a whole cycle after it became invalid would look
//! valid again, its parity having come round. The hand goes round in 8/9 of a
//! cycle, so none does.

use super::Directory;
use crate::base::planted::{Planted, is_planted};
use crate::cache::format::dir_entry::DirEntry;
use crate::cache::format::directory_page::PAGE_BUCKETS;
use crate::cache::format::to_usize;
use std::sync::atomic::Ordering;

/// The hand's place, and what it owes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hand {
    bucket: u64,
    /// Log bytes gone that have not moved the hand yet, times 9 × buckets.
    owed: u128,
}

impl Hand {
    /// Moves on as the cursor did, by `bytes` of log, skipped ones counted.
    pub fn advance(&mut self, directory: &Directory, bytes: u64) {
        if is_planted(Planted::HandStands) {
            return;
        }
        let buckets = u64::from(directory.pages()) * PAGE_BUCKETS;
        let step = u128::from(directory.log().bytes) * 8;
        self.owed += u128::from(bytes) * 9 * u128::from(buckets);
        let due = u64::try_from(self.owed / step).unwrap_or(u64::MAX);
        self.owed %= step;
        for _ in 0..due.min(buckets) {
            directory.sweep_bucket(self.bucket);
            self.bucket = (self.bucket + 1) % buckets;
        }
    }
}

impl Directory {
    fn sweep_bucket(&self, bucket: u64) {
        let (cursor, log) = (self.cursor(), self.log());
        let Some(slots) = self.buckets.all().get(to_usize(bucket)) else {
            return;
        };
        let mut changed = false;
        for slot in slots {
            let entry = DirEntry::from_bits(slot.load(Ordering::Acquire));
            if !entry.is_free() && log.position(entry, cursor).is_none() {
                self.note_pins(entry, DirEntry::FREE);
                slot.store(DirEntry::FREE.bits(), Ordering::Release);
                changed = true;
            }
        }
        if changed {
            self.mark_dirty(u32::try_from(bucket / PAGE_BUCKETS).unwrap_or(u32::MAX));
        }
    }
}
