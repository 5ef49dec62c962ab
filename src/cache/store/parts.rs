//! Objects that are held in part: how they begin, and how they stay.

use super::Cache;
use crate::base::prng::system_u128;
use crate::cache::object::{Fragments, Hit, NewObject, NotStored, Parts, Stored};
use std::sync::Arc;

/// A head older than one of so many parts of the log is appended again when it
/// is read.
const HEAD_AGE_SHARE: u64 = 2;

impl Cache {
    /// Whether objects can be held in part: there are spans.
    #[must_use]
    pub fn holds_parts(&self) -> bool {
        !self.options.spans.is_empty()
    }

    /// Stores the head of an object of which no fragment is there yet, in place
    /// of what is stored under its key: [`Hit::parts`] takes the fragments. It
    /// is kept up to `pinned_until`, Unix time in seconds, where there is room
    /// for pins. It is stored at once; who awaits what is returned gets the hit.
    ///
    /// # Errors
    /// Why it is not stored; `WrongLength` where its length is not known.
    /// Awaited: `Replaced` where another object took its place meanwhile.
    pub fn begin_parts(
        &self,
        object: NewObject,
        pinned_until: Option<u64>,
    ) -> Result<impl Future<Output = Result<Hit, NotStored>>, NotStored> {
        let key = object.key.clone();
        let begun = self.begin(object.clone(), pinned_until);
        let id = begun.inspect_err(|no| self.refuse(&object, *no))?;
        self.count_write(&key, Ok(()));
        Ok(async move {
            let hit = self.read_again(&key).await;
            let same = hit.ok().filter(|hit| is_version(hit, id));
            same.ok_or(NotStored::Replaced)
        })
    }

    fn begin(&self, object: NewObject, pinned_until: Option<u64>) -> Result<u128, NotStored> {
        self.check_new(&object)?;
        let owner = self.owner(&object.key)?.ok_or(NotStored::NoSpan)?;
        let body_len = object.body_len.ok_or(NotStored::WrongLength)?;
        let object_id = system_u128();
        self.put(Stored {
            key: object.key,
            kind: object.kind,
            meta: object.meta,
            epoch: object.epoch,
            body_len,
            in_part: true,
            pinned_until,
            chunks: None,
            fragments: Some(Fragments {
                stripe: owner,
                spare: None,
                object_id,
                bytes: self.fragment_bytes(),
            }),
            home: None,
        })?;
        Ok(object_id)
    }

    /// Appends the head of an object again, if it is that version's yet and not
    /// in doubt: more of its fragments have come.
    pub async fn renew(&self, parts: &Parts) {
        let key = &parts.stored.key;
        let hit = self.read_again(key).await;
        let is_sure = |hit: &Hit| !hit.suspect && is_version(hit, parts.id());
        if let Some(hit) = hit.ok().filter(is_sure) {
            self.renew_copy(&hit.copy.0);
        }
    }

    /// Appends a head again whose place at `position` the cursor has left far
    /// behind.
    pub(super) fn renew_old(&self, stored: &Arc<Stored>, position: u64) {
        let Some(home) = &stored.home else { return };
        let far = home.stripe.log_bytes() / HEAD_AGE_SHARE;
        let gone = home.stripe.cursor().saturating_sub(position);
        if stored.in_part && gone > far {
            self.renew_copy(stored);
        }
    }

    fn renew_copy(&self, stored: &Arc<Stored>) {
        let copy = crate::cache::CopyRef(Arc::clone(stored));
        let renewed = self.refresh_copy(&copy, &stored.key, stored.meta.clone());
        if let Err(no) = renewed {
            tracing::debug!(%no, "the head of an object in part stays where it is");
        }
    }
}

fn is_version(hit: &Hit, id: u128) -> bool {
    hit.parts().is_some_and(|parts| parts.id() == id)
}
