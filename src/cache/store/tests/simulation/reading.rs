//! What a reader finds, and whether it may.

use super::super::key;
use super::content::{content, version_in, version_of};
use super::world::World;
use crate::cache::format::{crc, to_usize};
use crate::cache::object::Hit;
use bytes::Bytes;

/// Bytes that a log takes before it comes to what was stored first.
const ROOM: u64 = 12 << 20;

impl World {
    /// What a reader gets: version, and whether it is in doubt.
    fn get(&mut self, n: u32) -> Option<(u32, Hit)> {
        let cache = self.cache();
        let mut hit = self.wait("a read", cache.read(&key(n))).ok()?;
        let mut body = Vec::new();
        let whole = loop {
            match self.wait("a body", hit.body.next()) {
                Ok(Some(piece)) => body.extend_from_slice(&piece),
                Ok(None) => break true,
                // The rest could not be had, which the reader sees.
                Err(_) => break false,
            }
        };
        self.compare(n, &body, whole);
        if whole {
            self.read_again_in_part(n, &mut hit, &body);
        }
        whole.then(|| (version_in(&body), hit))
    }

    /// A range of what was just read must be the same, as far as it can be had.
    fn read_again_in_part(&mut self, n: u32, hit: &mut Hit, body: &[u8]) {
        let middle = body.len() / 2;
        let range = middle..(middle + 100).min(body.len());
        let bound = |at: usize| u64::try_from(at).unwrap();
        hit.body.seek(bound(range.start)..bound(range.end));
        let mut part = Vec::new();
        while let Ok(Some(piece)) = self.wait("a range", hit.body.next()) {
            part.extend_from_slice(&piece);
        }
        let is_right = body[range].starts_with(&part);
        assert!(is_right, "{}: a range of other bytes", self.context(n));
    }

    /// Compares what was read of a body with what was stored.
    fn compare(&self, n: u32, body: &[u8], whole: bool) {
        let stored = content(n, version_in(body), self.longest());
        let is_cut = !whole && (body.len() < 8 || stored.starts_with(body));
        let is_right = is_cut || whole && body == stored;
        assert!(is_right, "{}: wrong bytes", self.context(n));
    }

    /// Goes on with a body that was begun a while ago.
    pub(super) fn read_on(&mut self) {
        let Some((n, mut hit, mut body)) = self.begun.pop_front() else {
            return;
        };
        match self.wait("a body", hit.body.next()) {
            Ok(Some(piece)) => {
                body.extend_from_slice(&piece);
                self.compare(n, &body, false);
                self.begun.push_back((n, hit, body));
            }
            Ok(None) => self.compare(n, &body, true),
            Err(_) => {}
        }
    }

    /// Begins with a body, to go on later.
    pub(super) fn begin_body(&mut self, n: u32) {
        let cache = self.cache();
        if let Ok(hit) = self.wait("a read", cache.read(&key(n))) {
            self.begun.push_back((n, hit, Vec::new()));
            self.begun.truncate(8);
        }
    }

    pub(super) fn read(&mut self, n: u32) {
        let found = self.get(n);
        let context = self.context(n);
        let Some((version, hit)) = found else {
            return;
        };
        let progress = self.progress();
        let model = &mut self.models[to_usize(n.into())];
        let allowed = match hit.suspect {
            true => model.may_be_suspect(version),
            false => model.is_current(version) || model.settle_late(version, progress),
        };
        assert!(allowed, "{context}: found {version} of {:?}", hit.tier);
        self.tally.hits += 1;
        self.tally.suspects += u64::from(hit.suspect);
        self.note(n, version, &hit);
        self.held.push((n, hit));
        self.held.truncate(8);
    }

    /// The origin says that what a reader holds is still right.
    pub(super) fn refresh(&mut self) {
        let Some((n, hit)) = self.held.pop().filter(|(_, hit)| !hit.suspect) else {
            return;
        };
        let meta = Bytes::from_static(b"newer");
        let version = version_of(&hit);
        let refreshed = self.cache().refresh(&hit.copy, &key(n), meta);
        let model = &self.models[to_usize(n.into())];
        let allowed = refreshed.is_err() || version.is_none_or(|v| model.is_current(v));
        assert!(allowed, "{}: an old copy was refreshed", self.context(n));
        if refreshed.is_ok() {
            self.stored += self.longest();
            self.models[to_usize(n.into())].refreshed(self.stored);
        }
    }

    /// What a start has made of a key.
    pub(super) fn judge(&mut self, n: u32) {
        let found = self.get(n);
        let context = self.context(n);
        let progress = self.progress();
        let stored = self.stored;
        let model = &mut self.models[to_usize(n.into())];
        let required = model.required(stored, ROOM).filter(|_| !self.is_unsure);
        let doubtful = found.as_ref().filter(|(_, hit)| hit.suspect);
        if let Some((version, _)) = doubtful {
            assert!(
                model.may_be_suspect(*version),
                "{context}: purged {version}"
            );
        }
        let sure = found.as_ref().filter(|(_, hit)| !hit.suspect);
        let sure = sure.map(|(version, _)| *version);
        assert!(
            model.settle(sure, progress),
            "{context}: found {sure:?}, which is old"
        );
        assert!(
            required.is_none() || sure == required,
            "{context}: found {sure:?}, not {required:?}"
        );
        self.tally.suspects += u64::from(doubtful.is_some());
        let trace = format!("{n} {sure:?} {:?}", doubtful.map(|(version, _)| version));
        self.tally.trace = crc(&[&self.tally.trace.to_le_bytes(), trace.as_bytes()]);
    }

    /// Takes note of what is written for sure.
    fn note(&mut self, n: u32, version: u32, hit: &Hit) {
        let home = hit.copy.0.home.as_ref();
        let (hash, progress) = (key(n).hash(), self.progress());
        if home.is_some_and(|home| home.stripe.holds_written(hash, home.entry)) {
            self.models[to_usize(n.into())].seen_written(version, progress);
        }
    }

    fn context(&self, n: u32) -> String {
        let model = &self.models[to_usize(n.into())];
        format!("STRATA_SIM_SEED={}: key {n} of {model:?}", self.seed)
    }
}
