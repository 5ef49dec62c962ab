//! Bugs planted by hand: the simulation must find each.

use super::stripe;
use crate::base::planted::{Planted, with};
use std::panic::catch_unwind;

/// Each bug of a stripe, and the seed that found it when it was planted.
const FOUND_BY: &[(Planted, u64)] = &[
    (Planted::ParityOfFirstCycle, 0),
    (Planted::KeptAfterFailedFlush, 0),
    (Planted::FailureUntold, 0),
    (Planted::LossCountsAsWritten, 66),
    (Planted::StrangePage, 49),
    (Planted::ReplayPastGap, 34),
    (Planted::NoLookAhead, 139),
    (Planted::NoLookBack, 5249),
    (Planted::RowsOutOfOrder, 0),
    (Planted::PageAfterRows, 0),
    (Planted::PageBeforeRows, 4),
    (Planted::UnreadPageSynced, 7),
    (Planted::FreeRowsMissing, 0),
    (Planted::DroppedUntold, 3),
    (Planted::OpeningUnmissed, 10_844),
    (Planted::HeaderUnheard, 3774),
    (Planted::StraysUnseen, 12_724),
    (Planted::TwinsRestored, 67),
    (Planted::SyncPointTooLate, 0),
    (Planted::SyncWaitsForNoBatch, 8),
    (Planted::HeaderBeforeFlush, 122),
    (Planted::RingFreedTooEarly, 10),
    (Planted::FailedPageForgotten, 146),
    (Planted::HandStands, 13),
    (Planted::ChainUnchecked, 11),
    (Planted::NoSkipAfterKill, 104),
    (Planted::PinsUnheeded, 107),
    (Planted::OldCopyTaken, 0),
    (Planted::AwayTrusted, 11),
    (Planted::UnreadTrusted, 1),
];

/// Seeds that are tried when the engine has changed and the noted one no
/// longer finds the bug.
const TRIES: u64 = 400;

/// The bug that `STRATA_SIM_BUG` names.
pub(super) fn chosen() -> Option<Planted> {
    let name = std::env::var("STRATA_SIM_BUG").ok()?;
    let bugs = FOUND_BY.iter().map(|(bug, _)| *bug);
    let bug = { bugs }.find(|bug| format!("{bug:?}") == name);
    Some(bug.unwrap_or_else(|| panic!("no such bug to plant: {name}")))
}

fn fails(bug: Option<Planted>, seed: u64) -> bool {
    catch_unwind(|| with(bug, || stripe::run(seed))).is_err()
}

/// Whether the seed fails with the bug, and does not without.
fn finds(bug: Planted, seed: u64) -> bool {
    fails(Some(bug), seed) && !fails(None, seed)
}

#[test]
#[expect(clippy::print_stdout, reason = "docs/TESTING.md lists the seeds")]
fn every_planted_bug_is_found() {
    let mut missed = Vec::new();
    for (bug, noted) in FOUND_BY {
        let seeds = std::iter::once(*noted).chain(0..TRIES);
        let found = { seeds }.find(|seed| finds(*bug, *seed));
        println!("{bug:?}: seed {found:?}");
        missed.extend(found.is_none().then_some(*bug));
    }
    assert!(missed.is_empty(), "the simulation is blind to {missed:?}");
}
