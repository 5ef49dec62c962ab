//! Keys that left the small queue unread: who comes back goes to main.

use std::collections::{HashMap, VecDeque};

/// Bytes that a ghost is accounted with: its place in the queue and the map.
pub(super) const GHOST_BYTES: u64 = 112;

/// The keys last evicted from the small queue, oldest first out.
#[derive(Debug, Default)]
pub(super) struct Ghosts {
    order: VecDeque<(u128, u64)>,
    serials: HashMap<u128, u64, super::hasher::Seeded>,
    next: u64,
}

impl Ghosts {
    /// Accounted bytes.
    pub(super) fn bytes(&self) -> u64 {
        u64::try_from(self.order.len()).unwrap_or(u64::MAX) * GHOST_BYTES
    }

    /// Remembers `key`, and forgets the oldest beyond `limit` keys.
    pub(super) fn add(&mut self, key: u128, limit: usize) {
        self.next += 1;
        self.serials.insert(key, self.next);
        self.order.push_back((key, self.next));
        self.trim(limit);
    }

    /// Forgets the oldest keys beyond `limit`.
    pub(super) fn trim(&mut self, limit: usize) {
        while self.order.len() > limit {
            if let Some((key, serial)) = self.order.pop_front()
                && self.serials.get(&key) == Some(&serial)
            {
                self.serials.remove(&key);
            }
        }
    }

    /// Whether `key` was remembered; it is forgotten now.
    pub(super) fn take(&mut self, key: u128) -> bool {
        self.serials.remove(&key).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_forgotten_first_and_a_returner_once() {
        let mut ghosts = Ghosts::default();
        for key in 0..5 {
            ghosts.add(key, 3);
        }
        assert!(!ghosts.take(1));
        assert!(ghosts.take(2));
        assert!(!ghosts.take(2));
        assert_eq!(ghosts.serials.len(), 2);
    }

    #[test]
    fn a_key_remembered_again_outlives_its_older_place() {
        let mut ghosts = Ghosts::default();
        ghosts.add(1, 3);
        ghosts.add(1, 3);
        ghosts.add(2, 3);
        ghosts.add(3, 3);
        assert!(ghosts.take(1));
        assert_eq!(ghosts.bytes(), 3 * GHOST_BYTES);
    }
}
