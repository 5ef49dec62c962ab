//! Keys, and bodies that say whose they are.

use crate::base::prng::Prng;
use crate::cache::format::to_usize;
use bytes::Bytes;
use std::ops::Range;

/// Keys there are.
pub(super) const KEYS: u64 = 64;
/// Keys below this one are stored rarely, less than once in a cycle.
pub(super) const COLD: u64 = 8;
/// From here on keys share one bucket, under tags of their own.
const NEIGHBOURS: u64 = 32;
/// From here on keys share tag and buckets, more than these hold.
const TWINS: u64 = 44;

/// The hash of a key.
pub(super) fn hash(key: u64) -> u128 {
    let hash = xxhash_rust::xxh3::xxh3_128(&key.to_le_bytes());
    // Beyond page, bucket and tag the keys differ.
    let low = |bits: u64| u128::from(key << 40 | bits);
    match key {
        TWINS.. => low(0x0007_0005),
        NEIGHBOURS.. => low(key << 16 | 9),
        _ => hash,
    }
}

/// The keys that can take each other's room.
pub(super) fn group(key: u64) -> Range<u64> {
    match key {
        TWINS.. => TWINS..KEYS,
        NEIGHBOURS.. => NEIGHBOURS..TWINS,
        _ => key..key,
    }
}

/// Whether no other key shares its tag and buckets.
pub(super) const fn is_alone(key: u64) -> bool {
    key < NEIGHBOURS
}

/// Whether a start may find no room for the key's entry again.
pub(super) const fn is_crowded(key: u64) -> bool {
    key >= NEIGHBOURS
}

/// The body of a version: it tells its key and version, and fills the rest.
pub(super) fn content(key: u64, version: u64) -> Bytes {
    let mut prng = Prng::seeded(version);
    let scale = [16, 600, 4 << 10, 12 << 10][to_usize(prng.below(4))];
    let length = to_usize(16 + prng.below(scale));
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(&key.to_le_bytes());
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.resize(length, prng.next_u64().to_le_bytes()[0]);
    Bytes::from(bytes)
}

/// The version that a body tells.
pub(super) fn version_in(body: &[u8]) -> u64 {
    let bytes = body.get(8..16).unwrap_or_default();
    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
}
