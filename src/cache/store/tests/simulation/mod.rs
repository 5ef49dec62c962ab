//! The whole cache against promises, seed by seed; `docs/TESTING.md` has what
//! goes wrong. `STRATA_SIM_SEED`, `STRATA_SIM_SEEDS` and `STRATA_SIM_BUG` work
//! as in the simulation of one stripe.

mod disk;
mod model;
mod planted;
mod world;

use crate::base::planted::with;
use world::Tally;

/// Seeds of an ordinary run.
const SEEDS: u64 = 16;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The seeds to run.
fn seeds() -> std::ops::Range<u64> {
    match (number("STRATA_SIM_SEED"), number("STRATA_SIM_SEEDS")) {
        (Some(first), count) => first..first + count.unwrap_or(1),
        (None, count) => 0..count.unwrap_or(SEEDS),
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
    let many = seeds().end - seeds().start >= SEEDS;
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
