//! A start: from a device's bytes to a stripe, by reads that go out and bytes
//! that come in.
//!
//! Newest good header → its page table → the redo ring in one sweep → batch
//! headers and tables from where the ring ends: then all rows are known, and
//! the stripe reads its pages as they are asked for. No payload is read. A read
//! that failed counts as damaged bytes; nothing on a device makes a start fail
//! but the loss of both headers.

mod absence;
mod ahead;
mod ring;
mod walk;

use super::batch::put_bytes;
use super::geometry::{Geometry, GeometryError};
use super::load::Load;
use super::log::batch_start;
use super::options::{StripeIdentity, StripeOptions};
use super::redo::Redo;
use super::replay::Replay;
use super::{Parts, Stripe, log_shape};
use crate::base::planted::{Planted, is_planted};
use crate::base::size::{MIB, round_down};
use crate::cache::directory::Directory;
use crate::cache::format::Unverified;
use crate::cache::format::batch::{BATCH_HEADER_BYTES, BatchContent};
use crate::cache::format::directory_page::{CopyTable, PageTable};
use crate::cache::format::fragment::fragment_bytes;
use crate::cache::format::ring::{RedoRow, RingBlock};
use crate::cache::format::stripe_header::{ChainPoint, StripeContent, StripeHeader};
use crate::cache::format::{to_u64, to_usize};
use ahead::is_short;
use ring::RingSweep;
use std::collections::VecDeque;
use walk::rows_range;

/// The longest batch that any run may have left half-written, in bytes.
const BATCH_MAX: u64 = 4 * MIB;
/// Bytes of a first look at a header.
const LOOK: u64 = 4096;

/// Which stripe to recover, and what is known of it elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct RecoveryStart {
    /// Who it is, and the run that begins now. If the stripe has taken part in
    /// what comes after this, the state beside it was lost, and with it purges:
    /// what the stripe holds is dead.
    pub identity: StripeIdentity,
    /// The instance that its header names, if the state beside it knows that
    /// one. If the header names another, what the stripe holds is dead too.
    pub known_instance: Option<u128>,
    /// The last run that it took part in as far as others know: the last one
    /// in which `Stripe::has_opened` was seen. If it knows of none so late, it
    /// was away, or is an older copy of itself: it is suspect. `u64::MAX` for
    /// one that comes back within the run.
    pub last_run: u64,
    /// Bytes of the stripe, by the span's table.
    pub length: u64,
    /// Bytes that every write is a multiple of, by the span's header.
    pub block: u32,
    /// How it is to write.
    pub options: StripeOptions,
}

/// What a recovery needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryStep {
    /// These bytes, from the stripe's start; both are multiples of 4096.
    Read {
        /// Bytes from the stripe's start.
        offset: u64,
        /// Bytes to read.
        length: u64,
    },
    /// Nothing: call `finish`.
    Done,
}

/// Why no stripe came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRecovered {
    /// Neither header is intact and of this stripe.
    #[error("neither header of the stripe is intact")]
    NoHeader,
    /// The header's geometry does not hold.
    #[error("the stripe header's geometry does not hold: {0}")]
    Geometry(#[from] GeometryError),
    /// The header names more bytes than the span's table does.
    #[error("the stripe header says {header} bytes, the span {span}")]
    Length {
        /// By the stripe header.
        header: u64,
        /// By the span's table.
        span: u64,
    },
    /// `finish` was called before `step` said `Done`.
    #[error("the recovery is not done yet")]
    NotDone,
}

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// The last run ended by a clean stop.
    pub clean: bool,
    /// Blocks of the redo ring.
    pub ring_blocks: u64,
    /// Batches behind what the ring tells of.
    pub batches_walked: u64,
    /// Rows read.
    pub rows: u64,
    /// Rows are missing, or the stripe was away: old entries are suspect.
    pub suspect: bool,
    /// What it held is not used any more: see [`RecoveryStart::identity`].
    pub dead: bool,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// The positions from here on may not have been flushed before a stop
    /// that was not clean: damage there is no fault of the device.
    pub unflushed_from: u64,
    /// Where these positions end: at what this run writes.
    pub unflushed_end: u64,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Header(usize),
    Table,
    /// The piece of the ring at this offset in it.
    Ring(u64),
    Batch(ChainPoint),
    Rows(BatchContent),
    /// What lies ahead of the log's end, from this position.
    Ahead(u64),
    Done,
}

/// A start under way.
#[derive(Debug)]
pub struct Recovery {
    start: RecoveryStart,
    phase: Phase,
    header: Option<StripeContent>,
    table: CopyTable,
    ring: RingSweep,
    /// Ring blocks behind a damaged one.
    later: VecDeque<RingBlock>,
    /// Where ring and log go on, as far as they have been read.
    ring_next: ChainPoint,
    log: ChainPoint,
    /// Where the log goes on behind what the ring tells of.
    covered: ChainPoint,
    /// Rows of walked batches: the ring does not have them.
    walked: Vec<RedoRow>,
    walked_bytes: u64,
    replay: Replay,
    run: u64,
    /// The last run that wrote of the log, as far as it has been read.
    log_run: u64,
    epoch: u64,
    suspect_below: u64,
    gap: bool,
    /// What is older than now may have been replaced, and nothing says so.
    doubt: bool,
    report: RecoveryReport,
    failed: Option<NotRecovered>,
}

impl Recovery {
    /// A start that has read nothing yet.
    #[must_use]
    pub fn new(start: RecoveryStart) -> Self {
        Self {
            start,
            phase: Phase::Header(0),
            header: None,
            table: CopyTable::default(),
            ring: RingSweep::default(),
            later: VecDeque::new(),
            ring_next: ChainPoint::default(),
            log: ChainPoint::default(),
            covered: ChainPoint::default(),
            walked: Vec::new(),
            walked_bytes: 0,
            replay: Replay::default(),
            run: 0,
            log_run: 0,
            epoch: 0,
            suspect_below: 0,
            gap: false,
            doubt: false,
            report: RecoveryReport::default(),
            failed: None,
        }
    }

    /// The instance that the newest header names, once both are read: they are
    /// what is read first.
    #[must_use]
    pub fn noted_instance(&self) -> Option<u128> {
        self.header.map(|header| header.instance)
    }

    /// The read to do next; the same one until it is completed.
    #[must_use]
    pub fn step(&self) -> RecoveryStep {
        let Some((offset, length)) = self.wanted() else {
            return RecoveryStep::Done;
        };
        RecoveryStep::Read { offset, length }
    }

    fn wanted(&self) -> Option<(u64, u64)> {
        if let Phase::Header(slot) = self.phase {
            let block = u64::from(self.start.block.max(4096));
            let last = round_down(self.start.length, block).saturating_sub(block);
            return Some((if slot == 0 { 0 } else { last }, LOOK));
        }
        let (header, geometry) = self.layout()?;
        let copy = header.good.map_or(0, |good| usize::from(good.copy));
        match self.phase {
            Phase::Header(_) | Phase::Done => None,
            Phase::Table => Some((
                geometry.page_table_offset(copy),
                geometry.page_table_bytes(),
            )),
            Phase::Ring(at) => {
                let length = RingSweep::piece_bytes(at, geometry.ring_bytes());
                Some((geometry.ring_offset() + at, length))
            }
            Phase::Batch(at) => {
                let offset = at.position % geometry.log_bytes();
                Some((geometry.log_offset() + offset, LOOK))
            }
            Phase::Rows(batch) => {
                let (offset, length) = rows_range(&batch);
                Some((geometry.log_offset() + offset, length))
            }
            Phase::Ahead(position) => {
                let (offset, length) = self.ahead_range(position, &geometry);
                Some((geometry.log_offset() + offset, length))
            }
        }
    }

    fn layout(&self) -> Option<(StripeContent, Geometry)> {
        let header = self.header?;
        let geometry = Geometry::from_parts(header.length, header.pages, header.block).ok()?;
        Some((header, geometry))
    }

    /// The bytes that `step` asked for; none of them if the read failed.
    pub fn complete(&mut self, bytes: &[u8]) {
        self.report.bytes_read += to_u64(bytes.len());
        // What can't be read now may be there at the next start. A header is
        // there twice, and either holds.
        let is_header = matches!(self.phase, Phase::Header(_));
        let is_unread = !is_header && is_short(bytes, self.wanted());
        self.doubt |= is_unread && !is_planted(Planted::UnreadTrusted);
        match self.phase {
            Phase::Header(slot) => self.take_header(slot, bytes),
            Phase::Table => self.take_table(bytes),
            Phase::Ring(at) => self.take_ring(at, bytes),
            Phase::Batch(at) => self.take_batch(at, bytes),
            Phase::Rows(batch) => self.take_rows(&batch, bytes),
            Phase::Ahead(position) => self.take_ahead(position, bytes),
            Phase::Done => {}
        }
    }

    fn take_header(&mut self, slot: usize, bytes: &[u8]) {
        let uuid = self.start.identity.uuid;
        if let Ok(found) = Unverified::<StripeHeader>::new(bytes).verify(uuid) {
            let newest = self.header.map_or(0, |header| header.generation);
            if found.generation > newest {
                self.header = Some(found);
            }
        }
        self.phase = if slot == 0 {
            Phase::Header(1)
        } else {
            self.begin()
        };
    }

    fn begin(&mut self) -> Phase {
        let (header, geometry) = match self.check_header() {
            Ok(found) => found,
            Err(failed) => {
                self.failed = Some(failed);
                return Phase::Done;
            }
        };
        self.log = header.log;
        self.covered = header.log;
        self.ring_next = header.ring;
        self.run = header.run;
        self.epoch = header.epoch;
        self.suspect_below = header.suspect_below;
        self.replay = Replay::of(header.pages);
        self.ring = RingSweep::new(geometry.ring_bytes(), header.uuid);
        match header.good {
            Some(_) => Phase::Table,
            None => self.sweep_on(&geometry),
        }
    }

    fn check_header(&self) -> Result<(StripeContent, Geometry), NotRecovered> {
        let header = self.header.ok_or(NotRecovered::NoHeader)?;
        if header.length > self.start.length {
            return Err(NotRecovered::Length {
                header: header.length,
                span: self.start.length,
            });
        }
        let geometry = Geometry::from_parts(header.length, header.pages, header.block)?;
        Ok((header, geometry))
    }

    fn take_table(&mut self, bytes: &[u8]) {
        let Some((header, geometry)) = self.layout() else {
            return;
        };
        self.phase = self.sweep_on(&geometry);
        let Some(good) = header.good else { return };
        let name = (header.uuid, header.sync_sequence);
        let table = Unverified::<PageTable>::new(bytes);
        self.table = table.verify(name, good.table_checksum).unwrap_or_default();
    }

    /// Where the next batch goes: behind all that the directory copy may tell
    /// of. Before that its entries and what is written next would have the same
    /// positions.
    fn next_batch(&self, geometry: &Geometry) -> ChainPoint {
        ChainPoint {
            position: self.log_goes_on(geometry).max(self.reach()),
            ..self.log
        }
    }

    /// Where the log goes on behind what was found of it. After a stop that was
    /// not clean the write in flight may have left anything: the longest batch's
    /// room is skipped, so that no half of it is ever taken for what is written
    /// next.
    fn log_goes_on(&self, geometry: &Geometry) -> u64 {
        if self.report.clean || is_planted(Planted::NoSkipAfterKill) {
            return self.log.position;
        }
        let log_bytes = geometry.log_bytes();
        let options = &self.start.options;
        let body = to_usize(u64::from(options.fragment_bytes));
        let head = to_usize(u64::from(options.head_bytes_max));
        let largest = to_u64(fragment_bytes(head, body));
        let least = u64::from(BATCH_HEADER_BYTES) + put_bytes(largest);
        let start = batch_start(self.log.position, log_bytes, least);
        let room = log_bytes - start % log_bytes;
        start + self.longest(geometry).min(room)
    }

    /// Bytes of the longest batch that any run may have written. A log holds
    /// four full ones at least.
    fn longest(&self, geometry: &Geometry) -> u64 {
        let longest = BATCH_MAX.max(u64::from(self.start.options.buffer_bytes));
        longest.min(round_down(
            geometry.log_bytes() / 4,
            u64::from(geometry.block()),
        ))
    }

    /// The stripe, whose pages are yet to be read, and what was found on the way.
    ///
    /// # Errors
    /// `NoHeader`, `Geometry` and `Length` by what is on the device; `NotDone`
    /// before `step` says so.
    pub fn finish(mut self) -> Result<(Stripe, RecoveryReport), NotRecovered> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        let (header, geometry) = self.layout().ok_or(NotRecovered::NotDone)?;
        if !matches!(self.phase, Phase::Done) {
            return Err(NotRecovered::NotDone);
        }
        let chain = self.next_batch(&geometry);
        self.judge_absence(&header, chain.position);
        self.report.rows = self.replay.len();
        self.report.unflushed_end = chain.position;
        self.report.unflushed_from = match self.report.clean {
            true => chain.position,
            false => header.log.position,
        };
        if self.is_state_lost(&header) {
            return Ok(self.forget_all(header, geometry, chain));
        }
        let parts = self.parts(&header, geometry, chain);
        let marks = header
            .good
            .map(|good| (good.copy, std::mem::take(&mut self.table.marks)));
        let load = Load::new(marks, self.replay, geometry.pages(), chain.position);
        let mut stripe = Stripe::assemble(parts);
        stripe.read_pages(load);
        if self.gap {
            stripe.sync();
        }
        Ok((stripe, self.report))
    }

    fn parts(&mut self, header: &StripeContent, geometry: Geometry, chain: ChainPoint) -> Parts {
        let mut redo = Redo::new(self.ring_next, self.covered, header.ring.position);
        // Every run begins with a block of its own: older ones behind it are
        // none of its past.
        redo.take(std::mem::take(&mut self.walked).into_iter(), self.log);
        redo.pass(chain);
        let (uuid, shape) = (self.start.identity.uuid, log_shape(&geometry));
        let directory = Directory::unread(uuid, shape, geometry.pages(), chain.position);
        directory.set_suspect_below(self.suspect_below);
        Parts {
            identity: self.start.identity,
            geometry,
            options: self.start.options,
            directory,
            header: StripeContent {
                generation: header.generation + 1,
                is_opened: false,
                ..*header
            },
            chain,
            redo,
        }
    }
}
