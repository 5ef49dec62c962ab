//! The cache's counters: several sets of cells, so that threads don't share.

use crate::cache::object::{Hit, NotStored, ObjectKind};
use crate::cache::tier::Tier;
use crate::metrics::{Cells, Metric, Registry};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Sets of cells; threads beyond it share.
const SETS: usize = 16;

static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SETS;
}

/// What the façade counts.
#[derive(Debug)]
pub(in crate::cache) struct Counters {
    sets: Box<[Arc<Cells>]>,
    gauges: Arc<Cells>,
}

impl Counters {
    pub(in crate::cache) fn new(registry: &Registry) -> Self {
        Self {
            sets: (0..SETS).map(|_| registry.cells()).collect(),
            gauges: registry.cells(),
        }
    }

    pub(in crate::cache) fn add(&self, metric: Metric, n: u64) {
        self.mine().add(metric, n);
    }

    pub(in crate::cache) fn sub(&self, metric: Metric, n: u64) {
        self.mine().sub(metric, n);
    }

    /// Sets a gauge that only [`Counters::set`] touches.
    pub(in crate::cache) fn set(&self, metric: Metric, value: u64) {
        self.gauges.set(metric, value);
    }

    /// Counts a read by where its head came from: objects once in the sum and
    /// once in their tier, markers nowhere.
    pub(in crate::cache) fn read(&self, hit: &Hit) {
        let cells = self.mine();
        if hit.tier == Tier::Ram {
            cells.add(Metric::CacheRamCacheHits, 1);
        }
        if hit.kind == ObjectKind::Object {
            let head = u64::try_from(hit.meta.len()).unwrap_or(u64::MAX);
            cells.add(Metric::CacheReadSuccess, 1);
            cells.add(hit.tier.read_success(), 1);
            cells.add(hit.tier.read_bytes(), head.saturating_add(hit.body_len));
        }
    }

    pub(in crate::cache) fn write(&self, outcome: Result<(), NotStored>) {
        match outcome {
            Ok(()) => self.add(Metric::CacheWriteSuccess, 1),
            Err(no) => {
                self.add(Metric::CacheWriteFailure, 1);
                if no == NotStored::Backlog {
                    self.add(Metric::CacheWriteBacklogFailure, 1);
                }
            }
        }
    }

    pub(in crate::cache) fn update(&self, done: bool) {
        let metric = if done {
            Metric::CacheUpdateSuccess
        } else {
            Metric::CacheUpdateFailure
        };
        self.add(metric, 1);
    }

    pub(in crate::cache) fn remove(&self, found: bool) {
        let metric = if found {
            Metric::CacheRemoveSuccess
        } else {
            Metric::CacheRemoveFailure
        };
        self.add(metric, 1);
    }

    fn mine(&self) -> &Cells {
        &self.sets[MINE.with(|mine| *mine)]
    }
}
