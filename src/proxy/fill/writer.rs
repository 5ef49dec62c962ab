//! The side of a fill that fetches.

use super::{Failure, Fill, FillReader, FillTable, Phase};
use crate::base::clock::MonoTime;
use crate::cache::CacheKey;
use bytes::Bytes;
use std::sync::Arc;

/// A fill whose head is still to come. Dropped, it wakes everybody: the fill is
/// abandoned.
#[derive(Debug)]
pub struct FillWriter<H> {
    hold: Hold<H>,
}

/// A fill whose body is coming. Dropped before [`FillBody::done`], it fails.
#[derive(Debug)]
pub struct FillBody<H> {
    hold: Hold<H>,
    head: Arc<H>,
}

/// The fill's place in the table; given back when it ends, however it ends.
#[derive(Debug)]
struct Hold<H> {
    fill: Arc<Fill<H>>,
    table: Arc<FillTable<H>>,
    key: CacheKey,
    /// Whether the table knows of it, so that others can follow.
    is_shared: bool,
}

impl<H> Hold<H> {
    fn end(&self, phase: Phase<H>) {
        // Off the table first: who comes later looks into the cache.
        if self.is_shared {
            self.table.release(&self.key, &self.fill);
        }
        self.fill.end(phase);
    }
}

impl<H> Drop for Hold<H> {
    fn drop(&mut self) {
        let over = self.fill.shared.lock().phase.is_over();
        if !over {
            self.end(Phase::Failed(Failure::abandoned()));
        }
    }
}

/// Sees who follows a fill.
#[derive(Debug)]
pub struct FillWatch<H>(Arc<Fill<H>>);

impl<H> FillWatch<H> {
    pub(super) fn of(fill: &Arc<Fill<H>>) -> Self {
        Self(Arc::clone(fill))
    }

    /// Waits until nobody follows. Cancel-safe.
    pub async fn deserted(&self) {
        self.0.deserted().await;
    }
}

impl<H> FillWriter<H> {
    pub(super) const fn new(fill: Arc<Fill<H>>, table: Arc<FillTable<H>>, key: CacheKey) -> Self {
        let hold = Hold {
            fill,
            table,
            key,
            is_shared: true,
        };
        Self { hold }
    }

    /// A fill of one's own, beside the one of the table: for a request that
    /// could not share it.
    #[must_use]
    pub fn unshared(table: &Arc<FillTable<H>>, key: &CacheKey) -> Self {
        let mut writer = Self::new(Fill::new(), Arc::clone(table), key.clone());
        writer.hold.is_shared = false;
        writer
    }

    /// The key that is filled.
    #[must_use]
    pub const fn key(&self) -> &CacheKey {
        &self.hold.key
    }

    /// A reader for the client whose request is fetched: a follower like the
    /// others, there from the beginning.
    #[must_use]
    pub fn reader(&self) -> FillReader<H> {
        FillReader::join(&self.hold.fill)
    }

    /// Tells, beside the fetch, whether anybody still waits for it.
    #[must_use]
    pub fn watch(&self) -> FillWatch<H> {
        FillWatch::of(&self.hold.fill)
    }

    /// A cacheable head has come: followers judge it and read on.
    #[must_use]
    pub fn head(self, head: H) -> FillBody<H> {
        let head = Arc::new(head);
        self.hold.fill.shared.lock().phase = Phase::Streaming(Arc::clone(&head));
        self.hold.table.forget(&self.hold.key);
        self.hold.fill.more.notify_waiters();
        let hold = self.hold;
        FillBody { hold, head }
    }

    /// The response can't be shared: everybody fetches for himself at once, and
    /// the key is remembered from `now` on.
    pub fn uncacheable(self, now: MonoTime) {
        self.hold.table.remember(&self.hold.key, now);
        self.hold.end(Phase::Uncacheable);
    }

    /// The response can't be shared for a reason that lies in the request:
    /// everybody fetches for himself, nothing is remembered.
    pub fn unshareable(self) {
        self.hold.end(Phase::Uncacheable);
    }

    /// What is stored was validated: followers look into the cache again.
    pub fn refreshed(self) {
        self.hold.end(Phase::Refreshed);
    }

    /// No response came.
    pub fn fail(self, failure: Failure) {
        self.hold.end(Phase::Failed(failure));
    }
}

impl<H> FillBody<H> {
    /// Hands a part of the body to the followers. Waits while the fastest of
    /// them is a whole window behind; with none left, it waits for nobody.
    pub async fn push(&self, chunk: Bytes) {
        if chunk.is_empty() {
            return;
        }
        let window = self.hold.table.limits().window;
        loop {
            let room = self.hold.fill.room.notified();
            let mut room = std::pin::pin!(room);
            room.as_mut().enable();
            if self.hold.fill.shared.lock().append(&chunk, window) {
                break;
            }
            room.await;
        }
        self.hold.fill.more.notify_waiters();
    }

    /// Hands a part of the body on without waiting: whoever would lose a byte
    /// of the window has fallen out of it.
    pub fn outrun(&self, chunk: &Bytes) {
        let window = self.hold.table.limits().window;
        self.hold.fill.shared.lock().force(chunk, window);
        self.hold.fill.more.notify_waiters();
    }

    /// What the head told.
    #[must_use]
    pub const fn told(&self) -> &Arc<H> {
        &self.head
    }

    /// Followers that have not left.
    #[must_use]
    pub fn followers(&self) -> usize {
        self.hold.fill.followers()
    }

    /// Waits until nobody follows. Cancel-safe.
    pub async fn deserted(&self) {
        self.hold.fill.deserted().await;
    }

    /// Bytes handed over so far.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.hold.fill.shared.lock().window.total()
    }

    /// The body is whole, and committed to the cache if it is stored.
    pub fn done(self) {
        self.hold.end(Phase::Done(Arc::clone(&self.head)));
    }

    /// The body broke off: nobody may take his part for the whole.
    pub fn fail(self, failure: Failure) {
        self.hold.end(Phase::Failed(failure));
    }
}
