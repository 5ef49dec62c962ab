//! The cells that threads add to, and the registry that sums them.

use super::rows::{METRICS, Metric};
use super::volume::VolumeCells;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Readings that meet a change of several cells, before one is taken as it is.
const TRIES: usize = 10_000;
/// Readings without a pause: a change takes less than one, unless its thread has
/// lost its processor.
const TRIES_AT_ONCE: usize = 100;

/// One thread's cells, one for each row of the table.
#[derive(Debug)]
pub struct Cells {
    values: Box<[AtomicU64]>,
    /// Odd while several cells change together.
    changes: AtomicU64,
}

impl Cells {
    fn new() -> Self {
        Self {
            values: METRICS.iter().map(|_| AtomicU64::new(0)).collect(),
            changes: AtomicU64::new(0),
        }
    }

    /// Makes several changes that no reading of all cells sees in part. For the
    /// thread whose cells these are, and not within another such change.
    pub fn together(&self, change: impl FnOnce(&Self)) {
        self.changes.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::Release);
        change(self);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// All cells, by row, as they were between two changes.
    fn read(&self) -> Vec<u64> {
        for tried in 0..TRIES {
            if tried >= TRIES_AT_ONCE {
                std::thread::yield_now();
            }
            let before = self.changes.load(Ordering::Acquire);
            let values = self.values.iter();
            let values = values.map(|value| value.load(Ordering::Relaxed)).collect();
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.changes.load(Ordering::Relaxed) == before {
                return values;
            }
        }
        let values = self.values.iter();
        values.map(|value| value.load(Ordering::Relaxed)).collect()
    }

    /// Adds `n`.
    pub fn add(&self, metric: Metric, n: u64) {
        self.values[metric.index()].fetch_add(n, Ordering::Relaxed);
    }

    /// Takes `n` off a gauge; another thread's cell may hold what it came from.
    pub fn sub(&self, metric: Metric, n: u64) {
        self.values[metric.index()].fetch_sub(n, Ordering::Relaxed);
    }

    /// Sets a gauge that only this cell's owner writes.
    pub fn set(&self, metric: Metric, value: u64) {
        self.values[metric.index()].store(value, Ordering::Relaxed);
    }

    /// This thread's share.
    #[must_use]
    pub fn get(&self, metric: Metric) -> u64 {
        self.values[metric.index()].load(Ordering::Relaxed)
    }
}

/// Every thread's cells.
#[derive(Debug, Default)]
pub struct Registry {
    threads: Mutex<Vec<Arc<Cells>>>,
    zeroed: Mutex<Vec<(Metric, u64)>>,
    volumes: Mutex<Vec<Arc<VolumeCells>>>,
}

impl Registry {
    /// A registry without threads.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// New cells for a thread, summed with the others from now on.
    #[must_use]
    pub fn cells(&self) -> Arc<Cells> {
        let cells = Arc::new(Cells::new());
        self.threads.lock().push(Arc::clone(&cells));
        cells
    }

    /// The cells of a volume, made when it is asked for first.
    #[must_use]
    pub fn volume(&self, number: u32) -> Arc<VolumeCells> {
        let mut volumes = self.volumes.lock();
        let at = volumes.binary_search_by_key(&number, |cells| cells.number());
        let at = at.unwrap_or_else(|at| {
            volumes.insert(at, Arc::new(VolumeCells::new(number)));
            at
        });
        Arc::clone(&volumes[at])
    }

    /// The cells of every volume, by number.
    pub(super) fn volumes(&self) -> Vec<Arc<VolumeCells>> {
        self.volumes.lock().clone()
    }

    /// The sum over all threads, less what an operator zeroed.
    #[must_use]
    pub fn get(&self, metric: Metric) -> u64 {
        let zeroed = self.zeroed.lock();
        let base = zeroed.iter().find(|(zero, _)| *zero == metric);
        self.raw(metric).wrapping_sub(base.map_or(0, |(_, at)| *at))
    }

    /// Every metric's sum over all threads, by row, zeroing aside: what rates
    /// and windows are taken from. Of each thread, it is one moment's.
    #[must_use]
    pub fn raw_sums(&self) -> Vec<u64> {
        let threads = self.threads.lock();
        let mut sums = vec![0_u64; METRICS.len()];
        for cells in threads.iter() {
            for (sum, share) in sums.iter_mut().zip(cells.read()) {
                *sum = sum.wrapping_add(share);
            }
        }
        sums
    }

    /// Every metric's sum as [`Registry::get`] shows it, by row.
    #[must_use]
    pub fn sums(&self) -> Vec<u64> {
        let mut sums = self.raw_sums();
        for (metric, at) in self.zeroed.lock().iter() {
            if let Some(sum) = sums.get_mut(metric.index()) {
                *sum = sum.wrapping_sub(*at);
            }
        }
        sums
    }

    /// Makes a counter start again at zero; a gauge stays what it is.
    pub fn zero(&self, metric: Metric) {
        if metric.spec().kind == super::MetricKind::Gauge {
            return;
        }
        let mut zeroed = self.zeroed.lock();
        zeroed.retain(|(zero, _)| *zero != metric);
        zeroed.push((metric, self.raw(metric)));
    }

    fn raw(&self, metric: Metric) -> u64 {
        let threads = self.threads.lock();
        let shares = threads.iter().map(|cells| cells.get(metric));
        shares.fold(0, u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_raised_on_one_thread_and_lowered_on_another_sums_right() {
        let registry = Registry::new();
        let (a, b) = (registry.cells(), registry.cells());
        a.add(Metric::CurrentClientConnections, 3);
        b.sub(Metric::CurrentClientConnections, 1);
        assert_eq!(registry.get(Metric::CurrentClientConnections), 2);
    }

    #[test]
    fn changes_made_together_are_read_together() {
        let registry = Registry::new();
        let cells = registry.cells();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..500 {
                    // A thread that serves changes its cells rarely, and at once.
                    std::thread::yield_now();
                    cells.together(|cells| {
                        cells.add(Metric::IncomingRequests, 1);
                        (0..100).for_each(|_| std::hint::spin_loop());
                        cells.add(Metric::OutcomeHitRam, 1);
                    });
                }
                done.store(true, Ordering::SeqCst);
            });
            while !done.load(Ordering::SeqCst) {
                let sums = registry.raw_sums();
                let of = |metric: Metric| sums[metric.index()];
                let both = [Metric::IncomingRequests, Metric::OutcomeHitRam].map(of);
                assert_eq!(both[0], both[1]);
            }
        });
        assert_eq!(registry.get(Metric::OutcomeHitRam), 500);
    }

    #[test]
    fn a_zeroed_counter_counts_from_there() {
        let registry = Registry::new();
        let cells = registry.cells();
        cells.add(Metric::CacheReadSuccess, 5);
        registry.zero(Metric::CacheReadSuccess);
        assert_eq!(registry.get(Metric::CacheReadSuccess), 0);
        cells.add(Metric::CacheReadSuccess, 2);
        assert_eq!(registry.get(Metric::CacheReadSuccess), 2);
        let row = Metric::CacheReadSuccess.index();
        assert_eq!((registry.sums()[row], registry.raw_sums()[row]), (2, 7));
    }
}
