//! The redo ring as a start finds it.

use super::LOOK;
use crate::base::size::MIB;
use crate::cache::format::Unverified;
use crate::cache::format::ring::{RingBlock, RingHeader};
use crate::cache::format::stripe_header::ChainPoint;
use crate::cache::format::{to_u64, to_usize};
use std::collections::VecDeque;

/// Bytes of one read: a block less than a MiB, as long as buffers are that
/// serve again.
pub(super) const RING_READ: u64 = MIB - LOOK;
/// So many bytes behind the last block are read, to see whether the ring goes
/// on behind a damaged one: several of the longest.
const LOOK_BEHIND: u64 = 8 * MIB;

/// The ring as far as it has been read: from where a sync began, while it goes
/// on, and a stretch behind that. All of it only if something is there which
/// the chain does not lead to.
#[derive(Debug, Default)]
pub(super) struct RingSweep {
    /// Zeros where it has not been read.
    bytes: Vec<u8>,
    /// By pieces of [`RING_READ`].
    read: Vec<bool>,
    /// There are blocks which the chain does not lead to.
    is_broken: bool,
    uuid: u128,
}

impl RingSweep {
    /// A ring of so many bytes, of the stripe `uuid`.
    pub(super) fn new(length: u64, uuid: u128) -> Self {
        Self {
            bytes: vec![0; to_usize(length)],
            read: vec![false; to_usize(length.div_ceil(RING_READ))],
            is_broken: false,
            uuid,
        }
    }

    fn length(&self) -> u64 {
        to_u64(self.bytes.len()).max(1)
    }

    /// The next piece to read, if the chain has been followed up to `end`: its
    /// offset in the ring.
    pub(super) fn wanted(&mut self, end: ChainPoint) -> Option<u64> {
        let near = self.unread_near(end);
        if near.is_none() && !self.is_broken {
            self.is_broken = !self.later(end).is_empty();
        }
        let rest = 0..to_u64(self.read.len());
        let mut rest = rest.filter(|piece| self.is_broken && !self.is_read(*piece));
        let piece = near.or_else(|| rest.next());
        piece.map(|piece| piece * RING_READ)
    }

    /// The next piece of the stretch behind `end`, and of what comes at the
    /// ring's start if the next block did not fit behind `end`.
    fn unread_near(&self, end: ChainPoint) -> Option<u64> {
        let length = self.length();
        let offset = end.position % length;
        let behind = self.claimed(offset).max(LOOK_BEHIND).min(length);
        let start = self.claimed(0).max(LOOK).min(length);
        let pieces = |from: u64, bytes: u64| {
            let offsets = (from..from + bytes).step_by(to_usize(LOOK));
            offsets.map(move |offset| offset % length / RING_READ)
        };
        let mut near = pieces(offset, behind).chain(pieces(0, start));
        near.find(|piece| !self.is_read(*piece))
    }

    /// Bytes of the block that seems to begin there.
    fn claimed(&self, offset: u64) -> u64 {
        let bytes = self.bytes.get(to_usize(offset)..).unwrap_or_default();
        Unverified::<RingHeader>::new(bytes).claimed_length()
    }

    fn is_read(&self, piece: u64) -> bool {
        self.read.get(to_usize(piece)).is_none_or(|read| *read)
    }

    /// Bytes of the piece at this offset.
    pub(super) fn piece_bytes(offset: u64, ring: u64) -> u64 {
        RING_READ.min(ring.saturating_sub(offset))
    }

    /// Takes the bytes of the piece at this offset. What could not be read of
    /// it is damaged blocks, in their place.
    pub(super) fn take(&mut self, offset: u64, bytes: &[u8]) {
        let wanted = to_usize(Self::piece_bytes(offset, self.length()));
        let behind = self.bytes.get_mut(to_usize(offset)..).unwrap_or_default();
        let length = bytes.len().min(wanted).min(behind.len());
        behind[..length].copy_from_slice(&bytes[..length]);
        if let Some(read) = self.read.get_mut(to_usize(offset / RING_READ)) {
            *read = true;
        }
    }

    /// The block that comes next at `at`, or at the ring's start if it did not
    /// fit there.
    pub(super) fn next(&self, at: ChainPoint) -> Option<RingBlock> {
        let ring = self.length();
        let start = ChainPoint {
            position: (at.position / ring + 1).saturating_mul(ring),
            ..at
        };
        [at, start].into_iter().find_map(|at| {
            let bytes = self.bytes.get(to_usize(at.position % ring)..)?;
            let claim = Unverified::<RingHeader>::new(bytes);
            claim.verify_next(self.uuid, at).ok()
        })
    }

    /// Intact blocks behind `end`, where the chain broke off, by sequence, as
    /// far as the ring has been read.
    pub(super) fn later(&self, end: ChainPoint) -> VecDeque<RingBlock> {
        let ring = self.length();
        let cycle = end.position / ring;
        let mut blocks: Vec<RingBlock> = (0..ring)
            .step_by(to_usize(LOOK))
            .filter(|offset| self.is_read(offset / RING_READ))
            .filter_map(|offset| {
                let bytes = self.bytes.get(to_usize(offset)..)?;
                let this = cycle * ring + offset;
                let position = if this >= end.position {
                    this
                } else {
                    this + ring
                };
                let claim = Unverified::<RingHeader>::new(bytes);
                claim.verify(self.uuid, position).ok()
            })
            .filter(|block| block.content.sequence > end.sequence)
            .collect();
        blocks.sort_by_key(|block| block.content.sequence);
        blocks.into()
    }
}

/// Those of `blocks` that are of `run` and later ones, and what these follow
/// upon. Others were abandoned by a start that could not read them.
pub(super) fn of_run(run: u64, blocks: VecDeque<RingBlock>) -> VecDeque<RingBlock> {
    let mut kept: VecDeque<RingBlock> = VecDeque::new();
    for block in blocks.into_iter().rev() {
        let leads_on = kept.front().is_some_and(|next| follows(next, &block));
        if block.content.run >= run || leads_on {
            kept.push_front(block);
        }
    }
    kept
}

fn follows(next: &RingBlock, block: &RingBlock) -> bool {
    let (link, sequence) = (block.next.link, block.next.sequence);
    next.content.previous == link && next.content.sequence == sequence
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::format::batch::RowKind;
    use crate::cache::format::dir_entry::DirEntry;
    use crate::cache::format::ring::{RedoRow, RingContent, ring_block_bytes};

    const RING: u64 = 24 * MIB;
    const ROW: RedoRow = RedoRow {
        kind: RowKind::Free,
        page: 0,
        bucket: 0,
        entry: DirEntry::FREE,
    };

    /// A ring, and where its chain ends.
    struct Ring {
        bytes: Vec<u8>,
        start: ChainPoint,
        end: ChainPoint,
    }

    impl Ring {
        fn at(position: u64) -> Self {
            let start = ChainPoint {
                position,
                sequence: 9,
                link: 7,
            };
            Self {
                bytes: vec![0; to_usize(RING)],
                start,
                end: start,
            }
        }

        /// Writes the next block where a stripe would.
        fn push(&mut self, rows: usize) {
            let length = ring_block_bytes(rows, 4096);
            let fits = self.end.position % RING + length <= RING;
            let content = RingContent {
                uuid: 5,
                position: match fits {
                    true => self.end.position,
                    false => (self.end.position / RING + 1) * RING,
                },
                sequence: self.end.sequence,
                previous: self.end.link,
                log_first: 0,
                log: ChainPoint::default(),
                suspect_below: 0,
                run: 1,
                clean: false,
                rows: vec![ROW; rows],
            };
            let (bytes, end) = content.encode(4096);
            let at = to_usize(content.position % RING);
            self.bytes[at..at + bytes.len()].copy_from_slice(&bytes);
            self.end = end;
        }

        /// Follows the chain from its start; where it ends, and the pieces that
        /// were read for it.
        fn followed(&self) -> (ChainPoint, u64) {
            let (mut sweep, mut end) = (RingSweep::new(RING, 5), self.start);
            let mut pieces = 0;
            loop {
                while let Some(block) = sweep.next(end) {
                    end = block.next;
                }
                let Some(at) = sweep.wanted(end) else {
                    return (end, pieces);
                };
                let length = RingSweep::piece_bytes(at, RING);
                sweep.take(at, &self.bytes[to_usize(at)..to_usize(at + length)]);
                pieces += 1;
            }
        }
    }

    #[test]
    fn a_chain_is_followed_over_the_ring_s_end_and_little_else_is_read() {
        let mut ring = Ring::at(4 * RING - 3 * MIB / 2);
        (0..5).for_each(|_| ring.push(25_000));
        // The last two began anew.
        assert_eq!(ring.end.position / RING, 4);
        let (end, pieces) = ring.followed();
        assert!(end == ring.end && pieces < 14, "{pieces} read");
    }

    #[test]
    fn a_chain_of_blocks_longer_than_the_stretch_behind_is_followed() {
        let mut ring = Ring::at(RING / 2);
        let rows = to_usize(LOOK_BEHIND + MIB) / 16;
        ring.push(rows);
        ring.push(rows);
        assert_eq!(ring.end.position / RING, 1);
        assert_eq!(ring.followed().0, ring.end);
    }

    #[test]
    fn a_block_that_the_chain_does_not_lead_to_has_all_of_the_ring_read() {
        let mut ring = Ring::at(0);
        (0..4).for_each(|_| ring.push(25_000));
        let (end, pieces) = ring.followed();
        assert!(end == ring.end && pieces < 14, "{pieces} read");
        ring.bytes[to_usize(MIB)] ^= 1;
        assert_eq!(ring.followed().1, RING.div_ceil(RING_READ));
    }
}
