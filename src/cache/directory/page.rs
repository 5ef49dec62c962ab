//! Whole pages: out to a directory copy, and back at a start.

use super::Directory;
use super::buckets::{BUCKET_SLOTS, Bucket};
use super::kept::Kept;
use crate::cache::format::dir_entry::DirEntry;
use crate::cache::format::directory_page::{PAGE_BUCKETS, VerifiedPage};
use crate::cache::format::to_usize;
use std::sync::atomic::Ordering;
use zerocopy::little_endian::U64;

impl Directory {
    /// The page's slots, in order.
    pub(crate) fn page_slots(&self, page: u32) -> impl Iterator<Item = u64> {
        let first = to_usize(u64::from(page) * PAGE_BUCKETS);
        let buckets = &self.buckets.all()[first..first + to_usize(PAGE_BUCKETS)];
        let slots = buckets.iter().flatten();
        slots.map(|slot| slot.load(Ordering::Acquire))
    }

    /// Whether the page changed since it was taken for copy 0 or 1; from now
    /// on it has not.
    pub(crate) fn take_dirty(&self, page: u32, copy: u8) -> bool {
        let bit = 1u8 << (copy & 1);
        let dirty = &self.dirty[to_usize(u64::from(page))];
        dirty.fetch_and(!bit, Ordering::Relaxed) & bit != 0
    }

    /// Notes that copy 0 or 1 may lack the page after all.
    pub(crate) fn mark_page_missing(&self, page: u32, copy: u8) {
        let dirty = &self.dirty[to_usize(u64::from(page))];
        dirty.fetch_or(1 << (copy & 1), Ordering::Relaxed);
    }

    /// Notes that a copy lacks the page after all.
    pub(crate) fn mark_page_dirty(&self, page: u32) {
        self.mark_dirty(page);
    }

    /// Whether the page's entries may be used.
    pub(crate) fn is_open(&self, page: u32) -> bool {
        self.open[to_usize(u64::from(page))].load(Ordering::Acquire)
    }

    /// Lets the page's entries be used: all that there is to know of them is
    /// in it.
    pub(crate) fn open(&self, page: u32) {
        self.open[to_usize(u64::from(page))].store(true, Ordering::Release);
    }

    /// Has the system gather the memory into huge pages behind: all pages are
    /// filled.
    pub(crate) fn gather(&self) {
        self.buckets.gather();
    }

    /// Fills an empty page from a directory copy: what was valid at the copy's
    /// cursor and has not been passed since.
    pub(crate) fn load_page(&self, page: u32, copy: &VerifiedPage<'_>) {
        let kept = Kept::between(self.log(), copy.cursor, self.cursor());
        let first = to_usize(u64::from(page) * PAGE_BUCKETS);
        let buckets = &self.buckets.all()[first..first + to_usize(PAGE_BUCKETS)];
        for (bucket, slots) in buckets.iter().zip(copy.slots().as_chunks().0) {
            self.load_bucket(bucket, slots, kept);
        }
    }

    fn load_bucket(&self, bucket: &Bucket, slots: &[U64; BUCKET_SLOTS], kept: Kept) {
        let mut seen = 0;
        for (slot, bits) in bucket.iter().zip(slots) {
            // Stored in any case: whether one is kept is hard to foresee.
            let entry = kept.only(DirEntry::from_bits(bits.get()));
            slot.store(entry.bits(), Ordering::Release);
            seen |= entry.bits();
        }
        if DirEntry::from_bits(seen).is_pinned() {
            let entries = bucket.iter().map(|slot| slot.load(Ordering::Relaxed));
            entries.for_each(|bits| self.note_pins(DirEntry::FREE, DirEntry::from_bits(bits)));
        }
    }
}

/// Whether what lies at `position` is neither passed by the cursor nor beyond
/// it.
pub(crate) const fn is_ahead(position: u64, cursor: u64, log_bytes: u64) -> bool {
    position < cursor && position.saturating_add(log_bytes) >= cursor
}
