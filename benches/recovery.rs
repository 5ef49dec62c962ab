//! A start after kill -9: what it reads and how long it takes, over synthetic
//! directories in a sparse file, by direct I/O.
//! `cargo bench --bench recovery [-- MILLIONS…]` prints a row for each size:
//! 1, 10 and 100 million entries without an argument.
#![expect(clippy::unwrap_used, reason = "a measurement stops at a surprise")]
#![expect(clippy::print_stdout, reason = "the rows are what it is for")]

use bytes::Bytes;
use nix::libc::O_DIRECT;
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::Duration;
use strata::base::aligned::AlignedBuf;
use strata::base::clock::{Clock, MonoTime, SystemClock};
use strata::base::prng::Prng;
use strata::cache::directory::{Directory, Home, Place};
use strata::cache::format::dir_entry::{DirEntry, EntryParts};
use strata::cache::format::directory_page::PAGE_SLOTS;
use strata::cache::format::fragment::FragmentKind;
use strata::cache::stripe::{
    Action, Geometry, NewFragment, Outcome, Recovery, RecoveryReport, RecoveryStart, RecoveryStep,
    Stripe, StripeIdentity, StripeOptions,
};

const BLOCK: u32 = 4096;
/// Bytes of the stripe for each slot, as min_average_object_size has it.
const SLOT_BYTES: u64 = 8000;
/// Slots in use, in per cent.
const LOAD_PERCENT: u64 = 90;
/// Entries appended after the sync, as a part of all: the redo ring and the
/// log tell of them.
const TAIL_PART: u64 = 50;
/// The time of the start, behind all that was written.
const LATE: MonoTime = MonoTime::from_nanos(1 << 50);

fn identity(run: u64) -> StripeIdentity {
    StripeIdentity {
        uuid: 7,
        volume: 1,
        instance: 1,
        run,
        epoch: 0,
    }
}

/// The `n`th key.
fn key(n: u64) -> u128 {
    let mut prng = Prng::seeded(n << 20);
    u128::from(prng.next_u64()) << 64 | u128::from(prng.next_u64())
}

/// The geometry that holds `entries` at the load.
fn geometry(entries: u64) -> Geometry {
    let slots = entries * 100 / LOAD_PERCENT;
    let pages = u32::try_from(slots.div_ceil(PAGE_SLOTS)).unwrap();
    Geometry::from_parts(slots * SLOT_BYTES, pages, BLOCK).unwrap()
}

fn sparse_file(length: u64) -> File {
    let path = format!("{}/recovery.span", env!("CARGO_TARGET_TMPDIR"));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    let file = options.custom_flags(O_DIRECT).open(&path).unwrap();
    // Gone at the end, however that comes.
    std::fs::remove_file(&path).unwrap();
    file.set_len(length).unwrap();
    file
}

/// Does what the stripe wants done, until it wants nothing.
fn drive(stripe: &mut Stripe, file: &File, now: MonoTime) {
    while let Some(plan) = stripe.poll(now) {
        if let Action::Write { offset, bytes } = &plan.action {
            file.write_all_at(bytes, *offset).unwrap();
        }
        stripe.complete(now, plan.id, Outcome::Done);
    }
}

/// Entries of a cycle gone by, spread over the log.
fn insert_old(directory: &Directory, geometry: &Geometry, entries: u64) {
    let step = geometry.log_bytes() / (entries + 1) / 512 * 512;
    for n in 0..entries {
        let home = Home::of(key(n), geometry.pages());
        let entry = DirEntry::new(EntryParts {
            offset: (n + 1) * step,
            tag: home.tag,
            size: 4096,
            parity: false,
            head: true,
            pinned: false,
        });
        directory.insert(home, entry, &[]);
    }
}

/// Writes a stripe of `entries` that is killed after its sync and a tail.
/// Gives the last key that is on the device.
fn write_stripe(file: &File, geometry: Geometry, entries: u64) -> u128 {
    let options = StripeOptions {
        sync_interval: Duration::ZERO,
        ..StripeOptions::default()
    };
    let now = MonoTime::from_nanos(1 << 40);
    let mut stripe = Stripe::format(identity(1), geometry, options);
    drive(&mut stripe, file, now);
    insert_old(&stripe.directory(), &geometry, entries);
    stripe.sync();
    while !stripe.is_idle() {
        drive(&mut stripe, file, now);
    }
    for n in entries..entries + entries / TAIL_PART {
        append(&mut stripe, key(n), now);
        drive(&mut stripe, file, now);
    }
    stripe.flush();
    drive(&mut stripe, file, now);
    key(entries + entries / TAIL_PART - 1)
}

fn append(stripe: &mut Stripe, key_hash: u128, now: MonoTime) {
    let body = [Bytes::from_static(&[7; 200])];
    let fragment = NewFragment {
        key_hash,
        kind: FragmentKind::Body,
        meta: &[],
        body: &body,
        keep: &[],
        copy_of: None,
        pinned: false,
    };
    stripe.append(now, &fragment).unwrap();
}

/// Reads of a start.
#[derive(Clone, Copy, Default)]
struct Reads {
    count: u64,
    bytes: u64,
    /// Of them, in the log.
    in_log: u64,
    log_bytes: u64,
}

/// A file whose reads are counted.
struct Counted<'a> {
    file: &'a File,
    log: Range<u64>,
    reads: Reads,
}

impl Counted<'_> {
    fn read(&mut self, offset: u64, length: u64) -> AlignedBuf {
        self.reads.count += 1;
        self.reads.bytes += length;
        if self.log.contains(&offset) {
            self.reads.in_log += 1;
            self.reads.log_bytes += length;
        }
        read(self.file, offset, length)
    }

    fn recover(&mut self, geometry: &Geometry) -> (Stripe, RecoveryReport) {
        let mut recovery = Recovery::new(RecoveryStart {
            identity: identity(2),
            last_run: 1,
            length: geometry.length(),
            block: BLOCK,
            options: StripeOptions::default(),
        });
        while let RecoveryStep::Read { offset, length } = recovery.step() {
            recovery.complete(&self.read(offset, length));
        }
        recovery.finish().unwrap()
    }

    /// Reads the next pages that the stripe wants; whether there were any.
    fn read_pages(&mut self, stripe: &mut Stripe) -> bool {
        let Some(pages) = stripe.next_pages() else {
            return false;
        };
        let bytes = self.read(pages.offset, pages.bytes());
        let page_bytes = usize::try_from(pages.page_bytes).unwrap();
        for ((page, _), bytes) in pages.each().zip(bytes.chunks(page_bytes)) {
            stripe.take_page(LATE, page, bytes);
        }
        true
    }
}

fn read(file: &File, offset: u64, length: u64) -> AlignedBuf {
    let mut bytes = AlignedBuf::zeroed(usize::try_from(length).unwrap());
    file.read_exact_at(&mut bytes, offset).unwrap();
    bytes
}

/// Reads and verifies the key's fragment: a hit.
fn hit(file: &File, directory: &Directory, key: u128) {
    let is_whole = |place: Place| {
        let start = place.offset / 4096 * 4096;
        let end = (place.offset + u64::from(place.length)).next_multiple_of(4096);
        let bytes = read(file, start, end - start).into_bytes();
        let skipped = usize::try_from(place.offset - start).unwrap();
        directory
            .verify(&place, key, &bytes.slice(skipped..))
            .is_ok()
    };
    assert!(directory.lookup(key).any(is_whole), "the last key is lost");
}

fn measure(clock: &SystemClock, millions: u64) {
    let entries = millions * 1_000_000;
    let geometry = geometry(entries);
    let file = sparse_file(geometry.length());
    let last = write_stripe(&file, geometry, entries);
    let log = geometry.log_offset()..geometry.log_offset() + geometry.log_bytes();
    let mut counted = Counted {
        file: &file,
        log,
        reads: Reads::default(),
    };
    let begin = clock.mono();
    let (mut stripe, report) = counted.recover(&geometry);
    let known = clock.mono().since(begin);
    stripe.ask_for_key(last);
    counted.read_pages(&mut stripe);
    // The run's first ring block, if the page had anything to tell.
    drive(&mut stripe, &file, LATE);
    hit(&file, &stripe.directory(), last);
    let (served, first) = (clock.mono().since(begin), counted.reads);
    while counted.read_pages(&mut stripe) {}
    let loaded = clock.mono().since(begin);
    assert_eq!((stripe.page_count().bad, report.suspect), (0, false));
    let gib = geometry.directory_bytes() as f64 / f64::from(1 << 30);
    println!(
        "{millions} M entries, {gib:.2} GiB of directory: rows known {:.3} s, first hit {:.3} s, all loaded {:.3} s ({:.2} s a GiB)",
        known.as_secs_f64(),
        served.as_secs_f64(),
        loaded.as_secs_f64(),
        loaded.as_secs_f64() / gib,
    );
    let all = counted.reads;
    println!(
        "  {} reads, {} bytes to the first hit; {} reads, {} bytes in all; {} reads and {} bytes of them in the log: headers and rows of {} batches; {} ring blocks, {} rows",
        first.count,
        first.bytes,
        all.count,
        all.bytes,
        all.in_log,
        all.log_bytes,
        report.batches_walked,
        report.ring_blocks,
        report.rows,
    );
}

fn main() {
    let clock = SystemClock::default();
    let given: Vec<u64> = std::env::args()
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let sizes = if given.is_empty() {
        vec![1, 10, 100]
    } else {
        given
    };
    for millions in sizes {
        measure(&clock, millions);
    }
}
