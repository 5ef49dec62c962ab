//! A cache over two tiers, driven step by step, stopped and started again.

use super::super::machine::{DISK, path};
use super::super::{key, object};
use super::content::content;
use super::disk::SlowDisk;
use super::model::{Model, Progress};
use super::weather::{Fault, weather_of};
use crate::base::clock::{Clock, ManualClock, WallTime};
use crate::base::prng::Prng;
use crate::base::simulated;
use crate::cache::format::{to_u64, to_usize};
use crate::cache::object::Hit;
use crate::cache::options::{CacheOptions, RamOptions, SpanOptions};
use crate::cache::store::Cache;
use crate::cache::store::open::open_over;
use crate::cache::tier::SpanTier;
use crate::device::{DeviceKind, OpenedDevice};
use crate::metrics::Registry;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

pub(super) const KEYS: u32 = 24;
const STEPS: u64 = 500;
/// Disks that a machine has at most.
pub(super) const DISKS_MAX: usize = 4;
/// Bytes of a disk whose log is to wrap.
const SMALL_DISK: usize = 32 << 20;
/// Bytes of the longest bodies, where the log is to wrap and elsewhere.
const LONG_BODY: u64 = 700_000;
const SHORT_BODY: u64 = 12_000;
/// Bytes of a fragment where bodies are long: two checksummed blocks.
const FRAGMENT: u32 = 128 << 10;
/// A device is silent for longer than this, and counts as failing.
const PATIENCE: Duration = Duration::from_secs(2);
/// Times that a wait outlasts the patience, before it counts as endless.
const SILENCES_MAX: u32 = 40;

/// A disk of the machine.
pub(super) struct Drive {
    pub(super) tier: SpanTier,
    pub(super) disk: Arc<SlowDisk>,
    /// It is plugged in.
    pub(super) is_present: bool,
}

/// What a seed has gone through.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) starts: u64,
    pub(super) hits: u64,
    pub(super) suspects: u64,
    pub(super) promotions: u64,
    pub(super) changes: u64,
    /// Disks that fell ill or left while a cache ran, and spans that came back.
    pub(super) mishaps: u64,
    pub(super) returns: u64,
    pub(super) power_cuts: u64,
    pub(super) wraps: u64,
    /// A sum of all that was found, in order.
    pub(super) trace: u32,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.starts += other.starts;
        self.hits += other.hits;
        self.suspects += other.suspects;
        self.promotions += other.promotions;
        self.changes += other.changes;
        self.mishaps += other.mishaps;
        self.returns += other.returns;
        self.power_cuts += other.power_cuts;
        self.wraps += other.wraps;
        self.trace ^= other.trace;
    }
}

impl Tally {
    pub(super) const fn is_busy(&self) -> bool {
        let happened = self.suspects > 0 && self.promotions > 0 && self.changes > 0;
        let failed = self.mishaps > 0 && self.returns > 0 && self.power_cuts > 0;
        happened && failed && self.wraps > 0 && self.starts > 60 && self.hits > 1000
    }
}

/// A cache in use.
pub(super) struct Running {
    pub(super) cache: Arc<Cache>,
    pub(super) registry: Arc<Registry>,
    pub(super) clock: Arc<ManualClock>,
}

pub(super) struct World {
    pub(super) seed: u64,
    pub(super) prng: Prng,
    pub(super) drives: Vec<Drive>,
    pub(super) state: tempfile::TempDir,
    /// The state as it was before an earlier start.
    pub(super) older: Option<tempfile::TempDir>,
    pub(super) ram: RamOptions,
    pub(super) seconds: u64,
    pub(super) running: Option<Running>,
    pub(super) models: Vec<Model>,
    /// Hits whose bodies are read, and heads refreshed, later.
    pub(super) held: Vec<(u32, Hit)>,
    /// Hits whose bodies are being read, and what came of them.
    pub(super) begun: VecDeque<(u32, Hit, Vec<u8>)>,
    pub(super) versions: u32,
    /// A span or the state was away: what was written may not be found.
    pub(super) is_unsure: bool,
    /// A disk was ill in this run: what was to be written may not be.
    pub(super) is_ill: bool,
    pub(super) weather: &'static [Fault],
    /// Bytes that were stored, with all that a log may skip.
    pub(super) stored: u64,
    pub(super) tally: Tally,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut prng = Prng::seeded(seed);
        let tiers = [SpanTier::Fast, SpanTier::Capacity, SpanTier::Capacity];
        let some = 2 + to_usize(prng.below(2));
        let cutoff = prng.below(2);
        let mut world = Self {
            seed,
            drives: Vec::new(),
            prng,
            state: tempfile::tempdir().unwrap(),
            older: None,
            ram: RamOptions {
                cutoff,
                ..RamOptions::default()
            },
            seconds: 1_000_000,
            running: None,
            models: vec![Model::default(); to_usize(KEYS.into())],
            held: Vec::new(),
            begun: VecDeque::new(),
            versions: 0,
            is_unsure: false,
            is_ill: false,
            weather: weather_of(seed),
            stored: 0,
            tally: Tally::default(),
        };
        tiers
            .into_iter()
            .take(some)
            .for_each(|tier| world.plug_in(tier));
        world
    }

    /// The machine gets another disk.
    pub(super) fn plug_in(&mut self, tier: SpanTier) {
        let len = if self.has(Fault::Wrap) {
            SMALL_DISK
        } else {
            DISK
        };
        self.drives.push(Drive {
            tier,
            disk: SlowDisk::blank(len),
            is_present: true,
        });
    }

    fn options(&self) -> CacheOptions {
        let present = (0..).zip(&self.drives);
        let present = present.filter(|(_, drive)| drive.is_present);
        let spans = present.map(|(n, drive)| SpanOptions {
            tier: Some(drive.tier),
            ..SpanOptions::at(path(n))
        });
        let mut options = CacheOptions {
            spans: spans.collect(),
            state_dir: Some(self.state.path().to_owned()),
            ram: self.ram,
            io_timeout: PATIENCE,
            ..CacheOptions::default()
        };
        if self.has(Fault::Wrap) {
            options.target_fragment_size = FRAGMENT;
        }
        options
    }

    /// A disk as it is opened.
    pub(super) fn opened(&self, n: usize) -> OpenedDevice {
        OpenedDevice {
            device: Arc::new(self.drives[n].disk.device()),
            kind: DeviceKind::Block,
            path: path(n),
            rotational: None,
        }
    }

    pub(super) fn path_of(&self, n: usize) -> PathBuf {
        path(n)
    }

    pub(super) fn start(&mut self) {
        let present = (0..).zip(&self.drives);
        let present = present.filter(|(_, drive)| drive.is_present);
        let devices = present.map(|(n, _)| Ok(self.opened(n))).collect();
        self.seconds += 1000;
        let clock = Arc::new(ManualClock::at(WallTime::from_secs(self.seconds)));
        let time: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let registry = Registry::new();
        self.set_at_once(true);
        let (cache, _) = open_over(self.options(), devices, time, &registry);
        self.set_at_once(false);
        self.running = Some(Running {
            cache,
            registry,
            clock,
        });
        self.tally.starts += 1;
        (0..KEYS).for_each(|n| self.judge(n));
    }

    fn set_at_once(&self, at_once: bool) {
        for drive in &self.drives {
            drive.disk.set_at_once(at_once);
        }
    }

    pub(super) fn cache(&self) -> Arc<Cache> {
        Arc::clone(&self.running.as_ref().unwrap().cache)
    }

    /// Ends the writes that are out, and leaves the flushes.
    pub(super) fn end_writes(&self) {
        for drive in &self.drives {
            drive.disk.end_writes();
        }
    }

    /// Ends one write of a disk; whether there was one.
    fn pump(&mut self) -> bool {
        let busy = |drive: &&Drive| drive.disk.waiting() > 0;
        let busy: Vec<Arc<SlowDisk>> = { self.drives.iter().filter(busy) }
            .map(|drive| Arc::clone(&drive.disk))
            .collect();
        let at = self.prng.below(to_u64(busy.len()));
        let disk = busy.get(to_usize(at));
        disk.is_some_and(|disk| disk.end_one(&mut self.prng))
    }

    /// Waits for an answer, while writes end.
    pub(super) fn wait<T>(&mut self, what: &str, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        let mut silences = 0;
        loop {
            if let Poll::Ready(answer) = future.as_mut().poll(&mut context) {
                return answer;
            }
            if self.pump() {
                continue;
            }
            silences += 1;
            let ends = self.is_silent() && silences < SILENCES_MAX;
            assert!(ends, "STRATA_SIM_SEED={}: {what} hangs", self.seed);
            self.pass_time();
        }
    }

    fn step(&mut self) {
        if self.strikes() {
            return self.mishap();
        }
        let n = u32::try_from(self.prng.below(KEYS.into())).unwrap();
        match self.prng.below(100) {
            0..24 => self.store(n),
            24..28 => self.change(n),
            28..62 => self.read(n),
            62..65 => self.refresh(),
            65..68 => self.remove(n),
            68..70 if self.purges() => self.purge(n),
            68..78 => self.tick(),
            78..86 => self.move_copies(),
            86..96 => drop(self.pump()),
            96..98 => self.sync(),
            _ => self.restart(),
        }
    }

    /// What is in doubt is dead after a purge: half of the seeds have none.
    fn purges(&self) -> bool {
        self.seed.is_multiple_of(2)
    }

    pub(super) fn store(&mut self, n: u32) {
        let cache = self.cache();
        self.versions += 1;
        let body = content(n, self.versions, self.longest());
        let stored = cache
            .writer(object(&key(n), cache.epoch()))
            .and_then(|mut writer| {
                writer.push(&body)?;
                writer.commit()
            });
        if stored.is_ok() {
            self.stored += to_u64(body.len());
            self.models[to_usize(n.into())].store(self.versions, self.stored);
        } else {
            self.is_unsure = true;
        }
    }

    /// Two changes of a key, one right after the other.
    fn change(&mut self, n: u32) {
        match self.prng.below(2) {
            0 => self.store(n),
            _ => self.remove(n),
        }
        self.store(n);
    }

    pub(super) fn remove(&mut self, n: u32) {
        self.cache().remove(&key(n));
        self.models[to_usize(n.into())].remove();
    }

    pub(super) fn purge(&mut self, n: u32) {
        let cache = self.cache();
        let purged = self.wait("a purge", cache.purge(&key(n)));
        purged.unwrap();
        self.models[to_usize(n.into())].purge();
    }

    pub(super) fn tick(&mut self) {
        let millis = self.prng.below(1500);
        let running = self.running.as_ref().unwrap();
        running.clock.advance(Duration::from_millis(millis));
        running.cache.thread.tick();
    }

    pub(super) fn move_copies(&mut self) {
        let cache = self.cache();
        self.wait("a copy", cache.mover.step(&cache));
    }

    pub(super) fn sync(&mut self) {
        let cache = self.cache();
        self.wait("a sync", cache.sync());
        self.all_written();
    }

    /// All that was stored is written; with a disk that is ill nobody knows.
    pub(super) fn all_written(&mut self) {
        if !self.is_ill {
            let progress = self.progress();
            self.models
                .iter_mut()
                .for_each(|model| model.written(progress));
        }
    }

    /// Writes that the disks have done.
    pub(super) fn progress(&self) -> Progress {
        self.each_disk(|disk| disk.progress().0)
    }

    pub(super) fn each_disk(&self, of: impl Fn(&SlowDisk) -> usize) -> Progress {
        let mut each = Progress::default();
        for (each, drive) in each.iter_mut().zip(&self.drives) {
            *each = of(&drive.disk);
        }
        each
    }

    /// Bytes of the longest body.
    pub(super) fn longest(&self) -> u64 {
        if self.has(Fault::Wrap) {
            LONG_BODY
        } else {
            SHORT_BODY
        }
    }
}

/// Runs one seed to its end.
pub(super) fn run(seed: u64) -> Tally {
    simulated::with(seed, || {
        let mut world = World::new(seed);
        world.start();
        for _ in 0..STEPS {
            world.step();
        }
        world.restart();
        world.tally
    })
}
