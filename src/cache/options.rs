//! What the cache is opened with; the caller turns records into these.

use super::hosting::Hosting;
use super::tier::SpanTier;
use crate::base::size::MIB;
use crate::device::Wish;
use std::path::PathBuf;
use std::time::Duration;

/// One line of storage.config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanOptions {
    /// A block device, a partition, a file, or a directory, made absolute.
    /// In a directory (it exists as one, or the path ends in `/`) the span is
    /// the file `cache.db`.
    pub path: PathBuf,
    /// Bytes to use. Needed to create a file; a device or an existing file
    /// gives its whole size when absent, and caps it when present.
    pub size: Option<u64>,
    /// The operator's name for the span, shown in reports.
    pub id: Option<String>,
    /// The volume that owns the span; 0 is the default volume.
    pub volume: u8,
    /// The tier; when absent, the kernel's rotational flag decides.
    pub tier: Option<SpanTier>,
}

impl SpanOptions {
    /// A span at `path` with everything else left to be found out.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            size: None,
            id: None,
            volume: 0,
            tier: None,
        }
    }
}

/// How large a volume is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeSize {
    /// Of the spans that no volume has for itself, 1 to 100.
    Percent(u8),
    /// Megabytes of 1024 × 1024 bytes.
    Megabytes(u64),
}

/// One line of volume.config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeOptions {
    /// 1 to 255.
    pub number: u8,
    /// Its share of the spans that are shared.
    pub size: VolumeSize,
    /// Whether its objects may enter the RAM cache.
    pub ram_cache: bool,
}

/// The RAM cache's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RamOptions {
    /// Bytes, overhead included (`ram_cache.size`); `None` sizes it from the
    /// stripes' directories: ten times their bytes, at least 32 MiB.
    pub size: Option<u64>,
    /// Bodies of this many bytes or more never enter; 0 is no limit
    /// (`ram_cache_cutoff`).
    pub cutoff: u64,
    /// Admits only keys that came by before (`ram_cache.use_seen_filter`):
    /// 0 never, 1 always, n from 2 while n - 1 of n parts are full.
    pub seen_filter: u8,
}

impl Default for RamOptions {
    fn default() -> Self {
        Self {
            size: None,
            cutoff: 4 * MIB,
            seen_filter: 0,
        }
    }
}

/// How objects move between the tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierOptions {
    /// Reads of late at which an object of the capacity tier is copied to the
    /// fast one (`interim.migrate_threshold`); from 255 on all are alike.
    pub promote_after: u32,
    /// The tier that stores go to when there are both (`strata.tier.fills`).
    pub fills: SpanTier,
    /// Bytes that may be written to a fast span a day; 0 is no limit
    /// (`strata.tier.fast.write_budget`).
    pub fast_write_budget: u64,
    /// Bytes of it that may be written at once; 0 is an hour's
    /// (`strata.tier.fast.write_burst`).
    pub fast_write_burst: u64,
    /// Bytes that can be written to a fast span in its life; 0 is not known
    /// (`strata.tier.fast.endurance`).
    pub fast_endurance: u64,
}

impl TierOptions {
    /// [`TierOptions::fast_write_burst`] in bytes, whatever it is by.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        match self.fast_write_burst {
            0 => self.fast_write_budget / 24,
            burst => burst,
        }
    }
}

impl Default for TierOptions {
    fn default() -> Self {
        Self {
            promote_after: 2,
            fills: SpanTier::Capacity,
            fast_write_budget: 0,
            fast_write_burst: 0,
            fast_endurance: 0,
        }
    }
}

/// Which interface reads and writes the spans (`proxy.config.aio.mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AioMode {
    /// The best there is.
    #[default]
    Auto,
    /// Linux's older asynchronous interface; not there, so opening warns and
    /// takes the best there is.
    Native,
    /// A bounded pool of threads with pread and pwrite.
    Thread,
    /// Linux's `io_uring` for the reads of event threads; where the system
    /// refuses it, opening warns and takes threads.
    IoUring,
}

impl AioMode {
    /// What it asks of the device layer.
    pub(super) const fn wish(self) -> Wish {
        match self {
            Self::Auto | Self::Native => Wish::Best,
            Self::Thread => Wish::Threads,
            Self::IoUring => Wish::Rings,
        }
    }
}

/// What `Cache::open` is given.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// The spans of both tiers. None at all makes a cache in RAM only.
    pub spans: Vec<SpanOptions>,
    /// The volumes that share them; none at all is one volume over all.
    pub volumes: Vec<VolumeOptions>,
    /// Which volumes a host's objects go to, until [`super::Cache::host`] says
    /// otherwise.
    pub hosting: Hosting,
    /// Where the small durable state lies (purge rules, known spans); `None`
    /// keeps it in memory, and then a purge is no more durable than that.
    pub state_dir: Option<PathBuf>,
    /// The RAM cache.
    pub ram: RamOptions,
    /// Interface to the spans.
    pub aio_mode: AioMode,
    /// I/O threads a span (`threads_per_disk`), at least 1.
    pub threads_per_disk: usize,
    /// Reads of a span that one event thread has under way by `io_uring`
    /// (`strata.disk.read_depth`).
    pub disk_read_depth: usize,
    /// Reads of a span that wait before one is a miss
    /// (`strata.disk.read_queue`).
    pub disk_read_queue: usize,
    /// Bytes of the largest fragment (`target_fragment_size`); the cache takes
    /// 4096 to 1,835,008, and the nearest of them for others.
    pub target_fragment_size: u32,
    /// Stripe bytes a directory slot of a new stripe, but see
    /// [`CacheOptions::average_object_bytes`]
    /// (`min_average_object_size`).
    pub min_average_object_size: u32,
    /// Bytes that may wait to be written, a stripe, before stores are refused
    /// (`agg_write_backlog`).
    pub agg_write_backlog: u64,
    /// Shortest time between two directory syncs (`dir.sync_frequency`).
    pub dir_sync_frequency: Duration,
    /// Bodies larger than this are not stored; 0 is no limit
    /// (`max_doc_size`).
    pub max_doc_size: u64,
    /// I/O errors at which a span goes offline (`max_disk_errors`).
    pub max_disk_errors: u32,
    /// Checksum failures at which a span goes offline
    /// (`strata.cache.max_checksum_errors`).
    pub max_checksum_errors: u32,
    /// How long a span may take to answer before that is an I/O error; zero
    /// is for ever (`strata.cache.io_timeout`).
    pub io_timeout: Duration,
    /// How long a read waits for what a start has not read yet before it is a
    /// miss (`strata.cache.load_wait`).
    pub load_wait: Duration,
    /// Time between two saves of what is hot in RAM; zero saves nothing
    /// (`strata.ram_cache.save_interval`).
    pub save_every: Duration,
    /// Bytes a second that a start reads ahead of what was hot in RAM; 0 reads
    /// nothing (`strata.ram_cache.warm_rate`).
    pub warm_rate: u64,
    /// How objects move between the tiers.
    pub tier: TierOptions,
    /// The sector size to write by, in bytes; 0 asks the device
    /// (`force_sector_size`).
    pub force_sector_size: u32,
    /// Empties our spans at opening: new stripe UUIDs, nothing kept
    /// (`traffic_server -C clear`). Spans that are not ours stay refused.
    pub clear: bool,
}

/// Those of the options that may change while the cache is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveOptions {
    /// [`RamOptions::size`].
    pub ram_size: Option<u64>,
    /// [`RamOptions::cutoff`].
    pub ram_cutoff: u64,
    /// [`CacheOptions::agg_write_backlog`].
    pub agg_write_backlog: u64,
    /// [`CacheOptions::dir_sync_frequency`].
    pub dir_sync_frequency: Duration,
    /// [`CacheOptions::max_doc_size`].
    pub max_doc_size: u64,
    /// [`CacheOptions::max_disk_errors`].
    pub max_disk_errors: u32,
    /// [`CacheOptions::max_checksum_errors`].
    pub max_checksum_errors: u32,
    /// [`CacheOptions::io_timeout`].
    pub io_timeout: Duration,
    /// [`CacheOptions::load_wait`].
    pub load_wait: Duration,
    /// [`CacheOptions::save_every`].
    pub save_every: Duration,
    /// [`CacheOptions::warm_rate`].
    pub warm_rate: u64,
    /// [`CacheOptions::tier`].
    pub tier: TierOptions,
}

/// How long a device may take to be opened or closed if `io_timeout` is 0.
const LONG_PATIENCE: Duration = Duration::from_secs(86_400);

impl CacheOptions {
    /// How long who opens or closes a device waits for an answer.
    pub(super) const fn patience(&self) -> Duration {
        if self.io_timeout.is_zero() {
            LONG_PATIENCE
        } else {
            self.io_timeout
        }
    }

    /// Those that may change.
    #[must_use]
    pub const fn live(&self) -> LiveOptions {
        LiveOptions {
            ram_size: self.ram.size,
            ram_cutoff: self.ram.cutoff,
            agg_write_backlog: self.agg_write_backlog,
            dir_sync_frequency: self.dir_sync_frequency,
            max_doc_size: self.max_doc_size,
            max_disk_errors: self.max_disk_errors,
            max_checksum_errors: self.max_checksum_errors,
            io_timeout: self.io_timeout,
            load_wait: self.load_wait,
            save_every: self.save_every,
            warm_rate: self.warm_rate,
            tier: self.tier,
        }
    }
}

/// Bytes of an average object where nobody says.
const AVERAGE_OBJECT: u32 = 8000;
/// The same on a capacity span larger than [`LARGE_SPAN`]: such hold what is large,
/// and their directories would take the machine's memory.
const AVERAGE_OBJECT_LARGE: u32 = 32_000;
/// 4 TiB, in bytes.
const LARGE_SPAN: u64 = 4 << 40;

impl CacheOptions {
    /// Stripe bytes a directory slot of new stripes on a span of `tier`, of
    /// `span_bytes`.
    #[must_use]
    pub fn average_object_bytes(&self, tier: SpanTier, span_bytes: u64) -> u64 {
        let is_large = tier == SpanTier::Capacity && span_bytes > LARGE_SPAN;
        let bytes = match self.min_average_object_size {
            AVERAGE_OBJECT if is_large => AVERAGE_OBJECT_LARGE,
            bytes => bytes,
        };
        bytes.into()
    }
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            spans: Vec::new(),
            volumes: Vec::new(),
            hosting: Hosting::default(),
            state_dir: None,
            ram: RamOptions::default(),
            aio_mode: AioMode::Auto,
            threads_per_disk: 8,
            disk_read_depth: 64,
            disk_read_queue: 1024,
            target_fragment_size: 1 << 20,
            min_average_object_size: AVERAGE_OBJECT,
            agg_write_backlog: 5 * MIB,
            dir_sync_frequency: Duration::from_secs(60),
            max_doc_size: 0,
            max_disk_errors: 5,
            max_checksum_errors: 100,
            io_timeout: Duration::from_secs(30),
            load_wait: Duration::from_secs(1),
            save_every: Duration::from_secs(300),
            warm_rate: 32 * MIB,
            tier: TierOptions::default(),
            force_sector_size: 0,
            clear: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_capacity_span_has_fewer_slots_unless_the_record_says_how_many() {
        let usual = CacheOptions::default();
        let set = CacheOptions {
            min_average_object_size: 8001,
            ..CacheOptions::default()
        };
        let (fast, capacity) = (SpanTier::Fast, SpanTier::Capacity);
        assert_eq!(usual.average_object_bytes(capacity, LARGE_SPAN), 8000);
        assert_eq!(usual.average_object_bytes(capacity, LARGE_SPAN + 1), 32_000);
        assert_eq!(usual.average_object_bytes(fast, LARGE_SPAN + 1), 8000);
        assert_eq!(set.average_object_bytes(capacity, LARGE_SPAN + 1), 8001);
    }
}
