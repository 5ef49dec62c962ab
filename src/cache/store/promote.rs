//! Copies of objects on another tier.
//!
//! A copy gets its place in the same hold of the key's slot in which the one
//! that it was made from is seen to be there still, and only when that one's
//! batch is flushed: a copy never outlives, over a crash or a power cut, what
//! it is a copy of.

use super::Cache;
use super::keep::append;
use crate::base::planted::{Planted, is_planted};
use crate::cache::format::fragment::FragmentKind;
use crate::cache::format::object::{PinnedFragment, body_key};
use crate::cache::object::{Fragments, Hit, Miss, NotStored, Stored};
use crate::cache::stripe::NewFragment;
use crate::cache::tier::{Sketch, SpanTier, Tier, WriteCause};
use crate::cache::volume::{LiveStripe, log_bytes_of};
use crate::metrics::Metric;
use bytes::Bytes;
use std::sync::Arc;

/// The largest part of a log that a copied object may take, as a divisor.
const LOG_SHARE: u64 = 8;
/// How often a copy waits for the write backlog to go down.
const PATIENCE: u32 = 4;

/// Why an object was not copied to another tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotMoved {
    #[error("it is there already, or belongs nowhere on that tier")]
    Needless,
    #[error("the write budget is used up")]
    Budget,
    #[error("too many bytes wait to be written")]
    Busy,
    #[error("the copy at hand is gone or damaged")]
    Gone,
    #[error("a power cut may yet take the copy at hand")]
    Unsafe,
}

impl NotMoved {
    const fn metric(self) -> Option<Metric> {
        match self {
            Self::Needless => None,
            Self::Budget => Some(Metric::TierRefusedBudget),
            Self::Busy | Self::Unsafe => Some(Metric::TierRefusedBusy),
            Self::Gone => Some(Metric::TierRefusedGone),
        }
    }
}

impl From<NotStored> for NotMoved {
    fn from(no: NotStored) -> Self {
        match no {
            NotStored::Backlog => Self::Busy,
            NotStored::Replaced | NotStored::Invalidated => Self::Gone,
            NotStored::TooLarge
            | NotStored::FirstSight
            | NotStored::MetaTooLong
            | NotStored::WrongLength
            | NotStored::NotReady
            | NotStored::NoSpan
            | NotStored::Aborted => Self::Needless,
        }
    }
}

/// A copy under way.
pub(super) struct Copying<'a> {
    stored: &'a Stored,
    target: &'a Arc<LiveStripe>,
    cause: WriteCause,
    /// Body fragments that have been copied.
    fragments: u64,
    /// Bytes that have been appended.
    bytes: u64,
}

impl Cache {
    /// Counts a read of a device; what came by often enough is copied to the
    /// fast tier, later.
    pub(super) fn note_read(&self, hit: &Hit) {
        let stored = &hit.copy.0;
        let (Some(home), false) = (&stored.home, hit.suspect) else {
            return;
        };
        if hit.tier == Tier::Ram || !self.volume.has_both_tiers() {
            return;
        }
        let hash = stored.key.hash();
        let count = self.mover.count(hash, || self.fast_objects());
        let after = self.live.load().tier.promote_after;
        let often = u32::from(count) >= after.min(Sketch::MAX.into());
        // Of one that is not held in part, no fragment was missing just now.
        let has_gaps = || stored.in_part && stored.has_gaps();
        let movable = often && hit.tier == Tier::Capacity && !has_gaps();
        if movable && home.stripe.holds_written(hash, home.entry) && !self.mover.offer(stored) {
            self.counters.add(Metric::TierRefusedBusy, 1);
        }
    }

    /// Objects of average size that the fast tier has room for.
    fn fast_objects(&self) -> u64 {
        let stripes = self.volume.stripes();
        let fast = stripes.iter().filter(|stripe| stripe.is_fast());
        let bytes: u64 = fast.map(|stripe| stripe.log_bytes()).sum();
        bytes / u64::from(self.options.min_average_object_size).max(512)
    }

    /// Copies an object that was offered to where it belongs: to the fast tier,
    /// or within its own.
    pub(super) async fn carry(&self, stored: &Stored) {
        match &stored.home {
            Some(home) if !self.volume.is_owner(&home.stripe, &stored.key) => {
                self.bring_home(stored, &home.stripe).await;
            }
            _ => self.promote(stored).await,
        }
    }

    /// Copies an object of the capacity tier to the fast one, if that may be.
    async fn promote(&self, stored: &Stored) {
        match self.try_promote(stored).await {
            Ok(()) => self.counters.add(Metric::TierPromotions, 1),
            Err(no) => self.count_refusal(no),
        }
    }

    pub(super) fn count_refusal(&self, no: NotMoved) {
        tracing::debug!(%no, "not copied to the other tier");
        let metric = no.metric();
        metric.into_iter().for_each(|m| self.counters.add(m, 1));
    }

    async fn try_promote(&self, stored: &Stored) -> Result<(), NotMoved> {
        let owner = self.volume.owner(SpanTier::Fast, &stored.key);
        let target = owner.ok_or(NotMoved::Needless)?;
        let fits = stored.body_len <= target.log_bytes() / LOG_SHARE;
        if !fits || target.may_hold_sure(stored.key.hash()) {
            return Err(NotMoved::Needless);
        }
        let bytes = log_bytes(stored);
        if !target.take_budget(bytes) {
            return Err(NotMoved::Budget);
        }
        let mut copying = Copying::new(stored, &target, WriteCause::Promotion);
        let copied = self.copy(&mut copying).await;
        if copied.is_err() {
            copying.abandon();
        }
        target.return_budget(bytes.saturating_sub(copying.bytes));
        copied
    }

    /// The body's fragments one by one, then the head.
    pub(super) async fn copy(&self, copying: &mut Copying<'_>) -> Result<(), NotMoved> {
        if let Some(from) = &copying.stored.fragments {
            for index in 0..from.count(copying.stored.body_len) {
                if self.mover.is_stopped() {
                    return Err(NotMoved::Needless);
                }
                copying.copy_fragment(from, index).await?;
            }
        }
        for _ in 0..PATIENCE {
            match self.place_copy(copying) {
                Err(NotMoved::Busy) => copying.target.flush().await,
                Err(NotMoved::Unsafe) => copying.source_flushed().await,
                placed => return placed,
            }
        }
        Err(NotMoved::Busy)
    }

    /// Gives the copied head its place.
    fn place_copy(&self, copying: &mut Copying<'_>) -> Result<(), NotMoved> {
        let (stored, target) = (copying.stored, copying.target);
        let hash = stored.key.hash();
        let home = stored.home.as_ref().ok_or(NotMoved::Gone)?;
        // Read before the check: what comes after it is newer than the copy.
        let epoch = self.rules.epoch();
        let _slot = self.slots.lock(hash);
        if !self.volume.is_owner(target, &stored.key) {
            return Err(NotMoved::Needless);
        }
        let unchecked = is_planted(Planted::CopyUnchecked);
        let there = unchecked || home.stripe.holds_written(hash, home.entry);
        if !there || self.rules.kills(&stored.subject()) {
            return Err(NotMoved::Gone);
        }
        let unchecked = unchecked || is_planted(Planted::CopyBeforeFlush);
        if !unchecked && !home.stripe.holds_flushed(hash, home.entry) {
            return Err(NotMoved::Unsafe);
        }
        let mut copy = stored.with_meta(stored.meta.clone(), epoch);
        copy.pinned_until = copying.pinned_until();
        copy.fragments = stored.fragments.as_ref().map(|from| from.on(target));
        let placed = append(&copy, target, None, copying.cause)?;
        self.judge_pin(&copy, &placed);
        if copying.cause == WriteCause::Evacuation {
            self.move_home(hash, home, placed);
        }
        copying.bytes += head_bytes(stored);
        Ok(())
    }
}

impl<'a> Copying<'a> {
    /// A copy of `stored` on `target`, of which nothing is there yet.
    pub(super) const fn new(
        stored: &'a Stored,
        target: &'a Arc<LiveStripe>,
        cause: WriteCause,
    ) -> Self {
        Self {
            stored,
            target,
            cause,
            fragments: 0,
            bytes: 0,
        }
    }

    /// Has what it is a copy of flushed.
    async fn source_flushed(&self) {
        if let Some(home) = &self.stored.home {
            home.stripe.flush_written().await;
        }
    }

    async fn copy_fragment(&mut self, from: &Fragments, index: u64) -> Result<(), NotMoved> {
        let key = body_key(from.object_id, index);
        let read = from.stripe.body_fragment(key, from.bytes).await;
        let body = read.map_err(|_: Miss| NotMoved::Gone)?;
        self.append(key, &body, self.pin_of(index)).await?;
        self.bytes += log_bytes_of(0, body.len());
        self.fragments += 1;
        Ok(())
    }

    /// Between tiers, pinned stays the one that it is a copy of; what goes to
    /// the stripe that owns it now goes with its pin.
    fn pinned_until(&self) -> Option<u64> {
        let moves = self.cause == WriteCause::Evacuation;
        self.stored.pinned_until.filter(|_| moves)
    }

    /// The meta of a body fragment that is to be pinned.
    fn pin_of(&self, index: u64) -> Option<[u8; 48]> {
        let pinned = PinnedFragment {
            until: self.pinned_until()?,
            index,
            head: self.stored.key.hash(),
            object_id: self.stored.fragments.as_ref()?.object_id,
        };
        Some(pinned.encode())
    }

    async fn append(
        &self,
        key_hash: u128,
        body: &Bytes,
        pin: Option<[u8; 48]>,
    ) -> Result<(), NotMoved> {
        let new = NewFragment {
            key_hash,
            kind: FragmentKind::Body,
            meta: pin.as_ref().map_or(&[], |meta| meta),
            body: std::slice::from_ref(body),
            keep: &[],
            copy_of: None,
            pinned: pin.is_some(),
        };
        for _ in 0..PATIENCE {
            match self.target.append(&new, self.cause) {
                Err(NotStored::Backlog) => self.target.flush().await,
                appended => return appended.map(drop).map_err(NotMoved::from),
            }
        }
        Err(NotMoved::Busy)
    }

    /// Frees the fragments of a copy that got no head.
    pub(super) fn abandon(&self) {
        if let Some(from) = &self.stored.fragments {
            for index in 0..self.fragments {
                self.target.free(body_key(from.object_id, index));
            }
        }
    }
}

/// Bytes that a copy of an object takes in a log.
fn log_bytes(stored: &Stored) -> u64 {
    let Some(fragments) = &stored.fragments else {
        return head_bytes(stored);
    };
    let size = usize::try_from(fragments.bytes).unwrap_or(usize::MAX);
    let bodies = fragments.count(stored.body_len) * log_bytes_of(0, size);
    head_bytes(stored).saturating_add(bodies)
}

/// Bytes that its head takes, with the body that is not in fragments.
fn head_bytes(stored: &Stored) -> u64 {
    let meta = stored.content().map_or(0, |content| content.len());
    let inline = stored.fragments.is_none();
    let chunks = stored.chunks.iter().flatten().filter(|_| inline);
    log_bytes_of(meta, chunks.map(Bytes::len).sum())
}
