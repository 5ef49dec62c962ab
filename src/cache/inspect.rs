//! What the cache says of itself: reports at opening, status while it runs.

use super::tier::SpanTier;
use std::path::PathBuf;

/// What became of one configured span at opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanReport {
    /// The path as configured.
    pub path: PathBuf,
    /// What became of it.
    pub outcome: SpanOutcome,
}

/// Whether a span is in use, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanOutcome {
    /// It is in use.
    Used {
        /// The span's tier.
        tier: SpanTier,
        /// Bytes in use.
        bytes: u64,
        /// True when it was formatted just now: it was blank, new or cleared.
        formatted: bool,
    },
    /// It is left out, and nothing was written to it. The text names the
    /// path, what was found, and the command that cures it.
    Refused(String),
}

/// The state of a span, or of one of its stripes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanState {
    /// Being read: what it holds is not known yet, and nothing is stored.
    Loading,
    /// In use. After a start pages of its directory may be yet to be read: see
    /// [`StripeStatus::pages_unread`].
    Online,
    /// In use, but some of what it holds only after revalidation: it was away
    /// when things changed, or may be. New objects are not concerned.
    Suspect,
    /// Out of use: by command, or because of this many I/O errors.
    Offline {
        /// I/O errors counted.
        errors: u64,
    },
    /// Never came into use; the text is the refusal.
    Refused(String),
}

impl SpanState {
    /// Whether objects are read from it and stored on it.
    #[must_use]
    pub const fn is_in_use(&self) -> bool {
        matches!(self, Self::Online | Self::Suspect)
    }

    /// The word of `storage list`.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Online => "online",
            Self::Suspect => "suspect",
            Self::Offline { .. } => "offline",
            Self::Refused(_) => "refused",
        }
    }
}

/// A stripe of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripeStatus {
    /// Its UUID.
    pub uuid: u128,
    /// The volume that it belongs to.
    pub volume: u32,
    /// Its state; that of a span out of use is the span's.
    pub state: SpanState,
    /// Bytes of its log, 0 before it has been read, as in what follows.
    pub bytes_total: u64,
    /// Bytes of the log that hold live or dead fragments.
    pub bytes_used: u64,
    /// Directory slots.
    pub entries_total: u64,
    /// Directory slots in use, of the pages that have been read.
    pub entries_used: u64,
    /// Pages of the directory that are yet to be read: as they are asked for,
    /// the others behind.
    pub pages_unread: u64,
}

/// One row of `storage list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanStatus {
    /// The path as configured.
    pub path: PathBuf,
    /// The operator's name for it.
    pub id: Option<String>,
    /// The span's UUID; `None` when it was refused.
    pub uuid: Option<u128>,
    /// The tier; `None` when it was refused.
    pub tier: Option<SpanTier>,
    /// Its state: `Loading` or `Suspect` as soon as one of its stripes is.
    pub state: SpanState,
    /// Bytes in use for the log.
    pub bytes_total: u64,
    /// Bytes of the log that hold live or dead fragments.
    pub bytes_used: u64,
    /// Directory slots.
    pub entries_total: u64,
    /// Directory slots in use, of the pages that have been read.
    pub entries_used: u64,
    /// Pages of the directories that are yet to be read.
    pub pages_unread: u64,
    /// I/O errors since opening.
    pub errors: u64,
    /// Fragments and pages since opening whose checksum failed.
    pub checksum_errors: u64,
    /// Its stripes; none when it was refused.
    pub stripes: Vec<StripeStatus>,
}

/// The RAM cache's figures, bytes with overhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RamStatus {
    /// The budget.
    pub bytes_total: u64,
    /// Accounted bytes.
    pub bytes_used: u64,
    /// Objects held.
    pub objects: u64,
}

/// Whether the cache can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Every stripe is judged and at least one is usable, or no span was
    /// configured and the RAM cache is all there is.
    Ready,
    /// Of some stripes it is not known yet what they hold: ring and log are
    /// being read. The pages of their directories are not waited for.
    Loading,
    /// Spans are configured and none is usable: nothing is stored, and nothing
    /// found but what the RAM cache holds from before.
    NoSpan,
}

/// The cache's state at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheStatus {
    /// Whether the cache can be used.
    pub readiness: Readiness,
    /// Every configured span, in the order of storage.config.
    pub spans: Vec<SpanStatus>,
    /// The RAM cache.
    pub ram: RamStatus,
    /// The invalidation counter.
    pub epoch: u64,
    /// Purge rules that still wait to retire.
    pub rules: usize,
}
