//! The walk ahead of the cursor, which keeps what is pinned, as the store does
//! it: one batch after the other, each fragment appended before the next.

use super::content::{KEYS, content, hash};
use super::history::Op;
use super::stripe::World;
use crate::cache::directory::Place;
use crate::cache::format::batch::{Row, RowKind};
use crate::cache::format::dir_entry::DirEntry;
use crate::cache::format::fragment::FragmentKind;
use crate::cache::format::to_u64;
use crate::cache::stripe::{NewFragment, Passing, Refused, table_of};
use bytes::Bytes;

/// Where a run's walk is.
#[derive(Default)]
pub(super) struct Walk {
    passing: Option<Passing>,
    /// Pinned rows of the batch that it is at, to be kept.
    rows: Vec<Row>,
}

impl World {
    /// Where nothing is pinned, nothing ahead holds the cursor back.
    pub(super) fn walk_freely(&mut self) {
        if !self.climate.pins {
            self.stripe.note_evacuation(u64::MAX / 2);
        }
    }

    /// Keeps one pinned fragment, or goes on to the next batch.
    pub(super) fn step_walk(&mut self) {
        match self.walk.rows.last().copied() {
            Some(row) if self.keep_row(&row) => drop(self.walk.rows.pop()),
            Some(_) => {}
            None => self.next_passing(),
        }
    }

    fn next_passing(&mut self) {
        let log_bytes = self.stripe.geometry().log_bytes();
        let at = self.stripe.evacuation();
        let uuid = super::stripe::identity(0).uuid;
        let mut walk = self
            .walk
            .passing
            .unwrap_or_else(|| Passing::new(uuid, log_bytes, at));
        if let Some((offset, length)) = walk.next(self.directory.cursor()) {
            let bytes = self.of_log(offset, length);
            let batch = walk.take(&bytes);
            let rows = batch.and_then(|batch| {
                let (offset, length) = table_of(&batch);
                batch.verify_rows(&self.of_log(offset, to_u64(length))).ok()
            });
            self.walk.rows = rows.unwrap_or_default();
            self.walk
                .rows
                .retain(|row| row.kind == RowKind::Put && row.entry.is_pinned());
        }
        self.stripe.note_evacuation(walk.position());
        self.walk.passing = Some(walk);
    }

    fn of_log(&self, offset: u64, length: u64) -> Vec<u8> {
        let from = self.stripe.geometry().log_offset() + offset;
        self.disk.read(from, length).to_vec()
    }

    /// Whether nothing is left to be done for a pinned fragment.
    fn keep_row(&mut self, row: &Row) -> bool {
        if self.stripe.is_closed() || self.stripe.has_failed() {
            return true;
        }
        if !self.directory.knows(row.key) {
            self.stripe.ask_for_key(row.key);
            return false;
        }
        let key = (0..KEYS).find(|key| hash(*key) == row.key);
        let mut places = self.directory.lookup(row.key);
        let place = places.find(|place| place.entry.same_place(row.entry) && !place.suspect);
        let (Some(key), Some(place)) = (key, place) else {
            return true;
        };
        let Ok(fragment) = self.read(key, &place) else {
            return true;
        };
        let version = self.version_of(key, &fragment);
        self.append_again(key, version, &place)
    }

    /// False when too much waits to be written.
    fn append_again(&mut self, key: u64, version: u64, place: &Place) -> bool {
        let body = [content(key, version)];
        let keep = self.others(key);
        let meta = key.to_le_bytes();
        let copy = copy_of((key, &meta), &body, &keep, place.entry);
        match self.stripe.append(self.now, &copy) {
            Ok(appended) => {
                let pinned = appended.place.entry.is_pinned();
                assert!(pinned, "{}: key {key} loses its pin", self.context());
                self.note_put(key, version, &appended);
                true
            }
            Err(refused) => {
                self.begin_io();
                refused != Refused::Backlog
            }
        }
    }

    /// Where a pin is counted, and how much may be pinned.
    pub(super) fn check_pins(&self) {
        let slots = (0..self.directory.pages()).flat_map(|page| self.directory.page_slots(page));
        let entries = slots.map(DirEntry::from_bits);
        let pinned = entries.filter(|entry| entry.is_pinned() && !entry.is_free());
        let bytes: u64 = pinned.map(DirEntry::size).sum();
        let counted = self.directory.pinned_bytes();
        assert_eq!(bytes, counted, "{}: pins", self.context());
        // An entry's size is up to a sixteenth above its fragment's.
        let most = self.stripe.geometry().log_bytes() / 10 * 17 / 16;
        let may_exceed = self.is_unsure || bytes <= most;
        assert!(may_exceed, "{}: {bytes} bytes pinned", self.context());
    }

    /// Whether a pinned version may have gone: a start went past it before the
    /// walk had been there.
    pub(super) fn is_pin_passed(&self, op: &Op) -> bool {
        op.position < self.pins_passed
    }

    /// A start that was not clean skips room that the walk has not been to. In
    /// so short a log any start leaves to the cursor what the walk was at, if
    /// that was a long batch.
    pub(super) fn pass_pins(&mut self, is_clean: bool) {
        self.walk = Walk::default();
        let log_bytes = self.stripe.geometry().log_bytes();
        let passed = self.directory.cursor().saturating_sub(log_bytes);
        let lead = if is_clean {
            log_bytes / 32
        } else {
            log_bytes / 8
        };
        self.pins_passed = self.pins_passed.max(passed + lead);
    }
}

/// A copy of a pinned fragment.
pub(super) fn copy_of<'a>(
    (key, meta): (u64, &'a [u8; 8]),
    body: &'a [Bytes],
    keep: &'a [DirEntry],
    entry: DirEntry,
) -> NewFragment<'a> {
    NewFragment {
        key_hash: hash(key),
        kind: FragmentKind::Head,
        meta,
        body,
        keep,
        copy_of: Some(entry),
        pinned: entry.is_pinned(),
    }
}
