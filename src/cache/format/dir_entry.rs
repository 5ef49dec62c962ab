//! A directory slot: 64 bits that say where a fragment may be.
//!
//! | bits  | field      | meaning                                               |
//! |------:|------------|-------------------------------------------------------|
//! |  0-35 | block      | place in the log, in 512 bytes; 0 = the slot is free  |
//! | 36-51 | tag        | 16 bits of the key's hash                             |
//! | 52-59 | size       | bytes at most, in 512: exponent 4 bits, mantissa 4    |
//! |    60 | parity     | lowest bit of the cycle it was written in             |
//! |    61 | head       | the fragment that carries an object's metadata        |
//! |    62 | referenced | read since it was written                             |
//! |    63 | pinned     | kept when the cursor comes                            |
//!
//! Block 0 of the log is always a batch's header, so no fragment is there.

/// Bytes that places and sizes are counted in.
pub const BLOCK_BYTES: u64 = 512;
/// The largest size that an entry can say, in bytes.
pub const SIZE_MAX: u64 = (32 << 14) * BLOCK_BYTES;

const BLOCK_BITS: u32 = 36;
const TAG_SHIFT: u32 = 36;
const SIZE_SHIFT: u32 = 52;
const PARITY: u64 = 1 << 60;
const HEAD: u64 = 1 << 61;
const REFERENCED: u64 = 1 << 62;
const PINNED: u64 = 1 << 63;
const BLOCK_MASK: u64 = (1 << BLOCK_BITS) - 1;

/// A slot's value; all zero is a free slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DirEntry(u64);

/// What a new entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryParts {
    /// Place in the log, in bytes; a multiple of 512 within 36 bits of blocks.
    pub offset: u64,
    /// Of the key's hash.
    pub tag: u16,
    /// Bytes of the fragment; rounded up, by 1/16 at most above 16 blocks.
    pub size: u64,
    /// Lowest bit of the cycle.
    pub parity: bool,
    /// Whether it is a head.
    pub head: bool,
    /// Whether it is pinned.
    pub pinned: bool,
}

impl DirEntry {
    /// The free slot.
    pub const FREE: Self = Self(0);

    /// The entry that says `parts`.
    #[must_use]
    pub fn new(parts: EntryParts) -> Self {
        let block = (parts.offset / BLOCK_BYTES) & BLOCK_MASK;
        let mut bits = block | u64::from(parts.tag) << TAG_SHIFT;
        bits |= u64::from(size_code(parts.size)) << SIZE_SHIFT;
        for (set, flag) in [
            (parts.parity, PARITY),
            (parts.head, HEAD),
            (parts.pinned, PINNED),
        ] {
            bits |= if set { flag } else { 0 };
        }
        Self(bits)
    }

    /// The entry with these bits, from a slot or a device; any bits are one.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The bits, as they go into a slot or to a device.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether the slot holds nothing.
    #[must_use]
    pub const fn is_free(self) -> bool {
        self.block() == 0
    }

    /// The place in the log, in blocks; 0 of a slot that is free.
    #[must_use]
    pub const fn block(self) -> u64 {
        self.0 & BLOCK_MASK
    }

    /// The place in the log, in bytes.
    #[must_use]
    pub const fn offset(self) -> u64 {
        self.block() * BLOCK_BYTES
    }

    /// The tag.
    #[must_use]
    pub const fn tag(self) -> u16 {
        let bytes = (self.0 >> TAG_SHIFT).to_le_bytes();
        u16::from_le_bytes([bytes[0], bytes[1]])
    }

    /// Bytes that hold the whole fragment: at least its length.
    #[must_use]
    pub const fn size(self) -> u64 {
        size_of_code((self.0 >> SIZE_SHIFT).to_le_bytes()[0])
    }

    /// The lowest bit of the cycle it was written in.
    #[must_use]
    pub const fn parity(self) -> bool {
        self.0 & PARITY != 0
    }

    /// Whether it is a head.
    #[must_use]
    pub const fn is_head(self) -> bool {
        self.0 & HEAD != 0
    }

    /// Whether it was read since it was written.
    #[must_use]
    pub const fn is_referenced(self) -> bool {
        self.0 & REFERENCED != 0
    }

    /// Whether it is kept when the cursor comes.
    #[must_use]
    pub const fn is_pinned(self) -> bool {
        self.0 & PINNED != 0
    }

    /// The same, as read.
    #[must_use]
    pub const fn referenced(self) -> Self {
        Self(self.0 | REFERENCED)
    }

    /// Whether both name the same fragment, read or not, pinned or not.
    #[must_use]
    pub const fn same_place(self, other: Self) -> bool {
        self.place_bits() == other.place_bits()
    }

    /// The bits that name the fragment: place, tag and parity.
    #[must_use]
    pub const fn place_bits(self) -> u64 {
        self.0 & (BLOCK_MASK | (0xffff << TAG_SHIFT) | PARITY)
    }
}

/// The smallest code whose size holds `bytes`.
fn size_code(bytes: u64) -> u8 {
    let blocks = bytes.div_ceil(BLOCK_BYTES).clamp(1, SIZE_MAX / BLOCK_BYTES);
    let mut exponent = 0u8;
    let mut mantissa = blocks - 1;
    if blocks > 16 {
        // 16 steps to each doubling: 17..=32, then 34..=64 by 2, and so on.
        let shift = u64::BITS - (blocks - 1).leading_zeros() - 5;
        exponent = u8::try_from(shift + 1).unwrap_or(15);
        mantissa = blocks.div_ceil(1 << shift) - 17;
    }
    exponent << 4 | u8::try_from(mantissa).unwrap_or(15)
}

const fn size_of_code(code: u8) -> u64 {
    let exponent = code >> 4;
    let mantissa = (code & 15) as u64;
    let blocks = match exponent {
        0 => mantissa + 1,
        _ => (mantissa + 17) << (exponent - 1),
    };
    blocks * BLOCK_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts() -> impl Strategy<Value = EntryParts> {
        (
            1u64..1 << 36,
            any::<u16>(),
            1u64..SIZE_MAX,
            any::<[bool; 3]>(),
        )
            .prop_map(|(block, tag, size, [parity, head, pinned])| EntryParts {
                offset: block * BLOCK_BYTES,
                tag,
                size,
                parity,
                head,
                pinned,
            })
    }

    proptest! {
        #[test]
        fn an_entry_says_what_it_was_made_of(parts in parts()) {
            let entry = DirEntry::from_bits(DirEntry::new(parts).bits());
            prop_assert_eq!(entry.offset(), parts.offset);
            prop_assert_eq!(entry.tag(), parts.tag);
            prop_assert_eq!(entry.parity(), parts.parity);
            prop_assert_eq!(entry.is_head(), parts.head);
            prop_assert_eq!(entry.is_pinned(), parts.pinned);
            prop_assert!(!entry.is_free());
            prop_assert!(!entry.is_referenced());
            prop_assert!(entry.referenced().is_referenced());
            prop_assert!(entry.referenced().same_place(entry));
        }

        #[test]
        fn sizes_hold_the_fragment_and_overshoot_by_a_sixteenth(bytes in 1u64..SIZE_MAX) {
            let held = size_of_code(size_code(bytes));
            let blocks = bytes.div_ceil(BLOCK_BYTES);
            prop_assert!(held >= bytes);
            prop_assert!(held <= (blocks + blocks / 16) * BLOCK_BYTES, "{} for {}", held, bytes);
        }
    }

    #[test]
    fn sizes_at_the_edges_of_the_code() {
        for blocks in [
            1,
            15,
            16,
            17,
            31,
            32,
            33,
            64,
            65,
            2047,
            2048,
            2049,
            32 << 14,
        ] {
            let held = size_of_code(size_code(blocks * BLOCK_BYTES)) / BLOCK_BYTES;
            assert!(
                held >= blocks && held <= blocks + blocks / 16,
                "{held} for {blocks}"
            );
        }
        assert_eq!(size_of_code(size_code(0)), BLOCK_BYTES);
        assert_eq!(size_of_code(size_code(u64::MAX)), SIZE_MAX);
    }

    #[test]
    fn golden_bits_stay_where_they_are() {
        let entry = DirEntry::new(EntryParts {
            offset: 0x1234 * BLOCK_BYTES,
            tag: 0xabcd,
            size: 20 * BLOCK_BYTES,
            parity: true,
            head: true,
            pinned: false,
        });
        assert_eq!(entry.bits(), 0x313a_bcd0_0000_1234);
        assert_eq!(entry.size(), 20 * BLOCK_BYTES);
    }
}
