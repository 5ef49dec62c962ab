//! Why the origin is asked.

use crate::http::reuse::Reason;
use crate::proxy::cache_status::{CacheStatus, Forwarded};
use crate::proxy::decide;
use crate::proxy::fetch::Passing;
use crate::proxy::outcome::Outcome;

/// Why the origin is asked, and what the transaction ends in when it answers
/// with a representation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// What it ends in.
    pub(super) outcome: Outcome,
    /// What Cache-Status says.
    pub(super) why: Forwarded,
    /// Why what is held may not be reused.
    pub(super) reason: Option<Reason>,
}

impl Plan {
    /// Nothing is held.
    pub(super) const fn anew(outcome: Outcome, why: Forwarded) -> Self {
        Self {
            outcome,
            why,
            reason: None,
        }
    }

    /// What is held may not be reused unasked.
    pub(super) const fn again(reason: Reason) -> Self {
        Self {
            outcome: decide::replaced(reason, true),
            why: decide::forwarded(reason),
            reason: Some(reason),
        }
    }

    /// What Cache-Status says while nothing else is known.
    pub(super) fn status(&self) -> CacheStatus {
        CacheStatus {
            forwarded: Some(self.why),
            ..CacheStatus::default()
        }
    }

    /// The request on its own, nothing stored of it.
    pub(super) const fn passing(&self) -> Passing {
        Passing {
            outcome: self.outcome,
            why: self.why,
        }
    }

    /// Whether nothing but its age demands that the origin be asked about what
    /// is held.
    pub(super) const fn is_only_old(&self) -> bool {
        matches!(self.reason, Some(Reason::Expired | Reason::Policy))
    }
}
