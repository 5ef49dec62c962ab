//! A cache over two tiers, driven step by step, stopped and started again.

use super::super::machine::{DISK, copy_files, path};
use super::super::{key, object};
use super::disk::SlowDisk;
use super::model::Model;
use crate::base::clock::{Clock, ManualClock, WallTime};
use crate::base::prng::Prng;
use crate::base::simulated;
use crate::cache::format::{crc, to_u64, to_usize};
use crate::cache::object::Hit;
use crate::cache::options::{CacheOptions, RamOptions, SpanOptions};
use crate::cache::store::Cache;
use crate::cache::store::open::open_over;
use crate::cache::tier::SpanTier;
use crate::device::{DeviceKind, OpenedDevice};
use crate::metrics::{Metric, Registry};
use bytes::Bytes;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const KEYS: u32 = 24;
const STEPS: u64 = 500;
/// Disks that a machine has at most.
const DISKS_MAX: usize = 4;

/// A disk of the machine.
struct Drive {
    tier: SpanTier,
    disk: Arc<SlowDisk>,
    /// It is plugged in.
    is_present: bool,
}

/// What a seed has gone through.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    starts: u64,
    hits: u64,
    suspects: u64,
    promotions: u64,
    changes: u64,
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
        self.trace ^= other.trace;
    }
}

impl Tally {
    pub(super) const fn is_busy(&self) -> bool {
        let happened = self.suspects > 0 && self.promotions > 0 && self.changes > 0;
        happened && self.starts > 60 && self.hits > 1000
    }
}

/// A cache in use.
struct Running {
    cache: Arc<Cache>,
    registry: Arc<Registry>,
    clock: Arc<ManualClock>,
}

struct World {
    seed: u64,
    prng: Prng,
    drives: Vec<Drive>,
    state: tempfile::TempDir,
    /// The state as it was before an earlier start.
    older: Option<tempfile::TempDir>,
    ram: RamOptions,
    seconds: u64,
    running: Option<Running>,
    models: Vec<Model>,
    /// Hits whose bodies are read, and heads refreshed, later.
    held: Vec<(u32, Hit)>,
    versions: u32,
    /// A span or the state was away: what was written may not be found.
    is_unsure: bool,
    tally: Tally,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut prng = Prng::seeded(seed);
        let tiers = [SpanTier::Fast, SpanTier::Capacity, SpanTier::Capacity];
        let some = 2 + to_usize(prng.below(2));
        let cutoff = prng.below(2);
        let drives = tiers.into_iter().take(some).map(drive);
        Self {
            seed,
            drives: drives.collect(),
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
            versions: 0,
            is_unsure: false,
            tally: Tally::default(),
        }
    }

    fn start(&mut self) {
        let present = || {
            (0..)
                .zip(&self.drives)
                .filter(|(_, drive)| drive.is_present)
        };
        let spans = present().map(|(n, drive)| SpanOptions {
            tier: Some(drive.tier),
            ..SpanOptions::at(path(n))
        });
        let options = CacheOptions {
            spans: spans.collect(),
            state_dir: Some(self.state.path().to_owned()),
            ram: self.ram,
            ..CacheOptions::default()
        };
        let devices = present().map(|(n, drive)| {
            Ok(OpenedDevice {
                device: Arc::new(drive.disk.device()),
                kind: DeviceKind::Block,
                path: path(n),
                rotational: None,
            })
        });
        self.seconds += 1000;
        let clock = Arc::new(ManualClock::at(WallTime::from_secs(self.seconds)));
        let time: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let registry = Registry::new();
        self.set_at_once(true);
        let (cache, _) = open_over(options, devices.collect(), time, &registry);
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
            drive.disk.at_once.store(at_once, Ordering::Relaxed);
        }
    }

    fn cache(&self) -> Arc<Cache> {
        Arc::clone(&self.running.as_ref().unwrap().cache)
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
    fn wait<T>(&mut self, what: &str, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(answer) = future.as_mut().poll(&mut context) {
                return answer;
            }
            assert!(self.pump(), "STRATA_SIM_SEED={}: {what} hangs", self.seed);
        }
    }

    fn step(&mut self) {
        let n = u32::try_from(self.prng.below(KEYS.into())).unwrap();
        match self.prng.below(100) {
            0..24 => self.store(n),
            24..28 => self.change(n),
            28..62 => self.read(n),
            62..65 => self.refresh(),
            65..68 => self.remove(n),
            68..70 if self.seed.is_multiple_of(2) => self.purge(n),
            68..78 => self.tick(),
            78..86 => self.move_copies(),
            86..96 => drop(self.pump()),
            96..98 => self.sync(),
            _ => self.restart(),
        }
    }

    fn store(&mut self, n: u32) {
        let cache = self.cache();
        self.versions += 1;
        let body = content(n, self.versions);
        let stored = cache
            .writer(object(&key(n), cache.epoch()))
            .and_then(|mut writer| {
                writer.push(&body)?;
                writer.commit()
            });
        if stored.is_ok() {
            self.models[to_usize(n.into())].store(self.versions);
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

    fn remove(&mut self, n: u32) {
        self.cache().remove(&key(n));
        self.models[to_usize(n.into())].remove();
    }

    fn purge(&mut self, n: u32) {
        let cache = self.cache();
        let purged = self.wait("a purge", cache.purge(&key(n)));
        purged.unwrap();
        self.models[to_usize(n.into())].purge();
    }

    fn tick(&mut self) {
        let millis = self.prng.below(1500);
        let running = self.running.as_ref().unwrap();
        running.clock.advance(Duration::from_millis(millis));
        running.cache.thread.tick();
    }

    fn move_copies(&mut self) {
        let cache = self.cache();
        self.wait("a copy", cache.mover.step(&cache));
    }

    fn sync(&mut self) {
        let cache = self.cache();
        self.wait("a sync", cache.sync());
        self.models.iter_mut().for_each(Model::written);
    }

    /// What a reader gets: version, and whether it is in doubt.
    fn get(&mut self, n: u32) -> Option<(u32, Hit)> {
        let cache = self.cache();
        let mut hit = self.wait("a read", cache.read(&key(n))).ok()?;
        let mut body = Vec::new();
        while let Some(piece) = self.wait("a body", hit.body.next()).unwrap() {
            body.extend_from_slice(&piece);
        }
        let version = version_in(&body);
        let whole = body == content(n, version);
        assert!(whole, "{}: wrong bytes", self.context(n));
        Some((version, hit))
    }

    fn read(&mut self, n: u32) {
        let found = self.get(n);
        let context = self.context(n);
        let Some((version, hit)) = found else {
            return;
        };
        let model = &self.models[to_usize(n.into())];
        let allowed = match hit.suspect {
            true => model.may_be_suspect(version),
            false => model.is_current(version),
        };
        assert!(allowed, "{context}: found {version} of {:?}", hit.tier);
        self.tally.hits += 1;
        self.tally.suspects += u64::from(hit.suspect);
        self.note(n, version, &hit);
        self.held.push((n, hit));
        self.held.truncate(8);
    }

    /// The origin says that what a reader holds is still right.
    fn refresh(&mut self) {
        let Some((n, hit)) = self.held.pop().filter(|(_, hit)| !hit.suspect) else {
            return;
        };
        let meta = Bytes::from_static(b"newer");
        let version = version_of(&hit);
        let refreshed = self.cache().refresh(&hit.copy, &key(n), meta);
        let model = &self.models[to_usize(n.into())];
        let allowed = refreshed.is_err() || version.is_none_or(|v| model.is_current(v));
        assert!(allowed, "{}: an old copy was refreshed", self.context(n));
        if refreshed.is_ok() {
            self.models[to_usize(n.into())].refreshed();
        }
    }

    /// What a start has made of a key.
    fn judge(&mut self, n: u32) {
        let found = self.get(n);
        let context = self.context(n);
        let model = &mut self.models[to_usize(n.into())];
        let required = model.required().filter(|_| !self.is_unsure);
        let doubtful = found.as_ref().filter(|(_, hit)| hit.suspect);
        if let Some((version, _)) = doubtful {
            assert!(
                model.may_be_suspect(*version),
                "{context}: purged {version}"
            );
        }
        let sure = found.as_ref().filter(|(_, hit)| !hit.suspect);
        let sure = sure.map(|(version, _)| *version);
        assert!(
            model.settle(sure),
            "{context}: found {sure:?}, which is old"
        );
        assert!(
            required.is_none() || sure == required,
            "{context}: found {sure:?}, not {required:?}"
        );
        self.tally.suspects += u64::from(doubtful.is_some());
        let trace = format!("{n} {sure:?} {:?}", doubtful.map(|(version, _)| version));
        self.tally.trace = crc(&[&self.tally.trace.to_le_bytes(), trace.as_bytes()]);
    }

    /// Takes note of what is written for sure.
    fn note(&mut self, n: u32, version: u32, hit: &Hit) {
        let home = hit.copy.0.home.as_ref();
        let hash = key(n).hash();
        if home.is_some_and(|home| home.stripe.holds_written(hash, home.entry)) {
            self.models[to_usize(n.into())].seen_written(version);
        }
    }

    fn context(&self, n: u32) -> String {
        let model = &self.models[to_usize(n.into())];
        format!("STRATA_SIM_SEED={}: key {n} of {model:?}", self.seed)
    }

    /// Ends the run, changes the machine, and starts again.
    fn restart(&mut self) {
        if self.prng.below(3) == 0 {
            let cache = self.cache();
            self.wait("a stop", cache.shutdown());
            self.models.iter_mut().for_each(Model::written);
        } else {
            (0..KEYS).for_each(|n| self.read(n));
        }
        self.held.clear();
        let running = self.running.take().unwrap();
        let stripes = running.cache.volume.stripes();
        let is_noted = stripes.iter().any(|stripe| stripe.has_opened());
        drop(stripes);
        self.tally.promotions += running.registry.get(Metric::TierPromotions);
        for drive in &self.drives {
            drive.disk.cut(&mut self.prng);
        }
        drop(running);
        if !self.roll_back(is_noted) {
            self.lose_state();
            self.change_disks();
        }
        self.start();
    }

    fn change_disks(&mut self) {
        let capacity = |drive: &&mut Drive| drive.tier == SpanTier::Capacity;
        match self.prng.below(8) {
            0 if self.drives.len() < DISKS_MAX => self.drives.push(drive(SpanTier::Capacity)),
            0 | 1 => {
                let count = to_u64(self.drives.len());
                let at = to_usize(self.prng.below(count));
                self.drives[at].is_present ^= true;
                self.is_unsure = true;
            }
            2 => self
                .drives
                .iter_mut()
                .for_each(|drive| drive.is_present = true),
            _ => return,
        }
        self.tally.changes += 1;
        if !self.drives.iter().any(|drive| drive.is_present) {
            let mut drives = self.drives.iter_mut();
            drives.find(capacity).unwrap().is_present = true;
        }
    }

    /// The state folder is put back as it was before an earlier start. A disk
    /// that is there has the last run noted, or else nobody could know. Others
    /// are away still, or come back at once.
    fn roll_back(&mut self, is_noted: bool) -> bool {
        if self.older.is_none() || !is_noted || self.prng.below(6) > 0 {
            return false;
        }
        self.state = self.older.take().unwrap();
        self.forget();
        if self.prng.below(2) == 0 {
            let drives = self.drives.iter_mut();
            drives.for_each(|drive| drive.is_present = true);
        }
        true
    }

    /// The state folder is lost, or a copy is made of it.
    fn lose_state(&mut self) {
        match self.prng.below(16) {
            0 => {
                self.state = tempfile::tempdir().unwrap();
                self.older = None;
                self.forget();
            }
            1..5 if self.older.is_none() => {
                let copy = tempfile::tempdir().unwrap();
                copy_files(self.state.path(), copy.path());
                self.older = Some(copy);
            }
            _ => {}
        }
    }

    /// What was purged is not known any more: all is dead.
    fn forget(&mut self) {
        self.is_unsure = true;
        self.models.iter_mut().for_each(Model::purge);
    }
}

fn drive(tier: SpanTier) -> Drive {
    Drive {
        tier,
        disk: SlowDisk::blank(DISK),
        is_present: true,
    }
}

/// The body of a version: it tells its key and version, and fills the rest.
fn content(n: u32, version: u32) -> Bytes {
    let mut prng = Prng::seeded(version.into());
    let length = 8 + to_usize(prng.below(12_000));
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(&n.to_le_bytes());
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.resize(length, prng.next_u64().to_le_bytes()[0]);
    Bytes::from(bytes)
}

fn version_in(body: &[u8]) -> u32 {
    let bytes = body.get(4..8).unwrap_or_default();
    u32::from_le_bytes(bytes.try_into().unwrap_or_default())
}

/// The version that a hit holds in memory.
fn version_of(hit: &Hit) -> Option<u32> {
    let chunks = hit.copy.0.chunks.as_ref()?;
    Some(version_in(&chunks.concat()))
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
