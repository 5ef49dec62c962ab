//! One fetch shared by many requests: a writer, and followers on any thread.
//!
//! ```text
//! Heading ─┬→ Streaming ─┬→ Done
//!          ├→ Refreshed  └→ Failed
//!          ├→ Uncacheable
//!          └→ Failed
//! ```
//!
//! Followers are woken by events, never polled. Memory is bounded: a fill holds
//! the last [`FillLimits::window`] bytes of its body. The writer goes at the
//! pace of the fastest follower, or ahead of all where what they miss can be had
//! elsewhere; one that falls out of the window is told so at once, reads what it
//! missed, and comes back. A writer that is dropped wakes everybody with a
//! failure.

mod parts;
mod places;
mod reader;
mod table;
mod turns;
mod window;
mod writer;

pub use parts::{PartClaim, PartFailure, PartTable, PartWait, Stretch};
pub use reader::{FillReader, HeadEvent, Next};
pub use table::{Claim, FillTable};
pub use turns::{Turn, Turns};
pub use writer::{FillBody, FillWatch, FillWriter};

use super::answer::Answer;
use super::outcome::Outcome;
use bytes::Bytes;
use http::StatusCode;
use parking_lot::Mutex;
use places::Places;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use window::Window;

/// The bounds of fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FillLimits {
    /// Bytes of body that one fill keeps in memory.
    pub window: u64,
    /// Keys remembered as uncacheable.
    pub remembered: usize,
    /// How long they are remembered.
    pub memory: Duration,
}

impl Default for FillLimits {
    fn default() -> Self {
        Self {
            window: 2 << 20,
            remembered: 65_536,
            memory: Duration::from_secs(60),
        }
    }
}

/// Why a fill failed, for each of those who waited for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The outcome it makes of their transactions.
    pub outcome: Outcome,
    /// The answer while nothing was sent.
    pub answer: Answer,
    /// The status that the origin answered with, if it did.
    pub status: Option<StatusCode>,
    /// What happened, in words.
    pub detail: Arc<str>,
}

impl Failure {
    /// The writer went away: whoever still needs the object claims it anew.
    fn abandoned() -> Self {
        Self {
            outcome: Outcome::ClientAbort,
            answer: Answer::OriginClosed,
            status: None,
            detail: "the fill was abandoned".into(),
        }
    }

    /// Whether nobody is to blame but the writer's own client.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.outcome == Outcome::ClientAbort
    }
}

/// Where a fill stands. `H` is what the head tells.
#[derive(Debug)]
enum Phase<H> {
    Heading,
    Streaming(Arc<H>),
    Done(Arc<H>),
    Refreshed,
    Uncacheable,
    Failed(Failure),
}

impl<H> Phase<H> {
    const fn is_over(&self) -> bool {
        !matches!(self, Self::Heading | Self::Streaming(_))
    }
}

/// The state that writer and followers share; its lock is held for memory work
/// only.
#[derive(Debug)]
struct Shared<H> {
    phase: Phase<H>,
    window: Window,
    /// Of all who follow, the client whose request is fetched too.
    places: Places,
}

impl<H> Shared<H> {
    /// The place of the follower that is furthest, of those in the window: one
    /// that fell out of it has nothing more to lose.
    fn fastest(&self) -> Option<u64> {
        self.places.furthest(self.window.base())
    }

    /// Appends a chunk, unless the fastest follower would lose a byte of what
    /// `most` bytes can hold.
    fn append(&mut self, chunk: &Bytes, most: u64) -> bool {
        let fastest = self.fastest();
        let ahead = fastest.map_or(0, |at| self.window.total() - at);
        if ahead > 0 && ahead + bytes(chunk) > most {
            return false;
        }
        self.window.push(chunk.clone(), most);
        let needed = fastest.unwrap_or(self.window.total());
        self.window.trim(most, needed);
        true
    }

    /// Appends a chunk, whoever loses by that what `most` bytes can't hold.
    fn force(&mut self, chunk: &Bytes, most: u64) {
        self.window.push(chunk.clone(), most);
        self.window.trim(most, self.window.total());
    }
}

/// One shared fetch.
#[derive(Debug)]
struct Fill<H> {
    shared: Mutex<Shared<H>>,
    /// Tells followers: more, or another phase.
    more: Notify,
    /// Tells whoever fetches: a follower went on, or left.
    room: Notify,
}

impl<H> Fill<H> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            shared: Mutex::new(Shared {
                phase: Phase::Heading,
                window: Window::default(),
                places: Places::default(),
            }),
            more: Notify::new(),
            room: Notify::new(),
        })
    }

    fn followers(&self) -> usize {
        self.shared.lock().places.count()
    }

    /// Waits until nobody follows.
    async fn deserted(&self) {
        loop {
            let room = self.room.notified();
            let mut room = std::pin::pin!(room);
            room.as_mut().enable();
            if self.followers() == 0 {
                return;
            }
            room.await;
        }
    }

    /// Ends the fill, unless it has ended, and wakes everybody.
    fn end(&self, phase: Phase<H>) {
        let mut shared = self.shared.lock();
        if !shared.phase.is_over() {
            shared.phase = phase;
        }
        drop(shared);
        self.more.notify_waiters();
    }
}

fn bytes(chunk: &Bytes) -> u64 {
    u64::try_from(chunk.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
