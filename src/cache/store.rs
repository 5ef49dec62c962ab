//! The façade: what the proxy reads from, stores into and purges.
//!
//! A key's changes are made under the lock of its slot, which is held for
//! memory work only. So a copy that was read before a change never gets a
//! place after it.

mod admin;
mod begin;
mod clear;
mod counters;
mod deferred;
mod evacuate;
mod find;
mod keep;
mod layout;
mod mover;
mod names;
mod open;
mod pages;
mod parts;
mod promote;
mod share;
mod slots;
mod survey;
mod thread;
mod warm;

pub use admin::{SpanCommandError, init_span};
pub(super) use counters::Counters;
pub use names::SpanName;
pub use survey::{Copy, ListPart, Listed, ScanPart, WalkAt};

use super::hosting::Hosting;
use super::inspect::SpanReport;
use super::invalidation::{Rules, State};
use super::object::{CopyRef, Hit, Miss, NewObject, NotStored, ObjectWriter, PurgeError, Stored};
use super::options::{CacheOptions, LiveOptions};
use super::ram::{RamCache, RamValue};
use super::volume::{LiveStripe, Volume};
use super::{CacheKey, SpanTier, Tier};
use crate::base::clock::Clock;
use crate::metrics::{Metric, Registry};
use arc_swap::ArcSwap;
use bytes::Bytes;
use deferred::DeferredHeads;
use mover::Mover;
use open::SpanEntry;
use parking_lot::Mutex;
use slots::Slots;
use std::fmt;
use std::sync::{Arc, Weak};
use thread::CacheThread;
use warm::Warmer;

/// The cache: RAM above the fast tier above the capacity tier. Shared by all
/// threads.
pub struct Cache {
    me: Weak<Self>,
    ram: RamCache<Arc<Stored>>,
    rules: Rules,
    state: State,
    slots: Slots,
    counters: Arc<Counters>,
    thread: CacheThread,
    clock: Arc<dyn Clock>,
    options: CacheOptions,
    live: ArcSwap<LiveOptions>,
    /// The RAM cache's bytes where no record says them.
    ram_automatic: u64,
    spans: Mutex<Vec<SpanEntry>>,
    /// Held while a span is made or taken into use.
    span_command: Mutex<()>,
    volume: Volume,
    hosting: ArcSwap<Hosting>,
    deferred: DeferredHeads,
    mover: Mover,
    warmer: Warmer,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("volume", &self.volume)
            .finish_non_exhaustive()
    }
}

impl Cache {
    /// Opens the cache over the spans of `options`. A span that can't be used
    /// is left out and reported, it never fails the opening; without spans the
    /// cache is in RAM only, and with spans of which none is usable it holds
    /// nothing. Blocks while spans are opened; what they hold is read behind its
    /// back.
    #[must_use]
    pub fn open(
        options: CacheOptions,
        clock: Arc<dyn Clock>,
        registry: &Registry,
    ) -> (Arc<Self>, Vec<SpanReport>) {
        open::open(options, clock, registry)
    }

    /// What the RAM cache holds under `key`: no I/O, no waiting, nothing
    /// allocated that grows with the object. A hit is counted, a miss is not:
    /// [`Cache::read`] is to follow.
    #[must_use]
    pub fn read_ram(&self, key: &CacheKey) -> Option<Hit> {
        let hit = self.held_in_ram(key)?;
        self.counters.read(&hit);
        Some(hit)
    }

    fn held_in_ram(&self, key: &CacheKey) -> Option<Hit> {
        let stored = self.ram.read(key.hash())?;
        if stored.key != *key {
            return None;
        }
        stored.note_used();
        Some(Hit::of(stored, Tier::Ram))
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
        let active = self.counters.hold(Metric::CacheReadActive);
        let found = self.read_devices(key).await;
        drop(active);
        match &found {
            Ok(hit) => {
                self.counters.read(hit);
                self.note_read(hit);
            }
            Err(_) => self.counters.read_nothing(self.volume_of(key)),
        }
        found
    }

    /// Whether something under `key` was used since it was stored, as far as is
    /// known: it is looked for in memory only, and its text is not.
    #[must_use]
    pub fn was_used(&self, key: &CacheKey) -> bool {
        if self.options.spans.is_empty() {
            return self.ram.peek(key.hash()).is_some();
        }
        let holders = self.volume.holders(key);
        holders.iter().any(|stripe| stripe.was_used(key.hash()))
    }

    /// As [`Cache::read`], for a request whose read was counted before: nothing
    /// is counted.
    ///
    /// # Errors
    /// Why there is nothing.
    pub async fn read_again(&self, key: &CacheKey) -> Result<Hit, Miss> {
        match self.held_in_ram(key) {
            Some(hit) => Ok(hit),
            None => self.read_devices(key).await,
        }
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
            .and_then(|()| self.check_log(&object))
            .inspect_err(|no| self.refuse(&object, *no))?;
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
    /// that are under way (RFC 9111, section 4.4). Durable within a second.
    pub fn remove(&self, key: &CacheKey) {
        let gone = self.invalidate(key);
        self.counters.remove(gone.found);
        if !gone.open_everywhere {
            self.thread.note_missed();
        }
        if !gone.known_everywhere {
            self.thread.free_later(key.hash(), gone.epoch);
        }
    }

    /// Takes `key` out of every tier for good: it does not come back after a
    /// crash either. True when something was there.
    ///
    /// # Errors
    /// `State` when that could not be made durable (it is gone from memory
    /// all the same), `Closed` after a shutdown.
    pub async fn purge(&self, key: &CacheKey) -> Result<bool, PurgeError> {
        let gone = self.invalidate(key);
        let found = gone.found;
        self.counters.remove(found);
        self.thread.begin_purge(key.hash(), gone).await?;
        Ok(found)
    }

    /// Writes what waits to be written; returns when it has been written to
    /// the devices.
    pub async fn sync(&self) {
        self.place_deferred();
        let mut waiting = self.deferred.keys();
        self.flush().await;
        // Heads that waited for another stripe's free rows come after them,
        // whoever gives them their place meanwhile.
        while !waiting.is_empty() {
            let fewer = self.place_deferred();
            self.flush().await;
            waiting.retain(|hash| fewer && self.deferred.get(*hash).is_some());
        }
        self.publish();
    }

    async fn flush(&self) {
        for stripe in self.volume.stripes() {
            stripe.flush().await;
        }
    }

    /// Stops cleanly: everything stored is on the devices on return, and
    /// later stores are refused.
    pub async fn shutdown(&self) {
        self.warmer.stop();
        self.save_hot_keys();
        self.mover.stop();
        self.mover.settled().await;
        self.sync().await;
        // The thread counts how long a device is silent, or nobody would end
        // the wait for it.
        for stripe in self.volume.stripes() {
            stripe.close().await;
        }
        self.thread.stop().await;
    }

    /// [`Cache::configure`] with another cutoff.
    #[cfg(test)]
    fn set_ram_cutoff(&self, ram_cutoff: u64) {
        let live = **self.live.load();
        self.configure(LiveOptions { ram_cutoff, ..live });
    }

    /// Bytes of a full body fragment of what is stored from now on.
    #[must_use]
    pub const fn fragment_bytes(&self) -> u32 {
        self.options.target_fragment_size
    }

    /// Whether the RAM cache would take a body of this length.
    pub(super) fn ram_takes(&self, body_len: u64) -> bool {
        self.ram.takes_body(body_len)
    }

    /// Whether what lies on a stripe may enter the RAM cache.
    pub(super) fn keeps_in_ram(&self, stripe: &LiveStripe) -> bool {
        let volumes = self.options.volumes.iter();
        let mut without = volumes.filter(|volume| !volume.ram_cache);
        !without.any(|volume| u32::from(volume.number) == stripe.volume)
    }

    /// The volume that fills of `key` go to, where volumes are counted.
    fn volume_of(&self, key: &CacheKey) -> Option<u32> {
        let owner = self.counters.has_volumes().then(|| self.fill_owner(key));
        owner.flatten().map(|stripe| stripe.volume)
    }

    /// The stripe that an object under `key` is stored on; `None` where there
    /// is only RAM.
    pub(super) fn owner(&self, key: &CacheKey) -> Result<Option<Arc<LiveStripe>>, NotStored> {
        if self.options.spans.is_empty() {
            return Ok(None);
        }
        let owner = self.fill_owner(key).ok_or(NotStored::NoSpan)?;
        Ok(Some(owner))
    }

    /// On the capacity tier if there is one; by record on the fast one, while
    /// its budget lasts.
    fn fill_owner(&self, key: &CacheKey) -> Option<Arc<LiveStripe>> {
        let fast = self.volume.owner(SpanTier::Fast, key);
        let by_record = self.live.load().tier.fills == SpanTier::Fast;
        if by_record && fast.as_ref().is_some_and(|stripe| stripe.has_budget()) {
            return fast;
        }
        self.volume.owner(SpanTier::Capacity, key).or(fast)
    }

    pub(super) fn count_write(&self, key: &CacheKey, outcome: Result<(), NotStored>) {
        if outcome == Err(NotStored::Backlog) {
            // Pins may hold the cursor back.
            self.mover.wake();
        }
        self.counters.write(self.volume_of(key), outcome);
    }

    pub(super) fn count_pin_refused(&self) {
        self.counters.add(Metric::CachePinsRefused, 1);
    }

    pub(super) fn writer_ended(&self) {
        self.counters.sub(Metric::CacheWriteActive, 1);
    }

    /// Gives the RAM cache a body that was read from a device, if it wants one and
    /// the copy is still the newest. It is copied before the key's slot is locked,
    /// and only if it is wanted.
    pub(super) fn admit_read(&self, stored: &Arc<Stored>, chunks: &[Bytes]) {
        let (hash, body_len) = (stored.key.hash(), stored.body_len());
        let Some(home) = stored
            .home
            .as_ref()
            .filter(|home| self.ram.takes_body(body_len) && self.keeps_in_ram(&home.stripe))
        else {
            return;
        };
        if !self.ram.admits(hash, body_len) {
            return;
        }
        let compact = Arc::new(stored.compact(chunks));
        let _slot = self.slots.lock(hash);
        if home.stripe.holds(hash, home.entry) && !self.rules.kills(&stored.subject()) {
            self.ram.insert_admitted(hash, compact);
        }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        for entry in &*self.spans.lock() {
            entry.let_go();
        }
    }
}

#[cfg(test)]
mod tests;
