//! The stripes in use, by tier, and which of them a key may lie on.
//!
//! There is one volume so far: every span's stripes belong to it.

mod drive;
mod holds;
mod live;
mod passing;
mod room;
mod settle;
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

use super::CacheKey;
use super::placement::{Placement, RANKS};
use super::tier::SpanTier;
use arc_swap::ArcSwap;
use std::sync::Arc;

/// Stripes that are asked for a key: so many ranks in each of two tiers.
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

    fn owner(&self, place: u64) -> Option<&Arc<LiveStripe>> {
        self.ranks(place).next()
    }

    /// The owner, and those of the next ranks that may hold what was theirs
    /// before the placement changed.
    fn holders(&self, place: u64) -> impl Iterator<Item = &Arc<LiveStripe>> {
        let ranks = self.ranks(place).enumerate();
        let asked = ranks.filter(|(rank, stripe)| *rank == 0 || !stripe.is_settled());
        asked.map(|(_, stripe)| stripe)
    }

    /// The owner, and every stripe that may hold what belongs elsewhere:
    /// changes may have gone by since whose ranks nobody knows.
    fn claimants(&self, place: u64) -> impl Iterator<Item = &Arc<LiveStripe>> {
        let owner = self.owner(place);
        let owns =
            move |stripe: &Arc<LiveStripe>| owner.is_some_and(|owner| Arc::ptr_eq(owner, stripe));
        let stripes = self.stripes.iter();
        stripes.filter(move |stripe| owns(stripe) || !stripe.is_settled())
    }
}

/// Both tiers.
#[derive(Debug)]
struct Tiers {
    fast: TierStripes,
    capacity: TierStripes,
}

impl Tiers {
    const fn of(&self, tier: SpanTier) -> &TierStripes {
        match tier {
            SpanTier::Fast => &self.fast,
            SpanTier::Capacity => &self.capacity,
        }
    }
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

    /// The stripe of a tier that a key belongs on, if that is in use. While its
    /// span has gone offline and that is not remembered yet, nobody takes its
    /// place: after a crash it might come back as if nothing had been stored
    /// elsewhere.
    pub(super) fn owner(&self, tier: SpanTier, key: &CacheKey) -> Option<Arc<LiveStripe>> {
        let tiers = self.tiers.load();
        let owner = tiers.of(tier).owner(key.place());
        owner.filter(|stripe| stripe.is_online()).cloned()
    }

    /// Whether a key belongs on this very stripe.
    pub(super) fn is_owner(&self, stripe: &Arc<LiveStripe>, key: &CacheKey) -> bool {
        let owner = self.owner(stripe.span_tier(), key);
        owner.is_some_and(|owner| Arc::ptr_eq(&owner, stripe))
    }

    /// Whether stripes of either tier are in use.
    pub(super) fn has_both_tiers(&self) -> bool {
        let tiers = self.tiers.load();
        !tiers.fast.stripes.is_empty() && !tiers.capacity.stripes.is_empty()
    }

    /// The stripes that are asked for a key, in this order.
    pub(super) fn holders(&self, key: &CacheKey) -> Holders {
        let tiers = self.tiers.load();
        let place = key.place();
        let asked = tiers.fast.holders(place);
        let asked = asked.chain(tiers.capacity.holders(place));
        let mut holders = Holders::default();
        for (slot, stripe) in holders.0.iter_mut().zip(asked) {
            *slot = Some(Arc::clone(stripe));
        }
        holders
    }

    /// Every stripe that a copy under the key may lie on, asked for or not: a
    /// change of the key frees it there.
    pub(super) fn claimants(&self, key: &CacheKey) -> Vec<Arc<LiveStripe>> {
        let tiers = self.tiers.load();
        let place = key.place();
        let fast = tiers.fast.claimants(place);
        fast.chain(tiers.capacity.claimants(place))
            .cloned()
            .collect()
    }

    /// Whether a stripe of the capacity tier may hold a key.
    pub(super) fn capacity_may_hold(&self, key: &CacheKey) -> bool {
        let tiers = self.tiers.load();
        let mut asked = tiers.capacity.holders(key.place());
        asked.any(|stripe| stripe.may_hold(key.hash()))
    }

    /// Every stripe in use.
    pub(super) fn stripes(&self) -> Vec<Arc<LiveStripe>> {
        let tiers = self.tiers.load();
        let all = tiers.fast.stripes.iter().chain(&tiers.capacity.stripes);
        all.cloned().collect()
    }
}

/// The stripes that are asked for a key.
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
