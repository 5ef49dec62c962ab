//! What is counted of each volume: a table of its own, whose names hold the
//! volume's number.

use super::collect::{Shown, Value};
use super::table::{MetricKind, exported};
use std::sync::atomic::{AtomicU64, Ordering};

/// Lines of cells of a volume; threads share them by number.
const LINES: usize = 16;
/// Rows of the table.
const ROWS: usize = 8;

/// What is counted of a volume: a row of [`VOLUME_METRICS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeMetric {
    /// Bytes that its stripes can hold.
    BytesTotal,
    /// Bytes of its stripes that hold written data.
    BytesUsed,
    /// The latter of the former, in per cent.
    PercentFull,
    /// Reads of its objects that the RAM cache answered.
    RamHits,
    /// Reads that found no usable object.
    ReadFailure,
    /// Reads that found one.
    ReadSuccess,
    /// Writes that were given up.
    WriteFailure,
    /// Writes that were committed.
    WriteSuccess,
}

/// A row of the table; its whole name begins with
/// `proxy.process.cache.volume_N.`.
#[derive(Clone, Copy, Debug)]
pub struct VolumeSpec {
    /// What follows the number.
    pub name: &'static str,
    /// How it moves.
    pub kind: MetricKind,
    /// What it counts, in one sentence.
    pub help: &'static str,
}

/// Every row, in the order of [`VolumeMetric`].
pub const VOLUME_METRICS: [VolumeSpec; ROWS] = [
    gauge("bytes_total", "Bytes that the volume's stripes can hold."),
    gauge(
        "bytes_used",
        "Bytes of the volume's stripes that hold written data.",
    ),
    gauge(
        "percent_full",
        "Per cent of the volume's bytes that hold written data.",
    ),
    counter(
        "ram_cache.hits",
        "Cache reads of the volume's objects that the RAM cache answered.",
    ),
    counter(
        "read.failure",
        "Cache reads of keys of the volume that found no usable object.",
    ),
    counter(
        "read.success",
        "Successful cache reads of the volume's objects, from RAM too.",
    ),
    counter(
        "write.failure",
        "Cache writes to the volume that were given up.",
    ),
    counter(
        "write.success",
        "Cache writes to the volume that were committed.",
    ),
];

const fn gauge(name: &'static str, help: &'static str) -> VolumeSpec {
    VolumeSpec {
        name,
        kind: MetricKind::Gauge,
        help,
    }
}

const fn counter(name: &'static str, help: &'static str) -> VolumeSpec {
    VolumeSpec {
        name,
        kind: MetricKind::Counter,
        help,
    }
}

/// A line of cells: what threads of one number add to.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([AtomicU64; ROWS]);

/// The cells of one volume.
#[derive(Debug)]
pub struct VolumeCells {
    number: u32,
    lines: [Line; LINES],
}

impl VolumeCells {
    /// Cells of the volume of this number.
    #[must_use]
    pub fn new(number: u32) -> Self {
        Self {
            number,
            lines: Default::default(),
        }
    }

    /// The volume's number.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Adds one, on a thread's own line.
    pub fn count(&self, thread: usize, metric: VolumeMetric) {
        if let Some(line) = self.lines.get(thread % LINES) {
            line.0[metric as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sets a gauge.
    pub fn set(&self, metric: VolumeMetric, value: u64) {
        let [first, ..] = &self.lines;
        first.0[metric as usize].store(value, Ordering::Relaxed);
    }

    /// The sums of all lines, a name and a row each.
    pub(super) fn sums(&self) -> impl Iterator<Item = VolumeSum> {
        VOLUME_METRICS.iter().enumerate().map(|(row, spec)| {
            let lines = self.lines.iter().filter_map(|line| line.0.get(row));
            VolumeSum {
                name: format!("proxy.process.cache.volume_{}.{}", self.number, spec.name),
                spec,
                value: lines.map(|cell| cell.load(Ordering::Relaxed)).sum(),
            }
        })
    }
}

/// A volume's metric at the time of a scrape.
#[derive(Debug)]
pub(super) struct VolumeSum {
    name: String,
    spec: &'static VolumeSpec,
    value: u64,
}

impl VolumeSum {
    pub(super) fn shown(&self) -> Shown<'_> {
        Shown {
            name: &self.name,
            kind: self.spec.kind,
            help: self.spec.help,
            value: Value::Int(self.value),
        }
    }

    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name == name || exported(&self.name) == name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::MonoTime;
    use crate::metrics::{Collector, Registry, export};

    #[test]
    fn a_volume_s_counts_are_shown_under_its_number_everywhere() {
        let registry = Registry::new();
        let cells = registry.volume(7);
        for thread in 0..40 {
            cells.count(thread, VolumeMetric::ReadSuccess);
        }
        registry.volume(7).set(VolumeMetric::BytesTotal, 9);
        let scrape = Collector::new(registry, MonoTime::default()).scrape(MonoTime::default());
        let value = |name: &str| scrape.value(name);
        let reads = "proxy.process.cache.volume_7.read.success";
        assert_eq!(value(reads), Some(Value::Int(40)));
        assert_eq!(value(&exported(reads)), Some(Value::Int(40)));
        assert_eq!(value("proxy.process.cache.volume_8.read.success"), None);
        let page = export::prometheus(&scrape);
        assert!(
            page.contains("\nproxy_process_cache_volume_7_bytes_total 9\n"),
            "{page}"
        );
        assert!(export::stats_json(&scrape, "1").contains("volume_7.read.success\":\"40\""));
    }
}
