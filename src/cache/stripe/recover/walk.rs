//! From the last sync to the log's end: the ring, then batch by batch.

use super::ring::of_run;
use super::{LOOK, Phase, Recovery};
use crate::base::planted::{Planted, is_planted};
use crate::base::size::{round_down, round_up};
use crate::cache::directory::LogShape;
use crate::cache::format::Unverified;
use crate::cache::format::batch::{BatchContent, BatchHeader, Row};
use crate::cache::format::ring::{RedoRow, RingBlock};
use crate::cache::format::stripe_header::ChainPoint;
use crate::cache::format::to_usize;
use crate::cache::stripe::geometry::Geometry;
use crate::cache::stripe::log_shape;

impl Recovery {
    pub(super) fn take_ring(&mut self, at: u64, bytes: &[u8]) {
        let Some((_, geometry)) = self.layout() else {
            return;
        };
        self.ring.take(at, bytes);
        self.phase = self.sweep_on(&geometry);
    }

    /// Goes on in the ring as far as it has been read; what to read next.
    pub(super) fn sweep_on(&mut self, geometry: &Geometry) -> Phase {
        let shape = log_shape(geometry);
        while let Some(block) = self.ring.next(self.ring_next) {
            self.use_block(&block, shape);
        }
        match self.ring.wanted(self.ring_next) {
            Some(at) => Phase::Ring(at),
            None => {
                self.end_ring();
                self.walk_on(geometry)
            }
        }
    }

    /// What lies in the ring behind the end of its chain.
    fn end_ring(&mut self) {
        let ring = std::mem::take(&mut self.ring);
        let opened = self.header.map_or(0, |header| header.run);
        let later = ring.later(self.ring_next);
        let are_any = !later.is_empty();
        self.later = of_run(opened, later);
        // A run that had no room for its block may have made these the last,
        // or abandoned them.
        self.doubt |= are_any && self.later.is_empty() && self.log_run < opened;
    }

    fn use_block(&mut self, block: &RingBlock, shape: LogShape) {
        let content = &block.content;
        self.replay.take_block(content, shape);
        self.ring_next = block.next;
        self.log = content.log;
        self.covered = content.log;
        self.walked.clear();
        // A later run has opened the stripe since, and may have been writing.
        self.report.clean = content.clean && content.run >= self.run;
        self.run = self.run.max(content.run);
        self.log_run = self.log_run.max(content.run);
        self.suspect_below = self.suspect_below.max(content.suspect_below);
        self.report.ring_blocks += 1;
    }

    /// Goes on where the log has been read to: by ring blocks behind a damaged
    /// one as soon as they join, else by the next batch.
    fn walk_on(&mut self, geometry: &Geometry) -> Phase {
        self.drop_outdated();
        let joins = |block: &RingBlock, end| {
            block.content.log_first <= end || is_planted(Planted::ReplayPastGap)
        };
        while self
            .later
            .front()
            .is_some_and(|b| joins(b, self.log.position))
        {
            self.use_later(geometry);
        }
        Phase::Batch(self.log)
    }

    /// Blocks of a run before the last one that wrote of the log are what that
    /// run could not read, and went on without.
    fn drop_outdated(&mut self) {
        let run = self.log_run;
        let outdated = |block: &RingBlock| block.content.run < run;
        while self.later.front().is_some_and(outdated) {
            self.later.pop_front();
        }
    }

    /// The next ring block behind a damaged one, unless the walk has gone over
    /// all that it tells of.
    fn use_later(&mut self, geometry: &Geometry) {
        let Some(block) = self.later.pop_front() else {
            return;
        };
        self.gap = true;
        let end = self.ring_next;
        let leads_on = (block.content.previous, block.content.sequence) == (end.link, end.sequence);
        if !leads_on {
            self.miss_opening(block.content.run);
        }
        self.ring_next = block.next;
        if block.content.log.position >= self.log.position {
            self.use_block(&block, log_shape(geometry));
        }
    }

    /// A run that goes on behind an earlier one, or first of all though a header
    /// tells of it, without the ring block that it began with. That told what
    /// its start found no room for: it is back, and may have been replaced since.
    fn miss_opening(&mut self, run: u64) {
        let is_told = self.header.is_some_and(|header| header.is_opened);
        let is_missing = (self.log_run > 0 || is_told) && run > self.log_run;
        if is_missing && !is_planted(Planted::OpeningUnmissed) {
            self.suspect_below = self.suspect_below.max(self.log.position);
            self.report.suspect = true;
        }
    }

    pub(super) fn take_batch(&mut self, at: ChainPoint, bytes: &[u8]) {
        let Some((_, geometry)) = self.layout() else {
            return;
        };
        let log_bytes = geometry.log_bytes();
        let uuid = self.start.identity.uuid;
        let found = Unverified::<BatchHeader>::new(bytes).verify(uuid, at, log_bytes);
        self.phase = match found {
            // One of an earlier run is what a start in between has abandoned.
            Ok(batch) if self.is_own(&batch) && self.walked_bytes <= log_bytes => {
                Phase::Rows(batch)
            }
            Ok(_) | Err(_) => self.no_batch(at, &geometry),
        };
    }

    fn is_own(&self, batch: &BatchContent) -> bool {
        batch.run >= self.log_run || is_planted(Planted::ChainUnchecked)
    }

    /// No batch at `at`: the log may go on at its start in the next cycle.
    fn no_batch(&mut self, at: ChainPoint, geometry: &Geometry) -> Phase {
        let log_bytes = geometry.log_bytes();
        if at != self.log || at.position.is_multiple_of(log_bytes) {
            return self.log_ends(geometry);
        }
        Phase::Batch(ChainPoint {
            position: (at.position / log_bytes + 1) * log_bytes,
            ..at
        })
    }

    /// The log ends here, unless a ring block behind a damaged one tells that
    /// it went on: then rows are missing, and what is older is suspect.
    fn log_ends(&mut self, geometry: &Geometry) -> Phase {
        self.drop_outdated();
        if let Some(block) = self.later.front() {
            self.suspect_below = self.suspect_below.max(block.content.log_first);
            self.report.suspect = true;
            self.use_later(geometry);
            return self.walk_on(geometry);
        }
        self.look_ahead(geometry)
    }

    pub(super) fn take_rows(&mut self, batch: &BatchContent, bytes: &[u8]) {
        let Some((_, geometry)) = self.layout() else {
            return;
        };
        let (offset, _) = rows_range(batch);
        let table = batch.offset + u64::from(batch.table_offset);
        let skipped = to_usize(table.saturating_sub(offset));
        let rows = batch.verify_rows(bytes.get(skipped..).unwrap_or_default());
        self.phase = match rows {
            Ok(rows) => {
                self.use_batch(batch, &rows, log_shape(&geometry));
                self.walk_on(&geometry)
            }
            // The write that was in flight: it ends the log.
            Err(_) => self.log_ends(&geometry),
        };
    }

    fn use_batch(&mut self, batch: &BatchContent, rows: &[Row], shape: LogShape) {
        self.miss_opening(batch.run);
        self.replay.take_batch(batch, rows, shape);
        self.walked.extend(rows.iter().map(|row| RedoRow {
            kind: row.kind,
            page: row.page,
            bucket: row.bucket,
            entry: row.entry,
        }));
        self.log = ChainPoint {
            position: batch.cycle * shape.bytes + batch.offset + u64::from(batch.length),
            sequence: batch.sequence + 1,
            link: batch.link,
        };
        self.run = self.run.max(batch.run);
        self.log_run = self.log_run.max(batch.run);
        self.epoch = self.epoch.max(batch.epoch);
        self.walked_bytes += u64::from(batch.length);
        self.report.batches_walked += 1;
        self.report.clean = false;
    }
}

/// Where a batch's rows lie in the log, widened to 4096: offset, length.
pub(super) fn rows_range(batch: &BatchContent) -> (u64, u64) {
    let table = batch.offset + u64::from(batch.table_offset);
    let start = round_down(table, LOOK);
    let end = round_up(table + batch.table_bytes(), LOOK);
    (start, (end - start).max(LOOK))
}
