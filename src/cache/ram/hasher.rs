//! Hashes keys that are hashes already, under a seed that no client knows.

use crate::base::prng::system_u64;
use std::hash::{BuildHasher, Hasher};

/// Makes [`KeyHasher`]s; each map has a seed of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeded(u64, u64);

impl Default for Seeded {
    fn default() -> Self {
        Self(system_u64(), system_u64())
    }
}

impl BuildHasher for Seeded {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher {
            seed: *self,
            hash: 0,
        }
    }
}

/// One multiplication for each `u128`.
#[derive(Debug)]
pub(super) struct KeyHasher {
    seed: Seeded,
    hash: u64,
}

/// The halves of `wide`, low first.
pub(super) fn halves(wide: u128) -> (u64, u64) {
    let low = u64::try_from(wide & u128::from(u64::MAX)).unwrap_or(0);
    let high = u64::try_from(wide >> 64).unwrap_or(0);
    (low, high)
}

impl Hasher for KeyHasher {
    fn write_u128(&mut self, key: u128) {
        let (low, high) = halves(key);
        let wide = u128::from(low ^ self.seed.0) * u128::from(high ^ self.seed.1);
        let (low, high) = halves(wide);
        self.hash = self.hash.rotate_left(5) ^ low ^ high;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u128(u128::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_tells_keys_apart_that_differ_in_either_half() {
        let seeded = Seeded(3, 5);
        let hash = |key: u128| seeded.hash_one(key);
        assert_eq!(hash(7), hash(7));
        assert_ne!(hash(7), hash(8));
        assert_ne!(hash(7), hash(7 | 1 << 64));
    }

    #[test]
    fn halves_join_to_the_whole() {
        let wide = 0x0123_4567_89ab_cdef_0fed_cba9_8765_4321_u128;
        let (low, high) = halves(wide);
        assert_eq!(u128::from(high) << 64 | u128::from(low), wide);
    }
}
