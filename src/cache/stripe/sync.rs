//! A sync: the directory goes to the older of its two copies.
//!
//! Order, and what a crash after each step leaves:
//! 1. pages, one chunk at a time with rests between, and those that a start has
//!    not read yet once they have been: the header names the other copy,
//!    untouched;
//! 2. page table: the same;
//! 3. the batches that the pages may tell of are written: the same. Without
//!    this step an entry could be in the copy whose batch never came, and the
//!    one that it replaced would be lost;
//! 4. flush; 5. first header; 6. flush; 7. second header: the newer of the two
//!    headers is right at any moment, since both copies are whole from 4 on;
//! 8. flush: now the ring before this sync's beginning is free.

use super::drive::Job;
use super::geometry::Geometry;
use super::load::Load;
use super::plan::{Action, Cause, Completion, Outcome, Plan};
use super::{State, Stripe};
use crate::base::aligned::AlignedBuf;
use crate::base::clock::MonoTime;
use crate::base::planted::{Planted, is_planted};
use crate::cache::directory::Directory;
use crate::cache::format::directory_page::{PageMark, PageName, encode_page_table};
use crate::cache::format::stripe_header::{ChainPoint, GoodCopy, StripeContent};
use crate::cache::format::to_usize;
use bytes::Bytes;
use std::ops::Range;
use std::time::Duration;

/// A sync begins when the log has grown by so many times the directory's size.
const SYNC_GROWTH: u64 = 50;
/// Pages of one write.
const CHUNK_PAGES: u32 = 15;
/// Times that writes of so many pages took, for which the device is left to
/// others behind them: a sync takes a quarter of the device, of a busy one less.
const REST: u32 = 3;
/// The longest such rest: one write that hung is no reason to wait for long.
const REST_MAX: Duration = Duration::from_millis(250);

/// The step that a sync is at; each step's I/O is out at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Pages from this one on are to be copied.
    Pages(u32),
    /// The page table is to be written.
    Table,
    /// This batch is to be written first.
    Log(u64),
    /// All of that is to be flushed.
    FlushCopy,
    /// This header is to be written, 0 or 1.
    Header(usize),
    /// This header is to be flushed.
    FlushHeader(usize),
}

/// A sync under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct SyncRun {
    pub(super) step: Step,
    /// Its I/O is out.
    pub(super) waiting: bool,
    pub(super) sequence: u64,
    pub(super) copy: u8,
    /// Where a start reads the log and the ring from, if the copy is good.
    pub(super) log: ChainPoint,
    pub(super) ring: ChainPoint,
    /// Where the walk ahead of the cursor was when it began. What that has kept
    /// since may be lost with a kill: the next start goes over it again.
    evacuation: u64,
    /// When the last chunk was handed out.
    sent: MonoTime,
    /// The next one is not handed out before.
    rests_until: MonoTime,
    /// Pages written since the last rest, and how long that took.
    unrested: (u32, Duration),
}

impl SyncRun {
    /// Notes that so many pages were written by `now`; behind as many as a full
    /// write has, it rests.
    fn rest_behind(&mut self, pages: u32, now: MonoTime) {
        let (before, busy) = self.unrested;
        self.unrested = (before + pages, busy + now.since(self.sent));
        if self.unrested.0 >= CHUNK_PAGES {
            let (_, busy) = std::mem::take(&mut self.unrested);
            self.rests_until = now.plus(busy.saturating_mul(REST).min(REST_MAX));
        }
    }
}

/// A run of changed pages, ready to be written.
#[derive(Debug)]
pub(super) struct Chunk {
    /// Bytes from the stripe's start.
    pub(super) offset: u64,
    pub(super) bytes: Bytes,
    pub(super) first: u32,
    /// The page behind it.
    pub(super) end: u32,
}

/// What is to be copied next.
#[derive(Debug)]
pub(super) enum Copying {
    Chunk(Chunk),
    /// Nothing before this page is read.
    Unread(u32),
    /// All is copied.
    Done,
}

/// What is copied, and where to.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyTarget<'a> {
    pub(super) uuid: u128,
    pub(super) geometry: &'a Geometry,
    pub(super) directory: &'a Directory,
    /// Pages that are yet to be read.
    pub(super) load: Option<&'a Load>,
}

impl CopyTarget<'_> {
    /// Copies the next run of pages that changed since they were in this copy.
    /// A page that is yet to be read is waited for: in the other copy it is as
    /// it was before its rows.
    fn next_chunk(&self, run: &SyncRun, from: u32, marks: &mut [PageMark]) -> Copying {
        let directory = self.directory;
        let takes = |page: u32| self.is_read(page) && directory.take_dirty(page, run.copy);
        let next = (from..directory.pages()).find(|page| !self.is_read(*page) || takes(*page));
        let first = match next {
            None => return Copying::Done,
            Some(page) if !self.is_read(page) => return Copying::Unread(page),
            Some(page) => page,
        };
        let limit = directory.pages().min(first + CHUNK_PAGES);
        let end = (first + 1..limit).find(|page| !takes(*page));
        Copying::Chunk(self.chunk(run, first..end.unwrap_or(limit), marks))
    }

    fn is_read(&self, page: u32) -> bool {
        let is_filled = self.load.is_none_or(|load| load.is_filled(page));
        is_filled || is_planted(Planted::UnreadPageSynced)
    }

    fn chunk(&self, run: &SyncRun, pages: Range<u32>, marks: &mut [PageMark]) -> Chunk {
        let page_bytes = to_usize(self.geometry.page_bytes());
        let mut buf = AlignedBuf::zeroed(page_bytes * pages.len());
        for (page, out) in pages.clone().zip(buf.chunks_exact_mut(page_bytes)) {
            let name = PageName {
                uuid: self.uuid,
                page,
                sync_sequence: run.sequence,
                cursor: self.directory.cursor(),
            };
            let mark = name.encode_into(self.directory.page_slots(page), out);
            if let Some(kept) = marks.get_mut(to_usize(u64::from(page))) {
                *kept = mark;
            }
        }
        let Range { start, end } = pages;
        Chunk {
            offset: self.geometry.page_offset(usize::from(run.copy), start),
            bytes: buf.into_bytes(),
            first: start,
            end,
        }
    }
}

impl Stripe {
    pub(super) fn poll_sync(&mut self, now: MonoTime) -> Option<Plan> {
        if self.sync.is_none() && self.sync_is_due(now) {
            self.begin_sync(now);
        }
        self.drop_sync_at_close();
        loop {
            let run = self.sync.filter(|run| !run.waiting)?;
            let next = match run.step {
                Step::Pages(_) if self.rests(&run, now) => return None,
                Step::Pages(from) => match self.copy_on(&run, from) {
                    Copying::Chunk(chunk) => return Some(self.chunk_plan(now, chunk)),
                    Copying::Unread(page) => {
                        self.ask_for(page);
                        return None;
                    }
                    Copying::Done => Step::Table,
                },
                Step::Log(sequence) if self.must_wait(sequence) => return None,
                Step::Log(_) => Step::FlushCopy,
                Step::Table => return Some(self.table_plan(&run)),
                Step::Header(slot) => {
                    self.set_sync(run.step, true);
                    return Some(self.header_plan(slot, Job::Sync));
                }
                Step::FlushCopy if is_planted(Planted::HeaderBeforeFlush) => {
                    self.take_header(&run);
                    Step::Header(0)
                }
                Step::FlushCopy | Step::FlushHeader(_) => {
                    self.set_sync(run.step, true);
                    return Some(self.plan(Job::Sync, Cause::Flush, Action::Flush));
                }
            };
            self.set_sync(next, false);
        }
    }

    /// Whether the device is left to others. Nothing rests when the ring, which
    /// the sync makes room in, is nearly full: then batches would wait for it.
    fn rests(&self, run: &SyncRun, now: MonoTime) -> bool {
        let ring = self.geometry.ring_bytes();
        let ring_lasts = self.redo.used() < ring / 16 * 13;
        now < run.rests_until && ring_lasts && self.state == State::Open
    }

    /// Whether a batch that the pages may tell of is not written yet.
    fn must_wait(&self, sequence: u64) -> bool {
        let passed = self.directory.written_sequence().max(self.lost_through);
        passed < sequence && !is_planted(Planted::SyncWaitsForNoBatch)
    }

    fn sync_is_due(&self, now: MonoTime) -> bool {
        let ring = self.geometry.ring_bytes();
        let ring_fills = self.redo.used() >= ring / 4 * 3;
        let covered = self.redo.covered.position;
        let grown = covered.saturating_sub(self.last_sync_position);
        let log_grew = grown >= SYNC_GROWTH * self.geometry.directory_bytes();
        let rested = now.since(self.last_sync) >= self.options.sync_interval;
        let wanted = self.state == State::Open && (ring_fills || log_grew && rested);
        let is_over = self.state == State::Flushing;
        self.opening.is_empty() && !is_over && (self.sync_asked || wanted)
    }

    fn begin_sync(&mut self, now: MonoTime) {
        self.sync_asked = false;
        self.last_sync = now;
        self.last_sync_position = self.redo.covered.position;
        if is_planted(Planted::RingFreedTooEarly) {
            self.redo.floor = self.redo.next.position;
        }
        self.sync = Some(SyncRun {
            step: Step::Pages(0),
            waiting: false,
            sequence: self.header.sync_sequence + 1,
            copy: self.header.good.map_or(0, |good| 1 - good.copy.min(1)),
            log: self.redo.covered,
            ring: self.redo.next,
            evacuation: self.evacuation,
            sent: now,
            rests_until: now,
            unrested: (0, Duration::ZERO),
        });
    }

    /// A stop waits for no sync, unless a header may be half-way, or the ring
    /// has no room for the stop's own block without it.
    fn drop_sync_at_close(&mut self) {
        let closing = self.state == State::Closing && self.redo.has_last_room(&self.geometry);
        let early = |run: &SyncRun| {
            !run.waiting && !matches!(run.step, Step::Header(_) | Step::FlushHeader(_))
        };
        if closing && self.sync.as_ref().is_some_and(early) {
            self.sync = None;
        }
    }

    fn set_sync(&mut self, step: Step, waiting: bool) {
        if let Some(run) = self.sync.as_mut() {
            run.step = step;
            run.waiting = waiting;
        }
    }

    fn copy_on(&mut self, run: &SyncRun, from: u32) -> Copying {
        let target = CopyTarget {
            uuid: self.identity.uuid,
            geometry: &self.geometry,
            directory: &self.directory,
            load: self.load.as_ref(),
        };
        let marks = &mut self.marks[usize::from(run.copy & 1)];
        target.next_chunk(run, from, marks)
    }

    fn chunk_plan(&mut self, now: MonoTime, chunk: Chunk) -> Plan {
        if let Some(run) = self.sync.as_mut() {
            run.waiting = true;
            run.sent = now;
        }
        let job = Job::Pages {
            first: chunk.first,
            end: chunk.end,
        };
        let action = Action::Write {
            offset: chunk.offset,
            bytes: chunk.bytes,
        };
        self.plan(job, Cause::Pages, action)
    }

    fn table_plan(&mut self, run: &SyncRun) -> Plan {
        let copy = usize::from(run.copy & 1);
        let name = (self.identity.uuid, run.sequence);
        let length = self.geometry.page_table_bytes();
        let reach = self.directory.cursor().saturating_sub(run.log.position);
        let marks = (self.marks[copy].as_slice(), reach);
        let (buf, table_checksum) = encode_page_table(name, marks, length);
        self.table_checksum = table_checksum;
        self.set_sync(run.step, true);
        let action = Action::Write {
            offset: self.geometry.page_table_offset(copy),
            bytes: buf.into_bytes(),
        };
        self.plan(Job::Sync, Cause::PageTable, action)
    }

    pub(super) fn pages_done(
        &mut self,
        now: MonoTime,
        Range { start: first, end }: Range<u32>,
        outcome: Outcome,
    ) -> Completion {
        match outcome {
            Outcome::Done => {
                self.set_sync(Step::Pages(end), false);
                if let Some(run) = self.sync.as_mut() {
                    run.rest_behind(end - first, now);
                }
                Completion::written(u64::from(end - first) * self.geometry.page_bytes())
            }
            Outcome::Failed => {
                let end = if is_planted(Planted::FailedPageForgotten) {
                    first
                } else {
                    end
                };
                for page in first..end {
                    self.directory.mark_page_dirty(page);
                }
                self.sync = None;
                Completion::default()
            }
        }
    }

    pub(super) fn sync_done(&mut self, now: MonoTime, outcome: Outcome) -> Completion {
        let Some(run) = self.sync else {
            return Completion::default();
        };
        if outcome == Outcome::Failed {
            return self.sync_failed(&run);
        }
        let mut written = 0;
        let next = match run.step {
            Step::Table => {
                written = self.geometry.page_table_bytes();
                Step::Log(self.flush())
            }
            Step::FlushCopy => {
                self.take_header(&run);
                Step::Header(0)
            }
            Step::Header(slot) => {
                written = u64::from(self.geometry.block());
                Step::FlushHeader(slot)
            }
            Step::FlushHeader(0) => Step::Header(1),
            Step::FlushHeader(_) | Step::Pages(_) | Step::Log(_) => {
                self.redo.floor = run.ring.position;
                self.last_sync = now;
                self.sync = None;
                return Completion::default();
            }
        };
        self.set_sync(next, false);
        Completion::written(written)
    }

    /// Before a header was touched a sync can just be given up. After that it
    /// is not known which copy a start would take, so none may be written.
    fn sync_failed(&mut self, run: &SyncRun) -> Completion {
        match run.step {
            Step::Header(_) | Step::FlushHeader(_) => self.state = State::Failed,
            Step::FlushCopy => self.copy_again(run),
            Step::Pages(_) | Step::Table | Step::Log(_) => {}
        }
        self.sync = None;
        Completion::default()
    }

    /// Takes the pages that a sync wrote for changed: after a flush that failed
    /// they may never come to the medium, whatever a later one says.
    fn copy_again(&self, run: &SyncRun) {
        let marks = (0..).zip(&self.marks[usize::from(run.copy & 1)]);
        let written = marks.filter(|(_, mark)| mark.sync_sequence == run.sequence);
        written.for_each(|(page, _)| self.directory.mark_page_missing(page, run.copy));
    }

    fn take_header(&mut self, run: &SyncRun) {
        let (log, ring) = if is_planted(Planted::SyncPointTooLate) {
            (self.redo.covered, self.redo.next)
        } else {
            (run.log, run.ring)
        };
        self.header = StripeContent {
            generation: self.header.generation + 1,
            good: Some(GoodCopy {
                copy: run.copy,
                table_checksum: self.table_checksum,
            }),
            sync_sequence: run.sequence,
            is_opened: false,
            log,
            ring,
            evacuation: run.evacuation,
            ..self.header
        };
    }
}
