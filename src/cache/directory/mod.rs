//! The memory-resident index of a stripe: 8 bytes a slot, two cache lines a
//! lookup, no lists.
//!
//! Any number of threads look up without a lock. One writer at a time, the
//! stripe, changes entries; readers only set `referenced`, by exchanging the
//! whole value. An entry is valid by its position: before the cursor it must
//! have this cycle's parity, behind it the last one's.

mod buckets;
mod check;
mod home;
mod insert;
mod kept;
mod page;
mod sweep;
mod walk;

pub use check::Census;
pub use home::Home;
pub use insert::Removed;
pub(crate) use page::is_ahead;
pub use sweep::Hand;
pub use walk::Walked;

use crate::base::size::round_down;
use crate::cache::format::dir_entry::{BLOCK_BYTES, DirEntry};
use crate::cache::format::directory_page::PAGE_BUCKETS;
use crate::cache::format::fragment::{Fragment, FragmentError, FragmentPlace, verify_fragment};
use crate::cache::format::to_usize;
use buckets::{BUCKET_SLOTS, Bucket, Buckets};
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Slots that a key's entry may be in.
const HOME_SLOTS: usize = 2 * BUCKET_SLOTS;
/// How often a lookup that found nothing reads again because entries moved.
const LOOKUP_TRIES: usize = 4;

/// Where a fragment may be: an entry, and what it implies at the cursor that
/// it was looked up at. It is a hint until the fragment is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The entry, as it was in its slot.
    pub entry: DirEntry,
    /// Cycle × log length + offset in the log, in bytes.
    pub position: u64,
    /// Where to read, in bytes from the stripe's start; a multiple of 512.
    pub offset: u64,
    /// How much to read, in bytes; a multiple of 512, within the log.
    pub length: u32,
    /// Written before the stripe was away: use it after revalidation only.
    pub suspect: bool,
}

/// Where the log is, for the positions of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogShape {
    /// Bytes from the stripe's start to the log.
    pub offset: u64,
    /// Bytes of the log.
    pub bytes: u64,
}

impl LogShape {
    /// The position that an entry has when the cursor is at `cursor`; `None`
    /// if its parity says that the cursor has passed it.
    pub(crate) fn position(self, entry: DirEntry, cursor: u64) -> Option<u64> {
        self.at(cursor).position(entry)
    }

    /// The log as it is when the cursor is at `cursor`.
    pub(crate) const fn at(self, cursor: u64) -> LogView {
        let offset = cursor % self.bytes;
        LogView {
            bytes: self.bytes,
            start: cursor - offset,
            offset,
            is_odd: (cursor / self.bytes) & 1 == 1,
        }
    }
}

/// A log and its cursor, worked out once: a start asks for the position of each
/// entry there is, and a division or a branch for each would be seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogView {
    bytes: u64,
    /// Where the cursor's cycle began.
    start: u64,
    /// The cursor in it.
    offset: u64,
    /// Of the cycle.
    is_odd: bool,
}

impl LogView {
    /// See [`LogShape::position`].
    pub(crate) fn position(self, entry: DirEntry) -> Option<u64> {
        let offset = entry.offset();
        let is_behind = offset >= self.offset;
        let agrees = (self.is_odd ^ is_behind) == entry.parity();
        let is_before_all = is_behind & (self.start == 0);
        let is_place = !entry.is_free() & (offset < self.bytes);
        let back = if is_behind { self.bytes } else { 0 };
        let position = self.start.wrapping_add(offset).wrapping_sub(back);
        (agrees & is_place & !is_before_all).then_some(position)
    }
}

/// The index of one stripe.
#[derive(Debug)]
pub struct Directory {
    uuid: u128,
    log: LogShape,
    pages: u32,
    buckets: Buckets,
    /// What is known of the page is all there is: entries may be used.
    open: Box<[AtomicBool]>,
    /// Raised at each move within a page.
    moves: Box<[AtomicU32]>,
    /// Bit 0 and 1: the page changed since it was written to copy A and B.
    dirty: Box<[AtomicU8]>,
    cursor: AtomicU64,
    written: AtomicU64,
    written_sequence: AtomicU64,
    suspect_below: AtomicU64,
    /// Bytes of the entries that are pinned.
    pinned: AtomicU64,
}

impl Directory {
    /// An empty directory of `pages` pages whose cursor stands at `cursor`.
    #[must_use]
    pub fn new(uuid: u128, log: LogShape, pages: u32, cursor: u64) -> Self {
        let page_count = to_usize(u64::from(pages));
        let bucket_count = page_count * to_usize(PAGE_BUCKETS);
        Self {
            uuid,
            log,
            pages,
            buckets: Buckets::free(bucket_count),
            open: (0..page_count).map(|_| AtomicBool::new(true)).collect(),
            moves: (0..page_count).map(|_| AtomicU32::new(0)).collect(),
            dirty: (0..page_count).map(|_| AtomicU8::new(ALL_COPIES)).collect(),
            cursor: AtomicU64::new(cursor),
            written: AtomicU64::new(cursor),
            written_sequence: AtomicU64::new(0),
            suspect_below: AtomicU64::new(0),
            pinned: AtomicU64::new(0),
        }
    }

    /// As [`Self::new`], of pages that are yet to be read: none is used before
    /// it is opened.
    pub(crate) fn unread(uuid: u128, log: LogShape, pages: u32, cursor: u64) -> Self {
        let directory = Self::new(uuid, log, pages, cursor);
        let open = directory.open.iter();
        open.for_each(|page| page.store(false, Ordering::Relaxed));
        directory
    }

    /// Every place where a fragment of the key with this hash may be; none
    /// before [`Self::knows`] it. Takes no lock and allocates nothing.
    #[must_use]
    pub fn lookup(&self, key_hash: u128) -> Matches {
        let home = Home::of(key_hash, self.pages);
        if !self.is_open(home.page) {
            return Matches::none(self.log);
        }
        let moves = self.moves_of(home.page);
        for _ in 1..LOOKUP_TRIES {
            let before = moves.load(Ordering::Acquire);
            let found = self.scan(home);
            if found.count > 0 || moves.load(Ordering::Acquire) == before {
                return found;
            }
        }
        self.scan(home)
    }

    fn scan(&self, home: Home) -> Matches {
        let mut found = Matches::none(self.log);
        for bucket in home.buckets {
            for slot in self.slots(home.page, bucket) {
                let entry = DirEntry::from_bits(slot.load(Ordering::Acquire));
                if entry.tag() == home.tag && !entry.is_free() {
                    found.push(entry);
                }
            }
        }
        // Read after the slots: the writer moves the cursor before it inserts,
        // so no entry seen above lies beyond the cursor seen here.
        found.cursor = self.cursor.load(Ordering::Acquire);
        found.suspect_below = self.suspect_below.load(Ordering::Relaxed);
        found.keep_valid();
        found
    }

    /// Whether the place is not on the device yet: ask the stripe for its
    /// bytes, and if it has none any more, read the device.
    #[must_use]
    pub fn is_buffered(&self, place: &Place) -> bool {
        place.position >= self.written_position()
    }

    /// Where what is on the device, or has failed for good, ends: cycle × log
    /// length + offset.
    #[must_use]
    pub fn written_position(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// The last batch that is on the device, or has failed for good and is told
    /// of in the ring.
    #[must_use]
    pub fn written_sequence(&self) -> u64 {
        self.written_sequence.load(Ordering::Acquire)
    }

    /// The end of reserved log space: cycle × log length + offset.
    #[must_use]
    pub fn cursor(&self) -> u64 {
        self.cursor.load(Ordering::Acquire)
    }

    /// The fragment of this key, if `bytes`, read at `place`, hold it whole
    /// and undamaged.
    ///
    /// # Errors
    /// `OtherKey`: go on with the next match. `Overtaken` and `Damaged`: a
    /// miss; the entry is to be freed after `Damaged`.
    pub fn verify(
        &self,
        place: &Place,
        key_hash: u128,
        bytes: &Bytes,
    ) -> Result<Fragment, FragmentError> {
        verify_fragment(bytes, &self.expected(place, key_hash))
    }

    /// What a fragment read at `place` must say of itself, for a reader that
    /// verifies it in parts.
    #[must_use]
    pub const fn expected(&self, place: &Place, key_hash: u128) -> FragmentPlace {
        FragmentPlace {
            key: key_hash,
            stripe: self.uuid,
            position: place.position,
        }
    }

    /// Notes that the entry was read, so that it is kept when the cursor
    /// comes; changes nothing if the entry is gone or noted already.
    pub fn mark_read(&self, key_hash: u128, place: &Place) {
        if place.entry.is_referenced() {
            return;
        }
        let home = Home::of(key_hash, self.pages);
        let (old, new) = (place.entry.bits(), place.entry.referenced().bits());
        for bucket in home.buckets {
            for slot in self.slots(home.page, bucket) {
                let swapped = slot.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed);
                if swapped.is_ok() {
                    return;
                }
            }
        }
    }

    /// Whether an entry is still in its slot, whatever was noted of it.
    #[must_use]
    pub fn holds(&self, key_hash: u128, entry: DirEntry) -> bool {
        self.lookup(key_hash)
            .any(|place| place.entry.same_place(entry))
    }

    /// Whether the page of the key with this hash has been read, so that what
    /// is found of it is all there is.
    #[must_use]
    pub fn knows(&self, key_hash: u128) -> bool {
        self.is_open(Home::of(key_hash, self.pages).page)
    }

    /// Bytes that the sizes of pinned entries add up to, those counted that the
    /// hand has yet to clear.
    #[must_use]
    pub fn pinned_bytes(&self) -> u64 {
        self.pinned.load(Ordering::Relaxed)
    }

    /// Counts what a slot's change does to the pinned bytes. Only the one
    /// writer changes them.
    fn note_pins(&self, old: DirEntry, new: DirEntry) {
        let size = |entry: DirEntry| match entry.is_pinned() && !entry.is_free() {
            true => entry.size(),
            false => 0,
        };
        let before = self.pinned.load(Ordering::Relaxed);
        let after = (before + size(new)).saturating_sub(size(old));
        self.pinned.store(after, Ordering::Relaxed);
    }

    /// Pages of the directory.
    #[must_use]
    pub const fn pages(&self) -> u32 {
        self.pages
    }

    /// Entries below this position are used only after revalidation.
    #[must_use]
    pub fn suspect_below(&self) -> u64 {
        self.suspect_below.load(Ordering::Relaxed)
    }

    pub(crate) fn set_suspect_below(&self, position: u64) {
        self.suspect_below.store(position, Ordering::Relaxed);
    }

    /// Moves the cursor, before an entry behind it is inserted.
    pub fn set_cursor(&self, position: u64) {
        self.cursor.store(position, Ordering::Release);
    }

    pub(crate) fn set_written(&self, position: u64, sequence: u64) {
        self.written.store(position, Ordering::Release);
        self.written_sequence.store(sequence, Ordering::Release);
    }

    /// Bytes from the stripe's start to the log.
    #[must_use]
    pub const fn log_offset(&self) -> u64 {
        self.log.offset
    }

    pub(crate) const fn log(&self) -> LogShape {
        self.log
    }

    fn moves_of(&self, page: u32) -> &AtomicU32 {
        &self.moves[to_usize(u64::from(page))]
    }

    /// The slots of a bucket; the page is below `pages`, the bucket below 1024.
    fn slots(&self, page: u32, bucket: u16) -> &Bucket {
        let at = u64::from(page) * PAGE_BUCKETS + u64::from(bucket);
        &self.buckets.all()[to_usize(at)]
    }

    fn mark_dirty(&self, page: u32) {
        self.dirty[to_usize(u64::from(page))].fetch_or(ALL_COPIES, Ordering::Relaxed);
    }
}

/// The bits of both directory copies.
const ALL_COPIES: u8 = 3;

/// The places that a lookup found; an iterator over them.
#[derive(Clone, Debug)]
pub struct Matches {
    entries: [DirEntry; HOME_SLOTS],
    count: usize,
    next: usize,
    log: LogShape,
    cursor: u64,
    suspect_below: u64,
}

impl Matches {
    const fn none(log: LogShape) -> Self {
        Self {
            entries: [DirEntry::FREE; HOME_SLOTS],
            count: 0,
            next: 0,
            log,
            cursor: 0,
            suspect_below: 0,
        }
    }

    fn push(&mut self, entry: DirEntry) {
        if let Some(to) = self.entries.get_mut(self.count) {
            *to = entry;
            self.count += 1;
        }
    }

    fn keep_valid(&mut self) {
        let found = self.entries;
        let count = std::mem::take(&mut self.count);
        for entry in found.into_iter().take(count) {
            if self.log.position(entry, self.cursor).is_some() {
                self.push(entry);
            }
        }
    }

    /// Whether there are none left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.next >= self.count
    }

    fn place(&self, entry: DirEntry) -> Option<Place> {
        Place::of(entry, self.log, self.cursor).map(|place| Place {
            suspect: place.position < self.suspect_below,
            ..place
        })
    }
}

impl Iterator for Matches {
    type Item = Place;

    fn next(&mut self) -> Option<Place> {
        let entry = self.entries.get(..self.count)?.get(self.next)?;
        self.next += 1;
        self.place(*entry)
    }
}

impl Place {
    /// What an entry implies when the cursor is at `cursor`.
    pub(crate) fn of(entry: DirEntry, log: LogShape, cursor: u64) -> Option<Self> {
        let position = log.position(entry, cursor)?;
        let room = round_down(log.bytes - entry.offset(), BLOCK_BYTES);
        Some(Self {
            entry,
            position,
            offset: log.offset + entry.offset(),
            length: u32::try_from(entry.size().min(room)).unwrap_or(u32::MAX),
            suspect: false,
        })
    }
}

#[cfg(test)]
mod tests;
