//! From cells to what an operator reads: sums, windows and derived values.

use super::cells::{Cells, Registry};
use super::derived::{DERIVED, HIT_RATIO_HELP, TIER_SERIES};
use super::rows::{METRICS, Metric};
use super::table::{MetricKind, exported};
use super::volume::VolumeSum;
use crate::base::clock::MonoTime;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How far back the 10-second values look.
pub const WINDOW: Duration = Duration::from_secs(10);

/// The least time between two kept samples; bounds how many are kept.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// What a metric shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A count, or a gauge in whole units.
    Int(u64),
    /// A ratio, percentage or rate.
    Float(f64),
}

impl Value {
    /// The value as Prometheus keeps gauges; exact below 2^53.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "a gauge in Prometheus is a double, exact below 2^53"
    )]
    pub const fn as_f64(self) -> f64 {
        match self {
            Self::Int(n) => n as f64,
            Self::Float(x) => x,
        }
    }
}

/// As `traffic_line -r` prints it: decimal, or `%f` with six places.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(n) => write!(f, "{n}"),
            Self::Float(x) => write!(f, "{x:.6}"),
        }
    }
}

/// A metric at the time of a scrape.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The dotted name.
    pub name: &'a str,
    /// How it moves.
    pub kind: MetricKind,
    /// What it counts.
    pub help: &'static str,
    /// What it shows.
    pub value: Value,
}

/// One reading of all metrics.
#[derive(Debug)]
pub struct Scrape {
    sums: Vec<u64>,
    deltas: Vec<u64>,
    elapsed: Duration,
    volumes: Vec<VolumeSum>,
}

impl Scrape {
    /// A metric's sum over all threads.
    #[must_use]
    pub fn sum(&self, metric: Metric) -> u64 {
        self.sums.get(metric.index()).copied().unwrap_or(0)
    }

    /// What a counter rose by in the last 10 seconds, or since the start.
    #[must_use]
    pub fn delta(&self, metric: Metric) -> u64 {
        self.deltas.get(metric.index()).copied().unwrap_or(0)
    }

    /// The time that [`Scrape::delta`] spans.
    #[must_use]
    pub const fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// Every metric, counted, derived and by volume; each group sorted by name.
    pub fn all(&self) -> impl Iterator<Item = Shown<'_>> {
        let counted = METRICS.iter().zip(&self.sums).map(|(spec, sum)| Shown {
            name: spec.name,
            kind: spec.kind,
            help: spec.help,
            value: Value::Int(*sum),
        });
        let derived = DERIVED.iter().map(|spec| Shown {
            name: spec.name,
            kind: spec.kind,
            help: spec.help,
            value: (spec.value)(self),
        });
        let volumes = self.volumes.iter().map(VolumeSum::shown);
        counted.chain(derived).chain(volumes)
    }

    /// The series that have a label, under the names that `/metrics` gives
    /// them.
    pub fn labelled(&self) -> impl Iterator<Item = Shown<'_>> {
        TIER_SERIES.iter().map(|series| Shown {
            name: series.name,
            kind: MetricKind::Gauge,
            help: HIT_RATIO_HELP,
            value: Value::Float(series.ratio(self)),
        })
    }

    /// The value under a name, dotted or as `/metrics` shows it; `None` if no
    /// metric has it.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Value> {
        if let Some(metric) = Metric::by_name(name) {
            return Some(Value::Int(self.sum(metric)));
        }
        let mut derived = DERIVED.iter();
        let found = derived.find(|spec| spec.name == name || exported(spec.name) == name);
        let value = found.map(|spec| (spec.value)(self));
        let mut labelled = self.labelled();
        let value = value.or_else(|| Some(labelled.find(|shown| shown.name == name)?.value));
        let mut volumes = self.volumes.iter();
        value.or_else(|| Some(volumes.find(|sum| sum.is_called(name))?.shown().value))
    }
}

#[derive(Debug)]
struct Sample {
    at: MonoTime,
    sums: Vec<u64>,
}

type Hook = Box<dyn Fn(&Cells) + Send + Sync>;

/// Reads the registry: keeps the samples that windows need, and asks the
/// owners of sampled gauges before each reading.
pub struct Collector {
    registry: Arc<Registry>,
    gauges: Arc<Cells>,
    samples: Mutex<VecDeque<Sample>>,
    hooks: Mutex<Vec<Hook>>,
}

impl Collector {
    /// A collector whose first window begins now.
    #[must_use]
    pub fn new(registry: Arc<Registry>, now: MonoTime) -> Self {
        let first = Sample {
            at: now,
            sums: registry.raw_sums(),
        };
        Self {
            gauges: registry.cells(),
            registry,
            samples: Mutex::new(VecDeque::from([first])),
            hooks: Mutex::default(),
        }
    }

    /// The registry that is read.
    #[must_use]
    pub const fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The cells in which sampled gauges are set.
    #[must_use]
    pub fn gauges(&self) -> &Cells {
        &self.gauges
    }

    /// Calls `hook` before each reading, to set the gauges that nobody adds
    /// to. It runs under a lock: it must not wait for I/O.
    pub fn before_scrape(&self, hook: impl Fn(&Cells) + Send + Sync + 'static) {
        self.hooks.lock().push(Box::new(hook));
    }

    /// Keeps a sample for the windows; called about once a second.
    pub fn tick(&self, now: MonoTime) {
        let mut samples = self.samples.lock();
        let last = samples.back().map(|sample| sample.at);
        if last.is_some_and(|last| now.since(last) < SAMPLE_EVERY) {
            return;
        }
        samples.push_back(Sample {
            at: now,
            sums: self.registry.raw_sums(),
        });
        drop_before_window(&mut samples, now);
    }

    /// Reads every metric.
    #[must_use]
    pub fn scrape(&self, now: MonoTime) -> Scrape {
        for hook in self.hooks.lock().iter() {
            hook(&self.gauges);
        }
        self.tick(now);
        let samples = self.samples.lock();
        let raw = self.registry.raw_sums();
        let (deltas, elapsed) = window(&samples, &raw, now);
        let volumes = self.registry.volumes();
        Scrape {
            sums: shown_sums(&self.registry),
            deltas,
            elapsed,
            volumes: volumes.iter().flat_map(|cells| cells.sums()).collect(),
        }
    }
}

impl fmt::Debug for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let samples = self.samples.lock().len();
        f.debug_struct("Collector")
            .field("samples", &samples)
            .finish_non_exhaustive()
    }
}

/// The sums, with gauges at least 0: cells are read one after the other, so a
/// rise on one thread may be missed whose fall on another is seen.
fn shown_sums(registry: &Registry) -> Vec<u64> {
    let sums = METRICS.iter().zip(registry.sums());
    sums.map(|(spec, sum)| match spec.kind {
        MetricKind::Gauge if i64::try_from(sum).is_err() => 0,
        MetricKind::Gauge | MetricKind::Counter => sum,
    })
    .collect()
}

/// Drops what is older than the newest sample that is at least a window old.
fn drop_before_window(samples: &mut VecDeque<Sample>, now: MonoTime) {
    while samples
        .get(1)
        .is_some_and(|next| now.since(next.at) >= WINDOW)
    {
        samples.pop_front();
    }
}

fn window(samples: &VecDeque<Sample>, raw: &[u64], now: MonoTime) -> (Vec<u64>, Duration) {
    let Some(base) = samples.front() else {
        return (vec![0; raw.len()], Duration::ZERO);
    };
    let pairs = raw.iter().zip(&base.sums);
    let deltas = pairs.map(|(now, then)| now.wrapping_sub(*then)).collect();
    (deltas, now.since(base.at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> MonoTime {
        MonoTime::from_nanos(secs * 1_000_000_000)
    }

    #[test]
    fn a_window_forgets_what_is_more_than_ten_seconds_old() {
        let registry = Registry::new();
        let cells = registry.cells();
        let collector = Collector::new(registry, at(0));
        cells.add(Metric::IncomingRequests, 5);
        assert_eq!(collector.scrape(at(1)).delta(Metric::IncomingRequests), 5);
        for second in 2..=11 {
            collector.tick(at(second));
        }
        cells.add(Metric::IncomingRequests, 2);
        let scrape = collector.scrape(at(11));
        assert_eq!(scrape.delta(Metric::IncomingRequests), 2);
        assert_eq!(scrape.sum(Metric::IncomingRequests), 7);
        assert_eq!(scrape.elapsed(), WINDOW);
    }

    #[test]
    fn zeroing_a_counter_leaves_its_window_alone() {
        let registry = Registry::new();
        let cells = registry.cells();
        let collector = Collector::new(Arc::clone(&registry), at(0));
        cells.add(Metric::IncomingRequests, 5);
        registry.zero(Metric::IncomingRequests);
        let scrape = collector.scrape(at(3));
        assert_eq!(scrape.delta(Metric::IncomingRequests), 5);
        assert_eq!(
            scrape.value("proxy.process.http.incoming_requests"),
            Some(Value::Int(0))
        );
    }

    #[test]
    fn samples_are_bounded_however_often_it_is_scraped() {
        let collector = Collector::new(Registry::new(), at(0));
        for step in 0..10_000 {
            collector.tick(MonoTime::from_nanos(step * 10_000_000));
        }
        assert!(collector.samples.lock().len() <= 22);
    }

    #[test]
    fn hooks_set_sampled_gauges_before_each_reading() {
        let collector = Collector::new(Registry::new(), at(0));
        collector.before_scrape(|gauges| gauges.set(Metric::MemoryRss, 4096));
        assert_eq!(collector.scrape(at(1)).sum(Metric::MemoryRss), 4096);
        assert_eq!(collector.scrape(at(2)).sum(Metric::MemoryRss), 4096);
    }

    #[test]
    fn a_gauge_whose_rise_was_missed_shows_zero() {
        let registry = Registry::new();
        registry.cells().sub(Metric::CurrentClientConnections, 1);
        let collector = Collector::new(registry, at(0));
        let scrape = collector.scrape(at(1));
        assert_eq!(scrape.sum(Metric::CurrentClientConnections), 0);
    }

    #[test]
    fn values_print_as_traffic_line_prints_them() {
        assert_eq!(Value::Int(42).to_string(), "42");
        assert_eq!(Value::Float(0.5).to_string(), "0.500000");
    }
}
