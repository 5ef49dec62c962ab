//! Rows read at a start, until the directory's pages are there.

use crate::base::planted::{Planted, is_planted};
use crate::cache::directory::{Directory, Home, LogShape, Removed, is_ahead};
use crate::cache::format::batch::{BatchContent, Row, RowKind};
use crate::cache::format::dir_entry::DirEntry;
use crate::cache::format::directory_page::PAGE_BUCKETS;
use crate::cache::format::ring::{RedoRow, RingContent};
use crate::cache::format::to_usize;
use std::num::NonZeroU64;

/// A row of a page, and the position that its entry had: 24 bytes, of the 16
/// that it has in the ring, whose size so bounds them all.
#[derive(Clone, Copy, Debug)]
struct Placed {
    entry: DirEntry,
    /// `None` for a put that the cursor had passed within its block already.
    position: Option<NonZeroU64>,
    bucket: u16,
    kind: RowKind,
}

/// All rows since the sync, of each page in log order.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pages: Vec<Vec<Placed>>,
    taken: u64,
}

impl Replay {
    /// No rows yet, for so many pages; those of other pages are left out.
    pub(super) fn of(pages: u32) -> Self {
        Self {
            pages: vec![Vec::new(); to_usize(pages.into())],
            taken: 0,
        }
    }

    /// Takes the rows of a batch, whose entries lie at its own position.
    pub(super) fn take_batch(&mut self, batch: &BatchContent, rows: &[Row], log: LogShape) {
        let base = batch.cycle * log.bytes;
        for row in rows {
            let of_ring = RedoRow {
                kind: row.kind,
                page: row.page,
                bucket: row.bucket,
                entry: row.entry,
            };
            self.take(&of_ring, Some(base + row.entry.offset()));
        }
    }

    /// Takes the rows of a ring block, which covers less than a cycle.
    pub(super) fn take_block(&mut self, block: &RingContent, log: LogShape) {
        for row in &block.rows {
            self.take(row, log.position(row.entry, block.log.position));
        }
    }

    fn take(&mut self, row: &RedoRow, position: Option<u64>) {
        self.taken += 1;
        let page = self.pages.get_mut(to_usize(row.page.into()));
        if let Some(rows) = page.filter(|_| u64::from(row.bucket) < PAGE_BUCKETS) {
            rows.push(Placed {
                entry: row.entry,
                position: position.and_then(NonZeroU64::new),
                bucket: row.bucket,
                kind: row.kind,
            });
        }
    }

    /// Rows taken.
    pub(super) const fn len(&self) -> u64 {
        self.taken
    }

    /// Brings a page, which is as the copy had it, up to now. Gives the rows
    /// that tell of what found no room again: without them it could be back at
    /// the next start, freed or replaced meanwhile.
    ///
    /// What counts for an entry is the last that was said of it. All that go,
    /// go first, so that none is pushed out by one that was there for a while.
    pub(super) fn apply(&mut self, page: u32, directory: &Directory) -> Vec<RedoRow> {
        let rows = self.pages.get_mut(to_usize(page.into()));
        let rows = last_words(rows.map(std::mem::take).unwrap_or_default());
        let home = |placed: &Placed| Home::of_entry(page, placed.bucket, placed.entry.tag());
        for placed in rows.iter().filter(|p| p.kind == RowKind::Free) {
            directory.free_entry(home(placed), placed.entry);
        }
        let mut dropped = Vec::new();
        let (cursor, log) = (directory.cursor(), directory.log());
        for placed in rows.iter().rev().filter(|p| p.kind == RowKind::Put) {
            let kept = |at: NonZeroU64| is_ahead(at.get(), cursor, log.bytes);
            if placed.position.is_some_and(kept) {
                dropped.extend(directory.restore(home(placed), placed.entry));
            }
        }
        dropped.iter().map(freed).collect()
    }
}

/// The last row of each entry of a page, newest first.
fn last_words(mut rows: Vec<Placed>) -> Vec<Placed> {
    if !is_planted(Planted::RowsOutOfOrder) {
        rows.reverse();
    }
    // Sorted, not hashed: a start does this for each row there is.
    let named = rows.iter().map(|placed| placed.entry.place_bits()).zip(0..);
    let mut named: Vec<(u64, usize)> = named.collect();
    named.sort_unstable();
    named.dedup_by_key(|(name, _)| *name);
    let mut is_last = vec![false; rows.len()];
    named.iter().for_each(|(_, n)| is_last[*n] = true);
    let mut is_last = is_last.into_iter();
    rows.retain(|_| is_last.next() == Some(true));
    rows
}

pub(super) fn freed(gone: &Removed) -> RedoRow {
    RedoRow {
        kind: RowKind::Free,
        page: gone.page,
        bucket: gone.bucket,
        entry: gone.entry,
    }
}
