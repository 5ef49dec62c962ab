//! The hottest keys of the RAM cache, hottest first: the file `ram.keys` of the
//! state directory, read ahead after a restart. It is a hint: what it names is
//! looked up and verified like any other read.
//!
//! ## HotKeysHeader
//!
//! | offset | bytes | field        | meaning                             |
//! |-------:|------:|--------------|-------------------------------------|
//! |      0 |     8 | magic        | `StrataHk`                          |
//! |      8 |     2 | version      | of the format                       |
//! |     10 |     2 | reserved     | 0                                   |
//! |     12 |     4 | keys         | rows behind this header             |
//! |     16 |     4 | reserved_end | 0                                   |
//! |     20 |     4 | checksum     | CRC-32 of the above and of the rows |
//!
//! ## HotKeyRow
//!
//! | offset | bytes | field  | meaning                                           |
//! |-------:|------:|--------|---------------------------------------------------|
//! |      0 |    16 | hash   | of the key                                        |
//! |     16 |     8 | stripe | that its head lay on: low 64 bits of the UUID     |

use super::{FORMAT_VERSION, FormatError, Record, Unverified, intact, record, self_sum, to_usize};
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Keys that a file holds at most: 24 MB.
pub const KEYS_MAX: usize = 1_000_000;
const ROW_BYTES: usize = 24;

/// See the table of this module.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct HotKeysHeader {
    magic: U64,
    version: U16,
    reserved: U16,
    keys: U32,
    reserved_end: U32,
    checksum: U32,
}

/// See the table of this module.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct HotKeyRow {
    hash: U128,
    stripe: U64,
}

const _: () = {
    assert!(size_of::<HotKeysHeader>() == 24);
    assert!(size_of::<HotKeyRow>() == ROW_BYTES);
};

record!(HotKeysHeader, b"StrataHk");

/// A key that was in the RAM cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HotKey {
    /// The hash of its text.
    pub hash: u128,
    /// The stripe that its head lay on: the low 64 bits of the UUID.
    pub stripe: u64,
}

/// The file that names these keys; those beyond [`KEYS_MAX`] are left out.
#[must_use]
pub fn encode_hot_keys(keys: &[HotKey]) -> Vec<u8> {
    let keys = keys.get(..KEYS_MAX).unwrap_or(keys);
    let row = |key: &HotKey| HotKeyRow {
        hash: U128::new(key.hash),
        stripe: U64::new(key.stripe),
    };
    let rows: Vec<HotKeyRow> = keys.iter().map(row).collect();
    let mut header = HotKeysHeader {
        magic: U64::new(HotKeysHeader::MAGIC),
        version: U16::new(FORMAT_VERSION),
        reserved: U16::ZERO,
        keys: U32::new(u32::try_from(rows.len()).unwrap_or(0)),
        reserved_end: U32::ZERO,
        checksum: U32::ZERO,
    };
    header.checksum = U32::new(self_sum(&header, rows.as_bytes()));
    [header.as_bytes(), rows.as_bytes()].concat()
}

impl Unverified<'_, HotKeysHeader> {
    /// The keys, if these bytes are a whole file.
    ///
    /// # Errors
    /// By what disagrees.
    pub fn verify(&self) -> Result<Vec<HotKey>, FormatError> {
        let rows_bytes =
            |header: &HotKeysHeader| to_usize(header.keys.get().into()).saturating_mul(ROW_BYTES);
        let (_, rows) = intact(self, rows_bytes)?;
        let rows = rows.chunks_exact(ROW_BYTES);
        Ok(rows.filter_map(decode).collect())
    }
}

fn decode(bytes: &[u8]) -> Option<HotKey> {
    let row = HotKeyRow::read_from_bytes(bytes).ok()?;
    Some(HotKey {
        hash: row.hash.get(),
        stripe: row.stripe.get(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::format::table::{golden, table_matches_struct};
    use proptest::prelude::*;

    table_matches_struct!(HotKeysHeader: magic, version, reserved, keys, reserved_end, checksum);

    mod row {
        use super::super::HotKeyRow;
        use crate::cache::format::table::table_matches_struct;
        table_matches_struct!(HotKeyRow: hash, stripe);
    }

    fn keys() -> Vec<HotKey> {
        let key = |n: u64| HotKey {
            hash: u128::from(n) << 77 | 5,
            stripe: !n,
        };
        (1..4).map(key).collect()
    }

    fn decoded(bytes: &[u8]) -> Result<Vec<HotKey>, FormatError> {
        Unverified::<HotKeysHeader>::new(bytes).verify()
    }

    #[test]
    fn keys_come_back_in_order() {
        let bytes = encode_hot_keys(&keys());
        assert_eq!(decoded(&bytes), Ok(keys()));
        golden("hot_keys", &bytes);
    }

    #[test]
    fn too_many_keys_are_cut_at_the_coldest() {
        let many = vec![keys()[0]; KEYS_MAX + 1];
        assert_eq!(decoded(&encode_hot_keys(&many)).unwrap().len(), KEYS_MAX);
    }

    proptest! {
        #[test]
        fn any_changed_byte_and_any_cut_is_noticed(at in 0usize..96, to in 1u8..) {
            let mut bytes = encode_hot_keys(&keys());
            prop_assert!(decoded(&bytes[..at]).is_err());
            bytes[at] ^= to;
            prop_assert!(decoded(&bytes).is_err());
        }
    }
}
