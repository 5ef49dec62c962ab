//! The store of a fill, as its followers see it.

use crate::cache::{BodyReader, NotStored, ObjectWriter, Room};
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// A store that gets on by nothing for so long is given up.
const PATIENCE: Duration = Duration::from_secs(3);

/// An object being stored: written by the fetch, read back by followers that
/// fell behind. Its lock is held for memory work only.
#[derive(Clone, Debug)]
pub struct Storing(Arc<Mutex<Option<ObjectWriter>>>);

/// How far a store may lag behind its body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lag {
    /// By the piece that is growing: with one that waits for room, and what the
    /// fill holds for its followers, 4 MiB.
    UnderWay,
    /// By nothing, and there is room for the object's end.
    End,
}

impl Lag {
    /// The room that a store which lags further than this waits for.
    fn room(self, writer: &ObjectWriter) -> Option<Room> {
        match self {
            Self::UnderWay => writer.room(false),
            Self::End => writer.room(true),
        }
    }
}

impl Storing {
    pub(super) fn new(writer: Option<ObjectWriter>) -> Self {
        Self(Arc::new(Mutex::new(writer)))
    }

    /// Whether the object is still being stored.
    pub(in crate::proxy) fn is_open(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Adds to the object; a store that fails is given up.
    pub(super) fn push(&self, data: &Bytes) -> Result<(), NotStored> {
        let mut writer = self.0.lock();
        let pushed = writer.as_mut().map_or(Ok(()), |writer| writer.push(data));
        if pushed.is_err() {
            *writer = None;
        }
        pushed
    }

    /// Waits until the store lags no further than `most`. One that gets on by
    /// nothing for three seconds is given up: no client waits longer for a
    /// device that does not answer.
    ///
    /// # Errors
    /// The store is lost then, as by [`Self::push`].
    pub(super) async fn keep_up(&self, most: Lag) -> Result<(), NotStored> {
        let mut until = Instant::now() + PATIENCE;
        while let Some((room, waiting)) = self.behind(most) {
            if timeout_at(until, room.come()).await.is_err() {
                room.note_stall();
                return self.give_up();
            }
            self.push(&Bytes::new())?;
            if waiting == 0 {
                break;
            }
            if self.waiting() < waiting {
                until = Instant::now() + PATIENCE;
            }
        }
        Ok(())
    }

    /// The room to wait for, and the bytes that do so; `None` for a store that
    /// lags no further than `most`, or is none any more.
    fn behind(&self, most: Lag) -> Option<(Room, u64)> {
        let writer = self.0.lock();
        let writer = writer.as_ref()?;
        Some((most.room(writer)?, writer.waiting()))
    }

    fn waiting(&self) -> u64 {
        self.0.lock().as_ref().map_or(0, ObjectWriter::waiting)
    }

    fn give_up(&self) -> Result<(), NotStored> {
        let writer = self.0.lock().take();
        writer.map_or(Ok(()), |writer| {
            writer.give_up();
            Err(NotStored::Backlog)
        })
    }

    /// Gives the store up: what is still to come may not be stored.
    pub(super) fn abandon(&self) {
        drop(self.0.lock().take());
    }

    /// Commits the object if it is still being stored. Under the lock, so that
    /// who finds no store any more finds the object in the cache.
    pub(super) fn commit(&self) -> Option<Result<(), NotStored>> {
        let mut writer = self.0.lock();
        writer.take().map(ObjectWriter::commit)
    }

    /// A reader of what is stored from byte `from` on, if that much is.
    pub(in crate::proxy) fn readback(&self, from: u64) -> Option<BodyReader> {
        self.0.lock().as_ref()?.readback(from)
    }
}
