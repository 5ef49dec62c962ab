//! The bodies of versions.

use crate::base::prng::Prng;
use crate::cache::format::to_usize;
use crate::cache::object::Hit;
use bytes::Bytes;

/// Bytes of a body that are alike.
const RUN: usize = 1 << 10;

/// The body of a version, of up to so many bytes: it tells its key and version,
/// and fills the rest, each place in its own way.
pub(super) fn content(n: u32, version: u32, longest: u64) -> Bytes {
    let mut prng = Prng::seeded(version.into());
    let length = 8 + to_usize(prng.below(longest));
    let fill = prng.next_u64().to_le_bytes()[0];
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(&n.to_le_bytes());
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.resize(length, fill);
    for (fill, run) in (fill..=u8::MAX).cycle().zip(bytes.chunks_mut(RUN)).skip(1) {
        run.fill(fill);
    }
    Bytes::from(bytes)
}

pub(super) fn version_in(body: &[u8]) -> u32 {
    let bytes = body.get(4..8).unwrap_or_default();
    u32::from_le_bytes(bytes.try_into().unwrap_or_default())
}

/// The version that a hit holds in memory.
pub(super) fn version_of(hit: &Hit) -> Option<u32> {
    let chunks = hit.copy.0.chunks.as_ref()?;
    Some(version_in(&chunks.concat()))
}
