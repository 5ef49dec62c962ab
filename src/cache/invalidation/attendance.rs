//! In which runs each stripe was there: one that missed none since it was open
//! last can't be behind, though starts may have ended before they opened it.

use super::state::{State, StateError};

/// What is remembered of a stripe's part in the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attendance {
    /// It was there in each run from the one in which it opened to this one.
    through: u64,
    /// The last run in which it was seen to be open.
    opened: u64,
}

impl State {
    /// The last run that the stripe has to know, or else it is behind: the one
    /// in which it opened, if it was there ever since as far as can be read, or
    /// the last one that served.
    pub(crate) fn last_run(&self, stripe: u128) -> u64 {
        let known = self.attendance_of(stripe).ok().flatten();
        let known = known.filter(|known| known.through >= self.served);
        known.map_or(self.served, |known| known.opened)
    }

    /// Notes that stripes take part in this run, before anything is done in it
    /// that they could miss; durable on return. One whose place was not noted
    /// through the last run that served stays unknown until it opens.
    ///
    /// # Errors
    /// When it can't be made durable. All stripes then count as away in this
    /// run, unless that can't be written to the state directory either.
    pub(crate) fn note_present(
        &self,
        stripes: impl Iterator<Item = u128>,
    ) -> Result<(), StateError> {
        let noted = self.note_those(stripes);
        if noted.is_err() {
            self.serve_unnoted().map_err(StateError::Untold)?;
        }
        noted
    }

    fn note_those(&self, stripes: impl Iterator<Item = u128>) -> Result<(), StateError> {
        for stripe in stripes {
            let known = self.attendance_of(stripe)?;
            if let Some(known) = known.filter(|known| known.through >= self.served) {
                let through = self.run;
                self.put_attendance(stripe, Attendance { through, ..known })?;
            }
        }
        self.begin_to_serve()?;
        self.db.flush()?;
        Ok(())
    }

    /// Notes that a stripe is open in this run; durable on return.
    ///
    /// # Errors
    /// When it can't be made durable.
    pub(crate) fn note_opened(&self, stripe: u128) -> Result<(), StateError> {
        let (through, opened) = (self.run, self.run);
        self.put_attendance(stripe, Attendance { through, opened })?;
        self.attendance.flush()?;
        Ok(())
    }

    /// Notes that a stripe has missed something, unless it opens yet; durable
    /// on return.
    ///
    /// # Errors
    /// When it can't be made durable.
    pub(crate) fn note_missed(&self, stripe: u128) -> Result<(), StateError> {
        self.attendance.remove(stripe.to_le_bytes())?;
        self.attendance.flush()?;
        Ok(())
    }

    fn attendance_of(&self, stripe: u128) -> Result<Option<Attendance>, StateError> {
        let bytes = self.attendance.get(stripe.to_le_bytes())?;
        let number = bytes.and_then(|bytes| bytes.as_ref().try_into().ok());
        Ok(number.map(u128::from_le_bytes).map(Attendance::of_number))
    }

    fn put_attendance(&self, stripe: u128, attendance: Attendance) -> Result<(), StateError> {
        let bytes = attendance.to_number().to_le_bytes();
        self.attendance.insert(stripe.to_le_bytes(), &bytes)?;
        Ok(())
    }
}

impl Attendance {
    fn to_number(self) -> u128 {
        u128::from(self.through) << 64 | u128::from(self.opened)
    }

    fn of_number(number: u128) -> Self {
        let part = |number: u128| u64::try_from(number & u128::from(u64::MAX)).unwrap_or(0);
        Self {
            through: part(number >> 64),
            opened: part(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripe_that_was_there_in_every_run_has_to_know_the_one_in_which_it_opened() {
        let dir = tempfile::tempdir().unwrap();
        let open = || State::open(Some(dir.path()), 0).unwrap();
        let state = open();
        let first = state.run;
        assert_eq!(state.last_run(1), first - 1);
        (1..4).for_each(|stripe| state.note_opened(stripe).unwrap());
        drop(state);
        for _ in 0..3 {
            let state = open();
            state.note_present([1, 3].into_iter()).unwrap();
            drop(state);
        }
        let state = open();
        state.note_missed(3).unwrap();
        let last = [1, 2, 3].map(|stripe| state.last_run(stripe));
        assert_eq!(last, [first, first + 3, first + 3]);
        state.note_present([2].into_iter()).unwrap();
        drop(state);
        // It was away, and that it is there since does not mend that.
        assert_eq!(open().last_run(2), first + 4);
    }
}
