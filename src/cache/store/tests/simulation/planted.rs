//! Bugs that take two stripes, planted by hand: the simulation must find each.

use super::world;
use crate::base::planted::{Planted, with};
use std::panic::catch_unwind;

/// Each bug of the whole cache, and the seed that found it.
const FOUND_BY: &[(Planted, u64)] = &[
    (Planted::CopyUnchecked, 1),
    (Planted::HeadUndeferred, 7),
    (Planted::UnwrittenFreeUnseen, 89),
    (Planted::FormerUnclaimed, 7),
    (Planted::AwayTrusted, 5),
    (Planted::PurgeUntold, 0),
    (Planted::LostStateTrusted, 1),
    (Planted::LostRunUnseen, 5),
    (Planted::OthersSpared, 5),
    (Planted::OfflineForgotten, 23),
    (Planted::SilenceUncounted, 7),
    (Planted::ReturnTrusted, 14),
    (Planted::ParityOfFirstCycle, 26),
];

/// Seeds that are tried when the noted one no longer finds the bug.
const TRIES: u64 = 60;

/// The bug that `STRATA_SIM_BUG` names, if it is one of these.
pub(super) fn chosen() -> Option<Planted> {
    let name = std::env::var("STRATA_SIM_BUG").ok()?;
    let bugs = FOUND_BY.iter().map(|(bug, _)| *bug);
    { bugs }.find(|bug| format!("{bug:?}") == name)
}

fn fails(bug: Option<Planted>, seed: u64) -> bool {
    catch_unwind(|| with(bug, || world::run(seed))).is_err()
}

/// Whether the seed fails with the bug, and does not without.
fn finds(bug: Planted, seed: u64) -> bool {
    fails(Some(bug), seed) && !fails(None, seed)
}

#[test]
#[expect(clippy::print_stdout, reason = "docs/TESTING.md lists the seeds")]
fn every_planted_bug_of_two_stripes_is_found() {
    let mut missed = Vec::new();
    for (bug, noted) in FOUND_BY {
        let seeds = std::iter::once(*noted).chain(0..TRIES);
        let found = { seeds }.find(|seed| finds(*bug, *seed));
        println!("{bug:?}: seed {found:?}");
        missed.extend(found.is_none().then_some(*bug));
    }
    assert!(missed.is_empty(), "the simulation is blind to {missed:?}");
}
