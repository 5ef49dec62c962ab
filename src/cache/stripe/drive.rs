//! What to do next, and what follows from what was done.

use super::plan::{Action, Cause, Completion, Outcome, Plan, PlanId};
use super::redo::{BlockStamp, SentBlock};
use super::{State, Stripe};
use crate::base::clock::MonoTime;
use crate::base::planted::{Planted, is_planted};
use crate::base::size::round_up;
use crate::cache::directory::{Directory, Home};
use crate::cache::format::batch::{Row, RowKind};
use crate::cache::format::dir_entry::BLOCK_BYTES;
use crate::cache::format::ring::RedoRow;
use crate::cache::format::to_u64;

/// A write is tried so often.
const ATTEMPTS: u8 = 2;

/// What a stripe writes before its first batch, last one first.
#[derive(Clone, Copy, Debug)]
pub(super) enum Opening {
    Header(usize),
    Flush,
}

impl Opening {
    /// Both headers, the first one safe before the second is touched.
    pub(super) const ALL: [Self; 4] = [Self::Flush, Self::Header(1), Self::Flush, Self::Header(0)];
}

/// What a plan that is out is for.
#[derive(Clone, Debug)]
pub(super) enum Job {
    Batch,
    Ring,
    Pages { first: u32, end: u32 },
    Sync,
    Opening,
    Closing,
}

impl Stripe {
    /// The next I/O to do now, if there is any. Call it until there is none.
    pub fn poll(&mut self, now: MonoTime) -> Option<Plan> {
        if matches!(self.state, State::Failed | State::Closed) {
            return None;
        }
        self.poll_opening()
            .or_else(|| self.poll_ring())
            .or_else(|| self.poll_batch(now))
            .or_else(|| self.poll_sync(now))
            .or_else(|| self.poll_close())
            // The stop's own block may have no room without a sync.
            .or_else(|| self.poll_sync(now))
    }

    /// Asks that all that was appended and freed so far be written without
    /// waiting for more. Gives the batch to wait for: it is done when
    /// `Directory::written_sequence` reaches it.
    pub fn flush(&mut self) -> u64 {
        self.flush_through = self.last_sequence();
        self.flush_through
    }

    /// Asks for a sync of the directory as soon as none is under way.
    pub const fn sync(&mut self) {
        self.sync_asked = true;
    }

    /// Writes out what there is and a last ring block; takes no appends from
    /// now on. `is_closed` says when it is done.
    pub fn close(&mut self) {
        if self.state == State::Open {
            self.state = State::Closing;
        }
        self.flush();
    }

    /// Takes note of how a plan ended; an id that is not out changes nothing.
    pub fn complete(&mut self, now: MonoTime, id: PlanId, outcome: Outcome) -> Completion {
        let Some(at) = self.jobs.iter().position(|(out, _)| *out == id) else {
            return Completion::default();
        };
        let (_, job) = self.jobs.swap_remove(at);
        let completion = self.job_done(now, &job, outcome);
        self.open_settled();
        completion
    }

    fn job_done(&mut self, now: MonoTime, job: &Job, outcome: Outcome) -> Completion {
        match (job, outcome) {
            (Job::Batch, Outcome::Done) => self.batch_written(),
            (Job::Batch, Outcome::Failed) => self.batch_failed(),
            (Job::Ring, Outcome::Done) => self.ring_written(),
            (Job::Ring, Outcome::Failed) => self.ring_failed(),
            (Job::Pages { first, end }, _) => self.pages_done(now, *first..*end, outcome),
            (Job::Sync, _) => self.sync_done(now, outcome),
            (Job::Opening, _) => self.opening_done(outcome),
            (Job::Closing, _) => self.closed(),
        }
    }

    pub(super) fn plan(&mut self, job: Job, cause: Cause, action: Action) -> Plan {
        self.next_plan += 1;
        let id = PlanId(self.next_plan);
        self.jobs.push((id, job));
        Plan { id, cause, action }
    }

    fn is_out(&self, wanted: fn(&Job) -> bool) -> bool {
        self.jobs.iter().any(|(_, job)| wanted(job))
    }

    /// The headers of a new stripe, which is nothing without them, or of one
    /// that has just been recovered, which notes the run it takes part in: once
    /// the ring has a block of that run, or has no room for one.
    fn poll_opening(&mut self) -> Option<Plan> {
        let first_block = self.redo.is_forced() && self.redo.has_room(&self.geometry);
        let waits = first_block || self.redo.sent.is_some();
        if waits || self.is_out(|job| matches!(job, Job::Opening)) {
            return None;
        }
        let slot = match self.opening.last()? {
            Opening::Header(slot) => *slot,
            Opening::Flush => return Some(self.plan(Job::Opening, Cause::Flush, Action::Flush)),
        };
        Some(self.header_plan(slot, Job::Opening))
    }

    pub(super) fn header_plan(&mut self, slot: usize, job: Job) -> Plan {
        let action = Action::Write {
            offset: self.geometry.header_offsets()[slot & 1],
            bytes: self.header_content().encode().into_bytes(),
        };
        self.plan(job, Cause::Header, action)
    }

    fn opening_done(&mut self, outcome: Outcome) -> Completion {
        let is_flush = matches!(self.opening.last(), Some(Opening::Flush));
        if is_flush && outcome == Outcome::Done {
            self.note_flushed(self.directory.written_sequence());
        }
        let is_new = self.header.generation == 1;
        if outcome == Outcome::Failed && is_new {
            self.state = State::Failed;
        }
        match self.opening.pop() {
            Some(Opening::Header(_)) => Completion::written(u64::from(self.geometry.block())),
            Some(Opening::Flush) if outcome == Outcome::Done && !is_new => self.tell_opened(),
            Some(Opening::Flush) | None => Completion::default(),
        }
    }

    /// What was flushed is the first header, and before it the ring's block of
    /// this run, unless there was no room: the second header tells of it.
    fn tell_opened(&mut self) -> Completion {
        if !self.redo.is_forced() && !self.opening.is_empty() {
            self.header.is_opened = true;
            self.header.generation += 1;
        }
        Completion::default()
    }

    fn poll_batch(&mut self, now: MonoTime) -> Option<Plan> {
        let held = self.redo.is_forced() || !self.opening.is_empty();
        if held || self.is_out(|job| matches!(job, Job::Batch)) {
            return None;
        }
        if self.sealed.is_empty() && self.is_due(now) {
            self.seal();
        }
        let batch = self.sealed.front_mut()?;
        batch.attempts += 1;
        let offset = batch.start % self.geometry.log_bytes();
        let bytes = batch.bytes.clone();
        let action = Action::Write {
            offset: self.geometry.log_offset() + offset,
            bytes,
        };
        Some(self.plan(Job::Batch, Cause::Batch, action))
    }

    fn is_due(&self, now: MonoTime) -> bool {
        self.filling.as_ref().is_some_and(|filling| {
            filling.used >= u64::from(self.options.flush_bytes)
                || filling.sequence <= self.flush_through
                || now.since(filling.born) >= self.options.flush_after
        })
    }

    fn batch_written(&mut self) -> Completion {
        let Some(batch) = self.sealed.pop_front() else {
            return Completion::default();
        };
        self.redo.take(batch.rows.iter().map(redo_row), batch.next);
        self.frees.take(&batch.rows, batch.sequence);
        self.directory
            .set_written(batch.next.position, batch.sequence);
        Completion::written(to_u64(batch.bytes.len()))
    }

    /// A failed batch is tried once more, same place and bytes. Then its
    /// entries are gone, its region counts as passed, and a ring block says so
    /// before the next batch: a start could not walk over it.
    fn batch_failed(&mut self) -> Completion {
        let spent = |batch: &super::batch::Sealed| batch.attempts >= ATTEMPTS;
        if !self.sealed.front().is_some_and(spent) {
            return Completion::default();
        }
        let Some(batch) = self.sealed.pop_front() else {
            return Completion::default();
        };
        let rows: Vec<RedoRow> = batch.rows.iter().map(redo_row).map(freed).collect();
        let puts = batch.rows.iter().filter(|row| row.kind == RowKind::Put);
        let lost_bytes = puts
            .clone()
            .map(|row| round_up(row.length.into(), BLOCK_BYTES))
            .sum();
        let puts = puts.filter(|_| !is_planted(Planted::KeptAfterFailedFlush));
        let lost = puts.map(|row| free_row(&self.directory, row)).sum();
        self.redo.take(rows.into_iter(), batch.next);
        self.frees.take(&batch.rows, batch.sequence);
        if !is_planted(Planted::FailureUntold) {
            self.redo.pass(batch.next);
        }
        // Its rows are written when that block is: who waits for them waits on.
        self.lost_through = batch.sequence;
        let told = batch.sequence - u64::from(!is_planted(Planted::LossCountsAsWritten));
        self.directory.set_written(batch.next.position, told);
        Completion {
            written: 0,
            lost,
            lost_bytes,
        }
    }

    fn poll_ring(&mut self) -> Option<Plan> {
        if self.is_out(|job| matches!(job, Job::Ring)) {
            return None;
        }
        if let Some(again) = self.redo.sent.clone() {
            return Some(self.ring_plan(&again));
        }
        let due = self.redo.is_forced() || self.redo.is_due(self.geometry.log_bytes());
        if !due {
            return None;
        }
        self.send_ring(false)
    }

    fn send_ring(&mut self, clean: bool) -> Option<Plan> {
        let has_room = if clean {
            self.redo.has_last_room(&self.geometry)
        } else {
            self.redo.has_room(&self.geometry)
        };
        if !has_room {
            // Only a sync makes room. It waits for the batches there are, and
            // they for a block that must go out first: then nothing helps.
            let batches = self.filling.is_some() || !self.sealed.is_empty();
            if self.redo.is_forced() && batches {
                self.state = State::Failed;
            }
            self.sync_asked = true;
            return None;
        }
        let stamp = BlockStamp {
            uuid: self.identity.uuid,
            run: self.identity.run,
            suspect_below: self.directory.suspect_below(),
            clean,
        };
        let sent = self.redo.send(stamp, &self.geometry);
        Some(self.ring_plan(&sent))
    }

    fn ring_plan(&mut self, sent: &SentBlock) -> Plan {
        let action = Action::Write {
            offset: sent.offset,
            bytes: sent.bytes.clone(),
        };
        self.plan(Job::Ring, Cause::Ring, action)
    }

    fn ring_written(&mut self) -> Completion {
        if self.redo.sent.as_ref().is_some_and(|sent| sent.clean) {
            self.state = State::Flushing;
        }
        let written = self.redo.written();
        if !self.redo.is_forced() && self.lost_through > self.directory.written_sequence() {
            let position = self.directory.written_position();
            self.directory.set_written(position, self.lost_through);
        }
        Completion::written(written)
    }

    /// Nothing can be told any more, so nothing may be written any more.
    fn ring_failed(&mut self) -> Completion {
        let retry = self.redo.sent.as_mut().is_some_and(|sent| {
            sent.attempts += 1;
            sent.attempts < ATTEMPTS
        });
        if !retry {
            self.state = State::Failed;
        }
        Completion::default()
    }

    fn poll_close(&mut self) -> Option<Plan> {
        if self.state == State::Flushing && self.jobs.is_empty() {
            return Some(self.plan(Job::Closing, Cause::Flush, Action::Flush));
        }
        let idle = self.is_idle() && self.redo.sent.is_none();
        if self.state != State::Closing || !idle {
            return None;
        }
        self.send_ring(true)
    }

    fn closed(&mut self) -> Completion {
        self.state = State::Closed;
        Completion::default()
    }
}

impl Completion {
    pub(super) fn written(bytes: u64) -> Self {
        Self {
            written: bytes,
            ..Self::default()
        }
    }
}

const fn redo_row(row: &Row) -> RedoRow {
    RedoRow {
        kind: row.kind,
        page: row.page,
        bucket: row.bucket,
        entry: row.entry,
    }
}

fn freed(row: RedoRow) -> RedoRow {
    RedoRow {
        kind: RowKind::Free,
        ..row
    }
}

fn free_row(directory: &Directory, row: &Row) -> u64 {
    let home = Home::of_entry(row.page, row.bucket, row.entry.tag());
    to_u64(directory.free_entry(home, row.entry).len())
}
