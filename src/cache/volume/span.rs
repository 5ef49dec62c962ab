//! A span in use: its device, its errors, its stripes.

use super::live::LiveStripe;
use crate::cache::inspect::{SpanState, SpanStatus};
use crate::cache::options::SpanOptions;
use crate::cache::span::Span;
use crate::cache::tier::SpanTier;
use crate::device::Device;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// An open span.
pub(in crate::cache) struct LiveSpan {
    pub(in crate::cache) options: SpanOptions,
    pub(in crate::cache) uuid: u128,
    pub(in crate::cache) tier: SpanTier,
    /// Bytes of the span.
    pub(in crate::cache) bytes: u64,
    pub(super) device: Arc<dyn Device>,
    stripes: Mutex<Vec<Arc<LiveStripe>>>,
    offline: AtomicBool,
    errors: AtomicU64,
    errors_max: u64,
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
            device: Arc::clone(&span.device),
            stripes: Mutex::default(),
            offline: AtomicBool::new(false),
            errors: AtomicU64::new(0),
            errors_max: u64::from(errors_max),
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
        if self.errors_max != 0 && errors >= self.errors_max && self.go_offline() {
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
