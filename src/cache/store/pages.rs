//! What is not known yet after a start: whose pages are yet to be read.

use super::Cache;
use crate::cache::CacheKey;
use crate::cache::object::{Fragments, Miss};
use crate::cache::volume::LiveStripe;
use crate::metrics::Metric;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

impl Cache {
    /// Waits until every stripe is judged: in use, or given up. What an object's
    /// page says may be read only when the object is asked for.
    pub async fn judged(&self) {
        for stripe in self.volume.stripes() {
            stripe.judged().await;
        }
    }

    /// Waits until all that the spans hold is known.
    pub async fn loaded(&self) {
        for stripe in self.volume.stripes() {
            stripe.loaded().await;
        }
    }

    /// As [`Self::loaded`], for `limit` at most.
    pub async fn loaded_within(&self, limit: Duration) {
        // Who asks finds out by itself what is still missing.
        tokio::time::timeout(limit, self.loaded()).await.ok();
    }

    /// Whether every stripe that may hold a key knows what it holds of it; those
    /// that don't are asked to find out.
    pub(super) fn is_known(&self, key: &CacheKey) -> bool {
        let claimants = self.volume.claimants(key);
        are_known(&claimants, key.hash())
    }

    /// As [`Self::is_known`], of every stripe in use.
    pub(super) fn is_known_everywhere(&self, hash: u128) -> bool {
        are_known(&self.volume.stripes(), hash)
    }

    /// Waits for what the key's stripes hold of it, as long as a request may.
    pub(super) async fn await_heads(&self, key: &CacheKey) {
        if self.volume.knows(key) {
            return;
        }
        let claimants = self.volume.claimants(key);
        if are_known(&claimants, key.hash()) {
            return;
        }
        self.in_time(async {
            for stripe in &claimants {
                stripe.known(key.hash()).await;
            }
        })
        .await;
    }

    /// Whether the directory knows of all of a body's fragments; waits for what is
    /// not known of them, as long as a request may.
    ///
    /// # Errors
    /// `NotReady` when it is not known by then.
    pub(super) async fn await_body(
        &self,
        fragments: &Fragments,
        body_len: u64,
    ) -> Result<bool, Miss> {
        if let Some(all_there) = fragments.judged(body_len) {
            return Ok(all_there);
        }
        let known = self.in_time(fragments.known(body_len)).await;
        known.ok_or(Miss::NotReady)?;
        Ok(fragments.complete(body_len))
    }

    /// What comes of `wait`, if it comes in time.
    async fn in_time<T>(&self, wait: impl Future<Output = T>) -> Option<T> {
        self.counters.add(Metric::CacheReadWaited, 1);
        let limit = self.live.load().load_wait;
        let ended = tokio::time::timeout(limit, wait).await.ok();
        if ended.is_none() {
            self.counters.add(Metric::CacheReadNotLoaded, 1);
        }
        ended
    }
}

/// Whether these stripes know what they hold of a key; those that don't are
/// asked to find out.
fn are_known(stripes: &[Arc<LiveStripe>], hash: u128) -> bool {
    let unknown = stripes.iter().filter(|stripe| !stripe.knows(hash));
    unknown.inspect(|stripe| stripe.ask_for(hash)).count() == 0
}
