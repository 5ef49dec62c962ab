//! The memory of a directory.

use crate::base::huge::{prefer_free_huge_pages, prefer_huge_pages};
use std::sync::atomic::AtomicU64;
use zerocopy::FromZeros;

/// Slots of a bucket.
pub(super) const BUCKET_SLOTS: usize = 8;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Eight slots in one cache line.
pub(super) type Bucket = [AtomicU64; BUCKET_SLOTS];

/// Buckets of free slots. The system gives the memory when it is touched, in
/// huge pages where such are free, so that a start does not wait for a gigabyte of
/// zeros: that is why the line's bounds are looked for here, not asked of the
/// allocator.
#[derive(Debug)]
pub(super) struct Buckets {
    slots: Box<[AtomicU64]>,
    /// The slot at which the first line begins.
    first: usize,
    count: usize,
}

impl Buckets {
    /// So many buckets, every slot free.
    pub(super) fn free(count: usize) -> Self {
        let length = (count + 1) * BUCKET_SLOTS;
        let zeroed = <[AtomicU64]>::new_box_zeroed_with_elems(length);
        let slots = zeroed.unwrap_or_else(|_| (0..length).map(|_| AtomicU64::new(0)).collect());
        prefer_free_huge_pages(&slots);
        let first = slots.as_ptr().align_offset(LINE).min(BUCKET_SLOTS);
        Self {
            slots,
            first,
            count,
        }
    }

    /// Has the system gather the memory, which has been touched, into huge pages.
    pub(super) fn gather(&self) {
        prefer_huge_pages(&self.slots);
    }

    /// All of them, in order.
    pub(super) fn all(&self) -> &[Bucket] {
        let (buckets, _) = self.slots[self.first..].as_chunks();
        &buckets[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn buckets_are_lines_of_free_slots() {
        for count in [0, 1, 2, 1024] {
            let buckets = Buckets::free(count);
            assert_eq!(buckets.all().len(), count);
            for bucket in buckets.all() {
                assert_eq!(bucket.as_ptr().align_offset(LINE), 0);
                assert!(bucket.iter().all(|slot| slot.load(Ordering::Relaxed) == 0));
            }
        }
    }
}
