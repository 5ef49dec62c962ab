//! The stripes in use, by tier, and which of them a key may lie on.
//!
//! There is one volume so far: every span's stripes belong to it.

mod drive;
mod live;
mod passing;
mod span;
mod start;
mod survey;
mod tally;
mod watch;
mod wear;

pub(super) use live::{LiveStripe, Located, Written};
pub(super) use span::LiveSpan;
pub(super) use start::StripeSeed;
pub(super) use survey::Surveyed;
pub(super) use wear::log_bytes_of;

use super::placement::{Placement, RANKS};
use super::tier::SpanTier;
use arc_swap::ArcSwap;
use std::sync::Arc;

/// Stripes that may hold a key: so many ranks in each of two tiers.
pub(super) const HOLDERS: usize = 2 * RANKS;

/// The stripes of one tier that are in use, and their placement.
#[derive(Debug)]
struct TierStripes {
    stripes: Vec<Arc<LiveStripe>>,
    placement: Placement,
}

impl TierStripes {
    fn of(stripes: Vec<Arc<LiveStripe>>) -> Self {
        let candidates: Vec<_> = stripes.iter().map(|stripe| stripe.candidate()).collect();
        Self {
            placement: Placement::over(&candidates),
            stripes,
        }
    }

    fn ranks(&self, place: u64) -> impl Iterator<Item = &Arc<LiveStripe>> {
        let ranks = self.placement.ranks(place);
        ranks.filter_map(|rank| self.stripes.get(rank))
    }
}

/// Both tiers.
#[derive(Debug)]
struct Tiers {
    fast: TierStripes,
    capacity: TierStripes,
}

/// Every span that is in use, and the placement over those that are online.
#[derive(Debug)]
pub(super) struct Volume {
    tiers: ArcSwap<Tiers>,
}

impl Volume {
    /// The volume over the stripes of `spans` that are online.
    pub(super) fn over(spans: &[Arc<LiveSpan>]) -> Self {
        Self {
            tiers: ArcSwap::from_pointee(tiers(spans)),
        }
    }

    /// Places keys anew after a span has come or gone.
    pub(super) fn replace(&self, spans: &[Arc<LiveSpan>]) {
        self.tiers.store(Arc::new(tiers(spans)));
    }

    /// Whether no stripe is in use.
    pub(super) fn is_empty(&self) -> bool {
        let tiers = self.tiers.load();
        tiers.fast.stripes.is_empty() && tiers.capacity.stripes.is_empty()
    }

    /// The stripe of a tier that a key belongs on, if any is online.
    pub(super) fn owner(&self, tier: SpanTier, place: u64) -> Option<Arc<LiveStripe>> {
        let tiers = self.tiers.load();
        let stripes = match tier {
            SpanTier::Fast => &tiers.fast,
            SpanTier::Capacity => &tiers.capacity,
        };
        let mut online = stripes.ranks(place).filter(|stripe| stripe.is_online());
        online.next().cloned()
    }

    /// Whether stripes of either tier are in use.
    pub(super) fn has_both_tiers(&self) -> bool {
        let tiers = self.tiers.load();
        !tiers.fast.stripes.is_empty() && !tiers.capacity.stripes.is_empty()
    }

    /// The stripes that may hold a key, in the order to ask them.
    pub(super) fn holders(&self, place: u64) -> Holders {
        let tiers = self.tiers.load();
        let ranks = tiers.fast.ranks(place).chain(tiers.capacity.ranks(place));
        let mut holders = Holders::default();
        for (slot, stripe) in holders.0.iter_mut().zip(ranks) {
            *slot = Some(Arc::clone(stripe));
        }
        holders
    }

    /// Whether a stripe of the capacity tier may hold a key.
    pub(super) fn capacity_may_hold(&self, place: u64, hash: u128) -> bool {
        let tiers = self.tiers.load();
        let mut ranks = tiers.capacity.ranks(place);
        ranks.any(|stripe| stripe.may_hold(hash))
    }

    /// Every stripe in use.
    pub(super) fn stripes(&self) -> Vec<Arc<LiveStripe>> {
        let tiers = self.tiers.load();
        let all = tiers.fast.stripes.iter().chain(&tiers.capacity.stripes);
        all.cloned().collect()
    }
}

/// The stripes that may hold a key.
#[derive(Debug, Default)]
pub(super) struct Holders([Option<Arc<LiveStripe>>; HOLDERS]);

impl Holders {
    /// Each of them, fast tier first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<LiveStripe>> {
        self.0.iter().flatten()
    }
}

fn tiers(spans: &[Arc<LiveSpan>]) -> Tiers {
    let of = |tier: SpanTier| {
        let spans = spans
            .iter()
            .filter(|span| span.is_online() && span.tier == tier);
        TierStripes::of(spans.flat_map(|span| span.stripes()).collect())
    };
    Tiers {
        fast: of(SpanTier::Fast),
        capacity: of(SpanTier::Capacity),
    }
}
