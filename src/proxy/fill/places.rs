//! Where the followers of a fill read.

/// The places of those that have not left. A fill may last for hours: the slot
/// of one that left is the next one's.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Where each reads; `None` for one that fell behind, or left.
    slots: Vec<Option<u64>>,
    /// Slots of those that left.
    free: Vec<usize>,
}

impl Places {
    /// A new follower's slot; it reads at the body's beginning.
    pub(super) fn join(&mut self) -> usize {
        let Some(slot) = self.free.pop() else {
            self.slots.push(Some(0));
            return self.slots.len() - 1;
        };
        self.note(slot, Some(0));
        slot
    }

    /// Notes where the follower of a slot reads.
    pub(super) fn note(&mut self, slot: usize, place: Option<u64>) {
        if let Some(held) = self.slots.get_mut(slot) {
            *held = place;
        }
    }

    /// The follower of a slot has left.
    pub(super) fn leave(&mut self, slot: usize) {
        self.note(slot, None);
        self.free.push(slot);
    }

    /// Followers that have not left, those that fell behind too.
    pub(super) const fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The place of the follower that is furthest, of those at `base` or past it.
    pub(super) fn furthest(&self, base: u64) -> Option<u64> {
        let places = self.slots.iter().copied().flatten();
        places.filter(|at| *at >= base).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_used_again_so_that_a_long_fill_holds_none_of_those_that_left() {
        let mut places = Places::default();
        let first = places.join();
        for _ in 0..1000 {
            let other = places.join();
            places.note(other, Some(7));
            assert_eq!((places.count(), places.furthest(0)), (2, Some(7)));
            places.leave(other);
            assert_eq!((places.count(), places.furthest(0)), (1, Some(0)));
        }
        assert_eq!(places.slots.len(), 2);
        let next = places.join();
        assert_ne!(next, first);
        places.note(first, None);
        places.note(next, Some(3));
        assert_eq!((places.furthest(3), places.furthest(4)), (Some(3), None));
    }
}
