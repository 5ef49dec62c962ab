//! Seeds against promises; `docs/TESTING.md` has the fault model.
//!
//! `STRATA_SIM_SEED=n` replays one seed, `STRATA_SIM_SEEDS=n` runs so many,
//! from that one on if both are given; `STRATA_SIM_BUG=name` plants a bug that
//! they must find.

mod content;
pub(in crate::cache) mod disk;
mod history;
mod io;
mod planted;
mod stop;
mod stripe;
mod walk;
mod weather;

use crate::base::planted::with;
use crate::cache::format::to_u64;

/// Seeds of an ordinary run.
const SEEDS: u64 = 64;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Seeds that failed once, of faults that have been mended since.
const ONCE_FAILED: [u64; 8] = [3825, 4468, 5249, 9711, 10_659, 12_724, 14_874, 21_984];

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
fn every_seed_of_a_stripe_keeps_the_promises() {
    let mut sum = stripe::Tally::default();
    for seed in seeds() {
        println!("STRATA_SIM_SEED={seed}");
        sum += with(planted::chosen(), || stripe::run(seed));
    }
    println!("{sum:?}");
    let many = to_u64(seeds().len()) >= SEEDS;
    let busy = sum.stops > 300 && sum.cycles > 300 && sum.syncs > 300 && sum.suspects > 0;
    assert!(busy || !many, "{sum:?}");
}

#[test]
fn a_seed_runs_again_bit_for_bit() {
    // One of each weather.
    let traces = [0, 1, 2, 3, 4].map(|seed| {
        let [first, again] = [(); 2].map(|()| stripe::run(seed).trace);
        assert_eq!(first, again, "STRATA_SIM_SEED={seed}");
        first
    });
    let distinct = std::collections::HashSet::from(traces);
    assert_eq!(distinct.len(), traces.len(), "{traces:?}");
}
