//! A span in use: its device, its errors, its stripes.

use super::live::LiveStripe;
use crate::cache::inspect::{SpanState, SpanStatus};
use crate::cache::options::SpanOptions;
use crate::cache::span::Span;
use crate::cache::tier::SpanTier;
use crate::device::{Device, DeviceError, Request};
use parking_lot::{Mutex, RwLock};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
    stripes: Mutex<Vec<Arc<LiveStripe>>>,
    offline: AtomicBool,
    errors: AtomicU64,
    errors_max: AtomicU64,
}

impl fmt::Debug for LiveSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveSpan")
            .field("path", &self.options.path)
            .finish_non_exhaustive()
    }
}

impl LiveSpan {
    /// `span` in use, to go offline at `errors_max` I/O errors (0: never).
    pub(in crate::cache) fn new(span: &Span, options: &SpanOptions, errors_max: u32) -> Self {
        Self {
            options: options.clone(),
            uuid: span.content.uuid,
            tier: span.tier(),
            bytes: span.content.size,
            sector: span.device.geometry().sector.max(1).into(),
            device: RwLock::new(Some(Arc::clone(&span.device))),
            stripes: Mutex::default(),
            offline: AtomicBool::new(false),
            errors: AtomicU64::new(0),
            errors_max: AtomicU64::new(errors_max.into()),
        }
    }

    /// Another number of I/O errors to go offline at.
    pub(in crate::cache) fn set_errors_max(&self, errors_max: u32) {
        self.errors_max.store(errors_max.into(), Ordering::Relaxed);
    }

    /// The device, to start a request on; `None` once it is closed.
    pub(super) fn device(&self) -> Option<Arc<dyn Device>> {
        self.device.read().clone()
    }

    /// Starts a request, which fails if the device is closed.
    pub(super) fn submit(&self, request: Request) {
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

    /// Says which stripes lie on it. They hold the span and the span holds
    /// them: whoever lets the span go takes them away again.
    pub(in crate::cache) fn set_stripes(&self, stripes: Vec<Arc<LiveStripe>>) {
        *self.stripes.lock() = stripes;
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

    /// I/O errors so far.
    pub(in crate::cache) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// Bytes of its stripes' logs.
    pub(in crate::cache) fn log_bytes(&self) -> u64 {
        self.stripes().iter().map(|stripe| stripe.log_bytes()).sum()
    }

    /// Bytes of its stripes' logs that have been written to.
    pub(in crate::cache) fn log_used(&self) -> u64 {
        self.stripes().iter().map(|stripe| stripe.log_used()).sum()
    }

    /// Counts an I/O error; at the limit the span goes offline, and the
    /// cache's thread moves its keys to the others.
    pub(super) fn note_error(&self) {
        let errors = self.errors.fetch_add(1, Ordering::Relaxed) + 1;
        let limit = self.errors_max.load(Ordering::Relaxed);
        if limit != 0 && errors >= limit && self.go_offline() {
            tracing::error!(path = %self.options.path.display(), errors,
                "span offline: too many I/O errors; `traffic_ctl storage online` takes it back");
        }
    }

    /// Its row of `storage list`.
    pub(in crate::cache) fn status(&self) -> SpanStatus {
        let errors = self.errors();
        let mut status = SpanStatus {
            path: self.options.path.clone(),
            id: self.options.id.clone(),
            uuid: Some(self.uuid),
            tier: Some(self.tier),
            state: if self.is_online() {
                SpanState::Online
            } else {
                SpanState::Offline { errors }
            },
            bytes_total: 0,
            bytes_used: 0,
            entries_total: 0,
            entries_used: 0,
            errors,
            suspect: false,
        };
        for stripe in self.stripes() {
            stripe.add_to(&mut status);
        }
        status
    }
}
