//! The old batches that the cursor comes to next: what was read of them is to
//! be kept before it is overwritten.

use crate::base::size::MIB;
use crate::cache::format::Unverified;
use crate::cache::format::batch::{BatchContent, BatchHeader};
use crate::cache::format::{to_u64, to_usize};

/// After each look the walk leads the cursor by twice this, in bytes. Batches that
/// are nearer than a quarter of it are left to the cursor.
const LEAST_AHEAD: u64 = 8 * MIB;
/// Batches begin at multiples of so many bytes.
const STEP: usize = 4096;
/// Bytes that are looked through for a header at a time.
const LOOK: u64 = 64 << 10;

/// A walk ahead of the cursor, from header to header; where one is lost, on to
/// the next that is found.
#[derive(Clone, Copy, Debug)]
pub struct Passing {
    uuid: u128,
    log_bytes: u64,
    at: u64,
}

impl Passing {
    /// A walk over the log of stripe `uuid`, of `log_bytes`, that had come to
    /// the position `at`.
    #[must_use]
    pub const fn new(uuid: u128, log_bytes: u64, at: u64) -> Self {
        Self {
            uuid,
            log_bytes,
            at,
        }
    }

    /// The position that it has come to.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.at
    }

    /// What to read next, in bytes from the log's start, while the cursor is at
    /// `cursor`; `None` while nothing is near enough. What the cursor came too
    /// close to is left out.
    pub fn next(&mut self, cursor: u64) -> Option<(u64, u64)> {
        let oldest = cursor.checked_sub(self.log_bytes)?;
        let ahead = least_ahead(self.log_bytes);
        // The log begins in cycle 1: before that nothing was written.
        let first = (oldest + ahead / 4).max(self.log_bytes);
        let first = first.next_multiple_of(to_u64(STEP));
        self.at = match self.at {
            lost if lost < first || lost > cursor => first,
            at => at.next_multiple_of(to_u64(STEP)),
        };
        if self.at >= oldest + 2 * ahead {
            return None;
        }
        let offset = self.at % self.log_bytes;
        Some((offset, LOOK.min(self.log_bytes - offset)))
    }

    /// Takes what was read there; the first batch in it, if one begins there.
    /// The walk goes on behind it.
    pub fn take(&mut self, bytes: &[u8]) -> Option<BatchContent> {
        for from in (0..bytes.len()).step_by(STEP) {
            let position = self.at + to_u64(from);
            let claim = Unverified::<BatchHeader>::new(bytes.get(from..).unwrap_or_default());
            if let Ok(batch) = claim.verify_at(self.uuid, position, self.log_bytes) {
                self.at = position + u64::from(batch.length);
                return Some(batch);
            }
        }
        self.skip(to_u64(bytes.len()).max(to_u64(STEP)));
        None
    }

    /// Goes on behind `bytes` that could not be read, or hold no header.
    pub fn skip(&mut self, bytes: u64) {
        let room = self.log_bytes - self.at % self.log_bytes;
        self.at += bytes.min(room);
    }
}

/// Half of the lead, in bytes, that the walk has after each look. Where something
/// is pinned, three quarters of it are left before the next: a batch that the
/// walk is at, and what a start may have to walk again.
pub(super) const fn least_ahead(log_bytes: u64) -> u64 {
    let part = log_bytes / 8;
    if part < LEAST_AHEAD {
        part
    } else {
        LEAST_AHEAD
    }
}

/// Where the table of a batch is, in bytes from the log's start.
#[must_use]
pub fn table_of(batch: &BatchContent) -> (u64, usize) {
    let offset = batch.offset + u64::from(batch.table_offset);
    (offset, to_usize(batch.table_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: u128 = 7;
    const LOG: u64 = 32 * MIB;

    /// A log with a batch of 64 KiB at each of the positions.
    fn log(positions: impl Iterator<Item = u64>) -> Vec<u8> {
        let mut bytes = vec![0; to_usize(LOG)];
        for position in positions {
            let content = BatchContent {
                uuid: UUID,
                cycle: position / LOG,
                offset: position % LOG,
                sequence: 1,
                length: 64 << 10,
                table_offset: 512,
                rows: 0,
                epoch: 0,
                run: 0,
                previous: 0,
                table_checksum: 0,
                link: 0,
            };
            let from = to_usize(position % LOG);
            bytes[from..from + 96].copy_from_slice(&content.encode().0);
        }
        bytes
    }

    /// The positions of the batches that a walk finds.
    fn walked(walk: &mut Passing, log: &[u8], cursor: u64) -> Vec<u64> {
        let mut found = Vec::new();
        while let Some((offset, length)) = walk.next(cursor) {
            let bytes = &log[to_usize(offset)..to_usize(offset + length)];
            found.extend(walk.take(bytes).map(|b| b.cycle * LOG + b.offset));
        }
        found
    }

    #[test]
    fn each_batch_is_met_once_while_the_cursor_goes_round() {
        let all = (LOG..2 * LOG).step_by(64 << 10);
        let bytes = log(all.clone());
        let mut walk = Passing::new(UUID, LOG, 0);
        let mut found = Vec::new();
        for cursor in (LOG..3 * LOG - 8 * MIB).step_by(100_000) {
            found.extend(walked(&mut walk, &bytes, cursor));
        }
        let ahead = LOG / 8;
        let expected: Vec<u64> = all
            .take_while(|p| *p < 2 * LOG - 8 * MIB + 2 * ahead)
            .collect();
        assert_eq!(found[..], expected[..found.len()]);
        assert!(found.len() + 64 > expected.len(), "{}", found.len());
    }

    #[test]
    fn nothing_is_met_before_the_first_turn_is_full() {
        let bytes = log((LOG..2 * LOG).step_by(64 << 10));
        for cursor in [0, LOG, 2 * LOG - LOG / 4] {
            assert_eq!(
                walked(&mut Passing::new(UUID, LOG, 0), &bytes, cursor),
                [0; 0]
            );
        }
    }

    #[test]
    fn a_lost_place_is_found_again_at_the_next_header() {
        let lone = 2 * LOG + 5 * MIB + 4096;
        let bytes = log([lone, 2 * LOG + 20 * MIB].into_iter());
        for lost in [0, u64::MAX, 2 * LOG + 4 * MIB + 512] {
            let mut walk = Passing::new(UUID, LOG, lost);
            assert_eq!(walked(&mut walk, &bytes, 3 * LOG), [lone], "{lost}");
        }
    }

    #[test]
    fn batches_of_an_earlier_cycle_or_another_stripe_are_passed_over() {
        let bytes = log([LOG + 5 * MIB].into_iter());
        assert_eq!(
            walked(&mut Passing::new(UUID, LOG, 0), &bytes, 3 * LOG),
            [0; 0]
        );
        let mut other = Passing::new(UUID + 1, LOG, 0);
        assert_eq!(walked(&mut other, &bytes, 2 * LOG), [0; 0]);
    }
}
