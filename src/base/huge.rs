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

/// Asks the system to back what of `memory` are whole huge pages by such, before
/// it is touched: it is given in fewer and larger pieces then, and fewer of its
/// addresses have to be looked up. A system that can't, or that was told not to,
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
    fn memory_of_any_length_stays_what_it_was() {
        for bytes in [0, 1, 4096, HUGE_BYTES - 1, HUGE_BYTES, 5 * HUGE_BYTES + 3] {
            let mut memory = vec![0u8; bytes];
            prefer_huge_pages(&memory);
            assert!(memory.iter().all(|byte| *byte == 0), "{bytes}");
            memory.fill(7);
            prefer_huge_pages(&memory[bytes / 3..]);
            assert!(memory.iter().all(|byte| *byte == 7), "{bytes}");
        }
    }
}
