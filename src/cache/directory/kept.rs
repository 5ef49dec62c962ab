//! What of a page's copy is still there, worked out once for all its slots.

use super::LogShape;
use crate::cache::format::dir_entry::{BLOCK_BYTES, DirEntry};
use std::ops::Range;

/// The entries that were valid at the cursor of a copy and have not been passed
/// since: of each parity those in one run of blocks. A start asks it of each
/// slot there is, by a subtraction and a comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kept {
    even: Blocks,
    odd: Blocks,
}

/// A run of blocks of the log.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    first: u64,
    count: u64,
}

impl Kept {
    /// By the copy's cursor `then`, and the cursor as it is `now`.
    pub(super) fn between(log: LogShape, then: u64, now: u64) -> Self {
        let view = log.at(then);
        let (begin, end) = (now.saturating_sub(log.bytes), now);
        // Positions are a cycle's start and the offset: cut to the cycle, they
        // are offsets.
        let within = |cycle: u64| {
            let offset = |position: u64| position.saturating_sub(cycle).min(log.bytes);
            offset(begin)..offset(end)
        };
        let this_cycle = cut(within(view.start), &(0..view.offset));
        let last_cycle = view
            .start
            .checked_sub(log.bytes)
            .map_or(0..0, |cycle| cut(within(cycle), &(view.offset..log.bytes)));
        let [this_cycle, last_cycle] = [this_cycle, last_cycle].map(Blocks::of);
        let (even, odd) = match view.is_odd {
            true => (last_cycle, this_cycle),
            false => (this_cycle, last_cycle),
        };
        Self { even, odd }
    }

    /// The entry, or a free slot if it is not kept.
    pub(super) const fn only(self, entry: DirEntry) -> DirEntry {
        let blocks = if entry.parity() { self.odd } else { self.even };
        if entry.block().wrapping_sub(blocks.first) < blocks.count {
            entry
        } else {
            DirEntry::FREE
        }
    }
}

impl Blocks {
    /// Those that begin within `offsets`; block 0 is nobody's.
    fn of(offsets: Range<u64>) -> Self {
        let first = offsets.start.div_ceil(BLOCK_BYTES).max(1);
        Self {
            first,
            count: offsets.end.div_ceil(BLOCK_BYTES).saturating_sub(first),
        }
    }
}

fn cut(range: Range<u64>, to: &Range<u64>) -> Range<u64> {
    range.start.max(to.start)..range.end.min(to.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::directory::is_ahead;
    use proptest::prelude::*;

    /// A log of some 100 blocks, of which cursors meet every edge.
    const LOG: LogShape = LogShape {
        offset: 0,
        bytes: 100 * BLOCK_BYTES + 8,
    };

    proptest! {
        #[test]
        fn an_entry_is_kept_if_it_was_valid_then_and_is_not_passed_now(
            then in 0..5 * LOG.bytes,
            since in 0..2 * LOG.bytes,
            is_back: bool,
        ) {
            let now = if is_back { then.saturating_sub(since) } else { then + since };
            let kept = Kept::between(LOG, then, now);
            for block in 0..103 {
                for parity in [0, 1 << 60] {
                    let entry = DirEntry::from_bits(block | parity | 0xabcd << 36);
                    let position = LOG.position(entry, then);
                    let expected = position.is_some_and(|at| is_ahead(at, now, LOG.bytes));
                    let only = if expected { entry } else { DirEntry::FREE };
                    prop_assert_eq!(kept.only(entry), only, "block {}", block);
                }
            }
        }

        #[test]
        fn no_cursor_panics(then: u64, now: u64, bits: u64) {
            let entry = DirEntry::from_bits(bits);
            let only = Kept::between(LOG, then, now).only(entry);
            prop_assert!(only.is_free() || only == entry);
        }
    }
}
