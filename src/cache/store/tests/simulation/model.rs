//! What was done to a key, and what may therefore be found under it.

/// A store of a version, or that there is none any more.
#[derive(Clone, Copy, Debug)]
struct Event {
    version: Option<u32>,
    /// It holds over a kill.
    durable: bool,
    /// Nothing older may be found, not even in doubt.
    purges: bool,
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
    pub(super) fn store(&mut self, version: u32) {
        self.push(Some(version), false, false);
    }

    /// What there is was written again, in the place of the one before: a kill
    /// may leave that batch half-way.
    pub(super) fn refreshed(&mut self) {
        self.push(self.current, false, false);
    }

    pub(super) fn remove(&mut self) {
        self.push(None, false, false);
    }

    /// A purge that was acknowledged, or the loss of the state.
    pub(super) fn purge(&mut self) {
        self.push(None, true, true);
    }

    fn push(&mut self, version: Option<u32>, durable: bool, purges: bool) {
        self.current = version;
        self.events.push(Event {
            version,
            durable,
            purges,
        });
    }

    /// All so far is written.
    pub(super) fn written(&mut self) {
        let own = self.events.iter_mut().skip(self.earlier);
        own.for_each(|event| event.durable = true);
    }

    /// This version has been seen to be written.
    pub(super) fn seen_written(&mut self, version: u32) {
        let seen = self.events.iter_mut().rev();
        { seen }
            .filter(|event| event.version == Some(version))
            .take(1)
            .for_each(|event| event.durable = true);
    }

    /// The newest, if it is there for sure.
    pub(super) fn required(&self) -> Option<u32> {
        let newest = self.events.last()?;
        newest.version.filter(|_| newest.durable)
    }

    /// Whether this version may be found in no doubt, in a run.
    pub(super) fn is_current(&self, version: u32) -> bool {
        self.current == Some(version)
    }

    /// Whether this version may be found in doubt.
    pub(super) fn may_be_suspect(&self, version: u32) -> bool {
        let purge = self.events.iter().rposition(|event| event.purges);
        let after = purge.map_or(0, |at| at + 1);
        let left = self.events.get(after..).unwrap_or_default();
        left.iter().any(|event| event.version == Some(version))
    }

    /// A start has found this version in no doubt, or none. Whether it may.
    pub(super) fn settle(&mut self, found: Option<u32>) -> bool {
        self.current = found;
        self.earlier = self.events.len();
        let Some(version) = found else {
            return true;
        };
        let durable = self.events.iter().rposition(|event| event.durable);
        let own = |event: &Event| event.version == Some(version);
        let Some(at) = self.events.iter().rposition(own) else {
            return false;
        };
        // Older ones must not come back, newer ones that were lost may.
        self.events[at].durable = true;
        durable.is_none_or(|durable| at >= durable)
    }
}
