//! The object head: what the meta of a head fragment holds. Its bytes are
//! covered by the fragment's checksums.
//!
//! ```text
//! head | key text | the proxy's meta, opaque
//! ```
//!
//! ## ObjectHead
//!
//! | offset | bytes | field          | meaning                                         |
//! |-------:|------:|----------------|-------------------------------------------------|
//! |      0 |     2 | version        | of the format                                   |
//! |      2 |     1 | kind           | 1 object, 2 marker                              |
//! |      3 |     1 | flags          | 0; later: held in part                          |
//! |      4 |     4 | fragment_bytes | of a full body fragment; 0 = the body is here   |
//! |      8 |    16 | object_id      | random; body fragments are found by it          |
//! |     24 |     8 | body_length    | of the whole object, bytes                      |
//! |     32 |     8 | epoch          | invalidation epoch at which its fill began      |
//! |     40 |     4 | key_length     | bytes of the key's text                         |
//! |     44 |     4 | meta_length    | bytes of the proxy's meta                       |

use super::{FORMAT_VERSION, FormatError, to_u64, to_usize};
use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_128;
use zerocopy::little_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of the head before the key's text.
pub const OBJECT_HEAD_BYTES: usize = 48;

/// See the table of this module.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub struct ObjectHead {
    version: U16,
    kind: u8,
    flags: u8,
    fragment_bytes: U32,
    object_id: U128,
    body_length: U64,
    epoch: U64,
    key_length: U32,
    meta_length: U32,
}

const _: () = assert!(size_of::<ObjectHead>() == OBJECT_HEAD_BYTES);

/// What a head leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadKind {
    /// A stored response.
    Object,
    /// The alternates of a URL with Vary.
    Marker,
}

/// What an object head says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectContent {
    /// What it leads to.
    pub kind: HeadKind,
    /// Body bytes of a full fragment; 0 when the body is in the head fragment.
    pub fragment_bytes: u32,
    /// Random; body fragments are found by it.
    pub object_id: u128,
    /// Bytes of the whole body.
    pub body_length: u64,
    /// Invalidation epoch at which its fill began.
    pub epoch: u64,
    /// The key's text.
    pub key: Bytes,
    /// The proxy's meta.
    pub meta: Bytes,
}

/// The key under which fragment `index` of an object's body is stored.
#[must_use]
pub fn body_key(object_id: u128, index: u64) -> u128 {
    let mut text = [0; 24];
    let (id, number) = text.split_at_mut(16);
    id.copy_from_slice(&object_id.to_le_bytes());
    number.copy_from_slice(&index.to_le_bytes());
    xxh3_128(&text)
}

impl ObjectContent {
    /// The bytes of the head; `None` if the key or the meta is longer than 32
    /// bits can say.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        let head = ObjectHead {
            version: U16::new(FORMAT_VERSION),
            kind: match self.kind {
                HeadKind::Object => 1,
                HeadKind::Marker => 2,
            },
            flags: 0,
            fragment_bytes: U32::new(self.fragment_bytes),
            object_id: U128::new(self.object_id),
            body_length: U64::new(self.body_length),
            epoch: U64::new(self.epoch),
            key_length: U32::new(u32::try_from(self.key.len()).ok()?),
            meta_length: U32::new(u32::try_from(self.meta.len()).ok()?),
        };
        Some([head.as_bytes(), &self.key, &self.meta].concat())
    }

    /// The head in the verified meta of a head fragment; shares its bytes.
    ///
    /// # Errors
    /// `Short`, `Version`, or `Value` for a kind that no writer writes.
    pub fn decode(bytes: &Bytes) -> Result<Self, FormatError> {
        let (head, _) = ObjectHead::read_from_prefix(bytes).map_err(|_| FormatError::Short {
            need: to_u64(OBJECT_HEAD_BYTES),
            have: to_u64(bytes.len()),
        })?;
        let version = head.version.get();
        if version != FORMAT_VERSION {
            return Err(FormatError::Version { found: version });
        }
        let kind = kind(head.kind)?;
        let key_end = OBJECT_HEAD_BYTES.saturating_add(to_usize(head.key_length.get().into()));
        let end = key_end.saturating_add(to_usize(head.meta_length.get().into()));
        if end > bytes.len() {
            return Err(FormatError::Short {
                need: to_u64(end),
                have: to_u64(bytes.len()),
            });
        }
        Ok(Self {
            kind,
            fragment_bytes: head.fragment_bytes.get(),
            object_id: head.object_id.get(),
            body_length: head.body_length.get(),
            epoch: head.epoch.get(),
            key: bytes.slice(OBJECT_HEAD_BYTES..key_end),
            meta: bytes.slice(key_end..end),
        })
    }
}

fn kind(code: u8) -> Result<HeadKind, FormatError> {
    match code {
        1 => Ok(HeadKind::Object),
        2 => Ok(HeadKind::Marker),
        other => Err(FormatError::Value {
            field: "object kind",
            found: u64::from(other),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::format::table::{golden, table_matches_struct};
    use proptest::prelude::*;

    table_matches_struct!(
        ObjectHead: version, kind, flags, fragment_bytes, object_id, body_length, epoch,
        key_length, meta_length
    );

    fn sample() -> ObjectContent {
        ObjectContent {
            kind: HeadKind::Object,
            fragment_bytes: 1 << 20,
            object_id: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10,
            body_length: (3 << 20) + 1,
            epoch: 9,
            key: Bytes::from_static(b"http://a/"),
            meta: Bytes::from_static(b"ETag: \"1\"\r\n"),
        }
    }

    #[test]
    fn a_head_comes_back_as_it_was_written() {
        let bytes = Bytes::from(sample().encode().unwrap());
        assert_eq!(ObjectContent::decode(&bytes), Ok(sample()));
        golden("object_head", &bytes);
    }

    #[test]
    fn body_keys_differ_by_object_and_index() {
        let keys = [body_key(1, 0), body_key(1, 1), body_key(2, 0)];
        assert!(keys[0] != keys[1] && keys[0] != keys[2] && keys[1] != keys[2]);
        assert_eq!(
            body_key(1, 0),
            332_625_436_153_976_080_438_101_255_695_054_870_165
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_none_are_read_past_the_end(
            mut bytes in proptest::collection::vec(any::<u8>(), 48..100),
            lengths in any::<[u8; 8]>(),
        ) {
            bytes[..4].copy_from_slice(&[1, 0, 1, 0]);
            bytes[40..48].copy_from_slice(&lengths);
            let all = Bytes::from(bytes);
            if let Ok(head) = ObjectContent::decode(&all) {
                prop_assert!(head.key.len() + head.meta.len() + OBJECT_HEAD_BYTES <= all.len());
            }
            prop_assert!(ObjectContent::decode(&all.slice(..47)).is_err());
        }
    }
}
