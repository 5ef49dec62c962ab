//! Rows read at a start, until the directory's pages are there.

use crate::base::planted::{Planted, is_planted};
use crate::cache::directory::{Directory, Home, LogShape, Removed, is_ahead};
use crate::cache::format::batch::{BatchContent, Row, RowKind};
use crate::cache::format::directory_page::PAGE_BUCKETS;
use crate::cache::format::ring::{RedoRow, RingContent};
use std::collections::HashSet;

/// A row, and the position that its entry had.
#[derive(Clone, Copy, Debug)]
struct Placed {
    row: RedoRow,
    /// `None` for a put that the cursor had passed within its block already.
    position: Option<u64>,
}

/// All rows since the sync, in log order.
#[derive(Debug, Default)]
pub(super) struct Replay {
    rows: Vec<Placed>,
}

impl Replay {
    /// Takes the rows of a batch, whose entries lie at its own position.
    pub(super) fn take_batch(&mut self, batch: &BatchContent, rows: &[Row], log: LogShape) {
        let base = batch.cycle * log.bytes;
        self.rows.extend(rows.iter().map(|row| Placed {
            row: RedoRow {
                kind: row.kind,
                page: row.page,
                bucket: row.bucket,
                entry: row.entry,
            },
            position: Some(base + row.entry.offset()),
        }));
    }

    /// Takes the rows of a ring block, which covers less than a cycle.
    pub(super) fn take_block(&mut self, block: &RingContent, log: LogShape) {
        self.rows.extend(block.rows.iter().map(|row| Placed {
            row: *row,
            position: log.position(row.entry, block.log.position),
        }));
    }

    /// Rows taken.
    pub(super) const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Brings the directory, whose pages are as the copy had them, up to now.
    /// Gives the rows that tell of what found no room again: without them it
    /// could be back at the next start, freed or replaced meanwhile.
    ///
    /// What counts for an entry is the last that was said of it. All that go,
    /// go first, so that none is pushed out by one that was there for a while.
    pub(super) fn apply(self, directory: &Directory) -> Vec<RedoRow> {
        let rows = self.last_words(directory);
        for placed in rows.iter().filter(|p| p.row.kind == RowKind::Free) {
            directory.free_entry(home(&placed.row), placed.row.entry);
        }
        let mut dropped = Vec::new();
        let (cursor, log) = (directory.cursor(), directory.log());
        for placed in rows.iter().rev().filter(|p| p.row.kind == RowKind::Put) {
            let kept = |at| is_ahead(at, cursor, log.bytes);
            if placed.position.is_some_and(kept) {
                dropped.extend(directory.restore(home(&placed.row), placed.row.entry));
            }
        }
        dropped.iter().map(freed).collect()
    }

    /// The last row of each entry, newest first; rows of no page left out.
    fn last_words(self, directory: &Directory) -> Vec<Placed> {
        let mut seen = HashSet::new();
        let mut last = Vec::new();
        let mut rows = self.rows;
        if !is_planted(Planted::RowsOutOfOrder) {
            rows.reverse();
        }
        for placed in rows {
            let row = &placed.row;
            let known = row.page < directory.pages() && u64::from(row.bucket) < PAGE_BUCKETS;
            let entry = row.entry;
            let name = (row.page, entry.offset(), entry.tag(), entry.parity());
            if known && seen.insert(name) {
                last.push(placed);
            }
        }
        last
    }
}

fn freed(gone: &Removed) -> RedoRow {
    RedoRow {
        kind: RowKind::Free,
        page: gone.page,
        bucket: gone.bucket,
        entry: gone.entry,
    }
}

fn home(row: &RedoRow) -> Home {
    Home::of_entry(row.page, row.bucket, row.entry.tag())
}
