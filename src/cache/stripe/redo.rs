//! The redo ring's writing side: rows of written batches, until they are in a
//! block, and blocks, until they are on the device.

use super::geometry::Geometry;
use crate::cache::format::ring::{RedoRow, RingContent, ring_block_bytes};
use crate::cache::format::stripe_header::ChainPoint;
use crate::cache::format::to_u64;
use bytes::Bytes;

/// A block goes out when this many batches have been written.
const BATCHES_MAX: u32 = 64;
/// A block goes out when this many rows are there: 1 MiB.
const ROWS_MAX: usize = 1 << 16;

/// Rows gathered for the next block, and the block on its way.
#[derive(Debug)]
pub(super) struct Redo {
    /// Where the next block goes.
    pub(super) next: ChainPoint,
    /// Where the log goes on behind all blocks, sent ones included.
    pub(super) covered: ChainPoint,
    /// Where the log goes on behind the batches whose rows are here.
    log: ChainPoint,
    rows: Vec<RedoRow>,
    batches: u32,
    /// The ring's place that the last durable header begins to read at.
    pub(super) floor: u64,
    /// A block that must go out before the next batch is not on its way yet.
    forced: bool,
    /// The block on its way.
    pub(super) sent: Option<SentBlock>,
}

/// A block on its way; kept to be written again.
#[derive(Clone, Debug)]
pub(super) struct SentBlock {
    /// Bytes from the stripe's start.
    pub(super) offset: u64,
    pub(super) bytes: Bytes,
    pub(super) attempts: u8,
    pub(super) clean: bool,
    unblocks: bool,
}

/// What a block says besides its rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockStamp {
    pub(super) uuid: u128,
    pub(super) run: u64,
    pub(super) suspect_below: u64,
    pub(super) clean: bool,
}

impl Redo {
    /// The ring at `next`, all of the log before `covered` told of.
    pub(super) const fn new(next: ChainPoint, covered: ChainPoint, floor: u64) -> Self {
        Self {
            next,
            covered,
            log: covered,
            rows: Vec::new(),
            batches: 0,
            floor,
            forced: false,
            sent: None,
        }
    }

    /// Takes the rows of a batch that is written, or that never will be.
    pub(super) fn take(&mut self, rows: impl Iterator<Item = RedoRow>, behind: ChainPoint) {
        self.rows.extend(rows);
        self.batches += 1;
        self.log = behind;
    }

    /// Says that the log goes on at `behind`, come what may: a block goes out
    /// before the next batch.
    pub(super) const fn pass(&mut self, behind: ChainPoint) {
        self.log = behind;
        self.forced = true;
    }

    /// Takes rows that are no batch's: they are told before the next batch.
    /// Gives the block that will tell of them.
    pub(super) fn tell(&mut self, rows: Vec<RedoRow>) -> u64 {
        self.rows.extend(rows);
        self.forced = true;
        self.next.sequence
    }

    /// Whether a block must be on the device before the next batch.
    pub(super) fn is_forced(&self) -> bool {
        self.forced || self.sent.as_ref().is_some_and(|sent| sent.unblocks)
    }

    /// Whether such a block takes rows still.
    pub(super) const fn is_gathering(&self) -> bool {
        self.forced
    }

    /// The last block that is on the device.
    pub(super) fn written_sequence(&self) -> u64 {
        let on_its_way = u64::from(self.sent.is_some());
        self.next.sequence.saturating_sub(1 + on_its_way)
    }

    /// Whether rows are many enough for a block. Within a block the log goes
    /// less than a quarter round, so that an entry's parity tells its cycle.
    pub(super) fn is_due(&self, log_bytes: u64) -> bool {
        let grown = self.log.position.saturating_sub(self.covered.position);
        self.batches >= BATCHES_MAX || self.rows.len() >= ROWS_MAX || grown >= log_bytes / 8
    }

    /// Whether the rows that wait reach the bound of two blocks or half a cycle.
    pub(super) const fn is_full(&self, log_bytes: u64) -> bool {
        let grown = self.log.position.saturating_sub(self.covered.position);
        self.rows.len() > 2 * ROWS_MAX || grown > log_bytes / 2
    }

    /// Bytes of the ring that a start would read.
    pub(super) const fn used(&self) -> u64 {
        self.next.position.saturating_sub(self.floor)
    }

    /// Whether the next block fits without touching what a start needs. An
    /// eighth is kept for blocks that must go out.
    pub(super) fn has_room(&self, geometry: &Geometry) -> bool {
        let kept = if self.is_forced() {
            0
        } else {
            geometry.ring_bytes() / 8
        };
        self.end_of_next(geometry) + kept <= geometry.ring_bytes()
    }

    /// Whether a block that must go out fits.
    pub(super) fn has_last_room(&self, geometry: &Geometry) -> bool {
        self.end_of_next(geometry) <= geometry.ring_bytes()
    }

    /// Bytes of the ring that are in use once the next block is there.
    fn end_of_next(&self, geometry: &Geometry) -> u64 {
        let length = ring_block_bytes(self.rows.len(), geometry.block());
        let end = self.place(length, geometry) + length;
        end.saturating_sub(self.floor)
    }

    /// Where a block of `length` bytes goes: it never crosses the ring's end.
    fn place(&self, length: u64, geometry: &Geometry) -> u64 {
        let ring = geometry.ring_bytes();
        let at = self.next.position;
        if at % ring + length > ring {
            (at / ring + 1) * ring
        } else {
            at
        }
    }

    /// Makes the next block of all rows that are here.
    pub(super) fn send(&mut self, stamp: BlockStamp, geometry: &Geometry) -> SentBlock {
        let length = ring_block_bytes(self.rows.len(), geometry.block());
        let content = RingContent {
            uuid: stamp.uuid,
            position: self.place(length, geometry),
            sequence: self.next.sequence,
            previous: self.next.link,
            log_first: self.covered.position,
            log: self.log,
            suspect_below: stamp.suspect_below,
            run: stamp.run,
            clean: stamp.clean,
            rows: std::mem::take(&mut self.rows),
        };
        let (buf, next) = content.encode(geometry.block());
        let sent = SentBlock {
            offset: geometry.ring_offset() + content.position % geometry.ring_bytes(),
            bytes: buf.into_bytes(),
            attempts: 0,
            clean: stamp.clean,
            unblocks: std::mem::take(&mut self.forced),
        };
        self.next = next;
        self.covered = self.log;
        self.batches = 0;
        self.sent = Some(sent.clone());
        sent
    }

    /// The block is on the device; gives its bytes.
    pub(super) fn written(&mut self) -> u64 {
        let Some(sent) = self.sent.take() else {
            return 0;
        };
        to_u64(sent.bytes.len())
    }
}
