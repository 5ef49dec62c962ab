//! A directory page on the device, and the table of a copy's pages.

/// Buckets of a page.
pub const PAGE_BUCKETS: u64 = 1024;
/// Slots of a page: 8 a bucket of 64 bytes.
pub const PAGE_SLOTS: u64 = PAGE_BUCKETS * 8;
/// Bytes of a page's slots.
pub const PAGE_BYTES: u64 = PAGE_SLOTS * 8;
/// Bytes of a page on the device: a header block, then the slots.
pub const DISK_PAGE_BYTES: u64 = 4096 + PAGE_BYTES;
/// Bytes of the page table's header.
const TABLE_HEADER_BYTES: u64 = 64;
/// Bytes of a page's row in the page table.
const TABLE_ROW_BYTES: u64 = 16;

/// Bytes of the page table of a copy of `pages` pages.
#[must_use]
pub const fn page_table_bytes(pages: u32) -> u64 {
    TABLE_HEADER_BYTES + pages as u64 * TABLE_ROW_BYTES
}
