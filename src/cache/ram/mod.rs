//! The RAM cache: S3-FIFO in shards, bytes accounted with their overhead.

mod ghost;
mod hasher;
mod list;
mod s3fifo;
mod seen;

use super::inspect::RamStatus;
use super::options::RamOptions;
use crate::base::size::MIB;
use parking_lot::Mutex;
use s3fifo::S3Fifo;
use seen::Seen;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads that make a value worth reading ahead after a restart.
const HOT: u8 = 2;
/// Bytes below which a shard is not made: an object must fit into its shard.
const MIN_SHARD: u64 = 64 * MIB;
/// Most shards.
const MAX_SHARDS: u64 = 16;

/// What the RAM cache holds: cheap to clone, and it knows its size.
pub trait RamValue: Clone + Send {
    /// Bytes of memory that holding it costs, its own allocations included.
    fn ram_bytes(&self) -> u64;

    /// Bytes of its body, which the cutoff looks at.
    fn body_len(&self) -> u64;
}

/// Whether a value entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is held.
    Admitted,
    /// Its body is not below the cutoff.
    Cutoff,
    /// The seen filter met the key for the first time.
    FirstSight,
    /// It is larger than a shard's share of the budget.
    TooLarge,
}

/// A cache of `V` by 128-bit key, shared by all threads.
#[derive(Debug)]
pub struct RamCache<V> {
    shards: Box<[Mutex<S3Fifo<V>>]>,
    seen: Option<Mutex<Seen>>,
    /// [`RamOptions::seen_filter`].
    seen_level: u64,
    size: AtomicU64,
    cutoff: AtomicU64,
}

impl<V: RamValue> RamCache<V> {
    /// An empty cache of `size` bytes; the number of shards follows from it
    /// and stays.
    #[must_use]
    pub fn new(size: u64, options: &RamOptions) -> Self {
        let shards = (size / MIN_SHARD).clamp(1, MAX_SHARDS);
        Self {
            shards: (0..shards)
                .map(|_| Mutex::new(S3Fifo::new(size / shards)))
                .collect(),
            seen: (options.seen_filter > 0).then(|| Mutex::new(Seen::new())),
            seen_level: options.seen_filter.into(),
            size: AtomicU64::new(size),
            cutoff: AtomicU64::new(options.cutoff),
        }
    }

    /// The value under `key`, which counts as read.
    #[must_use]
    pub fn read(&self, key: u128) -> Option<V> {
        self.shard(key).lock().read(key).cloned()
    }

    /// The value under `key`; it does not count as read.
    #[must_use]
    pub fn peek(&self, key: u128) -> Option<V> {
        self.shard(key).lock().peek(key).cloned()
    }

    /// Puts `value` under `key` if the rules admit it; what the key held
    /// before is gone in any case.
    pub fn insert(&self, key: u128, value: V) -> Admission {
        if let Some(no) = self.refusal(key, value.body_len()) {
            self.remove(key);
            return no;
        }
        self.insert_admitted(key, value)
    }

    /// Whether the rules admit a value with a body of this length under `key`,
    /// which has come by with this question: if so, [`Self::insert_admitted`] is
    /// to follow, which asks no more.
    #[must_use]
    pub fn admits(&self, key: u128, body_len: u64) -> bool {
        self.refusal(key, body_len).is_none()
    }

    /// Puts `value` under `key`; what the key held before is gone in any case.
    pub fn insert_admitted(&self, key: u128, value: V) -> Admission {
        let bytes = value.ram_bytes();
        if self.shard(key).lock().insert(key, value, bytes) {
            Admission::Admitted
        } else {
            Admission::TooLarge
        }
    }

    /// Takes out what `key` holds.
    pub fn remove(&self, key: u128) -> Option<V> {
        self.shard(key).lock().remove(key)
    }

    /// Has the next value under `key` count as one that was held before.
    pub fn remember(&self, key: u128) {
        if let Some(seen) = &self.seen {
            seen.lock().saw(key);
        }
        self.shard(key).lock().remember(key);
    }

    /// What `name` makes of the hottest values, at most `limit` of them, hottest
    /// first, of those that were read twice at least or chosen.
    pub fn hottest<T>(&self, limit: usize, name: impl Fn(&V) -> T) -> Vec<T> {
        let mut found = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock();
            let hot = shard.heat().filter(|(heat, _)| *heat >= HOT);
            found.extend(hot.map(|(heat, value)| (heat, name(value))));
        }
        found.sort_by_key(|(heat, _)| std::cmp::Reverse(*heat));
        found.truncate(limit);
        found.into_iter().map(|(_, name)| name).collect()
    }

    /// Takes out every value that `keep` does not want.
    pub fn retain(&self, keep: impl Fn(&V) -> bool) {
        for shard in &self.shards {
            shard.lock().retain(&keep);
        }
    }

    /// Whether a body of this length is below the cutoff and fits a shard.
    #[must_use]
    pub fn takes_body(&self, body_len: u64) -> bool {
        self.below_cutoff(body_len) && body_len < self.shard_size()
    }

    /// Changes the budget; what no longer fits leaves at once.
    pub fn set_size(&self, size: u64) {
        self.size.store(size, Ordering::Relaxed);
        for shard in &self.shards {
            shard.lock().set_budget(self.shard_size());
        }
    }

    /// Changes the cutoff; bodies not below it leave at once.
    pub fn set_cutoff(&self, cutoff: u64) {
        self.cutoff.store(cutoff, Ordering::Relaxed);
        self.retain(|value| self.below_cutoff(value.body_len()));
    }

    /// The figures of this moment.
    #[must_use]
    pub fn status(&self) -> RamStatus {
        let mut status = RamStatus {
            bytes_total: self.size.load(Ordering::Relaxed),
            ..RamStatus::default()
        };
        for shard in &self.shards {
            let shard = shard.lock();
            status.bytes_used += shard.used();
            status.objects += u64::try_from(shard.len()).unwrap_or(u64::MAX);
        }
        status
    }

    fn refusal(&self, key: u128, body_len: u64) -> Option<Admission> {
        if !self.below_cutoff(body_len) {
            return Some(Admission::Cutoff);
        }
        let seen = self.seen.as_ref()?;
        let known = seen.lock().saw(key);
        (!known && self.is_picky(key)).then_some(Admission::FirstSight)
    }

    /// Whether the key's shard is full enough for the seen filter to hold.
    fn is_picky(&self, key: u128) -> bool {
        let part = self.shard_size() / self.seen_level.max(1);
        self.shard(key).lock().used() >= part.saturating_mul(self.seen_level.saturating_sub(1))
    }

    fn below_cutoff(&self, body_len: u64) -> bool {
        let cutoff = self.cutoff.load(Ordering::Relaxed);
        cutoff == 0 || body_len < cutoff
    }

    fn shard_size(&self) -> u64 {
        let shards = u64::try_from(self.shards.len()).unwrap_or(u64::MAX);
        self.size.load(Ordering::Relaxed) / shards
    }

    fn shard(&self, key: u128) -> &Mutex<S3Fifo<V>> {
        let (low, _) = hasher::halves(key);
        let shards = u64::try_from(self.shards.len()).unwrap_or(u64::MAX);
        &self.shards[usize::try_from(low % shards).unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Body(u64);

    impl RamValue for Body {
        fn ram_bytes(&self) -> u64 {
            self.0
        }

        fn body_len(&self) -> u64 {
            self.0
        }
    }

    fn cache(cutoff: u64, seen_filter: u8) -> RamCache<Body> {
        let options = RamOptions {
            size: None,
            cutoff,
            seen_filter,
        };
        RamCache::new(256 * MIB, &options)
    }

    #[test]
    fn a_body_of_the_cutoff_stays_out_and_one_below_enters() {
        let ram = cache(40, 0);
        assert_eq!(ram.insert(1, Body(40)), Admission::Cutoff);
        assert_eq!(ram.insert(2, Body(39)), Admission::Admitted);
        assert_eq!(ram.read(1), None);
        assert_eq!(ram.read(2), Some(Body(39)));
    }

    #[test]
    fn no_cutoff_is_no_limit_and_a_new_cutoff_expels() {
        let ram = cache(0, 0);
        assert_eq!(ram.insert(1, Body(5 * MIB)), Admission::Admitted);
        assert_eq!(ram.insert(2, Body(100)), Admission::Admitted);
        ram.set_cutoff(1000);
        assert_eq!((ram.peek(1), ram.peek(2)), (None, Some(Body(100))));
    }

    #[test]
    fn a_refused_newer_value_takes_the_older_one_out() {
        let ram = cache(40, 0);
        ram.insert(1, Body(10));
        assert_eq!(ram.insert(1, Body(50)), Admission::Cutoff);
        assert_eq!(ram.peek(1), None);
    }

    #[test]
    fn the_seen_filter_admits_at_the_second_sight() {
        let ram = cache(0, 1);
        assert_eq!(ram.insert(1 << 70, Body(10)), Admission::FirstSight);
        assert_eq!(ram.insert(1 << 70, Body(10)), Admission::Admitted);
        assert!(!ram.admits(3 << 120, 10), "a question is a sight");
        assert!(ram.admits(3 << 120, 10));
        assert_eq!(ram.insert_admitted(3 << 120, Body(10)), Admission::Admitted);
    }

    #[test]
    fn what_was_read_is_hotter_and_what_is_remembered_is_admitted_at_first_sight() {
        let ram = cache(0, 1);
        for key in 1..=20 {
            ram.remember(key);
            assert_eq!(
                ram.insert(key, Body(10 * u64::try_from(key).unwrap())),
                Admission::Admitted
            );
        }
        for key in [7, 7, 7, 3, 3, 4] {
            assert!(ram.read(key).is_some());
        }
        assert_eq!(ram.hottest(2, |body| body.0), [70, 30]);
        assert_eq!(ram.hottest(100, |body| body.0).len(), 20);
        let cold = cache(0, 0);
        for key in 1..=2 {
            cold.insert(key, Body(10));
        }
        assert!(cold.read(1).is_some());
        assert_eq!(cold.hottest(100, |_| ()).len(), 0);
        assert!(cold.read(1).is_some());
        assert_eq!(cold.hottest(100, |_| ()).len(), 1);
    }

    #[test]
    fn a_seen_filter_of_two_holds_once_ram_is_half_full() {
        let ram = cache(0, 2);
        let mut admitted = 0;
        while ram.insert((admitted + 1) << 112, Body(MIB)) == Admission::Admitted {
            admitted += 1;
        }
        let half = ram.status().bytes_used;
        assert!((32..=128).contains(&(half / MIB)), "{half}");
    }

    #[test]
    fn a_live_size_evicts_and_the_status_says_so() {
        let ram = cache(0, 0);
        for key in 0..1000 {
            ram.insert(key, Body(100_000));
        }
        assert_eq!(ram.status().objects, 1000);
        ram.set_size(10 * MIB);
        let status = ram.status();
        assert_eq!(status.bytes_total, 10 * MIB);
        assert!(status.bytes_used <= 10 * MIB);
        assert!(status.objects < 105);
    }
}
