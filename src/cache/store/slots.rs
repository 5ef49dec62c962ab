//! Locks of keys: what changes one key's entries excludes what changes them
//! elsewhere.

use parking_lot::{Mutex, MutexGuard};

/// Locks; keys share them by hash.
const SLOTS: usize = 1024;

/// A table of locks, each held for memory work only.
#[derive(Debug)]
pub(super) struct Slots {
    locks: Box<[Mutex<()>]>,
}

impl Slots {
    pub(super) fn new() -> Self {
        Self {
            locks: (0..SLOTS).map(|_| Mutex::new(())).collect(),
        }
    }

    /// Waits until every change that is under way has been made.
    pub(super) fn pass(&self) {
        for slot in &self.locks {
            drop(slot.lock());
        }
    }

    /// The lock of `key`, taken.
    pub(super) fn lock(&self, key: u128) -> MutexGuard<'_, ()> {
        let slots = u128::try_from(SLOTS).unwrap_or(1);
        let slot = usize::try_from((key >> 64) % slots).unwrap_or(0);
        self.locks[slot].lock()
    }
}
