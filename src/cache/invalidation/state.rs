//! The small durable state: who we are, epochs, purges that are not finished.
//!
//! It lies in sled under the state directory. Losing it never lets an old
//! object come back: what stripes hold that know another instance is dead.

use super::lineage::name_run;
use super::rules::Clears;
use super::{served, spare};
use crate::base::planted::{Planted, is_planted};
use crate::base::prng::system_u128;
use crate::cache::tier::Writes;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Epochs that are reserved at a time, so that taking one writes nothing.
const EPOCHS_AHEAD: u64 = 1 << 20;
/// Epochs between two seconds of the time of day.
const EPOCHS_A_SECOND: u64 = 1 << 21;
/// Bytes that sled may keep in memory.
const SLED_CACHE: u64 = 4 << 20;

const INSTANCE: &str = "instance";
const RUN: &str = "run";
const EPOCH: &str = "epoch";
const RETIRED: &str = "retired";

/// Whether a span is in use, as is remembered over restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// It is in use if it is configured.
    Here,
    /// It is kept out of use.
    Offline,
    /// It is in use again, and does not say itself yet that what it holds is
    /// in doubt: a start that finds it so has to remember.
    Returning,
}

/// Why the state can't be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    /// sled's word.
    #[error("state: {0}")]
    Sled(#[from] sled::Error),
    /// It can't be copied.
    #[error("state: {0}")]
    Copy(#[from] std::io::Error),
    /// Neither the database nor a file beside it takes word of this run.
    #[error(
        "state: {0}; a span that is away in this run is not known to miss anything: \
         empty it before it is used again (traffic_ctl storage init PATH --force)"
    )]
    Untold(std::io::Error),
}

/// What the tree of spans out of use says of each; 0 was never used.
const OFFLINE: u8 = 1;
const RETURNING: u8 = 2;

/// How often a directory that sled holds locked is tried again.
const LOCK_TRIES: u32 = 250;
/// The pause between two tries.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// The open state; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(super) db: sled::Db,
    purges: sled::Tree,
    offline: sled::Tree,
    clears: sled::Tree,
    lives: sled::Tree,
    pub(super) layout: sled::Tree,
    pub(super) attendance: sled::Tree,
    pub(super) runs: sled::Tree,
    /// Where it lies, unless it goes with this process.
    pub(super) place: Option<PathBuf>,
    /// Names the installation, and this run of it.
    pub(crate) instance: u128,
    /// Counts the starts.
    pub(crate) run: u64,
    /// The last run before this one in which a stripe could miss anything.
    pub(super) served: u64,
    /// All epochs handed out by earlier runs are below or at this one.
    pub(crate) epoch: u64,
    /// The epoch of the newest purge that earlier runs finished and forgot.
    pub(crate) retired: u64,
}

impl State {
    /// Opens the state in `dir`, or one that lives only as long as this
    /// process, and counts this start. One that begins now counts epochs and
    /// runs from the time of day, `seconds`, so that both are above those of a
    /// state that was lost: of a second's epochs a start takes less than all.
    ///
    /// # Errors
    /// When it is damaged, locked, or the directory can't be written, though the
    /// room set aside for that was given up.
    pub(crate) fn open(dir: Option<&Path>, seconds: u64) -> Result<Self, StateError> {
        let Some(dir) = dir else {
            return Self::open_at(None, seconds);
        };
        let opened = match Self::open_at(Some(Self::place_in(dir)), seconds) {
            Err(error) if spare::may_help(&error) && spare::give_up(dir) => {
                tracing::warn!(%error, "the room set aside for this is used now");
                Self::open_at(Some(Self::place_in(dir)), seconds)
            }
            opened => opened,
        };
        opened.inspect(|_| spare::hold(dir))
    }

    /// The same at its place, with the room that there is.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(super) fn open_at(place: Option<PathBuf>, seconds: u64) -> Result<Self, StateError> {
        let config = sled::Config::new().cache_capacity(SLED_CACHE);
        let config = match &place {
            Some(place) => config.path(place),
            None => config.temporary(true),
        };
        let db = open_when_let_go(&config)?;
        let kept = match number(&db, INSTANCE)? {
            Some(known) => known,
            None => system_u128(),
        };
        let last = number(&db, RUN)?.map_or(seconds, small);
        let numbers = served::number_run(&db, last, place.as_deref())?;
        let run = numbers.run;
        let runs = db.open_tree("runs")?;
        let instance = name_run(&runs, kept, run)?;
        let first = seconds.saturating_mul(EPOCHS_A_SECOND);
        let epoch = number(&db, EPOCH)?.map_or(first, small);
        let retired = number(&db, RETIRED)?.map_or(0, small);
        put(&db, INSTANCE, kept)?;
        served::begin(&db, numbers)?;
        put(&db, RUN, u128::from(run))?;
        put(&db, EPOCH, u128::from(epoch + EPOCHS_AHEAD))?;
        db.flush()?;
        place.as_deref().into_iter().for_each(served::settle);
        Ok(Self {
            purges: db.open_tree("purges")?,
            offline: db.open_tree("offline")?,
            clears: db.open_tree("clears")?,
            lives: db.open_tree("lives")?,
            layout: db.open_tree("layout")?,
            attendance: db.open_tree("attendance")?,
            runs,
            db,
            place,
            instance,
            run,
            served: numbers.served,
            epoch,
            retired,
        })
    }

    /// Where it lies in the state directory `dir`.
    pub(super) fn place_in(dir: &Path) -> PathBuf {
        dir.join("cache-state")
    }

    /// Keeps the reserve of epochs ahead of `epoch`.
    ///
    /// # Errors
    /// When it can't be made durable.
    pub(crate) fn reserve_epochs(&self, epoch: u64) -> Result<(), StateError> {
        let reserved = number(&self.db, EPOCH)?.map_or(0, small);
        if epoch + EPOCHS_AHEAD / 2 > reserved {
            put(&self.db, EPOCH, u128::from(epoch + EPOCHS_AHEAD))?;
            self.db.flush()?;
        }
        Ok(())
    }

    /// Writes purges down, key and epoch of each; they are durable on return.
    ///
    /// # Errors
    /// When they can't be made durable.
    pub(crate) fn begin_purges(&self, purges: &[(u128, u64)]) -> Result<(), StateError> {
        if is_planted(Planted::PurgeUntold) {
            return Ok(());
        }
        for (key, epoch) in purges {
            // They may come in another order than their epochs were taken.
            self.purges.update_and_fetch(key.to_le_bytes(), |known| {
                let known = known.and_then(|bytes| bytes.try_into().ok());
                let known = known.map_or(0, u64::from_le_bytes);
                Some(known.max(*epoch).to_le_bytes().to_vec())
            })?;
            self.reserve_epochs(*epoch)?;
        }
        self.db.flush()?;
        Ok(())
    }

    /// Forgets a purge whose entries are gone for good, unless a newer one of
    /// the same key has come. That there was one is remembered: a stripe that
    /// is away may hold what it hit.
    ///
    /// # Errors
    /// When the state can't be written.
    pub(crate) fn end_purge(&self, key: u128, epoch: u64) -> Result<(), StateError> {
        let retired = number(&self.db, RETIRED)?.map_or(0, small);
        put(&self.db, RETIRED, u128::from(retired.max(epoch)))?;
        let (key, epoch) = (key.to_le_bytes(), epoch.to_le_bytes());
        // A newer purge of the key stays: it is no error that this one lost.
        drop(
            self.purges
                .compare_and_swap(key, Some(&epoch), None::<&[u8]>)?,
        );
        Ok(())
    }

    /// Purges that earlier runs began: key and epoch.
    ///
    /// # Errors
    /// When the state can't be read.
    pub(crate) fn unfinished_purges(&self) -> Result<Vec<(u128, u64)>, StateError> {
        let mut purges = Vec::new();
        for row in &self.purges {
            let (key, epoch) = row?;
            let key = key.as_ref().try_into().map(u128::from_le_bytes);
            let epoch = epoch.as_ref().try_into().map(u64::from_le_bytes);
            if let (Ok(key), Ok(epoch)) = (key, epoch) {
                purges.push((key, epoch));
            }
        }
        Ok(purges)
    }

    /// Writes down that everything below `epoch` is dead, in one volume or in
    /// all; it is durable on return, and holds for good: a span that is away
    /// may come back at any time.
    ///
    /// # Errors
    /// When it can't be made durable.
    pub(crate) fn clear(&self, volume: Option<u32>, epoch: u64) -> Result<(), StateError> {
        let name = volume.map_or(Vec::new(), |volume| volume.to_le_bytes().to_vec());
        self.clears.insert(name, &epoch.to_le_bytes())?;
        self.reserve_epochs(epoch)?;
        self.db.flush()?;
        Ok(())
    }

    /// Writes down that what was cleared of a volume is so in the one that it
    /// hands stripes over to; pairs of both.
    ///
    /// # Errors
    /// When it can't be made durable.
    pub(crate) fn carry_clears(&self, moves: &BTreeSet<(u32, u32)>) -> Result<(), StateError> {
        let clears = self.clears()?;
        for (from, to) in moves {
            let epoch = clears.volumes.get(from).copied();
            let known = clears.volumes.get(to).copied();
            if let Some(epoch) = epoch.filter(|_| epoch > known) {
                self.clear(Some(*to), epoch)?;
            }
        }
        Ok(())
    }

    /// What was cleared so far.
    ///
    /// # Errors
    /// When the state can't be read.
    pub(crate) fn clears(&self) -> Result<Clears, StateError> {
        let mut clears = Clears::default();
        for row in &self.clears {
            let (name, epoch) = row?;
            let volume = name.as_ref().try_into().map(u32::from_le_bytes).ok();
            if let Ok(epoch) = epoch.as_ref().try_into().map(u64::from_le_bytes) {
                clears.add(volume, epoch);
            }
        }
        Ok(clears)
    }

    /// Remembers whether a span is in use; durable on return.
    ///
    /// # Errors
    /// When it can't be made durable.
    pub(crate) fn set_presence(&self, span: u128, presence: Presence) -> Result<(), StateError> {
        let span = span.to_le_bytes();
        match presence {
            Presence::Here => self.offline.remove(span)?,
            Presence::Offline => self.offline.insert(span, &[OFFLINE])?,
            Presence::Returning => self.offline.insert(span, &[RETURNING])?,
        };
        self.db.flush()?;
        Ok(())
    }

    /// Remembers what was written to a span, and may be; durable soon.
    ///
    /// # Errors
    /// When the state can't be written.
    pub(crate) fn set_writes(&self, span: u128, writes: Writes) -> Result<(), StateError> {
        self.lives.insert(span.to_le_bytes(), writes.to_bytes())?;
        Ok(())
    }

    /// What was written to a span, and may be, as far as is known.
    ///
    /// # Errors
    /// When the state can't be read.
    pub(crate) fn writes(&self, span: u128) -> Result<Writes, StateError> {
        let kept = self.lives.get(span.to_le_bytes())?;
        Ok(kept.map_or_else(Writes::default, |bytes| Writes::of_bytes(&bytes)))
    }

    /// Whether a span is in use.
    ///
    /// # Errors
    /// When the state can't be read.
    pub(crate) fn presence(&self, span: u128) -> Result<Presence, StateError> {
        let kept = self.offline.get(span.to_le_bytes())?;
        Ok(match kept.as_deref() {
            None => Presence::Here,
            Some([RETURNING]) => Presence::Returning,
            Some(_) => Presence::Offline,
        })
    }
}

/// Opens sled once the one before it has let go.
///
/// Dropping a `Db` does not wait for sled's threads, and a process forked
/// meanwhile holds the lock until it executes its program: an opening right
/// after a closing found the directory locked by nobody. A second *server* is
/// told apart before this, by the lock of the state directory.
fn open_when_let_go(config: &sled::Config) -> sled::Result<sled::Db> {
    let mut tries = 0;
    loop {
        match config.open() {
            Err(sled::Error::Io(error)) if is_locked(&error) && tries < LOCK_TRIES => {
                tries += 1;
                std::thread::park_timeout(LOCK_PAUSE);
            }
            opened => return opened,
        }
    }
}

/// sled gives a lock that is held only as words.
fn is_locked(error: &std::io::Error) -> bool {
    error.to_string().contains("could not acquire lock")
}

pub(super) fn number(db: &sled::Db, name: &str) -> Result<Option<u128>, StateError> {
    let bytes = db.get(name)?;
    Ok(bytes.and_then(|bytes| Some(u128::from_le_bytes(bytes.as_ref().try_into().ok()?))))
}

pub(super) fn put(db: &sled::Db, name: &str, value: u128) -> Result<(), StateError> {
    db.insert(name, &value.to_le_bytes())?;
    Ok(())
}

fn small(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_waits_for_the_state_before_it_to_let_go() {
        let dir = tempfile::tempdir().unwrap();
        let first = State::open(Some(dir.path()), 0).unwrap();
        let path = dir.path().to_owned();
        let second = std::thread::spawn(move || State::open(Some(&path), 0).unwrap().run);
        std::thread::park_timeout(LOCK_PAUSE * 5);
        drop(first);
        assert_eq!(second.join().unwrap(), 2);
    }

    #[test]
    fn an_installation_keeps_its_name_and_counts_its_starts() {
        let dir = tempfile::tempdir().unwrap();
        let first = State::open(Some(dir.path()), 0).unwrap();
        let (instance, run) = (first.instance, first.run);
        drop(first);
        let second = State::open(Some(dir.path()), 0).unwrap();
        assert_eq!(second.instance >> 64, instance >> 64);
        assert_eq!(second.run, run + 1);
        let other = State::open(None, 0).unwrap().instance;
        assert_ne!(other >> 64, instance >> 64);
    }

    #[test]
    fn a_later_run_never_takes_an_epoch_again() {
        let dir = tempfile::tempdir().unwrap();
        let first = State::open(Some(dir.path()), 0).unwrap();
        let used = first.epoch + EPOCHS_AHEAD * 3;
        first.reserve_epochs(used).unwrap();
        drop(first);
        assert!(State::open(Some(dir.path()), 0).unwrap().epoch >= used);
    }

    #[test]
    fn a_purge_is_unfinished_until_it_ends_and_an_older_end_leaves_a_newer_one() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(Some(dir.path()), 0).unwrap();
        state.begin_purges(&[(1, 10), (2, 11)]).unwrap();
        state.begin_purges(&[(1, 12), (1, 11)]).unwrap();
        state.end_purge(1, 10).unwrap();
        state.end_purge(2, 11).unwrap();
        drop(state);
        let again = State::open(Some(dir.path()), 0).unwrap();
        assert_eq!(again.unfinished_purges().unwrap(), vec![(1, 12)]);
        assert_eq!(again.retired, 11);
    }

    #[test]
    fn whether_a_span_is_in_use_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        for presence in [Presence::Offline, Presence::Returning, Presence::Here] {
            let state = State::open(Some(dir.path()), 0).unwrap();
            state.set_presence(5, presence).unwrap();
            drop(state);
            let state = State::open(Some(dir.path()), 0).unwrap();
            assert_eq!(state.presence(5).unwrap(), presence);
            assert_eq!(state.presence(6).unwrap(), Presence::Here);
        }
    }

    #[test]
    fn a_state_that_begins_anew_begins_above_the_epochs_and_runs_of_one_that_was_lost() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(Some(dir.path()), 70).unwrap();
        assert_eq!((state.epoch, state.run), (70 * EPOCHS_A_SECOND, 71));
        drop(state);
        let again = State::open(Some(dir.path()), 5_000_000_000).unwrap();
        let epoch = 70 * EPOCHS_A_SECOND + EPOCHS_AHEAD;
        assert_eq!((again.epoch, again.run), (epoch, 72));
        let anew = State::open(None, 71).unwrap();
        assert!(anew.epoch >= epoch && anew.run >= 72);
    }

    #[test]
    fn clears_are_remembered_each_volume_s_and_that_of_all() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::open(Some(dir.path()), 0).unwrap();
        state.clear(Some(1), 5).unwrap();
        state.clear(None, 6).unwrap();
        state.clear(Some(1), 9).unwrap();
        drop(state);
        let clears = State::open(Some(dir.path()), 0).unwrap().clears().unwrap();
        assert_eq!((clears.all, &clears.volumes), (6, &[(1, 9)].into()));
    }
}
