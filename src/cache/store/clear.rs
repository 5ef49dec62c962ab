//! Clearing: everything that is there is dead, at once.

use super::Cache;
use super::deferred::Deferred;
use crate::cache::invalidation::Subject;
use crate::cache::object::PurgeError;
use std::collections::BTreeSet;

impl Cache {
    /// Makes everything dead that is held now or is being fetched, in one
    /// volume or in all, spans that are away included; what comes later is
    /// kept. At once: what lies on the spans is found to be dead when it is
    /// read, after a restart too.
    ///
    /// # Errors
    /// `State` when that could not be made durable (it holds until the end of
    /// this run all the same), `Closed` after a shutdown.
    pub async fn clear(&self, volume: Option<u32>) -> Result<(), PurgeError> {
        let epoch = self.drop_all(volume);
        self.thread.begin_clear(volume, epoch).await
    }

    /// Makes everything dead until the end of this run; gives the epoch of the
    /// rule.
    pub(super) fn drop_all(&self, volume: Option<u32>) -> u64 {
        let epoch = self.rules.clear(volume);
        // Who asked the rules before this one has put it into RAM by then.
        self.slots.pass();
        let is_alive = |head: &Deferred| {
            let volume = Some(head.target.volume);
            let subject = head.stored.subject();
            !self.rules.kills(&Subject { volume, ..subject })
        };
        self.deferred.retain(is_alive);
        self.ram
            .retain(|stored| !self.rules.kills(&stored.subject()));
        epoch
    }

    /// The volumes that there are, and those that are configured.
    #[must_use]
    pub fn volumes(&self) -> BTreeSet<u32> {
        let stripes = self.volume.stripes();
        let made = stripes.iter().map(|stripe| stripe.volume);
        let named = self.options.spans.iter().map(|span| span.volume.into());
        let shared = self.options.volumes.iter();
        let shared = shared.map(|volume| volume.number.into());
        made.chain(named).chain(shared).collect()
    }
}
