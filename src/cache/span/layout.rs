//! Where header and stripes of a span lie.

use crate::base::size::{MIB, round_down};
use crate::cache::format::span_header::{FIRST_OFFSET, SPAN_HEADER_BYTES};

/// A span is at least this long, in bytes.
pub(crate) const MIN_SPAN_BYTES: u64 = 32 * MIB;
/// Bytes at each end of a span that belong to its header.
pub(super) const END_BYTES: usize = 1 << 20;
/// Bytes of a header as it is read.
#[expect(
    clippy::cast_possible_truncation,
    reason = "8 KiB fit every usize; try_from is not const"
)]
pub(super) const HEADER_BYTES: usize = SPAN_HEADER_BYTES as usize;

/// Where the first header lies.
pub(super) const fn first_offset() -> u64 {
    FIRST_OFFSET
}

/// Where the second header of a span of `size` bytes lies: at the beginning
/// of its last MiB.
pub(super) const fn second_offset(size: u64) -> u64 {
    round_down(size, 4096).saturating_sub(MIB)
}

/// The bytes of a device of `bytes` that a span of this block size uses.
pub(super) fn usable(bytes: u64, block: u32) -> u64 {
    round_down(bytes, u64::from(block.max(4096)))
}
