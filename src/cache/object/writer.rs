//! Storing an object while its body arrives.

use super::answer::{NewObject, NotStored, ObjectKind};
use super::gather::Gather;
use super::reader::BodyReader;
use super::stored::Stored;
use crate::cache::store::Cache;
use bytes::Bytes;
use std::sync::Arc;

/// A store under way. Nothing of it is found by readers before
/// [`ObjectWriter::commit`]; dropping it abandons the store.
#[derive(Debug)]
pub struct ObjectWriter {
    cache: Arc<Cache>,
    object: NewObject,
    gather: Gather,
    pieces: Vec<Bytes>,
    len: u64,
    failed: bool,
}

impl ObjectWriter {
    pub(in crate::cache) fn new(cache: Arc<Cache>, object: NewObject) -> Self {
        let piece = cache.fragment_bytes();
        Self {
            gather: Gather::new(piece, object.body_len),
            cache,
            object,
            pieces: Vec::new(),
            len: 0,
            failed: false,
        }
    }

    /// Adds `bytes` to the body. It never waits for a device, and copies the
    /// bytes.
    ///
    /// # Errors
    /// The store is lost then: `Backlog`, `TooLarge`, `WrongLength`, and
    /// `Aborted` on every later call.
    pub fn push(&mut self, bytes: &Bytes) -> Result<(), NotStored> {
        if self.failed {
            return Err(NotStored::Aborted);
        }
        let pushed = self.take(bytes);
        self.failed = pushed.is_err();
        pushed
    }

    /// Makes the object found by every reader that comes from now on, in
    /// place of what was stored under its key before.
    ///
    /// # Errors
    /// Why it is not stored; readers find what they found before, or nothing
    /// if the key was invalidated.
    pub fn commit(self) -> Result<(), NotStored> {
        let cache = Arc::clone(&self.cache);
        let outcome = self.finish();
        cache.count_write(outcome);
        outcome
    }

    /// Bytes of the body that [`ObjectWriter::readback`] can give.
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.pieces.iter().map(len).sum()
    }

    /// A reader of what was pushed, from body byte `from` to the end of the
    /// last complete fragment, for who has fallen behind; `None` when nothing
    /// there is complete yet.
    #[must_use]
    pub fn readback(&self, from: u64) -> Option<BodyReader> {
        if from >= self.readable() {
            return None;
        }
        let so_far = self.stored(self.readable(), self.pieces.clone());
        let mut reader = BodyReader::new(Arc::new(so_far));
        reader.seek(from..u64::MAX);
        Some(reader)
    }

    fn take(&mut self, bytes: &Bytes) -> Result<(), NotStored> {
        self.len = self.len.saturating_add(len(bytes));
        if self.object.body_len.is_some_and(|said| self.len > said) {
            return Err(NotStored::WrongLength);
        }
        self.cache.check_length(self.len)?;
        let pieces = &mut self.pieces;
        self.gather.push(bytes, |piece| {
            pieces.push(piece);
            Ok(())
        })
    }

    fn finish(mut self) -> Result<(), NotStored> {
        if self.failed {
            return Err(NotStored::Aborted);
        }
        if self.object.body_len.is_some_and(|said| said != self.len) {
            return Err(NotStored::WrongLength);
        }
        if self.object.kind == ObjectKind::Marker && self.len > 0 {
            return Err(NotStored::WrongLength);
        }
        let tail = std::mem::replace(&mut self.gather, Gather::new(1, None)).finish();
        let mut pieces = std::mem::take(&mut self.pieces);
        if !tail.is_empty() {
            pieces.push(tail);
        }
        let stored = self.stored(self.len, pieces);
        self.cache.put(stored)
    }

    fn stored(&self, body_len: u64, pieces: Vec<Bytes>) -> Stored {
        Stored {
            key: self.object.key.clone(),
            kind: self.object.kind,
            meta: self.object.meta.clone(),
            epoch: self.object.epoch,
            body_len,
            chunks: pieces.into_boxed_slice(),
        }
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        self.cache.writer_ended();
    }
}

fn len(bytes: &Bytes) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
