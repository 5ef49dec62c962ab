//! A disk in memory whose writes end when the simulation says so, and which
//! fails as real ones do.

use crate::base::aligned::AlignedBuf;
use crate::base::prng::Prng;
use crate::cache::format::{to_u64, to_usize};
use crate::cache::tests::simulation::disk::Disk;
use crate::device::{Device, DeviceError, DeviceGeometry, Request};
use nix::errno::Errno;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How a disk does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// All ends well.
    Sound,
    /// Some requests fail with EIO, and of a write some sectors may be there.
    Failing,
    /// All do.
    Dead,
    /// None ends.
    Silent,
}

/// A request that is out, and the writes that had been done when it came.
struct Waiting {
    request: Request,
    written: usize,
}

/// A disk, and the requests that are out: writes and flushes. Reads are
/// answered at once, unless it is silent.
pub(super) struct SlowDisk {
    disk: Mutex<Disk>,
    bytes: u64,
    out: Mutex<Vec<Waiting>>,
    health: Mutex<Health>,
    /// What fails, where not all does.
    chance: Mutex<Prng>,
    /// Writes and flushes that failed while the cache ran.
    failed: AtomicU64,
    /// While spans are opened, by whom waits for each write.
    at_once: AtomicBool,
}

impl SlowDisk {
    pub(super) fn blank(len: usize) -> Arc<Self> {
        let bytes = to_u64(len);
        Arc::new(Self {
            disk: Mutex::new(Disk::blank(bytes)),
            bytes,
            out: Mutex::default(),
            health: Mutex::new(Health::Sound),
            chance: Mutex::new(Prng::seeded(bytes)),
            failed: AtomicU64::new(0),
            at_once: AtomicBool::new(false),
        })
    }

    pub(super) fn device(self: &Arc<Self>) -> SlowDevice {
        SlowDevice {
            disk: Arc::clone(self),
        }
    }

    pub(super) fn health(&self) -> Health {
        *self.health.lock()
    }

    pub(super) fn set_at_once(&self, at_once: bool) {
        self.at_once.store(at_once, Ordering::Relaxed);
    }

    pub(super) fn set_health(&self, health: Health) {
        *self.health.lock() = health;
    }

    /// Requests that are out and may end.
    pub(super) fn waiting(&self) -> usize {
        match self.health() {
            Health::Silent => 0,
            Health::Sound | Health::Failing | Health::Dead => self.out.lock().len(),
        }
    }

    /// Writes and flushes that failed since this was asked last.
    pub(super) fn take_failed(&self) -> u64 {
        self.failed.swap(0, Ordering::Relaxed)
    }

    /// Writes that have been done, and those that no power cut takes.
    pub(super) fn progress(&self) -> (usize, usize) {
        let disk = self.disk.lock();
        (disk.written(), disk.flushed())
    }

    /// Ends one of the requests that are out. What it lets begin may be out by
    /// then.
    pub(super) fn end_one(&self, prng: &mut Prng) -> bool {
        let mut out = self.out.lock();
        if out.is_empty() {
            return false;
        }
        let at = prng.below(to_u64(out.len()));
        let waiting = out.swap_remove(to_usize(at));
        drop(out);
        self.end(waiting);
        true
    }

    /// Ends the writes that are out, and leaves the flushes.
    pub(super) fn end_writes(&self) {
        let mut out = self.out.lock();
        let is_write = |waiting: &mut Waiting| matches!(waiting.request, Request::Write { .. });
        let writes: Vec<Waiting> = out.extract_if(.., is_write).collect();
        drop(out);
        writes.into_iter().for_each(|write| self.end(write));
    }

    fn end(&self, waiting: Waiting) {
        match waiting.request {
            Request::Read { offset, buf, done } => done(self.read(offset, buf)),
            Request::Write { .. } | Request::Flush { .. } => self.end_change(waiting),
        }
    }

    fn end_change(&self, waiting: Waiting) {
        let fails = self.fails();
        if fails && !self.at_once.load(Ordering::Relaxed) {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        let outcome = if fails { Err(eio()) } else { Ok(()) };
        match waiting.request {
            Request::Read { .. } => {}
            Request::Write {
                offset,
                bytes,
                done,
            } => {
                let (mut disk, mut chance) = (self.disk.lock(), self.chance.lock());
                match fails {
                    true => disk.write_torn(offset, &bytes, 50, &mut chance),
                    false => disk.write(offset, &bytes),
                }
                drop((disk, chance));
                done(outcome);
            }
            Request::Flush { done } => {
                if !fails {
                    self.disk.lock().flush(waiting.written);
                }
                done(outcome);
            }
        }
    }

    fn fails(&self) -> bool {
        match self.health() {
            Health::Sound | Health::Silent => false,
            Health::Failing => self.chance.lock().below(3) == 0,
            Health::Dead => true,
        }
    }

    fn read(&self, offset: u64, mut buf: AlignedBuf) -> Result<AlignedBuf, DeviceError> {
        if self.fails() {
            return Err(eio());
        }
        let length = to_u64(buf.len());
        buf.copy_from_slice(self.disk.lock().read(offset, length));
        Ok(buf)
    }

    /// The process is killed: of each write that is out some sectors are there.
    pub(super) fn cut(&self, prng: &mut Prng) {
        let out = std::mem::take(&mut *self.out.lock());
        for waiting in out {
            let Request::Write { offset, bytes, .. } = waiting.request else {
                continue;
            };
            let percent = [0, 50, 95, 100][to_usize(prng.below(4))];
            self.disk.lock().write_torn(offset, &bytes, percent, prng);
        }
    }

    /// The power goes, and with it what was not flushed, in part.
    pub(super) fn cut_power(&self, prng: &mut Prng) {
        self.cut(prng);
        self.disk.lock().cut_power(prng);
    }
}

fn eio() -> DeviceError {
    Errno::EIO.into()
}

/// A device over such a disk.
pub(super) struct SlowDevice {
    disk: Arc<SlowDisk>,
}

impl Drop for SlowDevice {
    /// Who closes a device waits for what is out.
    fn drop(&mut self) {
        let out = std::mem::take(&mut *self.disk.out.lock());
        for waiting in out {
            match self.disk.health() {
                Health::Silent => waiting.request.fail(DeviceError::Closed),
                Health::Sound | Health::Failing | Health::Dead => self.disk.end(waiting),
            }
        }
    }
}

impl Device for SlowDevice {
    fn geometry(&self) -> DeviceGeometry {
        DeviceGeometry {
            bytes: self.disk.bytes,
            sector: 512,
            physical: 4096,
        }
    }

    fn submit(&self, request: Request) {
        let waiting = Waiting {
            request,
            written: self.disk.disk.lock().written(),
        };
        let at_once = match waiting.request {
            Request::Read { .. } => self.disk.health() != Health::Silent,
            Request::Write { .. } | Request::Flush { .. } => {
                self.disk.at_once.load(Ordering::Relaxed)
            }
        };
        match at_once {
            true => self.disk.end(waiting),
            false => self.disk.out.lock().push(waiting),
        }
    }

    /// Nobody waits in a simulation: what is not answered at once never is.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }
}
