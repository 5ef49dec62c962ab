//! The head of a span: whose it is, and which stripes lie on it. It is kept
//! twice, at 8 KiB and in the last MiB; the higher generation holds.
//!
//! ## SpanHeader
//!
//! | offset | bytes | field      | meaning                                       |
//! |-------:|------:|------------|-----------------------------------------------|
//! |      0 |     8 | magic      | `StrataSp`                                    |
//! |      8 |     2 | version    | of the format                                 |
//! |     10 |     1 | tier       | 0 capacity, 1 fast                            |
//! |     11 |     1 | reserved   | 0                                             |
//! |     12 |     4 | stripes    | rows of the stripe table behind this header   |
//! |     16 |    16 | uuid       | of the span                                   |
//! |     32 |     8 | generation | grows by one at each write                    |
//! |     40 |     8 | size       | of the span, bytes                            |
//! |     48 |     4 | block      | multiple of all writes, bytes                 |
//! |     52 |     4 | checksum   | CRC-32 of the above and of the stripe table   |
//!
//! ## StripeRow
//!
//! | offset | bytes | field      | meaning                                       |
//! |-------:|------:|------------|-----------------------------------------------|
//! |      0 |    16 | uuid       | of the stripe                                 |
//! |     16 |     8 | offset     | from the span's start, bytes                  |
//! |     24 |     8 | length     | bytes                                         |
//! |     32 |     4 | volume     | number of the volume                          |
//! |     36 |     4 | reserved   | 0                                             |

use super::{
    FORMAT_VERSION, FormatError, Record, Unverified, intact, record, self_sum, to_u64, to_usize,
};
use crate::base::aligned::AlignedBuf;
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Where the first header lies, in bytes from the span's start.
pub const FIRST_OFFSET: u64 = 8192;
/// Bytes that a header takes, with its table.
pub const SPAN_HEADER_BYTES: u64 = 8192;
/// Stripes that a span holds at most.
pub const STRIPES_MAX: usize = 128;

/// See the table of this module.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct SpanHeader {
    magic: U64,
    version: U16,
    tier: u8,
    reserved: u8,
    stripes: U32,
    uuid: U128,
    generation: U64,
    size: U64,
    block: U32,
    checksum: U32,
}

/// See the table of this module.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct StripeRow {
    uuid: U128,
    offset: U64,
    length: U64,
    volume: U32,
    reserved: U32,
}

const _: () = {
    assert!(size_of::<SpanHeader>() == 56);
    assert!(size_of::<StripeRow>() == 40);
    assert!(56 + STRIPES_MAX * 40 <= 8192);
};

record!(SpanHeader, b"StrataSp");

/// What a span header says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanContent {
    /// Names the span for ever.
    pub uuid: u128,
    /// Grows by one at each write.
    pub generation: u64,
    /// Bytes of the span.
    pub size: u64,
    /// Bytes that every write is a multiple of.
    pub block: u32,
    /// Whether it is of the fast tier.
    pub fast: bool,
    /// The stripes, in the order of their offsets.
    pub stripes: Vec<StripeSlot>,
}

/// Where a stripe lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripeSlot {
    /// Names the stripe for ever.
    pub uuid: u128,
    /// Bytes from the span's start.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Number of the volume.
    pub volume: u32,
}

impl SpanContent {
    /// The header as it goes to the device, [`SPAN_HEADER_BYTES`] long. Stripes
    /// beyond [`STRIPES_MAX`] are left out.
    #[must_use]
    pub fn encode(&self) -> AlignedBuf {
        let rows: Vec<u8> = self
            .stripes
            .iter()
            .take(STRIPES_MAX)
            .flat_map(row)
            .collect();
        let stripes = self.stripes.len().min(STRIPES_MAX);
        let mut header = SpanHeader {
            magic: U64::new(SpanHeader::MAGIC),
            version: U16::new(FORMAT_VERSION),
            tier: u8::from(self.fast),
            reserved: 0,
            stripes: U32::new(u32::try_from(stripes).unwrap_or(0)),
            uuid: U128::new(self.uuid),
            generation: U64::new(self.generation),
            size: U64::new(self.size),
            block: U32::new(self.block),
            checksum: U32::ZERO,
        };
        header.checksum = U32::new(self_sum(&header, &rows));
        let bytes = [header.as_bytes(), &rows].concat();
        AlignedBuf::padded(&bytes, to_usize(SPAN_HEADER_BYTES))
    }
}

fn row(slot: &StripeSlot) -> [u8; 40] {
    zerocopy::transmute!(StripeRow {
        uuid: U128::new(slot.uuid),
        offset: U64::new(slot.offset),
        length: U64::new(slot.length),
        volume: U32::new(slot.volume),
        reserved: U32::ZERO,
    })
}

impl Unverified<'_, SpanHeader> {
    /// The header, if these bytes are an intact one whose stripes lie within
    /// its span. Its size is compared with the device's by the caller.
    ///
    /// # Errors
    /// By what disagrees; `Value` for a stripe outside of the span.
    pub fn verify(&self) -> Result<SpanContent, FormatError> {
        let (header, rest) = intact(self, |h| to_usize(u64::from(h.stripes.get())) * 40)?;
        let stripes: Vec<StripeSlot> = rest.chunks_exact(40).filter_map(slot).collect();
        let size = header.size.get();
        for stripe in &stripes {
            let end = stripe.offset.saturating_add(stripe.length);
            if end > size {
                return Err(FormatError::Value {
                    field: "stripe end",
                    found: end,
                });
            }
        }
        if stripes.len() > STRIPES_MAX {
            return Err(FormatError::Value {
                field: "stripes",
                found: to_u64(stripes.len()),
            });
        }
        Ok(SpanContent {
            uuid: header.uuid.get(),
            generation: header.generation.get(),
            size,
            block: header.block.get(),
            fast: header.tier == 1,
            stripes,
        })
    }
}

fn slot(bytes: &[u8]) -> Option<StripeSlot> {
    let row = StripeRow::read_from_bytes(bytes).ok()?;
    Some(StripeSlot {
        uuid: row.uuid.get(),
        offset: row.offset.get(),
        length: row.length.get(),
        volume: row.volume.get(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::format::table::{golden, table_matches_struct};
    use proptest::prelude::*;

    table_matches_struct!(
        SpanHeader: magic, version, tier, reserved, stripes, uuid, generation, size, block, checksum
    );

    mod row {
        use super::super::StripeRow;
        use crate::cache::format::table::table_matches_struct;
        table_matches_struct!(StripeRow: uuid, offset, length, volume, reserved);
    }

    fn content() -> SpanContent {
        let slot = |n: u64| StripeSlot {
            uuid: 0x1111_2222 + u128::from(n),
            offset: 1 << 20,
            length: 64 << 20,
            volume: 1,
        };
        SpanContent {
            uuid: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10,
            generation: 3,
            size: 256 << 20,
            block: 4096,
            fast: true,
            stripes: vec![slot(0), slot(1)],
        }
    }

    #[test]
    fn a_header_comes_back_as_it_was_written() {
        let bytes = content().encode();
        assert_eq!(
            Unverified::<SpanHeader>::new(&bytes).verify(),
            Ok(content())
        );
        golden("span_header", &bytes);
    }

    #[test]
    fn a_stripe_outside_of_the_span_is_refused() {
        let mut bad = content();
        bad.stripes[1].length = 300 << 20;
        let bytes = bad.encode();
        let error = Unverified::<SpanHeader>::new(&bytes).verify().unwrap_err();
        assert!(error.to_string().contains("stripe end"), "{error}");
    }

    proptest! {
        #[test]
        fn any_changed_byte_is_noticed(at in 0usize..56 + 80, to in 1u8..) {
            let mut bytes = content().encode();
            bytes[at] ^= to;
            prop_assert!(Unverified::<SpanHeader>::new(&bytes).verify().is_err());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(Unverified::<SpanHeader>::new(&bytes).verify().is_err());
        }
    }
}
