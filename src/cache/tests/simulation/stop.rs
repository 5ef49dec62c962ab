//! Ends of a run, and what the next start finds.

use super::content::{hash, is_crowded};
use super::disk::Disk;
use super::history::{Op, Verdict, Written};
use super::stripe::{BLOCK, LENGTH, World, identity, options};
use super::weather::Weather;
use crate::base::prng::Prng;
use crate::cache::format::{to_u64, to_usize};
use crate::cache::stripe::{
    Action, NotRecovered, Recovery, RecoveryReport, RecoveryStart, RecoveryStep, Stripe,
};

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Clean,
    Kill,
    Power,
}

impl World {
    /// Ends the run, starts the next one, and judges what it finds.
    pub(super) fn stop(&mut self) {
        self.judge_opened();
        let mut stop = self.choose_stop();
        if stop == Stop::Clean && !self.stop_cleanly() {
            stop = Stop::Kill;
        }
        let mut written = self.written(stop == Stop::Power);
        if stop == Stop::Clean {
            written = Written {
                surely: u64::MAX,
                perhaps: u64::MAX,
            };
        }
        self.doubt_harmed(&mut written);
        let histories = self.histories.values_mut();
        histories.for_each(|history| history.end_run(written));
        self.end_run(stop);
        let failed = self.stripe.has_failed();
        let (stripe, report) = self.recover(failed);
        self.trace(format!("{stop:?} {report:?}").as_bytes());
        self.reach = self.reach.max(self.directory.cursor());
        self.directory = stripe.directory();
        self.stripe = stripe;
        self.pass_pins(report.clean);
        self.tally.stops += 1;
        self.tally.suspects += u64::from(report.suspect);
        self.tally.failures += u64::from(failed);
        // A gap costs the rows that lie in it.
        self.is_unsure |= failed || report.suspect && self.climate.weather == Weather::Power;
        self.check_report(&report);
        if self.climate.load == 0 {
            self.read_pages();
        }
        self.judge_opened();
        self.forget_io();
        self.harmed = None;
        self.flushed = 0;
    }

    fn choose_stop(&mut self) -> Stop {
        match self.prng.below(3) {
            0 => Stop::Clean,
            1 if self.climate.weather == Weather::Power => Stop::Power,
            _ => Stop::Kill,
        }
    }

    /// The last batch that was written has no witness behind it.
    fn doubt_harmed(&self, written: &mut Written) {
        let last = self.directory.written_sequence();
        if self.harmed.is_some_and(|harmed| harmed >= last) {
            written.perhaps = written.perhaps.min(last + 1);
            written.surely = written.surely.min(last.saturating_sub(1));
        }
    }

    /// Whether all was written out; a stripe that failed can't.
    fn stop_cleanly(&mut self) -> bool {
        self.stripe.close();
        let mut left = 10_000;
        while self.pump() && left > 0 {
            left -= 1;
        }
        self.judge_opened();
        let closed = self.stripe.is_closed();
        assert!(
            closed || self.stripe.has_failed(),
            "{}: hangs at a stop",
            self.context()
        );
        closed
    }

    fn end_run(&mut self, stop: Stop) {
        while let Some(io) = self.out.pop() {
            let part = [0, 50, 95, 100][to_usize(self.prng.below(4))];
            if let Action::Write { offset, bytes } = &io.plan.action {
                let (disk, prng) = (&mut self.disk, &mut self.prng);
                disk.write_torn(*offset, bytes, part, prng);
            }
        }
        match stop {
            Stop::Power => self.disk.cut_power(&mut self.prng),
            // A disk that keeps its power empties its cache by and by.
            Stop::Clean | Stop::Kill => self.disk.flush(self.disk.written()),
        }
        if self.stripe.has_opened() {
            self.noted = self.run;
        }
        self.run += 1;
    }

    /// The next start. A stripe that failed was offline meanwhile.
    fn recover(&mut self, failed: bool) -> (Stripe, RecoveryReport) {
        let start = RecoveryStart {
            identity: identity(self.run),
            known_instance: Some(identity(self.run).instance),
            last_run: if failed { u64::MAX } else { self.noted },
            length: LENGTH,
            block: BLOCK,
            options: options(),
        };
        let may_fail = self.climate.weather == Weather::Failing && self.climate.bad_reads;
        self.bad_reads = may_fail && self.prng.below(2) == 0;
        self.is_unsure |= self.bad_reads;
        let prng = self.bad_reads.then_some(&mut self.prng);
        match recover(&self.disk, start, prng) {
            Ok(recovered) => recovered,
            // Ended before the first header was there, or both can't be read:
            // made anew, under another name in the product.
            Err(NotRecovered::NoHeader) => {
                self.begin_anew();
                let geometry = *self.stripe.geometry();
                let stripe = Stripe::format(identity(self.run), geometry, options());
                (stripe, RecoveryReport::default())
            }
            Err(error) => panic!("{}: {error}", self.context()),
        }
    }

    fn begin_anew(&mut self) {
        let surprising = self.noted > 0 && self.is_honest();
        assert!(!surprising, "{}: both headers lost", self.context());
        self.histories.clear();
        self.disk = Disk::blank(LENGTH);
        self.noted = 0;
    }

    /// Whether the disk gives back what it took, but for a loss of power.
    fn is_honest(&self) -> bool {
        !matches!(self.climate.weather, Weather::Lying | Weather::Failing)
    }

    fn check_report(&self, report: &RecoveryReport) {
        let power = self.climate.weather == Weather::Power;
        let well = !report.suspect || power || self.is_unsure;
        assert!(well, "{}: {report:?}", self.context());
    }

    /// Reads all pages at once.
    fn read_pages(&mut self) {
        while let Some(read) = self.stripe.next_pages() {
            let fails = self.read_fails();
            for (page, offset) in read.each() {
                self.end_page(page, offset, read.page_bytes, fails);
            }
        }
    }

    fn read_fails(&mut self) -> bool {
        self.bad_reads && self.prng.below(12) == 0
    }

    /// Begins or ends a read of a page.
    pub(super) fn step_page(&mut self) {
        let ends = self.prng.below(2) == 0 && !self.page_reads.is_empty();
        let begun = if ends { None } else { self.stripe.next_pages() };
        if let Some(read) = begun {
            let pages = read.each();
            let reads = pages.map(|(page, offset)| (page, offset, read.page_bytes));
            self.page_reads.extend(reads);
        } else if !self.page_reads.is_empty() {
            let count = to_u64(self.page_reads.len());
            let at = to_usize(self.prng.below(count));
            let (page, offset, bytes) = self.page_reads.swap_remove(at);
            let fails = self.read_fails();
            self.end_page(page, offset, bytes, fails);
        }
    }

    fn end_page(&mut self, page: u32, offset: u64, bytes: u64, fails: bool) {
        let bytes = if fails {
            &[]
        } else {
            self.disk.read(offset, bytes)
        };
        self.stripe.take_page(self.now, page, bytes);
        self.trace(format!("page {page} {fails}").as_bytes());
    }

    /// Judges what the start has found of the keys whose pages are open now.
    pub(super) fn judge_opened(&mut self) {
        let histories = self.histories.iter();
        let due = histories.filter_map(|(key, history)| Some((*key, history.due()?)));
        let known = due.filter(|(key, _)| self.directory.knows(hash(*key)));
        let mut known: Vec<_> = known.collect();
        if known.is_empty() {
            return;
        }
        let is_whole = self.stripe.page_count().bad == 0;
        let power = self.climate.weather == Weather::Power;
        let may_be_bad = power || self.is_unsure;
        assert!(is_whole || may_be_bad, "{}: bad pages", self.context());
        known.sort_unstable_by_key(|(key, _)| *key);
        for (key, verdict) in known {
            self.judge(key, &verdict);
        }
        let doubled = self.directory.doubled();
        assert_eq!(doubled, 0, "{}: promise 4", self.context());
    }

    fn judge(&mut self, key: u64, verdict: &Verdict) {
        let found = self.get(key);
        self.trace(format!("{key} {found:?}").as_bytes());
        let context = format!(
            "{}: key {key} found {found:?} of {verdict:?}",
            self.context()
        );
        if let Some((version, place)) = found {
            let allowed = place.suspect || verdict.allows(version);
            assert!(allowed, "promise 2: {context}");
        }
        let kept = verdict.durable.filter(|op| !self.is_passed(op));
        let kept = kept.and_then(|op| op.version);
        let required = !self.is_unsure && verdict.certain && !is_crowded(key);
        if required && kept.is_some() {
            let found = found.map(|(version, _)| version);
            assert_eq!(found, kept, "promise 3: {context}");
        }
        let held = |op: &Op| op.entry.is_some_and(|e| self.directory.holds(hash(key), e));
        // Where nothing is damaged, what is not found is not there.
        let may_hide = found.is_none() && self.is_unsure;
        let history = self.histories.entry(key).or_default();
        let hidden = history.newest(verdict, held).filter(|_| may_hide);
        history.settle(found, verdict);
        if let Some(op) = hidden {
            history.hide(op);
        }
    }
}

/// A recovery by reads of `disk`; with `prng` some of them fail.
fn recover(
    disk: &Disk,
    start: RecoveryStart,
    mut prng: Option<&mut Prng>,
) -> Result<(Stripe, RecoveryReport), NotRecovered> {
    let mut recovery = Recovery::new(start);
    let mut reads = 0;
    while let RecoveryStep::Read { offset, length } = recovery.step() {
        let fails = prng.as_mut().is_some_and(|prng| prng.below(12) == 0);
        let bytes = disk.read(offset, length);
        recovery.complete(if fails { &[] } else { bytes });
        reads += 1;
        assert!(reads < 10_000, "a start that does not end");
    }
    recovery.finish()
}
