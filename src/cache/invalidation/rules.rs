//! The rules in memory: which epoch a key's objects must have.

use super::standing::Standing;
use parking_lot::RwLock;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

/// Rules that are kept for the fills that began before them.
const RECENT_LIMIT: usize = 65_536;
/// Rules that may stand, some 100 MB of them.
const STANDING_LIMIT: usize = 1 << 20;

#[derive(Debug, Default)]
struct Table {
    by_key: HashMap<u128, u64>,
    /// Every rule, oldest first; a key's newer rule follows its older ones.
    order: VecDeque<(u128, u64)>,
    /// Fills that began below this epoch may miss a rule that was forgotten.
    floor: u64,
    /// Rules that were forgotten.
    forgotten: usize,
    /// Rules that have yet to take away what they hit.
    standing: Standing,
    clears: Clears,
}

/// The epochs below which everything is dead: of all volumes, and of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clears {
    /// Below it, everything is dead.
    pub(crate) all: u64,
    /// Below its epoch, everything of the volume is dead.
    pub(crate) volumes: HashMap<u32, u64>,
}

impl Clears {
    /// Makes dead what is older than `epoch`, in one volume or in all.
    pub(crate) fn add(&mut self, volume: Option<u32>, epoch: u64) {
        let of = match volume {
            Some(volume) => self.volumes.entry(volume).or_default(),
            None => &mut self.all,
        };
        *of = epoch.max(*of);
    }

    /// Of a copy that lies in no volume it is not known which it belongs to:
    /// any clear kills it.
    fn kill(&self, volume: Option<u32>, epoch: u64) -> bool {
        let of_volume = match volume {
            Some(volume) => self.volumes.get(&volume),
            None => self.volumes.values().max(),
        };
        epoch < self.all || of_volume.is_some_and(|clear| epoch < *clear)
    }
}

/// A copy as rules see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The hash of its key.
    pub(crate) key: u128,
    /// The epoch at which its fill began.
    pub(crate) epoch: u64,
    /// The volume that it lies in, if it lies on a span.
    pub(crate) volume: Option<u32>,
}

/// The counter of invalidations, and what each of the last ones hit.
#[derive(Debug)]
pub(crate) struct Rules {
    epoch: AtomicU64,
    /// The epoch of the newest purge that is finished, and so forgotten.
    retired: AtomicU64,
    table: RwLock<Table>,
}

impl Rules {
    /// Rules at `epoch`, with those that earlier runs left unfinished; the
    /// newest that these finished was of epoch `retired`.
    pub(crate) fn new(
        (epoch, retired): (u64, u64),
        unfinished: &[(u128, u64)],
        clears: Clears,
    ) -> Self {
        let mut table = Table {
            clears,
            ..Table::default()
        };
        let rules = unfinished.iter();
        rules.for_each(|(key, epoch)| table.stand(*key, *epoch));
        Self {
            epoch: AtomicU64::new(epoch),
            retired: AtomicU64::new(retired),
            table: RwLock::new(table),
        }
    }

    /// The epoch of this moment; what begins now carries it.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Rules that are remembered.
    pub(crate) fn len(&self) -> usize {
        let table = self.table.read();
        table.by_key.len().max(table.standing.len())
    }

    /// Makes dead what is under `key` and began before now; returns the
    /// rule's epoch.
    pub(crate) fn add(&self, key: u128) -> u64 {
        let mut table = self.table.write();
        let epoch = self.epoch.fetch_add(1, Ordering::SeqCst) + 1;
        table.by_key.insert(key, epoch);
        table.order.push_back((key, epoch));
        if table.forget_beyond(RECENT_LIMIT) {
            tracing::warn!(
                rules = RECENT_LIMIT,
                below = table.floor,
                "more was purged or removed than is remembered one by one: \
                 what fills that began before then bring is not stored"
            );
        }
        epoch
    }

    /// Lets a rule stand until what it hit is gone, however many follow it: as
    /// yet it is not known who holds that.
    pub(crate) fn stand(&self, key: u128, epoch: u64) {
        self.table.write().stand(key, epoch);
    }

    /// Ends the standing of a rule, as of one that an earlier run left: what it
    /// hit is gone.
    pub(crate) fn end(&self, key: u128, epoch: u64) {
        self.table.write().standing.end(key, epoch);
    }

    /// Makes dead all that began before now, in one volume or everywhere;
    /// returns the rule's epoch.
    pub(crate) fn clear(&self, volume: Option<u32>) -> u64 {
        let mut table = self.table.write();
        let epoch = self.epoch.fetch_add(1, Ordering::SeqCst) + 1;
        table.clears.add(volume, epoch);
        epoch
    }

    /// Notes that the purge of `epoch` is written on every stripe in use.
    pub(crate) fn retire(&self, epoch: u64) {
        self.retired.fetch_max(epoch, Ordering::SeqCst);
    }

    /// Whether a copy that missed what happened may be one that was purged
    /// meanwhile: which keys a finished purge hit nobody knows any more.
    pub(crate) fn may_have_killed(&self, copy: &Subject) -> bool {
        copy.epoch < self.retired.load(Ordering::SeqCst)
    }

    /// Makes dead what is older than these clears say.
    pub(crate) fn add_clears(&self, clears: &Clears) {
        let mut table = self.table.write();
        table.clears.add(None, clears.all);
        for (volume, epoch) in &clears.volumes {
            table.clears.add(Some(*volume), *epoch);
        }
    }

    /// Whether a copy on a stripe is dead; if it is in doubt, also when it may
    /// have missed its end.
    pub(crate) fn kills_held(&self, copy: &Subject, suspect: bool) -> bool {
        suspect && self.may_have_killed(copy) || self.kills(copy)
    }

    /// Whether a copy is dead.
    pub(crate) fn kills(&self, subject: &Subject) -> bool {
        self.table.read().kills(subject)
    }

    /// Whether what a fill brings must not be stored. A fill that is older
    /// than every rule remembered is refused to be safe.
    pub(crate) fn kills_fill(&self, subject: &Subject) -> bool {
        let table = self.table.read();
        subject.epoch < table.floor || table.kills(subject)
    }
}

impl Table {
    fn kills(&self, subject: &Subject) -> bool {
        let rule = self.by_key.get(&subject.key);
        rule.is_some_and(|rule| subject.epoch < *rule)
            || self.standing.kills(subject)
            || self.clears.kill(subject.volume, subject.epoch)
    }

    fn stand(&mut self, key: u128, epoch: u64) {
        if let Some(below) = self.standing.add(key, epoch, STANDING_LIMIT) {
            tracing::warn!(
                rules = STANDING_LIMIT,
                below,
                "more was purged or removed while directories are being read than \
                 is remembered one by one: all that was stored before then is dead \
                 until they have been read"
            );
        }
    }

    /// Folds the oldest rules into the floor. Whether to tell: at the first of
    /// each `limit` of them.
    fn forget_beyond(&mut self, limit: usize) -> bool {
        let before = self.forgotten;
        while self.order.len() > limit
            && let Some((key, epoch)) = self.order.pop_front()
        {
            self.forgotten += 1;
            self.floor = self.floor.max(epoch);
            if self.by_key.get(&key) == Some(&epoch) {
                self.by_key.remove(&key);
            }
        }
        before.div_ceil(limit) < self.forgotten.div_ceil(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn subject(key: u128, epoch: u64) -> Subject {
        Subject {
            key,
            epoch,
            volume: Some(3),
        }
    }

    #[test]
    fn a_rule_kills_what_began_before_it_under_its_key_only() {
        let rules = Rules::new((7, 0), &[], Clears::default());
        let before = rules.epoch();
        rules.add(1);
        assert!(rules.kills_fill(&subject(1, before)));
        assert!(rules.kills_fill(&subject(1, before)));
        assert!(!rules.kills_fill(&subject(2, before)));
        assert!(!rules.kills_fill(&subject(1, rules.epoch())));
    }

    #[test]
    fn rules_of_an_earlier_run_hold() {
        let rules = Rules::new((7, 0), &[(1, 6)], Clears::default());
        assert!(rules.kills_fill(&subject(1, 5)));
        assert!(!rules.kills_fill(&subject(1, 6)));
    }

    #[test]
    fn a_rule_that_stands_holds_however_many_follow_it() {
        let limit = u128::try_from(RECENT_LIMIT).unwrap();
        let left: Vec<(u128, u64)> = (1..=limit).map(|n| n << 64).zip(1..).collect();
        let epoch = left[left.len() - 1].1;
        let rules = Rules::new((epoch, 0), &left, Clears::default());
        let own = rules.add(7);
        rules.stand(7, own);
        (1..=limit).for_each(|key| assert!(rules.add(key << 32) > own));
        assert!(rules.kills(&subject(7, own - 1)));
        let dead = |(key, epoch): &(u128, u64)| rules.kills(&subject(*key, epoch - 1));
        assert!(left.iter().all(dead));
        rules.end(7, own);
        rules.end(left[0].0, left[0].1);
        assert!(!rules.kills(&subject(7, own - 1)) && !dead(&left[0]) && dead(&left[1]));
    }

    #[test]
    fn what_missed_a_finished_purge_may_have_been_its_aim_if_it_is_older() {
        let rules = Rules::new((9, 6), &[], Clears::default());
        assert!(rules.may_have_killed(&subject(1, 5)));
        assert!(!rules.may_have_killed(&subject(1, 6)));
        rules.retire(8);
        rules.retire(7);
        assert!(rules.may_have_killed(&subject(1, 7)));
        assert!(!rules.may_have_killed(&subject(1, 8)));
    }

    #[test]
    fn a_fill_older_than_a_forgotten_rule_is_refused_under_any_key() {
        let rules = Rules::new((0, 0), &[], Clears::default());
        let before = rules.epoch();
        rules.add(0);
        let between = rules.epoch();
        let limit = u128::try_from(RECENT_LIMIT).unwrap();
        for key in 1..=limit {
            rules.add(key);
        }
        assert_eq!(rules.len(), RECENT_LIMIT);
        assert!(rules.kills_fill(&subject(u128::MAX, before)));
        assert!(!rules.kills_fill(&subject(u128::MAX, between)));
    }

    #[test]
    fn the_first_of_each_tableful_of_forgotten_rules_is_told() {
        let mut table = Table::default();
        let told = (0..12).filter(|n| {
            table.order.push_back((1, *n));
            table.forget_beyond(4)
        });
        assert_eq!(told.collect::<Vec<u64>>(), [4, 8]);
    }

    #[test]
    fn a_clear_kills_what_is_older_in_its_volume_or_in_all() {
        let rules = Rules::new((7, 0), &[], Clears::default());
        let in_volume = |volume, epoch| Subject {
            volume,
            ..subject(1, epoch)
        };
        let before = rules.epoch();
        let epoch = rules.clear(Some(3));
        assert!(rules.kills(&in_volume(Some(3), before)));
        assert!(rules.kills(&in_volume(None, before)));
        assert!(!rules.kills(&in_volume(Some(4), before)));
        assert!(!rules.kills(&in_volume(Some(3), epoch)));
        rules.clear(None);
        assert!(rules.kills(&in_volume(Some(4), epoch)));
        assert!(!rules.kills(&in_volume(Some(3), rules.epoch())));
    }
}
