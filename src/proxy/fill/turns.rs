//! In which order the responses of a URL were asked for, so that none takes the
//! place of one that was asked for later (RFC 9111 4: the most recent counts).

use crate::cache::CacheKey;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Parts of the table, each under a lock of its own.
const SHARDS: usize = 64;
/// Keys of one URL that are remembered while one of its responses is slow.
const STORED_MAX: usize = 4096;

/// The URLs that origins are asked for now, and what was stored meanwhile.
#[derive(Debug)]
pub struct Turns {
    shards: Vec<Mutex<HashMap<u128, Url>>>,
    next: AtomicU64,
}

#[derive(Debug, Default)]
struct Url {
    /// The numbers of those who ask.
    asking: BTreeSet<u64>,
    /// The number of who stored last, by the key of the alternate; only where
    /// somebody asks who was earlier.
    stored: HashMap<u128, u64>,
}

impl Default for Turns {
    fn default() -> Self {
        let shards = std::iter::repeat_with(Mutex::default).take(SHARDS);
        Self {
            shards: shards.collect(),
            next: AtomicU64::new(0),
        }
    }
}

impl Turns {
    /// Takes the next turn: the origin is asked for what `url` has now.
    #[must_use]
    pub fn take(self: &Arc<Self>, url: &CacheKey) -> Turn {
        let url = url.hash();
        let mut shard = self.shard(url).lock();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        shard.entry(url).or_default().asking.insert(number);
        drop(shard);
        Turn {
            turns: Arc::clone(self),
            url,
            number,
        }
    }

    /// Whether nobody asks for anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.lock().is_empty())
    }

    fn shard(&self, url: u128) -> &Mutex<HashMap<u128, Url>> {
        let count = u128::try_from(self.shards.len()).unwrap_or(1);
        let index = usize::try_from(url % count).unwrap_or(0);
        self.shards
            .get(index)
            .expect("the index is below the count")
    }
}

/// The place of one who asks among the others. Dropped when its response is
/// stored, or will not be.
#[derive(Debug)]
pub struct Turn {
    turns: Arc<Turns>,
    url: u128,
    number: u64,
}

impl Turn {
    /// Stores by `store` under `key`, the URL's or that of an alternate, unless
    /// what was asked for later is stored there: `None` then. `store` runs under
    /// a lock, so it must not wait.
    pub fn store<T>(&self, key: &CacheKey, store: impl FnOnce() -> T) -> Option<T> {
        let mut shard = self.turns.shard(self.url).lock();
        let stored = &mut shard.entry(self.url).or_default().stored;
        let last = stored.get(&key.hash());
        if last.is_some_and(|last| *last > self.number) {
            return None;
        }
        if stored.len() >= STORED_MAX {
            // Forgetting them costs the order of as many at the worst.
            stored.clear();
        }
        stored.insert(key.hash(), self.number);
        Some(store())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut shard = self.turns.shard(self.url).lock();
        let Some(url) = shard.get_mut(&self.url) else {
            return;
        };
        url.asking.remove(&self.number);
        match url.asking.first() {
            None => drop(shard.remove(&self.url)),
            Some(first) => url.stored.retain(|_, last| *last > *first),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &'static str) -> CacheKey {
        CacheKey::of_url(text)
    }

    #[test]
    fn what_was_asked_for_earlier_is_not_stored_over_what_was_asked_for_later() {
        let turns = Arc::new(Turns::default());
        let (url, other) = (key("http://a/"), key("http://a/ 1"));
        let (first, second) = (turns.take(&url), turns.take(&url));
        assert_eq!(second.store(&url, || 2), Some(2));
        drop(second);
        assert_eq!(first.store(&url, || 1), None);
        assert_eq!(first.store(&other, || 1), Some(1), "another alternate");
        let third = turns.take(&url);
        drop(first);
        assert_eq!(third.store(&url, || 3), Some(3));
        drop(third);
        assert!(turns.is_empty());
    }

    #[test]
    fn no_more_is_remembered_than_somebody_may_need() {
        let turns = Arc::new(Turns::default());
        let url = key("http://a/");
        let slow = turns.take(&url);
        for n in 0..2 * STORED_MAX {
            let alternate = CacheKey::of_url(format!("http://a/ {n}"));
            turns.take(&url).store(&alternate, || ());
        }
        let stored = |turns: &Turns| turns.shard(url.hash()).lock()[&url.hash()].stored.len();
        assert!((1..=STORED_MAX).contains(&stored(&turns)));
        let late = turns.take(&url);
        drop(slow);
        assert_eq!(stored(&turns), 0, "nobody is earlier than they");
        drop(late);
        assert!(turns.is_empty());
    }
}
