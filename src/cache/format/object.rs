//! The object head: what the meta of a head fragment holds. Its bytes are
//! covered by the fragment's checksums.
//!
//! ```text
//! head | key text | the proxy's meta, opaque | until when, if pinned
//! ```
//!
//! A pinned object's head ends in 8 bytes: the Unix time in seconds up to which
//! it is kept. A fragment of its body has a meta then, too:
//! [`PinnedFragment`].
//!
//! ## ObjectHead
//!
//! | offset | bytes | field          | meaning                                         |
//! |-------:|------:|----------------|-------------------------------------------------|
//! |      0 |     2 | version        | of the format                                   |
//! |      2 |     1 | kind           | 1 object, 2 marker                              |
//! |      3 |     1 | flags          | bit 0 held in part, bit 1 pinned                |
//! |      4 |     4 | fragment_bytes | of a full body fragment; 0 = the body is here   |
//! |      8 |    16 | object_id      | random; body fragments are found by it          |
//! |     24 |     8 | body_length    | of the whole object, bytes                      |
//! |     32 |     8 | epoch          | invalidation epoch at which its fill began      |
//! |     40 |     4 | key_length     | bytes of the key's text                         |
//! |     44 |     4 | meta_length    | bytes of the proxy's meta                       |

use super::{FORMAT_VERSION, FormatError, check_version, to_u64, to_usize};
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

/// The body may have gaps.
const IN_PART: u8 = 1;
/// The time follows up to which the object is kept.
const PINNED: u8 = 2;

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
    /// Whether fragments of the body may be missing.
    pub in_part: bool,
    /// Unix time in seconds up to which it is kept, if it is pinned.
    pub pinned_until: Option<u64>,
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
            flags: self.flags(),
            fragment_bytes: U32::new(self.fragment_bytes),
            object_id: U128::new(self.object_id),
            body_length: U64::new(self.body_length),
            epoch: U64::new(self.epoch),
            key_length: U32::new(u32::try_from(self.key.len()).ok()?),
            meta_length: U32::new(u32::try_from(self.meta.len()).ok()?),
        };
        let until = self.pinned_until.map(u64::to_le_bytes);
        let until = until.as_ref().map_or(&[][..], |bytes| bytes);
        Some([head.as_bytes(), &self.key, &self.meta, until].concat())
    }

    fn flags(&self) -> u8 {
        let pinned = if self.pinned_until.is_some() {
            PINNED
        } else {
            0
        };
        pinned | if self.in_part { IN_PART } else { 0 }
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
        check_version(head.version.get())?;
        let kind = kind(head.kind)?;
        let key_end = OBJECT_HEAD_BYTES.saturating_add(to_usize(head.key_length.get().into()));
        let end = key_end.saturating_add(to_usize(head.meta_length.get().into()));
        if end > bytes.len() {
            return Err(FormatError::Short {
                need: to_u64(end),
                have: to_u64(bytes.len()),
            });
        }
        let pinned = head.flags & PINNED != 0;
        let behind = bytes.get(end..).and_then(|rest| rest.first_chunk());
        Ok(Self {
            kind,
            in_part: head.flags & IN_PART != 0,
            pinned_until: behind.filter(|_| pinned).map(|b| u64::from_le_bytes(*b)),
            fragment_bytes: head.fragment_bytes.get(),
            object_id: head.object_id.get(),
            body_length: head.body_length.get(),
            epoch: head.epoch.get(),
            key: bytes.slice(OBJECT_HEAD_BYTES..key_end),
            meta: bytes.slice(key_end..end),
        })
    }
}

/// The meta of a fragment of a pinned object's body: 48 bytes, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinnedFragment {
    /// Unix time in seconds up to which it is kept.
    pub until: u64,
    /// Number of the fragment in the body.
    pub index: u64,
    /// The key of the object's head; without that head it is kept no longer.
    pub head: u128,
    /// As in the head.
    pub object_id: u128,
}

impl PinnedFragment {
    /// Bytes of such a meta.
    pub const BYTES: usize = 48;

    /// Its bytes, little endian.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.until.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.index.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.head.to_le_bytes());
        bytes[32..].copy_from_slice(&self.object_id.to_le_bytes());
        bytes
    }

    /// What the verified meta of a body fragment says; `None` if that is no
    /// such meta.
    #[must_use]
    pub fn decode(meta: &[u8]) -> Option<Self> {
        let (until, rest) = meta.split_first_chunk()?;
        let (index, rest) = rest.split_first_chunk()?;
        let (head, rest) = rest.split_first_chunk()?;
        let object_id = <[u8; 16]>::try_from(rest).ok()?;
        Some(Self {
            until: u64::from_le_bytes(*until),
            index: u64::from_le_bytes(*index),
            head: u128::from_le_bytes(*head),
            object_id: u128::from_le_bytes(object_id),
        })
    }

    /// The key of the fragment.
    #[must_use]
    pub fn key(&self) -> u128 {
        body_key(self.object_id, self.index)
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
            in_part: false,
            pinned_until: None,
        }
    }

    #[test]
    fn a_head_comes_back_as_it_was_written() {
        let bytes = Bytes::from(sample().encode().unwrap());
        assert_eq!(ObjectContent::decode(&bytes), Ok(sample()));
        golden("object_head", &bytes);
    }

    #[test]
    fn a_head_says_that_it_is_pinned_and_held_in_part() {
        for (in_part, pinned_until) in [(true, None), (false, Some(7)), (true, Some(u64::MAX))] {
            let content = ObjectContent {
                in_part,
                pinned_until,
                ..sample()
            };
            let bytes = Bytes::from(content.encode().unwrap());
            assert_eq!(ObjectContent::decode(&bytes), Ok(content));
        }
        let pinned = ObjectContent {
            pinned_until: Some(7),
            ..sample()
        };
        let bytes = pinned.encode().unwrap();
        let cut = Bytes::from(bytes[..bytes.len() - 1].to_vec());
        assert_eq!(ObjectContent::decode(&cut).unwrap().pinned_until, None);
    }

    #[test]
    fn a_pinned_fragment_comes_back_as_it_was_written() {
        let fragment = PinnedFragment {
            until: 5,
            head: 6 << 100,
            object_id: 7 << 90,
            index: 8,
        };
        let bytes = fragment.encode();
        assert_eq!(PinnedFragment::decode(&bytes), Some(fragment));
        assert_eq!(fragment.key(), body_key(7 << 90, 8));
        assert_eq!(PinnedFragment::decode(&bytes[1..]), None);
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
