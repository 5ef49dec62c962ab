//! A directory page on the device, and the table of a copy's pages. A page
//! names its stripe, its number and the sync that wrote it: an unwritten or
//! misplaced page is a bad page.
//!
//! ## PageHeader
//!
//! | offset | bytes | field         | meaning                                          |
//! |-------:|------:|---------------|--------------------------------------------------|
//! |      0 |     8 | magic         | `StrataPg`                                       |
//! |      8 |     2 | version       | of the format                                    |
//! |     10 |     2 | reserved      | 0                                                |
//! |     12 |     4 | page          | its number                                       |
//! |     16 |    16 | uuid          | of the stripe                                    |
//! |     32 |     8 | sync_sequence | of the sync that wrote it                        |
//! |     40 |     8 | cursor        | position of the cursor when it was copied        |
//! |     48 |     4 | reserved_end  | 0                                                |
//! |     52 |     4 | checksum      | CRC-32 of the above and of the slots             |
//!
//! The 65,536 bytes of slots begin at 4096.
//!
//! ## PageTable
//!
//! | offset | bytes | field         | meaning                                          |
//! |-------:|------:|---------------|--------------------------------------------------|
//! |      0 |     8 | magic         | `StrataPt`                                       |
//! |      8 |     2 | version       | of the format                                    |
//! |     10 |     2 | reserved      | 0                                                |
//! |     12 |     4 | pages         | rows behind this header                          |
//! |     16 |    16 | uuid          | of the stripe                                    |
//! |     32 |     8 | sync_sequence | of the sync that wrote it                        |
//! |     40 |     4 | reach         | 4096s that the log went on behind log_position   |
//! |     44 |     4 | checksum      | CRC-32 of the above and of the rows              |
//!
//! `log_position` is the stripe header's; no page tells of anything behind
//! `reach`.
//!
//! ## PageRow
//!
//! | offset | bytes | field         | meaning                                          |
//! |-------:|------:|---------------|--------------------------------------------------|
//! |      0 |     8 | sync_sequence | of the sync that wrote the page; 0 = never       |
//! |      8 |     4 | checksum      | of the page                                      |
//! |     12 |     4 | reserved      | 0                                                |

use super::{
    FORMAT_VERSION, FormatError, Record, Unverified, check_same, check_sum, intact, low64, record,
    self_sum, to_u64, to_usize,
};
use crate::base::aligned::AlignedBuf;
use crate::base::planted::{Planted, is_planted};
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Buckets of a page.
pub const PAGE_BUCKETS: u64 = 1024;
/// Slots of a page: 8 a bucket of 64 bytes.
pub const PAGE_SLOTS: u64 = PAGE_BUCKETS * 8;
/// Bytes of a page's slots.
pub const PAGE_BYTES: u64 = PAGE_SLOTS * 8;
/// Bytes of a page on the device: a header block, then the slots.
pub const DISK_PAGE_BYTES: u64 = 4096 + PAGE_BYTES;
const SLOTS_OFFSET: u64 = 4096;
const TABLE_HEADER_BYTES: u64 = 48;
const TABLE_ROW_BYTES: u64 = 16;
/// Bytes that a page table counts its reach in.
const REACH_UNIT: u64 = 4096;

/// See the table of this module.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct PageHeader {
    magic: U64,
    version: U16,
    reserved: U16,
    page: U32,
    uuid: U128,
    sync_sequence: U64,
    cursor: U64,
    reserved_end: U32,
    checksum: U32,
}

/// See the table of this module.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct PageTable {
    magic: U64,
    version: U16,
    reserved: U16,
    pages: U32,
    uuid: U128,
    sync_sequence: U64,
    reach: U32,
    checksum: U32,
}

/// See the table of this module.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct PageRow {
    sync_sequence: U64,
    checksum: U32,
    reserved: U32,
}

const _: () = {
    assert!(size_of::<PageHeader>() == 56);
    assert!(size_of::<PageTable>() == 48);
    assert!(size_of::<PageRow>() == 16);
};

record!(PageHeader, b"StrataPg");
record!(PageTable, b"StrataPt");

/// Bytes of the page table of a copy of `pages` pages.
#[must_use]
pub const fn page_table_bytes(pages: u32) -> u64 {
    TABLE_HEADER_BYTES + pages as u64 * TABLE_ROW_BYTES
}

/// Which page was written, when and with what: the page table's row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageMark {
    /// The sync that wrote it; 0 = never written.
    pub sync_sequence: u64,
    /// Of the page.
    pub checksum: u32,
}

/// Names a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageName {
    /// The stripe.
    pub uuid: u128,
    /// Its number.
    pub page: u32,
    /// The sync that wrote it.
    pub sync_sequence: u64,
    /// Position of the cursor when it was copied.
    pub cursor: u64,
}

impl PageName {
    /// Writes the page to `out`, [`DISK_PAGE_BYTES`] long or longer, and gives
    /// its mark. Slots that are missing are free, those too many left out.
    pub fn encode_into(&self, slots: impl Iterator<Item = u64>, out: &mut [u8]) -> PageMark {
        let Some((front, rest)) = out.split_at_mut_checked(to_usize(SLOTS_OFFSET)) else {
            return PageMark::default();
        };
        let body = rest.get_mut(..to_usize(PAGE_BYTES)).unwrap_or_default();
        for (to, slot) in body.chunks_exact_mut(8).zip(slots) {
            to.copy_from_slice(&slot.to_le_bytes());
        }
        let mut header = PageHeader {
            magic: U64::new(PageHeader::MAGIC),
            version: U16::new(FORMAT_VERSION),
            reserved: U16::ZERO,
            page: U32::new(self.page),
            uuid: U128::new(self.uuid),
            sync_sequence: U64::new(self.sync_sequence),
            cursor: U64::new(self.cursor),
            reserved_end: U32::ZERO,
            checksum: U32::ZERO,
        };
        let checksum = self_sum(&header, body);
        header.checksum = U32::new(checksum);
        if let Some(to) = front.get_mut(..size_of::<PageHeader>()) {
            to.copy_from_slice(header.as_bytes());
        }
        PageMark {
            sync_sequence: self.sync_sequence,
            checksum,
        }
    }
}

/// A page that is what its table says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedPage<'a> {
    /// Position of the cursor when it was copied.
    pub cursor: u64,
    slots: &'a [u8],
}

impl VerifiedPage<'_> {
    /// The slots, in order.
    #[must_use]
    pub fn slots(&self) -> &[U64] {
        <[U64]>::ref_from_bytes(self.slots).unwrap_or_default()
    }
}

/// The page `page` of the stripe `uuid`, if `bytes` are the one that `mark`
/// tells of.
///
/// # Errors
/// By what disagrees.
pub fn verify_page(
    bytes: &[u8],
    (uuid, page): (u128, u32),
    mark: PageMark,
) -> Result<VerifiedPage<'_>, FormatError> {
    let short = FormatError::Short {
        need: DISK_PAGE_BYTES,
        have: to_u64(bytes.len()),
    };
    let (header, _) = PageHeader::read_from_prefix(bytes).map_err(|_| short)?;
    let range = to_usize(SLOTS_OFFSET)..to_usize(DISK_PAGE_BYTES);
    let slots = bytes.get(range).ok_or(short)?;
    super::check_kind(&header)?;
    check_same("stripe", low64(header.uuid.get()), low64(uuid))?;
    check_same("page", header.page.get().into(), page.into())?;
    check_sum(self_sum(&header, slots), header.checksum.get())?;
    if !is_planted(Planted::StrangePage) {
        check_same("sync", header.sync_sequence.get(), mark.sync_sequence)?;
        check_sum(header.checksum.get(), mark.checksum)?;
    }
    Ok(VerifiedPage {
        cursor: header.cursor.get(),
        slots,
    })
}

/// What a copy's page table says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyTable {
    /// Of each page.
    pub marks: Vec<PageMark>,
    /// Bytes that the log had gone on behind the place where reading it begins,
    /// when the last page was copied: no page tells of anything behind them.
    pub reach: u64,
}

/// The page table of a copy as it goes to the device, padded to `block`, and
/// its checksum for the stripe header.
#[must_use]
pub fn encode_page_table(
    (uuid, sync_sequence): (u128, u64),
    (marks, reach): (&[PageMark], u64),
    padded_bytes: u64,
) -> (AlignedBuf, u32) {
    let rows: Vec<u8> = marks.iter().flat_map(encode_mark).collect();
    let reach = u32::try_from(reach.div_ceil(REACH_UNIT)).unwrap_or(u32::MAX);
    let mut header = PageTable {
        magic: U64::new(PageTable::MAGIC),
        version: U16::new(FORMAT_VERSION),
        reserved: U16::ZERO,
        pages: U32::new(u32::try_from(marks.len()).unwrap_or(0)),
        uuid: U128::new(uuid),
        sync_sequence: U64::new(sync_sequence),
        reach: U32::new(reach),
        checksum: U32::ZERO,
    };
    header.checksum = U32::new(self_sum(&header, &rows));
    let bytes = [header.as_bytes(), &rows].concat();
    let buf = AlignedBuf::padded(&bytes, to_usize(padded_bytes));
    (buf, header.checksum.get())
}

fn encode_mark(mark: &PageMark) -> [u8; 16] {
    zerocopy::transmute!(PageRow {
        sync_sequence: U64::new(mark.sync_sequence),
        checksum: U32::new(mark.checksum),
        reserved: U32::ZERO,
    })
}

impl Unverified<'_, PageTable> {
    /// What the table says, if these bytes are the table of the stripe `uuid`
    /// that the sync `sync_sequence` wrote with `checksum`.
    ///
    /// # Errors
    /// By what disagrees.
    pub fn verify(
        &self,
        (uuid, sync_sequence): (u128, u64),
        checksum: u32,
    ) -> Result<CopyTable, FormatError> {
        let rows_bytes = |h: &PageTable| to_usize(u64::from(h.pages.get()) * TABLE_ROW_BYTES);
        let (header, rows) = intact(self, rows_bytes)?;
        check_same("stripe", low64(header.uuid.get()), low64(uuid))?;
        check_same("sync", header.sync_sequence.get(), sync_sequence)?;
        check_sum(header.checksum.get(), checksum)?;
        Ok(CopyTable {
            marks: rows.chunks_exact(16).filter_map(decode_mark).collect(),
            reach: u64::from(header.reach.get()) * REACH_UNIT,
        })
    }
}

fn decode_mark(bytes: &[u8]) -> Option<PageMark> {
    let row = PageRow::read_from_bytes(bytes).ok()?;
    Some(PageMark {
        sync_sequence: row.sync_sequence.get(),
        checksum: row.checksum.get(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::format::table::{golden, table_matches_struct};
    use proptest::prelude::*;

    table_matches_struct!(
        PageHeader: magic, version, reserved, page, uuid, sync_sequence, cursor, reserved_end,
        checksum
    );

    mod page_table {
        use super::super::PageTable;
        use crate::cache::format::table::table_matches_struct;
        table_matches_struct!(
            PageTable: magic, version, reserved, pages, uuid, sync_sequence, reach, checksum
        );
    }

    mod row {
        use super::super::PageRow;
        use crate::cache::format::table::table_matches_struct;
        table_matches_struct!(PageRow: sync_sequence, checksum, reserved);
    }

    const NAME: PageName = PageName {
        uuid: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10,
        page: 3,
        sync_sequence: 9,
        cursor: 1 << 24,
    };

    fn page() -> (Vec<u8>, PageMark) {
        let mut bytes = vec![0; to_usize(DISK_PAGE_BYTES)];
        let mark = NAME.encode_into(1..=PAGE_SLOTS, &mut bytes);
        (bytes, mark)
    }

    #[test]
    fn a_page_comes_back_as_it_was_written() {
        let (bytes, mark) = page();
        let read = verify_page(&bytes, (NAME.uuid, 3), mark).unwrap();
        assert_eq!(read.cursor, NAME.cursor);
        assert!(
            read.slots()
                .iter()
                .map(|slot| slot.get())
                .eq(1..=PAGE_SLOTS)
        );
        golden("directory_page", &bytes[..4096 + 64]);
    }

    #[test]
    fn another_page_stripe_or_sync_is_a_bad_page() {
        let (bytes, mark) = page();
        assert!(verify_page(&bytes, (NAME.uuid, 4), mark).is_err());
        assert!(verify_page(&bytes, (1, 3), mark).is_err());
        let older = PageMark {
            sync_sequence: 8,
            ..mark
        };
        assert!(verify_page(&bytes, (NAME.uuid, 3), older).is_err());
    }

    #[test]
    fn a_page_table_comes_back_and_knows_its_sync() {
        let marks = [page().1, PageMark::default()];
        let (bytes, sum) = encode_page_table((5, 9), (&marks, 0), 4096);
        let table = Unverified::<PageTable>::new(&bytes);
        let expected = CopyTable {
            marks: marks.to_vec(),
            reach: 0,
        };
        assert_eq!(table.verify((5, 9), sum), Ok(expected));
        assert!(table.verify((5, 8), sum).is_err());
        assert!(table.verify((4, 9), sum).is_err());
        assert!(table.verify((5, 9), sum ^ 1).is_err());
        golden("page_table", &bytes);
    }

    #[test]
    fn tables_that_differ_have_different_sums() {
        let one = encode_page_table((5, 9), (&[PageMark::default()], 0), 4096).1;
        let two = encode_page_table((5, 9), (&[page().1], 0), 4096).1;
        assert_ne!(one, two);
    }

    #[test]
    fn a_reach_comes_back_in_whole_blocks_and_never_shorter() {
        for (reach, read) in [(0, 0), (1, 4096), (4096, 4096), (5 << 40, 5 << 40)] {
            let (bytes, sum) = encode_page_table((5, 9), (&[], reach), 4096);
            let table = Unverified::<PageTable>::new(&bytes).verify((5, 9), sum);
            assert_eq!(table.unwrap().reach, read);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn any_changed_byte_is_noticed(at in 4096usize..4096 + 65_536, to in 1u8..) {
            let (mut bytes, mark) = page();
            bytes[at] ^= to;
            prop_assert!(verify_page(&bytes, (NAME.uuid, 3), mark).is_err());
            bytes[at] ^= to;
            bytes[at % 56] ^= to;
            prop_assert!(verify_page(&bytes, (NAME.uuid, 3), mark).is_err());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(verify_page(&bytes, (1, 2), PageMark::default()).is_err());
            prop_assert!(Unverified::<PageTable>::new(&bytes).verify((1, 2), 3).is_err());
        }
    }
}
