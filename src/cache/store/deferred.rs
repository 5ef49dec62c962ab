//! Heads that wait until older copies on other stripes are gone for good:
//! their batches must not be written before those of the free rows.

use crate::cache::object::Stored;
use crate::cache::volume::{LiveStripe, Written};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of bodies and heads that may wait, and how many heads.
const BYTES_MAX: usize = 64 << 20;
const HEADS_MAX: usize = 16_384;

/// A head that waits.
#[derive(Clone, Debug)]
pub(super) struct Deferred {
    pub(super) stored: Arc<Stored>,
    pub(super) target: Arc<LiveStripe>,
    /// What it waits for; `None` until that is known.
    waits: Option<Vec<Written>>,
}

impl Deferred {
    /// Whether it has waited long enough.
    pub(super) fn is_ready(&self) -> bool {
        let waits = self.waits.as_ref();
        waits.is_some_and(|waits| waits.iter().all(Written::is_safe))
    }

    fn bytes(&self) -> usize {
        let chunks = self.stored.chunks.iter().flatten();
        self.stored.meta.len() + chunks.map(Bytes::len).sum::<usize>()
    }
}

#[derive(Debug, Default)]
struct Table {
    heads: HashMap<u128, Deferred>,
    bytes: usize,
}

/// The heads that wait, by key; readers are served from here meanwhile.
#[derive(Debug, Default)]
pub(super) struct DeferredHeads {
    table: Mutex<Table>,
    /// Lets readers pass while none waits.
    count: AtomicUsize,
}

impl DeferredHeads {
    /// Lets a head wait in place of the key's older one, until it is said for
    /// what. False when too many wait.
    pub(super) fn insert(&self, hash: u128, stored: Arc<Stored>, target: &Arc<LiveStripe>) -> bool {
        self.remove(hash);
        let deferred = Deferred {
            stored,
            target: Arc::clone(target),
            waits: None,
        };
        let mut table = self.table.lock();
        let bytes = table.bytes + deferred.bytes();
        if bytes > BYTES_MAX || table.heads.len() >= HEADS_MAX {
            return false;
        }
        table.bytes = bytes;
        table.heads.insert(hash, deferred);
        self.count.store(table.heads.len(), Ordering::Release);
        true
    }

    /// Says what the head under a key waits for.
    pub(super) fn wait_for(&self, hash: u128, waits: Vec<Written>) {
        if let Some(deferred) = self.table.lock().heads.get_mut(&hash) {
            deferred.waits = Some(waits);
        }
    }

    /// Takes the head out that waits under a key.
    pub(super) fn remove(&self, hash: u128) -> Option<Deferred> {
        if self.is_empty() {
            return None;
        }
        let mut table = self.table.lock();
        let gone = table.heads.remove(&hash)?;
        table.bytes = table.bytes.saturating_sub(gone.bytes());
        self.count.store(table.heads.len(), Ordering::Release);
        Some(gone)
    }

    /// The head that waits under a key.
    pub(super) fn get(&self, hash: u128) -> Option<Deferred> {
        if self.is_empty() {
            return None;
        }
        self.table.lock().heads.get(&hash).cloned()
    }

    /// Takes out what is not to be kept.
    pub(super) fn retain(&self, keep: impl Fn(&Deferred) -> bool) {
        let mut table = self.table.lock();
        table.heads.retain(|_, head| keep(head));
        table.bytes = table.heads.values().map(Deferred::bytes).sum();
        self.count.store(table.heads.len(), Ordering::Release);
    }

    /// The keys of all that wait.
    pub(super) fn keys(&self) -> Vec<u128> {
        self.table.lock().heads.keys().copied().collect()
    }

    /// The keys of those that have waited long enough.
    pub(super) fn ready(&self) -> Vec<u128> {
        let table = self.table.lock();
        let ready = table.heads.iter().filter(|(_, head)| head.is_ready());
        ready.map(|(hash, _)| *hash).collect()
    }

    /// A key's changes are made under its slot, so that whoever holds that
    /// sees what waits under the key.
    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }
}
