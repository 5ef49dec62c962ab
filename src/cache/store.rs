//! The façade: what the proxy reads from, stores into and purges.
//!
//! A key's changes are made under the lock of its slot, which is held for
//! memory work only. So a copy that was read before a change never gets a
//! place after it.

mod counters;
mod slots;
mod thread;

use super::inspect::{CacheStatus, Readiness, SpanReport};
use super::invalidation::Rules;
use super::object::{CopyRef, Hit, Miss, NewObject, NotStored, ObjectWriter, PurgeError, Stored};
use super::options::CacheOptions;
use super::ram::{Admission, RamCache};
use super::{CacheKey, Tier};
use crate::base::clock::Clock;
use crate::base::size::MIB;
use crate::metrics::{Metric, Registry};
use bytes::Bytes;
use counters::Counters;
use slots::Slots;
use std::sync::Arc;
use thread::CacheThread;

/// The RAM cache's size when nobody sets it and there is no directory to
/// derive it from, in bytes.
const RAM_ALONE: u64 = 256 * MIB;
/// Longest metadata, in bytes.
const META_MAX: usize = 128 << 10;

/// The cache: RAM above the fast tier above the capacity tier. Shared by all
/// threads.
#[derive(Debug)]
pub struct Cache {
    ram: RamCache<Arc<Stored>>,
    rules: Rules,
    slots: Slots,
    counters: Counters,
    thread: CacheThread,
    options: CacheOptions,
}

impl Cache {
    /// Opens the cache over the spans of `options`. A span that can't be used
    /// is left out and reported, it never fails the opening; without spans the
    /// cache is in RAM only. Blocks while spans are opened.
    #[must_use]
    pub fn open(
        options: CacheOptions,
        clock: Arc<dyn Clock>,
        registry: &Registry,
    ) -> (Arc<Self>, Vec<SpanReport>) {
        drop(clock);
        let state = thread::open_state(options.state_dir.as_deref());
        let unfinished = state.unfinished_purges().unwrap_or_default();
        let cache = Arc::new_cyclic(|cache| Self {
            ram: RamCache::new(options.ram.size.unwrap_or(RAM_ALONE), &options.ram),
            rules: Rules::new(state.epoch, &unfinished),
            slots: Slots::new(),
            counters: Counters::new(registry),
            thread: CacheThread::start(cache.clone(), state),
            options,
        });
        cache.publish();
        (cache, Vec::new())
    }

    /// What the RAM cache holds under `key`: no I/O, no waiting, nothing
    /// allocated that grows with the object. A hit is counted, a miss is not:
    /// [`Cache::read`] is to follow.
    #[must_use]
    pub fn read_ram(&self, key: &CacheKey) -> Option<Hit> {
        let stored = self.ram.read(key.hash())?;
        if stored.key != *key {
            return None;
        }
        self.counters.read(Tier::Ram, stored.kind);
        Some(Hit::in_memory(stored, Tier::Ram))
    }

    /// What the fastest tier that holds `key` has under it: at most one read
    /// of a device for a head and a body of up to one fragment.
    ///
    /// # Errors
    /// Why there is nothing; it is counted, and never more than a miss.
    pub async fn read(&self, key: &CacheKey) -> Result<Hit, Miss> {
        if let Some(hit) = self.read_ram(key) {
            return Ok(hit);
        }
        self.counters.add(Metric::CacheRamCacheMisses, 1);
        self.counters.add(Metric::CacheReadFailure, 1);
        Err(Miss::Absent)
    }

    /// The epoch of now: to be taken before the request that a fill stores
    /// the answer of is sent, and given to [`Cache::writer`].
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.rules.epoch()
    }

    /// Begins to store an object.
    ///
    /// # Errors
    /// Why it can't be stored, as far as that is known before its body.
    pub fn writer(self: &Arc<Self>, object: NewObject) -> Result<ObjectWriter, NotStored> {
        self.check_new(&object)
            .inspect_err(|no| self.counters.write(Err(*no)))?;
        self.counters.add(Metric::CacheWriteActive, 1);
        Ok(ObjectWriter::new(Arc::clone(self), object))
    }

    /// Gives the copy that `copy` names the head `meta`, its body unchanged,
    /// if it is still the newest: the 304 of a revalidation. `key` is the key
    /// that it was read by.
    ///
    /// # Errors
    /// `Replaced` when something newer came or it was invalidated; then the
    /// answer at hand may still be used for its own request.
    pub fn refresh(&self, copy: &CopyRef, key: &CacheKey, meta: Bytes) -> Result<(), NotStored> {
        let outcome = self.refresh_copy(copy, key, meta);
        self.counters.update(outcome.is_ok());
        outcome
    }

    /// Takes `key` out of every tier, at once, and refuses the fills of it
    /// that are under way (RFC 9111, section 4.4).
    pub fn remove(&self, key: &CacheKey) {
        let found = self.invalidate(key.hash()).1;
        self.counters.remove(found);
    }

    /// Takes `key` out of every tier for good: it does not come back after a
    /// crash either. True when something was there.
    ///
    /// # Errors
    /// `State` when that could not be made durable (it is gone from memory
    /// all the same), `Closed` after a shutdown.
    pub async fn purge(&self, key: &CacheKey) -> Result<bool, PurgeError> {
        let (epoch, found) = self.invalidate(key.hash());
        self.thread.begin_purge(key.hash(), epoch).await?;
        self.counters.remove(found);
        Ok(found)
    }

    /// Writes what waits to be written; returns when it is on the devices.
    pub async fn sync(&self) {
        self.publish();
    }

    /// Stops cleanly: everything stored is on the devices on return, and
    /// later stores are refused.
    pub async fn shutdown(&self) {
        self.sync().await;
        self.thread.stop().await;
    }

    /// The state of the cache at this moment.
    #[must_use]
    pub fn status(&self) -> CacheStatus {
        CacheStatus {
            readiness: Readiness::Ready,
            spans: Vec::new(),
            ram: self.ram.status(),
            epoch: self.rules.epoch(),
            rules: self.rules.len(),
        }
    }

    /// Changes the RAM cache's size in bytes; what no longer fits leaves.
    pub fn set_ram_size(&self, bytes: u64) {
        self.ram.set_size(bytes);
        self.publish();
    }

    /// Changes the RAM cache's cutoff in bytes, 0 for none; bodies that are
    /// not below it leave.
    pub fn set_ram_cutoff(&self, bytes: u64) {
        self.ram.set_cutoff(bytes);
        self.publish();
    }

    /// Sets the gauges of the cache's metrics to what holds now.
    pub fn publish(&self) {
        let ram = self.ram.status();
        self.counters
            .set(Metric::CacheRamCacheTotalBytes, ram.bytes_total);
        self.counters
            .set(Metric::CacheRamCacheBytesUsed, ram.bytes_used);
    }

    pub(super) fn fragment_bytes(&self) -> usize {
        usize::try_from(self.options.target_fragment_size).unwrap_or(usize::MAX)
    }

    pub(super) fn count_write(&self, outcome: Result<(), NotStored>) {
        self.counters.write(outcome);
    }

    pub(super) fn writer_ended(&self) {
        self.counters.sub(Metric::CacheWriteActive, 1);
    }

    /// Whether a body of this length can be stored at all.
    pub(super) fn check_length(&self, body_len: u64) -> Result<(), NotStored> {
        let limit = self.options.max_doc_size;
        if (limit != 0 && body_len > limit) || !self.ram.takes_body(body_len) {
            return Err(NotStored::TooLarge);
        }
        Ok(())
    }

    /// Makes a complete object the newest one under its key.
    pub(super) fn put(&self, stored: Stored) -> Result<(), NotStored> {
        let hash = stored.key.hash();
        let _slot = self.slots.lock(hash);
        if self.rules.kills_fill(hash, stored.epoch) {
            return Err(NotStored::Invalidated);
        }
        self.admit(stored)
    }

    fn check_new(&self, object: &NewObject) -> Result<(), NotStored> {
        if object.meta.len() > META_MAX {
            return Err(NotStored::MetaTooLong);
        }
        self.check_length(object.body_len.unwrap_or(0))
    }

    fn refresh_copy(&self, copy: &CopyRef, key: &CacheKey, meta: Bytes) -> Result<(), NotStored> {
        if meta.len() > META_MAX {
            return Err(NotStored::MetaTooLong);
        }
        let epoch = self.rules.epoch();
        let _slot = self.slots.lock(key.hash());
        let current = self.ram.peek(key.hash()).ok_or(NotStored::Replaced)?;
        if !Arc::ptr_eq(&current, &copy.0) {
            return Err(NotStored::Replaced);
        }
        self.admit(current.with_meta(meta, epoch))
    }

    fn admit(&self, stored: Stored) -> Result<(), NotStored> {
        let hash = stored.key.hash();
        match self.ram.insert(hash, Arc::new(stored)) {
            Admission::Admitted => Ok(()),
            Admission::Cutoff | Admission::TooLarge => Err(NotStored::TooLarge),
            Admission::FirstSight => Err(NotStored::FirstSight),
        }
    }

    /// Takes a key out; the epoch of the rule, and whether it was there.
    fn invalidate(&self, hash: u128) -> (u64, bool) {
        let _slot = self.slots.lock(hash);
        let epoch = self.rules.add(hash);
        (epoch, self.ram.remove(hash).is_some())
    }
}

#[cfg(test)]
mod tests;
