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
}

impl WriteCause {
    /// The counter of bytes written to the fast tier for it.
    pub(crate) const fn fast_bytes(self) -> Metric {
        match self {
            Self::Fill => Metric::TierFastWrittenFill,
            Self::Refresh => Metric::TierFastWrittenRefresh,
            Self::Promotion => Metric::TierFastWrittenPromotion,
        }
    }
}
