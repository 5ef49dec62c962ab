//! What was done to a key, and what may therefore be found under it.

use crate::cache::directory::Place;
use crate::cache::format::dir_entry::DirEntry;

/// A store of a version, or a free (no version).
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) version: Option<u64>,
    /// The batch that tells of it.
    pub(super) sequence: u64,
    pub(super) position: u64,
    pub(super) entry: Option<DirEntry>,
    pub(super) fate: Fate,
}

/// What became of the batch that tells of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is on the device, or not yet begun.
    Sound,
    /// It failed: the entry is gone. On the device anything, until its sequence
    /// counts as written.
    Failed,
}

/// Which batches a start may find.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    /// All up to this one.
    pub(super) surely: u64,
    /// Perhaps those up to this one.
    pub(super) perhaps: u64,
}

/// What a start must find of a key, and what else it may find.
#[derive(Clone, Debug, Default)]
pub(super) struct Verdict {
    /// The newest op that is surely on the device.
    pub(super) durable: Option<Op>,
    /// Versions that may be found as well as its own.
    pub(super) perhaps: Vec<u64>,
    /// Nothing later is in doubt: its own version is what there is.
    pub(super) certain: bool,
}

/// The ops of a key, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    ops: Vec<Op>,
    /// Versions that were not found at a start, and may be at a later one
    /// unless something newer is on the device by then.
    ghosts: Vec<u64>,
    /// What a start must find, until it has read the key's page.
    due: Option<Verdict>,
    /// The ops of the run before, of which that is the verdict.
    past: Vec<Op>,
}

impl History {
    pub(super) fn note(&mut self, op: Op) {
        self.ops.push(op);
    }

    pub(super) fn last(&self) -> Option<Op> {
        self.ops.last().copied()
    }

    pub(super) fn each(&mut self) -> impl Iterator<Item = &mut Op> {
        self.ops.iter_mut()
    }

    /// A run ends: from now on its next start is to be judged. One that never
    /// read the key's page has changed nothing.
    pub(super) fn end_run(&mut self, written: Written) {
        if self.due.is_none() {
            self.due = Some(self.judge(written));
            self.past = std::mem::take(&mut self.ops);
        }
    }

    /// What the start must find, if it has not been judged.
    pub(super) fn due(&self) -> Option<Verdict> {
        self.due.clone()
    }

    fn judge(&self, written: Written) -> Verdict {
        let told = |op: &&Op| op.sequence <= written.surely;
        let durable = self.ops.iter().rev().find(told).copied();
        let after = durable.map_or(0, |op| op.sequence);
        let doubtful = |op: &&Op| {
            let in_doubt = op.sequence > written.surely && op.sequence <= written.perhaps;
            in_doubt && op.sequence > after
        };
        let later: Vec<&Op> = self.ops.iter().filter(doubtful).collect();
        let certain = later.is_empty();
        let mut perhaps: Vec<u64> = later.iter().filter_map(|op| op.version).collect();
        // What this run has written is newer than any ghost.
        if durable.is_none_or(|op| op.sequence == 0) {
            perhaps.extend(&self.ghosts);
        }
        let gone = |op: Op| Op {
            version: op.version.filter(|_| op.fate == Fate::Sound),
            ..op
        };
        Verdict {
            durable: durable.map(gone),
            perhaps,
            certain,
        }
    }

    /// A start has found this version, or nothing: it is the truth from now on.
    pub(super) fn settle(&mut self, found: Option<(u64, Place)>, verdict: &Verdict) {
        let version = found.map(|(version, _)| version);
        self.due = None;
        self.ghosts = verdict.perhaps.clone();
        self.ghosts
            .extend(verdict.durable.and_then(|op| op.version));
        // Older ones than what was found must not come back.
        self.ghosts
            .retain(|ghost| version.is_none_or(|version| *ghost > version));
        self.ops = vec![Op {
            version,
            sequence: 0,
            position: found.map_or(0, |(_, place)| place.position),
            entry: found.map(|(_, place)| place.entry),
            fate: Fate::Sound,
        }];
    }

    /// The newest op whose version may be found, of those that `held` says are
    /// in the directory.
    pub(super) fn newest(&self, verdict: &Verdict, held: impl Fn(&Op) -> bool) -> Option<Op> {
        let allowed = |op: &Op| op.version.is_some_and(|version| verdict.allows(version));
        let mut ops = self.past.iter().rev();
        ops.find(|op| allowed(op) && held(op)).copied()
    }

    /// A start has come to a damaged fragment before this op's own: that it
    /// found nothing says nothing of the op.
    pub(super) fn hide(&mut self, op: Op) {
        self.ops = vec![Op { sequence: 0, ..op }];
    }
}

impl Verdict {
    /// Whether this version may be found by a reader that does not validate.
    pub(super) fn allows(&self, version: u64) -> bool {
        let durable = self.durable.and_then(|op| op.version);
        durable == Some(version) || self.perhaps.contains(&version)
    }
}
