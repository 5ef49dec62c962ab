//! What a walk over a stripe finds: every fragment, verified.

use super::live::{Core, LiveStripe};
use super::reading::is_lost;
use crate::cache::directory::Walked;
use crate::cache::format::fragment::{Fragment, FragmentError, claimed_key};
use crate::cache::format::span_header::StripeSlot;
use crate::cache::inspect::SpanState;
use crate::cache::plan::Holding;
use crate::device::DeviceError;
use std::sync::Arc;

/// What lies at an entry's place.
#[derive(Debug)]
pub(in crate::cache) enum Surveyed {
    /// Its fragment, whole.
    Whole {
        /// The hash of its key.
        key: u128,
        /// What lies there.
        fragment: Fragment,
        /// Used after revalidation only.
        suspect: bool,
    },
    /// Something else: the entry is freed.
    Damaged,
    /// The device did not give it; if it never will, the entry is freed.
    Unread,
    /// The entry has gone meanwhile.
    Gone,
}

impl LiveStripe {
    /// Its row of the span's header.
    pub(in crate::cache) fn slot(&self) -> StripeSlot {
        StripeSlot {
            uuid: self.uuid,
            offset: self.offset,
            length: self.length,
            volume: self.volume,
        }
    }

    /// How much it holds by the pages that have been read; reads the directory.
    pub(in crate::cache) fn holding(&self) -> Holding {
        // Asked first: what is read meanwhile is counted, and not told of.
        let is_partial = !self.is_loaded();
        let census = self.core.get().map(|core| core.directory.census());
        Holding {
            objects: census.map_or(0, |census| census.heads),
            bytes: census.map_or(0, |census| census.bytes),
            is_partial,
            is_suspect: self.state() == SpanState::Suspect,
        }
    }

    /// Buckets of the directory; 0 before it has been read.
    pub(in crate::cache) fn bucket_count(&self) -> u64 {
        let core = self.core.get();
        core.map_or(0, |core| core.directory.bucket_count())
    }

    /// The valid entries of a bucket.
    pub(in crate::cache) fn walk(&self, bucket: u64) -> Vec<Walked> {
        let core = self.core.get();
        core.map_or(Vec::new(), |core| core.directory.walk(bucket))
    }

    /// Reads and verifies what lies at an entry's place; what is damaged is
    /// counted and freed.
    pub(in crate::cache) async fn survey(self: &Arc<Self>, walked: &Walked) -> Surveyed {
        let Some(core) = self.core.get() else {
            return Surveyed::Gone;
        };
        let place = walked.place;
        let read = self.read(core, &place).await;
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) => return self.pass_unread(core, walked, &error),
        };
        let key = claimed_key(&bytes).unwrap_or(0);
        match core.directory.verify(&place, key, &bytes) {
            Ok(fragment) => Surveyed::Whole {
                key,
                fragment,
                suspect: place.suspect,
            },
            Err(error) => self.drop_walked(core, walked, &error),
        }
    }

    fn drop_walked(
        self: &Arc<Self>,
        core: &Core,
        walked: &Walked,
        error: &FragmentError,
    ) -> Surveyed {
        let why = match error {
            FragmentError::Damaged(why) | FragmentError::Overtaken(why) => why,
            FragmentError::OtherKey => return Surveyed::Gone,
        };
        if !self.free_walked(core, walked) {
            return Surveyed::Gone;
        }
        self.charge(&walked.place, why);
        Surveyed::Damaged
    }

    fn pass_unread(
        self: &Arc<Self>,
        core: &Core,
        walked: &Walked,
        error: &DeviceError,
    ) -> Surveyed {
        if !self.is_online() {
            return Surveyed::Unread;
        }
        if is_lost(error) && !self.free_walked(core, walked) {
            return Surveyed::Gone;
        }
        self.note_read_error(walked.place.offset, error);
        Surveyed::Unread
    }

    /// Frees the entry; whether it was there.
    fn free_walked(self: &Arc<Self>, core: &Core, walked: &Walked) -> bool {
        let (now, entry) = (self.now(), walked.place.entry);
        let freed = core.stripe.lock().free_at(now, walked.home, entry);
        self.drive();
        freed.entries > 0
    }
}
