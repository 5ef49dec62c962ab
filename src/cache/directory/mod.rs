//! The memory-resident index of a stripe.

use crate::cache::format::dir_entry::DirEntry;

/// Where a fragment may be: an entry, and what it implies at the cursor that
/// it was looked up at. It is a hint until the fragment is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The entry, as it was in its slot.
    pub entry: DirEntry,
    /// Cycle × log length + offset in the log, in bytes.
    pub position: u64,
    /// Where to read, in bytes from the stripe's start; a multiple of 512.
    pub offset: u64,
    /// How much to read, in bytes; a multiple of 512, within the log.
    pub length: u32,
    /// Written before the stripe was away: use it after revalidation only.
    pub suspect: bool,
}
