//! The store of a fill, as its followers see it.

use crate::cache::{BodyReader, NotStored, ObjectWriter};
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;

/// An object being stored: written by the fetch, read back by followers that
/// fell behind. Its lock is held for memory work only.
#[derive(Clone, Debug)]
pub struct Storing(Arc<Mutex<Option<ObjectWriter>>>);

impl Storing {
    pub(super) fn new(writer: Option<ObjectWriter>) -> Self {
        Self(Arc::new(Mutex::new(writer)))
    }

    /// Whether the object is still being stored.
    pub(in crate::proxy) fn is_open(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Adds to the object; a store that fails is given up.
    pub(super) fn push(&self, data: &Bytes) -> Result<(), NotStored> {
        let mut writer = self.0.lock();
        let pushed = writer.as_mut().map_or(Ok(()), |writer| writer.push(data));
        if pushed.is_err() {
            *writer = None;
        }
        pushed
    }

    /// Commits the object if it is still being stored. Under the lock, so that
    /// who finds no store any more finds the object in the cache.
    pub(super) fn commit(&self) -> Option<Result<(), NotStored>> {
        let mut writer = self.0.lock();
        writer.take().map(ObjectWriter::commit)
    }

    /// A reader of what is stored from byte `from` on, if that much is.
    pub(in crate::proxy) fn readback(&self, from: u64) -> Option<BodyReader> {
        self.0.lock().as_ref()?.readback(from)
    }
}
