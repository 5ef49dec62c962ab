//! Reading what lies at a place of the log, and judging what can't be had.

use super::live::{Core, LiveStripe};
use crate::base::aligned::AlignedBuf;
use crate::base::size::{round_down, round_up};
use crate::cache::directory::Place;
use crate::cache::format::FormatError;
use crate::cache::format::fragment::FragmentError;
use crate::cache::object::Miss;
use crate::device::{DeviceError, Request};
use crate::metrics::Metric;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::oneshot;

impl LiveStripe {
    /// The bytes at a place: from the buffer, or else from the device.
    ///
    /// # Errors
    /// What the device says; `Closed` if the span is out of use. It is yet to be
    /// judged.
    pub(super) async fn read(&self, core: &Core, place: &Place) -> Result<Bytes, DeviceError> {
        if core.directory.is_buffered(place)
            && let Some(bytes) = core.stripe.lock().buffered(place)
        {
            return Ok(bytes);
        }
        if !self.is_online() {
            return Err(DeviceError::Closed);
        }
        self.read_device(place).await
    }

    /// What a read that failed is to who wanted the key. What the device can't
    /// give is freed, like what is damaged; who frees it counts it, so that one
    /// bad place is one fault however many want it.
    pub(super) fn unread(self: &Arc<Self>, key: u128, place: &Place, error: &DeviceError) -> Miss {
        if !self.is_online() {
            return Miss::Absent;
        }
        if is_lost(error) && self.free_entry(key, place.entry).is_none() {
            return Miss::Overtaken;
        }
        self.note_read_error(place.offset, error);
        Miss::ReadError
    }

    /// Counts a read at `offset` bytes from the stripe's start that failed, for
    /// whatever it was made. At the limit the span goes offline.
    pub(super) fn note_read_error(&self, offset: u64, error: &DeviceError) {
        if *error == DeviceError::Busy {
            // The span has work, not a fault.
            return self.counters.add(Metric::CacheReadBusy, 1);
        }
        tracing::warn!(path = %self.path().display(), %error,
            offset = self.offset + offset, "read failed");
        self.counters.add(Metric::CacheSpanErrorsRead, 1);
        self.span.note_error();
    }

    /// Reads a place, widened to the device's sectors. A stripe begins and
    /// ends at a multiple of its block, so that this stays within it.
    async fn read_device(&self, place: &Place) -> Result<Bytes, DeviceError> {
        let len = usize::try_from(place.length).unwrap_or(usize::MAX);
        self.read_range(place.offset, len).await
    }

    /// Reads `len` bytes at `offset` from the stripe's start.
    pub(super) async fn read_range(&self, offset: u64, len: usize) -> Result<Bytes, DeviceError> {
        let sector = self.span.sector;
        let start = self.offset + offset;
        let from = round_down(start, sector);
        let to = round_up(start + u64::try_from(len).unwrap_or(u64::MAX), sector);
        let (send, receive) = oneshot::channel();
        let request = Request::Read {
            offset: from,
            buf: AlignedBuf::recycled(usize::try_from(to - from).unwrap_or(0)),
            // Who no longer waits for the answer has no need of it.
            done: Box::new(move |outcome| drop(send.send(outcome))),
        };
        self.span.submit(request, self.now());
        let bytes = receive.await.unwrap_or(Err(DeviceError::Closed))?;
        let skip = usize::try_from(start - from).unwrap_or(usize::MAX);
        let bytes = bytes.into_bytes();
        let end = skip.saturating_add(len).min(bytes.len());
        Ok(bytes.slice(skip.min(end)..end))
    }

    /// Whether the next match is to be looked at after a fragment that did not
    /// verify: an intact one of another key is remembered.
    ///
    /// # Errors
    /// What the fragment is to who wanted it, if that ends the lookup.
    pub(super) fn passes_over(
        self: &Arc<Self>,
        key: u128,
        place: &Place,
        error: &FragmentError,
    ) -> Result<(), Miss> {
        if *error != FragmentError::OtherKey {
            return Err(self.unusable(key, place, error));
        }
        if let Some(core) = self.core.get() {
            core.strangers.note(key, place.position);
        }
        self.counters.add(Metric::CacheDirectoryCollision, 1);
        Ok(())
    }

    /// Judges a fragment that did not verify; a damaged one is freed. What the
    /// cursor has come over meanwhile is no fault.
    pub(super) fn unusable(
        self: &Arc<Self>,
        key: u128,
        place: &Place,
        error: &FragmentError,
    ) -> Miss {
        let why = match error {
            FragmentError::Damaged(why) | FragmentError::Overtaken(why) => why,
            FragmentError::OtherKey => return Miss::Overtaken,
        };
        if !self.holds_at(key, place) || self.free_entry(key, place.entry).is_none() {
            self.counters.add(Metric::CacheReadInvalid, 1);
            return Miss::Overtaken;
        }
        self.charge(place, why);
        Miss::ReadError
    }

    /// Counts a fragment that is not where the directory has it.
    pub(super) fn charge(&self, place: &Place, why: &FormatError) {
        tracing::warn!(path = %self.path().display(), %why,
            offset = self.offset + place.offset, "damaged fragment");
        self.counters.add(Metric::CacheReadInvalid, 1);
        // Another place's fragment was written here, or nothing: the span may
        // have been put back from a copy. What is damaged, the device damaged.
        let is_foreign = matches!(why, FormatError::Foreign { .. });
        if !is_foreign && !self.is_unflushed(place) {
            self.note_damage();
        }
    }

    /// Whether the directory still has the entry, at the same position.
    fn holds_at(&self, key: u128, place: &Place) -> bool {
        let core = self.core.get();
        core.is_some_and(|core| {
            let mut places = core.directory.lookup(key);
            places.any(|p| p.position == place.position && p.entry.same_place(place.entry))
        })
    }

    fn is_unflushed(&self, place: &Place) -> bool {
        let core = self.core.get();
        core.is_some_and(|core| core.unflushed.contains(&place.position))
    }

    /// Counts something whose checksum failed though it was flushed once.
    pub(super) fn note_damage(&self) {
        self.counters.add(Metric::CacheSpanErrorsChecksum, 1);
        self.span.note_damage();
    }
}

/// Whether a read failed because of what lies there, and will fail again.
pub(super) const fn is_lost(error: &DeviceError) -> bool {
    matches!(
        error,
        DeviceError::System { .. } | DeviceError::Short { .. }
    )
}
