//! The state as the next start would find it, for who only asks: what lies in
//! the state directory is not touched, nor its owner changed.

use super::state::{State, StateError};
use crate::base::prng::system_u64;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A copy of the state, which goes when this does.
#[derive(Debug)]
pub(crate) struct StateCopy {
    dir: PathBuf,
    state: Option<State>,
}

impl StateCopy {
    /// The state in `dir`, as a start would open it; where there is none, a new
    /// one, as a start would make it.
    ///
    /// # Errors
    /// When it can't be read, or not be copied to the system's directory for
    /// temporary files.
    pub(crate) fn of(dir: &Path) -> Result<Self, StateError> {
        let name = format!("strata-state-{:016x}", system_u64());
        let mut copy = Self {
            dir: std::env::temp_dir().join(name),
            state: None,
        };
        fs::create_dir_all(&copy.dir)?;
        let from = State::place_in(dir);
        if from.is_dir() {
            copy_all(&from, &State::place_in(&copy.dir))?;
        }
        copy.state = Some(State::open_at(Some(State::place_in(&copy.dir)), 0)?);
        Ok(copy)
    }

    /// The state.
    pub(crate) const fn state(&self) -> Option<&State> {
        self.state.as_ref()
    }
}

impl Drop for StateCopy {
    fn drop(&mut self) {
        self.state.take();
        // What is left of it is for the system to clear away.
        fs::remove_dir_all(&self.dir).ok();
    }
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let there = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_all(&entry.path(), &there)?;
        } else {
            fs::copy(entry.path(), there)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::invalidation::Lineage;

    #[test]
    fn a_copy_is_as_the_next_start_and_leaves_the_state_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(Some(dir.path()), 0).unwrap();
        let (instance, run) = (state.instance, state.run);
        drop(state);
        for _ in 0..2 {
            let copy = StateCopy::of(dir.path()).unwrap();
            let state = copy.state().unwrap();
            assert_eq!(state.lineage(instance).unwrap(), Lineage::Known);
            assert_eq!(state.run, run + 1);
            let there = copy.dir.clone();
            drop(copy);
            assert!(!there.exists());
        }
        let missing = dir.path().join("none");
        let anew = StateCopy::of(&missing).unwrap();
        let lineage = anew.state().unwrap().lineage(instance).unwrap();
        assert_eq!(lineage, Lineage::Strange);
        assert!(!missing.exists());
    }
}
