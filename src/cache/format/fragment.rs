//! A fragment: one checksummed piece of an object.
//!
//! ```text
//! header | checksums of the body, one a 64 KiB | meta | body
//! ```
//!
//! The header's checksum covers the header and the body's checksums, so that a
//! range of the body is verified without reading the rest.
//!
//! ## FragmentHeader
//!
//! | offset | bytes | field         | meaning                                          |
//! |-------:|------:|---------------|--------------------------------------------------|
//! |      0 |     8 | magic         | `StrataFr`                                       |
//! |      8 |     2 | version       | of the format                                    |
//! |     10 |     1 | kind          | 1 head, 2 body                                   |
//! |     11 |     1 | reserved      | 0                                                |
//! |     12 |     4 | meta_length   | bytes of the meta: the object head, or 0         |
//! |     16 |    16 | key           | of the fragment                                  |
//! |     32 |     8 | stripe        | low 64 bits of the stripe's UUID                 |
//! |     40 |     8 | position      | cycle × log length + offset in the log, bytes    |
//! |     48 |     8 | sequence      | of the batch                                     |
//! |     56 |     4 | body_length   | bytes of the body in this fragment               |
//! |     60 |     4 | meta_checksum | CRC-32 of the meta                               |
//! |     64 |     4 | reserved_end  | 0                                                |
//! |     68 |     4 | checksum      | CRC-32 of the above and of the body's checksums  |

use super::{
    FORMAT_VERSION, FormatError, Record, Unverified, check_same, check_sum, crc, intact, low64,
    record, self_sum, to_u64, to_usize,
};
use bytes::Bytes;
use std::ops::Range;
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of the body that one checksum covers.
pub const CHECK_BYTES: u32 = 64 << 10;
/// Bytes of the header without the body's checksums.
pub const FRAGMENT_HEADER_BYTES: u32 = 72;

/// See the table of this module.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct FragmentHeader {
    magic: U64,
    version: U16,
    kind: u8,
    reserved: u8,
    meta_length: U32,
    key: U128,
    stripe: U64,
    position: U64,
    sequence: U64,
    body_length: U32,
    meta_checksum: U32,
    reserved_end: U32,
    checksum: U32,
}

const _: () = assert!(size_of::<FragmentHeader>() == 72);

record!(FragmentHeader, b"StrataFr");

/// What a fragment is of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentKind {
    /// Carries the object's metadata, and the body if that is short.
    Head,
    /// A part of the body.
    Body,
}

/// Whose a fragment is and where; what must agree when it is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentPlace {
    /// The fragment's key.
    pub key: u128,
    /// The stripe's UUID.
    pub stripe: u128,
    /// Cycle × log length + offset in the log, bytes.
    pub position: u64,
}

/// Why bytes are not the fragment they were read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FragmentError {
    /// An intact fragment of this place, but of another key that shares the
    /// tag: the lookup goes on with the next match.
    #[error("a fragment of another key")]
    OtherKey,
    /// The cursor has come over it, or its batch was never written: a miss
    /// that counts as no fault of the device.
    #[error("overtaken: {0}")]
    Overtaken(FormatError),
    /// Damaged: a miss, a fault of the device; the entry is to be freed.
    #[error("damaged: {0}")]
    Damaged(FormatError),
}

impl From<FormatError> for FragmentError {
    fn from(error: FormatError) -> Self {
        match error {
            FormatError::Foreign { .. } | FormatError::Magic { .. } => Self::Overtaken(error),
            FormatError::Short { .. }
            | FormatError::Version { .. }
            | FormatError::Checksum { .. }
            | FormatError::Value { .. } => Self::Damaged(error),
        }
    }
}

/// Bytes of a fragment with so much meta and body.
#[must_use]
pub fn fragment_bytes(meta: usize, body: usize) -> usize {
    to_usize(u64::from(FRAGMENT_HEADER_BYTES))
        .saturating_add(sums_bytes(body))
        .saturating_add(meta)
        .saturating_add(body)
}

fn sums_bytes(body: usize) -> usize {
    body.div_ceil(to_usize(u64::from(CHECK_BYTES))) * 4
}

/// What goes into a fragment.
#[derive(Clone, Copy, Debug)]
pub struct FragmentParts<'a> {
    /// Whose it is, and where.
    pub place: FragmentPlace,
    /// The batch.
    pub sequence: u64,
    /// What it is of its object.
    pub kind: FragmentKind,
    /// The object head, or nothing.
    pub meta: &'a [u8],
    /// The body, in pieces.
    pub body: &'a [Bytes],
}

impl FragmentParts<'_> {
    /// Bytes of the whole fragment.
    #[must_use]
    pub fn bytes(&self) -> usize {
        fragment_bytes(self.meta.len(), self.body_bytes())
    }

    fn body_bytes(&self) -> usize {
        self.body.iter().map(Bytes::len).sum()
    }

    /// Writes the fragment to the beginning of `out`; does nothing if it does
    /// not fit, or is longer than 32 bits can say.
    ///
    /// The body is copied once, and summed where it then lies.
    pub fn encode_into(&self, out: &mut [u8]) {
        let body_length = self.body_bytes();
        let (Ok(meta_length), Ok(body_length_field)) =
            (u32::try_from(self.meta.len()), u32::try_from(body_length))
        else {
            return;
        };
        let Some((fixed, rest)) = out.split_at_mut_checked(size_of::<FragmentHeader>()) else {
            return;
        };
        let Some((sums, rest)) = rest.split_at_mut_checked(sums_bytes(body_length)) else {
            return;
        };
        let Some(content) = rest.get_mut(..self.meta.len() + body_length) else {
            return;
        };
        self.copy_content(content);
        let (meta, body) = content.split_at(self.meta.len());
        write_sums(body, sums);
        let mut header = FragmentHeader {
            magic: U64::new(FragmentHeader::MAGIC),
            version: U16::new(FORMAT_VERSION),
            kind: kind_code(self.kind),
            reserved: 0,
            meta_length: U32::new(meta_length),
            key: U128::new(self.place.key),
            stripe: U64::new(low64(self.place.stripe)),
            position: U64::new(self.place.position),
            sequence: U64::new(self.sequence),
            body_length: U32::new(body_length_field),
            meta_checksum: U32::new(crc(&[meta])),
            reserved_end: U32::ZERO,
            checksum: U32::ZERO,
        };
        header.checksum = U32::new(self_sum(&header, sums));
        fixed.copy_from_slice(header.as_bytes());
    }

    fn copy_content(&self, content: &mut [u8]) {
        let (meta, mut rest) = content.split_at_mut(self.meta.len());
        meta.copy_from_slice(self.meta);
        for piece in self.body {
            let (to, behind) = rest.split_at_mut(piece.len());
            to.copy_from_slice(piece);
            rest = behind;
        }
    }
}

fn write_sums(body: &[u8], sums: &mut [u8]) {
    let blocks = body.chunks(to_usize(u64::from(CHECK_BYTES)));
    for (block, sum) in blocks.zip(sums.chunks_exact_mut(4)) {
        sum.copy_from_slice(&crc(&[block]).to_le_bytes());
    }
}

const fn kind_code(kind: FragmentKind) -> u8 {
    match kind {
        FragmentKind::Head => 1,
        FragmentKind::Body => 2,
    }
}

/// A fragment whose header agrees; its parts are verified as they are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FragmentFront<'a> {
    /// What it is of its object.
    pub kind: FragmentKind,
    /// The batch it was written in.
    pub sequence: u64,
    /// Bytes of the meta.
    pub meta_length: u32,
    /// Bytes of the body in this fragment.
    pub body_length: u32,
    meta_checksum: u32,
    /// Of the body's blocks, as they were read.
    sums: &'a [u8],
}

/// A fragment verified whole. The parts share the bytes that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// What it is of its object.
    pub kind: FragmentKind,
    /// The batch it was written in.
    pub sequence: u64,
    /// The object head, or nothing.
    pub meta: Bytes,
    /// The body.
    pub body: Bytes,
}

impl<'a> Unverified<'a, FragmentHeader> {
    /// The front of the fragment, if these bytes begin with an intact one of
    /// `expected`. As many bytes as header and checksums have are enough.
    ///
    /// # Errors
    /// `OtherKey`, `Overtaken` or `Damaged`.
    pub fn verify(&self, expected: &FragmentPlace) -> Result<FragmentFront<'a>, FragmentError> {
        let sums = |h: &FragmentHeader| sums_bytes(to_usize(u64::from(h.body_length.get())));
        let (header, sums) = intact(self, sums)?;
        check_same("stripe", header.stripe.get(), low64(expected.stripe))?;
        check_same("position", header.position.get(), expected.position)?;
        if header.key.get() != expected.key {
            return Err(FragmentError::OtherKey);
        }
        let kind = match header.kind {
            1 => FragmentKind::Head,
            2 => FragmentKind::Body,
            other => {
                return Err(FragmentError::Damaged(FormatError::Value {
                    field: "fragment kind",
                    found: u64::from(other),
                }));
            }
        };
        Ok(FragmentFront {
            kind,
            sequence: header.sequence.get(),
            meta_length: header.meta_length.get(),
            body_length: header.body_length.get(),
            meta_checksum: header.meta_checksum.get(),
            sums,
        })
    }
}

/// The key that a fragment in these bytes says it is of, to verify it by;
/// `None` if they are too short for a header.
#[must_use]
pub fn claimed_key(bytes: &[u8]) -> Option<u128> {
    let (header, _) = FragmentHeader::read_from_prefix(bytes).ok()?;
    Some(header.key.get())
}

fn sum(bytes: &[u8]) -> u32 {
    u32::read_from_bytes(bytes).map_or(0, u32::from_le)
}

impl FragmentFront<'_> {
    /// Where the meta lies, in bytes from the fragment's start.
    #[must_use]
    pub fn meta_range(&self) -> Range<usize> {
        let start = size_of::<FragmentHeader>() + self.sums.len();
        start..start.saturating_add(to_usize(u64::from(self.meta_length)))
    }

    /// Where the body lies, in bytes from the fragment's start.
    #[must_use]
    pub fn body_range(&self) -> Range<usize> {
        let start = self.meta_range().end;
        start..start.saturating_add(to_usize(u64::from(self.body_length)))
    }

    /// Verifies a part of the body that begins at `start` bytes, a multiple of
    /// 64 KiB, and ends at such a multiple or at the body's end.
    ///
    /// # Errors
    /// `Damaged` if a block's checksum differs.
    pub fn verify_body(&self, start: u32, bytes: &[u8]) -> Result<(), FragmentError> {
        let skipped = to_usize(u64::from(start / CHECK_BYTES));
        let blocks = bytes.chunks(to_usize(u64::from(CHECK_BYTES)));
        let mut sums = self.sums.chunks_exact(4).skip(skipped);
        for block in blocks {
            let stored = sums.next().map_or(0, sum);
            check_sum(crc(&[block]), stored)?;
        }
        Ok(())
    }

    /// Verifies the meta.
    ///
    /// # Errors
    /// `Damaged` if its checksum differs.
    pub fn verify_meta(&self, meta: &[u8]) -> Result<(), FragmentError> {
        Ok(check_sum(crc(&[meta]), self.meta_checksum)?)
    }
}

/// The whole fragment, if `bytes` begin with an intact one of `expected`.
///
/// # Errors
/// `OtherKey`, `Overtaken` or `Damaged`.
pub fn verify_fragment(bytes: &Bytes, expected: &FragmentPlace) -> Result<Fragment, FragmentError> {
    let front = Unverified::<FragmentHeader>::new(bytes).verify(expected)?;
    let (meta, body) = (front.meta_range(), front.body_range());
    if body.end > bytes.len() {
        return Err(FragmentError::Damaged(FormatError::Short {
            need: to_u64(body.end),
            have: to_u64(bytes.len()),
        }));
    }
    let fragment = Fragment {
        kind: front.kind,
        sequence: front.sequence,
        meta: bytes.slice(meta),
        body: bytes.slice(body),
    };
    front.verify_meta(&fragment.meta)?;
    front.verify_body(0, &fragment.body)?;
    Ok(fragment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::format::table::{golden, table_matches_struct};
    use proptest::prelude::*;

    table_matches_struct!(
        FragmentHeader: magic, version, kind, reserved, meta_length, key, stripe, position,
        sequence, body_length, meta_checksum, reserved_end, checksum
    );

    const PLACE: FragmentPlace = FragmentPlace {
        key: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10,
        stripe: 0x1112_1314_1516_1718_191a_1b1c_1d1e_1f20,
        position: 0x0123_4500,
    };

    fn encode(meta: &[u8], body: &[Bytes]) -> Vec<u8> {
        let parts = FragmentParts {
            place: PLACE,
            sequence: 42,
            kind: FragmentKind::Head,
            meta,
            body,
        };
        let mut out = vec![0; parts.bytes()];
        parts.encode_into(&mut out);
        out
    }

    fn verify(bytes: Vec<u8>, place: FragmentPlace) -> Result<Fragment, FragmentError> {
        verify_fragment(&Bytes::from(bytes), &place)
    }

    #[test]
    fn pieces_come_back_as_one_body() {
        let pieces = [Bytes::from(vec![7; 70_000]), Bytes::from(vec![8; 70_000])];
        let fragment = verify(encode(b"meta", &pieces), PLACE).unwrap();
        assert_eq!(&fragment.meta[..], b"meta");
        assert_eq!(fragment.body, pieces.concat());
        assert_eq!((fragment.kind, fragment.sequence), (FragmentKind::Head, 42));
        golden("fragment", &encode(b"meta", &[Bytes::from_static(b"body")]));
    }

    #[test]
    fn an_empty_object_is_a_fragment_too() {
        let fragment = verify(encode(b"", &[]), PLACE).unwrap();
        assert!(fragment.meta.is_empty() && fragment.body.is_empty());
    }

    #[test]
    fn another_key_lets_the_lookup_go_on_and_another_place_ends_it() {
        let bytes = encode(b"meta", &[]);
        let key = FragmentPlace { key: 1, ..PLACE };
        assert_eq!(verify(bytes.clone(), key), Err(FragmentError::OtherKey));
        for place in [
            FragmentPlace {
                position: 1,
                ..PLACE
            },
            FragmentPlace { stripe: 1, ..PLACE },
        ] {
            let error = verify(bytes.clone(), place).unwrap_err();
            assert!(matches!(error, FragmentError::Overtaken(_)), "{error}");
        }
    }

    #[test]
    fn a_range_is_verified_without_the_rest() {
        let body: Vec<u8> = (0..200_000u32).map(|n| n.to_le_bytes()[0]).collect();
        let bytes = encode(b"m", &[Bytes::from(body)]);
        let front = Unverified::<FragmentHeader>::new(&bytes[..200])
            .verify(&PLACE)
            .unwrap();
        let start = front.body_range().start;
        let mut part = bytes[start + 65_536..start + 131_072].to_vec();
        assert_eq!(front.verify_body(65_536, &part), Ok(()));
        part[9] ^= 1;
        let error = front.verify_body(65_536, &part).unwrap_err();
        assert!(matches!(error, FragmentError::Damaged(_)));
    }

    proptest! {
        #[test]
        fn any_changed_byte_is_noticed(at in 0usize..72 + 8 + 4 + 70_000, to in 1u8..) {
            let mut bytes = encode(b"meta", &[Bytes::from(vec![7; 70_000])]);
            bytes[at] ^= to;
            prop_assert!(verify(bytes, PLACE).is_err());
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(verify(bytes, PLACE).is_err());
        }
    }
}
