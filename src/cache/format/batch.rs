//! A batch: header, fragments, table of rows; one aligned write.
//!
//! ```text
//! header, padded to 512 | fragments, each at a multiple of 512 | rows | zeros to a block
//! ```
//!
//! ## BatchHeader
//!
//! | offset | bytes | field          | meaning                                         |
//! |-------:|------:|----------------|-------------------------------------------------|
//! |      0 |     8 | magic          | `StrataBa`                                      |
//! |      8 |     2 | version        | of the format                                   |
//! |     10 |     2 | reserved       | 0                                               |
//! |     12 |     4 | rows           | in the table                                    |
//! |     16 |    16 | uuid           | of the stripe                                   |
//! |     32 |     8 | cycle          | how often the log had been gone through         |
//! |     40 |     8 | offset         | of this header in the log, bytes                |
//! |     48 |     8 | sequence       | grows by one at each batch                      |
//! |     56 |     4 | length         | of the whole batch, bytes                       |
//! |     60 |     4 | table_offset   | from this header, bytes                         |
//! |     64 |     8 | epoch          | invalidation epoch when it was written          |
//! |     72 |     8 | run            | the run that wrote it                           |
//! |     80 |     4 | previous       | checksum of the batch header before this one    |
//! |     84 |     4 | table_checksum | CRC-32 of the rows                              |
//! |     88 |     4 | reserved_end   | 0                                               |
//! |     92 |     4 | checksum       | CRC-32 of the above                             |
//!
//! ## BatchRow
//!
//! | offset | bytes | field          | meaning                                         |
//! |-------:|------:|----------------|-------------------------------------------------|
//! |      0 |    16 | key            | of the fragment; 0 where a free does not know   |
//! |     16 |     8 | entry          | the directory entry that comes or goes          |
//! |     24 |     4 | page           | its page                                        |
//! |     28 |     2 | bucket         | one of its two buckets                          |
//! |     30 |     2 | kind           | 1 put, 2 free                                   |
//! |     32 |     4 | length         | of the fragment, bytes; 0 for a free            |
//! |     36 |     4 | reserved       | 0                                               |

use super::dir_entry::DirEntry;
use super::stripe_header::ChainPoint;
use super::{
    FORMAT_VERSION, FormatError, Record, Unverified, check_same, check_sum, crc, intact, low64,
    record, self_sum, to_u64, to_usize,
};
use crate::base::planted::{Planted, is_planted};
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes in front of the first fragment.
pub const BATCH_HEADER_BYTES: u32 = 512;
/// Bytes of a row.
pub const BATCH_ROW_BYTES: u32 = 40;

/// See the table of this module.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct BatchHeader {
    magic: U64,
    version: U16,
    reserved: U16,
    rows: U32,
    uuid: U128,
    cycle: U64,
    offset: U64,
    sequence: U64,
    length: U32,
    table_offset: U32,
    epoch: U64,
    run: U64,
    previous: U32,
    table_checksum: U32,
    reserved_end: U32,
    checksum: U32,
}

/// See the table of this module.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct BatchRow {
    key: U128,
    entry: U64,
    page: U32,
    bucket: U16,
    kind: U16,
    length: U32,
    reserved: U32,
}

const _: () = {
    assert!(size_of::<BatchHeader>() == 96);
    assert!(size_of::<BatchRow>() == 40);
};

record!(BatchHeader, b"StrataBa");

/// Whether a row gives or takes an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// The entry comes.
    Put,
    /// The entry goes.
    Free,
}

impl RowKind {
    /// The number that stands for it on a device.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Put => 1,
            Self::Free => 2,
        }
    }

    /// What a number on a device stands for.
    #[must_use]
    pub const fn from_code(code: u16) -> Option<Self> {
        match code {
            1 => Some(Self::Put),
            2 => Some(Self::Free),
            _ => None,
        }
    }
}

/// What a batch says of one put or free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Whether the entry comes or goes.
    pub kind: RowKind,
    /// The fragment's key; 0 where a free does not know it.
    pub key: u128,
    /// The entry.
    pub entry: DirEntry,
    /// Its page.
    pub page: u32,
    /// One of its two buckets in the page.
    pub bucket: u16,
    /// Bytes of the fragment; 0 for a free.
    pub length: u32,
}

impl Row {
    /// The row as it goes to the device.
    #[must_use]
    pub fn encode(&self) -> [u8; 40] {
        zerocopy::transmute!(BatchRow {
            key: U128::new(self.key),
            entry: U64::new(self.entry.bits()),
            page: U32::new(self.page),
            bucket: U16::new(self.bucket),
            kind: U16::new(self.kind.code()),
            length: U32::new(self.length),
            reserved: U32::ZERO,
        })
    }

    fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let row = BatchRow::read_from_bytes(bytes).map_err(|_| FormatError::Short {
            need: u64::from(BATCH_ROW_BYTES),
            have: to_u64(bytes.len()),
        })?;
        let code = row.kind.get();
        let kind = RowKind::from_code(code).ok_or(FormatError::Value {
            field: "row kind",
            found: u64::from(code),
        })?;
        Ok(Self {
            kind,
            key: row.key.get(),
            entry: DirEntry::from_bits(row.entry.get()),
            page: row.page.get(),
            bucket: row.bucket.get(),
            length: row.length.get(),
        })
    }
}

/// What a batch header says; also what the next batch hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchContent {
    /// The stripe.
    pub uuid: u128,
    /// How often the log had been gone through.
    pub cycle: u64,
    /// Of the header in the log, bytes.
    pub offset: u64,
    /// Grows by one at each batch.
    pub sequence: u64,
    /// Bytes of the whole batch.
    pub length: u32,
    /// Bytes from the header to the rows.
    pub table_offset: u32,
    /// Rows of the table.
    pub rows: u32,
    /// Invalidation epoch when it was written.
    pub epoch: u64,
    /// The run that wrote it.
    pub run: u64,
    /// Checksum of the batch header before this one.
    pub previous: u32,
    /// Of the rows.
    pub table_checksum: u32,
    /// Of this header; what the next batch repeats.
    pub link: u32,
}

impl BatchContent {
    /// The header as it goes to the device, and its checksum; `link` is not
    /// looked at.
    #[must_use]
    pub fn encode(&self) -> ([u8; 96], u32) {
        let mut header = BatchHeader {
            magic: U64::new(BatchHeader::MAGIC),
            version: U16::new(FORMAT_VERSION),
            reserved: U16::ZERO,
            rows: U32::new(self.rows),
            uuid: U128::new(self.uuid),
            cycle: U64::new(self.cycle),
            offset: U64::new(self.offset),
            sequence: U64::new(self.sequence),
            length: U32::new(self.length),
            table_offset: U32::new(self.table_offset),
            epoch: U64::new(self.epoch),
            run: U64::new(self.run),
            previous: U32::new(self.previous),
            table_checksum: U32::new(self.table_checksum),
            reserved_end: U32::ZERO,
            checksum: U32::ZERO,
        };
        let link = self_sum(&header, &[]);
        header.checksum = U32::new(link);
        (zerocopy::transmute!(header), link)
    }

    /// The rows, if `table` begins with this header's table.
    ///
    /// # Errors
    /// `Short`, `Checksum`, or `Value` for a row that no writer writes.
    pub fn verify_rows(&self, table: &[u8]) -> Result<Vec<Row>, FormatError> {
        let need = self.table_bytes();
        let rows = table.get(..to_usize(need)).ok_or(FormatError::Short {
            need,
            have: to_u64(table.len()),
        })?;
        check_sum(crc(&[rows]), self.table_checksum)?;
        rows.chunks_exact(40).map(Row::decode).collect()
    }

    /// Where it belongs in a log of `log_bytes`.
    #[must_use]
    pub const fn position(&self, log_bytes: u64) -> u64 {
        let start = self.cycle.saturating_mul(log_bytes);
        start.saturating_add(self.offset)
    }

    /// Bytes of the table.
    #[must_use]
    pub const fn table_bytes(&self) -> u64 {
        self.rows as u64 * BATCH_ROW_BYTES as u64
    }
}

impl Unverified<'_, BatchHeader> {
    /// The header, if these bytes are an intact one of the stripe `uuid`, at
    /// `at` in a log of `log_bytes`, following the batch that `at` names.
    ///
    /// # Errors
    /// By what disagrees; `Value` for lengths that no writer writes.
    pub fn verify(
        &self,
        uuid: u128,
        at: ChainPoint,
        log_bytes: u64,
    ) -> Result<BatchContent, FormatError> {
        let found = self.verify_at(uuid, at.position, log_bytes)?;
        check_same("sequence", found.sequence, at.sequence)?;
        if !is_planted(Planted::ChainUnchecked) {
            check_same("previous", u64::from(found.previous), u64::from(at.link))?;
        }
        Ok(found)
    }

    /// The header, if these bytes are an intact one of the stripe `uuid` at
    /// `position` in a log of `log_bytes`, whatever came before it.
    ///
    /// # Errors
    /// By what disagrees; `Value` for lengths that no writer writes.
    pub fn verify_at(
        &self,
        uuid: u128,
        position: u64,
        log_bytes: u64,
    ) -> Result<BatchContent, FormatError> {
        let found = self.verify_anywhere(uuid, log_bytes)?;
        check_same("position", found.position(log_bytes), position)?;
        Ok(found)
    }

    /// The header, if these bytes are an intact one of the stripe `uuid`, of a
    /// log of `log_bytes`, wherever they lie.
    ///
    /// # Errors
    /// By what disagrees; `Value` for lengths that no writer writes.
    pub fn verify_anywhere(&self, uuid: u128, log_bytes: u64) -> Result<BatchContent, FormatError> {
        let found = content(&intact(self, |_| 0)?.0);
        check_same("stripe", low64(found.uuid), low64(uuid))?;
        check_lengths(&found, log_bytes)?;
        Ok(found)
    }
}

fn check_lengths(found: &BatchContent, log_bytes: u64) -> Result<(), FormatError> {
    let table_end = u64::from(found.table_offset).saturating_add(found.table_bytes());
    let wrong = |field, value| {
        Err(FormatError::Value {
            field,
            found: value,
        })
    };
    if found.table_offset < BATCH_HEADER_BYTES || table_end > u64::from(found.length) {
        return wrong("table end", table_end);
    }
    let end = found.offset.saturating_add(u64::from(found.length));
    if end > log_bytes || !found.length.is_multiple_of(BATCH_HEADER_BYTES) {
        return wrong("batch end", end);
    }
    Ok(())
}

fn content(header: &BatchHeader) -> BatchContent {
    BatchContent {
        uuid: header.uuid.get(),
        cycle: header.cycle.get(),
        offset: header.offset.get(),
        sequence: header.sequence.get(),
        length: header.length.get(),
        table_offset: header.table_offset.get(),
        rows: header.rows.get(),
        epoch: header.epoch.get(),
        run: header.run.get(),
        previous: header.previous.get(),
        table_checksum: header.table_checksum.get(),
        link: header.checksum.get(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::format::table::{golden, table_matches_struct};
    use proptest::prelude::*;

    table_matches_struct!(
        BatchHeader: magic, version, reserved, rows, uuid, cycle, offset, sequence, length,
        table_offset, epoch, run, previous, table_checksum, reserved_end, checksum
    );

    mod row {
        use super::super::BatchRow;
        use crate::cache::format::table::table_matches_struct;
        table_matches_struct!(BatchRow: key, entry, page, bucket, kind, length, reserved);
    }

    const LOG: u64 = 16 << 20;
    const UUID: u128 = 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10;

    fn rows() -> Vec<Row> {
        let row = |kind, n| Row {
            kind,
            key: u128::from(n),
            entry: DirEntry::from_bits(n),
            page: 3,
            bucket: 1023,
            length: 700,
        };
        vec![row(RowKind::Put, 7u64), row(RowKind::Free, 9)]
    }

    fn table() -> Vec<u8> {
        rows().iter().flat_map(Row::encode).collect()
    }

    fn sample() -> BatchContent {
        BatchContent {
            uuid: UUID,
            cycle: 2,
            offset: 8192,
            sequence: 11,
            length: 4096,
            table_offset: 1536,
            rows: 2,
            epoch: 5,
            run: 6,
            previous: 0x0a0b_0c0d,
            table_checksum: crc(&[&table()]),
            link: 0,
        }
    }

    fn at() -> ChainPoint {
        ChainPoint {
            position: 2 * LOG + 8192,
            sequence: 11,
            link: 0x0a0b_0c0d,
        }
    }

    fn verify(bytes: &[u8], at: ChainPoint) -> Result<BatchContent, FormatError> {
        Unverified::<BatchHeader>::new(bytes).verify(UUID, at, LOG)
    }

    #[test]
    fn a_batch_comes_back_as_it_was_written() {
        let (bytes, link) = sample().encode();
        let read = verify(&bytes, at()).unwrap();
        assert_eq!(read, BatchContent { link, ..sample() });
        assert_eq!(read.verify_rows(&table()), Ok(rows()));
        golden("batch_header", &bytes);
        golden("batch_rows", &table());
    }

    #[test]
    fn what_another_cycle_or_run_left_there_is_no_successor() {
        let (bytes, _) = sample().encode();
        let mut others = [at(); 3];
        others[0].position -= LOG;
        others[1].sequence += 1;
        others[2].link ^= 1;
        for other in others {
            let error = verify(&bytes, other).unwrap_err();
            assert!(matches!(error, FormatError::Foreign { .. }), "{error}");
        }
    }

    #[test]
    fn lengths_that_leave_the_batch_or_the_log_are_refused() {
        let mut long = sample();
        long.length = u32::MAX - 511;
        let mut rows = sample();
        rows.rows = u32::MAX;
        let mut inside = sample();
        inside.table_offset = 96;
        for bad in [long, rows, inside] {
            let error = verify(&bad.encode().0, at()).unwrap_err();
            assert!(matches!(error, FormatError::Value { .. }), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_changed_byte_is_noticed(at_byte in 0usize..96 + 80, to in 1u8..) {
            let mut bytes = [&sample().encode().0[..], &table()].concat();
            bytes[at_byte] ^= to;
            let read = verify(&bytes, at()).and_then(|batch| batch.verify_rows(&bytes[96..]));
            prop_assert!(read.is_err());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(verify(&bytes, at()).is_err());
        }
    }
}
