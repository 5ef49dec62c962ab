//! The seen filter: admits a key the second time it comes by.

use super::hasher::halves;

/// Slots; each holds the last key that came by, as a fingerprint.
const SLOTS: usize = 1 << 16;

/// A table of 16-bit fingerprints, as large as it will ever be: 128 KiB.
#[derive(Debug)]
pub(super) struct Seen {
    slots: Box<[u16]>,
}

impl Seen {
    /// A filter that has seen nothing.
    pub(super) fn new() -> Self {
        Self {
            slots: vec![0; SLOTS].into_boxed_slice(),
        }
    }

    /// Whether `key` was the last to come by its slot; it is now.
    pub(super) fn saw(&mut self, key: u128) -> bool {
        let (low, high) = halves(key);
        let print = u16::try_from(high >> 48).unwrap_or(0).max(1);
        let slot = usize::try_from(low >> 16).unwrap_or(0) % SLOTS;
        let Some(held) = self.slots.get_mut(slot) else {
            return false;
        };
        std::mem::replace(held, print) == print
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_admitted_from_its_second_sight_until_another_takes_its_slot() {
        let mut seen = Seen::new();
        let (a, b) = (1 << 120, 2 << 120);
        assert!(!seen.saw(a));
        assert!(seen.saw(a));
        assert!(!seen.saw(b));
        assert!(!seen.saw(a));
    }
}
