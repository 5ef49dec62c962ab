//! What was done to a key, and what may therefore be found under it.

use super::world::DISKS_MAX;

/// Writes that each disk had done.
pub(super) type Progress = [usize; DISKS_MAX];

/// A store of a version, or that there is none any more.
#[derive(Clone, Copy, Debug)]
struct Event {
    version: Option<u32>,
    /// It holds over a kill, and over a power cut once so many writes of the
    /// disks have been flushed.
    written: Option<Progress>,
    /// Nothing older may be found, not even in doubt.
    purges: bool,
    /// Bytes that had been stored by then, under any key.
    at: u64,
}

/// The events of a key, oldest first, and what this run has of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    events: Vec<Event>,
    /// Those of earlier runs; what was not written by then never will be.
    earlier: usize,
    current: Option<u32>,
}

impl Model {
    pub(super) fn store(&mut self, version: u32, at: u64) {
        self.push(Some(version), at);
    }

    /// What there is was written again, in the place of the one before: a kill
    /// may leave that batch half-way.
    pub(super) fn refreshed(&mut self, at: u64) {
        self.push(self.current, at);
    }

    pub(super) fn remove(&mut self) {
        self.push(None, 0);
    }

    /// A purge that was acknowledged, or the loss of the state.
    pub(super) fn purge(&mut self) {
        self.push(None, 0);
        let event = self.events.last_mut().unwrap();
        event.written = Some(Progress::default());
        event.purges = true;
    }

    fn push(&mut self, version: Option<u32>, at: u64) {
        self.current = version;
        self.events.push(Event {
            version,
            written: None,
            purges: false,
            at,
        });
    }

    /// All so far is written, when the disks had done so many writes.
    pub(super) fn written(&mut self, progress: Progress) {
        let own = self.events.iter_mut().skip(self.earlier);
        own.for_each(|event| event.write(progress));
    }

    /// This version has been seen to be written.
    pub(super) fn seen_written(&mut self, version: u32, progress: Progress) {
        let seen = self.events.iter_mut().rev();
        { seen }
            .filter(|event| event.version == Some(version))
            .take(1)
            .for_each(|event| event.write(progress));
    }

    /// The power goes: what was not flushed by then may be lost.
    pub(super) fn cut_power(&mut self, flushed: Progress) {
        for event in &mut self.events {
            let holds = |written: &Progress| written.iter().zip(&flushed).all(|(w, f)| w <= f);
            event.written = event.written.filter(holds);
        }
    }

    /// The newest, if it is there for sure: no more than so many bytes were
    /// stored since.
    pub(super) fn required(&self, stored: u64, room: u64) -> Option<u32> {
        let newest = self.events.last()?;
        let is_there = newest.written.is_some() && stored - newest.at <= room;
        newest.version.filter(|_| is_there)
    }

    /// Whether this version may be found in no doubt, in a run.
    pub(super) fn is_current(&self, version: u32) -> bool {
        self.current == Some(version)
    }

    /// Whether a version may be found that a start did not find: what was damaged
    /// may have hidden it, until that was freed.
    pub(super) fn settle_late(&mut self, version: u32, progress: Progress) -> bool {
        let is_untouched = self.current.is_none() && self.events.len() == self.earlier;
        is_untouched && self.settle(Some(version), progress)
    }

    /// Whether this version may be found in doubt.
    pub(super) fn may_be_suspect(&self, version: u32) -> bool {
        let purge = self.events.iter().rposition(|event| event.purges);
        let after = purge.map_or(0, |at| at + 1);
        let left = self.events.get(after..).unwrap_or_default();
        left.iter().any(|event| event.version == Some(version))
    }

    /// A start, when the disks had done so many writes, has found this version
    /// in no doubt, or none. Whether it may.
    pub(super) fn settle(&mut self, found: Option<u32>, progress: Progress) -> bool {
        self.current = found;
        self.earlier = self.events.len();
        let Some(version) = found else {
            return true;
        };
        let written = { self.events.iter() }.rposition(|event| event.written.is_some());
        let own = |event: &Event| event.version == Some(version);
        let Some(at) = self.events.iter().rposition(own) else {
            return false;
        };
        // Older ones must not come back, newer ones that were lost may.
        self.events[at].write(progress);
        written.is_none_or(|written| at >= written)
    }
}

impl Event {
    fn write(&mut self, progress: Progress) {
        self.written.get_or_insert(progress);
    }
}
