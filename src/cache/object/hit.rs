//! What a successful read gives.

use super::answer::ObjectKind;
use super::reader::BodyReader;
use super::stored::Stored;
use crate::cache::Tier;
use bytes::Bytes;
use std::sync::Arc;

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
    /// A hit on an object in memory.
    pub(in crate::cache) fn in_memory(stored: Arc<Stored>, tier: Tier) -> Self {
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
}

/// Names the copy that a hit was read from. It keeps nothing alive on a
/// device: if that copy is replaced meanwhile, a refresh by it is refused.
#[derive(Clone, Debug)]
pub struct CopyRef(pub(in crate::cache) Arc<Stored>);
