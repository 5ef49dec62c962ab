//! Reads of a raw loop device with direct I/O, by both backends beside fio, and
//! how long they take while batches of 4 MiB are written.
//!
//! `cargo bench --bench device [-- SECONDS]` prints a row each; a row's
//! measurement takes so many seconds, 2 if not said. Needs root, losetup, fio.
#![expect(clippy::unwrap_used, reason = "a measurement stops at a surprise")]
#![expect(clippy::print_stdout, reason = "the rows are what it is for")]

mod fio;
#[expect(dead_code, reason = "the tests of devices use the rest of it")]
#[path = "../../tests/support/loop_device.rs"]
mod loop_device;
mod reads;

use loop_device::LoopDevice;
use reads::{Load, Reads};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;
use strata::device::{Backend, OpenRequest, open, write_blocking};

/// Bytes of the device.
const SIZE: u64 = 256 << 20;
/// Reads under way at once.
const DEPTHS: [usize; 3] = [1, 8, 64];
/// Bytes of a read.
const LENGTHS: [usize; 2] = [4096, 16384];
/// Bytes of a batch.
const BATCH: usize = 4 << 20;

fn main() -> ExitCode {
    if let Some(missing) = missing() {
        println!("cannot measure: {missing}");
        return ExitCode::FAILURE;
    }
    let seconds = std::env::args().find_map(|arg| arg.parse().ok());
    let time = Duration::from_secs(seconds.unwrap_or(2));
    let device = LoopDevice::zeroed(SIZE);
    fill(device.path());
    println!("backend    bytes  depth     IOPS  CPU µs a read  median µs  99 % µs");
    for bytes in LENGTHS {
        for depth in DEPTHS {
            compare(device.path(), Load { bytes, depth, time });
        }
    }
    println!();
    println!("reads of 16384 bytes while batches of 4 MiB are written:");
    println!(
        "backend  depth  batches/s  batch ms  median µs  (alone)  99 % µs  (alone)  longest µs"
    );
    for backend in [Backend::Rings, Backend::Threads] {
        for depth in [1, 8] {
            beside_batches(
                device.path(),
                backend,
                Load {
                    bytes: 16384,
                    depth,
                    time,
                },
            );
        }
    }
    ExitCode::SUCCESS
}

/// Why nothing can be measured here.
fn missing() -> Option<String> {
    if !nix::unistd::geteuid().is_root() {
        return Some("raw devices need root".to_owned());
    }
    for (program, arg) in [("losetup", "--find"), ("fio", "--version")] {
        let ran = Command::new(program).arg(arg).output();
        if !ran.as_ref().is_ok_and(|output| output.status.success()) {
            return Some(format!("{program} {arg}: {ran:?}"));
        }
    }
    None
}

fn request(path: &Path, backend: Backend) -> OpenRequest {
    OpenRequest {
        backend,
        threads: 8,
        ..OpenRequest::at(path)
    }
}

/// Writes all of the device: reads of a hole in a file are none.
fn fill(path: &Path) {
    let opened = open(&request(path, Backend::Threads)).unwrap();
    for offset in (0..SIZE).step_by(BATCH) {
        write_blocking(&*opened.device, offset, reads::noise(BATCH)).unwrap();
    }
}

fn compare(path: &Path, load: Load) {
    row("fio", load, &fio::run(path, load));
    for (name, backend) in [("rings", Backend::Rings), ("threads", Backend::Threads)] {
        let opened = open(&request(path, backend)).unwrap();
        row(name, load, &reads::run(&opened.device, backend, load));
    }
}

fn row(name: &str, load: Load, reads: &Reads) {
    println!(
        "{name:<9} {:>6} {:>6} {:>8.0} {:>14.1} {:>10.0} {:>8.0}",
        load.bytes,
        load.depth,
        reads.each_second,
        reads.cpu_micros,
        reads.at(50),
        reads.at(99),
    );
}

/// The same reads alone and beside batches that follow each other.
fn beside_batches(path: &Path, backend: Backend, load: Load) {
    let opened = open(&request(path, backend)).unwrap();
    let alone = reads::run(&opened.device, backend, load);
    let (beside, batches) = reads::run_beside_batches(&opened.device, backend, load);
    println!(
        "{:<8} {:>5} {:>10.1} {:>9.2} {:>10.0} {:>8.0} {:>8.0} {:>8.0} {:>11.0}",
        format!("{backend:?}"),
        load.depth,
        batches.each_second,
        batches.millis,
        beside.at(50),
        alone.at(50),
        beside.at(99),
        alone.at(99),
        beside.at(100),
    );
}
