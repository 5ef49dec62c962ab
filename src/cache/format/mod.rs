//! The records on a device, one a file: the table in a module's doc, its
//! struct and its test say the same thing, and little-endian types make the
//! struct the layout. Nothing here panics on any bytes.

pub mod dir_entry;
pub mod directory_page;

/// The version of every record; a reader takes this one only.
pub const FORMAT_VERSION: u16 = 1;

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
    #[error("format version {found}, this program reads {FORMAT_VERSION}")]
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
