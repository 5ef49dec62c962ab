//! Objects that are held in part: which fragments are there, and more of them.

use super::answer::{Miss, NotStored};
use super::stored::{Fragments, Stored};
use crate::cache::format::fragment::FragmentKind;
use crate::cache::format::object::{PinnedFragment, body_key};
use crate::cache::stripe::NewFragment;
use crate::cache::tier::WriteCause;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// The fragments of one version of an object that may have gaps.
#[derive(Clone, Debug)]
pub struct Parts {
    pub(in crate::cache) stored: Arc<Stored>,
    fragments: Fragments,
}

impl Parts {
    /// `None` for an object that was stored whole.
    pub(in crate::cache) fn of(stored: &Arc<Stored>) -> Option<Self> {
        let fragments = stored.fragments.clone()?;
        stored.in_part.then(|| Self {
            stored: Arc::clone(stored),
            fragments,
        })
    }

    /// Names this version, and no other.
    #[must_use]
    pub const fn id(&self) -> u128 {
        self.fragments.object_id
    }

    /// Bytes of the whole body.
    #[must_use]
    pub fn body_len(&self) -> u64 {
        self.stored.body_len
    }

    /// Bytes of each fragment but the last; at least 1.
    #[must_use]
    pub fn fragment_bytes(&self) -> u64 {
        u64::from(self.fragments.bytes).max(1)
    }

    /// How many fragments the whole body has.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.fragments.count(self.stored.body_len)
    }

    /// The bytes of the body that fragments `indices` hold.
    #[must_use]
    pub fn bytes_of(&self, indices: &Range<u64>) -> Range<u64> {
        let at = |index: u64| index.saturating_mul(self.fragment_bytes());
        at(indices.start)..at(indices.end).min(self.stored.body_len)
    }

    /// Whether no fragment is missing; a long body is taken to lack one, unseen.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        !self.stored.has_gaps()
    }

    /// Whether the directory knows of fragment `index`.
    #[must_use]
    pub fn has(&self, index: u64) -> bool {
        let key = body_key(self.fragments.object_id, index);
        let spare = self.fragments.spare.as_ref();
        self.fragments.stripe.may_hold(key) || spare.is_some_and(|spare| spare.may_hold(key))
    }

    /// Fragment `index`, read and verified.
    ///
    /// # Errors
    /// Why it can't be had: then it is missing.
    pub async fn read(&self, index: u64) -> Result<Bytes, Miss> {
        let bytes = self.fragments.read(index).await?;
        if self.is_length_of(index, &bytes) {
            Ok(bytes)
        } else {
            Err(Miss::ReadError)
        }
    }

    /// Stores fragment `index`.
    ///
    /// # Errors
    /// `WrongLength`, `Replaced` when the object is gone, `Backlog` and what
    /// else the stripe says.
    pub fn store(&self, index: u64, bytes: &Bytes) -> Result<(), NotStored> {
        if !self.is_length_of(index, bytes) {
            return Err(NotStored::WrongLength);
        }
        let head = self.stored.key.hash();
        if !self.fragments.stripe.may_hold(head) {
            return Err(NotStored::Replaced);
        }
        let object_id = self.fragments.object_id;
        let pinned = self.stored.pinned_until.map(|until| PinnedFragment {
            until,
            index,
            head,
            object_id,
        });
        let meta = pinned.as_ref().map(PinnedFragment::encode);
        let new = NewFragment {
            key_hash: body_key(object_id, index),
            kind: FragmentKind::Body,
            meta: meta.as_ref().map_or(&[], |meta| meta),
            body: std::slice::from_ref(bytes),
            keep: &[],
            copy_of: None,
            pinned: meta.is_some(),
        };
        let appended = self.fragments.stripe.append(&new, WriteCause::Fill)?;
        if new.pinned && !appended.place.entry.is_pinned() {
            self.fragments.stripe.count_pin_refused();
        }
        Ok(())
    }

    /// Waits until what waits to be written is on the device.
    pub async fn make_room(&self) {
        self.fragments.stripe.flush().await;
    }

    fn is_length_of(&self, index: u64, bytes: &Bytes) -> bool {
        let range = self.bytes_of(&(index..index.saturating_add(1)));
        u64::try_from(bytes.len()) == Ok(range.end.saturating_sub(range.start)) && !bytes.is_empty()
    }
}
