//! The last run in which a stripe could miss anything.
//!
//! A run is counted before any stripe is touched, and serves only after it is
//! written down who is there. One that was ended in between served, stored and
//! removed nothing: it counts for no stripe. What can't be written down has a
//! run count though it may not have served: a file beside the database tells
//! the next start, which then leaves out one number that no stripe knows.

use super::state::{State, StateError, number, put};
use std::fs::File;
use std::io;
use std::path::Path;

/// The run that began last, in the upper half, and the last one before it in
/// which anything could be missed. It goes as soon as the run serves.
const UNSERVED: &str = "unserved";
/// The file that says that a run served, or may have, of which the database
/// does not know it.
const UNNOTED: &str = "unnoted-run";

/// Where the numbers of a start come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    /// Of the run that begins.
    pub(super) run: u64,
    /// Of the last one before it in which anything could be missed.
    pub(super) served: u64,
}

/// The numbers of the run that begins after `last`.
///
/// # Errors
/// When the state can't be read.
pub(super) fn number_run(
    db: &sled::Db,
    last: u64,
    place: Option<&Path>,
) -> Result<Numbers, StateError> {
    if place.is_some_and(|place| place.join(UNNOTED).exists()) {
        return Ok(Numbers {
            run: last + 2,
            served: last + 1,
        });
    }
    let begun = number(db, UNSERVED)?.map(Numbers::of_number);
    // A program that does not write this has counted a run of its own since.
    let begun = begun.filter(|begun| begun.run == last);
    Ok(Numbers {
        run: last + 1,
        served: begun.map_or(last, |begun| begun.served),
    })
}

/// Has the run that begins count for nothing until it serves; not flushed yet.
///
/// # Errors
/// When the state can't be written.
pub(super) fn begin(db: &sled::Db, numbers: Numbers) -> Result<(), StateError> {
    put(db, UNSERVED, numbers.to_number())
}

/// Takes away the file of a run that could not be noted, once the number that
/// it asks for is left out for good. If it stays, another one is left out.
pub(super) fn settle(place: &Path) {
    std::fs::remove_file(place.join(UNNOTED)).ok();
}

impl State {
    /// Has this run count: from now on stripes may miss what happens in it. It
    /// is not flushed yet.
    ///
    /// # Errors
    /// When the state can't be written.
    pub(super) fn begin_to_serve(&self) -> Result<(), StateError> {
        self.db.remove(UNSERVED)?;
        Ok(())
    }

    /// Has this run count where the database can't be written any more.
    ///
    /// # Errors
    /// When the state directory can't be written either.
    pub(super) fn serve_unnoted(&self) -> io::Result<()> {
        let Some(place) = &self.place else {
            return Ok(());
        };
        File::create(place.join(UNNOTED))?.sync_all()?;
        File::open(place)?.sync_all()
    }
}

impl Numbers {
    fn to_number(self) -> u128 {
        u128::from(self.run) << 64 | u128::from(self.served)
    }

    fn of_number(number: u128) -> Self {
        let part = |number: u128| u64::try_from(number & u128::from(u64::MAX)).unwrap_or(0);
        Self {
            run: part(number >> 64),
            served: part(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs in one directory.
    struct Runs(tempfile::TempDir);

    impl Runs {
        /// The next run; stripe 1 opened in the first of them.
        fn open(&self) -> State {
            State::open(Some(self.0.path()), 0).unwrap()
        }
    }

    fn runs() -> (Runs, u64) {
        let runs = Runs(tempfile::tempdir().unwrap());
        let first = runs.open();
        first.note_present([1].into_iter()).unwrap();
        first.note_opened(1).unwrap();
        (runs, first.run)
    }

    #[test]
    fn a_run_that_ended_before_it_noted_who_is_there_counts_for_no_stripe() {
        let (runs, first) = runs();
        (0..3).for_each(|_| drop(runs.open()));
        let state = runs.open();
        assert_eq!(state.run, first + 4);
        // One whose part is known, and one of which nothing is.
        assert_eq!([1, 2].map(|stripe| state.last_run(stripe)), [first; 2]);
        state.note_present([1].into_iter()).unwrap();
        drop(state);
        drop(runs.open());
        let last = [1, 2].map(|stripe| runs.open().last_run(stripe));
        assert_eq!(last, [first, first + 4]);
    }

    #[test]
    fn a_run_that_could_not_be_noted_counts_for_all() {
        let (runs, first) = runs();
        let unnoted = runs.open();
        unnoted.serve_unnoted().unwrap();
        drop(unnoted);
        // Nor does one that is ended at its start make it be forgotten.
        drop(runs.open());
        let state = runs.open();
        let last = [1, 2].map(|stripe| state.last_run(stripe));
        assert!(last[0] > first + 1 && last[0] < state.run, "{last:?}");
        assert_eq!(last[0], last[1]);
    }

    #[test]
    fn a_run_of_a_program_that_does_not_tell_counts() {
        let (runs, first) = runs();
        drop(runs.open());
        let db = sled::open(runs.0.path().join("cache-state")).unwrap();
        put(&db, "run", u128::from(first + 2)).unwrap();
        drop(db);
        assert_eq!(runs.open().last_run(1), first + 2);
    }
}
