//! A part of a fragment: its front and the checksummed blocks that are wanted,
//! not the whole of it.

use super::live::{Core, LiveStripe};
use crate::base::size::round_up;
use crate::cache::directory::Place;
use crate::cache::format::dir_entry::BLOCK_BYTES;
use crate::cache::format::fragment::{CHECK_BYTES, FragmentError, FragmentHeader, fragment_bytes};
use crate::cache::format::object::PinnedFragment;
use crate::cache::format::{FormatError, Unverified, to_u64, to_usize};
use crate::cache::object::Miss;
use crate::device::DeviceError;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that hold the header, the checksums and the meta of any body fragment:
/// a batch of 4 MiB has 64 blocks.
const FRONT_BYTES: u32 = 4096;

/// Blocks of a body fragment, in bytes of its body: from a multiple of 64 KiB to
/// another one, or to the body's end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::cache) struct Blocks(Range<u32>);

impl Blocks {
    /// What must be read of a fragment with `length` bytes of body for `wanted`;
    /// `None` if the fragment is as soon read whole: one read, which others share.
    pub(in crate::cache) fn of(wanted: &Range<u64>, length: u64) -> Option<Self> {
        let block = u64::from(CHECK_BYTES);
        let start = wanted.start / block * block;
        let end = wanted.end.div_ceil(block).saturating_mul(block).min(length);
        let is_small = end.saturating_sub(start) <= length / 2;
        let bound = |at| u32::try_from(at).ok();
        let range = bound(start)?..bound(end)?;
        (is_small && !wanted.is_empty()).then_some(Self(range))
    }

    /// Where they begin, in bytes of the fragment's body.
    pub(in crate::cache) fn start(&self) -> u64 {
        u64::from(self.0.start)
    }
}

/// Why the blocks could not be read from a place.
enum NotRead {
    Device(DeviceError),
    Fragment(FragmentError),
}

impl From<DeviceError> for NotRead {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}

impl From<FragmentError> for NotRead {
    fn from(error: FragmentError) -> Self {
        Self::Fragment(error)
    }
}

impl LiveStripe {
    /// The blocks of the body fragment of this key, read and verified.
    ///
    /// # Errors
    /// As [`Self::find`]; `ReadError` if the body ends before them.
    pub(in crate::cache) async fn body_blocks(
        self: &Arc<Self>,
        key: u128,
        blocks: &Blocks,
    ) -> Result<Bytes, Miss> {
        self.known(key).await;
        let known = self.core.get().filter(|core| core.directory.knows(key));
        let core = known.ok_or(Miss::NotReady)?;
        for place in core.directory.lookup(key) {
            match self.read_blocks(core, (key, &place), blocks).await {
                Ok(bytes) => {
                    core.directory.mark_read(key, &place);
                    return Ok(bytes);
                }
                Err(NotRead::Device(error)) => return Err(self.unread(key, &place, &error)),
                Err(NotRead::Fragment(error)) => self.passes_over(key, &place, &error)?,
            }
        }
        Err(Miss::Absent)
    }

    /// Front and blocks by one read where they lie together, else by two.
    async fn read_blocks(
        &self,
        core: &Core,
        (key, place): (u128, &Place),
        blocks: &Blocks,
    ) -> Result<Bytes, NotRead> {
        let Blocks(blocks) = blocks;
        let with_front = if blocks.start == 0 { blocks.end } else { 0 };
        let bytes = self
            .read(core, &within(place, 0, FRONT_BYTES + with_front))
            .await?;
        let expected = core.directory.expected(place, key);
        let front = Unverified::<FragmentHeader>::new(&bytes).verify(&expected)?;
        if blocks.end > front.body_length {
            return Err(short(blocks.end.into(), front.body_length.into()).into());
        }
        let body = u32::try_from(front.body_range().start).unwrap_or(u32::MAX);
        let from = body.saturating_add(blocks.start);
        let length = blocks.end - blocks.start;
        let bytes = match blocks.start {
            0 => cut(&bytes, body, length)?,
            _ => cut(
                &self.read(core, &within(place, from, length)).await?,
                0,
                length,
            )?,
        };
        front.verify_body(blocks.start, &bytes)?;
        Ok(bytes)
    }
}

/// Bytes of a place that hold a body fragment with at most `full` bytes of body,
/// pinned or not; and the front of any other one, which may lie there.
pub(super) fn body_fragment_max(full: u32) -> u32 {
    let bytes = fragment_bytes(PinnedFragment::BYTES, to_usize(full.into()));
    let blocks = round_up(to_u64(bytes), BLOCK_BYTES);
    u32::try_from(blocks).unwrap_or(u32::MAX).max(FRONT_BYTES)
}

/// At most `length` bytes of a place, from `start` on.
pub(super) fn within(place: &Place, start: u32, length: u32) -> Place {
    Place {
        position: place.position + u64::from(start),
        offset: place.offset + u64::from(start),
        length: length.min(place.length.saturating_sub(start)),
        ..*place
    }
}

/// So many bytes from `start` on, shared; fewer were no whole read.
fn cut(bytes: &Bytes, start: u32, length: u32) -> Result<Bytes, FragmentError> {
    let [start, length] = [start, length].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let end = start.saturating_add(length);
    if end > bytes.len() {
        return Err(short(to_u64(end), to_u64(bytes.len())));
    }
    Ok(bytes.slice(start..end))
}

fn short(need: u64, have: u64) -> FragmentError {
    FragmentError::Damaged(FormatError::Short { need, have })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wanted_bytes_are_widened_to_the_checksums_and_no_further() {
        let block = u64::from(CHECK_BYTES);
        let body = 6 * block + 10;
        for (wanted, blocks) in [
            (0..1, Some(0..block)),
            (block - 1..block + 1, Some(0..2 * block)),
            (block..2 * block, Some(block..2 * block)),
            (body - 1..body, Some(6 * block..body)),
            (block..4 * block, Some(block..4 * block)),
            (block..4 * block + 1, None),
            (0..body, None),
            (5..5, None),
        ] {
            let found = Blocks::of(&wanted, body);
            let found = found.map(|Blocks(found)| found.start.into()..found.end.into());
            assert_eq!(found, blocks, "{wanted:?}");
        }
    }

    #[test]
    fn a_fragment_of_one_block_is_read_whole() {
        assert_eq!(Blocks::of(&(0..1), u64::from(CHECK_BYTES)), None);
        assert_eq!(Blocks::of(&(0..1), 1), None);
    }
}
