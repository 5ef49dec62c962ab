//! The stripe over a disk in memory: the normal path, and what goes wrong.

use super::*;
use crate::base::size::MIB;
use crate::cache::format::fragment::{Fragment, FragmentError};
use std::time::Duration;

mod budgets;
mod faults;
mod pacing;
mod pages;
mod pins;
mod starts;

/// A disk that does what it is told at once.
pub(super) struct Disk {
    pub(super) bytes: Vec<u8>,
    /// Writes of this cause fail, so many times.
    failing: Option<(Cause, u32)>,
    pub(super) done: Vec<Cause>,
}

impl Disk {
    pub(super) fn new(length: u64) -> Self {
        Self {
            bytes: vec![0; to_usize(length)],
            failing: None,
            done: Vec::new(),
        }
    }

    fn run(&mut self, plan: &Plan) -> Outcome {
        if let Some((cause, times)) = self.failing.as_mut()
            && *cause == plan.cause
            && *times > 0
        {
            *times -= 1;
            return Outcome::Failed;
        }
        self.done.push(plan.cause);
        if let Action::Write { offset, bytes } = &plan.action {
            assert_eq!(offset % 4096, 0);
            assert_eq!(bytes.len() % 4096, 0);
            assert_eq!(bytes.as_ptr().align_offset(4096), 0);
            let at = to_usize(*offset);
            self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        }
        Outcome::Done
    }

    pub(super) fn read(&self, offset: u64, length: u64) -> &[u8] {
        &self.bytes[to_usize(offset)..to_usize(offset + length)]
    }
}

pub(super) const LENGTH: u64 = 24 * MIB;

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
        buffer_bytes: 1 << 20,
        flush_bytes: 128 << 10,
        fragment_bytes: 128 << 10,
        head_bytes_max: 16 << 10,
        backlog_bytes: 2 << 20,
        sync_interval: Duration::from_secs(5),
        ..StripeOptions::default()
    }
}

pub(super) fn recover_with(
    disk: &Disk,
    start: RecoveryStart,
) -> Result<(Stripe, RecoveryReport), NotRecovered> {
    let mut recovery = Recovery::new(start);
    while let RecoveryStep::Read { offset, length } = recovery.step() {
        assert_eq!((offset % 4096, length % 4096), (0, 0));
        recovery.complete(disk.read(offset, length));
    }
    let (mut stripe, report) = recovery.finish()?;
    stripe.read_all(|offset, length| Some(disk.read(offset, length)));
    Ok((stripe, report))
}

pub(super) fn start(run: u64) -> RecoveryStart {
    RecoveryStart {
        identity: identity(run),
        known_instance: Some(identity(run).instance),
        last_run: run - 1,
        length: LENGTH,
        block: 4096,
        options: options(),
    }
}

/// A stripe, its disk and the time.
struct Rig {
    disk: Disk,
    stripe: Stripe,
    directory: Arc<Directory>,
    now: MonoTime,
    run: u64,
}

impl Rig {
    fn new() -> Self {
        Self::over(Geometry::new(LENGTH, 8000, 4096).unwrap())
    }

    fn over(geometry: Geometry) -> Self {
        let stripe = Stripe::format(identity(1), geometry, options());
        let mut rig = Self {
            disk: Disk::new(geometry.length()),
            directory: stripe.directory(),
            stripe,
            now: MonoTime::default(),
            run: 1,
        };
        rig.work();
        rig
    }

    fn work(&mut self) {
        while let Some(plan) = self.stripe.poll(self.now) {
            let outcome = self.disk.run(&plan);
            self.stripe.complete(self.now, plan.id, outcome);
        }
    }

    fn put(&mut self, key: u128, body: &[u8]) -> Appended {
        let body = [Bytes::copy_from_slice(body)];
        let new = NewFragment {
            key_hash: key,
            kind: FragmentKind::Head,
            meta: b"meta",
            body: &body,
            keep: &[],
            copy_of: None,
            pinned: false,
        };
        self.stripe.append(self.now, &new).unwrap()
    }

    fn get(&self, key: u128) -> Option<Bytes> {
        let found = self
            .directory
            .lookup(key)
            .map(|place| self.read(key, &place));
        found.flatten().map(|fragment| fragment.body).next()
    }

    fn read(&self, key: u128, place: &Place) -> Result<Fragment, FragmentError> {
        let buffered = self
            .directory
            .is_buffered(place)
            .then(|| self.stripe.buffered(place));
        let device = || Bytes::copy_from_slice(self.disk.read(place.offset, place.length.into()));
        let bytes = buffered.flatten().unwrap_or_else(device);
        self.directory.verify(place, key, &bytes)
    }

    fn flush(&mut self) {
        self.stripe.flush();
        self.work();
    }

    /// Ends the process here and now, and starts it again.
    fn kill(&mut self) -> RecoveryReport {
        self.run += 1;
        let start = RecoveryStart {
            length: self.stripe.geometry().length(),
            ..start(self.run)
        };
        let (stripe, report) = recover_with(&self.disk, start).unwrap();
        self.directory = stripe.directory();
        self.stripe = stripe;
        report
    }
}

fn body(key: u128, length: usize) -> Vec<u8> {
    (0..length)
        .map(|n| (n as u128 * 7 + key).to_le_bytes()[0])
        .collect()
}

fn key(n: u128) -> u128 {
    xxhash_rust::xxh3::xxh3_128(&n.to_le_bytes())
}

#[test]
fn a_fragment_is_read_from_the_buffer_and_then_from_the_device() {
    let mut rig = Rig::new();
    let written = rig.disk.done.len();
    let appended = rig.put(key(1), &body(1, 15_000));
    assert!(rig.directory.is_buffered(&appended.place));
    assert_eq!(rig.get(key(1)).unwrap(), body(1, 15_000));
    rig.work();
    assert_eq!(rig.disk.done.len(), written, "nothing is due yet");
    rig.now = rig.now.plus(Duration::from_secs(1));
    rig.work();
    assert_eq!(rig.disk.done.last(), Some(&Cause::Batch));
    assert!(!rig.directory.is_buffered(&appended.place));
    assert_eq!(rig.directory.written_sequence(), appended.sequence);
    assert_eq!(rig.get(key(1)).unwrap(), body(1, 15_000));
}

#[test]
fn a_fragment_in_a_batch_in_flight_is_read_from_it() {
    let mut rig = Rig::new();
    rig.put(key(1), &body(1, 100_000));
    rig.put(key(2), &body(2, 100_000));
    let plan = rig.stripe.poll(rig.now).unwrap();
    rig.put(key(3), &body(3, 1000));
    for n in 1..=3 {
        let length = if n == 3 { 1000 } else { 100_000 };
        assert_eq!(rig.get(key(n)).unwrap(), body(n, length));
    }
    assert_eq!(rig.stripe.poll(rig.now), None, "one flush in flight");
    let outcome = rig.disk.run(&plan);
    rig.stripe.complete(rig.now, plan.id, outcome);
    assert_eq!(rig.get(key(1)).unwrap(), body(1, 100_000));
}

#[test]
fn all_that_was_written_is_there_after_a_kill() {
    let mut rig = Rig::new();
    for n in 0..300 {
        rig.put(key(n), &body(n, 5000));
        rig.work();
    }
    rig.flush();
    rig.put(key(1000), b"never written");
    let report = rig.kill();
    assert!(!report.clean && report.batches_walked > 0);
    for n in 0..300 {
        assert_eq!(rig.get(key(n)).unwrap(), body(n, 5000), "{n}");
    }
    assert_eq!(rig.get(key(1000)), None);
    assert_eq!(rig.directory.doubled(), 0);
}

#[test]
fn a_second_kill_before_anything_new_is_written_loses_nothing() {
    let mut rig = Rig::new();
    for n in 0..100 {
        rig.put(key(n), &body(n, 5000));
    }
    rig.flush();
    for work in [false, true, true] {
        rig.kill();
        if work {
            rig.work();
        }
        for n in 0..100 {
            assert_eq!(rig.get(key(n)).unwrap(), body(n, 5000), "{n}");
        }
    }
}

#[test]
fn a_clean_stop_loses_nothing_and_walks_no_batch() {
    let mut rig = Rig::new();
    for n in 0..50 {
        rig.put(key(n), &body(n, 5000));
    }
    rig.stripe.close();
    rig.work();
    assert!(rig.stripe.is_closed());
    assert_eq!(rig.disk.done.last(), Some(&Cause::Flush));
    let cursor = rig.directory.cursor();
    let report = rig.kill();
    assert!(report.clean && !report.suspect);
    assert_eq!((report.batches_walked, report.rows), (0, 50));
    assert_eq!(rig.directory.cursor(), cursor, "no room is skipped");
    for n in 0..50 {
        assert_eq!(rig.get(key(n)).unwrap(), body(n, 5000));
    }
}

#[test]
fn a_stripe_goes_on_after_many_cycles_syncs_and_kills() {
    let mut rig = Rig::new();
    let mut newest = std::collections::HashMap::new();
    for n in 0..3000u128 {
        let name = n % 700;
        newest.insert(name, n);
        rig.put(key(name), &body(n, 20_000));
        rig.now = rig.now.plus(Duration::from_millis(20));
        rig.work();
        if n % 1000 == 999 {
            rig.flush();
            rig.kill();
            rig.work();
        }
    }
    let syncs = rig
        .disk
        .done
        .iter()
        .filter(|c| **c == Cause::PageTable)
        .count();
    assert!(syncs >= 3, "{syncs}");
    assert!(rig.directory.cursor() > 4 * rig.stripe.geometry().log_bytes());
    let mut hits = 0;
    for (name, version) in &newest {
        let found = rig.get(key(*name));
        hits += u32::from(found.is_some());
        assert!(found.is_none_or(|found| found == body(*version, 20_000)));
    }
    assert!(hits > 350, "{hits}");
    assert_eq!(rig.directory.doubled(), 0);
}

#[test]
fn a_newer_version_replaces_the_older_one_across_a_kill() {
    let mut rig = Rig::new();
    for version in 0..5 {
        rig.put(key(1), &body(version, 3000));
        rig.flush();
    }
    rig.put(key(2), b"gone");
    rig.flush();
    assert_eq!(rig.stripe.free(rig.now, key(2), &[]).unwrap().entries, 1);
    assert_eq!(rig.get(key(2)), None);
    rig.flush();
    rig.kill();
    assert_eq!(rig.get(key(1)).unwrap(), body(4, 3000));
    assert_eq!(rig.get(key(2)), None);
}

#[test]
fn an_update_of_an_entry_that_is_gone_is_refused() {
    let mut rig = Rig::new();
    let old = rig.put(key(1), b"one").place.entry;
    rig.put(key(1), b"two");
    let update = NewFragment {
        key_hash: key(1),
        kind: FragmentKind::Head,
        meta: b"meta",
        body: &[],
        keep: &[],
        copy_of: Some(old),
        pinned: false,
    };
    let refused = rig.stripe.append(rig.now, &update);
    assert_eq!(refused, Err(Refused::Superseded));
    assert_eq!(rig.get(key(1)).unwrap(), "two");
}
