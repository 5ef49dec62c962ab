//! Which fills are under way, and which keys are known to be uncacheable.

use super::parts::PartTable;
use super::turns::Turns;
use super::{Fill, FillLimits, FillReader, FillWatch, FillWriter};
use crate::base::clock::MonoTime;
use crate::cache::CacheKey;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Parts of the table, each under a lock of its own.
const SHARDS: usize = 64;

/// What a request that needs an object becomes.
#[derive(Debug)]
pub enum Claim<H> {
    /// The one that fetches.
    Writer(FillWriter<H>),
    /// One that waits for another's fetch.
    Follower(FillReader<H>),
    /// The key was uncacheable a while ago: it fetches for itself (hit-for-miss).
    Remembered,
}

#[derive(Debug)]
struct Shard<H> {
    fills: HashMap<u128, (CacheKey, Arc<Fill<H>>)>,
    /// Fills that have begun before what they fetch was invalidated: nobody joins
    /// them any more.
    detached: Vec<Arc<Fill<H>>>,
    uncacheable: HashMap<u128, MonoTime>,
}

impl<H> Default for Shard<H> {
    fn default() -> Self {
        Self {
            fills: HashMap::new(),
            detached: Vec::new(),
            uncacheable: HashMap::new(),
        }
    }
}

impl<H> Shard<H> {
    fn under_way(&self) -> impl Iterator<Item = &Arc<Fill<H>>> {
        let joinable = self.fills.values().map(|(_, fill)| fill);
        joinable.chain(&self.detached)
    }
}

/// The fills under way, shared by all threads.
#[derive(Debug)]
pub struct FillTable<H> {
    shards: Vec<Mutex<Shard<H>>>,
    limits: FillLimits,
    ended: AtomicU64,
    parts: Arc<PartTable>,
    turns: Arc<Turns>,
}

impl<H> FillTable<H> {
    /// A table without fills.
    #[must_use]
    pub fn new(limits: FillLimits) -> Arc<Self> {
        let shards = std::iter::repeat_with(Mutex::default).take(SHARDS);
        Arc::new(Self {
            shards: shards.collect(),
            limits,
            ended: AtomicU64::new(0),
            parts: Arc::default(),
            turns: Arc::default(),
        })
    }

    /// The bounds.
    #[must_use]
    pub const fn limits(&self) -> &FillLimits {
        &self.limits
    }

    /// The fragments of objects in part that are being fetched.
    #[must_use]
    pub const fn parts(&self) -> &Arc<PartTable> {
        &self.parts
    }

    /// The order in which responses were asked for.
    #[must_use]
    pub const fn turns(&self) -> &Arc<Turns> {
        &self.turns
    }

    /// Fills that have ended so far. Who reads the cache, finds nothing, and
    /// then becomes the writer may have missed what another fill stored in
    /// between, if this has risen meanwhile.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// Takes part in the fill of `key`, or begins one.
    #[must_use]
    pub fn claim(self: &Arc<Self>, key: &CacheKey, now: MonoTime) -> Claim<H> {
        let mut shard = self.shard(key).lock();
        if shard
            .uncacheable
            .get(&key.hash())
            .is_some_and(|until| *until > now)
        {
            return Claim::Remembered;
        }
        match shard.fills.get(&key.hash()) {
            Some((held, fill)) if held == key => Claim::Follower(FillReader::join(fill)),
            // Another key with the same hash: too rare for a second place.
            Some(_) => Claim::Remembered,
            None => {
                let fill = Fill::new();
                let entry = (key.clone(), Arc::clone(&fill));
                shard.fills.insert(key.hash(), entry);
                Claim::Writer(FillWriter::new(fill, Arc::clone(self), key.clone()))
            }
        }
    }

    /// Follows the fill of `key` if there is one, but begins none.
    #[must_use]
    pub fn follow(&self, key: &CacheKey) -> Option<FillReader<H>> {
        let shard = self.shard(key).lock();
        let (held, fill) = shard.fills.get(&key.hash())?;
        (held == key).then(|| FillReader::join(fill))
    }

    /// Lets nobody join the fill of `key` that is under way: what it fetches was
    /// invalidated. Who follows it already gets it to its end.
    pub fn detach(&self, key: &CacheKey) {
        let mut shard = self.shard(key).lock();
        let held = shard.fills.get(&key.hash());
        if held.is_some_and(|(held, _)| held == key)
            && let Some((_, fill)) = shard.fills.remove(&key.hash())
        {
            shard.detached.push(fill);
        }
    }

    /// Remembers that `key` is uncacheable, from `now` on for a while.
    pub fn remember(&self, key: &CacheKey, now: MonoTime) {
        let mut shard = self.shard(key).lock();
        let room = (self.limits.remembered / SHARDS).max(1);
        if shard.uncacheable.len() >= room {
            shard.uncacheable.retain(|_, until| *until > now);
        }
        if shard.uncacheable.len() >= room {
            // All are recent; forgetting them costs a few serialised fetches.
            shard.uncacheable.clear();
        }
        let until = now.plus(self.limits.memory);
        shard.uncacheable.insert(key.hash(), until);
    }

    /// A cacheable response has come: the memory was wrong.
    pub fn forget(&self, key: &CacheKey) {
        self.shard(key).lock().uncacheable.remove(&key.hash());
    }

    /// Waits until nobody follows a fill that is under way. Cancel-safe.
    pub async fn deserted(&self) {
        while let Some(watch) = self.followed() {
            watch.deserted().await;
        }
    }

    /// A fill that somebody follows.
    fn followed(&self) -> Option<FillWatch<H>> {
        self.shards.iter().find_map(|shard| {
            let shard = shard.lock();
            let mut fills = shard.under_way();
            let followed = fills.find(|fill| fill.followers() > 0);
            followed.map(FillWatch::of)
        })
    }

    /// Fills under way.
    #[must_use]
    pub fn len(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(|shard| shard.lock().under_way().count()).sum()
    }

    /// Whether no fill is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[cfg(test)]
    pub(super) fn remembered_len(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(|shard| shard.lock().uncacheable.len()).sum()
    }

    /// Takes a fill that has ended off the table.
    pub(super) fn release(&self, key: &CacheKey, ended: &Arc<Fill<H>>) {
        let mut shard = self.shard(key).lock();
        self.ended.fetch_add(1, Ordering::Release);
        shard.detached.retain(|fill| !Arc::ptr_eq(fill, ended));
        let held = shard.fills.get(&key.hash());
        if held.is_some_and(|(_, fill)| Arc::ptr_eq(fill, ended)) {
            shard.fills.remove(&key.hash());
        }
    }

    fn shard(&self, key: &CacheKey) -> &Mutex<Shard<H>> {
        let count = u128::try_from(self.shards.len()).unwrap_or(1);
        let index = usize::try_from(key.hash() % count).unwrap_or(0);
        self.shards
            .get(index)
            .expect("the index is below the count")
    }
}
