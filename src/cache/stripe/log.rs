//! What goes into the log: fragments and rows, into the batch that fills.

use super::batch::{Filling, ROWS_PER_PUT, Stamp, put_bytes};
use super::passing::least_ahead;
use super::plan::{Appended, Freed, Refused};
use super::{NewFragment, State, Stripe};
use crate::base::clock::MonoTime;
use crate::base::planted::{Planted, is_planted};
use crate::cache::directory::{Home, Place, Removed};
use crate::cache::format::batch::{BATCH_HEADER_BYTES, Row, RowKind};
use crate::cache::format::dir_entry::{DirEntry, EntryParts};
use crate::cache::format::fragment::{FragmentKind, FragmentParts, FragmentPlace, fragment_bytes};
use crate::cache::format::{to_u64, to_usize};

/// Pinned bytes are one of so many of the log at most.
const PINNED_SHARE: u64 = 10;

impl Stripe {
    /// Takes a fragment into the log. It replaces the key's entries, and is
    /// readable at once, from the buffer.
    ///
    /// # Errors
    /// `Backlog` when too much waits to be written, `TooLarge`, `Superseded`
    /// when the entry that it is a copy of is gone, `Unread` when its page is
    /// yet to be read, `Closed`.
    pub fn append(&mut self, now: MonoTime, new: &NewFragment<'_>) -> Result<Appended, Refused> {
        let body: usize = new.body.iter().map(bytes::Bytes::len).sum();
        let length = to_u64(fragment_bytes(new.meta.len(), body));
        self.check_append(new, length)?;
        self.make_room(now, put_bytes(length));
        let filling = self.filling.as_mut().ok_or(Refused::Closed)?;
        let position = filling.next_position();
        let sequence = filling.sequence;
        filling.push_fragment(&FragmentParts {
            place: FragmentPlace {
                key: new.key_hash,
                stripe: self.identity.uuid,
                position,
            },
            sequence,
            kind: new.kind,
            meta: new.meta,
            body: new.body,
        });
        let pinned = self.may_pin(new, length);
        let place = self.enter(new, (position, length), pinned);
        Ok(Appended { place, sequence })
    }

    fn check_append(&self, new: &NewFragment<'_>, length: u64) -> Result<(), Refused> {
        if self.state != State::Open {
            return Err(Refused::Closed);
        }
        if length > self.fragment_max() {
            return Err(Refused::TooLarge);
        }
        if !self.directory.knows(new.key_hash) {
            return Err(Refused::Unread);
        }
        let gone = |entry| !self.directory.holds(new.key_hash, entry);
        if new.copy_of.is_some_and(gone) && !is_planted(Planted::OldCopyTaken) {
            return Err(Refused::Superseded);
        }
        let has_room = match new.copy_of {
            // The walk's own copies go where it has been.
            Some(_) => self.takes(length),
            None => self.has_room(length),
        };
        if !has_room {
            return Err(Refused::Backlog);
        }
        Ok(())
    }

    /// Whether a fragment of `length` bytes, its own header included, that is
    /// no copy would not be refused as `Backlog` now.
    #[must_use]
    pub fn has_room(&self, length: u64) -> bool {
        self.takes(length) && !self.runs_into_pins(length)
    }

    /// Whether neither the ring nor the backlog is full.
    fn takes(&self, length: u64) -> bool {
        let ring_lags = self.redo.is_full(self.geometry.log_bytes())
            || self.redo.is_forced() && !self.redo.has_room(&self.geometry);
        !ring_lags && self.waiting_bytes() + length <= self.options.backlog_bytes
    }

    /// Whether the fragment gets the pin that it is to have: a copy of a pinned
    /// one takes its place, others need room.
    fn may_pin(&self, new: &NewFragment<'_>, length: u64) -> bool {
        let replaces = new.copy_of.is_some_and(DirEntry::is_pinned);
        new.pinned && (replaces || self.has_room_for_pins(length))
    }

    /// Whether so many bytes more may be pinned: none while it is not known how
    /// many are.
    #[must_use]
    pub fn has_room_for_pins(&self, bytes: u64) -> bool {
        if self.has_unread_pins() {
            return false;
        }
        let most = self.geometry.log_bytes() / PINNED_SHARE;
        self.directory.pinned_bytes().saturating_add(bytes) <= most
    }

    /// Whether a page that is yet to be read may hold pins.
    const fn has_unread_pins(&self) -> bool {
        !self.is_read()
    }

    /// Whether the cursor, `length` bytes on, would be too near to where the
    /// walk ahead of it has come to, and something may be pinned: then the
    /// walk goes first.
    fn runs_into_pins(&self, length: u64) -> bool {
        let may_be_pinned = self.directory.pinned_bytes() > 0 || self.has_unread_pins();
        if !may_be_pinned || is_planted(Planted::PinsUnheeded) {
            return false;
        }
        let log_bytes = self.geometry.log_bytes();
        // Before its first step, the walk stands where the log began.
        let walked = self.evacuation.max(log_bytes);
        let walked = walked.saturating_add(log_bytes);
        self.directory.cursor() + length + least_ahead(log_bytes) / 4 * 3 > walked
    }

    /// Puts the entry of a fragment that has just been copied into the batch.
    fn enter(
        &mut self,
        new: &NewFragment<'_>,
        (position, length): (u64, u64),
        pinned: bool,
    ) -> Place {
        let log_bytes = self.geometry.log_bytes();
        let home = Home::of(new.key_hash, self.geometry.pages());
        let entry = DirEntry::new(EntryParts {
            offset: position % log_bytes,
            tag: home.tag,
            size: length,
            parity: (position / log_bytes) & 1 == 1 || is_planted(Planted::ParityOfFirstCycle),
            head: new.kind == FragmentKind::Head,
            pinned,
        });
        // The cursor first: no reader may see an entry beyond it.
        self.advance_cursor();
        let removed = self.directory.insert(home, entry, new.keep);
        self.add_free_rows(new.key_hash, &removed);
        self.add_row(Row {
            kind: RowKind::Put,
            key: new.key_hash,
            entry,
            page: home.page,
            bucket: home.buckets[0],
            length: u32::try_from(length).unwrap_or(u32::MAX),
        });
        self.advance_cursor();
        let place = Place::of(entry, self.directory.log(), self.directory.cursor());
        place.unwrap_or(Place {
            entry,
            position,
            offset: self.geometry.log_offset() + position % log_bytes,
            length: 0,
            suspect: false,
        })
    }

    /// Takes away every entry of the key but those in `keep`, which were read
    /// and hold other keys of the same tag.
    ///
    /// # Errors
    /// `Unread` when its page is yet to be read: what there is, is not known;
    /// [`Self::free_when_read`] may follow.
    pub fn free(
        &mut self,
        now: MonoTime,
        key_hash: u128,
        keep: &[DirEntry],
    ) -> Result<Freed, Refused> {
        if !self.directory.knows(key_hash) {
            return Err(Refused::Unread);
        }
        let home = Home::of(key_hash, self.geometry.pages());
        let removed = self.directory.free_all(home, keep);
        Ok(self.log_frees(now, key_hash, &removed))
    }

    /// Takes away one entry, such as one whose fragment is damaged.
    pub fn free_entry(&mut self, now: MonoTime, key_hash: u128, entry: DirEntry) -> Freed {
        let home = Home::of(key_hash, self.geometry.pages());
        let removed = self.directory.free_entry(home, entry);
        self.log_frees(now, key_hash, &removed)
    }

    /// As [`Self::free_entry`], by the entry's home alone: its key is not known.
    pub fn free_at(&mut self, now: MonoTime, home: Home, entry: DirEntry) -> Freed {
        let removed = self.directory.free_entry(home, entry);
        self.log_frees(now, 0, &removed)
    }

    /// Tells of what is gone, in as many batches as that takes.
    pub(super) fn log_frees(
        &mut self,
        now: MonoTime,
        key_hash: u128,
        removed: &[Removed],
    ) -> Freed {
        if self.can_tell() {
            for part in removed.chunks(ROWS_PER_PUT) {
                self.make_room(now, put_bytes(0));
                self.add_free_rows(key_hash, part);
                self.advance_cursor();
            }
        }
        Freed {
            entries: removed.len(),
            sequence: self.last_sequence(),
        }
    }

    /// A stripe that is closing still tells of what goes: the rows wait for
    /// nothing. One that is closed or has failed has nowhere to tell it.
    const fn can_tell(&self) -> bool {
        matches!(self.state, State::Open | State::Closing)
    }

    fn add_free_rows(&mut self, key_hash: u128, removed: &[Removed]) {
        if is_planted(Planted::FreeRowsMissing) {
            return;
        }
        for gone in removed {
            self.add_row(Row {
                kind: RowKind::Free,
                key: if gone.for_room { 0 } else { key_hash },
                entry: gone.entry,
                page: gone.page,
                bucket: gone.bucket,
                length: 0,
            });
        }
    }

    fn add_row(&mut self, row: Row) {
        if let Some(filling) = self.filling.as_mut() {
            filling.rows.push(row);
        }
    }

    /// The last batch there is: filling, or else sealed or written.
    #[must_use]
    pub fn last_sequence(&self) -> u64 {
        let filling = self.filling.as_ref().map(|filling| filling.sequence);
        filling.unwrap_or(self.chain.sequence - 1)
    }

    /// The last batch that takes away something of the key and is not flushed
    /// yet, as far as [`Self::note_flushed`] was told: until it is, a power cut
    /// brings that back. Of a stripe that tells nothing any more, none that will
    /// ever be.
    #[must_use]
    pub fn unflushed_free(&self, key_hash: u128) -> Option<u64> {
        if is_planted(Planted::UnwrittenFreeUnseen) {
            return None;
        }
        if !self.can_tell() {
            return Some(u64::MAX);
        }
        let home = Home::of(key_hash, self.geometry.pages());
        let frees = |rows: &[Row]| rows.iter().any(|row| is_free_of(row, &home));
        if let Some(batch) = self.filling.as_ref().filter(|batch| frees(&batch.rows)) {
            return Some(batch.sequence);
        }
        let mut sealed = self.sealed.iter().rev();
        let sealed = sealed.find(|batch| frees(&batch.rows));
        // What a lost batch took away, the ring has yet to tell.
        let is_untold = self.lost_through > self.directory.written_sequence();
        let untold = is_untold.then_some(self.lost_through);
        let unwritten = sealed.map(|batch| batch.sequence).or(untold);
        unwritten.or_else(|| self.frees.last_of(&home))
    }

    /// Takes note that no power cut takes what batches up to this one tell.
    pub fn note_flushed(&mut self, through: u64) {
        self.frees.flushed(through);
    }

    /// Bytes that wait behind the write in flight.
    pub(super) fn waiting_bytes(&self) -> u64 {
        let sealed = self.sealed.iter().skip(1);
        let sealed: u64 = sealed.map(|batch| to_u64(batch.bytes.len())).sum();
        sealed + self.filling.as_ref().map_or(0, |filling| filling.used)
    }

    /// Bytes of the largest fragment.
    pub(super) fn fragment_max(&self) -> u64 {
        let head = to_usize(u64::from(self.options.head_bytes_max));
        let body = to_usize(u64::from(self.options.fragment_bytes));
        to_u64(fragment_bytes(head, body))
    }

    /// Makes sure that the batch that fills has room for `bytes` more.
    fn make_room(&mut self, now: MonoTime, bytes: u64) {
        if self.filling.as_ref().is_some_and(|f| !f.fits(bytes)) {
            self.seal();
        }
        if self.filling.is_none() {
            self.begin_batch(now);
        }
    }

    fn begin_batch(&mut self, now: MonoTime) {
        let log_bytes = self.geometry.log_bytes();
        let least = u64::from(BATCH_HEADER_BYTES) + put_bytes(self.fragment_max());
        self.chain.position = batch_start(self.chain.position, log_bytes, least);
        let room = log_bytes - self.chain.position % log_bytes;
        let room = room.min(u64::from(self.options.buffer_bytes));
        self.filling = Some(Filling::new(self.chain, room, now));
    }

    /// Moves the cursor behind what the batch that fills has reserved.
    fn advance_cursor(&mut self) {
        let block = self.geometry.block();
        if let Some(end) = self.filling.as_ref().map(|filling| filling.end(block)) {
            self.move_cursor(end);
        }
    }

    pub(super) fn move_cursor(&mut self, position: u64) {
        let before = self.directory.cursor();
        self.directory.set_cursor(position.max(before));
        let moved = position.saturating_sub(before);
        self.hand.advance(&self.directory, moved);
    }

    /// Ends the batch that fills: it waits to be written.
    pub(super) fn seal(&mut self) {
        let Some(filling) = self.filling.take() else {
            return;
        };
        let sealed = filling.seal(&Stamp {
            uuid: self.identity.uuid,
            log_bytes: self.geometry.log_bytes(),
            block: self.geometry.block(),
            epoch: self.identity.epoch,
            run: self.identity.run,
            previous: self.chain.link,
        });
        self.chain = sealed.next;
        self.sealed.push_back(sealed);
    }
}

/// Whether a row takes away what may be of the key with this home.
fn is_free_of(row: &Row, home: &Home) -> bool {
    let is_there = row.page == home.page && home.buckets.contains(&row.bucket);
    row.kind == RowKind::Free && is_there && row.entry.tag() == home.tag
}

/// Where a batch begins when the log's end is at `position`: there, or, if
/// `least` bytes do not fit, at the log's start in the next cycle. The tail
/// that is left counts as passed.
pub(super) fn batch_start(position: u64, log_bytes: u64, least: u64) -> u64 {
    let room = log_bytes - position % log_bytes;
    if room < least {
        (position / log_bytes + 1) * log_bytes
    } else {
        position
    }
}
