//! One stripe over one disk, driven step by step.

use super::content::{COLD, KEYS, content, group, hash, is_alone, version_in};
use super::disk::Disk;
use super::history::{Fate, History, Op, Written};
use super::io::Io;
use super::walk::{Walk, copy_of};
use super::weather::Climate;
use crate::base::clock::MonoTime;
use crate::base::prng::Prng;
use crate::cache::directory::{Directory, Place};
use crate::cache::format::dir_entry::DirEntry;
use crate::cache::format::fragment::{Fragment, FragmentError, FragmentKind};
use crate::cache::format::{crc, to_u64, to_usize};
use crate::cache::stripe::{
    Appended, Cause, Geometry, NewFragment, Refused, Stripe, StripeIdentity, StripeOptions,
};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub(super) const LENGTH: u64 = 1 << 20;
pub(super) const BLOCK: u32 = 4096;
const STEPS: u64 = 5000;
/// Steps of a burst of stores.
const BURST: u64 = 150;

pub(super) fn identity(run: u64) -> StripeIdentity {
    StripeIdentity {
        uuid: 0xabcd_ef01_2345_6789_0011_2233_4455_6677,
        volume: 1,
        instance: 5,
        run,
        epoch: 3,
    }
}

pub(super) fn options() -> StripeOptions {
    StripeOptions {
        buffer_bytes: 64 << 10,
        flush_bytes: 12 << 10,
        fragment_bytes: 16 << 10,
        head_bytes_max: 1 << 10,
        backlog_bytes: 96 << 10,
        sync_interval: Duration::from_secs(5),
        ..StripeOptions::default()
    }
}

fn geometry() -> Geometry {
    let pages = 2;
    Geometry::from_parts(LENGTH, pages, BLOCK).unwrap()
}

/// A read whose beginning and end are steps of their own.
struct Read {
    key: u64,
    place: Place,
    buffered: Option<Bytes>,
    /// The newest version when it began.
    newest: Option<u64>,
}

/// What a seed has gone through.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) stops: u64,
    pub(super) cycles: u64,
    pub(super) syncs: u64,
    pub(super) hits: u64,
    pub(super) suspects: u64,
    /// Stripes that gave up.
    pub(super) failures: u64,
    /// A sum of all that happened, in order.
    pub(super) trace: u32,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.stops += other.stops;
        self.cycles += other.cycles;
        self.syncs += other.syncs;
        self.hits += other.hits;
        self.suspects += other.suspects;
        self.failures += other.failures;
        self.trace ^= other.trace;
    }
}

pub(super) struct World {
    pub(super) seed: u64,
    pub(super) climate: Climate,
    pub(super) prng: Prng,
    pub(super) disk: Disk,
    pub(super) stripe: Stripe,
    pub(super) directory: Arc<Directory>,
    pub(super) out: Vec<Io>,
    reads: Vec<Read>,
    pub(super) histories: HashMap<u64, History>,
    versions: u64,
    pub(super) now: MonoTime,
    pub(super) run: u64,
    /// The last run that is noted on the disk.
    pub(super) noted: u64,
    /// Reads of this run's start fail now and then.
    pub(super) bad_reads: bool,
    /// Reads of pages that are out: page, offset, bytes.
    pub(super) page_reads: Vec<(u32, u64, u64)>,
    /// The last batch of which a write failed, if only half-way.
    pub(super) tried: u64,
    /// Batches up to this one are flushed.
    pub(super) flushed: u64,
    /// The batch whose write the disk lost or damaged.
    pub(super) harmed: Option<u64>,
    /// How far the log ever went; a power cut may take the cursor back, but
    /// not what was overwritten.
    pub(super) reach: u64,
    /// The walk ahead of the cursor.
    pub(super) walk: Walk,
    /// Pins below this position may have gone with a start.
    pub(super) pins_passed: u64,
    /// The disk has lied or a start could not read: hits may be lost.
    pub(super) is_unsure: bool,
    pub(super) tally: Tally,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut prng = Prng::seeded(seed);
        let climate = Climate::of(seed, &mut prng);
        let stripe = Stripe::format(identity(1), geometry(), options());
        Self {
            seed,
            climate,
            prng,
            disk: Disk::blank(LENGTH),
            directory: stripe.directory(),
            stripe,
            out: Vec::new(),
            reads: Vec::new(),
            histories: HashMap::new(),
            versions: 0,
            now: MonoTime::default(),
            run: 1,
            noted: 0,
            bad_reads: false,
            page_reads: Vec::new(),
            tried: 0,
            flushed: 0,
            harmed: None,
            reach: 0,
            walk: Walk::default(),
            pins_passed: 0,
            is_unsure: false,
            tally: Tally::default(),
        }
    }

    fn step(&mut self, count: u64) {
        self.chance_events();
        let io = self.climate.io;
        let is_silent = self.climate.bursts && count / BURST % 2 == 1;
        match self.prng.below(100) {
            0..30 if is_silent => self.end_io(),
            0..25 => self.put(),
            25..30 => self.free(),
            30..40 => self.begin_read(),
            40..50 => self.end_read(),
            50..52 => self.pass_time(),
            52 => self.refresh(),
            53 if self.climate.pins => self.step_walk(),
            53..55 => {
                self.stripe.flush();
            }
            n if n < 55 + io => self.begin_io(),
            _ => self.end_io(),
        }
        self.judge_opened();
        self.check_bounds();
        if count.is_multiple_of(64) {
            self.check_pins();
        }
    }

    /// What comes rarely, by the seed's climate.
    fn chance_events(&mut self) {
        let failed = self.stripe.has_failed() && self.prng.below(20) == 0;
        if failed || self.prng.below(self.climate.run) == 0 {
            self.stop();
        }
        if self.prng.below(self.climate.sync) == 0 {
            self.stripe.sync();
        }
        if self.prng.below(200) == 0 {
            self.rot();
        }
        let load = self.climate.load;
        if load > 0 && !self.stripe.is_read() && self.prng.below(load) == 0 {
            self.step_page();
            self.judge_opened();
        }
    }

    fn key(&mut self) -> u64 {
        self.prng.below(KEYS)
    }

    /// A key to store or free.
    fn key_to_change(&mut self) -> u64 {
        match self.prng.below(32) {
            0 => self.prng.below(COLD),
            _ => COLD + self.prng.below(KEYS - COLD),
        }
    }

    /// Entries that were read and hold other keys. Who does not read first
    /// names none, and theirs go.
    pub(super) fn others(&mut self, key: u64) -> Vec<DirEntry> {
        if self.prng.below(3) == 0 {
            return Vec::new();
        }
        let places = self.directory.lookup(hash(key));
        let other = |place: &Place| {
            let read = self.read(key, place);
            read.err() == Some(FragmentError::OtherKey)
        };
        places.filter(other).map(|place| place.entry).collect()
    }

    fn put(&mut self) {
        self.walk_freely();
        let key = self.key_to_change();
        self.versions += 1;
        let body = [content(key, self.versions)];
        let keep = self.others(key);
        let pinned = self.climate.pins && self.versions.is_multiple_of(8);
        let new = NewFragment {
            key_hash: hash(key),
            kind: FragmentKind::Head,
            meta: &key.to_le_bytes(),
            body: &body,
            keep: &keep,
            copy_of: None,
            pinned,
        };
        match self.stripe.append(self.now, &new) {
            Ok(appended) => self.note_put(key, self.versions, &appended),
            Err(refused) => {
                let unread = refused == Refused::Unread && !self.directory.knows(hash(key));
                let known = unread || matches!(refused, Refused::Backlog | Refused::Closed);
                assert!(known, "{}: {refused}", self.context());
                // What is pinned ahead may hold the cursor back.
                if self.climate.pins {
                    self.step_walk();
                }
            }
        }
    }

    /// A copy of what a reader has found some time ago, as a 304 makes one.
    fn refresh(&mut self) {
        let Some(Read {
            key,
            place,
            newest: Some(version),
            ..
        }) = self.reads.pop()
        else {
            return;
        };
        let body = [content(key, version)];
        let keep = self.others(key);
        let meta = key.to_le_bytes();
        let copy = copy_of((key, &meta), &body, &keep, place.entry);
        if let Ok(appended) = self.stripe.append(self.now, &copy) {
            let newest = self.histories.get(&key).and_then(History::last);
            let newest = newest.and_then(|op| op.version);
            assert_eq!(newest, Some(version), "{}: old copy", self.context());
            self.note_put(key, version, &appended);
        }
    }

    pub(super) fn note_put(&mut self, key: u64, version: u64, at: &Appended) {
        let op = Op {
            version: Some(version),
            sequence: at.sequence,
            position: at.place.position,
            entry: Some(at.place.entry),
            fate: Fate::Sound,
        };
        self.histories.entry(key).or_default().note(op);
        self.note_others(key, at.sequence);
    }

    fn free(&mut self) {
        let key = self.key_to_change();
        let keep = self.others(key);
        let known = self.directory.knows(hash(key));
        let freed = self.stripe.free(self.now, hash(key), &keep);
        assert_eq!(freed.is_ok(), known, "{}: {freed:?}", self.context());
        let Ok(freed) = freed else { return };
        if freed.entries > 0 {
            let history = self.histories.entry(key).or_default();
            history.note(freed_at(freed.sequence));
            self.note_others(key, freed.sequence);
        }
    }

    /// Keys that lie in the same buckets may have lost their entry as well.
    fn note_others(&mut self, key: u64, sequence: u64) {
        for other in group(key).filter(|other| *other != key) {
            let Some(history) = self.histories.get_mut(&other) else {
                continue;
            };
            let entry = history.last().and_then(|op| op.entry);
            if entry.is_some_and(|entry| !self.directory.holds(hash(other), entry)) {
                history.note(freed_at(sequence));
            }
        }
    }

    pub(super) fn read(&self, key: u64, place: &Place) -> Result<Fragment, FragmentError> {
        let bytes = self.buffered(place).unwrap_or_else(|| self.on_disk(place));
        self.directory.verify(place, hash(key), &bytes)
    }

    fn buffered(&self, place: &Place) -> Option<Bytes> {
        let buffered = self.directory.is_buffered(place);
        buffered.then(|| self.stripe.buffered(place)).flatten()
    }

    fn on_disk(&self, place: &Place) -> Bytes {
        Bytes::copy_from_slice(self.disk.read(place.offset, place.length.into()))
    }

    /// The version that a fragment holds, every byte of it checked.
    pub(super) fn version_of(&self, key: u64, fragment: &Fragment) -> u64 {
        let version = version_in(&fragment.body);
        let whole = fragment.body == content(key, version);
        assert!(whole, "{}: key {key}: promise 1", self.context());
        version
    }

    /// What a reader gets who reads at once, and where.
    pub(super) fn get(&self, key: u64) -> Option<(u64, Place)> {
        for place in self.directory.lookup(hash(key)) {
            match self.read(key, &place) {
                Ok(fragment) => return Some((self.version_of(key, &fragment), place)),
                Err(FragmentError::OtherKey) => {}
                Err(_) => return None,
            }
        }
        None
    }

    pub(super) fn is_passed(&self, op: &Op) -> bool {
        let reach = self.reach.max(self.directory.cursor());
        if op.entry.is_some_and(DirEntry::is_pinned) {
            return self.is_pin_passed(op);
        }
        op.position + self.stripe.geometry().log_bytes() < reach
    }

    /// In a run nothing but the newest may be found, and it must be.
    fn begin_read(&mut self) {
        let key = self.key();
        if !self.directory.knows(hash(key)) {
            // What is not known yet is asked for, and not found.
            self.stripe.ask_for_key(hash(key));
            assert_eq!(self.get(key), None, "{}: key {key}", self.context());
            return;
        }
        let history = self.histories.get(&key);
        let last = history.and_then(History::last);
        let newest = last.filter(|op| op.fate == Fate::Sound);
        let kept = newest.filter(|op| !self.is_passed(op));
        let [newest, kept] = [newest, kept].map(|op| op.and_then(|op| op.version));
        let hit = self.get(key);
        let found = hit.map(|(version, _)| version);
        let missed = found.is_none() && (self.is_unsure || kept.is_none());
        let context = self.context();
        assert!(
            found == newest || missed,
            "{context}: key {key}: found {found:?}, {last:?}"
        );
        self.check_swept(key, last);
        self.tally.hits += u64::from(found.is_some());
        if let Some((_, place)) = hit {
            self.directory.mark_read(hash(key), &place);
            let buffered = self.buffered(&place);
            self.reads.push(Read {
                key,
                place,
                buffered,
                newest: found,
            });
        }
    }

    /// What the cursor has passed must not look valid again.
    fn check_swept(&self, key: u64, last: Option<Op>) {
        let log_bytes = self.stripe.geometry().log_bytes();
        let passed =
            |op: Op| op.version.is_some() && op.position + log_bytes < self.directory.cursor();
        if last.is_some_and(passed) && is_alone(key) && !self.is_unsure {
            let left = self.directory.lookup(hash(key)).next();
            assert!(left.is_none(), "{}: key {key}: {left:?}", self.context());
        }
    }

    /// A reader that took long sees what it looked up, or a miss.
    fn end_read(&mut self) {
        let count = to_u64(self.reads.len());
        if count == 0 {
            return;
        }
        let read = self.reads.swap_remove(to_usize(self.prng.below(count)));
        let bytes = read.buffered.unwrap_or_else(|| self.on_disk(&read.place));
        let verified = self.directory.verify(&read.place, hash(read.key), &bytes);
        if let Ok(fragment) = verified {
            let version = self.version_of(read.key, &fragment);
            assert_eq!(Some(version), read.newest, "{}", self.context());
        }
    }

    fn pass_time(&mut self) {
        let millis = self.prng.below(3000);
        self.now = self.now.plus(Duration::from_millis(millis));
    }

    fn check_bounds(&mut self) {
        let waiting = self.directory.cursor().saturating_sub(self.log_written());
        let options = options();
        let bound = options.backlog_bytes + 3 * u64::from(options.buffer_bytes);
        assert!(waiting <= bound, "{}: {waiting} bytes wait", self.context());
        self.reads.truncate(16);
    }

    fn log_written(&self) -> u64 {
        self.directory.written_position()
    }

    pub(super) fn context(&self) -> String {
        let (seed, harmed) = (self.seed, self.harmed);
        format!(
            "STRATA_SIM_SEED={seed} {:?} harmed {harmed:?}",
            self.climate
        )
    }

    /// What of the batches a start may find after a kill or a power cut.
    pub(super) fn written(&self, power: bool) -> Written {
        let written = self.directory.written_sequence();
        let in_flight = self.out.iter().any(|io| io.plan.cause == Cause::Batch);
        let begun = in_flight || self.tried == written + 1;
        Written {
            surely: if power { self.flushed } else { written },
            perhaps: written + u64::from(begun),
        }
    }

    /// Adds something that happened to the seed's trace.
    pub(super) fn trace(&mut self, what: &[u8]) {
        self.tally.trace = crc(&[&self.tally.trace.to_le_bytes(), what]);
    }

    pub(super) fn forget_io(&mut self) {
        self.reads.clear();
        self.page_reads.clear();
        self.tried = 0;
    }
}

const fn freed_at(sequence: u64) -> Op {
    Op {
        version: None,
        sequence,
        position: 0,
        entry: None,
        fate: Fate::Sound,
    }
}

/// Runs one seed to its end.
pub(super) fn run(seed: u64) -> Tally {
    let mut world = World::new(seed);
    for count in 0..STEPS {
        world.step(count);
    }
    world.stop();
    while !world.stripe.is_read() {
        world.step_page();
    }
    world.judge_opened();
    let log_bytes = world.stripe.geometry().log_bytes();
    world.tally.cycles = world.directory.cursor() / log_bytes - 1;
    world.tally
}
