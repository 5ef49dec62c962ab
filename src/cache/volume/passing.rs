//! What the cursor comes to next, read from the device.

use super::live::{Core, LiveStripe, Located};
use crate::cache::format::batch::{Row, RowKind};
use crate::cache::format::dir_entry::DirEntry;
use crate::cache::stripe::{Passing, table_of};
use crate::device::DeviceError;
use crate::metrics::Metric;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::MutexGuard;

impl LiveStripe {
    /// The right to walk, if nobody walks now.
    pub(in crate::cache) fn try_go_ahead(&self) -> Option<MutexGuard<'_, ()>> {
        self.walking.try_lock().ok()
    }

    /// The right to walk, once nobody else does.
    #[cfg(test)]
    pub(in crate::cache) async fn go_ahead(&self) -> MutexGuard<'_, ()> {
        self.walking.lock().await
    }

    /// The fragments of the next batch that the cursor comes to, by their rows;
    /// `None` while none is near. For who has the right to walk.
    pub(in crate::cache) async fn next_passing(&self) -> Option<Vec<Row>> {
        let core = self.core.get().filter(|_| self.is_online())?;
        let mut walk = self.walk_so_far(core);
        let rows = match walk.next(core.directory.cursor()) {
            Some((offset, length)) => Some(self.batch_at(core, &mut walk, (offset, length)).await),
            None => None,
        };
        core.stripe.lock().note_evacuation(walk.position());
        *self.passing.lock() = Some(walk);
        // Who was held back by what may be pinned there looks again.
        self.moved.notify_waiters();
        rows
    }

    /// The walk so far, or as the stripe's header has it.
    fn walk_so_far(&self, core: &Core) -> Passing {
        let begun = *self.passing.lock();
        begun.unwrap_or_else(|| {
            let at = core.stripe.lock().evacuation();
            Passing::new(self.uuid, core.log_bytes, at)
        })
    }

    /// The rows of the first batch in a part of the log; none if there is no
    /// batch or it can't be read: then its fragments go as the cursor comes.
    async fn batch_at(&self, core: &Core, walk: &mut Passing, part: (u64, u64)) -> Vec<Row> {
        let (offset, length) = part;
        let bytes = self.read_log(core, offset, length).await;
        let Ok(bytes) = bytes.inspect_err(|_| walk.skip(length)) else {
            return Vec::new();
        };
        let Some(batch) = walk.take(&bytes) else {
            return Vec::new();
        };
        let (table, length) = table_of(&batch);
        let length = u64::try_from(length).unwrap_or(0);
        let table = self.read_log(core, table, length).await;
        let rows = table.ok().and_then(|table| batch.verify_rows(&table).ok());
        let mut rows = rows.unwrap_or_default();
        rows.retain(|row| row.kind == RowKind::Put);
        rows
    }

    async fn read_log(&self, core: &Core, at: u64, length: u64) -> Result<Bytes, DeviceError> {
        let length = usize::try_from(length).unwrap_or(0);
        let offset = core.directory.log_offset() + at;
        let read = self.read_range(offset, length).await;
        read.inspect_err(|error| self.note_read_error(offset, error))
    }

    /// Where the cursor stands; 0 before it is known.
    pub(in crate::cache) fn cursor(&self) -> u64 {
        let core = self.core.get();
        core.map_or(0, |core| core.directory.cursor())
    }

    /// Whether so many bytes more may be pinned.
    pub(in crate::cache) fn may_pin(&self, bytes: u64) -> bool {
        let core = self.core.get();
        core.is_some_and(|core| core.stripe.lock().has_room_for_pins(bytes))
    }

    /// Counts a pin that there was no room for.
    pub(in crate::cache) fn count_pin_refused(&self) {
        self.counters.add(Metric::CachePinsRefused, 1);
    }

    /// Bytes that are pinned.
    pub(in crate::cache) fn pinned_bytes(&self) -> u64 {
        let core = self.core.get();
        core.map_or(0, |core| core.directory.pinned_bytes())
    }

    /// Whether this very entry is there, is pinned, and is in no doubt.
    pub(in crate::cache) fn is_pinned(&self, key: u128, entry: DirEntry) -> bool {
        let core = self.core.get();
        core.is_some_and(|core| {
            let mut places = core.directory.lookup(key);
            let place = places.find(|place| place.entry.same_place(entry));
            place.is_some_and(|place| place.entry.is_pinned() && !place.suspect)
        })
    }

    /// Whether this very entry is there, was read since it was written, and is
    /// in no doubt.
    pub(in crate::cache) fn was_read(&self, key: u128, entry: DirEntry) -> bool {
        let core = self.core.get();
        core.is_some_and(|core| {
            let mut places = core.directory.lookup(key);
            let place = places.find(|place| place.entry.same_place(entry));
            place.is_some_and(|place| place.entry.is_referenced() && !place.suspect)
        })
    }

    /// The fragment of this very entry, if it can be had.
    pub(in crate::cache) async fn fragment_of(
        self: &Arc<Self>,
        key: u128,
        entry: DirEntry,
    ) -> Option<Located> {
        let very = |located: Located| located.place.entry.same_place(entry).then_some(located);
        self.find(key, very).await.ok()
    }
}
