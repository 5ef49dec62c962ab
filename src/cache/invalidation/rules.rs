//! The rules in memory: which epoch a key's objects must have.

use parking_lot::RwLock;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

/// Rules that are kept for the fills that began before them.
const RECENT_LIMIT: usize = 65_536;

#[derive(Debug, Default)]
struct Table {
    by_key: HashMap<u128, u64>,
    /// Every rule, oldest first; a key's newer rule follows its older ones.
    order: VecDeque<(u128, u64)>,
    /// Fills that began below this epoch may miss a rule that was forgotten.
    floor: u64,
}

/// The counter of invalidations, and what each of the last ones hit.
#[derive(Debug)]
pub(crate) struct Rules {
    epoch: AtomicU64,
    table: RwLock<Table>,
}

impl Rules {
    /// Rules at `epoch`, with those that an earlier run left unfinished.
    pub(crate) fn new(epoch: u64, unfinished: &[(u128, u64)]) -> Self {
        Self {
            epoch: AtomicU64::new(epoch),
            table: RwLock::new(Table {
                by_key: unfinished.iter().copied().collect(),
                order: unfinished.iter().copied().collect(),
                floor: 0,
            }),
        }
    }

    /// The epoch of this moment; what begins now carries it.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Rules that are remembered.
    pub(crate) fn len(&self) -> usize {
        self.table.read().by_key.len()
    }

    /// Makes dead what is under `key` and began before now; returns the
    /// rule's epoch.
    pub(crate) fn add(&self, key: u128) -> u64 {
        let mut table = self.table.write();
        let epoch = self.epoch.fetch_add(1, Ordering::SeqCst) + 1;
        table.by_key.insert(key, epoch);
        table.order.push_back((key, epoch));
        table.forget_beyond(RECENT_LIMIT);
        epoch
    }

    /// Whether a copy under `key` with this epoch is dead.
    pub(crate) fn kills(&self, key: u128, epoch: u64) -> bool {
        self.table.read().kills(key, epoch)
    }

    /// Whether a fill of `key` that began at `epoch` must not be stored. A
    /// fill that is older than every rule remembered is refused to be safe.
    pub(crate) fn kills_fill(&self, key: u128, epoch: u64) -> bool {
        let table = self.table.read();
        epoch < table.floor || table.kills(key, epoch)
    }
}

impl Table {
    fn kills(&self, key: u128, epoch: u64) -> bool {
        self.by_key.get(&key).is_some_and(|rule| epoch < *rule)
    }

    fn forget_beyond(&mut self, limit: usize) {
        while self.order.len() > limit {
            let Some((key, epoch)) = self.order.pop_front() else {
                return;
            };
            self.floor = self.floor.max(epoch);
            if self.by_key.get(&key) == Some(&epoch) {
                self.by_key.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_kills_what_began_before_it_under_its_key_only() {
        let rules = Rules::new(7, &[]);
        let before = rules.epoch();
        rules.add(1);
        assert!(rules.kills_fill(1, before));
        assert!(rules.kills_fill(1, before));
        assert!(!rules.kills_fill(2, before));
        assert!(!rules.kills_fill(1, rules.epoch()));
    }

    #[test]
    fn rules_of_an_earlier_run_hold() {
        let rules = Rules::new(7, &[(1, 6)]);
        assert!(rules.kills_fill(1, 5));
        assert!(!rules.kills_fill(1, 6));
    }

    #[test]
    fn a_fill_older_than_a_forgotten_rule_is_refused_under_any_key() {
        let rules = Rules::new(0, &[]);
        let before = rules.epoch();
        rules.add(0);
        let between = rules.epoch();
        let limit = u128::try_from(RECENT_LIMIT).unwrap();
        for key in 1..=limit {
            rules.add(key);
        }
        assert_eq!(rules.len(), RECENT_LIMIT);
        assert!(rules.kills_fill(u128::MAX, before));
        assert!(!rules.kills_fill(u128::MAX, between));
    }
}
