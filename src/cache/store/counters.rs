//! The cache's counters: several sets of cells, so that threads don't share.

use crate::cache::object::{Hit, NotStored, ObjectKind};
use crate::cache::tier::Tier;
use crate::metrics::{Cells, Held, Metric, Registry, VolumeCells, VolumeMetric};
use std::collections::{BTreeMap, BTreeSet};
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
    /// Of each volume, by number; none where there are no volumes.
    volumes: Vec<Arc<VolumeCells>>,
}

impl Counters {
    /// Counters of all, and of the volumes of these numbers.
    pub(in crate::cache) fn new(registry: &Registry, volumes: &BTreeSet<u32>) -> Self {
        Self {
            sets: (0..SETS).map(|_| registry.cells()).collect(),
            gauges: registry.cells(),
            volumes: volumes.iter().map(|n| registry.volume(*n)).collect(),
        }
    }

    /// Counts one more of a volume.
    fn count_of(&self, volume: Option<u32>, metric: VolumeMetric) {
        let number = volume.unwrap_or_default();
        let at = self.volumes.binary_search_by_key(&number, |v| v.number());
        if let Some(cells) = at.ok().and_then(|at| self.volumes.get(at)) {
            cells.count(MINE.with(|mine| *mine), metric);
        }
    }

    /// Whether volumes are counted by themselves.
    pub(in crate::cache) fn has_volumes(&self) -> bool {
        !self.volumes.is_empty()
    }

    /// Counts a read that found nothing, in the volume that the key goes to.
    pub(in crate::cache) fn read_nothing(&self, volume: Option<u32>) {
        self.add(Metric::CacheReadFailure, 1);
        self.count_of(volume, VolumeMetric::ReadFailure);
    }

    /// Sets what each volume holds, by number: bytes there are, bytes written.
    pub(in crate::cache) fn set_volumes(&self, bytes: &BTreeMap<u32, (u64, u64)>) {
        for cells in &self.volumes {
            let (total, used) = bytes.get(&cells.number()).copied().unwrap_or_default();
            cells.set(VolumeMetric::BytesTotal, total);
            cells.set(VolumeMetric::BytesUsed, used);
            let percent = used.saturating_mul(100).checked_div(total);
            cells.set(VolumeMetric::PercentFull, percent.unwrap_or(0));
        }
    }

    pub(in crate::cache) fn add(&self, metric: Metric, n: u64) {
        self.mine().add(metric, n);
    }

    pub(in crate::cache) fn sub(&self, metric: Metric, n: u64) {
        self.mine().sub(metric, n);
    }

    /// Adds one to a gauge until what is returned goes, also when whoever waits
    /// under it gives up.
    pub(in crate::cache) fn hold(&self, gauge: Metric) -> Held {
        Held::new(self.mine(), gauge)
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
            self.read_of_volume(hit);
        }
    }

    fn read_of_volume(&self, hit: &Hit) {
        if !self.has_volumes() {
            return;
        }
        let volume = hit.copy.0.subject().volume;
        self.count_of(volume, VolumeMetric::ReadSuccess);
        if hit.tier == Tier::Ram {
            self.count_of(volume, VolumeMetric::RamHits);
        }
    }

    /// Counts a write, in the volume that its key goes to.
    pub(in crate::cache) fn write(&self, volume: Option<u32>, outcome: Result<(), NotStored>) {
        match outcome {
            Ok(()) => {
                self.add(Metric::CacheWriteSuccess, 1);
                self.count_of(volume, VolumeMetric::WriteSuccess);
            }
            Err(no) => {
                self.count_of(volume, VolumeMetric::WriteFailure);
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

    fn mine(&self) -> &Arc<Cells> {
        &self.sets[MINE.with(|mine| *mine)]
    }
}
