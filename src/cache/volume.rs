//! The stripes in use, by volume and tier, and which of them a key may lie on.

mod drive;
mod flush;
mod holds;
mod live;
mod pages;
mod part;
mod passing;
mod reading;
mod room;
mod settle;
mod sharing;
mod span;
mod start;
mod strangers;
mod survey;
mod tally;
mod watch;
mod wear;

pub(super) use live::{LiveStripe, Located, Written};
pub(super) use part::Blocks;
pub(super) use sharing::Share;
pub(super) use span::LiveSpan;
pub(super) use start::StripeSeed;
pub(super) use survey::Surveyed;
pub(super) use wear::log_bytes_of;

use super::CacheKey;
use super::hosting::{Hosting, Volumes};
use super::placement::{Placement, RANKS};
use super::tier::SpanTier;
use crate::base::planted::{Planted, is_planted};
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
}

/// Both tiers.
#[derive(Debug)]
struct Tiers {
    fast: TierStripes,
    capacity: TierStripes,
}

impl Tiers {
    /// Those of `spans` that keys are placed on and that are of one of these
    /// volumes, or of any.
    fn of_volumes(spans: &[Arc<LiveSpan>], volumes: Option<&Volumes>) -> Self {
        let placed = spans.iter().filter(|span| span.is_placed());
        let mut all: Vec<Arc<LiveStripe>> = placed.flat_map(|span| span.stripes()).collect();
        all.retain(|stripe| volumes.is_none_or(|volumes| volumes.contains(&stripe.volume)));
        let of = |tier: SpanTier| {
            let own = all.iter().filter(|stripe| stripe.span_tier() == tier);
            TierStripes::of(own.cloned().collect())
        };
        Self {
            fast: of(SpanTier::Fast),
            capacity: of(SpanTier::Capacity),
        }
    }

    fn is_empty(&self) -> bool {
        self.fast.stripes.is_empty() && self.capacity.stripes.is_empty()
    }

    fn stripes(&self) -> impl Iterator<Item = &Arc<LiveStripe>> {
        self.fast.stripes.iter().chain(&self.capacity.stripes)
    }

    /// The owner of a place in each tier.
    fn owners(&self, place: u64) -> [Option<&Arc<LiveStripe>>; 2] {
        [self.fast.owner(place), self.capacity.owner(place)]
    }

    const fn of(&self, tier: SpanTier) -> &TierStripes {
        match tier {
            SpanTier::Fast => &self.fast,
            SpanTier::Capacity => &self.capacity,
        }
    }
}

/// Who goes where.
#[derive(Debug)]
struct Layout {
    /// The stripes of all volumes.
    all: Tiers,
    /// Those of each set of volumes that hosts have a rule for.
    sets: Vec<Tiers>,
    hosting: Arc<Hosting>,
}

impl Layout {
    fn of(spans: &[Arc<LiveSpan>], hosting: &Arc<Hosting>) -> Self {
        let sets = hosting.sets().iter();
        Self {
            all: Tiers::of_volumes(spans, None),
            sets: sets
                .map(|set| Tiers::of_volumes(spans, Some(set)))
                .collect(),
            hosting: Arc::clone(hosting),
        }
    }

    /// The stripes that a key's host may use: all, if none of its volumes has
    /// any.
    fn tiers(&self, key: &CacheKey) -> &Tiers {
        let set = self.hosting.find(key).and_then(|set| self.sets.get(set));
        set.filter(|tiers| !tiers.is_empty()).unwrap_or(&self.all)
    }

    /// See [`Volume::claimants`].
    fn claimants(&self, key: &CacheKey) -> impl Iterator<Item = &Arc<LiveStripe>> {
        let owners = self.tiers(key).owners(key.place());
        let owns = move |stripe: &Arc<LiveStripe>| {
            let mut owners = owners.iter().flatten();
            owners.any(|owner| Arc::ptr_eq(owner, stripe))
        };
        let strays = |stripe: &Arc<LiveStripe>| {
            !stripe.is_settled() && !is_planted(Planted::FormerUnclaimed)
        };
        let all = self.all.stripes();
        all.filter(move |stripe| owns(stripe) || strays(stripe))
    }
}

/// The stripes of every volume that are online, and their placement.
#[derive(Debug)]
pub(super) struct Volume {
    layout: ArcSwap<Layout>,
}

impl Volume {
    /// The stripes of `spans` that are online, for hosts by their rules.
    pub(super) fn over(spans: &[Arc<LiveSpan>], hosting: &Arc<Hosting>) -> Self {
        Self {
            layout: ArcSwap::from_pointee(Layout::of(spans, hosting)),
        }
    }

    /// Places keys anew after a span has come or gone, or rules are others.
    pub(super) fn replace(&self, spans: &[Arc<LiveSpan>], hosting: &Arc<Hosting>) {
        self.layout.store(Arc::new(Layout::of(spans, hosting)));
    }

    /// Whether no stripe is in use.
    pub(super) fn is_empty(&self) -> bool {
        self.layout.load().all.is_empty()
    }

    /// The stripe of a tier that a key belongs on, if that is in use. While its
    /// span has gone offline and that is not remembered yet, nobody takes its
    /// place: after a crash it might come back as if nothing had been stored
    /// elsewhere.
    pub(super) fn owner(&self, tier: SpanTier, key: &CacheKey) -> Option<Arc<LiveStripe>> {
        let layout = self.layout.load();
        let owner = layout.tiers(key).of(tier).owner(key.place());
        owner.filter(|stripe| stripe.is_online()).cloned()
    }

    /// Whether a key belongs on this very stripe.
    pub(super) fn is_owner(&self, stripe: &Arc<LiveStripe>, key: &CacheKey) -> bool {
        let owner = self.owner(stripe.span_tier(), key);
        owner.is_some_and(|owner| Arc::ptr_eq(&owner, stripe))
    }

    /// Whether stripes of either tier are in use.
    pub(super) fn has_both_tiers(&self) -> bool {
        let all = &self.layout.load().all;
        !all.fast.stripes.is_empty() && !all.capacity.stripes.is_empty()
    }

    /// The stripes that are asked for a key, in this order.
    pub(super) fn holders(&self, key: &CacheKey) -> Holders {
        let layout = self.layout.load();
        let (tiers, place) = (layout.tiers(key), key.place());
        let asked = tiers.fast.holders(place);
        let asked = asked.chain(tiers.capacity.holders(place));
        let mut holders = Holders::default();
        for (slot, stripe) in holders.0.iter_mut().zip(asked) {
            *slot = Some(Arc::clone(stripe));
        }
        holders
    }

    /// Every stripe that a copy under the key may lie on, asked for or not: a
    /// change of the key frees it there. Of a stripe that holds what belongs
    /// elsewhere, nobody knows the rank that it had for it.
    pub(super) fn claimants(&self, key: &CacheKey) -> Vec<Arc<LiveStripe>> {
        self.layout.load().claimants(key).cloned().collect()
    }

    /// Whether each of the claimants knows what it holds of the key; allocates
    /// nothing.
    pub(super) fn knows(&self, key: &CacheKey) -> bool {
        let layout = self.layout.load();
        let mut claimants = layout.claimants(key);
        claimants.all(|stripe| stripe.knows(key.hash()))
    }

    /// Whether a stripe of the capacity tier may hold a key.
    pub(super) fn capacity_may_hold(&self, key: &CacheKey) -> bool {
        let layout = self.layout.load();
        let mut asked = layout.tiers(key).capacity.holders(key.place());
        asked.any(|stripe| stripe.may_hold(key.hash()))
    }

    /// Every stripe in use.
    pub(super) fn stripes(&self) -> Vec<Arc<LiveStripe>> {
        self.layout.load().all.stripes().cloned().collect()
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

#[cfg(test)]
mod tests;
