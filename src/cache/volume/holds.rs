//! What a stripe's directory says it holds, without a look at the device.

use super::live::{Core, LiveStripe, Written};
use crate::cache::directory::Place;
use crate::cache::format::dir_entry::DirEntry;
use std::sync::Arc;

impl LiveStripe {
    /// Whether the directory has an entry that may be the key's, or it is not
    /// known what it has.
    pub(in crate::cache) fn may_hold(&self, key: u128) -> bool {
        self.has(key).unwrap_or(true)
    }

    /// Whether the directory has an entry that may be the key's; `None` when it is
    /// not known what it has.
    pub(in crate::cache) fn has(&self, key: u128) -> Option<bool> {
        let core = self.core.get().filter(|core| core.directory.knows(key))?;
        Some(!core.directory.lookup(key).is_empty())
    }

    /// As [`Self::may_hold`], of entries that are in no doubt.
    pub(in crate::cache) fn may_hold_sure(&self, key: u128) -> bool {
        let found = |core: &Core| core.directory.lookup(key).any(|place| !place.suspect);
        !self.knows(key) || self.core.get().is_some_and(found)
    }

    /// The batch that says that something of the key is gone, if it is not
    /// flushed yet.
    pub(in crate::cache) fn unflushed_free(self: &Arc<Self>, key: u128) -> Option<Written> {
        let core = self.core.get()?;
        let sequence = core.stripe.lock().unflushed_free(key)?;
        Some(Written {
            stripe: Arc::clone(self),
            sequence,
        })
    }

    /// Whether this very entry is there and its fragment is on the device, which
    /// is in use.
    pub(in crate::cache) fn holds_written(&self, key: u128, entry: DirEntry) -> bool {
        self.written_place(key, entry).is_some()
    }

    /// As [`Self::holds_written`], where no power cut takes it any more.
    pub(in crate::cache) fn holds_flushed(&self, key: u128, entry: DirEntry) -> bool {
        let place = self.written_place(key, entry);
        place.is_some_and(|place| self.is_flushed(place.position))
    }

    fn written_place(&self, key: u128, entry: DirEntry) -> Option<Place> {
        let core = self.core.get().filter(|_| self.is_online())?;
        let mut places = core.directory.lookup(key);
        let place = places.find(|place| place.entry.same_place(entry))?;
        (!core.directory.is_buffered(&place)).then_some(place)
    }

    /// Notes that what the key has was used without a read of the device. True
    /// if all of it was seen to be noted before, or there is nothing: one that
    /// moves just now may lose its note, and gets it the next time.
    pub(in crate::cache) fn note_used(&self, key: u128) -> bool {
        let Some(core) = self.core.get().filter(|core| core.directory.knows(key)) else {
            return false;
        };
        core.directory.lookup(key).fold(true, |is_noted, place| {
            core.directory.mark_read(key, &place);
            is_noted && place.entry.is_referenced()
        })
    }

    /// Whether anything that may be the key's was used since it was written.
    pub(in crate::cache) fn was_used(&self, key: u128) -> bool {
        let core = self.core.get();
        core.is_some_and(|core| {
            let mut places = core.directory.lookup(key);
            places.any(|place| place.entry.is_referenced())
        })
    }

    /// Whether this very entry is still there. Of a span that is not in use,
    /// nobody knows: what replaces it elsewhere frees nothing here.
    pub(in crate::cache) fn holds(&self, key: u128, entry: DirEntry) -> bool {
        let core = self.core.get().filter(|_| self.is_online());
        core.is_some_and(|core| core.directory.holds(key, entry))
    }
}
