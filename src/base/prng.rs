//! The only place that makes random numbers: seeded, or from the system.

/// A small, fast generator (`SplitMix64`), good for sampling, placement and
/// simulation; not for secrets.
#[derive(Clone, Debug)]
pub struct Prng {
    state: u64,
}

impl Prng {
    /// The generator that always gives the same numbers for `seed`.
    #[must_use]
    pub const fn seeded(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, all about equally likely; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// A fraction in `0.0 .. 1.0`.
    pub fn fraction(&mut self) -> f64 {
        let bits = u32::try_from(self.next_u64() >> 32).unwrap_or(0);
        f64::from(bits) / 4_294_967_296.0
    }
}

/// 64 bits from the operating system, for identities that must not repeat.
#[must_use]
pub fn system_u64() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let system = || RandomState::new().build_hasher().finish();
    super::simulated::chance().unwrap_or_else(system)
}

/// 128 bits from the operating system, for UUIDs and object ids.
#[must_use]
pub fn system_u128() -> u128 {
    u128::from(system_u64()) << 64 | u128::from(system_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence() {
        let mut a = Prng::seeded(7);
        let mut b = Prng::seeded(7);
        let first: Vec<u64> = (0..8).map(|_| a.next_u64()).collect();
        let again: Vec<u64> = (0..8).map(|_| b.next_u64()).collect();
        assert_eq!(first, again);
        assert_ne!(first[0], first[1]);
    }

    #[test]
    fn below_stays_below_and_reaches_every_value() {
        let mut prng = Prng::seeded(1);
        let mut seen = [false; 5];
        for _ in 0..200 {
            let n = prng.below(5);
            seen[usize::try_from(n).unwrap()] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!(prng.below(0), 0);
    }

    #[test]
    fn system_identities_differ() {
        assert_ne!(system_u128(), system_u128());
    }
}
