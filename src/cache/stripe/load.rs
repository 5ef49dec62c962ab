//! The directory's pages after a start: those that are asked for first, the
//! rest behind.
//!
//! A page is filled from its copy, swept, and given its rows; then it is opened
//! to lookups and inserts. What found no room again is told first, so that
//! nothing that is believed to be gone is back at the next start; what the ring
//! block tells that the run begins with comes before all else anyway.

use super::plan::Freed;
use super::replay::{Replay, freed};
use super::{State, Stripe};
use crate::base::clock::MonoTime;
use crate::base::planted::{Planted, is_planted};
use crate::cache::directory::{Directory, Home, Removed};
use crate::cache::format::directory_page::{DISK_PAGE_BYTES, PageMark, verify_page};
use crate::cache::format::ring::RedoRow;
use crate::cache::format::{to_u64, to_usize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Pages of one read.
const READ_PAGES: u32 = 15;
/// Keys that may wait to be freed until their pages are read; what more come by
/// puts all of the past in doubt.
const FREES_MAX: usize = 1 << 18;

/// Pages to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRead {
    /// The first one.
    pub first: u32,
    /// How many there are.
    pub count: u32,
    /// Bytes from the stripe's start; a multiple of 4096.
    pub offset: u64,
    /// Bytes of each; a multiple of 4096.
    pub page_bytes: u64,
}

impl PageRead {
    /// Each page, and where it lies, in bytes from the stripe's start.
    pub fn each(self) -> impl Iterator<Item = (u32, u64)> {
        let pages = self.first..self.first.saturating_add(self.count);
        pages.map(move |page| {
            let before = u64::from(page - self.first) * self.page_bytes;
            (page, self.offset + before)
        })
    }

    /// Bytes of all of them.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.count) * self.page_bytes
    }
}

/// Pages by what became of them at a start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCount {
    /// Read from a copy.
    pub read: u32,
    /// Of them, damaged or not to be read: they began with their rows alone.
    pub bad: u32,
    /// Yet to be read.
    pub left: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageState {
    Unread,
    Asked,
    Reading,
    Filled,
}

/// A page that is opened when these are on the device.
#[derive(Clone, Copy, Debug)]
struct Settling {
    page: u32,
    ring_sequence: u64,
    batch_sequence: u64,
}

/// Pages that are not open yet, and the rows that wait for them.
#[derive(Debug)]
pub(super) struct Load {
    copy: usize,
    /// None where no copy was ever written.
    marks: Option<Vec<PageMark>>,
    replay: Replay,
    states: Vec<PageState>,
    asked: VecDeque<u32>,
    /// Those before it are asked for, or more.
    next: u32,
    left: u32,
    settling: Vec<Settling>,
    /// Where the log of earlier runs ends.
    past: u64,
    /// Keys to be freed as their pages are filled, by page.
    frees: BTreeMap<u32, BTreeSet<u128>>,
    /// How many there are.
    free_count: usize,
}

impl Load {
    /// `pages` pages to be read from a copy and its marks, if there is one; the
    /// log of earlier runs ends at the position `past`.
    pub(super) fn new(
        copy: Option<(u8, Vec<PageMark>)>,
        replay: Replay,
        pages: u32,
        past: u64,
    ) -> Self {
        let (copy, marks) = copy.unzip();
        Self {
            copy: usize::from(copy.unwrap_or(0)),
            marks,
            replay,
            states: vec![PageState::Unread; to_usize(pages.into())],
            asked: VecDeque::new(),
            next: 0,
            left: pages,
            settling: Vec::new(),
            past,
            frees: BTreeMap::new(),
            free_count: 0,
        }
    }

    /// Has a key freed when its page is filled; false when too many are already.
    fn free_later(&mut self, page: u32, key_hash: u128) -> bool {
        if self.free_count >= FREES_MAX {
            return false;
        }
        let is_new = self.frees.entry(page).or_default().insert(key_hash);
        self.free_count += usize::from(is_new);
        true
    }

    /// Frees the keys of a page that were to be; gives the rows that say so.
    fn free_due(&mut self, page: u32, directory: &Directory) -> Vec<RedoRow> {
        let keys = self.frees.remove(&page).unwrap_or_default();
        self.free_count -= keys.len();
        let homes = keys.iter().map(|key| Home::of(*key, directory.pages()));
        let removed = homes.flat_map(|home| directory.free_all(home, &[]));
        removed.map(|removed| freed(&removed)).collect()
    }

    fn state(&self, page: u32) -> Option<PageState> {
        self.states.get(to_usize(page.into())).copied()
    }

    fn set(&mut self, page: u32, state: PageState) {
        if let Some(old) = self.states.get_mut(to_usize(page.into())) {
            *old = state;
        }
    }

    pub(super) fn is_filled(&self, page: u32) -> bool {
        self.state(page) == Some(PageState::Filled)
    }

    pub(super) fn ask_for(&mut self, page: u32) {
        if self.state(page) == Some(PageState::Unread) {
            self.set(page, PageState::Asked);
            self.asked.push_back(page);
        }
    }

    /// The next pages to read: the first, and how many.
    fn take_next(&mut self) -> Option<(u32, u32)> {
        if let Some(page) = self.asked.pop_front() {
            self.set(page, PageState::Reading);
            return Some((page, 1));
        }
        let unread = |page: &u32| self.state(*page) == Some(PageState::Unread);
        let pages = u32::try_from(self.states.len()).unwrap_or(u32::MAX);
        let first = (self.next..pages).find(unread)?;
        let end = (first..pages.min(first + READ_PAGES))
            .find(|page| !unread(page))
            .unwrap_or(pages.min(first + READ_PAGES));
        (first..end).for_each(|page| self.set(page, PageState::Reading));
        self.next = end;
        Some((first, end - first))
    }
}

impl Stripe {
    /// Takes its pages from there from now on. Without a copy there is nothing
    /// to read: the rows are all there is.
    pub(super) fn read_pages(&mut self, load: Load) {
        let has_copy = load.marks.is_some();
        self.pages.left = load.left;
        self.load = Some(load);
        if !has_copy {
            // The run's first ring block tells what is dropped: no batch begins
            // here, and so the time does not matter.
            let now = MonoTime::default();
            (0..self.geometry.pages()).for_each(|page| self.take_page(now, page, &[]));
        }
    }

    /// Whether all pages have been read.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        self.pages.left == 0
    }

    /// What became of the pages at the start.
    #[must_use]
    pub const fn page_count(&self) -> PageCount {
        self.pages
    }

    /// Asks for a page before the others; changes nothing for one that has been
    /// read, is being read, or that there is not.
    pub fn ask_for(&mut self, page: u32) {
        if let Some(load) = self.load.as_mut() {
            load.ask_for(page);
        }
    }

    /// Asks for the page of the key with this hash.
    pub fn ask_for_key(&mut self, key_hash: u128) {
        self.ask_for(Home::of(key_hash, self.geometry.pages()).page);
    }

    /// Frees what a key has, and whatever has its tag, before its page is used:
    /// now, if that has been read and is not open yet, or as soon as it has been.
    pub fn free_when_read(&mut self, now: MonoTime, key_hash: u128) {
        let home = Home::of(key_hash, self.geometry.pages());
        match self.load.as_mut() {
            Some(load) if !load.is_filled(home.page) => {
                if !load.free_later(home.page, key_hash) {
                    self.doubt_unread();
                }
            }
            Some(_) | None => {
                let removed = self.directory.free_all(home, &[]);
                self.log_frees(now, key_hash, &removed);
            }
        }
    }

    /// Puts in doubt what earlier runs have left.
    pub fn doubt_unread(&mut self) {
        let past = self.load.as_ref().map_or(0, |load| load.past);
        let doubt = self.directory.suspect_below().max(past);
        self.directory.set_suspect_below(doubt);
    }

    /// The pages to read next, of which each is to be given to `take_page`;
    /// `None` when there is nothing to begin, and of a stripe that is closed.
    pub fn next_pages(&mut self) -> Option<PageRead> {
        let is_over = matches!(self.state, State::Closed | State::Failed);
        let load = self.load.as_mut().filter(|_| !is_over)?;
        let (first, count) = load.take_next()?;
        Some(PageRead {
            first,
            count,
            offset: self.geometry.page_offset(load.copy, first),
            page_bytes: self.geometry.page_bytes(),
        })
    }

    /// Reads all pages, by who has nothing else to do: `read` gives the bytes
    /// at an offset from the stripe's start, of a length.
    pub fn read_all<B: AsRef<[u8]>>(&mut self, read: impl Fn(u64, u64) -> Option<B>) {
        while let Some(pages) = self.next_pages() {
            for (page, offset) in pages.each() {
                let bytes = read(offset, pages.page_bytes);
                let bytes = bytes.as_ref().map_or(&[][..], AsRef::as_ref);
                self.take_page(MonoTime::default(), page, bytes);
            }
        }
    }

    /// Takes the bytes of a page: none if it could not be read. A page that is
    /// here already is left as it is.
    pub fn take_page(&mut self, now: MonoTime, page: u32, bytes: &[u8]) {
        let Some(load) = self.load.as_mut() else {
            return;
        };
        if matches!(load.state(page), None | Some(PageState::Filled)) {
            return;
        }
        load.set(page, PageState::Filled);
        let mut settling = Settling {
            page,
            ring_sequence: 0,
            batch_sequence: 0,
        };
        if is_planted(Planted::PageAfterRows) {
            self.apply_rows(now, &mut settling);
        }
        if !self.fill_page(page, bytes) {
            settling.ring_sequence = self.doubt_the_past();
        }
        let is_last = self.pages.left == 1;
        if is_last || !is_planted(Planted::PageBeforeRows) {
            self.apply_rows(now, &mut settling);
        }
        self.free_due(now, page);
        if let Some(load) = self.load.as_mut() {
            load.settling.push(settling);
        }
        self.pages.left -= 1;
        self.open_settled();
    }

    /// Fills a page from the bytes of its copy; whether these were read.
    fn fill_page(&mut self, page: u32, bytes: &[u8]) -> bool {
        let marks = self.load.as_ref().and_then(|load| load.marks.as_ref());
        let Some(marks) = marks else { return true };
        let mark = marks.get(to_usize(page.into()));
        let name = (self.identity.uuid, page);
        self.pages.read += 1;
        match mark.map(|mark| verify_page(bytes, name, *mark)) {
            Some(Ok(copy)) => self.directory.load_page(page, &copy),
            Some(Err(_)) | None => self.pages.bad += 1,
        }
        to_u64(bytes.len()) >= DISK_PAGE_BYTES || is_planted(Planted::UnreadTrusted)
    }

    /// What can't be read now may be there at the next start, and is older than
    /// what it does not know of. Gives the ring block to wait for, which says
    /// so; not the one that the run begins with, before which nothing is written.
    fn doubt_the_past(&mut self) -> u64 {
        self.doubt_unread();
        let is_first = self.redo.is_gathering();
        let told = self.redo.tell(Vec::new());
        if is_first { 0 } else { told }
    }

    /// Applies a page's rows, and tells of what found no room again.
    fn apply_rows(&mut self, now: MonoTime, settling: &mut Settling) {
        let Some(load) = self.load.as_mut() else {
            return;
        };
        let pages = if is_planted(Planted::PageBeforeRows) {
            0..self.geometry.pages()
        } else {
            settling.page..settling.page + 1
        };
        let (replay, directory) = (&mut load.replay, &self.directory);
        let dropped = pages.flat_map(|page| replay.apply(page, directory));
        let dropped: Vec<RedoRow> = dropped.collect();
        if dropped.is_empty() || is_planted(Planted::DroppedUntold) {
            return;
        }
        if let Some(sequence) = self.tell_gone(now, dropped) {
            settling.batch_sequence = sequence;
            self.flush();
        }
    }

    /// Frees what is to be freed of a page, and tells of it as of any free: the
    /// page does not wait for that.
    fn free_due(&mut self, now: MonoTime, page: u32) {
        let Some(load) = self.load.as_mut() else {
            return;
        };
        let gone = load.free_due(page, &self.directory);
        if !gone.is_empty() {
            self.tell_gone(now, gone);
        }
    }

    /// Tells of what is gone in the ring block that waits to go out first, or
    /// else in the next batch, whose sequence it gives.
    fn tell_gone(&mut self, now: MonoTime, gone: Vec<RedoRow>) -> Option<u64> {
        if self.redo.is_gathering() {
            self.redo.tell(gone);
            return None;
        }
        let removed: Vec<Removed> = gone.iter().map(removed).collect();
        let Freed { sequence, .. } = self.log_frees(now, 0, &removed);
        Some(sequence)
    }

    /// Opens the pages that are filled, and all that they had to tell is told.
    pub(super) fn open_settled(&mut self) {
        let Some(load) = self.load.as_mut() else {
            return;
        };
        let ring = self.redo.written_sequence();
        let batch = self.directory.written_sequence();
        load.settling.retain(|settling| {
            let waits = settling.ring_sequence > ring || settling.batch_sequence > batch;
            if !waits {
                self.directory.open(settling.page);
            }
            waits
        });
        if self.pages.left == 0 && load.settling.is_empty() {
            self.load = None;
        }
    }
}

fn removed(row: &RedoRow) -> Removed {
    Removed {
        page: row.page,
        bucket: row.bucket,
        entry: row.entry,
        for_room: true,
    }
}
