//! A block of the redo ring: rows of batches that have been written, so that
//! a start need not walk them.
//!
//! ## RingHeader
//!
//! | offset | bytes | field          | meaning                                         |
//! |-------:|------:|----------------|-------------------------------------------------|
//! |      0 |     8 | magic          | `StrataRi`                                      |
//! |      8 |     2 | version        | of the format                                   |
//! |     10 |     2 | flags          | 1 clean stop, 2 a region of the log is passed   |
//! |     12 |     4 | rows           | behind this header                              |
//! |     16 |    16 | uuid           | of the stripe                                   |
//! |     32 |     8 | position       | cycle × ring length + offset in the ring, bytes |
//! |     40 |     8 | sequence       | grows by one at each block                      |
//! |     48 |     8 | log_first      | position of the first batch covered             |
//! |     56 |     8 | log_position   | position behind the last batch covered          |
//! |     64 |     8 | log_sequence   | of the batch there                              |
//! |     72 |     8 | suspect_below  | entries below this position need revalidation   |
//! |     80 |     8 | run            | the run that wrote it                           |
//! |     88 |     4 | length         | of the whole block, bytes                       |
//! |     92 |     4 | log_link       | checksum of the last batch header covered       |
//! |     96 |     4 | previous       | checksum of the ring block before this one      |
//! |    100 |     4 | checksum       | CRC-32 of the above and of the rows             |
//!
//! ## RingRow
//!
//! | offset | bytes | field          | meaning                                         |
//! |-------:|------:|----------------|-------------------------------------------------|
//! |      0 |     4 | page           | of the directory                                |
//! |      4 |     2 | bucket         | one of the entry's two buckets                  |
//! |      6 |     2 | kind           | 1 put, 2 free                                   |
//! |      8 |     8 | entry          | the directory entry that comes or goes          |

use super::batch::RowKind;
use super::dir_entry::DirEntry;
use super::stripe_header::ChainPoint;
use super::{
    FORMAT_VERSION, FormatError, Record, Unverified, check_same, intact, low64, record, self_sum,
    to_u64, to_usize,
};
use crate::base::aligned::AlignedBuf;
use crate::base::size::round_up;
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of the header.
pub const RING_HEADER_BYTES: u64 = 104;
/// Bytes of a row.
pub const RING_ROW_BYTES: u64 = 16;

/// See the table of this module.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct RingHeader {
    magic: U64,
    version: U16,
    flags: U16,
    rows: U32,
    uuid: U128,
    position: U64,
    sequence: U64,
    log_first: U64,
    log_position: U64,
    log_sequence: U64,
    suspect_below: U64,
    run: U64,
    length: U32,
    log_link: U32,
    previous: U32,
    checksum: U32,
}

/// See the table of this module.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct RingRow {
    page: U32,
    bucket: U16,
    kind: U16,
    entry: U64,
}

const _: () = {
    assert!(size_of::<RingHeader>() == 104);
    assert!(size_of::<RingRow>() == 16);
};

record!(RingHeader, b"StrataRi");

/// A row without its key, as the directory needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedoRow {
    /// Whether the entry comes or goes.
    pub kind: RowKind,
    /// Of the directory.
    pub page: u32,
    /// One of the entry's two buckets.
    pub bucket: u16,
    /// The entry.
    pub entry: DirEntry,
}

/// What a ring block says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingContent {
    /// The stripe.
    pub uuid: u128,
    /// Its own position in the ring: cycle × ring length + offset.
    pub position: u64,
    /// Its own sequence.
    pub sequence: u64,
    /// Checksum of the ring block before this one.
    pub previous: u32,
    /// Position of the first batch covered.
    pub log_first: u64,
    /// Where the log goes on behind what is covered.
    pub log: ChainPoint,
    /// Entries below this position need revalidation.
    pub suspect_below: u64,
    /// The run that wrote it.
    pub run: u64,
    /// Written by a clean stop: nothing was in flight.
    pub clean: bool,
    /// The rows, in log order.
    pub rows: Vec<RedoRow>,
}

/// What a reader needs of a block besides its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingBlock {
    /// What it says.
    pub content: RingContent,
    /// Where the ring goes on behind it.
    pub next: ChainPoint,
}

/// Bytes of a block of `rows` rows, in whole `block`s.
#[must_use]
pub fn ring_block_bytes(rows: usize, block: u32) -> u64 {
    let used = RING_HEADER_BYTES + to_u64(rows) * RING_ROW_BYTES;
    round_up(used, u64::from(block))
}

impl RingContent {
    /// The block as it goes to the device, in whole `block`s, and where the
    /// ring goes on behind it.
    #[must_use]
    pub fn encode(&self, block: u32) -> (AlignedBuf, ChainPoint) {
        let rows: Vec<u8> = self.rows.iter().flat_map(encode_row).collect();
        let length = ring_block_bytes(self.rows.len(), block);
        let mut header = self.header(length);
        let link = self_sum(&header, &rows);
        header.checksum = U32::new(link);
        let bytes = [header.as_bytes(), &rows].concat();
        let next = ChainPoint {
            position: self.position + length,
            sequence: self.sequence + 1,
            link,
        };
        (AlignedBuf::padded(&bytes, to_usize(length)), next)
    }

    fn header(&self, length: u64) -> RingHeader {
        RingHeader {
            magic: U64::new(RingHeader::MAGIC),
            version: U16::new(FORMAT_VERSION),
            flags: U16::new(u16::from(self.clean)),
            rows: U32::new(u32::try_from(self.rows.len()).unwrap_or(0)),
            uuid: U128::new(self.uuid),
            position: U64::new(self.position),
            sequence: U64::new(self.sequence),
            log_first: U64::new(self.log_first),
            log_position: U64::new(self.log.position),
            log_sequence: U64::new(self.log.sequence),
            suspect_below: U64::new(self.suspect_below),
            run: U64::new(self.run),
            length: U32::new(u32::try_from(length).unwrap_or(0)),
            log_link: U32::new(self.log.link),
            previous: U32::new(self.previous),
            checksum: U32::ZERO,
        }
    }
}

fn encode_row(row: &RedoRow) -> [u8; 16] {
    zerocopy::transmute!(RingRow {
        page: U32::new(row.page),
        bucket: U16::new(row.bucket),
        kind: U16::new(row.kind.code()),
        entry: U64::new(row.entry.bits()),
    })
}

fn decode_row(bytes: &[u8]) -> Option<RedoRow> {
    let row = RingRow::read_from_bytes(bytes).ok()?;
    Some(RedoRow {
        kind: RowKind::from_code(row.kind.get())?,
        page: row.page.get(),
        bucket: row.bucket.get(),
        entry: DirEntry::from_bits(row.entry.get()),
    })
}

impl Unverified<'_, RingHeader> {
    /// Bytes of the block if these bytes begin with one, which nobody has
    /// verified; 0 if they do not look like it.
    #[must_use]
    pub fn claimed_length(&self) -> u64 {
        let header = RingHeader::read_from_prefix(self.bytes);
        let header = header.map(|(header, _)| header).ok();
        let header = header.filter(|header| header.magic() == RingHeader::MAGIC);
        header.map_or(0, |header| header.length.get().into())
    }

    /// The block, if these bytes begin with an intact one of the stripe `uuid`
    /// at `position`, whatever comes before it.
    ///
    /// # Errors
    /// By what disagrees; `Value` for rows or lengths that no writer writes.
    pub fn verify(&self, uuid: u128, position: u64) -> Result<RingBlock, FormatError> {
        let rows_bytes = |h: &RingHeader| to_usize(u64::from(h.rows.get()) * RING_ROW_BYTES);
        let (header, rest) = intact(self, rows_bytes)?;
        check_same("stripe", low64(header.uuid.get()), low64(uuid))?;
        check_same("position", header.position.get(), position)?;
        let length = header.length.get();
        if u64::from(length) < RING_HEADER_BYTES + to_u64(rest.len()) {
            return Err(FormatError::Value {
                field: "block length",
                found: u64::from(length),
            });
        }
        let rows: Option<Vec<RedoRow>> = rest.chunks_exact(16).map(decode_row).collect();
        let rows = rows.ok_or(FormatError::Value {
            field: "row kind",
            found: 0,
        })?;
        Ok(block(&header, rows))
    }

    /// The block, if it is the one that `at` says comes next.
    ///
    /// # Errors
    /// As [`Unverified::verify`]; `Foreign` for what another run left there.
    pub fn verify_next(&self, uuid: u128, at: ChainPoint) -> Result<RingBlock, FormatError> {
        let block = self.verify(uuid, at.position)?;
        let content = &block.content;
        check_same("sequence", content.sequence, at.sequence)?;
        check_same("previous", content.previous.into(), at.link.into())?;
        Ok(block)
    }
}

fn block(header: &RingHeader, rows: Vec<RedoRow>) -> RingBlock {
    let position = header.position.get();
    let sequence = header.sequence.get();
    RingBlock {
        content: RingContent {
            uuid: header.uuid.get(),
            position,
            sequence,
            previous: header.previous.get(),
            log_first: header.log_first.get(),
            log: ChainPoint {
                position: header.log_position.get(),
                sequence: header.log_sequence.get(),
                link: header.log_link.get(),
            },
            suspect_below: header.suspect_below.get(),
            run: header.run.get(),
            clean: header.flags.get() & 1 != 0,
            rows,
        },
        next: ChainPoint {
            position: position.saturating_add(u64::from(header.length.get())),
            sequence: sequence.saturating_add(1),
            link: header.checksum.get(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::format::table::{golden, table_matches_struct};
    use proptest::prelude::*;

    table_matches_struct!(
        RingHeader: magic, version, flags, rows, uuid, position, sequence, log_first,
        log_position, log_sequence, suspect_below, run, length, log_link, previous, checksum
    );

    mod row {
        use super::super::RingRow;
        use crate::cache::format::table::table_matches_struct;
        table_matches_struct!(RingRow: page, bucket, kind, entry);
    }

    const UUID: u128 = 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10;

    fn sample() -> RingContent {
        let row = |kind, n| RedoRow {
            kind,
            page: 3,
            bucket: 1023,
            entry: DirEntry::from_bits(n),
        };
        RingContent {
            uuid: UUID,
            position: 4096,
            sequence: 8,
            previous: 0x0a0b_0c0d,
            log_first: 1 << 20,
            log: ChainPoint {
                position: 2 << 20,
                sequence: 64,
                link: 0x0102_0304,
            },
            suspect_below: 5,
            run: 6,
            clean: true,
            rows: vec![row(RowKind::Put, 7), row(RowKind::Free, 9)],
        }
    }

    fn at() -> ChainPoint {
        ChainPoint {
            position: 4096,
            sequence: 8,
            link: 0x0a0b_0c0d,
        }
    }

    fn verify(bytes: &[u8], at: ChainPoint) -> Result<RingBlock, FormatError> {
        Unverified::<RingHeader>::new(bytes).verify_next(UUID, at)
    }

    #[test]
    fn a_block_comes_back_as_it_was_written() {
        let (bytes, next) = sample().encode(4096);
        let read = verify(&bytes, at()).unwrap();
        assert_eq!(read.content, sample());
        assert_eq!(read.next, next);
        assert_eq!(next.position, 8192);
        golden("ring_block", &bytes);
    }

    #[test]
    fn what_another_cycle_or_run_left_there_is_no_successor() {
        let (bytes, _) = sample().encode(4096);
        let mut others = [at(); 3];
        others[0].position += 4096;
        others[1].sequence += 1;
        others[2].link ^= 1;
        for other in others {
            let error = verify(&bytes, other).unwrap_err();
            assert!(matches!(error, FormatError::Foreign { .. }), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_changed_byte_is_noticed(at_byte in 0usize..104 + 32, to in 1u8..) {
            let (mut bytes, _) = sample().encode(4096);
            bytes[at_byte] ^= to;
            prop_assert!(verify(&bytes, at()).is_err());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(verify(&bytes, at()).is_err());
        }
    }
}
