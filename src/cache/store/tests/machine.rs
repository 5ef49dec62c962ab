//! A machine in memory: its disks and its state outlive the caches on it.

use super::super::open::open_over;
use super::*;
use crate::cache::options::{SpanOptions, TierOptions, VolumeOptions};
use crate::cache::tier::SpanTier;
use crate::device::{DeviceKind, MemDisk, OpenedDevice};
use std::path::{Path, PathBuf};

pub(super) const DISK: usize = 40 << 20;

/// A machine: disks and a state directory that outlive the cache on them.
pub(super) struct Machine {
    pub(super) disks: Vec<(SpanTier, Arc<MemDisk>)>,
    pub(super) state: tempfile::TempDir,
    pub(super) ram: RamOptions,
    /// The volume of each disk, if that is not 0.
    pub(super) volumes: Vec<u8>,
    /// What volume.config says.
    pub(super) shares: Vec<VolumeOptions>,
    /// What hosting.config says.
    pub(super) hosting: Hosting,
    /// Of long bodies, bytes.
    pub(super) fragment_bytes: u32,
    /// Bytes a second to read ahead.
    pub(super) warm_rate: u64,
    pub(super) tier: TierOptions,
}

/// A cache on a machine.
pub(super) struct Running {
    pub(super) cache: Arc<Cache>,
    pub(super) registry: Arc<Registry>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) reports: Vec<SpanReport>,
}

/// Copies what a folder holds into another one.
pub(super) fn copy_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy_files(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

pub(super) fn path(n: usize) -> PathBuf {
    PathBuf::from(format!("/dev/mem{n}"))
}

impl Machine {
    pub(super) fn with(tiers: &[SpanTier]) -> Self {
        Self {
            disks: tiers.iter().map(|t| (*t, MemDisk::blank(DISK))).collect(),
            state: tempfile::tempdir().unwrap(),
            ram: RamOptions {
                cutoff: 1,
                ..RamOptions::default()
            },
            volumes: Vec::new(),
            shares: Vec::new(),
            hosting: Hosting::default(),
            fragment_bytes: CacheOptions::default().target_fragment_size,
            warm_rate: 1 << 30,
            tier: TierOptions::default(),
        }
    }

    pub(super) async fn start(&self) -> Running {
        let running = self.start_now();
        running.cache.loaded().await;
        running
    }

    pub(super) fn start_now(&self) -> Running {
        let registry = Registry::new();
        let spans = (0..).zip(&self.disks).map(|(n, (tier, _))| SpanOptions {
            tier: Some(*tier),
            volume: self.volumes.get(n).copied().unwrap_or(0),
            ..SpanOptions::at(path(n))
        });
        let options = CacheOptions {
            spans: spans.collect(),
            volumes: self.shares.clone(),
            hosting: self.hosting.clone(),
            target_fragment_size: self.fragment_bytes,
            state_dir: Some(self.state.path().to_owned()),
            ram: self.ram,
            warm_rate: self.warm_rate,
            tier: self.tier,
            ..CacheOptions::default()
        };
        let devices = (0..).zip(&self.disks).map(|(n, (_, disk))| {
            Ok(OpenedDevice {
                device: Arc::new(disk.device()),
                kind: DeviceKind::Block,
                path: path(n),
                rotational: None,
            })
        });
        let clock = Arc::new(ManualClock::default());
        let time: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let (cache, reports) = open_over(options, devices.collect(), time, &registry);
        Running {
            cache,
            registry,
            clock,
            reports,
        }
    }
}

impl Running {
    /// The end without a stop: what was not written is lost.
    pub(super) fn kill(self) {
        let mut cache = self.cache;
        // The cache's thread may be looking at it just now.
        while let Err(held) = Arc::try_unwrap(cache).map(drop) {
            cache = held;
            std::thread::yield_now();
        }
    }

    pub(super) fn counts(&self) -> [u64; 4] {
        [
            Metric::CacheReadSuccess,
            Metric::CacheRamReadSuccess,
            Metric::CacheSsdReadSuccess,
            Metric::CacheDiskReadSuccess,
        ]
        .map(|metric| self.registry.get(metric))
    }
}

pub(super) fn text(n: u32, len: usize) -> Vec<u8> {
    let word = n.to_le_bytes();
    word.iter().copied().cycle().take(len).collect()
}

pub(super) async fn all(hit: &mut Hit) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(piece) = hit.body.next().await.unwrap() {
        body.extend_from_slice(&piece);
    }
    body
}
