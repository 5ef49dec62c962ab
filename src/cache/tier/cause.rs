//! Why bytes are written to the fast tier; each cause is counted apart.

use crate::metrics::Metric;

/// Why a fragment is appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteCause {
    /// An object is stored.
    Fill,
    /// A head is written again, as after a 304.
    Refresh,
    /// A copy of what the capacity tier was asked for often.
    Promotion,
    /// A copy, on the capacity tier, of what only the fast tier held.
    Demotion,
    /// What was read is written again before the cursor comes to it.
    Evacuation,
}

impl WriteCause {
    /// The counter of bytes written to the fast tier for it.
    pub(crate) const fn fast_bytes(self) -> Metric {
        match self {
            Self::Fill => Metric::TierFastWrittenFill,
            Self::Refresh => Metric::TierFastWrittenRefresh,
            // Nothing is demoted to the fast tier.
            Self::Promotion | Self::Demotion => Metric::TierFastWrittenPromotion,
            Self::Evacuation => Metric::TierFastWrittenEvacuation,
        }
    }
}
