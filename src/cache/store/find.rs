//! Reading from the devices.

use super::Cache;
use crate::cache::CacheKey;
use crate::cache::object::{Hit, Miss, Stored};
use crate::cache::volume::{LiveStripe, Located};
use std::sync::Arc;

impl Cache {
    /// The first stripe's answer that is a copy; else the most telling reason.
    pub(super) async fn read_devices(&self, key: &CacheKey) -> Result<Hit, Miss> {
        let mut reason = Miss::Absent;
        if !self.options.spans.is_empty() && self.volume.is_empty() {
            return Err(Miss::NoSpan);
        }
        let holders = self.volume.holders(key.place());
        for stripe in holders.iter() {
            if !stripe.is_loaded() {
                reason = Miss::NotReady;
            } else if stripe.may_hold(key.hash()) {
                match self.read_stripe(stripe, key).await {
                    Ok(hit) => return Ok(hit),
                    Err(Miss::Absent) => {}
                    Err(miss) => reason = miss,
                }
            }
        }
        Err(reason)
    }

    async fn read_stripe(&self, stripe: &Arc<LiveStripe>, key: &CacheKey) -> Result<Hit, Miss> {
        let accept = |located: Located| {
            let suspect = located.place.suspect;
            let stored = Stored::from_fragment(located, key, stripe)?;
            Some((stored, suspect))
        };
        let (stored, suspect) = stripe.find(key.hash(), accept).await?;
        if self.rules.kills(key.hash(), stored.epoch) {
            return Err(Miss::Invalidated);
        }
        if let Some(fragments) = &stored.fragments
            && !fragments.complete(stored.body_len)
        {
            return Err(Miss::Overtaken);
        }
        let stored = Arc::new(stored);
        if !suspect && let Some(chunks) = &stored.chunks {
            self.admit_read(&stored, chunks);
        }
        Ok(self.hit(stored, stripe, suspect))
    }

    fn hit(&self, stored: Arc<Stored>, stripe: &LiveStripe, suspect: bool) -> Hit {
        let collects = stored.chunks.is_none() && !suspect && self.ram_takes(stored.body_len);
        let mut hit = if collects {
            Hit::collecting(stored, stripe.tier(), self.me.clone())
        } else {
            Hit::of(stored, stripe.tier())
        };
        hit.suspect = suspect;
        hit
    }
}
