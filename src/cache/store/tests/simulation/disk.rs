//! A disk in memory whose writes end when the simulation says so.

use crate::base::prng::Prng;
use crate::device::{Device, DeviceGeometry, MemDevice, MemDisk, Request};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a disk writes whole or not at all, in bytes.
const SECTOR: usize = 512;

/// A disk, and the writes that are out. Reads are answered at once.
pub(super) struct SlowDisk {
    medium: Arc<MemDisk>,
    out: Mutex<Vec<Request>>,
    /// While spans are opened, by whom waits for each write.
    pub(super) at_once: AtomicBool,
}

impl SlowDisk {
    pub(super) fn blank(len: usize) -> Arc<Self> {
        Arc::new(Self {
            medium: MemDisk::blank(len),
            out: Mutex::default(),
            at_once: AtomicBool::new(false),
        })
    }

    pub(super) fn device(self: &Arc<Self>) -> SlowDevice {
        SlowDevice {
            device: self.medium.device(),
            disk: Arc::clone(self),
        }
    }

    /// Writes that are out.
    pub(super) fn waiting(&self) -> usize {
        self.out.lock().len()
    }

    /// Ends one of them. What it lets begin may be out by then.
    pub(super) fn end_one(&self, prng: &mut Prng) -> bool {
        let device = self.medium.device();
        let mut out = self.out.lock();
        if out.is_empty() {
            return false;
        }
        let at = prng.below(u64::try_from(out.len()).unwrap());
        let request = out.swap_remove(usize::try_from(at).unwrap());
        drop(out);
        device.submit(request);
        true
    }

    /// The process is killed: of each write that is out some sectors are there.
    pub(super) fn cut(&self, prng: &mut Prng) {
        let out = std::mem::take(&mut *self.out.lock());
        for request in out {
            let Request::Write { offset, bytes, .. } = request else {
                continue;
            };
            let from = usize::try_from(offset).unwrap();
            let percent = [0, 50, 95, 100][usize::try_from(prng.below(4)).unwrap()];
            self.medium.edit(|medium| {
                for (at, sector) in bytes.chunks(SECTOR).enumerate() {
                    if prng.below(100) < percent {
                        let from = from + at * SECTOR;
                        medium[from..from + sector.len()].copy_from_slice(sector);
                    }
                }
            });
        }
    }
}

/// A device over such a disk.
pub(super) struct SlowDevice {
    device: MemDevice,
    disk: Arc<SlowDisk>,
}

impl Device for SlowDevice {
    fn geometry(&self) -> DeviceGeometry {
        self.device.geometry()
    }

    fn submit(&self, request: Request) {
        let waits = !self.disk.at_once.load(Ordering::Relaxed);
        match request {
            Request::Write { .. } | Request::Flush { .. } if waits => {
                self.disk.out.lock().push(request);
            }
            Request::Read { .. } | Request::Write { .. } | Request::Flush { .. } => {
                self.device.submit(request);
            }
        }
    }
}
