//! The side of a fill that follows.

use super::{Failure, Fill, Phase, Shared, bytes};
use bytes::Bytes;
use std::sync::Arc;

/// What came of the head.
#[derive(Debug)]
pub enum HeadEvent<H> {
    /// It can be judged, and its body read.
    Head(Arc<H>),
    /// The stored response was validated: look into the cache again.
    Refreshed,
    /// It can't be shared: fetch for yourself.
    Uncacheable,
    /// None came.
    Failed(Failure),
}

/// What came of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// A part of it.
    Data(Bytes),
    /// Its end: everything was handed out.
    End,
    /// This follower fell out of the window, which begins at this byte by now:
    /// what lies before it is to be had elsewhere, and [`FillReader::resume`]
    /// goes on from there.
    Behind(u64),
    /// It broke off.
    Failed(Failure),
}

/// A follower of a fill. Dropped, it leaves.
#[derive(Debug)]
pub struct FillReader<H> {
    fill: Arc<Fill<H>>,
    id: usize,
    at: u64,
}

impl<H> FillReader<H> {
    pub(super) fn join(fill: &Arc<Fill<H>>) -> Self {
        let id = fill.shared.lock().places.join();
        Self {
            fill: Arc::clone(fill),
            id,
            at: 0,
        }
    }

    /// Waits for the head, or for the news that there is none.
    pub async fn head(&mut self) -> HeadEvent<H> {
        self.when(|shared, _| match &shared.phase {
            Phase::Heading => None,
            Phase::Streaming(head) | Phase::Done(head) => Some(HeadEvent::Head(Arc::clone(head))),
            Phase::Refreshed => Some(HeadEvent::Refreshed),
            Phase::Uncacheable => Some(HeadEvent::Uncacheable),
            Phase::Failed(failure) => Some(HeadEvent::Failed(failure.clone())),
        })
        .await
    }

    /// Waits for the next part of the body. Cancel-safe.
    pub async fn next(&mut self) -> Next {
        let id = self.id;
        let next = self.when(|shared, at| take(shared, at, id)).await;
        self.fill.room.notify_waiters();
        next
    }

    /// The next part, if it is there already.
    pub fn now(&mut self) -> Option<Next> {
        let mut shared = self.fill.shared.lock();
        let next = take(&mut shared, &mut self.at, self.id);
        drop(shared);
        self.fill.room.notify_waiters();
        next
    }

    /// Whether the window has moved past this follower.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.at < self.fill.shared.lock().window.base()
    }

    /// Goes on at byte `at`. It may be yet to come: what is stored is ahead of
    /// the window by a piece, so that who read it back there must wait.
    pub fn resume(&mut self, at: u64) {
        self.at = at;
        let mut shared = self.fill.shared.lock();
        let place = at.min(shared.window.total());
        shared.places.note(self.id, Some(place));
    }

    /// Asks `what` now and after each event until it has an answer; it is told
    /// whether the fill is over, and must have one then. The fill is not locked
    /// meanwhile. Cancel-safe.
    pub async fn until<T>(&self, mut what: impl FnMut(bool) -> Option<T>) -> T {
        loop {
            let more = self.fill.more.notified();
            let mut more = std::pin::pin!(more);
            more.as_mut().enable();
            let is_over = self.fill.shared.lock().phase.is_over();
            if let Some(answer) = what(is_over) {
                return answer;
            }
            more.await;
        }
    }

    /// Asks `what` now and after each event, until it has an answer.
    async fn when<T>(&mut self, mut what: impl FnMut(&mut Shared<H>, &mut u64) -> Option<T>) -> T {
        let fill = Arc::clone(&self.fill);
        loop {
            let more = fill.more.notified();
            let mut more = std::pin::pin!(more);
            more.as_mut().enable();
            if let Some(answer) = what(&mut fill.shared.lock(), &mut self.at) {
                return answer;
            }
            more.await;
        }
    }
}

/// The part at `at`, or how it ended there.
fn take<H>(shared: &mut Shared<H>, at: &mut u64, id: usize) -> Option<Next> {
    if *at < shared.window.base() {
        return Some(behind(shared, id));
    }
    if let Some(chunk) = shared.window.chunk_at(*at) {
        *at += bytes(&chunk);
        shared.places.note(id, Some(*at));
        return Some(Next::Data(chunk));
    }
    match &shared.phase {
        Phase::Done(_) => Some(Next::End),
        Phase::Failed(failure) => Some(Next::Failed(failure.clone())),
        Phase::Heading | Phase::Streaming(_) | Phase::Refreshed | Phase::Uncacheable => None,
    }
}

/// Out of the window: this follower holds nobody back any more.
fn behind<H>(shared: &mut Shared<H>, id: usize) -> Next {
    shared.places.note(id, None);
    match &shared.phase {
        Phase::Failed(failure) => Next::Failed(failure.clone()),
        Phase::Heading
        | Phase::Streaming(_)
        | Phase::Done(_)
        | Phase::Refreshed
        | Phase::Uncacheable => Next::Behind(shared.window.base()),
    }
}

impl<H> Drop for FillReader<H> {
    fn drop(&mut self) {
        self.fill.shared.lock().places.leave(self.id);
        self.fill.room.notify_waiters();
    }
}
