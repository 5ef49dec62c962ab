//! Rules that have yet to take away what they hit: who has the key is not known
//! everywhere, as long as directories are being read.

use super::rules::Subject;
use std::collections::{BTreeMap, HashMap};

/// The standing rules, by key.
#[derive(Debug, Default)]
pub(super) struct Standing {
    by_key: HashMap<u128, u64>,
    /// The same by epoch, and older ones of the same keys.
    order: BTreeMap<u64, u128>,
    /// How many stand, those that were folded as well.
    count: usize,
    /// What is older is dead, under any key: a folded rule may have hit it.
    floor: u64,
}

impl Standing {
    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Lets a rule stand. Beyond `limit` the oldest ones are folded into one that
    /// everything older is dead by, until none stands any more; the epoch of that
    /// when it is new.
    pub(super) fn add(&mut self, key: u128, epoch: u64, limit: usize) -> Option<u64> {
        let newest = self.by_key.entry(key).or_default();
        *newest = epoch.max(*newest);
        self.order.insert(epoch, key);
        self.count += 1;
        let before = self.floor;
        while self.order.len() > limit
            && let Some((epoch, key)) = self.order.pop_first()
        {
            self.floor = self.floor.max(epoch);
            self.forget(key, epoch);
        }
        (before == 0 && self.floor > 0).then_some(self.floor)
    }

    /// Ends a rule: what it hit is gone.
    pub(super) fn end(&mut self, key: u128, epoch: u64) {
        self.count = self.count.saturating_sub(1);
        self.order.remove(&epoch);
        self.forget(key, epoch);
        if self.count == 0 {
            self.floor = 0;
        }
    }

    fn forget(&mut self, key: u128, epoch: u64) {
        if self.by_key.get(&key) == Some(&epoch) {
            self.by_key.remove(&key);
        }
    }

    /// Whether one of them hits a copy.
    pub(super) fn kills(&self, subject: &Subject) -> bool {
        let rule = self.by_key.get(&subject.key);
        subject.epoch < self.floor || rule.is_some_and(|rule| subject.epoch < *rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kills(standing: &Standing, key: u128, epoch: u64) -> bool {
        let volume = Some(3);
        standing.kills(&Subject { key, epoch, volume })
    }

    #[test]
    fn a_standing_rule_kills_what_is_older_until_the_newest_of_its_key_ends() {
        let mut standing = Standing::default();
        assert_eq!(standing.add(1, 5, 9), None);
        standing.add(1, 7, 9);
        standing.end(1, 5);
        assert!(kills(&standing, 1, 6) && !kills(&standing, 1, 7) && !kills(&standing, 2, 1));
        standing.end(1, 7);
        assert!(!kills(&standing, 1, 6) && standing.len() == 0);
    }

    #[test]
    fn rules_that_are_folded_make_all_dead_that_is_older_until_none_stands() {
        let mut standing = Standing::default();
        let told: Vec<_> = (1..=5).map(|n| standing.add(n.into(), n, 3)).collect();
        assert_eq!(told, [None, None, None, Some(1), None]);
        assert!(kills(&standing, 1, 0) && kills(&standing, 99, 1));
        assert!(!kills(&standing, 99, 2) && kills(&standing, 4, 3));
        (1..5).for_each(|n| standing.end(n.into(), n));
        assert!(kills(&standing, 99, 1));
        standing.end(5, 5);
        assert!(!kills(&standing, 99, 1));
    }
}
