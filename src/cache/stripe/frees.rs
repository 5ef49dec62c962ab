//! Frees that are written and not flushed yet: a power cut may bring back what
//! they took away, and leave what replaced it on another device.

use crate::cache::directory::Home;
use crate::cache::format::batch::{Row, RowKind};
use std::collections::BTreeMap;

/// Places that are remembered. Beyond them all are forgotten, and anything may
/// have been freed.
const PLACES_MAX: usize = 16_384;

/// The last batch that frees something, by page, bucket and tag.
#[derive(Debug, Default)]
pub(super) struct UnflushedFrees {
    places: BTreeMap<(u32, u16, u16), u64>,
    /// Batches up to this one may have freed anything.
    forgotten_through: u64,
}

impl UnflushedFrees {
    /// Of batches up to this one, nothing is known.
    pub(super) const fn unknown_through(sequence: u64) -> Self {
        Self {
            places: BTreeMap::new(),
            forgotten_through: sequence,
        }
    }

    /// Takes note of what a batch frees that is written.
    pub(super) fn take(&mut self, rows: &[Row], sequence: u64) {
        let frees = rows.iter().filter(|row| row.kind == RowKind::Free);
        let places = frees.map(|row| ((row.page, row.bucket, row.entry.tag()), sequence));
        self.places.extend(places);
        if self.places.len() > PLACES_MAX {
            *self = Self::unknown_through(sequence);
        }
    }

    /// The last batch that may have freed something of the key with this home.
    pub(super) fn last_of(&self, home: &Home) -> Option<u64> {
        let place = |bucket: &u16| self.places.get(&(home.page, *bucket, home.tag)).copied();
        let known = home.buckets.iter().filter_map(place).max();
        let unknown = (self.forgotten_through > 0).then_some(self.forgotten_through);
        known.max(unknown)
    }

    /// Batches up to this one are flushed.
    pub(super) fn flushed(&mut self, through: u64) {
        self.places.retain(|_, sequence| *sequence > through);
        if self.forgotten_through <= through {
            self.forgotten_through = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::format::dir_entry::{DirEntry, EntryParts};

    const PAGES: u32 = 64;

    fn free_of(key: u128) -> Row {
        let home = Home::of(key, PAGES);
        let entry = DirEntry::new(EntryParts {
            offset: 0,
            tag: home.tag,
            size: 512,
            parity: false,
            head: true,
            pinned: false,
        });
        Row {
            kind: RowKind::Free,
            key,
            entry,
            page: home.page,
            bucket: home.buckets[1],
            length: 0,
        }
    }

    /// Keys that are far from each other.
    fn key(n: usize) -> u128 {
        let n = u128::try_from(n).unwrap();
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }

    #[test]
    fn a_free_is_known_by_its_key_until_its_batch_is_flushed() {
        let [one, other] = [1, 2].map(|n| Home::of(key(n), PAGES));
        let mut frees = UnflushedFrees::default();
        frees.take(&[free_of(key(1))], 7);
        assert_eq!(
            (frees.last_of(&one), frees.last_of(&other)),
            (Some(7), None)
        );
        frees.flushed(6);
        assert_eq!(frees.last_of(&one), Some(7));
        frees.flushed(7);
        assert_eq!(frees.last_of(&one), None);
    }

    #[test]
    fn beyond_the_bound_anything_may_have_been_freed_until_a_flush() {
        let mut frees = UnflushedFrees::default();
        let other = Home::of(key(0), PAGES);
        for n in 1..=PLACES_MAX + 1 {
            assert_eq!(frees.last_of(&other), None);
            frees.take(&[free_of(key(n))], 7);
        }
        assert!(frees.places.is_empty());
        assert_eq!(frees.last_of(&other), Some(7));
        frees.flushed(7);
        assert_eq!(frees.last_of(&other), None);
    }
}
