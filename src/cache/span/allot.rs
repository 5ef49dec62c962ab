//! How volumes share the spans: which stripes stay, which go, what is made.
//!
//! What is there stays if it can: a volume gives stripes up only if it has too
//! many, or is no longer configured. A stripe whose size fits another volume's
//! want goes over to it with what it holds.

use super::layout::second_offset;
use crate::base::size::{MIB, round_down};
use crate::cache::format::span_header::{STRIPES_MAX, StripeSlot};
use crate::cache::options::{VolumeOptions, VolumeSize};
use crate::cache::stripe::MAX_STRIPE_BYTES;

/// A stripe is at least this long, in bytes.
pub(crate) const MIN_STRIPE_BYTES: u64 = 30 * MIB;
/// A volume keeps what it has up to so many bytes, and one part of so many,
/// above its size.
const SLACK_BYTES: u64 = 16 * MIB;
const SLACK_SHARE: u64 = 64;

/// A span as volumes share it; offsets in bytes from its start.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    /// Where stripes may begin.
    pub(crate) start: u64,
    /// Where they end.
    pub(crate) end: u64,
    /// Those that are there, by their offsets.
    pub(crate) stripes: Vec<StripeSlot>,
    /// The volume that has the span for itself.
    pub(crate) owner: Option<u32>,
    /// Nothing of it is to change.
    pub(crate) is_fixed: bool,
}

/// A stripe as it is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its place and volume; the UUID is 0 while it is yet to be made.
    pub(crate) slot: StripeSlot,
    /// The volume it was of; `None` if it is yet to be made.
    pub(crate) was: Option<u32>,
}

/// What becomes of a span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allotted {
    /// The stripes that it is to have, by their offsets.
    pub(crate) pieces: Vec<Piece>,
    /// Those that it is to lose.
    pub(crate) dropped: Vec<StripeSlot>,
}

/// A volume's share of the spans that are shared.
#[derive(Clone, Copy, Debug)]
struct Want {
    volume: u32,
    bytes: u64,
}

/// How much more than `bytes` a volume may keep.
const fn slack(bytes: u64) -> u64 {
    SLACK_BYTES + bytes / SLACK_SHARE
}

/// The stripes of each of `rooms` with these volumes; without any, all is one
/// volume, of number 0.
pub(crate) fn allot(rooms: &[Room], volumes: &[VolumeOptions]) -> Vec<Allotted> {
    let mut spans: Vec<Allotted> = rooms.iter().map(Allotted::of).collect();
    for (room, span) in rooms
        .iter()
        .zip(&mut spans)
        .filter(|(room, _)| !room.is_fixed)
    {
        match room.owner {
            Some(volume) => span.give_whole(room, volume),
            None if volumes.is_empty() => span.give_whole(room, 0),
            None => {}
        }
    }
    if !volumes.is_empty() {
        let sharing = Sharing {
            wants: wants(rooms, volumes),
            total: rooms.iter().filter_map(Room::shared_bytes).sum(),
            rooms,
        };
        sharing.share(&mut spans);
    }
    spans
}

/// What each volume is to have of the shared spans: those with spans of their
/// own nothing, the others a stripe at least, and none more than those before
/// it leave.
fn wants(rooms: &[Room], volumes: &[VolumeOptions]) -> Vec<Want> {
    let total: u64 = rooms.iter().filter_map(Room::shared_bytes).sum();
    let mut left = total;
    let wants = volumes.iter().map(|volume| {
        let number = u32::from(volume.number);
        let owns = rooms.iter().any(|room| room.owner == Some(number));
        let bytes = match volume.size {
            _ if owns => 0,
            VolumeSize::Percent(percent) => total / 100 * u64::from(percent),
            VolumeSize::Megabytes(megabytes) => megabytes.saturating_mul(MIB),
        };
        let least = if bytes > 0 { MIN_STRIPE_BYTES } else { 0 };
        let bytes = bytes.max(least).min(left);
        left -= bytes;
        Want {
            volume: number,
            bytes,
        }
    });
    wants.collect()
}

impl Room {
    /// A span of `size` bytes that stays as it is; `volume` has it for itself,
    /// if that is not 0.
    pub(crate) fn fixed(size: u64, stripes: Vec<StripeSlot>, volume: u8) -> Self {
        Self {
            start: MIB,
            end: second_offset(size),
            stripes,
            owner: Some(u32::from(volume)).filter(|volume| *volume != 0),
            is_fixed: true,
        }
    }

    fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Its bytes, if volumes share it.
    fn shared_bytes(&self) -> Option<u64> {
        self.owner.is_none().then(|| self.bytes())
    }

    fn may_change(&self) -> bool {
        self.owner.is_none() && !self.is_fixed
    }
}

impl Allotted {
    fn of(room: &Room) -> Self {
        let pieces = room.stripes.iter().map(|slot| Piece {
            slot: *slot,
            was: Some(slot.volume),
        });
        Self {
            pieces: pieces.collect(),
            dropped: Vec::new(),
        }
    }

    /// All of the span for one volume, what is there included.
    fn give_whole(&mut self, room: &Room, volume: u32) {
        for piece in &mut self.pieces {
            piece.slot.volume = volume;
        }
        self.make(room, volume, room.bytes());
    }

    fn bytes_of(&self, volume: u32) -> u64 {
        let pieces = self.pieces.iter().map(|piece| piece.slot);
        let own = pieces.filter(|slot| slot.volume == volume);
        own.map(|slot| slot.length).sum()
    }

    /// The gaps between its stripes that hold one more, by offset and length.
    fn gaps(&self, room: &Room) -> Vec<(u64, u64)> {
        if self.pieces.len() >= STRIPES_MAX {
            return Vec::new();
        }
        let mut at = room.start;
        let taken = self.pieces.iter().map(|piece| piece.slot);
        let ends = taken.map(|slot| (slot.offset, slot.offset + slot.length));
        let mut gaps = Vec::new();
        for (from, to) in ends.chain([(room.end, room.end)]) {
            let length = round_down(from.saturating_sub(at), MIB);
            gaps.extend((length >= MIN_STRIPE_BYTES).then_some((at, length)));
            at = at.max(to);
        }
        gaps
    }

    fn free(&self, room: &Room) -> u64 {
        self.gaps(room).iter().map(|(_, length)| length).sum()
    }

    /// Makes stripes of a volume, `bytes` in all as far as there is room: of the
    /// largest gaps first, and no shorter than a stripe may be.
    fn make(&mut self, room: &Room, volume: u32, bytes: u64) {
        let mut left = bytes;
        while left >= MIN_STRIPE_BYTES {
            let gaps = self.gaps(room).into_iter();
            let Some((offset, gap)) = gaps.max_by_key(|(_, length)| *length) else {
                return;
            };
            let length = round_down(gap.min(left), MIB).min(even_part(gap));
            left = left.saturating_sub(length);
            self.insert(StripeSlot {
                uuid: 0,
                offset,
                length,
                volume,
            });
        }
    }

    fn insert(&mut self, slot: StripeSlot) {
        let pieces = &self.pieces;
        let at = pieces.partition_point(|piece| piece.slot.offset < slot.offset);
        self.pieces.insert(at, Piece { slot, was: None });
    }

    fn drop_at(&mut self, at: usize) {
        self.dropped.push(self.pieces.remove(at).slot);
    }
}

/// The longest stripe of a gap: all of it, or an even part where the limit of
/// a stripe takes several.
fn even_part(gap: u64) -> u64 {
    let count = gap.div_ceil(MAX_STRIPE_BYTES).max(1);
    round_down(gap / count, MIB)
}

/// The spans that are shared, and by whom.
struct Sharing<'a> {
    rooms: &'a [Room],
    wants: Vec<Want>,
    /// Bytes of the shared spans.
    total: u64,
}

impl Sharing<'_> {
    fn share(&self, spans: &mut [Allotted]) {
        let mut loose = self.loosen(spans);
        loose.sort_by_key(|(span, at)| std::cmp::Reverse((*span, *at)));
        for (span, at) in loose {
            self.hand_over(spans, span, at);
        }
        self.fill(spans);
    }

    fn has(&self, spans: &[Allotted], volume: u32) -> u64 {
        let spans = self.rooms.iter().zip(spans);
        let shared = spans.filter(|(room, _)| room.owner.is_none());
        shared.map(|(_, span)| span.bytes_of(volume)).sum()
    }

    /// What a volume lacks.
    fn lacks(&self, spans: &[Allotted], want: &Want) -> u64 {
        want.bytes.saturating_sub(self.has(spans, want.volume))
    }

    /// The stripes that their volume does not keep, by span and index.
    fn loosen(&self, spans: &[Allotted]) -> Vec<(usize, usize)> {
        let mut loose = Vec::new();
        for (n, span) in spans
            .iter()
            .enumerate()
            .filter(|(n, _)| self.rooms[*n].may_change())
        {
            for (at, piece) in span.pieces.iter().enumerate() {
                let wanted = self
                    .wants
                    .iter()
                    .any(|w| w.volume == piece.slot.volume && w.bytes > 0);
                loose.extend((!wanted).then_some((n, at)));
            }
        }
        for want in self.wants.iter().filter(|want| want.bytes > 0) {
            loose.extend(self.beyond(spans, want));
        }
        loose
    }

    /// The stripes that a volume has too many, if it has too much in all: on each
    /// span the last ones that exceed its part there.
    fn beyond(&self, spans: &[Allotted], want: &Want) -> Vec<(usize, usize)> {
        let mut beyond = Vec::new();
        if self.has(spans, want.volume) <= want.bytes + slack(want.bytes) {
            return beyond;
        }
        for (n, span) in spans.iter().enumerate() {
            if !self.rooms[n].may_change() {
                continue;
            }
            let part = self.part(want, n);
            let mut here = span.bytes_of(want.volume);
            for (at, piece) in span.pieces.iter().enumerate().rev() {
                if piece.slot.volume == want.volume && here > part + slack(part) {
                    here -= piece.slot.length;
                    beyond.push((n, at));
                }
            }
        }
        beyond
    }

    /// What a volume is to have of a span.
    fn part(&self, want: &Want, span: usize) -> u64 {
        part_of(want.bytes, self.rooms[span].bytes(), self.total)
    }

    /// Gives a stripe to the volume that lacks most on its span, if that may have
    /// all of it; else drops it.
    fn hand_over(&self, spans: &mut [Allotted], span: usize, at: usize) {
        let slot = spans[span].pieces[at].slot;
        let others = self.wants.iter().filter(|want| want.volume != slot.volume);
        let lacking = others.map(|want| {
            let part = self.part(want, span);
            let here = part.saturating_sub(spans[span].bytes_of(want.volume));
            (here.min(self.lacks(spans, want)), part, want.volume)
        });
        let taker = lacking.max_by_key(|(lacks, ..)| *lacks);
        match taker {
            Some((lacks, part, volume)) if lacks > 0 && slot.length <= lacks + slack(part) => {
                spans[span].pieces[at].slot.volume = volume;
            }
            _ => spans[span].drop_at(at),
        }
    }

    /// Makes stripes of what is free: for each volume on each span its part,
    /// and where that is too small for a stripe, on the span with most room.
    fn fill(&self, spans: &mut [Allotted]) {
        let free: Vec<u64> = self.each_free(spans);
        let all: u64 = free.iter().sum();
        let lacks: Vec<u64> = self
            .wants
            .iter()
            .map(|want| self.lacks(spans, want))
            .collect();
        let whole = all.max(lacks.iter().sum());
        for (n, room) in self.rooms.iter().enumerate() {
            for (want, lacks) in self.wants.iter().zip(&lacks) {
                let bytes = part_of(*lacks, free[n], whole);
                spans[n].make(room, want.volume, bytes);
            }
        }
        for want in &self.wants {
            if self.has(spans, want.volume) == 0 && want.bytes > 0 {
                let free = self.each_free(spans);
                let most = (0..free.len()).max_by_key(|n| free[*n]);
                most.inspect(|n| spans[*n].make(&self.rooms[*n], want.volume, want.bytes));
            }
        }
    }

    /// The bytes of each span that may be given out.
    fn each_free(&self, spans: &[Allotted]) -> Vec<u64> {
        let spans = self.rooms.iter().zip(spans);
        let free = spans.map(|(room, span)| match room.may_change() {
            true => span.free(room),
            false => 0,
        });
        free.collect()
    }
}

/// `bytes` times `part` of `whole`, rounded down to MiB.
fn part_of(bytes: u64, part: u64, whole: u64) -> u64 {
    let product = u128::from(bytes) * u128::from(part);
    let of = product.checked_div(whole.into()).unwrap_or(0);
    round_down(u64::try_from(of).unwrap_or(u64::MAX), MIB)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn room(megabytes: u64) -> Room {
        Room {
            start: MIB,
            end: (megabytes + 1) * MIB,
            stripes: Vec::new(),
            owner: None,
            is_fixed: false,
        }
    }

    fn percent(number: u8, percent: u8) -> VolumeOptions {
        VolumeOptions {
            number,
            size: VolumeSize::Percent(percent),
            ram_cache: true,
        }
    }

    /// The rooms with what was allotted, each new stripe with a UUID.
    fn made(rooms: &[Room], volumes: &[VolumeOptions]) -> Vec<Room> {
        let known = rooms.iter().flat_map(|room| &room.stripes);
        let mut next = known.map(|slot| slot.uuid).max().unwrap_or(0);
        let spans = allot(rooms, volumes);
        let rooms = rooms.iter().zip(spans).map(|(room, span)| {
            let slots = span.pieces.iter().map(|piece| {
                next += u128::from(piece.was.is_none());
                let uuid = if piece.was.is_none() {
                    next
                } else {
                    piece.slot.uuid
                };
                StripeSlot { uuid, ..piece.slot }
            });
            Room {
                stripes: slots.collect(),
                ..room.clone()
            }
        });
        rooms.collect()
    }

    fn sizes(rooms: &[Room]) -> Vec<Vec<(u32, u64)>> {
        let of = |room: &Room| {
            let slots = room.stripes.iter();
            slots.map(|s| (s.volume, s.length / MIB)).collect()
        };
        rooms.iter().map(of).collect()
    }

    fn uuids(rooms: &[Room], volume: u32) -> Vec<u128> {
        let slots = rooms.iter().flat_map(|room| &room.stripes);
        let own = slots.filter(|slot| slot.volume == volume);
        own.map(|slot| slot.uuid).collect()
    }

    #[test]
    fn without_volumes_a_span_is_one_stripe_of_volume_0() {
        let rooms = made(&[room(100), room(200)], &[]);
        assert_eq!(sizes(&rooms), [[(0, 100)], [(0, 200)]]);
        assert_eq!(sizes(&made(&rooms, &[])), [[(0, 100)], [(0, 200)]]);
    }

    #[test]
    fn shares_are_spread_over_all_spans_that_are_shared() {
        let mut rooms = [room(1000), room(2000), room(500)];
        rooms[2].owner = Some(3);
        let volumes = [percent(1, 25), percent(2, 75), percent(3, 0)];
        let rooms = made(&rooms, &volumes);
        let expected = [
            vec![(1, 250), (2, 750)],
            vec![(1, 500), (2, 1500)],
            vec![(3, 500)],
        ];
        assert_eq!(sizes(&rooms), expected);
        assert_eq!(sizes(&made(&rooms, &volumes)), expected);
    }

    #[test]
    fn megabytes_are_taken_before_and_beside_shares_and_the_rest_stays_free() {
        let volumes = [
            VolumeOptions {
                size: VolumeSize::Megabytes(128),
                ..percent(1, 0)
            },
            percent(2, 50),
        ];
        let rooms = made(&[room(1000), room(1000)], &volumes);
        assert_eq!(sizes(&rooms), [[(1, 64), (2, 500)], [(1, 64), (2, 500)]]);
    }

    #[test]
    fn a_share_too_small_for_every_span_is_one_stripe() {
        let rooms = made(&[room(200), room(300)], &[percent(1, 90), percent(2, 10)]);
        let second: u64 = sizes(&rooms)
            .concat()
            .iter()
            .filter(|s| s.0 == 2)
            .map(|s| s.1)
            .sum();
        assert!((30..=50).contains(&second), "{:?}", sizes(&rooms));
    }

    #[test]
    fn a_volume_that_comes_takes_over_a_span_without_losing_it() {
        let before = made(&[room(1000), room(1000)], &[]);
        let after = made(&before, &[percent(7, 100)]);
        assert_eq!(uuids(&after, 7), uuids(&before, 0));
        let back = made(&after, &[]);
        assert_eq!(uuids(&back, 0), uuids(&before, 0));
    }

    #[test]
    fn a_smaller_volume_gives_room_up_and_the_others_keep_theirs() {
        let before = made(&[room(1000), room(1000)], &[percent(1, 50), percent(2, 50)]);
        let after = made(&before, &[percent(1, 25), percent(2, 50), percent(3, 25)]);
        assert_eq!(uuids(&after, 2), uuids(&before, 2));
        assert!(
            !uuids(&after, 1)
                .iter()
                .any(|uuid| uuids(&before, 1).contains(uuid))
        );
        for room in &after {
            assert_eq!(sizes(std::slice::from_ref(room))[0].len(), 3);
        }
    }

    #[test]
    fn a_span_that_is_added_or_grows_leaves_all_stripes_as_they_are() {
        let volumes = [percent(1, 40), percent(2, 60)];
        let before = made(&[room(1000)], &volumes);
        let mut more = before.clone();
        more.push(room(1000));
        more[0].end += 500 * MIB;
        let after = made(&more, &volumes);
        for volume in [1, 2] {
            assert!(uuids(&after, volume).starts_with(&uuids(&before, volume)));
            let bytes: u64 = after
                .iter()
                .flat_map(|r| &r.stripes)
                .filter(|s| s.volume == volume)
                .map(|s| s.length)
                .sum();
            let share = u64::from(volume) * 20 + 20;
            assert!(
                bytes.abs_diff(2500 * MIB / 100 * share) < 40 * MIB,
                "{:?}",
                sizes(&after)
            );
        }
    }

    #[test]
    fn what_is_fixed_stays_whatever_is_configured() {
        let mut before = made(&[room(1000)], &[percent(1, 100)]);
        before[0].is_fixed = true;
        assert_eq!(sizes(&made(&before, &[])), [[(1, 1000)]]);
        assert_eq!(sizes(&made(&before, &[percent(2, 100)])), [[(1, 1000)]]);
    }

    #[test]
    fn a_stripe_beyond_the_limit_is_cut_evenly() {
        let rooms = made(&[room(100 << 20)], &[]);
        let slots = &rooms[0].stripes;
        assert_eq!(slots.len(), 4);
        assert!(
            slots
                .iter()
                .all(|slot| slot.length <= MAX_STRIPE_BYTES && slot.length > 24 << 40)
        );
    }

    fn any_volumes() -> impl Strategy<Value = Vec<VolumeOptions>> {
        proptest::collection::vec(0u8..=33, 0..4).prop_map(|sizes| {
            let sizes = (1..).zip(sizes).filter(|(_, size)| *size > 0);
            sizes.map(|(number, size)| percent(number, size)).collect()
        })
    }

    proptest! {
        #[test]
        fn stripes_never_overlap_and_a_second_look_changes_nothing(
            megabytes in proptest::collection::vec(30u64..4000, 1..5),
            changes in proptest::collection::vec(any_volumes(), 1..5),
        ) {
            let mut rooms: Vec<Room> = megabytes.iter().map(|m| room(*m)).collect();
            for volumes in &changes {
                rooms = made(&rooms, volumes);
                for room in &rooms {
                    let mut end = room.start;
                    for slot in &room.stripes {
                        prop_assert!(slot.offset >= end && slot.length >= MIN_STRIPE_BYTES);
                        end = slot.offset + slot.length;
                    }
                    prop_assert!(end <= room.end);
                }
                let again = allot(&rooms, volumes);
                for (span, room) in again.iter().zip(&rooms) {
                    prop_assert!(span.dropped.is_empty(), "{:?} {:?}", sizes(&rooms), volumes);
                    let kept: Vec<_> = span.pieces.iter().filter(|p| p.was.is_some()).map(|p| p.slot).collect();
                    prop_assert_eq!(&kept, &room.stripes);
                }
            }
        }
    }
}
