//! An object in memory: what the RAM cache holds and every hit points at.

use super::answer::{Miss, ObjectKind};
use crate::cache::CacheKey;
use crate::cache::format::dir_entry::DirEntry;
use crate::cache::format::object::{HeadKind, ObjectContent, body_key};
use crate::cache::invalidation::Subject;
use crate::cache::ram::RamValue;
use crate::cache::volume::{Blocks, LiveStripe, Located, Share};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that an object costs beside its text, head and body: its own fields,
/// the reference counts, and the headers of its allocations.
const OBJECT_BYTES: u64 = 320;
/// Bytes that a piece of the body costs beside its content.
const CHUNK_BYTES: u64 = 96;

/// Fragments of a body in part that are looked for in the directory.
const LOOKED_FOR_MAX: u64 = 4096;

/// One version of an object, never changed.
#[derive(Debug)]
pub(in crate::cache) struct Stored {
    pub(in crate::cache) key: CacheKey,
    pub(in crate::cache) kind: ObjectKind,
    pub(in crate::cache) meta: Bytes,
    /// The epoch at which its fill began.
    pub(in crate::cache) epoch: u64,
    pub(in crate::cache) body_len: u64,
    /// Whether the head says that fragments of the body may be missing.
    pub(in crate::cache) in_part: bool,
    /// Unix time in seconds up to which it is kept, if it is pinned.
    pub(in crate::cache) pinned_until: Option<u64>,
    /// The whole body in order, when it is in memory.
    pub(in crate::cache) chunks: Option<Box<[Bytes]>>,
    /// Where the body lies on a stripe, when it is too long for the head's
    /// fragment.
    pub(in crate::cache) fragments: Option<Fragments>,
    /// Where its head lies on a device, if it does.
    pub(in crate::cache) home: Option<Home>,
}

/// A body in fragments.
#[derive(Clone, Debug)]
pub(in crate::cache) struct Fragments {
    pub(in crate::cache) stripe: Arc<LiveStripe>,
    /// A stripe of the other tier that may hold the same fragments.
    pub(in crate::cache) spare: Option<Arc<LiveStripe>>,
    pub(in crate::cache) object_id: u128,
    /// Bytes of each but the last.
    pub(in crate::cache) bytes: u32,
}

/// The directory entry of a head.
#[derive(Debug)]
pub(in crate::cache) struct Home {
    pub(in crate::cache) stripe: Arc<LiveStripe>,
    pub(in crate::cache) entry: DirEntry,
    /// It was seen to be noted there that the object was used, which holds as
    /// long as it lies there.
    noted: AtomicBool,
}

impl Home {
    pub(in crate::cache) const fn new(stripe: Arc<LiveStripe>, entry: DirEntry) -> Self {
        Self {
            stripe,
            entry,
            noted: AtomicBool::new(false),
        }
    }

    /// Whether a use of the object need not be noted there.
    #[cfg(test)]
    pub(in crate::cache) fn is_noted(&self) -> bool {
        self.noted.load(Ordering::Relaxed)
    }
}

impl Clone for Home {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.stripe), self.entry)
    }
}

impl Stored {
    /// Notes at its places on the devices that it was used from RAM, so that it
    /// is kept when the cursor comes. What was seen to be noted is looked up no
    /// more: a directory is two cache lines away, and a hot object is used often.
    pub(in crate::cache) fn note_used(&self) {
        let Some(home) = &self.home else { return };
        if home.noted.load(Ordering::Relaxed) {
            return;
        }
        let mut is_noted = home.stripe.note_used(self.key.hash());
        if let Some(fragments) = &self.fragments {
            for key in fragments.keys(self.body_len) {
                is_noted &= fragments.stripe.note_used(key);
            }
        }
        home.noted.store(is_noted, Ordering::Relaxed);
    }

    /// Whether both are this one copy, wherever it lies.
    pub(in crate::cache) fn is_same_copy(self: &Arc<Self>, other: &Arc<Self>) -> bool {
        let same_home = |one: &Home, other: &Home| {
            Arc::ptr_eq(&one.stripe, &other.stripe) && one.entry.same_place(other.entry)
        };
        let homes = self.home.as_ref().zip(other.home.as_ref());
        Arc::ptr_eq(self, other) || homes.is_some_and(|(one, other)| same_home(one, other))
    }

    /// The same body under a newer head, which lies nowhere yet.
    pub(in crate::cache) fn with_meta(&self, meta: Bytes, epoch: u64) -> Self {
        Self {
            key: self.key.clone(),
            kind: self.kind,
            meta,
            epoch,
            body_len: self.body_len,
            in_part: self.in_part,
            pinned_until: self.pinned_until,
            chunks: self.chunks.clone(),
            fragments: self.fragments.clone(),
            home: None,
        }
    }

    /// Whether a fragment of the body is missing. A long body that was stored in
    /// part is taken to have gaps, unseen.
    pub(in crate::cache) fn has_gaps(&self) -> bool {
        self.fragments.as_ref().is_some_and(|fragments| {
            let long = fragments.count(self.body_len) > LOOKED_FOR_MAX;
            self.in_part && long || !fragments.complete(self.body_len)
        })
    }

    /// What rules judge it by.
    pub(in crate::cache) fn subject(&self) -> Subject {
        let head = self.home.as_ref().map(|home| &home.stripe);
        let body = self.fragments.as_ref().map(|body| &body.stripe);
        Subject {
            key: self.key.hash(),
            epoch: self.epoch,
            volume: head.or(body).map(|stripe| stripe.volume),
        }
    }

    /// Whether any of it lies on the span.
    pub(in crate::cache) fn is_on(&self, span: u128) -> bool {
        let head = self.home.as_ref().map(|home| &home.stripe);
        let body = self.fragments.as_ref().map(|body| &body.stripe);
        let stripes = head.into_iter().chain(body);
        stripes.map(|at| at.span_uuid()).any(|uuid| uuid == span)
    }

    /// The same object at another place.
    pub(in crate::cache) fn with_home(&self, home: Option<Home>) -> Self {
        Self {
            home,
            ..self.with_meta(self.meta.clone(), self.epoch)
        }
    }

    /// The same object with `chunks` for its body, in memory of their own: a
    /// small object does not keep a large read buffer alive.
    pub(in crate::cache) fn compact(&self, chunks: &[Bytes]) -> Self {
        let own = |bytes: &Bytes| Bytes::copy_from_slice(bytes);
        Self {
            key: self.key.clone(),
            kind: self.kind,
            meta: own(&self.meta),
            epoch: self.epoch,
            body_len: self.body_len,
            in_part: self.in_part,
            pinned_until: self.pinned_until,
            chunks: Some(chunks.iter().map(own).collect()),
            fragments: self.fragments.clone(),
            home: self.home.clone(),
        }
    }

    /// What the head's fragment says of it. `None` when it is too long.
    pub(in crate::cache) fn content(&self) -> Option<Vec<u8>> {
        let fragments = self.fragments.as_ref();
        let content = ObjectContent {
            kind: match self.kind {
                ObjectKind::Object => HeadKind::Object,
                ObjectKind::Marker => HeadKind::Marker,
            },
            fragment_bytes: fragments.map_or(0, |fragments| fragments.bytes),
            object_id: fragments.map_or(0, |fragments| fragments.object_id),
            body_length: self.body_len,
            epoch: self.epoch,
            key: self.key.text().clone(),
            meta: self.meta.clone(),
            in_part: self.in_part,
            pinned_until: self.pinned_until,
        };
        content.encode()
    }

    /// What a head fragment read from `stripe` holds, if it is the key's.
    pub(in crate::cache) fn from_fragment(
        located: Located,
        key: &CacheKey,
        stripe: &Arc<LiveStripe>,
    ) -> Option<Self> {
        let content = ObjectContent::decode(&located.fragment.meta).ok()?;
        if content.key != *key.text() {
            return None;
        }
        let inline = content.fragment_bytes == 0;
        let body = located.fragment.body;
        if inline && u64::try_from(body.len()) != Ok(content.body_length) {
            return None;
        }
        Some(Self {
            key: key.clone(),
            kind: match content.kind {
                HeadKind::Object => ObjectKind::Object,
                HeadKind::Marker => ObjectKind::Marker,
            },
            meta: content.meta,
            epoch: content.epoch,
            body_len: content.body_length,
            in_part: content.in_part,
            pinned_until: content
                .pinned_until
                .filter(|_| located.place.entry.is_pinned()),
            chunks: inline.then(|| Box::from([body])),
            fragments: (!inline).then(|| Fragments {
                stripe: Arc::clone(stripe),
                spare: None,
                object_id: content.object_id,
                bytes: content.fragment_bytes,
            }),
            home: Some(Home::new(Arc::clone(stripe), located.place.entry)),
        })
    }
}

impl Fragments {
    /// The same body's fragments on another stripe.
    pub(in crate::cache) fn on(&self, stripe: &Arc<LiveStripe>) -> Self {
        Self {
            stripe: Arc::clone(stripe),
            spare: None,
            ..*self
        }
    }

    /// Fragment `index`, from whichever stripe has it.
    ///
    /// # Errors
    /// Why the first stripe has not, if none has.
    pub(in crate::cache) async fn read(&self, index: u64) -> Result<Bytes, Miss> {
        let key = body_key(self.object_id, index);
        let read = self.stripe.body_fragment(key, self.bytes).await;
        match (read, &self.spare) {
            (Err(miss), Some(spare)) => {
                let other = spare.body_fragment(key, self.bytes).await;
                other.map_err(|_| miss)
            }
            (read, _) => read,
        }
    }

    /// Fragment `index`, and a share in it: whoever wants it while a share is
    /// held gets the same bytes.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(in crate::cache) async fn shared(&self, index: u64) -> Result<(Bytes, Share), Miss> {
        let share = self.stripe.sharing.of(body_key(self.object_id, index));
        let bytes = share.bytes(self.read(index)).await?;
        Ok((bytes, share))
    }

    /// Blocks of fragment `index`, and a share in them.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(in crate::cache) async fn shared_blocks(
        &self,
        index: u64,
        blocks: &Blocks,
    ) -> Result<(Bytes, Share), Miss> {
        let key = body_key(self.object_id, index);
        let share = self.stripe.sharing.of_blocks(key, blocks.clone());
        let bytes = share.bytes(self.read_blocks(key, blocks)).await?;
        Ok((bytes, share))
    }

    async fn read_blocks(&self, key: u128, blocks: &Blocks) -> Result<Bytes, Miss> {
        let read = self.stripe.body_blocks(key, blocks).await;
        match (read, &self.spare) {
            (Err(miss), Some(spare)) => {
                let other = spare.body_blocks(key, blocks).await;
                other.map_err(|_| miss)
            }
            (read, _) => read,
        }
    }

    /// Whether fragment `index` is in memory for others, or about to be.
    pub(in crate::cache) fn is_shared(&self, index: u64) -> bool {
        let key = body_key(self.object_id, index);
        self.stripe.sharing.has(key)
    }

    /// How many hold a body of `body_len` bytes.
    pub(in crate::cache) fn count(&self, body_len: u64) -> u64 {
        body_len.div_ceil(u64::from(self.bytes).max(1))
    }

    fn keys(&self, body_len: u64) -> impl Iterator<Item = u128> {
        let id = self.object_id;
        (0..self.count(body_len)).map(move |index| body_key(id, index))
    }

    /// Whether the directory knows of every one, by one look at each: `None` when
    /// that is not known of all, and none is known to be missing. What is not
    /// known is asked for.
    pub(in crate::cache) fn judged(&self, body_len: u64) -> Option<bool> {
        let mut is_known = true;
        for key in self.keys(body_len) {
            match self.stripe.has(key) {
                Some(true) => {}
                Some(false) => return Some(false),
                None => {
                    self.stripe.ask_for(key);
                    is_known = false;
                }
            }
        }
        is_known.then_some(true)
    }

    /// Waits until that is known.
    pub(in crate::cache) async fn known(&self, body_len: u64) {
        for key in self.keys(body_len) {
            self.stripe.known(key).await;
        }
    }

    /// Whether the directory knows of every one.
    pub(in crate::cache) fn complete(&self, body_len: u64) -> bool {
        self.keys(body_len).all(|key| self.stripe.may_hold(key))
    }
}

impl RamValue for Arc<Stored> {
    fn ram_bytes(&self) -> u64 {
        let content = self.key.text().len() + self.meta.len();
        let content = u64::try_from(content).unwrap_or(u64::MAX);
        let chunks = self.chunks.as_ref().map_or(0, |chunks| chunks.len());
        let chunks = u64::try_from(chunks).unwrap_or(u64::MAX);
        OBJECT_BYTES + content + self.body_len + chunks * CHUNK_BYTES
    }

    fn body_len(&self) -> u64 {
        self.body_len
    }
}
