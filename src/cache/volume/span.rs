//! A span in use: its device, its errors, its stripes.

use super::live::LiveStripe;
use super::tally::Tally;
use super::watch::Watch;
use crate::base::clock::{MonoTime, WallTime};
use crate::base::planted::{Planted, is_planted};
use crate::base::simulated::is_simulated;
use crate::cache::inspect::{SpanState, SpanStatus, StripeStatus};
use crate::cache::options::{LiveOptions, SpanOptions};
use crate::cache::span::{Room, Span};
use crate::cache::tier::{Left, Life, SpanTier, WriteBudget, Writes};
use crate::device::{Device, DeviceError, Request};
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Turns of the scheduler that a request's handover may take.
const HANDOVERS: u32 = 1_000_000;

/// An open span.
pub(in crate::cache) struct LiveSpan {
    pub(in crate::cache) options: SpanOptions,
    pub(in crate::cache) uuid: u128,
    pub(in crate::cache) tier: SpanTier,
    /// Bytes of the span.
    pub(in crate::cache) bytes: u64,
    /// What reads are widened to, in bytes.
    pub(super) sector: u64,
    /// `None` once it is closed.
    device: RwLock<Option<Arc<dyn Device>>>,
    watch: Arc<Watch>,
    stripes: Mutex<Vec<Arc<LiveStripe>>>,
    offline: AtomicBool,
    /// It is offline and will be taken for suspect when it returns.
    retired: AtomicBool,
    /// It was taken back, and its stripes are yet to say so themselves.
    returning: AtomicBool,
    /// I/O errors: what the device said no to, or did in part only.
    errors: Tally,
    /// Fragments and pages that were flushed once and are damaged now.
    damages: Tally,
    /// What may be written to a span of the fast tier.
    budget: Mutex<WriteBudget>,
    /// Bytes written since it was opened.
    written: AtomicU64,
    opened: MonoTime,
    /// Its life before it was opened.
    past: Life,
}

impl fmt::Debug for LiveSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveSpan")
            .field("path", &self.options.path)
            .finish_non_exhaustive()
    }
}

impl LiveSpan {
    /// `span` in use from `now` on, as `live` says.
    pub(in crate::cache) fn new(
        span: &Span,
        options: &SpanOptions,
        live: &LiveOptions,
        now: MonoTime,
    ) -> Self {
        let tier = &live.tier;
        let budget = WriteBudget::new(now, tier.fast_write_budget, tier.burst());
        Self {
            options: options.clone(),
            uuid: span.content.uuid,
            tier: span.tier(),
            bytes: span.content.size,
            sector: span.device.geometry().sector.max(1).into(),
            device: RwLock::new(Some(Arc::clone(&span.device))),
            watch: Arc::default(),
            stripes: Mutex::default(),
            offline: AtomicBool::new(false),
            returning: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            errors: Tally::new(live.max_disk_errors),
            damages: Tally::new(live.max_checksum_errors),
            budget: Mutex::new(budget),
            written: AtomicU64::new(0),
            opened: now,
            past: Life::default(),
        }
    }

    /// The same span, of whose writes until `now` this is known.
    pub(in crate::cache) fn with_past(mut self, past: Writes, now: WallTime) -> Self {
        self.past = past.life;
        if let Some(left) = past.left {
            let ago = Duration::from_secs(now.as_secs().saturating_sub(left.at_s));
            self.budget.get_mut().resume(left.bytes, ago);
        }
        self
    }

    /// Other limits from `now` on: of errors to go offline at, and of bytes to
    /// write.
    pub(in crate::cache) fn configure(&self, live: &LiveOptions, now: MonoTime) {
        self.errors.set_limit(live.max_disk_errors);
        self.damages.set_limit(live.max_checksum_errors);
        let tier = &live.tier;
        let mut budget = self.budget.lock();
        budget.configure(now, tier.fast_write_budget, tier.burst());
    }

    /// What may be written to it, if it is of the fast tier.
    pub(in crate::cache) fn budget(&self) -> MutexGuard<'_, WriteBudget> {
        self.budget.lock()
    }

    /// Notes that bytes were written.
    pub(super) fn note_written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Its life until `now`.
    pub(in crate::cache) fn life(&self, now: MonoTime) -> Life {
        self.past.plus(Life {
            written: self.written.load(Ordering::Relaxed),
            seconds: now.since(self.opened).as_secs(),
        })
    }

    /// What is to be remembered of its writes until now.
    pub(in crate::cache) fn writes(&self, now: MonoTime, wall: WallTime) -> Writes {
        let left = self.budget.lock().balance(now);
        Writes {
            life: self.life(now),
            left: left.map(|bytes| Left {
                bytes,
                at_s: wall.as_secs(),
            }),
        }
    }

    /// The device, to start a request on; `None` once it is closed.
    pub(super) fn device(&self) -> Option<Arc<dyn Device>> {
        self.device.read().clone()
    }

    /// Starts a request at `now`, which fails if the device is closed.
    pub(super) fn submit(&self, request: Request, now: MonoTime) {
        let request = self.watch.over(request, now);
        match self.device() {
            Some(device) => device.submit(request),
            None => request.fail(DeviceError::Closed),
        }
    }

    /// Closes the device, whoever still holds the span. Blocks until the
    /// requests under way have ended.
    pub(in crate::cache) fn close(&self) {
        let device = self.device.write().take();
        let Some(device) = device else { return };
        // Others hold it only while they hand a request over.
        for _ in 0..HANDOVERS {
            if Arc::strong_count(&device) == 1 {
                break;
            }
            std::thread::yield_now();
        }
    }

    /// As [`Self::close`], by a thread of its own: a device that answers nothing
    /// holds nobody up. Who wants its path opens it again, or something else.
    pub(in crate::cache) fn let_go(self: &Arc<Self>) {
        if is_simulated() {
            return self.close();
        }
        let span = Arc::clone(self);
        let thread = std::thread::Builder::new().name("strata-close".into());
        if let Err(error) = thread.spawn(move || span.close()) {
            tracing::warn!(path = %self.options.path.display(), %error,
                "no thread to close a device that is out of use: it stays open until it is \
                 online again or made anew");
        }
    }

    /// Says which stripes lie on it. They hold the span and the span holds
    /// them: whoever lets the span go takes them away again.
    pub(in crate::cache) fn set_stripes(&self, stripes: Vec<Arc<LiveStripe>>) {
        *self.stripes.lock() = stripes;
    }

    /// It as volumes share it, when it stays as it is.
    pub(in crate::cache) fn room(&self) -> Room {
        let mut stripes: Vec<_> = self.stripes().iter().map(|stripe| stripe.slot()).collect();
        stripes.sort_by_key(|slot| slot.offset);
        Room::fixed(self.bytes, stripes, self.options.volume)
    }

    /// The stripes on it.
    pub(in crate::cache) fn stripes(&self) -> Vec<Arc<LiveStripe>> {
        self.stripes.lock().clone()
    }

    /// Whether it is in use.
    pub(in crate::cache) fn is_online(&self) -> bool {
        !self.offline.load(Ordering::Acquire)
    }

    /// Takes it out of use. True if it was in use.
    pub(in crate::cache) fn go_offline(&self) -> bool {
        !self.offline.swap(true, Ordering::AcqRel)
    }

    /// Notes that it is remembered to be offline: what it was yet to write down
    /// matters no more, since nobody will trust what it holds.
    pub(in crate::cache) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    /// Notes that it was taken back into use.
    pub(in crate::cache) fn note_returning(&self) {
        self.returning.store(true, Ordering::Release);
    }

    /// Whether it was taken back and says by now, on the device, that what it
    /// holds is in doubt; true once.
    pub(in crate::cache) fn has_returned(&self) -> bool {
        let returns = self.returning.load(Ordering::Acquire) && self.is_online();
        let opened = || self.stripes().iter().all(|stripe| stripe.has_opened());
        returns && opened() && self.returning.swap(false, Ordering::AcqRel)
    }

    /// Whether keys are placed on it: while it is in use, and beyond that until
    /// its end is remembered.
    pub(in crate::cache) fn is_placed(&self) -> bool {
        self.is_online() || !self.is_retired()
    }

    /// Whether it has gone offline and that is yet to be remembered.
    pub(in crate::cache) fn has_ended(&self) -> bool {
        !self.is_online() && !self.is_retired()
    }

    /// Whether it is remembered to be offline.
    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Takes it out of use because one of its stripes can't tell any more what
    /// it does.
    pub(super) fn give_up(&self) {
        if self.go_offline() {
            tracing::error!(path = %self.options.path.display(), errors = self.errors(),
                "span offline: a write that it can't do without failed; \
                 `traffic_ctl storage online` takes it back");
        }
    }

    /// I/O errors so far.
    pub(in crate::cache) fn errors(&self) -> u64 {
        self.errors.count()
    }

    /// Checksum failures so far.
    pub(in crate::cache) fn damages(&self) -> u64 {
        self.damages.count()
    }

    /// Bytes of its stripes' logs.
    pub(in crate::cache) fn log_bytes(&self) -> u64 {
        self.stripes().iter().map(|stripe| stripe.log_bytes()).sum()
    }

    /// Bytes of its stripes' logs that have been written to.
    pub(in crate::cache) fn log_used(&self) -> u64 {
        self.stripes().iter().map(|stripe| stripe.log_used()).sum()
    }

    /// Counts what the device has not answered for `limit`, 0 is for ever; how
    /// many writes and flushes that were.
    pub(in crate::cache) fn judge_silence(&self, now: MonoTime, limit: Duration) -> usize {
        let counts = !limit.is_zero() && !is_planted(Planted::SilenceUncounted);
        let silent = if counts {
            self.watch.expire(now, limit)
        } else {
            0
        };
        for _ in 0..silent {
            tracing::warn!(path = %self.options.path.display(), seconds = limit.as_secs(),
                "a write or a flush has not been answered");
            self.note_error();
        }
        if !self.is_online() {
            // Nobody waits for a device that may never answer, or is asked no more.
            self.stripes()
                .iter()
                .for_each(|stripe| stripe.moved.notify_waiters());
        }
        silent
    }

    /// Counts an I/O error; at the limit the span goes offline, and the
    /// cache's thread moves its keys to the others.
    pub(super) fn note_error(&self) {
        if self.errors.add() {
            self.give_out("I/O errors");
        }
    }

    /// As [`Self::note_error`] for a checksum that failed, whose limit is
    /// another: a bad block costs its objects, and says little of the rest.
    pub(super) fn note_damage(&self) {
        if self.damages.add() {
            self.give_out("checksum failures");
        }
    }

    fn give_out(&self, what: &str) {
        if self.go_offline() {
            let (errors, damages) = (self.errors(), self.damages());
            tracing::error!(path = %self.options.path.display(), errors, checksums = damages,
                "span offline: too many {what}; `traffic_ctl storage online` takes it back");
        }
    }

    /// Its state, of which the least ready stripe decides.
    pub(in crate::cache) fn state(&self) -> SpanState {
        if !self.is_online() {
            let errors = self.errors();
            return SpanState::Offline { errors };
        }
        let stripes = self.stripes();
        let states: Vec<SpanState> = stripes.iter().map(|stripe| stripe.state()).collect();
        let least = [SpanState::Loading, SpanState::Suspect];
        let least = least.into_iter().find(|state| states.contains(state));
        least.unwrap_or(SpanState::Online)
    }

    /// Whether some of what it holds was away, and may be old.
    pub(in crate::cache) fn is_suspect(&self) -> bool {
        let stripes = self.stripes();
        let mut states = stripes.iter().map(|stripe| stripe.state());
        states.any(|state| state == SpanState::Suspect)
    }

    /// Its row of `storage list`. Reads the directories.
    pub(in crate::cache) fn status(&self) -> SpanStatus {
        let stripes = self.stripes();
        let stripes: Vec<StripeStatus> = stripes.iter().map(|stripe| stripe.status()).collect();
        let sum = |of: fn(&StripeStatus) -> u64| stripes.iter().map(of).sum();
        SpanStatus {
            path: self.options.path.clone(),
            id: self.options.id.clone(),
            uuid: Some(self.uuid),
            tier: Some(self.tier),
            state: self.state(),
            bytes_total: sum(|stripe| stripe.bytes_total),
            bytes_used: sum(|stripe| stripe.bytes_used),
            entries_total: sum(|stripe| stripe.entries_total),
            entries_used: sum(|stripe| stripe.entries_used),
            pages_unread: sum(|stripe| stripe.pages_unread),
            errors: self.errors(),
            checksum_errors: self.damages(),
            stripes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::{Clock, ManualClock};
    use crate::cache::options::CacheOptions;
    use crate::cache::span::{self, Intent};
    use crate::cache::store::Counters;
    use crate::device::{DeviceKind, MemDisk, OpenedDevice};
    use crate::metrics::Registry;

    #[test]
    fn a_span_is_loading_until_all_its_stripes_have_been_read() {
        let options = SpanOptions::at("/dev/mem0");
        let opened = OpenedDevice {
            device: Arc::new(MemDisk::blank(40 << 20).device()),
            kind: DeviceKind::Block,
            path: options.path.clone(),
            rotational: None,
        };
        let span = span::open(&opened, &options, Intent::Use).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let limits = CacheOptions::default().live();
        let live = Arc::new(LiveSpan::new(&span, &options, &limits, clock.mono()));
        let counters = Arc::new(Counters::new(
            &Registry::new(),
            &std::collections::BTreeSet::new(),
        ));
        let slot = &span.content.stripes[0];
        let unread = LiveStripe::new(&live, slot, &clock, &counters);
        live.set_stripes(vec![unread]);
        assert_eq!(live.state(), SpanState::Loading);
        assert_eq!(live.status().stripes[0].state, SpanState::Loading);
        live.go_offline();
        assert_eq!(live.state(), SpanState::Offline { errors: 0 });
        live.set_stripes(Vec::new());
    }
}
