//! A device in memory, for tests: what was written outlives the device.

use super::{Device, DeviceError, DeviceGeometry, Done, Request};
use crate::base::aligned::AlignedBuf;
use crate::base::size::MIB;
use nix::errno::Errno;
use parking_lot::Mutex;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The medium of a [`MemDevice`]; it stays when the device goes.
#[derive(Debug)]
pub struct MemDisk {
    bytes: Mutex<Vec<u8>>,
    reads: AtomicU64,
    read_bytes: AtomicU64,
    /// What reads fail with.
    read_fault: Mutex<Option<DeviceError>>,
    /// What can't be read until it is written over.
    bad: Mutex<Vec<Range<usize>>>,
    fail_writes: AtomicBool,
    hangs: AtomicBool,
    /// As `hangs`, for writes between the first MiB and the last.
    hangs_inside: AtomicBool,
    /// Reads of this length are held, 0 for none.
    held_length: AtomicU64,
    held: Mutex<Vec<HeldRead>>,
}

/// A read that waits to be let go.
struct HeldRead {
    offset: u64,
    buf: AlignedBuf,
    done: Done<AlignedBuf>,
}

impl fmt::Debug for HeldRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeldRead({} at {})", self.buf.len(), self.offset)
    }
}

impl MemDisk {
    /// A blank disk of `len` bytes.
    #[must_use]
    pub fn blank(len: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes: Mutex::new(vec![0; len]),
            reads: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            read_fault: Mutex::default(),
            bad: Mutex::default(),
            fail_writes: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            hangs_inside: AtomicBool::new(false),
            held_length: AtomicU64::new(0),
            held: Mutex::default(),
        })
    }

    /// A device over this disk, as after plugging it in.
    #[must_use]
    pub fn device(self: &Arc<Self>) -> MemDevice {
        MemDevice {
            disk: Arc::clone(self),
            closed: AtomicBool::new(false),
            unanswered: Mutex::default(),
        }
    }

    /// Requests to read so far.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// From now on, reads and writes fail with EIO, or do not.
    pub fn fail(&self, reads: bool, writes: bool) {
        *self.read_fault.lock() = reads.then(|| Errno::EIO.into());
        self.fail_writes.store(writes, Ordering::Relaxed);
    }

    /// From now on no request is answered before its device goes, or all are.
    pub fn hang(&self, hangs: bool) {
        self.hangs.store(hangs, Ordering::Relaxed);
    }

    /// Whether a request is not to be answered.
    fn keeps(&self, request: &Request) -> bool {
        let inside = match request {
            Request::Write { offset, .. } => self.is_inside(*offset),
            Request::Read { .. } | Request::Flush { .. } => false,
        };
        let hangs_inside = inside && self.hangs_inside.load(Ordering::Relaxed);
        hangs_inside || self.hangs.load(Ordering::Relaxed)
    }

    /// Whether an offset is between the first MiB and the last.
    fn is_inside(&self, offset: u64) -> bool {
        let len = u64::try_from(self.bytes.lock().len()).unwrap_or(u64::MAX);
        (MIB..len.saturating_sub(MIB)).contains(&offset)
    }

    fn start_read(&self, read: HeldRead) {
        let length = u64::try_from(read.buf.len()).unwrap_or(0);
        if length == self.held_length.load(Ordering::Relaxed) {
            return self.held.lock().push(read);
        }
        let HeldRead { offset, buf, done } = read;
        done(self.read(offset, buf));
    }

    /// Changes what lies on the disk, as rot or another host would.
    pub fn edit(&self, change: impl FnOnce(&mut [u8])) {
        change(&mut self.bytes.lock());
    }

    fn read(&self, offset: u64, mut buf: AlignedBuf) -> Result<AlignedBuf, DeviceError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let asked = u64::try_from(buf.len()).unwrap_or(u64::MAX);
        self.read_bytes.fetch_add(asked, Ordering::Relaxed);
        if let Some(error) = *self.read_fault.lock() {
            return Err(error);
        }
        let range = range(offset, buf.len()).ok_or(Errno::EINVAL)?;
        let is_bad = |bad: &Range<usize>| bad.start < range.end && range.start < bad.end;
        if self.bad.lock().iter().any(is_bad) {
            return Err(Errno::EIO.into());
        }
        let bytes = self.bytes.lock();
        let from = bytes.get(range);
        buf.copy_from_slice(from.ok_or(Errno::EINVAL)?);
        Ok(buf)
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        if self.fail_writes.load(Ordering::Relaxed) {
            return Err(Errno::EIO.into());
        }
        let mut bytes = self.bytes.lock();
        let range = range(offset, data.len()).ok_or(Errno::ENOSPC)?;
        let heals = |bad: &Range<usize>| range.start <= bad.start && bad.end <= range.end;
        self.bad.lock().retain(|bad| !heals(bad));
        let to = bytes.get_mut(range);
        to.ok_or(Errno::ENOSPC)?.copy_from_slice(data);
        Ok(())
    }
}

#[cfg(test)]
impl MemDisk {
    /// Bytes that were asked for so far.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.read_bytes.load(Ordering::Relaxed)
    }

    /// Has reads of any of these bytes fail with EIO until all of them are
    /// written over.
    pub(crate) fn spoil(&self, bytes: Range<usize>) {
        self.bad.lock().push(bytes);
    }

    /// From now on no write between the first MiB and the last is answered
    /// before its device goes, or all are: a span's header is written, and none
    /// of its stripes.
    pub(crate) fn hang_inside(&self, hangs: bool) {
        self.hangs_inside.store(hangs, Ordering::Relaxed);
    }

    /// From now on, reads are refused because too many wait.
    pub(crate) fn crowd(&self) {
        *self.read_fault.lock() = Some(DeviceError::Busy);
    }

    /// From now on reads of `length` bytes wait to be let go.
    pub(crate) fn hold(&self, length: u64) {
        self.held_length.store(length, Ordering::Relaxed);
    }

    /// Answers the reads that wait, and lets no other one wait.
    pub(crate) fn let_go(&self) {
        self.held_length.store(0, Ordering::Relaxed);
        let held = std::mem::take(&mut *self.held.lock());
        for HeldRead { offset, buf, done } in held {
            done(self.read(offset, buf));
        }
    }
}

fn range(offset: u64, len: usize) -> Option<Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    Some(start..start.checked_add(len)?)
}

/// A device whose completions are called before `submit` returns.
pub struct MemDevice {
    disk: Arc<MemDisk>,
    closed: AtomicBool,
    unanswered: Mutex<Vec<Request>>,
}

impl Drop for MemDevice {
    fn drop(&mut self) {
        for request in self.unanswered.get_mut().drain(..) {
            request.fail(DeviceError::Closed);
        }
    }
}

impl MemDevice {
    /// From now on nothing reaches the disk, as when the process is killed.
    pub fn cut(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

impl Device for MemDevice {
    fn geometry(&self) -> DeviceGeometry {
        let len = self.disk.bytes.lock().len();
        DeviceGeometry {
            bytes: u64::try_from(len).unwrap_or(u64::MAX),
            sector: 512,
            physical: 4096,
        }
    }

    fn submit(&self, request: Request) {
        if self.closed.load(Ordering::SeqCst) {
            return request.fail(DeviceError::Closed);
        }
        if self.disk.keeps(&request) {
            return self.unanswered.lock().push(request);
        }
        match request {
            Request::Read { offset, buf, done } => {
                self.disk.start_read(HeldRead { offset, buf, done });
            }
            Request::Write {
                offset,
                bytes,
                done,
            } => done(self.disk.write(offset, &bytes)),
            Request::Flush { done } => done(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{read_blocking, write_blocking};
    use super::*;
    use bytes::Bytes;

    #[test]
    fn a_disk_keeps_its_bytes_from_device_to_device() {
        let disk = MemDisk::blank(16384);
        let device = disk.device();
        write_blocking(&device, 4096, Bytes::from_static(b"here")).unwrap();
        device.cut();
        let late = write_blocking(&device, 8192, Bytes::from_static(b"late"));
        assert_eq!(late, Err(DeviceError::Closed));
        let again = disk.device();
        assert_eq!(&*read_blocking(&again, 4096, 4).unwrap(), b"here");
        assert_eq!(&*read_blocking(&again, 8192, 4).unwrap(), b"\0\0\0\0");
    }

    #[test]
    fn injected_faults_and_wild_offsets_are_errors() {
        let disk = MemDisk::blank(4096);
        let device = disk.device();
        assert!(read_blocking(&device, u64::MAX, 512).is_err());
        assert!(write_blocking(&device, 4095, Bytes::from_static(b"ab")).is_err());
        disk.fail(true, false);
        assert_eq!(
            read_blocking(&device, 0, 512).unwrap_err(),
            Errno::EIO.into()
        );
    }
}
