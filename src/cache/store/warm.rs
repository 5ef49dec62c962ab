//! The RAM cache over a restart: the names of what is hottest are kept in a
//! file of the state directory, and read ahead after a start.
//!
//! One object at a time, at a bounded rate, by a thread of its own, and only
//! while RAM has room: no request waits for it, and nothing that a client
//! brought leaves for it. What it reads enters RAM as any read does, so a purge
//! or an update in between wins. A damaged file is a cold RAM.

use super::Cache;
use super::evacuate::of_head;
use crate::base::simulated::is_simulated;
use crate::cache::format::hot_keys::{HotKey, HotKeysHeader, KEYS_MAX, encode_hot_keys};
use crate::cache::format::{Unverified, low64};
use crate::cache::object::Stored;
use crate::cache::volume::{LiveStripe, Located};
use crate::metrics::Metric;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{HashSet, VecDeque};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::watch;

/// The file's name.
const FILE: &str = "ram.keys";
/// RAM is warm at so many tenths of its size.
const WARM_TENTHS: u64 = 9;
/// How often it is asked whether saves are wanted again.
const SAVES_OFF: Duration = Duration::from_secs(60);

/// How far the thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Warming,
    Warm,
    Stopped,
}

#[derive(Debug)]
struct Shared {
    file: PathBuf,
    /// Keys that are yet to be read ahead, hottest first.
    left: Mutex<VecDeque<HotKey>>,
    stage: watch::Sender<Stage>,
}

/// The thread that reads ahead, and then saves from time to time.
#[derive(Debug)]
pub(super) struct Warmer {
    /// `None` where there is only RAM, or no state directory.
    shared: Option<Arc<Shared>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Warmer {
    fn drop(&mut self) {
        self.stop();
        // The thread may be the one that held the cache last.
        let own = std::thread::current().id();
        let thread = self.thread.get_mut().take();
        if let Some(thread) = thread.filter(|t| t.thread().id() != own) {
            drop(thread.join());
        }
    }
}

impl Warmer {
    /// What the last run left in `dir`, to be read ahead.
    pub(super) fn over(dir: Option<&Path>) -> Self {
        let shared = dir.map(|dir| {
            let file = dir.join(FILE);
            let left = Mutex::new(read(&file).into());
            let stage = watch::Sender::new(Stage::Warming);
            Arc::new(Shared { file, left, stage })
        });
        Self {
            shared,
            thread: Mutex::default(),
        }
    }

    /// Starts the thread. If the system gives none, RAM begins cold.
    pub(super) fn begin(&self, cache: Weak<Cache>) {
        let Some(shared) = self.shared.clone().filter(|_| !is_simulated()) else {
            return;
        };
        let thread = std::thread::Builder::new().name("strata-warm".into());
        let started = Builder::new_current_thread()
            .enable_time()
            .build()
            .and_then(|runtime| thread.spawn(move || runtime.block_on(run(&cache, &shared))));
        match started {
            Ok(thread) => *self.thread.lock() = Some(thread),
            Err(error) => {
                tracing::error!(%error, "no thread to read ahead: the RAM cache begins cold");
                self.stop();
            }
        }
    }

    /// Objects that are yet to be read ahead, the one being read included.
    pub(super) fn left(&self) -> u64 {
        let left = self.shared.as_ref();
        let left = left.map_or(0, |shared| shared.left.lock().len());
        u64::try_from(left).unwrap_or(u64::MAX)
    }

    /// Reads no more ahead, and saves no more.
    pub(super) fn stop(&self) {
        if let Some(shared) = &self.shared {
            shared.stage.send_replace(Stage::Stopped);
        }
    }
}

/// The keys of a file; none of one that is not there or damaged.
fn read(file: &Path) -> Vec<HotKey> {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "the RAM cache begins cold");
            return Vec::new();
        }
    };
    let keys = Unverified::<HotKeysHeader>::new(&bytes).verify();
    let keys = keys.inspect_err(|error| {
        tracing::warn!(file = %file.display(), %error, "the RAM cache begins cold");
    });
    keys.unwrap_or_default()
}

/// Puts the file in place of the older one, whole or not at all.
fn write(file: &Path, keys: &[HotKey]) -> io::Result<()> {
    let new = file.with_extension("new");
    let mut to = File::create(&new)?;
    to.write_all(&encode_hot_keys(keys))?;
    to.sync_all()?;
    fs::rename(&new, file)
}

async fn run(cache: &Weak<Cache>, shared: &Shared) {
    let mut stage = shared.stage.subscribe();
    tokio::select! {
        // An error would mean that the cache is gone.
        ended = stage.wait_for(|stage| *stage == Stage::Stopped) => drop(ended),
        () = warm_then_save(cache, shared) => {}
    }
}

async fn warm_then_save(cache: &Weak<Cache>, shared: &Shared) {
    warm(cache, shared).await;
    shared.left.lock().clear();
    shared.stage.send_if_modified(|stage| {
        let is_new = *stage == Stage::Warming;
        *stage = (*stage).max(Stage::Warm);
        is_new
    });
    while let Some(every) = cache.upgrade().map(|cache| cache.live.load().save_every) {
        tokio::time::sleep(if every.is_zero() { SAVES_OFF } else { every }).await;
        let cache = cache.upgrade();
        cache.inspect(|cache| cache.save_hot_keys());
    }
}

/// Holds the cache only between two waits: whoever lets it go must not have to
/// wait for a device.
async fn warm(cache: &Weak<Cache>, shared: &Shared) {
    let stripes = cache.upgrade().map(|cache| cache.volume.stripes());
    for stripe in stripes.unwrap_or_default() {
        stripe.judged().await;
    }
    loop {
        let next = shared.left.lock().front().copied();
        let Some((key, cached)) = next.zip(cache.upgrade()) else {
            return;
        };
        let rate = cached.live.load().warm_rate;
        if rate == 0 || cached.is_ram_warm() {
            return;
        }
        let holder = cached.holder_ahead(key);
        drop(cached);
        let bytes = match holder {
            Some(stripe) => read_ahead(cache, key, &stripe).await,
            None => None,
        };
        let bytes = bytes.unwrap_or(0);
        shared.left.lock().pop_front();
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
        let pause = u64::try_from(nanos).unwrap_or(u64::MAX);
        tokio::time::sleep(Duration::from_nanos(pause)).await;
    }
}

/// Reads a key's object into RAM; the bytes that were read.
async fn read_ahead(cache: &Weak<Cache>, key: HotKey, stripe: &Arc<LiveStripe>) -> Option<u64> {
    let accept = |located: Located| {
        let is_sure = !located.place.suspect;
        let stored = of_head(stripe, &located).filter(|_| is_sure)?;
        (stored.key.hash() == key.hash).then_some(stored)
    };
    let stored = stripe.find(key.hash, accept).await.ok()?;
    let bytes = stored.body_len;
    cache.upgrade().filter(|cache| cache.ram_takes(bytes))?;
    let chunks = body(&stored).await?;
    cache.upgrade()?.admit_ahead(stored, &chunks);
    Some(bytes)
}

/// The name of an object that lies on a stripe.
fn hot_key(stored: &Stored) -> Option<HotKey> {
    let home = stored.home.as_ref()?;
    Some(HotKey {
        hash: stored.key.hash(),
        stripe: low64(home.stripe.uuid),
    })
}

/// The whole body, if it can be had.
async fn body(stored: &Stored) -> Option<Vec<Bytes>> {
    if let Some(chunks) = &stored.chunks {
        return Some(chunks.to_vec());
    }
    let fragments = stored.fragments.as_ref()?;
    let mut chunks = Vec::new();
    for index in 0..fragments.count(stored.body_len) {
        chunks.push(fragments.read(index).await.ok()?);
    }
    let length: usize = chunks.iter().map(Bytes::len).sum();
    (u64::try_from(length) == Ok(stored.body_len)).then_some(chunks)
}

impl Cache {
    /// Waits until what was hot before the start has been read ahead, as far as
    /// it will be.
    pub async fn warmed(&self) {
        if let Some(shared) = &self.warmer.shared {
            let mut stage = shared.stage.subscribe();
            // The sender is held here: it does not go away.
            drop(stage.wait_for(|stage| *stage > Stage::Warming).await);
        }
    }

    /// Writes down what is hottest in RAM, and what is yet to be read ahead.
    pub(super) fn save_hot_keys(&self) {
        let Some(shared) = &self.warmer.shared else {
            return;
        };
        if self.live.load().save_every.is_zero() {
            return;
        }
        let named = self.ram.hottest(KEYS_MAX, |stored| hot_key(stored));
        let mut keys: Vec<HotKey> = named.into_iter().flatten().collect();
        let held: HashSet<u128> = keys.iter().map(|key| key.hash).collect();
        let left = shared.left.lock().clone();
        keys.extend(left.into_iter().filter(|key| !held.contains(&key.hash)));
        let saved = u64::try_from(keys.len().min(KEYS_MAX)).unwrap_or(u64::MAX);
        match write(&shared.file, &keys) {
            Ok(()) => self.counters.set(Metric::CacheRamCacheSaved, saved),
            Err(error) => tracing::warn!(file = %shared.file.display(), %error,
                "what is hot in RAM could not be saved: the next start begins colder"),
        }
    }

    /// Whether RAM is as full as reading ahead may make it.
    fn is_ram_warm(&self) -> bool {
        let ram = self.ram.status();
        ram.bytes_used >= ram.bytes_total / 10 * WARM_TENTHS
    }

    /// The stripe to read a key from ahead, if it is in use; none if RAM has it.
    fn holder_ahead(&self, key: HotKey) -> Option<Arc<LiveStripe>> {
        let mut stripes = self.volume.stripes().into_iter();
        let holder = stripes.find(|stripe| low64(stripe.uuid) == key.stripe);
        holder.filter(|_| self.ram.peek(key.hash).is_none())
    }

    /// Gives RAM an object that was read ahead, unless something newer came.
    fn admit_ahead(&self, stored: Stored, chunks: &[Bytes]) {
        let hash = stored.key.hash();
        if self.ram.peek(hash).is_some() {
            return;
        }
        self.ram.remember(hash);
        let bytes = stored.body_len;
        self.admit_read(&Arc::new(stored), chunks);
        self.counters.add(Metric::CacheRamCacheWarmed, 1);
        self.counters.add(Metric::CacheRamCacheWarmedBytes, bytes);
    }
}
