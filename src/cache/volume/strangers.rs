//! Entries that were read for one key and hold another's fragment.
//!
//! A store takes away what its key has by the tag, sixteen bits of a hash, and
//! must spare what other keys have under the same one. What is at a position
//! never changes, so that what was read there once stays true.

use super::live::Core;
use crate::base::clock::MonoTime;
use crate::cache::directory::Place;
use crate::cache::format::dir_entry::DirEntry;
use crate::cache::format::fragment::FragmentError;
use crate::cache::stripe::{Appended, Freed, NewFragment, Refused, Stripe};
use parking_lot::Mutex;
use std::collections::VecDeque;

/// Facts that are kept: at 2.3e-4 of them a lookup in vain, those of the last
/// million lookups. Without its fact, an entry is lost, a hit no more.
const FACTS: usize = 256;

/// The latest of such entries on one stripe.
#[derive(Debug, Default)]
pub(super) struct Strangers {
    /// Hash of the key that was looked up, and the position that was read.
    facts: Mutex<VecDeque<(u128, u64)>>,
}

impl Strangers {
    /// Notes that another key's fragment is at `position`.
    pub(super) fn note(&self, key: u128, position: u64) {
        let mut facts = self.facts.lock();
        if facts.contains(&(key, position)) {
            return;
        }
        if facts.len() == FACTS {
            facts.pop_front();
        }
        facts.push_back((key, position));
    }

    fn know(&self, key: u128, position: u64) -> bool {
        self.facts.lock().contains(&(key, position))
    }
}

impl Core {
    /// As [`Stripe::append`], and spares what is known to be other keys'.
    pub(super) fn append(&self, now: MonoTime, new: &NewFragment<'_>) -> Result<Appended, Refused> {
        let mut stripe = self.stripe.lock();
        let keep = self.others(&stripe, new.key_hash);
        let new = NewFragment {
            keep: &keep,
            ..*new
        };
        stripe.append(now, &new)
    }

    /// As [`Stripe::free`], and spares what is known to be other keys'. What is
    /// not known yet goes before it can be found.
    pub(super) fn free(&self, now: MonoTime, key: u128) -> Result<Freed, Refused> {
        let mut stripe = self.stripe.lock();
        let keep = self.others(&stripe, key);
        let freed = stripe.free(now, key, &keep);
        if freed == Err(Refused::Unread) {
            stripe.free_when_read(now, key);
        }
        freed
    }

    /// The entries with the key's tag that are known to be other keys': they
    /// were read, or still wait in memory to be written.
    fn others(&self, stripe: &Stripe, key: u128) -> Vec<DirEntry> {
        let is_another = |place: &Place| {
            self.strangers.know(key, place.position) || self.is_anothers(stripe, key, place)
        };
        let places = self.directory.lookup(key).filter(is_another);
        places.map(|place| place.entry).collect()
    }

    /// Who was looked up before the other was stored has not read it.
    fn is_anothers(&self, stripe: &Stripe, key: u128, place: &Place) -> bool {
        let bytes = stripe.buffered(place);
        bytes.is_some_and(|bytes| {
            let verified = self.directory.verify(place, key, &bytes);
            verified.err() == Some(FragmentError::OtherKey)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_latest_facts_are_known_each_counted_once() {
        let strangers = Strangers::default();
        (0..256).for_each(|position| strangers.note(1, position));
        strangers.note(1, 255);
        assert!(strangers.know(1, 0) && !strangers.know(2, 0));
        strangers.note(2, 0);
        assert!(!strangers.know(1, 0) && strangers.know(1, 1) && strangers.know(2, 0));
    }
}
