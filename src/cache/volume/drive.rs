//! Carries a stripe's plans out, and its completions back.

use super::live::{Core, LiveStripe};
use crate::cache::stripe::{Action, Cause, Completion, Outcome, Plan};
use crate::device::{DeviceError, Request};
use crate::metrics::Metric;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;

impl LiveStripe {
    /// Starts every I/O that the stripe wants now. Holds no lock while it
    /// does, so that a device may complete at once.
    pub(in crate::cache) fn drive(self: &Arc<Self>) {
        while let Some(plan) = self.next_plan() {
            self.start(plan);
        }
    }

    /// Brings everything appended so far to the device, and to the medium what
    /// somebody waits for there.
    pub(in crate::cache) async fn flush(self: &Arc<Self>) {
        let Some(core) = self.core.get() else {
            return;
        };
        let sequence = core.stripe.lock().flush();
        self.wait(|| core.directory.written_sequence() >= sequence)
            .await;
        self.secure(sequence).await;
    }

    /// Stops it cleanly: all is on the medium on return, and it takes no more.
    pub(in crate::cache) async fn close(self: &Arc<Self>) {
        let Some(core) = self.core.get() else {
            return;
        };
        core.stripe.lock().close();
        self.wait(|| core.stripe.lock().is_closed()).await;
        self.flush_device().await;
    }

    /// Brings the device's own cache to the medium, or waits until the span is
    /// out of use: a device may never answer.
    async fn flush_device(self: &Arc<Self>) {
        let (send, mut receive) = oneshot::channel();
        let stripe = Arc::clone(self);
        let done = Box::new(move |ended: Result<(), DeviceError>| {
            // A failure is counted; there is nobody left to do more about it.
            stripe.outcome(ended);
            // Who no longer waits for the answer has no need of it.
            send.send(()).ok();
        });
        self.span.submit(Request::Flush { done }, self.now());
        loop {
            let moved = self.moved.notified();
            if !self.is_online() {
                return;
            }
            tokio::select! {
                biased;
                // The request may also have gone with its device.
                _ = &mut receive => return,
                () = moved => {}
            }
        }
    }

    /// Notes the epoch that later batches carry.
    pub(in crate::cache) fn set_epoch(&self, epoch: u64) {
        if let Some(core) = self.core.get() {
            core.stripe.lock().set_epoch(epoch);
        }
    }

    /// Drives until `done`, or until the stripe can't go on.
    pub(super) async fn wait(self: &Arc<Self>, done: impl Fn() -> bool) {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            self.drive();
            if done() || self.is_stuck() {
                return;
            }
            moved.await;
        }
    }

    fn is_stuck(&self) -> bool {
        let core = self.core.get();
        !self.is_online() || core.is_none_or(|core| core.stripe.lock().has_failed())
    }

    fn next_plan(&self) -> Option<Plan> {
        if !self.is_online() {
            return None;
        }
        let core = self.core.get()?;
        let now = self.now();
        core.stripe.lock().poll(now)
    }

    fn start(self: &Arc<Self>, plan: Plan) {
        let stripe = Arc::clone(self);
        let (id, cause) = (plan.id, plan.cause);
        if matches!(cause, Cause::Pages | Cause::PageTable) {
            self.sync_since.lock().get_or_insert_with(|| self.now());
        }
        let done = Box::new(move |ended: Result<(), DeviceError>| {
            let outcome = stripe.outcome(ended);
            if let Some(core) = stripe.core.get() {
                let now = stripe.now();
                let mut locked = core.stripe.lock();
                let completion = locked.complete(now, id, outcome);
                let failed = locked.has_failed();
                drop(locked);
                stripe.count(cause, outcome, &completion);
                if failed {
                    stripe.span.give_up();
                }
            }
            stripe.stalled.store(false, Ordering::Relaxed);
            stripe.drive();
            stripe.moved.notify_waiters();
        });
        let request = match plan.action {
            Action::Write { offset, bytes } => Request::Write {
                offset: self.offset + offset,
                bytes,
                done,
            },
            Action::Flush => Request::Flush { done },
        };
        self.span.submit(request, self.now());
    }

    pub(super) fn outcome(&self, ended: Result<(), DeviceError>) -> Outcome {
        match ended {
            Ok(()) => Outcome::Done,
            Err(error) => {
                tracing::warn!(path = %self.path().display(), %error, "write failed");
                self.counters.add(Metric::CacheSpanErrorsWrite, 1);
                self.span.note_error();
                Outcome::Failed
            }
        }
    }

    fn count(&self, cause: Cause, outcome: Outcome, completion: &Completion) {
        self.note_written(cause, completion.written);
        if completion.lost > 0 {
            tracing::error!(path = %self.path().display(), fragments = completion.lost,
                "a batch could not be written, twice: what it held is lost");
            self.counters.add(Metric::CacheWriteLost, completion.lost);
        }
        self.note_lost(completion.lost_bytes);
        match cause {
            Cause::Batch => {
                self.counters
                    .add(Metric::CacheWriteBytes, completion.written);
                self.count_turns();
            }
            Cause::Pages | Cause::PageTable | Cause::Ring => {
                self.counters
                    .add(Metric::CacheSyncBytes, completion.written);
            }
            Cause::Header if outcome == Outcome::Done => self.count_sync(),
            Cause::Header | Cause::Flush => {}
        }
    }

    /// Counts the cursor's returns to the log's start.
    fn count_turns(&self) {
        let turns = self.core.get().map_or(0, Core::turns);
        let before = self.turns.fetch_max(turns, Ordering::Relaxed);
        let more = turns.saturating_sub(before);
        self.counters.add(Metric::CacheWrapCount, more);
    }

    /// Counts the sync that a header has ended; other headers end none.
    fn count_sync(&self) {
        let since = self.sync_since.lock().take();
        if let Some(since) = since {
            let nanos = self.now().since(since).as_nanos();
            self.counters.add(Metric::CacheSyncCount, 1);
            let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
            self.counters.add(Metric::CacheSyncTime, nanos);
        }
    }
}
