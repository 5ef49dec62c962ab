//! What a simulation puts in the place of the system: chance, and threads that
//! it steps by hand. In the product none does, and asking costs nothing.

/// Whether this thread runs a simulation: then no other is started.
#[cfg(not(test))]
pub(crate) const fn is_simulated() -> bool {
    false
}

/// The simulation's chance, if there is one.
#[cfg(not(test))]
pub(crate) const fn chance() -> Option<u64> {
    None
}

#[cfg(test)]
pub(crate) use seeded::{chance, is_simulated, with};

#[cfg(test)]
mod seeded {
    use crate::base::prng::Prng;
    use std::cell::RefCell;

    thread_local! {
        static CHANCE: RefCell<Option<Prng>> = const { RefCell::new(None) };
    }

    pub(crate) fn is_simulated() -> bool {
        CHANCE.with_borrow(Option::is_some)
    }

    pub(crate) fn chance() -> Option<u64> {
        CHANCE.with_borrow_mut(|chance| chance.as_mut().map(Prng::next_u64))
    }

    /// Does `work` with the system's chance, in this thread, out of a seed.
    pub(crate) fn with<T>(seed: u64, work: impl FnOnce() -> T) -> T {
        let _until_the_end = Reset(CHANCE.replace(Some(Prng::seeded(seed))));
        work()
    }

    /// Puts back what was there before, even after a panic.
    struct Reset(Option<Prng>);

    impl Drop for Reset {
        fn drop(&mut self) {
            CHANCE.set(self.0.take());
        }
    }
}
