//! The whole cache against promises, seed by seed; `docs/TESTING.md` has what
//! goes wrong. `STRATA_SIM_SEED`, `STRATA_SIM_SEEDS` and `STRATA_SIM_BUG` work
//! as in the simulation of one stripe.

mod content;
mod disk;
mod model;
mod named;
mod planted;
mod reading;
mod restart;
mod weather;
mod world;

use crate::base::planted::with;
use crate::cache::format::to_u64;
use world::Tally;

/// Seeds of an ordinary run.
const SEEDS: u64 = 16;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Seeds that failed once, of faults that have been mended since.
const ONCE_FAILED: [u64; 2] = [36, 89];

/// The seeds to run.
fn seeds() -> Vec<u64> {
    match (number("STRATA_SIM_SEED"), number("STRATA_SIM_SEEDS")) {
        (Some(first), count) => (first..first + count.unwrap_or(1)).collect(),
        (None, Some(count)) => (0..count).collect(),
        (None, None) => (0..SEEDS).chain(ONCE_FAILED).collect(),
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "a seed that fails is to be replayed")]
fn every_seed_of_the_whole_cache_keeps_the_promises() {
    let mut sum = Tally::default();
    for seed in seeds() {
        println!("STRATA_SIM_SEED={seed}");
        sum += with(planted::chosen(), || world::run(seed));
    }
    println!("{sum:?}");
    let many = to_u64(seeds().len()) >= SEEDS;
    assert!(sum.is_busy() || !many, "{sum:?}");
}

#[test]
fn a_seed_of_the_whole_cache_runs_again_alike() {
    let traces = [1, 2].map(|seed| {
        let [first, again] = [(); 2].map(|()| world::run(seed).trace);
        assert_eq!(first, again, "STRATA_SIM_SEED={seed}");
        first
    });
    assert_ne!(traces[0], traces[1]);
}
