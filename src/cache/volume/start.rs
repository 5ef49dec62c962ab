//! From a span's table to a stripe in use: made anew, or read back.

use super::live::{Core, LiveStripe};
use super::strangers::Strangers;
use crate::base::aligned::AlignedBuf;
use crate::base::simulated::is_simulated;
use crate::cache::format::span_header::StripeSlot;
use crate::cache::stripe::{
    Geometry, NotRecovered, Recovery, RecoveryReport, RecoveryStart, RecoveryStep, Stripe,
    StripeIdentity, StripeOptions,
};
use crate::device::{DeviceError, read_blocking};
use parking_lot::Mutex;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Headers of a stripe.
const HEADERS: u32 = 2;

/// What a stripe is started from.
#[derive(Clone, Copy, Debug)]
pub(in crate::cache) struct StripeSeed {
    pub(in crate::cache) slot: StripeSlot,
    /// Multiple of all writes, bytes.
    pub(in crate::cache) block: u32,
    pub(in crate::cache) average_object_bytes: u64,
    pub(in crate::cache) identity: StripeIdentity,
    /// See [`RecoveryStart::known_instance`].
    pub(in crate::cache) known_instance: Option<u128>,
    /// The last run that it should have taken part in.
    pub(in crate::cache) last_run: u64,
    pub(in crate::cache) options: StripeOptions,
}

/// Why a stripe is not used.
#[derive(Debug, thiserror::Error)]
enum StartError {
    /// What lies there is none.
    #[error("{0}")]
    NotRecovered(#[from] NotRecovered),
    /// The device has not answered.
    #[error("the device does not answer: {0}")]
    Silent(DeviceError),
}

impl LiveStripe {
    /// Puts the stripe in use: a new one at once, an old one as soon as it has
    /// been read, by a thread of its own.
    pub(in crate::cache) fn begin(self: &Arc<Self>, seed: StripeSeed, is_new: bool) {
        if is_new {
            self.begin_settled();
            return self.format(&seed);
        }
        if is_simulated() {
            return self.recover(&seed);
        }
        let thread = std::thread::Builder::new().name("strata-start".into());
        self.recover_behind(seed, |read| thread.spawn(read).map(drop));
    }

    /// Reads it back behind the caller's back, as `spawn` does, or on the spot
    /// where that can't: a machine that is short of threads is no fault of the
    /// span's, which would stay out of use over restarts.
    pub(super) fn recover_behind(
        self: &Arc<Self>,
        seed: StripeSeed,
        spawn: impl FnOnce(Box<dyn FnOnce() + Send>) -> io::Result<()>,
    ) {
        let stripe = Arc::clone(self);
        if let Err(error) = spawn(Box::new(move || stripe.recover(&seed))) {
            tracing::warn!(path = %self.path().display(), %error,
                "no thread can be started to read a stripe: the start waits for it");
            self.recover(&seed);
        }
    }

    fn format(self: &Arc<Self>, seed: &StripeSeed) {
        let geometry = Geometry::new(seed.slot.length, seed.average_object_bytes, seed.block);
        match geometry {
            Ok(geometry) => {
                self.install(Stripe::format(seed.identity, geometry, seed.options), 0..0);
            }
            Err(error) => self.give_up(&error.to_string()),
        }
    }

    fn recover(self: &Arc<Self>, seed: &StripeSeed) {
        match self.read_back(seed) {
            Ok((stripe, report)) => {
                self.log_read(&report);
                if report.dead {
                    self.log_dead();
                }
                self.install(stripe, report.unflushed_from..report.unflushed_end);
                if let Some(core) = self.core.get() {
                    self.read_pages(core);
                }
            }
            Err(error) => self.give_up(&error.to_string()),
        }
    }

    /// The instance that its newest header names; blocks while that is read.
    pub(in crate::cache) fn noted_instance(&self, seed: &StripeSeed) -> Option<u128> {
        let mut recovery = recovery(seed);
        for _ in 0..HEADERS {
            let RecoveryStep::Read { offset, length } = recovery.step() else {
                break;
            };
            let length = usize::try_from(length).unwrap_or(0);
            match self.read_at(offset, length) {
                Ok(bytes) => recovery.complete(&bytes),
                Err(DeviceError::TimedOut { .. }) => return None,
                Err(_) => recovery.complete(&[]),
            }
        }
        recovery.noted_instance()
    }

    fn log_read(&self, report: &RecoveryReport) {
        tracing::info!(
            path = %self.path().display(),
            clean = report.clean,
            suspect = report.suspect,
            ring_blocks = report.ring_blocks,
            batches_walked = report.batches_walked,
            rows = report.rows,
            bytes_read = report.bytes_read,
            "stripe read"
        );
    }

    fn log_dead(&self) {
        tracing::warn!(
            path = %self.path().display(),
            "nothing that this span held is used: the state folder \
             (proxy.config.local_state_dir) was lost, is an older copy, or is \
             another installation's, and what was purged is not known any more"
        );
    }

    /// A read that fails counts as damaged bytes.
    fn read_back(&self, seed: &StripeSeed) -> Result<(Stripe, RecoveryReport), StartError> {
        let mut recovery = recovery(seed);
        while let RecoveryStep::Read { offset, length } = recovery.step() {
            let length = usize::try_from(length).unwrap_or(0);
            match self.read_at(offset, length) {
                Ok(bytes) => recovery.complete(&bytes),
                // Each further read might take as long.
                Err(error @ DeviceError::TimedOut { .. }) => return Err(StartError::Silent(error)),
                Err(_) => recovery.complete(&[]),
            }
        }
        Ok(recovery.finish()?)
    }

    /// The bytes at an offset from the stripe's start; a failure is counted.
    pub(super) fn read_at(&self, offset: u64, length: usize) -> Result<AlignedBuf, DeviceError> {
        let device = self.span.device().ok_or(DeviceError::Closed);
        let read = device.and_then(|device| read_blocking(&*device, self.offset + offset, length));
        self.noted(offset, read)
    }

    /// What came of such a read, once a failure is counted.
    pub(super) fn noted<T>(
        &self,
        offset: u64,
        read: Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        read.inspect_err(|error| self.note_read_error(offset, error))
    }

    fn install(self: &Arc<Self>, stripe: Stripe, unflushed: Range<u64>) {
        self.free_early(stripe, |stripe| {
            let core = Core {
                unflushed,
                directory: stripe.directory(),
                log_bytes: stripe.geometry().log_bytes(),
                stripe: Mutex::new(stripe),
                strangers: Strangers::default(),
            };
            self.turns.store(core.turns(), Ordering::Relaxed);
            // A stripe is begun once, by whoever opened its span.
            drop(self.core.set(core));
        });
        self.take_configured();
        self.date_if_undated();
        self.drive();
        self.moved.notify_waiters();
    }

    /// Takes the span out of use: one of its stripes can't be.
    pub(super) fn give_up(&self, why: &str) {
        tracing::error!(path = %self.path().display(), why, "stripe can't be used: span offline");
        self.span.go_offline();
        self.moved.notify_waiters();
    }
}

fn recovery(seed: &StripeSeed) -> Recovery {
    Recovery::new(RecoveryStart {
        identity: seed.identity,
        known_instance: seed.known_instance,
        last_run: seed.last_run,
        length: seed.slot.length,
        block: seed.block,
        options: seed.options,
    })
}
