//! The runs that the state knows, by the name that each wrote into the headers
//! of the stripes that took part.
//!
//! A state folder that was put back from an older copy knows nothing of the
//! runs since, nor of their purges. A stripe that took part in one of them
//! tells so whenever it comes, however the runs are numbered: its header has a
//! name that this state never gave.

use super::state::{State, StateError};
use crate::base::planted::{Planted, is_planted};
use crate::base::prng::system_u128;
use crate::cache::format::low64;

/// The number of a run that was met in a header, and is none of the state's.
const LOST: u64 = 0;

/// What a state knows of the run that a header names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lineage {
    /// It is one of the state's own.
    Known,
    /// This installation's, but none that the state knows: it is an older copy.
    Lost,
    /// Another installation's, or one whose loss has been noted.
    Strange,
}

/// The names that a state gives: of the installation in the upper half, of the
/// run that begins now in the lower one. `kept` is the one that the first run
/// of all had.
///
/// # Errors
/// When the state can't be read or written; it is not flushed yet.
pub(super) fn name_run(runs: &sled::Tree, kept: u128, run: u64) -> Result<u128, StateError> {
    if runs.is_empty() {
        // The first run, or the first one that gives names.
        runs.insert(low64(kept).to_le_bytes(), &run.max(1).to_le_bytes())?;
    }
    let name = low64(system_u128());
    runs.insert(name.to_le_bytes(), &run.max(1).to_le_bytes())?;
    Ok(kept >> 64 << 64 | u128::from(name))
}

impl State {
    /// What is known of the run that a stripe's header names.
    ///
    /// # Errors
    /// When the state can't be read.
    pub(crate) fn lineage(&self, instance: u128) -> Result<Lineage, StateError> {
        if instance >> 64 != self.instance >> 64 {
            return Ok(Lineage::Strange);
        }
        if is_planted(Planted::LostRunUnseen) {
            return Ok(Lineage::Known);
        }
        let row = self.runs.get(low64(instance).to_le_bytes())?;
        let run = row.map(|bytes| bytes.as_ref().try_into().map_or(LOST, u64::from_le_bytes));
        Ok(match run {
            None => Lineage::Lost,
            Some(LOST) => Lineage::Strange,
            Some(_) => Lineage::Known,
        })
    }

    /// Writes down that a run was met which this state does not know, and that
    /// all from before `epoch` is dead, wherever it lies; durable on return. It
    /// is told of once: the next start does not find the run lost again.
    ///
    /// # Errors
    /// When it can't be made durable.
    pub(crate) fn lose_run(&self, instance: u128, epoch: u64) -> Result<(), StateError> {
        let name = low64(instance).to_le_bytes();
        if !is_planted(Planted::OthersSpared) {
            self.clear(None, epoch)?;
        }
        self.runs.insert(name, &LOST.to_le_bytes())?;
        self.db.flush()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_knows_the_runs_it_has_named_and_no_other_installation_s() {
        let dir = tempfile::tempdir().unwrap();
        let open = || State::open(Some(dir.path()), 5).unwrap();
        let first = open().instance;
        let state = open();
        assert_ne!(state.instance, first);
        assert_eq!(state.lineage(first).unwrap(), Lineage::Known);
        assert_eq!(state.lineage(state.instance).unwrap(), Lineage::Known);
        let other = State::open(None, 5).unwrap().instance;
        assert_eq!(state.lineage(other).unwrap(), Lineage::Strange);
    }

    #[test]
    fn a_run_that_the_state_does_not_know_is_lost_once_and_all_before_is_dead() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(Some(dir.path()), 5).unwrap();
        let lost = state.instance ^ 1;
        assert_eq!(state.lineage(lost).unwrap(), Lineage::Lost);
        state.lose_run(lost, 70).unwrap();
        drop(state);
        let again = State::open(Some(dir.path()), 5).unwrap();
        assert_eq!(again.lineage(lost).unwrap(), Lineage::Strange);
        assert_eq!(again.clears().unwrap().all, 70);
    }

    #[test]
    fn a_state_from_before_runs_had_names_knows_the_one_it_had() {
        let dir = tempfile::tempdir().unwrap();
        let old = 0x1234_5678_9abc_def0_u128 << 64 | 77;
        let db = sled::open(dir.path().join("cache-state")).unwrap();
        db.insert("instance", &old.to_le_bytes()).unwrap();
        drop(db);
        let state = State::open(Some(dir.path()), 5).unwrap();
        assert_eq!(state.lineage(old).unwrap(), Lineage::Known);
        assert_ne!(state.instance, old);
    }
}
