//! Where everything of a stripe lies: the one type that owns every offset.

use crate::base::size::{MIB, round_down, round_up};
use crate::cache::format::directory_page::{DISK_PAGE_BYTES, PAGE_SLOTS, page_table_bytes};

/// A stripe's log is at least this long, in bytes: four full batches.
pub const MIN_LOG_BYTES: u64 = 16 * MIB;
/// A stripe is at most this long, in bytes: what 36 bits of 512 bytes reach.
pub const MAX_STRIPE_BYTES: u64 = 32 << 40;
/// The redo ring is at least this long, in bytes.
const MIN_RING_BYTES: u64 = 4 * MIB;
/// Simulations make stripes shorter than this, which go round often.
const TINY_BYTES: u64 = 16 * MIB;
/// Bytes of one slot of the directory.
const SLOT_BYTES: u64 = 8;

/// Why no stripe fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// The room is too small for headers, directory copies, ring and log.
    #[error(
        "{length} bytes hold no stripe: {overhead} go to its directory and ring, and its log needs {MIN_LOG_BYTES}"
    )]
    TooSmall {
        /// Bytes there are.
        length: u64,
        /// Bytes that are not log.
        overhead: u64,
    },
    /// The room is more than a directory entry can address.
    #[error("{length} bytes are more than a stripe's limit of {MAX_STRIPE_BYTES}")]
    TooLarge {
        /// Bytes there are.
        length: u64,
    },
    /// The block size is no power of two, or below 4096.
    #[error("block size {block} is not a power of two of at least 4096 bytes")]
    BadBlock {
        /// Bytes asked for.
        block: u32,
    },
    /// A header's number of pages is none that a stripe of its length has.
    #[error("{pages} directory pages do not fit a stripe of {length} bytes")]
    BadPages {
        /// Pages the header names.
        pages: u32,
        /// Bytes of the stripe.
        length: u64,
    },
}

/// The layout of a stripe, in bytes from its start:
///
/// ```text
/// header | copy A: table, pages | copy B: table, pages | redo ring | log | header
/// ```
///
/// The headers are as far apart as can be, so that one fault does not take
/// both. It is fixed when the stripe is made: `length`, `block` and `pages`
/// are kept in the header, and all else follows from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    length: u64,
    block: u32,
    pages: u32,
}

impl Geometry {
    /// The layout of a new stripe of `length` bytes, whose directory has a slot
    /// for each `average_object_bytes`, written in multiples of `block` bytes
    /// (4096 or the physical sector if that is larger).
    ///
    /// # Errors
    /// `TooSmall` and `TooLarge` by the length, `BadBlock` by the block size.
    pub fn new(length: u64, average_object_bytes: u64, block: u32) -> Result<Self, GeometryError> {
        let slots = length / average_object_bytes.max(512);
        let pages = slots.div_ceil(PAGE_SLOTS).max(1);
        let pages = u32::try_from(pages).map_err(|_| GeometryError::TooLarge { length })?;
        Self::from_parts(length, pages, block)
    }

    /// The layout that a stripe header names.
    ///
    /// # Errors
    /// As [`Geometry::new`]; `BadPages` for a stripe without a page.
    pub fn from_parts(length: u64, pages: u32, block: u32) -> Result<Self, GeometryError> {
        if length > MAX_STRIPE_BYTES {
            return Err(GeometryError::TooLarge { length });
        }
        if block < 4096 || !block.is_power_of_two() {
            return Err(GeometryError::BadBlock { block });
        }
        if pages == 0 || u64::from(pages) > length / DISK_PAGE_BYTES {
            return Err(GeometryError::BadPages { pages, length });
        }
        let made = Self {
            length: round_down(length, u64::from(block)),
            block,
            pages,
        };
        let overhead = made.log_offset().saturating_add(u64::from(block));
        if made.length < overhead.saturating_add(least_log(length)) {
            return Err(GeometryError::TooSmall { length, overhead });
        }
        Ok(made)
    }

    /// Bytes of the whole stripe.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Bytes that every write is a multiple of.
    #[must_use]
    pub const fn block(&self) -> u32 {
        self.block
    }

    /// Pages of the directory, each of 64 KiB.
    #[must_use]
    pub const fn pages(&self) -> u32 {
        self.pages
    }

    /// Bytes of the directory in memory.
    #[must_use]
    pub fn directory_bytes(&self) -> u64 {
        u64::from(self.pages) * PAGE_SLOTS * SLOT_BYTES
    }

    /// Where the first header lies, then the second.
    #[must_use]
    pub fn header_offsets(&self) -> [u64; 2] {
        [0, self.length - u64::from(self.block)]
    }

    /// Where the page table of directory copy A (0) or B (1) lies.
    #[must_use]
    pub fn page_table_offset(&self, copy: usize) -> u64 {
        let first = u64::from(self.block);
        if copy == 0 {
            first
        } else {
            first + self.copy_bytes()
        }
    }

    /// Bytes of a page table, padded to the block.
    #[must_use]
    pub fn page_table_bytes(&self) -> u64 {
        round_up(page_table_bytes(self.pages), u64::from(self.block))
    }

    /// Where a page of directory copy A (0) or B (1) lies.
    #[must_use]
    pub fn page_offset(&self, copy: usize, page: u32) -> u64 {
        let first = self.page_table_offset(copy) + self.page_table_bytes();
        first + u64::from(page) * self.page_bytes()
    }

    /// Bytes of a page on the device, with its header.
    #[must_use]
    pub fn page_bytes(&self) -> u64 {
        round_up(DISK_PAGE_BYTES, u64::from(self.block))
    }

    /// Where the redo ring begins.
    #[must_use]
    pub fn ring_offset(&self) -> u64 {
        u64::from(self.block) + 2 * self.copy_bytes()
    }

    /// Bytes of the redo ring: a quarter of the directory, at least 4 MiB.
    #[must_use]
    pub fn ring_bytes(&self) -> u64 {
        let quarter = self.directory_bytes() / 4;
        let least = if is_tiny(self.length) {
            self.length / 16
        } else {
            MIN_RING_BYTES
        };
        round_up(quarter.max(least), u64::from(self.block))
    }

    /// Where the log begins.
    #[must_use]
    pub fn log_offset(&self) -> u64 {
        self.ring_offset() + self.ring_bytes()
    }

    /// Bytes of the log.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.length - u64::from(self.block) - self.log_offset()
    }

    fn copy_bytes(&self) -> u64 {
        self.page_table_bytes() + u64::from(self.pages) * self.page_bytes()
    }
}

/// Whether a simulation made the stripe; the product makes none so short.
const fn is_tiny(length: u64) -> bool {
    cfg!(test) && length < TINY_BYTES
}

const fn least_log(length: u64) -> u64 {
    if is_tiny(length) {
        length / 2
    } else {
        MIN_LOG_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::size::GIB;

    #[test]
    fn parts_follow_each_other_without_overlap_up_to_the_second_header() {
        for length in [32 * MIB, 256 * MIB, 3 * GIB + 4097, 10 << 40] {
            for block in [4096, 16384] {
                let g = Geometry::new(length, 8000, block).unwrap();
                let end_of_a = g.page_offset(0, g.pages() - 1) + g.page_bytes();
                assert_eq!(end_of_a, g.page_table_offset(1));
                let end_of_b = g.page_offset(1, g.pages() - 1) + g.page_bytes();
                assert_eq!(end_of_b, g.ring_offset());
                assert_eq!(g.ring_offset() + g.ring_bytes(), g.log_offset());
                assert_eq!(g.log_offset() + g.log_bytes(), g.header_offsets()[1]);
                assert_eq!(g.log_bytes() % u64::from(block), 0);
                assert!(g.log_bytes() >= MIN_LOG_BYTES);
            }
        }
    }

    #[test]
    fn a_slot_for_each_average_object() {
        let g = Geometry::new(GIB, 8000, 4096).unwrap();
        assert!(u64::from(g.pages()) * PAGE_SLOTS >= GIB / 8000);
        assert!(u64::from(g.pages() - 1) * PAGE_SLOTS < GIB / 8000);
    }

    #[test]
    fn what_holds_no_stripe_is_refused_with_the_numbers() {
        let small = Geometry::new(20 * MIB, 8000, 4096).unwrap_err();
        assert!(small.to_string().contains("20971520"), "{small}");
        let large = Geometry::new(MAX_STRIPE_BYTES + 1, 8000, 4096).unwrap_err();
        assert!(matches!(large, GeometryError::TooLarge { .. }));
        for block in [0, 512, 4097] {
            let odd = Geometry::new(GIB, 8000, block).unwrap_err();
            assert_eq!(odd, GeometryError::BadBlock { block });
        }
        let pages = Geometry::from_parts(64 * MIB, u32::MAX, 4096).unwrap_err();
        assert!(matches!(pages, GeometryError::BadPages { .. }));
    }

    #[test]
    fn a_header_s_numbers_give_the_layout_back() {
        let g = Geometry::new(GIB, 8000, 4096).unwrap();
        assert_eq!(
            Geometry::from_parts(g.length(), g.pages(), g.block()),
            Ok(g)
        );
    }
}
