//! What was read is kept before the cursor comes to it: in its own stripe, and
//! on the capacity tier if only the fast one has it.

use super::Cache;
use super::keep::append;
use super::promote::Copying;
use crate::cache::CacheKey;
use crate::cache::format::batch::Row;
use crate::cache::format::fragment::FragmentKind;
use crate::cache::format::object::{ObjectContent, PinnedFragment};
use crate::cache::object::{Home, NotStored, ObjectKind, Stored};
use crate::cache::stripe::NewFragment;
use crate::cache::tier::{SpanTier, WriteCause};
use crate::cache::volume::{LiveStripe, Located};
use crate::metrics::Metric;
use std::sync::Arc;

/// How often a pinned fragment waits for the write backlog to go down.
const PATIENCE: u32 = 8;
/// Bytes in the log of what may be a marker, which is at most 4 KiB: with its
/// URL, and what else its head says. A larger one is kept as other heads are.
const MARKER_BYTES_MAX: u32 = 8 << 10;

impl Cache {
    /// Keeps what was read of the batches that the stripe's cursor comes to
    /// next. For who has the right to walk there.
    async fn evacuate_stripe(&self, stripe: &Arc<LiveStripe>) {
        while let Some(rows) = stripe.next_passing().await {
            for row in rows {
                self.keep_row(stripe, &row).await;
            }
            if self.mover.is_stopped() {
                return;
            }
        }
    }

    /// Walks all stripes, one after the other.
    #[cfg(test)]
    pub(super) async fn evacuate(&self) {
        for stripe in self.volume.stripes() {
            let _right = stripe.go_ahead().await;
            self.evacuate_stripe(&stripe).await;
        }
    }

    async fn keep_row(&self, stripe: &Arc<LiveStripe>, row: &Row) {
        stripe.known(row.key).await;
        if stripe.is_pinned(row.key, row.entry) && self.keep_pinned(stripe, row).await {
            return;
        }
        if !stripe.was_read(row.key, row.entry) {
            return;
        }
        let demotes = stripe.is_fast() && row.entry.is_head() && self.volume.has_both_tiers();
        let fits = stripe.may_evacuate(row.length.into());
        let may_be_marker = row.entry.is_head() && row.length <= MARKER_BYTES_MAX;
        if !demotes && !fits && !may_be_marker {
            return self.counters.add(Metric::CacheEvacuationsRefused, 1);
        }
        let Some(located) = stripe.fragment_of(row.key, row.entry).await else {
            return;
        };
        if !row.entry.is_head() {
            append_again(stripe, row, &located, false).ok();
        } else if let Some(stored) = of_head(stripe, &located) {
            self.keep_head(stripe, stored, (demotes, fits)).await;
        }
    }

    /// Copies a head that was read to the capacity tier if it `demotes`, and
    /// appends it again if that `fits` what may be evacuated. A marker always is:
    /// with it, all alternates of its URL would go.
    async fn keep_head(
        &self,
        stripe: &Arc<LiveStripe>,
        stored: Stored,
        (demotes, fits): (bool, bool),
    ) {
        if demotes {
            self.demote(&stored).await;
        }
        let is_marker = stored.kind == ObjectKind::Marker;
        if !fits && !is_marker {
            return self.counters.add(Metric::CacheEvacuationsRefused, 1);
        }
        let unpinned = Stored {
            pinned_until: None,
            ..stored
        };
        if self.volume.is_owner(stripe, &unpinned.key) {
            self.evacuate_head(stripe, &unpinned).ok();
        } else {
            self.bring_home(&unpinned, stripe).await;
        }
    }

    /// Appends a pinned fragment again while it is to be kept. False when it is
    /// not, any more, or can't be had.
    async fn keep_pinned(&self, stripe: &Arc<LiveStripe>, row: &Row) -> bool {
        let Some(located) = stripe.fragment_of(row.key, row.entry).await else {
            return false;
        };
        let now = self.clock.wall().as_secs();
        for _ in 0..PATIENCE {
            let kept = if row.entry.is_head() {
                let stored = of_head(stripe, &located).filter(|s| s.pinned_until > Some(now));
                let Some(stored) = stored else { return false };
                if !self.volume.is_owner(stripe, &stored.key) {
                    self.bring_home(&stored, stripe).await;
                    return true;
                }
                self.evacuate_head(stripe, &stored)
            } else if self.is_kept_fragment(stripe, row, &located).await {
                append_again(stripe, row, &located, true)
            } else {
                return false;
            };
            if kept != Err(NotStored::Backlog) {
                return true;
            }
            stripe.flush().await;
        }
        tracing::warn!(path = %stripe.path().display(), "a pinned fragment is lost: \
            too many bytes wait to be written");
        true
    }

    /// Whether the object of a pinned fragment is there, and pinned yet.
    async fn is_kept_fragment(
        &self,
        stripe: &Arc<LiveStripe>,
        row: &Row,
        located: &Located,
    ) -> bool {
        let now = self.clock.wall().as_secs();
        let pinned = PinnedFragment::decode(&located.fragment.meta);
        let Some(pinned) = pinned.filter(|p| p.until > now && p.key() == row.key) else {
            return false;
        };
        let same = |head: Located| {
            let content = ObjectContent::decode(&head.fragment.meta).ok()?;
            let same = content.object_id == pinned.object_id;
            (same && head.place.entry.is_pinned()).then_some(())
        };
        stripe.find(pinned.head, same).await.is_ok()
    }

    /// Copies an object to the capacity tier, unless that has it.
    async fn demote(&self, stored: &Stored) {
        let Some(target) = self.volume.owner(SpanTier::Capacity, &stored.key) else {
            return;
        };
        if self.volume.capacity_may_hold(&stored.key) {
            return;
        }
        let mut copying = Copying::new(stored, &target, WriteCause::Demotion);
        match self.copy(&mut copying).await {
            Ok(()) => self.counters.add(Metric::TierDemotions, 1),
            Err(no) => {
                copying.abandon();
                self.count_refusal(no);
            }
        }
    }

    /// Copies an object from a stripe that was its owner to the one that is it
    /// now, in the same tier.
    pub(super) async fn bring_home(&self, stored: &Stored, from: &LiveStripe) {
        let Some(owner) = self.volume.owner(from.span_tier(), &stored.key) else {
            return;
        };
        if owner.may_hold(stored.key.hash()) {
            return;
        }
        let mut copying = Copying::new(stored, &owner, WriteCause::Evacuation);
        if let Err(no) = self.copy(&mut copying).await {
            copying.abandon();
            self.count_refusal(no);
        }
    }

    /// Appends a head again in its own stripe.
    fn evacuate_head(&self, stripe: &Arc<LiveStripe>, stored: &Stored) -> Result<(), NotStored> {
        let hash = stored.key.hash();
        let home = stored.home.as_ref().ok_or(NotStored::Replaced)?;
        // Read before the check: what comes after it is newer than the copy.
        let epoch = self.rules.epoch();
        let _slot = self.slots.lock(hash);
        if self.rules.kills(&stored.subject()) {
            return Err(NotStored::Invalidated);
        }
        let again = stored.with_meta(stored.meta.clone(), epoch);
        let newer = append(&again, stripe, Some(home), WriteCause::Evacuation)?;
        self.move_home(hash, home, newer);
        Ok(())
    }

    /// Tells RAM where a head lies now. The key's slot is held.
    pub(super) fn move_home(&self, hash: u128, from: &Home, to: Home) {
        let held = self.ram.peek(hash);
        let lies_there = |stored: &&Arc<Stored>| {
            let home = stored.home.as_ref();
            home.is_some_and(|home| {
                home.entry.same_place(from.entry) && Arc::ptr_eq(&home.stripe, &from.stripe)
            })
        };
        if let Some(stored) = held.as_ref().filter(lies_there) {
            self.ram.insert(hash, Arc::new(stored.with_home(Some(to))));
        }
    }
}

/// Walks a stripe, unless somebody does.
pub(super) async fn evacuate(cache: Arc<Cache>, stripe: Arc<LiveStripe>) {
    if let Some(_right) = stripe.try_go_ahead() {
        cache.evacuate_stripe(&stripe).await;
    }
}

/// The object of a head, if the head says its key.
pub(super) fn of_head(stripe: &Arc<LiveStripe>, located: &Located) -> Option<Stored> {
    let content = ObjectContent::decode(&located.fragment.meta).ok()?;
    Stored::from_fragment(located.clone(), &CacheKey::of_text(content.key), stripe)
}

/// Appends a body fragment again. One that is gone, or has no room, is left to
/// the cursor.
fn append_again(
    stripe: &Arc<LiveStripe>,
    row: &Row,
    located: &Located,
    pinned: bool,
) -> Result<(), NotStored> {
    let new = NewFragment {
        key_hash: row.key,
        kind: FragmentKind::Body,
        meta: if pinned { &located.fragment.meta } else { &[] },
        body: std::slice::from_ref(&located.fragment.body),
        keep: &[],
        copy_of: Some(located.place.entry),
        pinned,
    };
    let appended = stripe.append(&new, WriteCause::Evacuation);
    appended.map(drop).inspect_err(|no| {
        tracing::debug!(%no, "a fragment is left to the cursor");
    })
}
