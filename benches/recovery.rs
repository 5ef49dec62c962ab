//! A start after kill -9: what it reads and how long it takes, over synthetic
//! directories in a sparse file, by direct I/O.
//! `cargo bench --bench recovery [-- MILLIONS…]` prints rows for each size, 1,
//! 10 and 100 million entries without an argument: the time until all rows are
//! known, to the first hit, and until all pages are loaded; how that compares
//! with `dd iflag=direct bs=1M` over the same copy of the directory, before and
//! after; the processor time of the process, and how much of it the system's is,
//! which gives the memory; and then a clean stop with an
//! object in its buffer.
#![expect(clippy::unwrap_used, reason = "a measurement stops at a surprise")]
#![expect(clippy::print_stdout, reason = "the rows are what it is for")]

use bytes::Bytes;
use nix::libc::O_DIRECT;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use strata::base::aligned::AlignedBuf;
use strata::base::clock::{Clock, MonoTime, SystemClock};
use strata::base::prng::Prng;
use strata::cache::directory::{Directory, Home, Place};
use strata::cache::format::dir_entry::{DirEntry, EntryParts};
use strata::cache::format::directory_page::PAGE_SLOTS;
use strata::cache::format::fragment::FragmentKind;
use strata::cache::stripe::{
    Action, Geometry, NewFragment, Outcome, PageRead, Recovery, RecoveryReport, RecoveryStart,
    RecoveryStep, Stripe, StripeIdentity, StripeOptions,
};
use strata::device::{
    Device, DeviceGeometry, Pace, PoolDevice, Wanted, flush_blocking, read_blocking, read_each,
    write_blocking,
};

const BLOCK: u32 = 4096;
/// Bytes of the stripe for each slot, as min_average_object_size has it.
const SLOT_BYTES: u64 = 8000;
/// Slots in use, in per cent.
const LOAD_PERCENT: u64 = 90;
/// Entries appended after the sync, as a part of all: the redo ring and the
/// log tell of them.
const TAIL_PART: u64 = 50;
/// Reads of pages under way at a time, as the server has them.
const READS: usize = 2;
/// Threads of the device's pool, and reads that may wait for one.
const POOL: (usize, usize) = (4, 64);
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

/// A sparse file, gone at the end.
struct Sparse(PathBuf);

impl Sparse {
    fn new(length: u64) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recovery.span");
        File::create(&path).unwrap().set_len(length).unwrap();
        Self(path)
    }

    /// The file as a device. The server would reserve all its room: the log of
    /// a large one is larger than the disk that this is measured on.
    fn device(&self) -> PoolDevice {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(O_DIRECT);
        let file = options.open(&self.0).unwrap();
        let geometry = DeviceGeometry {
            bytes: file.metadata().unwrap().len(),
            sector: BLOCK,
            physical: BLOCK,
        };
        PoolDevice::new(Arc::new(file), geometry, POOL.0, POOL.1).unwrap()
    }

    /// How long `dd` takes to read a part of it.
    fn dd(&self, clock: &SystemClock, part: &Range<u64>) -> Duration {
        let begin = clock.mono();
        let output = Command::new("dd")
            .args([
                "bs=1M",
                "iflag=direct,skip_bytes,count_bytes",
                "of=/dev/null",
            ])
            .arg(format!("if={}", self.0.display()))
            .arg(format!("skip={}", part.start))
            .arg(format!("count={}", part.end - part.start))
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        clock.mono().since(begin)
    }
}

impl Drop for Sparse {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

/// Does what the stripe wants done, until it wants nothing; bytes written.
fn drive(stripe: &mut Stripe, device: &dyn Device, now: MonoTime) -> u64 {
    let mut written = 0;
    while let Some(plan) = stripe.poll(now) {
        match plan.action {
            Action::Write { offset, bytes } => write_blocking(device, offset, bytes).unwrap(),
            Action::Flush => flush_blocking(device).unwrap(),
        }
        written += stripe.complete(now, plan.id, Outcome::Done).written;
    }
    written
}

/// Stops it cleanly with an object in its buffer; how long that takes, and the
/// bytes that it writes.
fn stop(stripe: &mut Stripe, device: &dyn Device, clock: &SystemClock) -> (Duration, u64) {
    append(stripe, key(u64::MAX >> 20), LATE);
    let begin = clock.mono();
    stripe.close();
    let written = drive(stripe, device, LATE);
    flush_blocking(device).unwrap();
    assert!(stripe.is_closed());
    (clock.mono().since(begin), written)
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
fn write_stripe(device: &dyn Device, geometry: Geometry, entries: u64) -> u128 {
    let options = StripeOptions {
        sync_interval: Duration::ZERO,
        ..StripeOptions::default()
    };
    let now = MonoTime::from_nanos(1 << 40);
    let mut stripe = Stripe::format(identity(1), geometry, options);
    drive(&mut stripe, device, now);
    insert_old(&stripe.directory(), &geometry, entries);
    stripe.sync();
    while !stripe.is_idle() {
        drive(&mut stripe, device, now);
    }
    for n in entries..entries + entries / TAIL_PART {
        append(&mut stripe, key(n), now);
        drive(&mut stripe, device, now);
    }
    stripe.flush();
    drive(&mut stripe, device, now);
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

/// A device whose reads are counted.
struct Counted<'a> {
    device: &'a dyn Device,
    log: Range<u64>,
    reads: Reads,
}

impl Counted<'_> {
    fn count(&mut self, offset: u64, length: u64) {
        self.reads.count += 1;
        self.reads.bytes += length;
        if self.log.contains(&offset) {
            self.reads.in_log += 1;
            self.reads.log_bytes += length;
        }
    }

    fn recover(&mut self, geometry: &Geometry) -> (Stripe, RecoveryReport) {
        let mut recovery = Recovery::new(RecoveryStart {
            identity: identity(2),
            known_instance: Some(identity(1).instance),
            last_run: 1,
            length: geometry.length(),
            block: BLOCK,
            options: StripeOptions::default(),
        });
        while let RecoveryStep::Read { offset, length } = recovery.step() {
            self.count(offset, length);
            recovery.complete(&read(self.device, offset, length));
        }
        recovery.finish().unwrap()
    }

    /// Reads the page that the key is in.
    fn read_page_of(&mut self, stripe: &mut Stripe, key: u128) {
        stripe.ask_for_key(key);
        let pages = stripe.next_pages().unwrap();
        self.count(pages.offset, pages.bytes());
        let bytes = read(self.device, pages.offset, pages.bytes());
        take_pages(stripe, pages, &bytes);
    }

    /// Reads all pages that are left, as the server does.
    fn read_pages(&mut self, stripe: &mut Stripe) {
        let stripe = RefCell::new(stripe);
        let pace = Pace {
            depth: READS,
            patience: self.device.patience(),
        };
        let device = self.device;
        let next = || {
            let pages = stripe.borrow_mut().next_pages()?;
            self.count(pages.offset, pages.bytes());
            Some(Wanted {
                name: pages,
                offset: pages.offset,
                len: usize::try_from(pages.bytes()).unwrap(),
            })
        };
        let submit = |request| device.submit_to_block(request);
        read_each(pace, submit, next, |pages, bytes| {
            take_pages(&mut stripe.borrow_mut(), pages, &bytes.unwrap());
        });
    }
}

fn take_pages(stripe: &mut Stripe, pages: PageRead, bytes: &[u8]) {
    let page_bytes = usize::try_from(pages.page_bytes).unwrap();
    for ((page, _), bytes) in pages.each().zip(bytes.chunks(page_bytes)) {
        stripe.take_page(LATE, page, bytes);
    }
}

fn read(device: &dyn Device, offset: u64, length: u64) -> AlignedBuf {
    read_blocking(device, offset, usize::try_from(length).unwrap()).unwrap()
}

/// Reads and verifies the key's fragment: a hit.
fn hit(device: &dyn Device, directory: &Directory, key: u128) {
    let is_whole = |place: Place| {
        let start = place.offset / 4096 * 4096;
        let end = (place.offset + u64::from(place.length)).next_multiple_of(4096);
        let bytes = read(device, start, end - start).into_bytes();
        let skipped = usize::try_from(place.offset - start).unwrap();
        directory
            .verify(&place, key, &bytes.slice(skipped..))
            .is_ok()
    };
    assert!(directory.lookup(key).any(is_whole), "the last key is lost");
}

/// Processor time of this process so far.
#[derive(Clone, Copy)]
struct Cpu {
    user: Duration,
    system: Duration,
}

impl Cpu {
    fn now() -> Self {
        let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
        let time = |micros: i64| Duration::from_micros(u64::try_from(micros).unwrap());
        Self {
            user: time(usage.user_time().num_microseconds()),
            system: time(usage.system_time().num_microseconds()),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
        }
    }

    fn all(self) -> Duration {
        self.user + self.system
    }
}

/// How long a start took, from its beginning.
struct Times {
    known: Duration,
    served: Duration,
    loaded: Duration,
    /// Processor time to the first hit, and of all of it.
    cpu: [Cpu; 2],
    /// `dd` over the same copy of the directory, before and after.
    dd: [Duration; 2],
}

fn measure(clock: &SystemClock, millions: u64) {
    let entries = millions * 1_000_000;
    let geometry = geometry(entries);
    let file = Sparse::new(geometry.length());
    let device = file.device();
    let last = write_stripe(&device, geometry, entries);
    let copy = geometry.page_table_offset(0)..geometry.page_table_offset(1);
    let before = file.dd(clock, &copy);
    let mut counted = Counted {
        device: &device,
        log: geometry.log_offset()..geometry.log_offset() + geometry.log_bytes(),
        reads: Reads::default(),
    };
    let (begin, cpu_before) = (clock.mono(), Cpu::now());
    let (mut stripe, report) = counted.recover(&geometry);
    let known = clock.mono().since(begin);
    counted.read_page_of(&mut stripe, last);
    // The run's first ring block, if the page had anything to tell.
    drive(&mut stripe, &device, LATE);
    hit(&device, &stripe.directory(), last);
    let (served, first) = (clock.mono().since(begin), counted.reads);
    let cpu_first = Cpu::now().since(cpu_before);
    counted.read_pages(&mut stripe);
    let times = Times {
        known,
        served,
        loaded: clock.mono().since(begin),
        cpu: [cpu_first, Cpu::now().since(cpu_before)],
        dd: [before, file.dd(clock, &copy)],
    };
    assert_eq!((stripe.page_count().bad, report.suspect), (0, false));
    print_times(millions, geometry.directory_bytes(), &times);
    print_reads(&first, &counted.reads, &report);
    let (time, written) = stop(&mut stripe, &device, clock);
    let millis = time.as_secs_f64() * 1e3;
    println!("  stopped cleanly in {millis:.1} ms, by {written} bytes");
}

fn print_times(millions: u64, directory_bytes: u64, times: &Times) {
    let gb = directory_bytes as f64 / 1e9;
    let each = |time: Duration| time.as_secs_f64() / gb;
    let [before, after] = times.dd.map(|time| time.as_secs_f64());
    println!(
        "{millions} M entries, {gb:.3} GB of directory: rows known {:.3} s, first hit {:.3} s, all loaded {:.3} s ({:.2} s a GB)",
        times.known.as_secs_f64(),
        times.served.as_secs_f64(),
        times.loaded.as_secs_f64(),
        each(times.loaded),
    );
    println!(
        "  processor time {:.3} s to the first hit, {:.3} s in all ({:.2} s a GB), {:.3} s of it the system's; dd of the copy {before:.3} s before, {after:.3} s after: loaded in {:.2} times dd",
        times.cpu[0].all().as_secs_f64(),
        times.cpu[1].all().as_secs_f64(),
        each(times.cpu[1].all()),
        times.cpu[1].system.as_secs_f64(),
        2.0 * times.loaded.as_secs_f64() / (before + after),
    );
}

fn print_reads(first: &Reads, all: &Reads, report: &RecoveryReport) {
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
