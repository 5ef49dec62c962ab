//! Which batches no power cut takes any more: those that were written before a
//! flush of the device that has ended since.

use super::live::{LiveStripe, Written};
use crate::base::planted::{Planted, is_planted};
use crate::cache::stripe::Outcome;
use crate::device::{DeviceError, Request};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How far a stripe's batches have been flushed, by their sequence.
#[derive(Debug, Default)]
pub(super) struct Flushing {
    flushed: AtomicU64,
    /// Where in the log those end, at least.
    position: AtomicU64,
    /// Somebody waits for batches up to this one.
    wanted: AtomicU64,
    is_out: AtomicBool,
    failures: AtomicU64,
}

impl Flushing {
    fn flushed(&self) -> u64 {
        self.flushed.load(Ordering::Acquire)
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire) > self.flushed()
    }
}

impl Written {
    /// Asks that the batch be flushed once it is written, together with what
    /// others ask for until the cache's thread looks.
    pub(in crate::cache) fn want_safe(&self) {
        let wanted = &self.stripe.flushing.wanted;
        wanted.fetch_max(self.sequence, Ordering::AcqRel);
    }

    /// As [`Written::is_done`], over a power cut too.
    pub(in crate::cache) fn is_safe(&self) -> bool {
        if is_planted(Planted::WrittenIsSafe) {
            return self.is_done();
        }
        self.stripe.is_retired() || self.stripe.flushing.flushed() >= self.sequence
    }
}

impl LiveStripe {
    /// Starts the flush that somebody waits for, unless one is under way.
    pub(in crate::cache) fn flush_wanted(self: &Arc<Self>) {
        let flushing = &self.flushing;
        let Some(core) = self.core.get().filter(|_| flushing.is_wanted()) else {
            return;
        };
        // The place last: it may only be ahead, of what the flush takes too.
        let written = core.directory.written_sequence();
        let position = core.directory.written_position();
        let is_due = self.is_online() && written > flushing.flushed();
        if !is_due || flushing.is_out.swap(true, Ordering::AcqRel) {
            return;
        }
        let stripe = Arc::clone(self);
        let done = Box::new(move |ended| stripe.flushed((written, position), ended));
        self.span.submit(Request::Flush { done }, self.now());
    }

    fn flushed(&self, written: (u64, u64), ended: Result<(), DeviceError>) {
        let flushing = &self.flushing;
        match self.outcome(ended) {
            Outcome::Done => self.note_flushed(written),
            Outcome::Failed => drop(flushing.failures.fetch_add(1, Ordering::AcqRel)),
        }
        flushing.is_out.store(false, Ordering::Release);
        self.moved.notify_waiters();
    }

    fn note_flushed(&self, (written, position): (u64, u64)) {
        self.flushing.position.fetch_max(position, Ordering::AcqRel);
        self.flushing.flushed.fetch_max(written, Ordering::AcqRel);
        if let Some(core) = self.core.get() {
            core.stripe.lock().note_flushed(written);
        }
    }

    /// Whether no power cut takes what lies at `position` any more.
    pub(super) fn is_flushed(&self, position: u64) -> bool {
        position < self.flushing.position.load(Ordering::Acquire)
    }

    /// Has flushed what is written by now; returns when it is, or can't be.
    pub(in crate::cache) async fn flush_written(self: &Arc<Self>) {
        let Some(core) = self.core.get() else {
            return;
        };
        let sequence = core.directory.written_sequence();
        let wanted = &self.flushing.wanted;
        wanted.fetch_max(sequence, Ordering::AcqRel);
        self.secure(sequence).await;
    }

    /// Waits for the flush that somebody wants by now of the batches up to this
    /// one, or until one fails. Not for what is wanted meanwhile: there might be
    /// no end to that.
    pub(super) async fn secure(self: &Arc<Self>, through: u64) {
        let wanted = self.flushing.wanted.load(Ordering::Acquire).min(through);
        let failures = || self.flushing.failures.load(Ordering::Acquire);
        let before = failures();
        self.wait(|| {
            self.flush_wanted();
            self.flushing.flushed() >= wanted || failures() != before
        })
        .await;
    }
}
