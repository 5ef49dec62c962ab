//! From an open span to stripes in use. Before any of them is, all are asked
//! which run they took part in last: one that tells of a run which the state
//! beside them does not know tells it of the others too.

use super::Cache;
use super::State;
use super::open::{Shared, seed};
use crate::base::planted::{Planted, is_planted};
use crate::cache::format::span_header::StripeSlot;
use crate::cache::invalidation::{Lineage, Presence, StateError};
use crate::cache::options::SpanOptions;
use crate::cache::span::Span;
use crate::cache::volume::{LiveSpan, LiveStripe, StripeSeed};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A stripe that is yet to be begun.
struct Unbegun {
    stripe: Arc<LiveStripe>,
    seed: StripeSeed,
    is_new: bool,
}

/// A span whose stripes are yet to be begun: none, if it is kept offline.
pub(super) struct Made {
    live: Arc<LiveSpan>,
    stripes: Vec<Unbegun>,
}

/// Makes stripes of an open span. What they hold is suspect if they missed a run,
/// or the span comes back within one.
pub(super) fn make(shared: &Shared<'_>, span: &Span, options: &SpanOptions, is_back: bool) -> Made {
    let now = shared.clock.mono();
    let live = LiveSpan::new(span, options, &shared.live, now);
    let past = shared.state.writes(live.uuid).unwrap_or_default();
    let live = Arc::new(live.with_past(past, shared.clock.wall()));
    let presence = presence(shared.state, &live);
    let is_back = (is_back || presence != Presence::Here) && !is_planted(Planted::ReturnTrusted);
    match presence {
        Presence::Here => {}
        Presence::Offline => {
            live.go_offline();
            live.retire();
        }
        Presence::Returning => live.note_returning(),
    }
    let last_run = |slot: &StripeSlot| match is_back {
        true => u64::MAX,
        false => shared.state.last_run(slot.uuid),
    };
    let slots = span.content.stripes.iter();
    let stripes = slots.map(|slot| Unbegun {
        stripe: LiveStripe::new(&live, slot, shared.clock, shared.counters),
        seed: seed(shared, span, slot, last_run(slot)),
        is_new: span.new_stripes.contains(&slot.uuid),
    });
    let mut stripes: Vec<Unbegun> = stripes.collect();
    live.set_stripes(stripes.iter().map(|s| Arc::clone(&s.stripe)).collect());
    stripes.retain(|_| live.is_online());
    Made { live, stripes }
}

/// Whether a span is to be used: not if that can't be read any more, for it may
/// have missed something.
fn presence(state: &State, live: &LiveSpan) -> Presence {
    state.presence(live.uuid).unwrap_or_else(|error| {
        tracing::error!(%error, path = %live.options.path.display(),
            "whether the span was offline is not known any more: it is now; \
             `traffic_ctl storage online` takes it back");
        Presence::Offline
    })
}

impl Made {
    /// Asks the stripes which run they took part in; gives the runs that the
    /// state has lost. Blocks while a header or two are read.
    pub(super) fn meet(&mut self, state: &State) -> BTreeSet<u128> {
        let old = self.stripes.iter_mut().filter(|stripe| !stripe.is_new);
        let lost = old.filter_map(|unbegun| {
            let instance = unbegun.stripe.noted_instance(&unbegun.seed)?;
            match state.lineage(instance).unwrap_or(Lineage::Strange) {
                Lineage::Known => unbegun.seed.known_instance = Some(instance),
                Lineage::Strange => {}
                Lineage::Lost => return Some(instance),
            }
            None
        });
        lost.collect()
    }

    /// Has all that it holds be dead.
    pub(super) fn distrust(&mut self) {
        let stripes = self.stripes.iter_mut();
        stripes.for_each(|unbegun| unbegun.seed.known_instance = None);
    }

    /// Puts the stripes in use; those with content are read behind our back.
    pub(super) fn begin(self) -> Arc<LiveSpan> {
        for unbegun in self.stripes {
            unbegun.stripe.begin(unbegun.seed, unbegun.is_new);
        }
        self.live
    }
}

/// Writes down that these runs were met, of which the state knows nothing.
///
/// # Errors
/// When that can't be made durable.
pub(super) fn lose_runs(
    state: &State,
    lost: &BTreeSet<u128>,
    epoch: u64,
) -> Result<(), StateError> {
    if !lost.is_empty() {
        tracing::warn!(
            runs = lost.len(),
            "a span took part in runs that the state folder \
             (proxy.config.local_state_dir) does not know: it was put back from an \
             older copy, and what was purged since is not known any more: nothing \
             that any span held is used"
        );
    }
    lost.iter().try_for_each(|run| state.lose_run(*run, epoch))
}

impl Cache {
    /// Asks a span that comes while the cache runs. What it tells of lost runs
    /// makes dead what the others hold.
    pub(super) fn meet(&self, made: &mut Made) {
        let lost = made.meet(&self.state);
        if lost.is_empty() {
            return;
        }
        let epoch = self.drop_all(None);
        if let Err(error) = lose_runs(&self.state, &lost, epoch) {
            tracing::error!(%error, "what is dead may come back after a restart");
        }
    }
}
