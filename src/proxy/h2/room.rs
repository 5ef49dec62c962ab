//! Memory for uploads, over all HTTP/2 connections of an event thread.
//!
//! What a client sends and nobody has read yet is held for it, up to the window
//! of its connection. A window of one stream's size is everybody's; to have one
//! for several, a connection takes of what there is for that, and gives it back
//! at its end: a window that a client was given can't be taken from it.

use std::cell::Cell;
use std::rc::Rc;

/// Bytes that wide windows of a thread may hold together.
const MAX: u64 = 64 << 20;

/// What is left of it. Cloning it shares it.
#[derive(Clone, Debug)]
pub struct UploadRoom(Rc<Cell<u64>>);

impl Default for UploadRoom {
    fn default() -> Self {
        Self(Rc::new(Cell::new(MAX)))
    }
}

impl UploadRoom {
    /// Takes so many bytes, if they are there.
    pub(super) fn take(&self, bytes: u64) -> Option<Taken> {
        let left = self.0.get().checked_sub(bytes)?;
        self.0.set(left);
        let of = self.clone();
        Some(Taken { of, bytes })
    }
}

/// Bytes that are taken until this is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    of: UploadRoom,
    bytes: u64,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let left = &self.of.0;
        left.set(left.get() + self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is_and_all_comes_back() {
        let room = UploadRoom::default();
        let taken: Vec<_> = (0..4).map_while(|_| room.take(MAX / 3)).collect();
        assert_eq!(taken.len(), 3);
        drop(taken);
        assert!(room.take(MAX).is_some());
    }
}
