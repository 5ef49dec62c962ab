//! Which stripes a key may lie on: weighted rendezvous hashing by stripe UUID,
//! computed once for every slot.
//!
//! Adding or losing a stripe moves that stripe's share of the keys only. The
//! ranks behind the owner are where a key lay before such a change, so they
//! are asked too.

use crate::base::prng::Prng;

/// Slots of the table.
const SLOTS: usize = 1 << 14;
/// Stripes that are asked for a key: its owner, and two former owners.
pub(crate) const RANKS: usize = 3;

/// A stripe that takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Names it; renaming its device changes nothing.
    pub(crate) uuid: u128,
    /// Its share follows its bytes.
    pub(crate) bytes: u64,
}

/// The owners of every slot.
#[derive(Debug)]
pub(crate) struct Placement {
    slots: Box<[[Option<u16>; RANKS]]>,
}

impl Placement {
    /// The placement over `candidates`; their indexes are what it gives.
    pub(crate) fn over(candidates: &[Candidate]) -> Self {
        Self {
            slots: (0..SLOTS).map(|slot| ranks(candidates, slot)).collect(),
        }
    }

    /// The stripes to ask for a key with this place, its owner first.
    pub(crate) fn ranks(&self, place: u64) -> impl Iterator<Item = usize> + use<> {
        let slots = u64::try_from(SLOTS).unwrap_or(1);
        let slot = usize::try_from(place % slots).unwrap_or(0);
        let ranks = self.slots.get(slot).copied().unwrap_or_default();
        ranks.into_iter().flatten().map(usize::from)
    }
}

/// The candidates with the highest scores for a slot, the highest first.
fn ranks(candidates: &[Candidate], slot: usize) -> [Option<u16>; RANKS] {
    let mut scores: Vec<(f64, u16)> = candidates
        .iter()
        .zip(0..u16::MAX)
        .map(|(candidate, index)| (score(candidate, slot), index))
        .collect();
    scores.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut ranks = [None; RANKS];
    for (rank, (_, index)) in ranks.iter_mut().zip(scores) {
        *rank = Some(index);
    }
    ranks
}

/// Weighted rendezvous: the weight by the negative logarithm of a number that
/// is uniform in 0..1, fixed by the stripe and the slot.
fn score(candidate: &Candidate, slot: usize) -> f64 {
    let low = u64::try_from(candidate.uuid & u128::from(u64::MAX)).unwrap_or(0);
    let high = u64::try_from(candidate.uuid >> 64).unwrap_or(0);
    let slot = u64::try_from(slot).unwrap_or(0);
    let mixed = Prng::seeded(low ^ Prng::seeded(high ^ slot).next_u64()).fraction();
    let megabytes = u32::try_from(candidate.bytes >> 20).unwrap_or(u32::MAX);
    f64::from(megabytes.max(1)) / -mixed.max(1e-12).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(megabytes: &[u64]) -> Vec<Candidate> {
        let uuids = 1_u128..;
        let made = megabytes.iter().zip(uuids);
        made.map(|(bytes, uuid)| Candidate {
            uuid: (uuid << 64) | (uuid * 77),
            bytes: bytes << 20,
        })
        .collect()
    }

    fn owners(of: &[Candidate]) -> Vec<u128> {
        let placement = Placement::over(of);
        let slots = 0..u64::try_from(SLOTS).unwrap();
        slots
            .map(|place| of[placement.ranks(place).next().unwrap()].uuid)
            .collect()
    }

    #[test]
    fn shares_follow_the_bytes() {
        let all = candidates(&[1000, 1000, 2000]);
        let owners = owners(&all);
        let share = |n: usize| owners.iter().filter(|uuid| **uuid == all[n].uuid).count();
        assert!(share(0).abs_diff(SLOTS / 4) < SLOTS / 50, "{}", share(0));
        assert!(share(2).abs_diff(SLOTS / 2) < SLOTS / 50, "{}", share(2));
    }

    #[test]
    fn a_new_stripe_takes_its_share_and_moves_nothing_else() {
        let all = candidates(&[1000, 1000, 1000, 1000]);
        let (before, after) = (owners(&all[..3]), owners(&all));
        let moved = before.iter().zip(&after).filter(|(b, a)| b != a);
        let moved: Vec<_> = moved.collect();
        assert!(moved.iter().all(|(_, to)| **to == all[3].uuid));
        assert!(moved.len().abs_diff(SLOTS / 4) < SLOTS / 50);
    }

    #[test]
    fn the_former_owner_is_the_next_rank_after_one_is_added() {
        let all = candidates(&[1000, 1000, 1000, 1000]);
        let (before, after) = (Placement::over(&all[..3]), Placement::over(&all));
        for place in 0..1000 {
            let owner = before.ranks(place).next().unwrap();
            assert!(after.ranks(place).take(2).any(|rank| rank == owner));
        }
    }

    #[test]
    fn the_order_of_the_spans_does_not_matter() {
        let all = candidates(&[100, 200, 300]);
        let turned: Vec<_> = all.iter().rev().copied().collect();
        assert_eq!(owners(&all), owners(&turned));
    }

    #[test]
    fn without_stripes_nobody_is_asked() {
        assert_eq!(Placement::over(&[]).ranks(7).count(), 0);
        assert_eq!(Placement::over(&candidates(&[5])).ranks(7).count(), 1);
    }
}
