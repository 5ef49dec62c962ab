//! What moves objects between the tiers: reads are counted as they come, and
//! a thread of its own makes the copies, so that no request waits for one.

use super::Cache;
use super::evacuate::evacuate;
use crate::base::simulated::is_simulated;
use crate::cache::object::Stored;
use crate::cache::tier::Sketch;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use tokio::runtime::Builder;
use tokio::sync::{Notify, Semaphore};

/// Copies that may wait, and the bytes of their heads and bodies.
const JOBS_MAX: usize = 4096;
const BYTES_MAX: usize = 32 << 20;
/// Long objects that are copied at a time, each a fragment in memory.
const LONG_COPIES: usize = 2;

/// The copies that wait or are being made.
#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Arc<Stored>>,
    /// The keys of those that wait and of those being made.
    keys: HashSet<u128>,
    /// What waits or is being made keeps so many bytes in memory.
    bytes: usize,
    stopped: bool,
}

impl Queue {
    /// Lets a copy of `stored` wait, unless one does already. False when
    /// there is no room.
    fn push(&mut self, stored: &Arc<Stored>) -> bool {
        let hash = stored.key.hash();
        if self.stopped || self.keys.contains(&hash) {
            return true;
        }
        let bytes = self.bytes + held_bytes(stored);
        if self.jobs.len() >= JOBS_MAX || bytes > BYTES_MAX {
            return false;
        }
        self.bytes = bytes;
        self.keys.insert(hash);
        self.jobs.push_back(Arc::clone(stored));
        true
    }

    fn stop(&mut self) {
        self.stopped = true;
        while let Some(stored) = self.jobs.pop_front() {
            self.end(&stored);
        }
    }

    fn end(&mut self, stored: &Stored) {
        self.keys.remove(&stored.key.hash());
        self.bytes = self.bytes.saturating_sub(held_bytes(stored));
    }
}

fn held_bytes(stored: &Stored) -> usize {
    let chunks = stored.chunks.iter().flatten();
    stored.meta.len() + chunks.map(Bytes::len).sum::<usize>()
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Told when there is something to copy.
    wake: Notify,
    /// Told when what the cursors come to is to be looked at.
    walk: Notify,
    /// Told when something was done.
    done: Notify,
}

impl Shared {
    fn next(&self) -> Option<Arc<Stored>> {
        self.queue.lock().jobs.pop_front()
    }

    fn end(&self, stored: &Stored) {
        self.queue.lock().end(stored);
        self.done.notify_waiters();
    }
}

/// The counts of reads, the copies that wait, and the thread that makes them.
#[derive(Debug)]
pub(super) struct Mover {
    shared: Arc<Shared>,
    sketch: OnceLock<Sketch>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.stop();
        // The thread may be the one that held the cache last.
        let own = std::thread::current().id();
        if let Some(thread) = self.thread.take().filter(|t| t.thread().id() != own) {
            drop(thread.join());
        }
    }
}

impl Mover {
    /// Starts the thread. If the system gives none, nothing is copied.
    pub(super) fn start(cache: Weak<Cache>) -> Self {
        let shared = Arc::new(Shared::default());
        if is_simulated() {
            return Self {
                shared,
                sketch: OnceLock::new(),
                thread: None,
            };
        }
        let work = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("strata-tier".into());
        let started = Builder::new_current_thread()
            .build()
            .and_then(|runtime| thread.spawn(move || runtime.block_on(run(cache, work))));
        if let Err(error) = &started {
            tracing::error!(%error, "no thread to copy between tiers: nothing is promoted");
            shared.queue.lock().stop();
        }
        Self {
            shared,
            sketch: OnceLock::new(),
            thread: started.ok(),
        }
    }

    /// Counts a read of the key. Gives how often it was read of late; `keys`
    /// says how many keys to tell apart.
    pub(super) fn count(&self, hash: u128, keys: impl FnOnce() -> u64) -> u8 {
        self.sketch.get_or_init(|| Sketch::new(keys())).add(hash)
    }

    /// Has an object copied to where it belongs when it is its turn. False when
    /// too many wait.
    pub(super) fn offer(&self, stored: &Arc<Stored>) -> bool {
        let taken = self.shared.queue.lock().push(stored);
        self.shared.wake.notify_one();
        taken
    }

    /// What the thread does when it is woken, one copy after the other.
    #[cfg(test)]
    pub(super) async fn step(&self, cache: &Cache) {
        while let Some(stored) = self.shared.next() {
            cache.carry(&stored).await;
            self.shared.end(&stored);
        }
        cache.evacuate().await;
    }

    /// Has the thread look at what the cursors come to.
    pub(super) fn wake(&self) {
        self.shared.walk.notify_one();
    }

    /// Takes no more, and forgets what waits; copies under way end early.
    pub(super) fn stop(&self) {
        self.shared.queue.lock().stop();
        self.shared.wake.notify_one();
        self.shared.walk.notify_one();
    }

    /// Whether copies are to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.shared.queue.lock().stopped
    }

    /// Waits until nothing is left to be copied.
    pub(super) async fn settled(&self) {
        loop {
            let done = self.shared.done.notified();
            tokio::pin!(done);
            done.as_mut().enable();
            if self.shared.queue.lock().keys.is_empty() {
                return;
            }
            done.await;
        }
    }
}

async fn run(cache: Weak<Cache>, shared: Arc<Shared>) {
    tokio::join!(walk(&cache, &shared), carry(&cache, &shared));
}

/// Walks each stripe by itself: a disk that is silent holds up no other's walk.
async fn walk(cache: &Weak<Cache>, shared: &Shared) {
    loop {
        // Woken only by who has the cache: before that it may not be made yet.
        shared.walk.notified().await;
        let cache = cache.upgrade().filter(|cache| !cache.mover.is_stopped());
        let Some(cache) = cache else { return };
        for stripe in cache.volume.stripes() {
            tokio::spawn(evacuate(Arc::clone(&cache), stripe));
        }
    }
}

/// Makes the copies that wait.
async fn carry(cache: &Weak<Cache>, shared: &Arc<Shared>) {
    let long_copies = Arc::new(Semaphore::new(LONG_COPIES));
    loop {
        shared.wake.notified().await;
        while let Some(stored) = shared.next() {
            let Some(cache) = cache.upgrade() else {
                return;
            };
            if stored.fragments.is_none() {
                cache.carry(&stored).await;
                shared.end(&stored);
                continue;
            }
            // Short objects do not wait for long ones.
            let (shared, permits) = (Arc::clone(shared), Arc::clone(&long_copies));
            tokio::spawn(async move {
                let permit = permits.acquire_owned().await;
                cache.carry(&stored).await;
                shared.end(&stored);
                drop(permit);
            });
        }
        if shared.queue.lock().stopped {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{CacheKey, ObjectKind};

    fn stored(n: usize, bytes: usize) -> Arc<Stored> {
        Arc::new(Stored {
            key: CacheKey::of_url(format!("http://a/{n}")),
            kind: ObjectKind::Object,
            meta: Bytes::new(),
            epoch: 0,
            body_len: 0,
            chunks: Some(Box::from([Bytes::from(vec![0; bytes])])),
            in_part: false,
            pinned_until: None,
            fragments: None,
            home: None,
        })
    }

    #[test]
    fn a_key_waits_once_and_again_when_its_copy_has_ended() {
        let mut queue = Queue::default();
        let object = stored(1, 10);
        assert!(queue.push(&object) && queue.push(&object));
        assert_eq!((queue.jobs.len(), queue.bytes), (1, 10));
        queue.jobs.clear();
        assert!(queue.push(&object));
        assert_eq!(queue.jobs.len(), 0, "it is being made");
        queue.end(&object);
        assert!(queue.push(&object));
        assert_eq!((queue.jobs.len(), queue.bytes), (1, 10));
    }

    #[test]
    fn neither_jobs_nor_their_bytes_grow_without_end() {
        let mut queue = Queue::default();
        let small = (0..).find(|n| !queue.push(&stored(*n, 1)));
        assert_eq!(small, Some(JOBS_MAX));
        let mut queue = Queue::default();
        let large = (0..).find(|n| !queue.push(&stored(*n, 1 << 20)));
        assert_eq!(large, Some(32));
    }
}
