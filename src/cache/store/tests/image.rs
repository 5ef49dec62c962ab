//! Spans that this and earlier versions of the program wrote, opened again.
//!
//! `tests/golden/span-vN.image` is a span of format version N, without its
//! zeros: a line with its bytes, then lines of an offset and 32 bytes.
//! `UPDATE_GOLDEN=1` writes the one of this version anew, which belongs to a new
//! version only; those of the versions that are read stay for good.

use super::machine::{DISK, Machine, Running, all, text};
use super::*;
use crate::cache::format::span_header::{FIRST_OFFSET, SpanHeader};
use crate::cache::format::stripe_header::{StripeContent, StripeHeader};
use crate::cache::format::{FORMAT_VERSION, OLDEST_VERSION, Unverified};
use crate::cache::tier::SpanTier;
use crate::device::MemDisk;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const OBJECTS: u32 = 12;
/// The object that is stored twice, the one that is removed, and the one whose
/// body is in fragments of its own.
const UPDATED: u32 = 3;
const REMOVED: u32 = 4;
const LONG: u32 = 5;
const LONG_BYTES: usize = 10_000;

fn bytes_of(n: u32) -> usize {
    match n {
        LONG => LONG_BYTES,
        UPDATED => 77,
        n => 100 + usize::try_from(n).unwrap(),
    }
}

fn machine() -> Machine {
    let mut machine = Machine::with(&[SpanTier::Capacity]);
    machine.fragment_bytes = 4096;
    machine
}

fn path(version: u16) -> PathBuf {
    let name = format!("tests/golden/span-v{version}.image");
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A span of this version.
async fn make() -> Vec<u8> {
    let machine = machine();
    let running = machine.start().await;
    store(&running.cache, &key(UPDATED), b"older").unwrap();
    running.cache.sync().await;
    for n in 0..OBJECTS {
        store(&running.cache, &key(n), &text(n, bytes_of(n))).unwrap();
    }
    running.cache.remove(&key(REMOVED));
    running.cache.shutdown().await;
    running.kill();
    let mut image = Vec::new();
    machine.disks[0].1.edit(|bytes| image = bytes.to_vec());
    image
}

fn encode(image: &[u8]) -> String {
    let mut text = format!("{}\n", image.len());
    for (line, bytes) in image.chunks(32).enumerate() {
        if bytes.iter().any(|byte| *byte != 0) {
            write!(text, "{:x} ", line * 32).unwrap();
            bytes.iter().for_each(|b| write!(text, "{b:02x}").unwrap());
            text.push('\n');
        }
    }
    text
}

fn decode(text: &str) -> Vec<u8> {
    let mut lines = text.lines();
    let mut image = vec![0; lines.next().unwrap().parse().unwrap()];
    for line in lines {
        let (offset, digits) = line.split_once(' ').unwrap();
        let offset = usize::from_str_radix(offset, 16).unwrap();
        for (at, pair) in digits.as_bytes().chunks(2).enumerate() {
            let pair = std::str::from_utf8(pair).unwrap();
            image[offset + at] = u8::from_str_radix(pair, 16).unwrap();
        }
    }
    image
}

fn stripe_header(image: &[u8]) -> StripeContent {
    let header = &image[usize::try_from(FIRST_OFFSET).unwrap()..];
    let span = Unverified::<SpanHeader>::new(header).verify().unwrap();
    let slot = span.stripes[0];
    let header = &image[usize::try_from(slot.offset).unwrap()..];
    Unverified::<StripeHeader>::new(header)
        .verify(slot.uuid)
        .unwrap()
}

/// A machine with the image in it, and the state that it was written by.
fn with_image(image: &[u8]) -> Machine {
    let mut machine = machine();
    let disk = MemDisk::blank(DISK.max(image.len()));
    disk.edit(|bytes| bytes[..image.len()].copy_from_slice(image));
    machine.disks[0].1 = disk;
    let header = stripe_header(image);
    let state = sled::open(machine.state.path().join("cache-state")).unwrap();
    for (name, value) in [
        ("instance", header.instance),
        ("run", header.run.into()),
        ("epoch", (header.epoch + (1 << 20)).into()),
    ] {
        state.insert(name, &value.to_le_bytes()).unwrap();
    }
    machine
}

impl Running {
    async fn has_the_image_s_objects(&self, version: u16) {
        for n in 0..OBJECTS {
            let found = self.cache.read(&key(n)).await;
            if n == REMOVED {
                assert_eq!(found.unwrap_err(), Miss::Absent);
                continue;
            }
            let mut hit = found.unwrap();
            assert!(!hit.suspect, "version {version}: {n}");
            let body = all(&mut hit).await;
            assert!(body == text(n, bytes_of(n)), "version {version}: {n}");
        }
    }
}

#[tokio::test]
async fn a_span_of_every_version_that_is_read_opens_with_all_its_objects() {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path(FORMAT_VERSION), encode(&make().await)).unwrap();
    }
    for version in OLDEST_VERSION..=FORMAT_VERSION {
        let image = std::fs::read_to_string(path(version)).unwrap();
        let machine = with_image(&decode(&image));
        let running = machine.start().await;
        running.has_the_image_s_objects(version).await;
        store(&running.cache, &key(100), b"new").unwrap();
        running.cache.shutdown().await;
        running.kill();
        let again = machine.start().await;
        again.has_the_image_s_objects(version).await;
        assert_eq!(body(&again.cache.read(&key(100)).await.unwrap()), b"new");
        again.kill();
    }
}

#[test]
fn the_version_before_this_one_is_read() {
    assert!(OLDEST_VERSION <= FORMAT_VERSION.saturating_sub(1).max(1));
}
