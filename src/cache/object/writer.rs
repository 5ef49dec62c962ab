//! Storing an object while its body arrives.

use super::answer::{NewObject, NotStored, ObjectKind};
use super::gather::Gather;
use super::reader::BodyReader;
use super::room::Room;
use super::stored::{Fragments, Stored};
use crate::base::prng::system_u128;
use crate::cache::format::fragment::{FragmentKind, fragment_bytes};
use crate::cache::format::object::{PinnedFragment, body_key};
use crate::cache::store::Cache;
use crate::cache::stripe::NewFragment;
use crate::cache::tier::WriteCause;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of complete pieces that may wait in a writer for room on its stripe.
const WAITING_MAX: u64 = 4 << 20;
/// Pieces to come whose directory pages are asked for.
const PAGES_AHEAD: u64 = 4;

/// A store under way. Nothing of it is found by readers before
/// [`ObjectWriter::commit`]; dropping it abandons the store.
#[derive(Debug)]
pub struct ObjectWriter {
    cache: Arc<Cache>,
    object: NewObject,
    gather: Gather,
    /// Complete pieces that the stripe has had no room for so far.
    waiting: VecDeque<Bytes>,
    /// Complete pieces, while the body may enter the RAM cache.
    kept: Option<Vec<Bytes>>,
    /// Where complete pieces went, once there are any.
    fragments: Option<Fragments>,
    /// Names the pieces that go there, should there be any.
    object_id: u128,
    /// Complete pieces on that stripe.
    appended: u64,
    /// Unix time in seconds up to which it is kept, while it is to be pinned.
    pinned_until: Option<u64>,
    len: u64,
    failed: bool,
}

impl ObjectWriter {
    pub(in crate::cache) fn new(cache: Arc<Cache>, object: NewObject) -> Self {
        let piece = usize::try_from(cache.fragment_bytes()).unwrap_or(usize::MAX);
        let keeps = cache.ram_takes(object.body_len.unwrap_or(0));
        let is_short = object
            .body_len
            .is_some_and(|length| length <= cache.fragment_bytes().into());
        let writer = Self {
            gather: Gather::new(piece, object.body_len),
            waiting: VecDeque::new(),
            cache,
            object,
            kept: keeps.then(Vec::new),
            fragments: None,
            object_id: system_u128(),
            appended: 0,
            pinned_until: None,
            len: 0,
            failed: false,
        };
        if !is_short {
            (0..PAGES_AHEAD).for_each(|index| writer.ask_for(index));
        }
        writer
    }

    /// Asks for the directory page of a piece to come: after a start it may be
    /// yet to be read, and `push` does not wait.
    fn ask_for(&self, index: u64) {
        if let Ok(Some(owner)) = self.cache.owner(&self.object.key) {
            owner.ask_for(body_key(self.object_id, index));
        }
    }

    /// Has the object kept up to this Unix time in seconds, however far the
    /// cursor goes, if its stripe has room for another pinned one; to be said
    /// before the first [`ObjectWriter::push`].
    #[must_use]
    pub const fn pinned_until(mut self, secs: u64) -> Self {
        self.pinned_until = Some(secs);
        self
    }

    /// Adds `bytes` to the body. It never waits for a device, and copies the
    /// bytes. What the stripe has no room for now is held back here, up to
    /// 4 MiB, and goes there on a later call; [`ObjectWriter::room`] is what to
    /// wait for meanwhile.
    ///
    /// # Errors
    /// The store is lost then, and what it was to replace is gone, as by
    /// [`ObjectWriter::commit`]: `Backlog`, `TooLarge`, `WrongLength`,
    /// `NotReady`, and `Aborted` on every later call.
    pub fn push(&mut self, bytes: &Bytes) -> Result<(), NotStored> {
        if self.failed {
            return Err(NotStored::Aborted);
        }
        let pushed = self.take(bytes);
        if let Err(no) = pushed {
            self.fail(no);
        }
        pushed
    }

    /// Gives the store up, for want of room: it counts as refused, and what it was
    /// to replace is gone.
    pub fn give_up(mut self) {
        if !self.failed {
            self.fail(NotStored::Backlog);
        }
    }

    /// Bytes of the body that are held back.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.waiting.iter().map(len).sum()
    }

    /// The room that what is held back needs, or, once all has been pushed,
    /// what [`ObjectWriter::commit`] adds to it; `None` where nothing is held
    /// back, and for the end of a body of one fragment: that much is refused
    /// rather than waited for, since any number of such may come.
    #[must_use]
    pub fn room(&self, is_end: bool) -> Option<Room> {
        let fragments = self.fragments.as_ref()?;
        let room = |head, body| Room {
            stripe: Arc::clone(&fragments.stripe),
            head,
            body,
        };
        match self.waiting.front() {
            Some(piece) => Some(room(0, piece.len())),
            None if is_end && self.appended > 0 => Some(room(self.head_len(), self.end_len())),
            None => None,
        }
    }

    /// Makes the object found by every reader that comes from now on, in
    /// place of what was stored under its key before.
    ///
    /// # Errors
    /// Why it is not stored. `Backlog` and the like leave nothing under the key
    /// rather than an older version; what is refused for its own sake
    /// (`WrongLength`, `Invalidated`, `Aborted`) changes nothing.
    pub fn commit(mut self) -> Result<(), NotStored> {
        if self.failed {
            // Counted already, when it failed.
            return Err(NotStored::Aborted);
        }
        let outcome = self.finish();
        match outcome {
            Ok(()) => {
                self.cache.count_write(&self.object.key, outcome);
                // Nothing is left to be given back when the writer goes.
                self.appended = 0;
            }
            Err(no) => self.cache.refuse(&self.object, no),
        }
        outcome
    }

    /// Bytes of the body that [`ObjectWriter::readback`] can give.
    #[must_use]
    pub fn readable(&self) -> u64 {
        match &self.kept {
            Some(kept) => kept.iter().map(len).sum(),
            None => self.appended * u64::from(self.cache.fragment_bytes()),
        }
    }

    /// A reader of what was pushed, from body byte `from` to the end of the
    /// last complete fragment, for who has fallen behind; `None` when nothing
    /// there is complete yet.
    #[must_use]
    pub fn readback(&self, from: u64) -> Option<BodyReader> {
        if from >= self.readable() {
            return None;
        }
        let so_far = self.stored(self.readable(), self.kept.clone());
        let mut reader = BodyReader::new(Arc::new(so_far));
        reader.seek(from..u64::MAX);
        Some(reader)
    }

    fn take(&mut self, bytes: &Bytes) -> Result<(), NotStored> {
        self.len = self.len.saturating_add(len(bytes));
        if self.object.body_len.is_some_and(|said| self.len > said) {
            return Err(NotStored::WrongLength);
        }
        self.cache.check_length(self.len)?;
        self.waiting.extend(self.gather.push(bytes));
        self.advance()?;
        match self.waiting() > WAITING_MAX {
            true => Err(NotStored::Backlog),
            false => Ok(()),
        }
    }

    /// What is held back goes on, in order, as far as there is room.
    fn advance(&mut self) -> Result<(), NotStored> {
        while let Some(piece) = self.waiting.front().cloned() {
            match self.complete(piece) {
                Err(NotStored::Backlog) => return Ok(()),
                completed => completed?,
            }
            self.waiting.pop_front();
        }
        Ok(())
    }

    fn fail(&mut self, no: NotStored) {
        self.failed = true;
        self.cache.refuse(&self.object, no);
    }

    /// Bytes of the last piece, and what tells it from the head.
    fn end_len(&self) -> usize {
        self.gather.len() + fragment_bytes(0, 0)
    }

    fn head_len(&self) -> usize {
        self.object.meta.len() + self.object.key.text().len()
    }

    /// A piece goes to the stripe, and is kept while RAM may want it.
    fn complete(&mut self, piece: Bytes) -> Result<(), NotStored> {
        self.append(&piece)?;
        if !self.cache.ram_takes(self.len) {
            self.kept = None;
        }
        match (&mut self.kept, &self.fragments) {
            (Some(kept), _) => kept.push(piece),
            // Only RAM is there, and won't have it.
            (None, None) => return Err(NotStored::TooLarge),
            (None, Some(_)) => {}
        }
        Ok(())
    }

    fn append(&mut self, piece: &Bytes) -> Result<(), NotStored> {
        if self.fragments.is_none() {
            let owner = self.cache.owner(&self.object.key)?;
            self.fragments = owner.map(|stripe| Fragments {
                stripe,
                spare: None,
                object_id: self.object_id,
                bytes: self.cache.fragment_bytes(),
            });
        }
        let Some(fragments) = &self.fragments else {
            return Ok(());
        };
        let pin = self.pin_of(fragments);
        let new = NewFragment {
            key_hash: body_key(fragments.object_id, self.appended),
            kind: FragmentKind::Body,
            meta: pin.as_ref().map_or(&[], |meta| meta),
            body: std::slice::from_ref(piece),
            keep: &[],
            copy_of: None,
            pinned: pin.is_some(),
        };
        let entry = fragments.stripe.append(&new, WriteCause::Fill)?.place.entry;
        if !entry.is_pinned() && self.pinned_until.take().is_some() {
            // What is pinned in part is of no use.
            self.cache.count_pin_refused();
        }
        self.ask_for(self.appended + PAGES_AHEAD);
        self.appended += 1;
        Ok(())
    }

    /// The meta of the next fragment, if it is to be pinned: of a body that has
    /// no room as a whole, no part is.
    fn pin_of(&self, fragments: &Fragments) -> Option<[u8; 48]> {
        let until = self.pinned_until?;
        let more = self.object.body_len.unwrap_or(0).saturating_sub(self.len);
        let pinned = PinnedFragment {
            until,
            index: self.appended,
            head: self.object.key.hash(),
            object_id: fragments.object_id,
        };
        fragments.stripe.may_pin(more).then(|| pinned.encode())
    }

    fn finish(&mut self) -> Result<(), NotStored> {
        let wrong = self.object.body_len.is_some_and(|said| said != self.len);
        if wrong || (self.object.kind == ObjectKind::Marker && self.len > 0) {
            return Err(NotStored::WrongLength);
        }
        self.advance()?;
        if !self.waiting.is_empty() {
            return Err(NotStored::Backlog);
        }
        let tail = self.gather.finish();
        let chunks = if self.appended == 0 {
            // All of it goes with the head, whatever RAM says to it.
            let mut pieces = self.kept.take().unwrap_or_default();
            pieces.extend((!tail.is_empty()).then_some(tail));
            Some(pieces)
        } else {
            self.complete(tail)?;
            self.kept.take()
        };
        self.cache.put(self.stored(self.len, chunks))
    }

    fn stored(&self, body_len: u64, chunks: Option<Vec<Bytes>>) -> Stored {
        Stored {
            key: self.object.key.clone(),
            kind: self.object.kind,
            meta: self.object.meta.clone(),
            epoch: self.object.epoch,
            body_len,
            in_part: false,
            pinned_until: self.pinned_until,
            chunks: chunks.map(Vec::into_boxed_slice),
            fragments: self.fragments.clone(),
            home: None,
        }
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if let Some(fragments) = &self.fragments {
            for index in 0..self.appended {
                fragments.stripe.free(body_key(fragments.object_id, index));
            }
        }
        self.cache.writer_ended();
    }
}

fn len(bytes: &Bytes) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
