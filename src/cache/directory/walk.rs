//! Going over all entries, bucket by bucket; for tools, not for requests.

use super::{Directory, Home, Place};
use crate::cache::format::dir_entry::DirEntry;
use crate::cache::format::directory_page::PAGE_BUCKETS;
use crate::cache::format::to_u64;
use std::sync::atomic::Ordering;

/// An entry that a walk came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walked {
    /// Where the entry may be, though its key is not known.
    pub home: Home,
    /// Where its fragment lies.
    pub place: Place,
}

impl Directory {
    /// How many buckets there are.
    #[must_use]
    pub fn bucket_count(&self) -> u64 {
        to_u64(self.buckets.all().len())
    }

    /// Whether the page of a bucket has been read; true where there is none.
    #[must_use]
    pub fn knows_bucket(&self, bucket: u64) -> bool {
        bucket >= self.bucket_count() || self.is_open(page_of(bucket))
    }

    /// The valid entries of a bucket; none of one that there is not, or whose
    /// page has not been read.
    #[must_use]
    pub fn walk(&self, bucket: u64) -> Vec<Walked> {
        let page = page_of(bucket);
        let within = u16::try_from(bucket % PAGE_BUCKETS).unwrap_or(0);
        if page >= self.pages || !self.is_open(page) {
            return Vec::new();
        }
        let slots = self.slots(page, within).iter();
        let entries = slots.map(|slot| DirEntry::from_bits(slot.load(Ordering::Acquire)));
        // Read after the slots, as a lookup does.
        let entries: Vec<DirEntry> = entries.collect();
        let (cursor, doubt) = (self.cursor(), self.suspect_below());
        let walked = entries.into_iter().filter_map(|entry| {
            let place = Place::of(entry, self.log(), cursor)?;
            Some(Walked {
                home: Home::of_entry(page, within, entry.tag()),
                place: Place {
                    suspect: place.position < doubt,
                    ..place
                },
            })
        });
        walked.collect()
    }
}

/// The page that a bucket belongs to.
pub(crate) fn page_of(bucket: u64) -> u32 {
    u32::try_from(bucket / PAGE_BUCKETS).unwrap_or(u32::MAX)
}
