//! The records on a device, one a file: the table in a module's doc, its
//! struct and its test say the same thing, and little-endian types make the
//! struct the layout.
//!
//! Bytes from a device are [`Unverified`] until magic, version, identity,
//! lengths and checksum agree. Nothing here panics on any bytes.

pub mod batch;
pub mod dir_entry;
pub mod directory_page;
pub mod fragment;
pub mod hot_keys;
pub mod object;
pub mod ring;
pub mod span_header;
pub mod stripe_header;

#[cfg(test)]
pub(crate) mod table;

use std::marker::PhantomData;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The version of every record that is written. A new one keeps reading the one
/// before it, of which `tests/golden/` holds images.
pub const FORMAT_VERSION: u16 = 1;
/// The oldest version that is read: one behind at most.
pub const OLDEST_VERSION: u16 = 1;

/// Why bytes are not the record they were taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Fewer bytes than the record has.
    #[error("{have} bytes, the record has {need}")]
    Short {
        /// Bytes of the record.
        need: u64,
        /// Bytes there are.
        have: u64,
    },
    /// Something else is there.
    #[error("magic {found:#018x} is not this record's")]
    Magic {
        /// What is there.
        found: u64,
    },
    /// Written by another version of this program.
    #[error("format version {found}, this program reads {OLDEST_VERSION} to {FORMAT_VERSION}")]
    Version {
        /// What is there.
        found: u16,
    },
    /// The bytes are damaged.
    #[error("checksum {computed:#010x}, the record says {stored:#010x}")]
    Checksum {
        /// Of the bytes.
        computed: u32,
        /// In the record.
        stored: u32,
    },
    /// A whole record of another stripe, span, place or time.
    #[error("{field} is {found}, expected {expected}")]
    Foreign {
        /// The field that tells.
        field: &'static str,
        /// What is there.
        found: u64,
        /// What should be.
        expected: u64,
    },
    /// A value that no writer writes.
    #[error("{field} can't be {found}")]
    Value {
        /// The field.
        field: &'static str,
        /// What is there.
        found: u64,
    },
}

/// Bytes that claim to hold a `T`, until its `verify` has agreed.
#[derive(Debug)]
pub struct Unverified<'a, T> {
    bytes: &'a [u8],
    claim: PhantomData<T>,
}

impl<'a, T> Unverified<'a, T> {
    /// The claim that `bytes` begin with a `T`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            claim: PhantomData,
        }
    }
}

/// What all records have: magic and version in front, a checksum at the end.
trait Record: FromBytes + IntoBytes + KnownLayout + Immutable {
    const MAGIC: u64;

    fn magic(&self) -> u64;
    fn version(&self) -> u16;
    fn checksum(&self) -> u32;
}

/// The record and the bytes that its checksum covers behind it, as long as
/// `rest_bytes` says: kind, length and checksum agree; nothing else has been
/// looked at.
fn intact<'a, T: Record>(
    claim: &Unverified<'a, T>,
    rest_bytes: impl Fn(&T) -> usize,
) -> Result<(T, &'a [u8]), FormatError> {
    let have = to_u64(claim.bytes.len());
    let short = |need| FormatError::Short {
        need: to_u64(need),
        have,
    };
    let (record, behind) = T::read_from_prefix(claim.bytes).map_err(|_| short(size_of::<T>()))?;
    check_kind(&record)?;
    let wanted = rest_bytes(&record);
    let rest = behind
        .get(..wanted)
        .ok_or_else(|| short(wanted.saturating_add(size_of::<T>())))?;
    check_sum(self_sum(&record, rest), record.checksum())?;
    Ok((record, rest))
}

fn check_kind<T: Record>(record: &T) -> Result<(), FormatError> {
    let (found, version) = (record.magic(), record.version());
    if found != T::MAGIC {
        return Err(FormatError::Magic { found });
    }
    check_version(version)
}

/// # Errors
/// `Version` of what this program does not read.
fn check_version(found: u16) -> Result<(), FormatError> {
    if !(OLDEST_VERSION..=FORMAT_VERSION).contains(&found) {
        return Err(FormatError::Version { found });
    }
    Ok(())
}

/// Gives a struct with the fields `magic`, `version` and `checksum` its magic.
macro_rules! record {
    ($name:ident, $magic:literal) => {
        impl crate::cache::format::Record for $name {
            const MAGIC: u64 = u64::from_le_bytes(*$magic);

            fn magic(&self) -> u64 {
                self.magic.get()
            }
            fn version(&self) -> u16 {
                self.version.get()
            }
            fn checksum(&self) -> u32 {
                self.checksum.get()
            }
        }
    };
}
use record;

fn check_sum(computed: u32, stored: u32) -> Result<(), FormatError> {
    if computed == stored {
        Ok(())
    } else {
        Err(FormatError::Checksum { computed, stored })
    }
}

fn check_same(field: &'static str, found: u64, expected: u64) -> Result<(), FormatError> {
    if found == expected {
        Ok(())
    } else {
        Err(FormatError::Foreign {
            field,
            found,
            expected,
        })
    }
}

/// The low 64 bits of a UUID, for messages and short headers.
#[must_use]
pub(crate) fn low64(uuid: u128) -> u64 {
    u64::try_from(uuid & u128::from(u64::MAX)).unwrap_or(u64::MAX)
}

/// CRC-32 of several pieces as if they were one.
#[must_use]
pub(crate) fn crc(pieces: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for piece in pieces {
        hasher.update(piece);
    }
    hasher.finalize()
}

/// The record's own checksum: its bytes up to the last four, then `rest`.
fn self_sum<T: Record>(record: &T, rest: &[u8]) -> u32 {
    let bytes = record.as_bytes();
    let covered = bytes.len().saturating_sub(4);
    crc(&[bytes.get(..covered).unwrap_or_default(), rest])
}

/// A length in memory as one on a device.
#[must_use]
pub(crate) fn to_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// A length on a device as one in memory; what does not fit exceeds any slice.
#[must_use]
pub(crate) fn to_usize(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}
