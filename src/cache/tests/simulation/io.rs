//! I/Os under way, and what the disk makes of them.

use super::history::{Fate, History};
use super::stripe::{LENGTH, World};
use super::weather::Weather;
use crate::cache::format::{to_u64, to_usize};
use crate::cache::stripe::{Action, Cause, Outcome, Plan};

/// What a disk does instead of what it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing else.
    None,
    /// It fails, having done some of it.
    Error,
    /// It takes very long.
    Hang,
    /// It says that it wrote, and did not.
    Lost,
    /// It wrote there instead.
    Astray(u64),
}

/// A plan that is out. Its beginning, its half and its end are steps.
#[derive(Clone, Debug)]
pub(super) struct Io {
    pub(super) plan: Plan,
    pub(super) fault: Fault,
    /// Writes that the disk had done when it began.
    pub(super) written: usize,
    /// The last batch that was written when it began.
    pub(super) sequence: u64,
    /// Some of it is on the disk.
    pub(super) torn: bool,
}

impl World {
    /// Begins what is due and ends one I/O; whether there was any.
    pub(super) fn pump(&mut self) -> bool {
        self.begin_io();
        let Some(io) = self.out.pop() else {
            let reads = !self.stripe.is_closed() && !self.stripe.is_read();
            if reads {
                self.step_page();
            }
            return reads && !self.stripe.has_failed();
        };
        self.finish(&io);
        true
    }

    pub(super) fn begin_io(&mut self) {
        let Some(plan) = self.stripe.poll(self.now) else {
            return;
        };
        let fault = self.fault(&plan.action, plan.cause);
        let (written, sequence) = (self.disk.written(), self.directory.written_sequence());
        self.out.push(Io {
            plan,
            fault,
            written,
            sequence,
            torn: false,
        });
    }

    fn fault(&mut self, action: &Action, cause: Cause) -> Fault {
        let dice = self.prng.below(100);
        let lies = if cause == Cause::Pages { 30 } else { 4 };
        if dice < self.error_percent(cause) {
            return Fault::Error;
        }
        match self.climate.weather {
            Weather::Slow if dice < 8 => Fault::Hang,
            Weather::Lying if self.harmed.is_none() && dice < lies => self.lie(action),
            Weather::Calm | Weather::Failing | Weather::Power => Fault::None,
            Weather::Slow | Weather::Lying => Fault::None,
        }
    }

    fn error_percent(&self, cause: Cause) -> u64 {
        let is_batch = cause == Cause::Batch;
        // What failed once is likely to fail again.
        let again = is_batch && self.tried > self.directory.written_sequence();
        match self.climate.weather {
            Weather::Slow | Weather::Lying => 0,
            Weather::Calm | Weather::Power | Weather::Failing if again => 40,
            Weather::Calm | Weather::Power => 6 * u64::from(is_batch),
            Weather::Failing if is_batch || cause == Cause::Pages => 10,
            Weather::Failing => 3,
        }
    }

    fn lie(&mut self, action: &Action) -> Fault {
        let Action::Write { offset, bytes } = action else {
            return Fault::None;
        };
        self.harmed = Some(self.directory.written_sequence() + 1);
        self.is_unsure = true;
        if self.prng.below(2) == 0 {
            return Fault::Lost;
        }
        let (length, geometry) = (to_u64(bytes.len()), self.stripe.geometry());
        let [first, second] = [0, 1].map(|copy| geometry.page_offset(copy, 0));
        if (first..geometry.ring_offset()).contains(offset) {
            // To the other copy.
            let to = if *offset < second - 4096 {
                offset + second - first
            } else {
                offset + first - second
            };
            return Fault::Astray(to);
        }
        let blocks = (LENGTH - length) / 4096;
        Fault::Astray(self.prng.below(blocks + 1) * 4096)
    }

    pub(super) fn rot(&mut self) {
        if self.climate.weather == Weather::Lying && self.harmed.is_none() {
            self.harmed = Some(self.directory.written_sequence());
            self.is_unsure = true;
            let offset = self.prng.below(LENGTH);
            self.disk.rot(offset, &mut self.prng);
        }
    }

    pub(super) fn end_io(&mut self) {
        let count = to_u64(self.out.len());
        if count == 0 {
            return;
        }
        let at = to_usize(self.prng.below(count));
        if self.out[at].fault == Fault::Hang && self.prng.below(40) > 0 {
            return;
        }
        if !self.out[at].torn && self.prng.below(4) == 0 {
            self.out[at].torn = true;
            let plan = self.out[at].plan.clone();
            return self.write_torn(&plan.action, 50);
        }
        let io = self.out.swap_remove(at);
        self.finish(&io);
    }

    fn write_torn(&mut self, action: &Action, percent: u64) {
        if let Action::Write { offset, bytes } = action {
            let (disk, prng) = (&mut self.disk, &mut self.prng);
            disk.write_torn(*offset, bytes, percent, prng);
        }
    }

    fn finish(&mut self, io: &Io) {
        self.trace_io(io);
        match (&io.plan.action, io.fault) {
            (_, Fault::Error) => return self.fail(io),
            (Action::Flush, _) => {
                self.disk.flush(io.written);
                self.flushed = self.flushed.max(io.sequence);
            }
            (Action::Write { .. }, Fault::Lost) => {}
            (Action::Write { bytes, .. }, Fault::Astray(to)) => self.disk.write(to, bytes),
            (Action::Write { offset, bytes }, Fault::None | Fault::Hang) => {
                self.disk.write(*offset, bytes);
            }
        }
        self.stripe.complete(self.now, io.plan.id, Outcome::Done);
        self.tally.syncs += u64::from(io.plan.cause == Cause::PageTable);
    }

    fn trace_io(&mut self, io: &Io) {
        let (id, fault) = (io.plan.id, io.fault);
        self.trace(format!("{id:?} {fault:?} {:?}", self.now).as_bytes());
        if let Action::Write { offset, bytes } = &io.plan.action {
            self.trace(&offset.to_le_bytes());
            self.trace(bytes);
        }
    }

    fn fail(&mut self, io: &Io) {
        let part = self.prng.below(101);
        self.write_torn(&io.plan.action, part);
        let before = self.directory.written_sequence();
        if io.plan.cause == Cause::Batch {
            self.tried = before + 1;
        }
        let position = self.directory.written_position();
        self.stripe.complete(self.now, io.plan.id, Outcome::Failed);
        if self.directory.written_position() == position {
            return;
        }
        for op in self.histories.values_mut().flat_map(History::each) {
            if op.sequence == before + 1 {
                op.fate = Fate::Failed;
            }
        }
    }
}
