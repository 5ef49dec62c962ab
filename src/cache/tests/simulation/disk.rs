//! A disk in memory that fails as real ones do.

use crate::base::prng::Prng;
use crate::cache::format::{to_u64, to_usize};
use bytes::Bytes;

/// What a disk writes whole or not at all, in bytes.
pub(in crate::cache) const SECTOR: usize = 512;

/// The medium, and before it a volatile cache, which is lost with the power.
pub(in crate::cache) struct Disk {
    /// What a read gives.
    seen: Vec<u8>,
    /// What is left after a power cut.
    medium: Vec<u8>,
    /// What was written since, in order.
    unflushed: Vec<(usize, Bytes)>,
    /// Writes that are on the medium.
    flushed: usize,
}

impl Disk {
    pub(in crate::cache) fn blank(length: u64) -> Self {
        Self {
            seen: vec![0; to_usize(length)],
            medium: vec![0; to_usize(length)],
            unflushed: Vec::new(),
            flushed: 0,
        }
    }

    pub(in crate::cache) fn read(&self, offset: u64, length: u64) -> &[u8] {
        &self.seen[to_usize(offset)..to_usize(offset + length)]
    }

    pub(in crate::cache) fn write(&mut self, offset: u64, bytes: &Bytes) {
        let from = to_usize(offset);
        self.seen[from..from + bytes.len()].copy_from_slice(bytes);
        self.unflushed.push((from, bytes.clone()));
    }

    /// Writes each sector with a probability in percent.
    pub(in crate::cache) fn write_torn(
        &mut self,
        offset: u64,
        bytes: &Bytes,
        percent: u64,
        prng: &mut Prng,
    ) {
        for at in (0..bytes.len()).step_by(SECTOR) {
            if prng.below(100) < percent {
                let end = bytes.len().min(at + SECTOR);
                self.write(offset + to_u64(at), &bytes.slice(at..end));
            }
        }
    }

    /// Writes that have been done: what a flush that begins now is to bring
    /// to the medium.
    pub(in crate::cache) fn written(&self) -> usize {
        self.flushed + self.unflushed.len()
    }

    /// Writes that no power cut takes.
    pub(in crate::cache) const fn flushed(&self) -> usize {
        self.flushed
    }

    /// Ends a flush that began when so many writes had been done.
    pub(in crate::cache) fn flush(&mut self, written: usize) {
        let count = written.saturating_sub(self.flushed);
        for (from, bytes) in self.unflushed.drain(..count) {
            self.medium[from..from + bytes.len()].copy_from_slice(&bytes);
        }
        self.flushed += count;
    }

    /// Of each write that was not flushed some sectors are on the medium, in
    /// any order, and the others are not.
    pub(in crate::cache) fn cut_power(&mut self, prng: &mut Prng) {
        self.flushed = self.written();
        for (from, bytes) in std::mem::take(&mut self.unflushed) {
            let percent = [0, 50, 98, 100][to_usize(prng.below(4))];
            for (at, sector) in bytes.chunks(SECTOR).enumerate() {
                if prng.below(100) < percent {
                    let from = from + at * SECTOR;
                    self.medium[from..from + sector.len()].copy_from_slice(sector);
                }
            }
        }
        self.seen.clone_from(&self.medium);
    }

    /// Bits change by themselves, in one sector.
    pub(in crate::cache) fn rot(&mut self, offset: u64, prng: &mut Prng) {
        let from = to_usize(offset) / SECTOR * SECTOR;
        let end = self.seen.len().min(from + SECTOR);
        for word in self.seen[from..end].chunks_exact_mut(8) {
            word.copy_from_slice(&prng.next_u64().to_le_bytes());
        }
        self.medium[from..end].copy_from_slice(&self.seen[from..end]);
    }
}
