//! The tiers, and which of them a span belongs to.

mod budget;
mod cause;
mod life;
mod sketch;

pub(crate) use budget::WriteBudget;
pub(crate) use cause::WriteCause;
pub(crate) use life::{Left, Life, Writes};
pub(crate) use sketch::Sketch;

use crate::metrics::Metric;
use std::fmt;

/// Where a copy of an object lies, fastest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// The RAM cache.
    Ram,
    /// Spans on SSD or NVMe.
    Fast,
    /// Spans on rotating disks, or whatever is cheap and large.
    Capacity,
}

impl Tier {
    /// The counter of cache reads whose head came from this tier.
    #[must_use]
    pub const fn read_success(self) -> Metric {
        match self {
            Self::Ram => Metric::CacheRamReadSuccess,
            Self::Fast => Metric::CacheSsdReadSuccess,
            Self::Capacity => Metric::CacheDiskReadSuccess,
        }
    }

    /// The counter of the bytes of the objects that cache reads found there.
    #[must_use]
    pub const fn read_bytes(self) -> Metric {
        match self {
            Self::Ram => Metric::TierRamBytes,
            Self::Fast => Metric::TierFastBytes,
            Self::Capacity => Metric::TierCapacityBytes,
        }
    }

    /// The word of metrics and of `Cache-Status`: `ram`, `ssd` or `hdd`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ram => "ram",
            Self::Fast => "ssd",
            Self::Capacity => "hdd",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The tier of a span: storage.config's `tier=fast|capacity`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpanTier {
    /// Looked up before the capacity tier.
    Fast,
    /// Where fills go when there is such a tier.
    Capacity,
}

impl From<SpanTier> for Tier {
    fn from(tier: SpanTier) -> Self {
        match tier {
            SpanTier::Fast => Self::Fast,
            SpanTier::Capacity => Self::Capacity,
        }
    }
}

impl fmt::Display for SpanTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fast => "fast",
            Self::Capacity => "capacity",
        })
    }
}
