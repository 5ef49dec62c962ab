//! The redo ring as a start finds it.

use super::LOOK;
use crate::cache::format::Unverified;
use crate::cache::format::ring::{RingBlock, RingHeader};
use crate::cache::format::stripe_header::ChainPoint;
use crate::cache::format::{to_u64, to_usize};
use std::collections::VecDeque;

/// The ring's bytes, read as blocks.
pub(super) struct RingReader<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) uuid: u128,
}

impl RingReader<'_> {
    /// The block that comes next at `at`, or at the ring's start if it did not
    /// fit there.
    pub(super) fn next(&self, at: ChainPoint) -> Option<RingBlock> {
        let ring = to_u64(self.bytes.len()).max(1);
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

    /// Intact blocks behind `end`, where the chain broke off, by sequence.
    pub(super) fn later(&self, end: ChainPoint) -> VecDeque<RingBlock> {
        let ring = to_u64(self.bytes.len()).max(1);
        let cycle = end.position / ring;
        let mut blocks: Vec<RingBlock> = (0..ring)
            .step_by(to_usize(LOOK))
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
