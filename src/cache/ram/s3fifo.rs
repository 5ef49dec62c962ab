//! S3-FIFO: a small queue that most objects leave unread, a main queue for
//! those that were read, and ghosts of the ones that left too early.
//!
//! Yang, Zhang, Qiu, Yue, Rashmi: "FIFO queues are all you need for cache
//! eviction", SOSP 2023. Sizes are bytes here, not objects.

use super::ghost::Ghosts;
use super::hasher::Seeded;
use super::list::{List, Slab};
use std::collections::HashMap;

/// Bytes accounted for a key's node and its slot in the map: 97 where both are
/// full, 200 where both have just grown.
pub(super) const NODE_BYTES: u64 = 192;
/// Reads since it came that move an object from small to main.
const PROMOTE_AT: u8 = 2;
/// Reads that are remembered.
const MAX_READS: u8 = 3;
/// The small queue's share of the budget, as a divisor.
const SMALL_SHARE: u64 = 10;
/// Ghosts that are kept however few objects there are.
const MIN_GHOSTS: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Small,
    Main,
}

#[derive(Debug)]
struct Node<V> {
    key: u128,
    value: V,
    bytes: u64,
    reads: u8,
    queue: Queue,
}

/// One shard's objects under a budget of bytes.
#[derive(Debug)]
pub(super) struct S3Fifo<V> {
    budget: u64,
    small_bytes: u64,
    main_bytes: u64,
    places: HashMap<u128, usize, Seeded>,
    nodes: Slab<Node<V>>,
    small: List,
    main: List,
    ghosts: Ghosts,
}

impl<V> S3Fifo<V> {
    /// An empty shard.
    pub(super) fn new(budget: u64) -> Self {
        Self {
            budget,
            small_bytes: 0,
            main_bytes: 0,
            places: HashMap::default(),
            nodes: Slab::new(),
            small: List::new(),
            main: List::new(),
            ghosts: Ghosts::default(),
        }
    }

    /// Accounted bytes: values, nodes and ghosts.
    pub(super) fn used(&self) -> u64 {
        self.small_bytes + self.main_bytes + self.ghosts.bytes()
    }

    /// Objects held.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The value under `key`, which counts as read.
    pub(super) fn read(&mut self, key: u128) -> Option<&V> {
        let node = self.nodes.get_mut(*self.places.get(&key)?)?;
        node.reads = MAX_READS.min(node.reads + 1);
        Some(&node.value)
    }

    /// The value under `key`; it does not count as read.
    pub(super) fn peek(&self, key: u128) -> Option<&V> {
        let node = self.nodes.get(*self.places.get(&key)?)?;
        Some(&node.value)
    }

    /// Puts `value` of `bytes` bytes under `key`, in place of what was there.
    /// False, and nothing is held under the key, when the budget is too small
    /// for it.
    pub(super) fn insert(&mut self, key: u128, value: V, bytes: u64) -> bool {
        let replaced = self.take(key);
        let bytes = bytes.saturating_add(NODE_BYTES);
        if bytes > self.budget {
            return false;
        }
        let queue = match &replaced {
            Some(old) => old.queue,
            None if self.ghosts.take(key) => Queue::Main,
            None => Queue::Small,
        };
        self.shrink_to(self.budget - bytes);
        self.push(Node {
            key,
            value,
            bytes,
            reads: replaced.map_or(0, |old| old.reads),
            queue,
        });
        true
    }

    /// Has the next value under `key` count as one that came back.
    pub(super) fn remember(&mut self, key: u128) {
        let limit = self.len().max(MIN_GHOSTS);
        self.ghosts.add(key, limit);
    }

    /// Every value, and how hot it is: those of the main queue were chosen.
    pub(super) fn heat(&self) -> impl Iterator<Item = (u8, &V)> {
        self.nodes.iter().map(|node| {
            let chosen = match node.queue {
                Queue::Small => 0,
                Queue::Main => MAX_READS,
            };
            (node.reads + chosen, &node.value)
        })
    }

    /// Takes out what `key` holds.
    pub(super) fn remove(&mut self, key: u128) -> Option<V> {
        self.take(key).map(|node| node.value)
    }

    /// Takes out every value that `keep` does not want.
    pub(super) fn retain(&mut self, keep: impl Fn(&V) -> bool) {
        let unwanted = self.nodes.iter().filter(|node| !keep(&node.value));
        let keys: Vec<u128> = unwanted.map(|node| node.key).collect();
        for key in keys {
            self.take(key);
        }
    }

    /// Changes the budget, and evicts down to it.
    pub(super) fn set_budget(&mut self, budget: u64) {
        self.budget = budget;
        self.shrink_to(budget);
    }

    fn push(&mut self, node: Node<V>) {
        let (key, bytes) = (node.key, node.bytes);
        let place = match node.queue {
            Queue::Small => {
                self.small_bytes += bytes;
                self.nodes.push(&mut self.small, node)
            }
            Queue::Main => {
                self.main_bytes += bytes;
                self.nodes.push(&mut self.main, node)
            }
        };
        self.places.insert(key, place);
    }

    fn take(&mut self, key: u128) -> Option<Node<V>> {
        let place = self.places.remove(&key)?;
        let node = match self.nodes.get(place)?.queue {
            Queue::Small => self.nodes.take(&mut self.small, place),
            Queue::Main => self.nodes.take(&mut self.main, place),
        }?;
        match node.queue {
            Queue::Small => self.small_bytes -= node.bytes,
            Queue::Main => self.main_bytes -= node.bytes,
        }
        Some(node)
    }

    fn shrink_to(&mut self, target: u64) {
        while self.used() > target && self.len() > 0 {
            if self.small_bytes > self.budget / SMALL_SHARE || self.main.oldest().is_none() {
                self.evict_small();
            } else {
                self.evict_main();
            }
        }
        if self.used() > target {
            self.ghosts.trim(0);
        }
    }

    /// The small queue's oldest goes to main if it was read, else it goes.
    fn evict_small(&mut self) {
        let Some(mut node) = self.take_oldest(Queue::Small) else {
            return;
        };
        if node.reads >= PROMOTE_AT {
            node.reads = 0;
            node.queue = Queue::Main;
            self.push(node);
        } else {
            let limit = self.len().max(MIN_GHOSTS);
            self.ghosts.add(node.key, limit);
        }
    }

    /// The main queue's oldest goes round once more for each read, else goes.
    fn evict_main(&mut self) {
        if let Some(mut node) = self.take_oldest(Queue::Main)
            && node.reads > 0
        {
            node.reads -= 1;
            self.push(node);
        }
    }

    fn take_oldest(&mut self, queue: Queue) -> Option<Node<V>> {
        let oldest = match queue {
            Queue::Small => self.small.oldest(),
            Queue::Main => self.main.oldest(),
        }?;
        let key = self.nodes.get(oldest)?.key;
        self.take(key)
    }
}

#[cfg(test)]
mod tests;
