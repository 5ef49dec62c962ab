//! What the stripe, the one writer, does to entries.
//!
//! Readers look on without a lock. So an entry that replaces another takes its
//! slot in one store, and an entry that moves is in its new slot before the
//! old one changes, with the page's counter raised in between.

use super::buckets::BUCKET_SLOTS;
use super::{Directory, Home, LogView};
use crate::base::planted::{Planted, is_planted};
use crate::cache::format::dir_entry::DirEntry;
use std::sync::atomic::{AtomicU64, Ordering};

/// An entry that is gone otherwise than by the cursor: a free row tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Its page.
    pub page: u32,
    /// The bucket it was in.
    pub bucket: u16,
    /// What it said.
    pub entry: DirEntry,
    /// Dropped for room, not because of its key.
    pub for_room: bool,
}

/// A slot, and what is in it.
#[derive(Clone, Copy)]
struct Seen<'a> {
    slot: &'a AtomicU64,
    bucket: u16,
    entry: DirEntry,
}

impl Seen<'_> {
    /// The position, or `None` for a slot that may be taken.
    fn position(&self, view: LogView) -> Option<u64> {
        view.position(self.entry)
    }
}

impl Directory {
    /// Puts `entry` for a key at `home`, and takes away what it replaces: every
    /// entry of the same tag but those in `keep`, which were read and hold
    /// other keys; and, if there is no room, the one nearest to being
    /// overwritten. The cursor is at or behind the entry's end already.
    pub fn insert(&self, home: Home, entry: DirEntry, keep: &[DirEntry]) -> Vec<Removed> {
        self.mark_dirty(home.page);
        let view = self.view();
        let mut removed = Vec::new();
        let mut replaced: Option<Seen<'_>> = None;
        for seen in self.seen(home).filter(|seen| same_tag(seen, home, keep)) {
            if seen.position(view).is_some() {
                removed.push(gone(home.page, &seen, false));
            }
            // All but the last are cleared before the new entry is seen.
            if let Some(earlier) = replaced.replace(seen) {
                self.set(&earlier, DirEntry::FREE);
            }
        }
        match replaced {
            Some(seen) => self.set(&seen, entry),
            None => removed.extend(self.place_new(home, entry, view)),
        }
        removed
    }

    /// Takes away the key's entries: all of the tag but those in `keep`.
    pub(crate) fn free_all(&self, home: Home, keep: &[DirEntry]) -> Vec<Removed> {
        self.free_where(home, |seen| same_tag(seen, home, keep))
    }

    /// Takes away one entry, if it is still there.
    pub(crate) fn free_entry(&self, home: Home, entry: DirEntry) -> Vec<Removed> {
        self.free_where(home, |seen| seen.entry.same_place(entry))
    }

    /// Puts an entry back that a row tells of, unless it is there already, and
    /// gives what is dropped for it: of one tag only the newest stays, since an
    /// older one may be the same key's, in a page that could not be read when
    /// it was replaced. If a newer one is there, the entry itself is dropped.
    /// `view` is the log's as it is now, for all rows of a start at once.
    pub(crate) fn restore(&self, view: LogView, home: Home, entry: DirEntry) -> Vec<Removed> {
        if self.has_tag(home) {
            return self.restore_beside(view, home, entry);
        }
        self.mark_dirty(home.page);
        self.place_new(home, entry, view).into_iter().collect()
    }

    /// As [`Self::restore`], where something has the entry's tag.
    fn restore_beside(&self, view: LogView, home: Home, entry: DirEntry) -> Vec<Removed> {
        let mut dropped = Vec::new();
        let position = view.position(entry);
        let mut twins = self.seen(home).filter(|seen| same_tag(seen, home, &[]));
        if twins.any(|seen| seen.entry.same_place(entry)) {
            return dropped;
        }
        self.mark_dirty(home.page);
        let twin =
            |seen: &Seen<'_>| same_tag(seen, home, &[]) && !is_planted(Planted::TwinsRestored);
        for seen in self.seen(home).filter(twin) {
            if seen.position(view) > position {
                return vec![Removed {
                    page: home.page,
                    bucket: home.buckets[0],
                    entry,
                    for_room: false,
                }];
            }
            dropped.push(gone(home.page, &seen, false));
            self.set(&seen, DirEntry::FREE);
        }
        dropped.extend(self.place_new(home, entry, view));
        dropped
    }

    /// Whether an entry of the tag is there. All slots are compared, since most
    /// often none is: a start asks this for each row there is.
    fn has_tag(&self, home: Home) -> bool {
        let is_twin = |entry: DirEntry| (entry.tag() == home.tag) & !entry.is_free();
        let slots = self.seen(home);
        slots.fold(false, |found, seen| found | is_twin(seen.entry))
    }

    fn free_where(&self, home: Home, wanted: impl Fn(&Seen<'_>) -> bool) -> Vec<Removed> {
        let view = self.view();
        let mut removed = Vec::new();
        for seen in self.seen(home).filter(wanted) {
            if seen.position(view).is_some() {
                removed.push(gone(home.page, &seen, false));
            }
            self.set(&seen, DirEntry::FREE);
            self.mark_dirty(home.page);
        }
        removed
    }

    fn set(&self, seen: &Seen<'_>, entry: DirEntry) {
        self.note_pins(seen.entry, entry);
        seen.slot.store(entry.bits(), Ordering::Release);
    }

    /// Finds a slot for an entry whose tag is nowhere in its buckets.
    fn place_new(&self, home: Home, entry: DirEntry, view: LogView) -> Option<Removed> {
        if let Some(seen) = self.open_slot(home, view) {
            self.set(&seen, entry);
            return None;
        }
        if self.moved_away(home, entry, view) {
            return None;
        }
        let oldest = self.seen(home).min_by_key(|seen| {
            let pinned = seen.entry.is_pinned();
            (pinned, seen.position(view).unwrap_or(0))
        })?;
        self.set(&oldest, entry);
        Some(gone(home.page, &oldest, true))
    }

    /// A slot in the bucket with fewer live entries: free, or passed by the
    /// cursor. Both count alike, since the hand clears a passed entry half a
    /// cycle late on average and by then hardly a slot is free.
    fn open_slot(&self, home: Home, view: LogView) -> Option<Seen<'_>> {
        let open = home
            .buckets
            .map(|bucket| self.open_in(home.page, bucket, view));
        let [first, second] = open.map(u8::count_ones);
        let chosen = usize::from(first < second);
        let mut slots = self.seen_in(home.page, home.buckets[chosen]);
        slots.nth(usize::try_from(open[chosen].trailing_zeros()).unwrap_or(BUCKET_SLOTS))
    }

    /// The slots of a bucket that may be taken, a bit for each, the lowest one for
    /// the first.
    fn open_in(&self, page: u32, bucket: u16, view: LogView) -> u8 {
        let slots = self.seen_in(page, bucket).zip(0u8..);
        slots.fold(0, |open, (seen, n)| {
            open | u8::from(seen.position(view).is_none()) << n
        })
    }

    /// Makes room by moving one entry to its other bucket.
    fn moved_away(&self, home: Home, entry: DirEntry, view: LogView) -> bool {
        for seen in self.seen(home) {
            let at = Home::of_entry(home.page, seen.bucket, seen.entry.tag());
            let mut other = self.seen_in(home.page, at.buckets[1]);
            let Some(to) = other.find(|to| to.position(view).is_none()) else {
                continue;
            };
            self.set(&to, seen.entry);
            self.moves_of(home.page).fetch_add(1, Ordering::Release);
            self.set(&seen, entry);
            return true;
        }
        false
    }

    fn seen(&self, home: Home) -> impl Iterator<Item = Seen<'_>> {
        let buckets = home.buckets.into_iter();
        buckets.flat_map(move |bucket| self.seen_in(home.page, bucket))
    }

    fn seen_in(&self, page: u32, bucket: u16) -> impl Iterator<Item = Seen<'_>> {
        let slots = self.slots(page, bucket).iter();
        slots.map(move |slot| Seen {
            slot,
            bucket,
            entry: DirEntry::from_bits(slot.load(Ordering::Acquire)),
        })
    }

    /// The log as entries are judged by it.
    pub(crate) fn view(&self) -> LogView {
        self.log().at(self.cursor())
    }
}

fn same_tag(seen: &Seen<'_>, home: Home, keep: &[DirEntry]) -> bool {
    let entry = seen.entry;
    let kept = || keep.iter().any(|kept| kept.same_place(entry));
    !entry.is_free() && entry.tag() == home.tag && !kept()
}

const fn gone(page: u32, seen: &Seen<'_>, for_room: bool) -> Removed {
    Removed {
        page,
        bucket: seen.bucket,
        entry: seen.entry,
        for_room,
    }
}
