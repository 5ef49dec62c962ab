//! The head of a stripe, kept at both ends; the higher generation holds. It
//! is written at syncs only, after what it names has been flushed.
//!
//! ## StripeHeader
//!
//! | offset | bytes | field         | meaning                                          |
//! |-------:|------:|---------------|--------------------------------------------------|
//! |      0 |     8 | magic         | `StrataSt`                                       |
//! |      8 |     2 | version       | of the format                                    |
//! |     10 |     1 | good_copy     | 0 A, 1 B, 255 none: the directory began empty    |
//! |     11 |     1 | is_opened     | 1: behind ring_position is a block of this run   |
//! |     12 |     4 | volume        | number of the volume                             |
//! |     16 |    16 | uuid          | of the stripe                                    |
//! |     32 |    16 | instance      | installation and run it last took part in        |
//! |     48 |     8 | generation    | grows by one at each write                       |
//! |     56 |     8 | length        | of the stripe, bytes                             |
//! |     64 |     4 | block         | multiple of all writes, bytes                    |
//! |     68 |     4 | pages         | of the directory                                 |
//! |     72 |     8 | sync_sequence | of the good copy                                 |
//! |     80 |     8 | log_position  | first batch that no ring block before covers     |
//! |     88 |     8 | log_sequence  | its sequence                                     |
//! |     96 |     8 | ring_position | first ring block that the copy may lack          |
//! |    104 |     8 | ring_sequence | its sequence                                     |
//! |    112 |     8 | evacuation    | position of the evacuation pointer               |
//! |    120 |     8 | suspect_below | entries below this position need revalidation    |
//! |    128 |     8 | run           | the last run it took part in                     |
//! |    136 |     8 | epoch         | the highest invalidation epoch it knows          |
//! |    144 |     4 | log_link      | checksum of the batch header before log_position |
//! |    148 |     4 | ring_link     | checksum of the ring block before ring_position  |
//! |    152 |     4 | page_table    | checksum of the good copy's page table           |
//! |    156 |     4 | checksum      | CRC-32 of the above                              |

use super::{
    FORMAT_VERSION, FormatError, Record, Unverified, check_same, intact, low64, record, self_sum,
};
use crate::base::aligned::AlignedBuf;
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// See the table of this module.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct StripeHeader {
    magic: U64,
    version: U16,
    good_copy: u8,
    is_opened: u8,
    volume: U32,
    uuid: U128,
    instance: U128,
    generation: U64,
    length: U64,
    block: U32,
    pages: U32,
    sync_sequence: U64,
    log_position: U64,
    log_sequence: U64,
    ring_position: U64,
    ring_sequence: U64,
    evacuation: U64,
    suspect_below: U64,
    run: U64,
    epoch: U64,
    log_link: U32,
    ring_link: U32,
    page_table: U32,
    checksum: U32,
}

const _: () = assert!(size_of::<StripeHeader>() == 160);

record!(StripeHeader, b"StrataSt");

/// Where a chain of records goes on: the next one's position and sequence, and
/// the checksum of the one before, which the next one repeats. So what an
/// earlier run left at the same place is no successor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainPoint {
    /// Position of the next record: cycle × length + offset, bytes.
    pub position: u64,
    /// Sequence of the next record.
    pub sequence: u64,
    /// Checksum of the record before it.
    pub link: u32,
}

/// A good directory copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoodCopy {
    /// 0 is A, 1 is B.
    pub copy: u8,
    /// Of its page table.
    pub table_checksum: u32,
}

/// What a stripe header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripeContent {
    /// Names the stripe.
    pub uuid: u128,
    /// Number of the volume.
    pub volume: u32,
    /// The installation (upper half) and its run that it last took part in.
    pub instance: u128,
    /// Grows by one at each write.
    pub generation: u64,
    /// Bytes of the stripe.
    pub length: u64,
    /// Bytes that every write is a multiple of.
    pub block: u32,
    /// Pages of the directory.
    pub pages: u32,
    /// The good directory copy; none when the directory began empty.
    pub good: Option<GoodCopy>,
    /// The sync that wrote it.
    pub sync_sequence: u64,
    /// Where reading the log goes on if the ring holds nothing more.
    pub log: ChainPoint,
    /// Where reading the ring begins.
    pub ring: ChainPoint,
    /// Position of the evacuation pointer.
    pub evacuation: u64,
    /// Entries below this position need revalidation.
    pub suspect_below: u64,
    /// The last run it took part in.
    pub run: u64,
    /// The ring has a block of that run behind `ring`: the one it began with.
    pub is_opened: bool,
    /// The highest invalidation epoch it knows.
    pub epoch: u64,
}

/// The value of `good_copy` when there is none.
const NO_COPY: u8 = 255;

impl StripeContent {
    /// The header as it goes to the device, one block long.
    #[must_use]
    pub fn encode(&self) -> AlignedBuf {
        let mut header = self.header();
        header.checksum = U32::new(self_sum(&header, &[]));
        let block = usize::try_from(self.block).unwrap_or(4096);
        AlignedBuf::padded(header.as_bytes(), block)
    }

    fn header(&self) -> StripeHeader {
        StripeHeader {
            magic: U64::new(StripeHeader::MAGIC),
            version: U16::new(FORMAT_VERSION),
            good_copy: self.good.map_or(NO_COPY, |good| good.copy),
            is_opened: u8::from(self.is_opened),
            volume: U32::new(self.volume),
            uuid: U128::new(self.uuid),
            instance: U128::new(self.instance),
            generation: U64::new(self.generation),
            length: U64::new(self.length),
            block: U32::new(self.block),
            pages: U32::new(self.pages),
            sync_sequence: U64::new(self.sync_sequence),
            log_position: U64::new(self.log.position),
            log_sequence: U64::new(self.log.sequence),
            ring_position: U64::new(self.ring.position),
            ring_sequence: U64::new(self.ring.sequence),
            evacuation: U64::new(self.evacuation),
            suspect_below: U64::new(self.suspect_below),
            run: U64::new(self.run),
            epoch: U64::new(self.epoch),
            log_link: U32::new(self.log.link),
            ring_link: U32::new(self.ring.link),
            page_table: U32::new(self.good.map_or(0, |good| good.table_checksum)),
            checksum: U32::ZERO,
        }
    }
}

impl Unverified<'_, StripeHeader> {
    /// The header, if these bytes are an intact one of the stripe `uuid`.
    ///
    /// # Errors
    /// By what disagrees.
    pub fn verify(&self, uuid: u128) -> Result<StripeContent, FormatError> {
        let (header, _) = intact(self, |_| 0)?;
        check_same("stripe", low64(header.uuid.get()), low64(uuid))?;
        let good = match header.good_copy {
            copy @ (0 | 1) => Some(GoodCopy {
                copy,
                table_checksum: header.page_table.get(),
            }),
            _ => None,
        };
        Ok(content(&header, good))
    }
}

fn content(header: &StripeHeader, good: Option<GoodCopy>) -> StripeContent {
    StripeContent {
        uuid: header.uuid.get(),
        volume: header.volume.get(),
        instance: header.instance.get(),
        generation: header.generation.get(),
        length: header.length.get(),
        block: header.block.get(),
        pages: header.pages.get(),
        good,
        sync_sequence: header.sync_sequence.get(),
        log: ChainPoint {
            position: header.log_position.get(),
            sequence: header.log_sequence.get(),
            link: header.log_link.get(),
        },
        ring: ChainPoint {
            position: header.ring_position.get(),
            sequence: header.ring_sequence.get(),
            link: header.ring_link.get(),
        },
        evacuation: header.evacuation.get(),
        suspect_below: header.suspect_below.get(),
        run: header.run.get(),
        is_opened: header.is_opened == 1,
        epoch: header.epoch.get(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::format::table::{golden, table_matches_struct};
    use proptest::prelude::*;

    table_matches_struct!(
        StripeHeader: magic, version, good_copy, is_opened, volume, uuid, instance, generation,
        length, block, pages, sync_sequence, log_position, log_sequence, ring_position,
        ring_sequence, evacuation, suspect_below, run, epoch, log_link, ring_link, page_table,
        checksum
    );

    fn sample() -> StripeContent {
        let point = |n: u64| ChainPoint {
            position: n << 12,
            sequence: n,
            link: 0x0a0b_0c0d,
        };
        StripeContent {
            uuid: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10,
            volume: 1,
            instance: 77,
            generation: 9,
            length: 64 << 20,
            block: 4096,
            pages: 2,
            good: Some(GoodCopy {
                copy: 1,
                table_checksum: 0xdead_beef,
            }),
            sync_sequence: 5,
            log: point(40),
            ring: point(7),
            evacuation: 8 << 20,
            suspect_below: 3,
            run: 12,
            is_opened: false,
            epoch: 13,
        }
    }

    #[test]
    fn a_header_comes_back_as_it_was_written() {
        let none = StripeContent {
            good: None,
            ..sample()
        };
        let opened = StripeContent {
            is_opened: true,
            ..sample()
        };
        for content in [sample(), none, opened] {
            let bytes = content.encode();
            let read = Unverified::<StripeHeader>::new(&bytes).verify(content.uuid);
            assert_eq!(read, Ok(content));
        }
        golden("stripe_header", &sample().encode());
    }

    #[test]
    fn another_stripe_s_header_is_foreign() {
        let bytes = sample().encode();
        let error = Unverified::<StripeHeader>::new(&bytes)
            .verify(1)
            .unwrap_err();
        assert!(matches!(
            error,
            FormatError::Foreign {
                field: "stripe",
                ..
            }
        ));
    }

    proptest! {
        #[test]
        fn any_changed_byte_is_noticed(at in 0usize..160, to in 1u8..) {
            let mut bytes = sample().encode();
            bytes[at] ^= to;
            prop_assert!(Unverified::<StripeHeader>::new(&bytes).verify(sample().uuid).is_err());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(Unverified::<StripeHeader>::new(&bytes).verify(1).is_err());
        }
    }
}
