//! Changing what a key has: stores, refreshes, invalidations.

use super::Cache;
use super::deferred::Deferred;
use crate::base::planted::{Planted, is_planted};
use crate::cache::CacheKey;
use crate::cache::format::fragment::FragmentKind;
use crate::cache::invalidation::Subject;
use crate::cache::object::{CopyRef, Fragments, Home, NewObject, NotStored, ObjectKind, Stored};
use crate::cache::ram::Admission;
use crate::cache::stripe::NewFragment;
use crate::cache::tier::{SpanTier, WriteCause};
use crate::cache::volume::{LiveStripe, Written};
use crate::metrics::Metric;
use bytes::Bytes;
use std::sync::Arc;

/// Longest metadata and key text together, in bytes.
const HEAD_MAX: usize = 250 << 10;
/// The largest part of a log that one object may take, as a divisor.
const LOG_SHARE: u64 = 2;

/// What an invalidation took away.
#[derive(Debug)]
pub(super) struct Gone {
    /// The epoch of its rule.
    pub(super) epoch: u64,
    /// Whether something was there.
    pub(super) found: bool,
    /// Batches that will say so.
    pub(super) waits: Vec<Written>,
    /// False while a stripe does not know yet what it holds of the key.
    pub(super) known_everywhere: bool,
    /// Whether all stripes that may hold it are open: else nothing that is
    /// taken away there is written yet.
    pub(super) open_everywhere: bool,
}

impl Cache {
    /// Whether an object can be stored, as far as that is known beforehand.
    pub(super) fn check_new(&self, object: &NewObject) -> Result<(), NotStored> {
        if object.meta.len().saturating_add(object.key.text().len()) > HEAD_MAX {
            return Err(NotStored::MetaTooLong);
        }
        self.check_length(object.body_len.unwrap_or(0))?;
        let owner = self.owner(&object.key)?;
        if owner.is_some() && !self.is_known(&object.key) {
            return Err(NotStored::NotReady);
        }
        match owner.is_some_and(|stripe| stripe.is_stalled()) {
            true => Err(NotStored::Backlog),
            false => Ok(()),
        }
    }

    /// Whether the log that a whole object goes to is long enough for it, as far
    /// as that is known beforehand.
    pub(super) fn check_log(&self, object: &NewObject) -> Result<(), NotStored> {
        let body_len = object.body_len.unwrap_or(0);
        match self.owner(&object.key)? {
            Some(owner) if body_len > owner.log_bytes() / LOG_SHARE => Err(NotStored::TooLarge),
            Some(_) | None => Ok(()),
        }
    }

    /// Whether a body of this length can be stored at all.
    pub(in crate::cache) fn check_length(&self, body_len: u64) -> Result<(), NotStored> {
        let limit = self.live.load().max_doc_size;
        if limit != 0 && body_len > limit {
            return Err(NotStored::TooLarge);
        }
        if self.options.spans.is_empty() && !self.ram.takes_body(body_len) {
            return Err(NotStored::TooLarge);
        }
        Ok(())
    }

    /// Counts a store that failed before its end. What it was to replace is not
    /// what the origin says any more, and goes, unless the store itself is at
    /// fault. A marker stays: it leads to all the other alternates.
    pub(in crate::cache) fn refuse(&self, object: &NewObject, no: NotStored) {
        self.count_write(&object.key, Err(no));
        let replaces = matches!(
            no,
            NotStored::Backlog
                | NotStored::TooLarge
                | NotStored::MetaTooLong
                | NotStored::NotReady
                | NotStored::NoSpan
        );
        if replaces && object.kind == ObjectKind::Object {
            self.drop_copies(&object.key);
        }
    }

    /// Takes out the copy that `copy` names, of which a part is gone; what took
    /// its place meanwhile stays.
    pub fn remove_copy(&self, copy: &CopyRef, key: &CacheKey) {
        let (hash, stored) = (key.hash(), &copy.0);
        let _slot = self.slots.lock(hash);
        let deferred = self.deferred.get(hash);
        if deferred.is_some_and(|deferred| Arc::ptr_eq(&deferred.stored, stored)) {
            self.deferred.remove(hash);
        }
        let held = self.ram.peek(hash);
        let in_ram = held.is_some_and(|held| held.is_same_copy(stored));
        if in_ram {
            self.ram.remove(hash);
        }
        let home = stored.home.as_ref();
        let freed = home.and_then(|home| home.stripe.free_entry(hash, home.entry));
        self.counters.remove(in_ram || freed.is_some());
    }

    fn drop_copies(&self, key: &CacheKey) {
        let hash = key.hash();
        let _slot = self.slots.lock(hash);
        self.deferred.remove(hash);
        self.ram.remove(hash);
        let claimants = self.volume.claimants(key);
        claimants.iter().for_each(|stripe| drop(stripe.free(hash)));
    }

    /// Makes a complete object the newest one under its key.
    pub(in crate::cache) fn put(&self, stored: Stored) -> Result<(), NotStored> {
        let hash = stored.key.hash();
        let _slot = self.slots.lock(hash);
        let target = self.target_of(&stored)?;
        let subject = Subject {
            volume: target.as_ref().map(|target| target.volume),
            ..stored.subject()
        };
        if self.rules.kills_fill(&subject) {
            return Err(NotStored::Invalidated);
        }
        match target {
            Some(target) => self.place(stored, target, None),
            None => self.admit(hash, Arc::new(stored)),
        }
    }

    /// Where an object goes; not where its body is, if the placement has changed
    /// since or its span is out of use.
    fn target_of(&self, stored: &Stored) -> Result<Option<Arc<LiveStripe>>, NotStored> {
        match &stored.fragments {
            None => self.owner(&stored.key),
            Some(body) if self.volume.is_owner(&body.stripe, &stored.key) => {
                Ok(Some(Arc::clone(&body.stripe)))
            }
            Some(_) => Err(NotStored::NotReady),
        }
    }

    pub(super) fn refresh_copy(
        &self,
        copy: &CopyRef,
        key: &CacheKey,
        meta: Bytes,
    ) -> Result<(), NotStored> {
        let old = &copy.0;
        let hash = key.hash();
        if meta.len().saturating_add(key.text().len()) > HEAD_MAX {
            return Err(NotStored::MetaTooLong);
        }
        let epoch = self.rules.epoch();
        let _slot = self.slots.lock(hash);
        if self.rules.kills(&old.subject()) {
            return Err(NotStored::Replaced);
        }
        let there = |home: &&Home| home.stripe.holds(hash, home.entry);
        let Some(home) = old.home.as_ref().filter(there) else {
            return self.refresh_in_ram(old, meta, epoch);
        };
        let newer = old.with_meta(meta, epoch);
        if let Some((target, fragments)) = self.lower_home(old, home) {
            return self.place(Stored { fragments, ..newer }, target, None);
        }
        if self.volume.is_owner(&home.stripe, key) {
            return self.place(newer, Arc::clone(&home.stripe), Some(home));
        }
        self.refresh_elsewhere(newer, old, home)
    }

    /// Gives the newer head of an object a place whose older one has none, or none
    /// any more, while RAM holds that: it is the newest there is. What can't be
    /// placed from there leaves RAM, or it would be validated at each use for good.
    fn refresh_in_ram(&self, old: &Arc<Stored>, meta: Bytes, epoch: u64) -> Result<(), NotStored> {
        let hash = old.key.hash();
        let held = self.ram.peek(hash).filter(|held| held.is_same_copy(old));
        let held = held.ok_or(NotStored::Replaced)?;
        let newer = held.with_meta(meta, epoch);
        let target = match &held.fragments {
            None => self.owner(&held.key),
            Some(_) => Err(NotStored::Replaced),
        };
        match target {
            Ok(Some(owner)) => self.place(newer, owner, None),
            Ok(None) => self.admit(hash, Arc::new(newer)),
            Err(no) => {
                self.ram.remove(hash);
                Err(no)
            }
        }
    }

    /// Gives the newer head of an object that lies where it belongs no more its
    /// place, if the body can go along; else that has to be copied first.
    fn refresh_elsewhere(
        &self,
        newer: Stored,
        old: &Arc<Stored>,
        home: &Home,
    ) -> Result<(), NotStored> {
        let owner = self.volume.owner(home.stripe.span_tier(), &newer.key);
        let owner = owner.ok_or(NotStored::NotReady)?;
        if newer.fragments.is_none() && newer.chunks.is_some() {
            return self.place(newer, owner, None);
        }
        self.mover.offer(old);
        Err(NotStored::Replaced)
    }

    /// Where the newer head of an object of the fast tier goes: to the capacity
    /// tier like every fill, if the body is there or at hand. What is hot comes
    /// back by promotion, and losing the fast tier loses nothing else.
    fn lower_home(
        &self,
        old: &Stored,
        home: &Home,
    ) -> Option<(Arc<LiveStripe>, Option<Fragments>)> {
        let by_record = self.live.load().tier.fills == SpanTier::Fast;
        if by_record || !home.stripe.is_fast() {
            return None;
        }
        let owner = self.volume.owner(SpanTier::Capacity, &old.key)?;
        let fragments = old.fragments.as_ref().map(|body| body.on(&owner));
        let complete = fragments
            .as_ref()
            .is_none_or(|body| body.complete(old.body_len));
        (complete && owner.is_judged()).then_some((owner, fragments))
    }

    /// Takes a key out of every tier.
    pub(super) fn invalidate(&self, key: &CacheKey) -> Gone {
        let hash = key.hash();
        let _slot = self.slots.lock(hash);
        let epoch = self.rules.add(hash);
        self.deferred.remove(hash);
        let in_ram = self.ram.remove(hash).is_some();
        let known_everywhere = self.is_known(key);
        if !known_everywhere {
            self.rules.stand(hash, epoch);
        }
        let claimants = self.volume.claimants(key);
        let freed = claimants.iter().filter_map(|stripe| stripe.free(hash));
        let found = freed.count() > 0 || in_ram;
        // What was taken out a moment ago may not be written down yet either.
        let waits = claimants.iter().filter_map(LiveStripe::unflushed).collect();
        Gone {
            epoch,
            found,
            waits,
            known_everywhere,
            open_everywhere: claimants.iter().all(|stripe| stripe.was_opened()),
        }
    }

    /// Gives the heads a place that have waited for it long enough; those that
    /// find no room in the backlog wait on. Whether fewer wait now.
    pub(super) fn place_deferred(&self) -> bool {
        let ready = self.deferred.ready().into_iter();
        ready.filter(|hash| self.place_one(*hash)).count() > 0
    }

    fn place_one(&self, hash: u128) -> bool {
        let _slot = self.slots.lock(hash);
        // It may have been replaced by one that must wait longer.
        let Some(deferred) = self.deferred.get(hash).filter(Deferred::is_ready) else {
            return false;
        };
        let held = self.ram.peek(hash);
        let in_ram = held.is_some_and(|held| Arc::ptr_eq(&held, &deferred.stored));
        let stored = deferred.stored.with_home(None);
        match self.append_deferred(&stored, &deferred.target) {
            Ok(home) if in_ram => {
                self.ram
                    .insert(hash, Arc::new(stored.with_home(Some(home))));
            }
            Ok(_) => {}
            // What was said to be stored is not lost for want of a moment.
            Err(NotStored::Backlog) => return false,
            Err(no) => {
                tracing::debug!(%no, "a deferred head got no place");
                self.counters.add(Metric::CacheWriteLost, 1);
            }
        }
        self.deferred.remove(hash);
        true
    }

    fn append_deferred(
        &self,
        stored: &Stored,
        target: &Arc<LiveStripe>,
    ) -> Result<Home, NotStored> {
        if !self.volume.is_owner(target, &stored.key) {
            return Err(NotStored::NotReady);
        }
        let home = append(stored, target, None, WriteCause::Fill)?;
        self.judge_pin(stored, &home);
        Ok(home)
    }

    /// Counts a pin that the placed head did not get.
    pub(super) fn judge_pin(&self, stored: &Stored, home: &Home) {
        if stored.pinned_until.is_some() && !home.entry.is_pinned() {
            self.count_pin_refused();
        }
    }

    /// Gives a head its place in the log and in RAM, in place of every other
    /// copy. The key's slot is held.
    fn place(
        &self,
        stored: Stored,
        target: Arc<LiveStripe>,
        copy_of: Option<&Home>,
    ) -> Result<(), NotStored> {
        let hash = stored.key.hash();
        if stored.body_len > target.log_bytes() / LOG_SHARE && !stored.in_part {
            return Err(NotStored::TooLarge);
        }
        self.deferred.remove(hash);
        let claimants = self.volume.claimants(&stored.key);
        if !self.is_known(&stored.key) {
            // A span has come since: what it holds of the key could not be freed.
            self.ram.remove(hash);
            claimants.iter().for_each(|stripe| drop(stripe.free(hash)));
            return Err(NotStored::NotReady);
        }
        let mut others = claimants
            .iter()
            .filter(|other| !Arc::ptr_eq(other, &target));
        // What is gone there already comes back with a power cut until that is flushed.
        if others.any(|other| other.may_hold(hash) || other.unflushed_free(hash).is_some()) {
            if !is_planted(Planted::HeadUndeferred) {
                return self.defer(Arc::new(stored), target, &claimants);
            }
            claimants.iter().for_each(|other| drop(other.free(hash)));
        }
        let cause = copy_of.map_or(WriteCause::Fill, |_| WriteCause::Refresh);
        let home = append(&stored, &target, copy_of, cause).inspect_err(|_| {
            // What a new object was to replace is not what the origin says
            // any more; a copy that only was to get a newer head still is.
            if copy_of.is_none() {
                self.ram.remove(hash);
                target.free(hash);
            }
        })?;
        self.judge_pin(&stored, &home);
        self.admit_or_drop(Arc::new(stored.with_home(Some(home))), &target)
    }

    /// Takes away what all claimants have of the key, and lets the head wait until
    /// the others have written that down where no power cut takes it.
    fn defer(
        &self,
        stored: Arc<Stored>,
        target: Arc<LiveStripe>,
        claimants: &[Arc<LiveStripe>],
    ) -> Result<(), NotStored> {
        let hash = stored.key.hash();
        // Readers find the newer head here before they miss the older ones.
        let waits = self.deferred.insert(hash, Arc::clone(&stored), &target);
        claimants
            .iter()
            .for_each(|claimant| drop(claimant.free(hash)));
        let freed = claimants.iter().filter_map(|c| c.unflushed_free(hash));
        let mut freed: Vec<Written> = freed.collect();
        freed.retain(|wait| !Arc::ptr_eq(&wait.stripe, &target));
        freed.iter().for_each(Written::hurry);
        if !waits {
            self.ram.remove(hash);
            return Err(NotStored::Backlog);
        }
        self.deferred.wait_for(hash, freed);
        self.admit_or_drop(stored, &target)
    }

    /// RAM takes the object if it wants it; what it held before is gone.
    fn admit_or_drop(&self, stored: Arc<Stored>, target: &LiveStripe) -> Result<(), NotStored> {
        let hash = stored.key.hash();
        if stored.chunks.is_some() && self.keeps_in_ram(target) {
            self.ram.insert(hash, stored);
        } else {
            self.ram.remove(hash);
        }
        Ok(())
    }

    /// Stores in RAM alone.
    fn admit(&self, hash: u128, stored: Arc<Stored>) -> Result<(), NotStored> {
        match self.ram.insert(hash, stored) {
            Admission::Admitted => Ok(()),
            Admission::Cutoff | Admission::TooLarge => Err(NotStored::TooLarge),
            Admission::FirstSight => Err(NotStored::FirstSight),
        }
    }
}

/// Appends the head, with the body if that is not in fragments.
pub(super) fn append(
    stored: &Stored,
    target: &Arc<LiveStripe>,
    copy_of: Option<&Home>,
    cause: WriteCause,
) -> Result<Home, NotStored> {
    let content = stored.content().ok_or(NotStored::MetaTooLong)?;
    let body = match (&stored.fragments, &stored.chunks) {
        (None, Some(chunks)) => &**chunks,
        (None, None) => return Err(NotStored::Replaced),
        (Some(_), _) => &[],
    };
    let new = NewFragment {
        key_hash: stored.key.hash(),
        kind: FragmentKind::Head,
        meta: &content,
        body,
        keep: &[],
        copy_of: copy_of.map(|home| home.entry),
        pinned: stored.pinned_until.is_some(),
    };
    let appended = target.append(&new, cause)?;
    Ok(Home::new(Arc::clone(target), appended.place.entry))
}
