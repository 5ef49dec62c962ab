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
    /// Nothing newer is said of its entry; known when its page is brought up to
    /// now.
    is_last: bool,
}

/// All rows since the sync, of each page in log order.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pages: Vec<Vec<Placed>>,
    taken: u64,
    /// Of the page that is brought up to now: what names the entry of each row, and
    /// how many rows are newer. Kept for the next one.
    named: Vec<(u64, usize)>,
}

impl Replay {
    /// No rows yet, for so many pages; those of other pages are left out.
    pub(super) fn of(pages: u32) -> Self {
        Self {
            pages: vec![Vec::new(); to_usize(pages.into())],
            taken: 0,
            named: Vec::new(),
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
                is_last: false,
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
        let mut rows = rows.map(std::mem::take).unwrap_or_default();
        mark_last(&mut rows, &mut self.named);
        let home = |placed: &Placed| Home::of_entry(page, placed.bucket, placed.entry.tag());
        let said = |kind| rows.iter().filter(move |p| p.is_last && p.kind == kind);
        for placed in said(RowKind::Free) {
            directory.free_entry(home(placed), placed.entry);
        }
        let mut dropped = Vec::new();
        let (cursor, log, view) = (directory.cursor(), directory.log(), directory.view());
        for placed in said(RowKind::Put) {
            let kept = |at: NonZeroU64| is_ahead(at.get(), cursor, log.bytes);
            if placed.position.is_some_and(kept) {
                dropped.extend(directory.restore(view, home(placed), placed.entry));
            }
        }
        dropped.iter().map(freed).collect()
    }
}

/// Marks the last row of each entry of a page.
fn mark_last(rows: &mut [Placed], named: &mut Vec<(u64, usize)>) {
    if is_planted(Planted::RowsOutOfOrder) {
        rows.reverse();
    }
    // Sorted, not hashed: a start does this for each row there is.
    let newest_first = rows.iter().rev().map(|placed| placed.entry.place_bits());
    named.clear();
    named.extend(newest_first.zip(0..));
    named.sort_unstable();
    named.dedup_by_key(|(name, _)| *name);
    for (_, newer) in named {
        let row = rows.iter_mut().nth_back(*newer);
        row.into_iter().for_each(|row| row.is_last = true);
    }
}

pub(super) fn freed(gone: &Removed) -> RedoRow {
    RedoRow {
        kind: RowKind::Free,
        page: gone.page,
        bucket: gone.bucket,
        entry: gone.entry,
    }
}
