//! Memory in huge pages.
#![expect(
    unsafe_code,
    reason = "how memory is backed is told to the system by its address"
)]

use nix::libc::c_void;
use nix::sys::mman::{MmapAdvise, madvise};
use std::ptr::NonNull;

/// Bytes of a huge page, where the processor has them.
const HUGE_BYTES: usize = 2 << 20;

/// What the kernel has free, by zone: numbers of pieces of 1, 2, 4 … pages.
const FREE_PIECES: &str = "/proc/buddyinfo";
/// The column of pieces as long as a huge page: 512 pages.
const HUGE_ORDER: usize = 9;

/// As [`prefer_huge_pages`], if the system has twice as many of them free. It
/// would make room for others where they are touched, page by page: that takes
/// longer than they save at a start. What they spare lookups can be had later, by
/// [`prefer_huge_pages`] once all is touched.
pub fn prefer_free_huge_pages<T>(memory: &[T]) {
    let wanted = size_of_val(memory) / HUGE_BYTES;
    if wanted == 0 {
        return;
    }
    let free = std::fs::read_to_string(FREE_PIECES).map(|pieces| free_huge_pages(&pieces));
    // Where that is not told, the system may do as it likes.
    if free.is_ok_and(|free| free < 2 * wanted) {
        tracing::debug!(wanted, "too few huge pages are free");
        return;
    }
    prefer_huge_pages(memory);
}

/// Huge pages in the free pieces of all zones.
fn free_huge_pages(pieces: &str) -> usize {
    let zone = |line: &str| {
        let (_, zone) = line.split_once("zone")?;
        let counts = zone.split_whitespace().skip(1 + HUGE_ORDER);
        let counts = counts.map(|count| count.parse().unwrap_or(0));
        Some(
            counts
                .zip(0u32..)
                .map(|(n, order): (usize, u32)| n << order)
                .sum::<usize>(),
        )
    };
    pieces.lines().filter_map(zone).sum()
}

/// Asks the system to back what of `memory` are whole huge pages by such: it is
/// given in fewer and larger pieces if it is yet to be touched, or gathered into
/// such behind, and fewer of its addresses have to be looked up. A system that can't, or that was told not to,
/// backs it as ever.
pub fn prefer_huge_pages<T>(memory: &[T]) {
    let bytes = size_of_val(memory);
    let skipped = memory.as_ptr().cast::<u8>().align_offset(HUGE_BYTES);
    let whole = bytes.saturating_sub(skipped) / HUGE_BYTES * HUGE_BYTES;
    if whole == 0 {
        return;
    }
    let first = NonNull::from(memory).cast::<u8>();
    // SAFETY: `skipped + whole` is no more than the slice's length, so that the
    // address and the range lie within it; the slice is borrowed meanwhile. The
    // advice changes no byte and takes none away: it says how pages that are yet
    // to be touched shall be made.
    let advised = unsafe {
        let start = first.add(skipped).cast::<c_void>();
        madvise(start, whole, MmapAdvise::MADV_HUGEPAGE)
    };
    if let Err(errno) = advised {
        tracing::debug!(%errno, bytes = whole, "no huge pages");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_huge_pages_are_those_in_longer_pieces_too() {
        let pieces = "\
Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3
Node 0, zone    DMA32  12116  10252   8057   4949   2169    803    333    146     55     33      8
Node 1, zone   Normal 546655 218263  59527  17903   2836    555    243     70     16      0      0
";
        assert_eq!(free_huge_pages(pieces), 1 + 2 * 3 + 33 + 2 * 8);
        for none in [
            "",
            "Node 0",
            "zone",
            "zone DMA 1 2",
            "zone DMA x x x x x x x x x x",
        ] {
            assert_eq!(free_huge_pages(none), 0, "{none}");
        }
    }

    #[test]
    fn memory_of_any_length_stays_what_it_was() {
        for bytes in [0, 1, 4096, HUGE_BYTES - 1, HUGE_BYTES, 5 * HUGE_BYTES + 3] {
            let mut memory = vec![0u8; bytes];
            prefer_free_huge_pages(&memory);
            prefer_huge_pages(&memory);
            assert!(memory.iter().all(|byte| *byte == 0), "{bytes}");
            memory.fill(7);
            prefer_huge_pages(&memory[bytes / 3..]);
            assert!(memory.iter().all(|byte| *byte == 7), "{bytes}");
        }
    }
}
