//! An object in memory: what the RAM cache holds and every hit points at.

use super::answer::ObjectKind;
use crate::cache::CacheKey;
use crate::cache::ram::RamValue;
use bytes::Bytes;
use std::sync::Arc;

/// Bytes that an object costs beside its text, head and body: its own fields,
/// the reference counts, and the headers of its allocations.
const OBJECT_BYTES: u64 = 256;
/// Bytes that a piece of the body costs beside its content.
const CHUNK_BYTES: u64 = 96;

/// One version of an object, never changed.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) key: CacheKey,
    pub(crate) kind: ObjectKind,
    pub(crate) meta: Bytes,
    /// The epoch at which its fill began.
    pub(crate) epoch: u64,
    pub(crate) body_len: u64,
    /// The whole body, in order.
    pub(crate) chunks: Box<[Bytes]>,
}

impl Stored {
    /// The same body under a newer head.
    pub(crate) fn with_meta(&self, meta: Bytes, epoch: u64) -> Self {
        Self {
            key: self.key.clone(),
            kind: self.kind,
            meta,
            epoch,
            body_len: self.body_len,
            chunks: self.chunks.clone(),
        }
    }
}

impl RamValue for Arc<Stored> {
    fn ram_bytes(&self) -> u64 {
        let content = self.key.text().len() + self.meta.len();
        let content = u64::try_from(content).unwrap_or(u64::MAX);
        let chunks = u64::try_from(self.chunks.len()).unwrap_or(u64::MAX);
        OBJECT_BYTES + content + self.body_len + chunks * CHUNK_BYTES
    }

    fn body_len(&self) -> u64 {
        self.body_len
    }
}
