//! What the state beside the spans knows, for who asks what a start would do.

use super::check::StripePlace;
use super::invalidation::{Lineage, Presence, State, StateCopy};
use super::options::CacheOptions;
use super::stripe::{RecoveryStart, StripeIdentity};

/// What a start would know of stripes before it reads them.
pub(super) struct Known {
    /// None: they are judged as if they had missed nothing.
    copy: Option<StateCopy>,
    /// A stripe tells of a run that the state has lost: then nothing is used.
    is_behind: bool,
    /// Keys that were purged and are yet to be taken out of the spans, and the
    /// epochs below which what they have is dead.
    purges: Vec<(u128, u64)>,
}

impl Known {
    /// Nothing at all, where no start is meant that reads a state.
    pub(super) const NOTHING: Self = Self {
        copy: None,
        is_behind: false,
        purges: Vec::new(),
    };

    /// What the state folder of `options` knows; nothing, if it can't be read.
    pub(super) fn of(options: &CacheOptions) -> Self {
        let copy = options.state_dir.as_deref().map(StateCopy::of).transpose();
        let copy = copy.inspect_err(|error| {
            tracing::warn!(%error, "what the state folder knows is left out of the judgement");
        });
        let copy = copy.ok().flatten();
        let state = copy.as_ref().and_then(StateCopy::state);
        let purges = state.and_then(|state| state.unfinished_purges().ok());
        Self {
            purges: purges.unwrap_or_default(),
            copy,
            is_behind: false,
        }
    }

    /// Keys that were purged and that a start would take out, and the epochs below
    /// which what they have is dead.
    pub(super) fn purges(&self) -> &[(u128, u64)] {
        &self.purges
    }

    /// Asks stripes which run they took part in last, as a start asks them all
    /// before it uses one.
    pub(super) fn meet<'a>(&mut self, mut places: impl Iterator<Item = StripePlace<'a>>) {
        let Some(state) = self.copy.as_ref().and_then(StateCopy::state) else {
            return;
        };
        let is_lost = |instance| matches!(state.lineage(instance), Ok(Lineage::Lost));
        self.is_behind |= places.any(|place| place.noted_instance().is_some_and(is_lost));
    }

    /// What a start would know of a stripe of `span`; `own` is what its own
    /// installation would, if it had missed nothing.
    pub(super) fn judge(&self, span: u128, own: RecoveryStart) -> RecoveryStart {
        let Some(state) = self.copy.as_ref().and_then(StateCopy::state) else {
            return own;
        };
        let is_known = |instance: &u128| {
            !self.is_behind && matches!(state.lineage(*instance), Ok(Lineage::Known))
        };
        RecoveryStart {
            identity: StripeIdentity {
                instance: state.instance,
                run: state.run,
                epoch: state.epoch,
                ..own.identity
            },
            known_instance: own.known_instance.filter(is_known),
            last_run: last_run(state, span, own.identity.uuid),
            ..own
        }
    }
}

/// The last run that a stripe has to know: one of a span that is offline, or
/// not yet back, is behind in any case.
fn last_run(state: &State, span: u128, stripe: u128) -> u64 {
    match state.presence(span) {
        Ok(Presence::Here) => state.last_run(stripe),
        Ok(Presence::Offline | Presence::Returning) | Err(_) => u64::MAX,
    }
}
