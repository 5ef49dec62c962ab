//! What a successful read gives.

use super::answer::ObjectKind;
use super::parts::Parts;
use super::reader::BodyReader;
use super::stored::Stored;
use crate::cache::Tier;
use crate::cache::store::Cache;
use bytes::Bytes;
use std::sync::{Arc, Weak};

/// A copy of an object, whole and verified as far as it has been read.
#[derive(Debug)]
pub struct Hit {
    /// Where its head came from; the read is counted there.
    pub tier: Tier,
    /// Object or marker.
    pub kind: ObjectKind,
    /// The head as it was stored.
    pub meta: Bytes,
    /// Bytes of the whole body.
    pub body_len: u64,
    /// To read the body.
    pub body: BodyReader,
    /// To refresh this very copy.
    pub copy: CopyRef,
    /// True when it may be older than what was stored last: use it only after
    /// revalidation with the origin.
    pub suspect: bool,
}

impl Hit {
    /// A hit on an object.
    pub(in crate::cache) fn of(stored: Arc<Stored>, tier: Tier) -> Self {
        Self {
            tier,
            kind: stored.kind,
            meta: stored.meta.clone(),
            body_len: stored.body_len,
            copy: CopyRef(Arc::clone(&stored)),
            body: BodyReader::new(stored),
            suspect: false,
        }
    }

    /// Its fragments, if it is held in part.
    #[must_use]
    pub fn parts(&self) -> Option<Parts> {
        self.body.parts()
    }

    /// A hit whose body is to enter the RAM cache of `cache` as it is read.
    pub(in crate::cache) fn collecting(
        stored: Arc<Stored>,
        tier: Tier,
        cache: Weak<Cache>,
    ) -> Self {
        let body = BodyReader::collecting(Arc::clone(&stored), cache);
        Self {
            body,
            ..Self::of(stored, tier)
        }
    }
}

/// Names the copy that a hit was read from. It keeps nothing alive on a
/// device: if that copy is replaced meanwhile, a refresh by it is refused.
#[derive(Clone, Debug)]
pub struct CopyRef(pub(in crate::cache) Arc<Stored>);
