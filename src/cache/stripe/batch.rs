//! Batches: the one that fills, and those that wait to be written.

use crate::base::aligned::AlignedBuf;
use crate::base::clock::MonoTime;
use crate::base::size::round_up;
use crate::cache::directory::Place;
use crate::cache::format::batch::{BATCH_HEADER_BYTES, BATCH_ROW_BYTES, BatchContent, Row};
use crate::cache::format::dir_entry::BLOCK_BYTES;
use crate::cache::format::fragment::FragmentParts;
use crate::cache::format::stripe_header::ChainPoint;
use crate::cache::format::{crc, to_u64, to_usize};
use bytes::Bytes;

/// Rows that one put can bring: its own, all that it replaces, one for room.
pub(super) const ROWS_PER_PUT: usize = 18;

/// Fewer bytes are copied out of a sealed batch, whose whole buffer they would
/// keep otherwise: an eighth of the largest one.
const SHARED_LEAST: usize = 512 << 10;

/// Bytes that a put of a fragment of `length` bytes needs in a batch.
pub(super) fn put_bytes(length: u64) -> u64 {
    round_up(length, BLOCK_BYTES) + to_u64(ROWS_PER_PUT) * u64::from(BATCH_ROW_BYTES)
}

/// The batch that gathers fragments and rows.
#[derive(Debug)]
pub(super) struct Filling {
    /// As long as what is used of it, up to `room`.
    buf: AlignedBuf,
    /// Bytes that it may have.
    room: u64,
    /// Position of its header.
    pub(super) start: u64,
    pub(super) sequence: u64,
    /// Bytes of header and fragments; a multiple of 512.
    pub(super) used: u64,
    pub(super) rows: Vec<Row>,
    /// When its first row came.
    pub(super) born: MonoTime,
}

impl Filling {
    /// An empty batch at `at`, of at most `room` bytes.
    pub(super) fn new(at: ChainPoint, room: u64, born: MonoTime) -> Self {
        Self {
            buf: AlignedBuf::growing(to_usize(room)),
            room,
            start: at.position,
            sequence: at.sequence,
            used: u64::from(BATCH_HEADER_BYTES),
            rows: Vec::new(),
            born,
        }
    }

    /// Whether `more` bytes of fragments and rows fit.
    pub(super) fn fits(&self, more: u64) -> bool {
        self.used_with_rows() + more <= self.room
    }

    /// Position of the next fragment.
    pub(super) fn next_position(&self) -> u64 {
        self.start + self.used
    }

    /// Position behind the batch if it were sealed now.
    pub(super) fn end(&self, block: u32) -> u64 {
        self.start + round_up(self.used_with_rows(), u64::from(block))
    }

    pub(super) fn push_fragment(&mut self, parts: &FragmentParts<'_>) {
        let from = to_usize(self.used);
        self.used += round_up(to_u64(parts.bytes()), BLOCK_BYTES);
        self.buf.grow(to_usize(self.used));
        if let Some(room) = self.buf.get_mut(from..) {
            parts.encode_into(room);
        }
    }

    /// The bytes of a fragment of this batch, copied.
    pub(super) fn read(&self, place: &Place) -> Option<Bytes> {
        let from = to_usize(place.position.checked_sub(self.start)?);
        let end = to_usize(self.used).min(from.saturating_add(to_usize(place.length.into())));
        self.buf.get(from..end).map(Bytes::copy_from_slice)
    }

    fn used_with_rows(&self) -> u64 {
        self.used + to_u64(self.rows.len()) * u64::from(BATCH_ROW_BYTES)
    }

    /// The batch as it goes to the device. `stamp` gives what the batch does
    /// not know itself.
    pub(super) fn seal(mut self, stamp: &Stamp) -> Sealed {
        let table: Vec<u8> = self.rows.iter().flat_map(Row::encode).collect();
        let length = self.end(stamp.block) - self.start;
        let content = BatchContent {
            uuid: stamp.uuid,
            cycle: self.start / stamp.log_bytes,
            offset: self.start % stamp.log_bytes,
            sequence: self.sequence,
            length: narrow(length),
            table_offset: narrow(self.used),
            rows: narrow(to_u64(self.rows.len())),
            epoch: stamp.epoch,
            run: stamp.run,
            previous: stamp.previous,
            table_checksum: crc(&[&table]),
            link: 0,
        };
        let (header, link) = content.encode();
        self.buf.grow(to_usize(length));
        copy_to(&mut self.buf, 0, &header);
        copy_to(&mut self.buf, to_usize(self.used), &table);
        let bytes = self.buf.into_bytes();
        Sealed {
            bytes: bytes.slice(..to_usize(length).min(bytes.len())),
            start: self.start,
            sequence: self.sequence,
            rows: self.rows,
            next: ChainPoint {
                position: self.start + length,
                sequence: self.sequence + 1,
                link,
            },
            attempts: 0,
        }
    }
}

fn copy_to(buf: &mut AlignedBuf, from: usize, bytes: &[u8]) {
    if let Some(to) = buf.get_mut(from..from.saturating_add(bytes.len())) {
        to.copy_from_slice(bytes);
    }
}

/// Lengths within a batch, whose buffer is shorter than 4 GiB.
fn narrow(length: u64) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// What a batch header says besides its batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamp {
    pub(super) uuid: u128,
    pub(super) log_bytes: u64,
    pub(super) block: u32,
    pub(super) epoch: u64,
    pub(super) run: u64,
    /// Checksum of the batch header before.
    pub(super) previous: u32,
}

/// A batch that waits to be written, or is being written.
#[derive(Debug)]
pub(super) struct Sealed {
    pub(super) bytes: Bytes,
    pub(super) start: u64,
    pub(super) sequence: u64,
    pub(super) rows: Vec<Row>,
    /// Where the log goes on behind it.
    pub(super) next: ChainPoint,
    pub(super) attempts: u8,
}

impl Sealed {
    /// The bytes of a fragment of this batch: shared, or copied if they are few,
    /// whose reader may be slow and is not to keep all of it.
    pub(super) fn read(&self, place: &Place) -> Option<Bytes> {
        let from = to_usize(place.position.checked_sub(self.start)?);
        let end = from.saturating_add(to_usize(place.length.into()));
        let held = self.bytes.get(from..end.min(self.bytes.len()))?;
        let bytes = if held.len() < SHARED_LEAST {
            Bytes::copy_from_slice(held)
        } else {
            self.bytes.slice_ref(held)
        };
        (!held.is_empty()).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::size::MIB;
    use crate::cache::format::dir_entry::DirEntry;
    use crate::cache::format::fragment::{FragmentKind, FragmentPlace};

    const ROOM: u64 = 4 * MIB;
    const BEGIN: ChainPoint = ChainPoint {
        position: 64 * MIB,
        sequence: 1,
        link: 0,
    };

    fn filling(bodies: &[usize]) -> Filling {
        let mut filling = Filling::new(BEGIN, ROOM, MonoTime::default());
        for body in bodies {
            filling.push_fragment(&FragmentParts {
                place: FragmentPlace {
                    key: 1,
                    stripe: 1,
                    position: filling.next_position(),
                },
                sequence: BEGIN.sequence,
                kind: FragmentKind::Body,
                meta: &[],
                body: &[Bytes::from(vec![7; *body])],
            });
        }
        filling
    }

    fn seal(filling: Filling) -> Sealed {
        filling.seal(&Stamp {
            uuid: 1,
            log_bytes: 64 * MIB,
            block: 4096,
            epoch: 0,
            run: 1,
            previous: 0,
        })
    }

    #[test]
    fn a_batch_touches_the_memory_of_what_it_holds_and_no_more() {
        for (bodies, most) in [
            (&[][..], 4096),
            (&[100, 100], 8192),
            (&[15_000, 1 << 20], 1_064_960 + 8192),
        ] {
            let filling = filling(bodies);
            assert!(to_u64(filling.buf.len()) <= filling.used);
            assert!(filling.fits(ROOM - filling.used) && !filling.fits(ROOM));
            let length = seal(filling).bytes.len();
            assert!(length.is_multiple_of(4096) && length <= most, "{length}");
        }
    }

    #[test]
    fn what_is_read_of_a_sealed_batch_keeps_it_only_if_it_is_a_large_part() {
        let filling = filling(&[15_000, 1 << 20]);
        let [small, large] = [(BATCH_HEADER_BYTES, 15_104), (16_384, 1 << 20)];
        let sealed = seal(filling);
        for ((from, length), is_shared) in [(small, false), (large, true)] {
            let read = sealed.read(&Place {
                entry: DirEntry::FREE,
                position: BEGIN.position + u64::from(from),
                offset: 0,
                length,
                suspect: false,
            });
            let read = read.expect("it is held");
            let (from, length) = (to_usize(from.into()), to_usize(length.into()));
            assert_eq!(read, sealed.bytes[from..from + length]);
            assert_eq!(
                sealed.bytes.as_ptr_range().contains(&read.as_ptr()),
                is_shared
            );
        }
    }
}
