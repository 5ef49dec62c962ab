//! Reading from the devices.

use super::Cache;
use crate::cache::CacheKey;
use crate::cache::format::object::ObjectContent;
use crate::cache::object::{Hit, Miss, Stored};
use crate::cache::volume::{LiveStripe, Located, Written};
use crate::metrics::Metric;
use std::sync::Arc;

impl Cache {
    /// The first stripe's answer that is a copy in no doubt; else a suspect
    /// one; else the most telling reason.
    pub(super) async fn read_devices(&self, key: &CacheKey) -> Result<Hit, Miss> {
        let mut reason = Miss::Absent;
        if !self.options.spans.is_empty() && self.volume.is_empty() {
            return Err(Miss::NoSpan);
        }
        if let Some(hit) = self.deferred_hit(key) {
            return Ok(hit);
        }
        self.await_heads(key).await;
        let mut doubtful = None;
        let holders = self.volume.holders(key);
        for stripe in holders.iter() {
            if !stripe.knows(key.hash()) {
                reason = Miss::NotReady;
            } else if stripe.may_hold(key.hash()) {
                match self.read_stripe(stripe, key).await {
                    Ok(hit) if !hit.suspect => return Ok(hit),
                    // What was away may be old: another stripe's copy is not.
                    Ok(hit) => doubtful = doubtful.or(Some(hit)),
                    Err(Miss::Absent) => {}
                    Err(miss) => reason = miss,
                }
            }
        }
        // An update may have taken it from there meanwhile.
        let newer = self.deferred_hit(key);
        newer.or(doubtful).ok_or(reason)
    }

    /// The newest copy, while its head waits for its place.
    fn deferred_hit(&self, key: &CacheKey) -> Option<Hit> {
        let deferred = self.deferred.get(key.hash())?;
        let tier = deferred.target.tier();
        (deferred.stored.key == *key).then(|| Hit::of(deferred.stored, tier))
    }

    /// Frees the heads under `hash` whose fills began before `epoch`, wherever
    /// they are; the batches that will say so. For a rule of an earlier run:
    /// what was stored since it was made stays. Keeps no cache alive.
    pub(super) fn free_dead(
        &self,
        hash: u128,
        epoch: u64,
    ) -> impl Future<Output = Vec<Written>> + Send + use<> {
        free_dead(self.volume.stripes(), hash, epoch)
    }

    async fn read_stripe(&self, stripe: &Arc<LiveStripe>, key: &CacheKey) -> Result<Hit, Miss> {
        let accept = |located: Located| {
            let (suspect, position) = (located.place.suspect, located.place.position);
            let stored = Stored::from_fragment(located, key, stripe)?;
            Some((stored, suspect, position))
        };
        let (mut stored, suspect, position) = stripe.find(key.hash(), accept).await?;
        let subject = stored.subject();
        if self.rules.kills_held(&subject, suspect) {
            if let Some(home) = &stored.home {
                stripe.free_entry(key.hash(), home.entry);
            }
            return Err(Miss::Invalidated);
        }
        let has_gaps = stored.in_part && stored.has_gaps();
        if let Some(fragments) = stored.fragments.as_ref().filter(|_| !stored.in_part)
            && !self.await_body(fragments, stored.body_len).await?
        {
            self.counters.add(Metric::CacheReadInvalid, 1);
            return Err(Miss::Overtaken);
        }
        if let Some(fragments) = &mut stored.fragments {
            fragments.spare = self.volume.owner(stripe.other_tier(), key);
        }
        let stored = Arc::new(stored);
        if !suspect && let Some(chunks) = &stored.chunks {
            self.admit_read(&stored, chunks);
        }
        if !suspect {
            // A newer place would take what is in doubt for sure.
            self.renew_old(&stored, position);
        }
        Ok(self.hit(stored, stripe, (suspect, has_gaps)))
    }

    fn hit(
        &self,
        stored: Arc<Stored>,
        stripe: &LiveStripe,
        (suspect, has_gaps): (bool, bool),
    ) -> Hit {
        let long = stored.chunks.is_none() && !suspect && !has_gaps;
        let collects = long && self.ram_takes(stored.body_len) && self.keeps_in_ram(stripe);
        let mut hit = if collects {
            Hit::collecting(stored, stripe.tier(), self.me.clone())
        } else {
            Hit::of(stored, stripe.tier())
        };
        hit.suspect = suspect;
        hit
    }
}

/// See [`Cache::free_dead`].
async fn free_dead(stripes: Vec<Arc<LiveStripe>>, hash: u128, epoch: u64) -> Vec<Written> {
    let mut waits = Vec::new();
    for stripe in stripes {
        let accept = |located: Located| {
            let content = ObjectContent::decode(&located.fragment.meta).ok()?;
            (content.epoch < epoch).then_some(located.place.entry)
        };
        match stripe.find(hash, accept).await {
            Ok(entry) => waits.extend(stripe.free_entry(hash, entry)),
            // Who can't read it now may read it later.
            Err(Miss::ReadError) => waits.extend(stripe.free(hash)),
            Err(_) => {}
        }
        waits.extend(stripe.unflushed());
    }
    waits
}
