//! Where a key's entries may be: one page, two buckets, one tag.

use crate::cache::format::directory_page::PAGE_BUCKETS;
use crate::cache::format::low64;

/// A key's home in a directory. An entry knows the tag, and so, from one of
/// its buckets, the other: it moves without its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// The page.
    pub page: u32,
    /// The two buckets within the page; never the same one twice.
    pub buckets: [u16; 2],
    /// What tells the key's entries from others in the buckets.
    pub tag: u16,
}

impl Home {
    /// The home of the key with this hash among `pages` pages.
    #[must_use]
    pub fn of(hash: u128, pages: u32) -> Self {
        let scaled = u128::from(low64(hash >> 64)) * u128::from(pages);
        let page = u32::try_from(scaled >> 64).unwrap_or(0);
        let low = low64(hash).to_le_bytes();
        let first = u16::from_le_bytes([low[0], low[1]]) & BUCKET_MASK;
        let tag = u16::from_le_bytes([low[2], low[3]]);
        Self {
            page,
            buckets: [first, other_bucket(first, tag)],
            tag,
        }
    }

    /// The home of an entry with `tag` that lies in `bucket` of `page`.
    pub(crate) fn of_entry(page: u32, bucket: u16, tag: u16) -> Self {
        let first = bucket & BUCKET_MASK;
        Self {
            page,
            buckets: [first, other_bucket(first, tag)],
            tag,
        }
    }
}

const BUCKET_MASK: u16 = 0x3ff;
const _: () = assert!(PAGE_BUCKETS == BUCKET_MASK as u64 + 1);

/// The other bucket of an entry: an odd number is never 0, so it is another.
fn other_bucket(bucket: u16, tag: u16) -> u16 {
    let mixed = (u32::from(tag) + 1).wrapping_mul(0x9e37_79b1).to_le_bytes();
    let hash = u16::from_le_bytes([mixed[2], mixed[3]]) | 1;
    bucket ^ (hash & BUCKET_MASK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_buckets_lead_to_each_other(hash: u128, pages in 1u32..1000) {
            let home = Home::of(hash, pages);
            prop_assert!(home.page < pages);
            prop_assert_ne!(home.buckets[0], home.buckets[1]);
            let back = Home::of_entry(home.page, home.buckets[1], home.tag);
            prop_assert_eq!(back.buckets[1], home.buckets[0]);
            prop_assert!(home.buckets.iter().all(|b| u64::from(*b) < PAGE_BUCKETS));
        }
    }
}
