//! A device served by a bounded pool of threads with pread and pwrite.

use super::{Device, DeviceError, DeviceGeometry, Request};
use crate::base::aligned::AlignedBuf;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Reads wait in their own line, so that a row of large writes in front of
/// them costs a read one write at most.
#[derive(Default)]
struct Lines {
    reads: VecDeque<Request>,
    writes: VecDeque<Request>,
    writing: usize,
    closed: bool,
}

struct Shared {
    file: File,
    geometry: DeviceGeometry,
    lines: Mutex<Lines>,
    wake: Condvar,
    writers: usize,
}

/// A device over an open file; closing waits for what was submitted.
pub struct PoolDevice {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl PoolDevice {
    /// A device over `file`, served by `threads` threads (at least one); all
    /// but one of them may be writing at the same time.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(file: File, geometry: DeviceGeometry, threads: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            file,
            geometry,
            lines: Mutex::default(),
            wake: Condvar::new(),
            writers: threads.saturating_sub(1).max(1),
        });
        let mut device = Self {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
        };
        for _ in 0..threads.max(1) {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("strata-disk".into());
            device.threads.push(thread.spawn(move || shared.serve())?);
        }
        Ok(device)
    }
}

impl Device for PoolDevice {
    fn geometry(&self) -> DeviceGeometry {
        self.shared.geometry
    }

    fn submit(&self, request: Request) {
        let mut lines = self.shared.lines.lock();
        if lines.closed {
            drop(lines);
            return request.fail(DeviceError::Closed);
        }
        match request {
            Request::Read { .. } => lines.reads.push_back(request),
            Request::Write { .. } | Request::Flush { .. } => lines.writes.push_back(request),
        }
        drop(lines);
        self.shared.wake.notify_one();
    }
}

impl Drop for PoolDevice {
    fn drop(&mut self) {
        self.shared.lines.lock().closed = true;
        self.shared.wake.notify_all();
        let own = std::thread::current().id();
        for thread in self.threads.drain(..) {
            // A completion may hold the last reference: a thread can't wait
            // for itself, and ends by itself. A panic was reported already.
            if thread.thread().id() != own {
                drop(thread.join());
            }
        }
    }
}

impl Shared {
    fn serve(&self) {
        while let Some(request) = self.next() {
            let writing = !matches!(request, Request::Read { .. });
            self.run(request);
            if writing {
                self.lines.lock().writing -= 1;
                self.wake.notify_one();
            }
        }
    }

    /// The next request, reads first; `None` when closed and all is done.
    fn next(&self) -> Option<Request> {
        let mut lines = self.lines.lock();
        loop {
            if let Some(read) = lines.reads.pop_front() {
                return Some(read);
            }
            if lines.writing < self.writers
                && let Some(write) = lines.writes.pop_front()
            {
                lines.writing += 1;
                return Some(write);
            }
            if lines.closed && lines.writes.is_empty() {
                // The others wait for the write that was taken last.
                self.wake.notify_all();
                return None;
            }
            self.wake.wait(&mut lines);
        }
    }

    fn run(&self, request: Request) {
        match request {
            Request::Read { offset, buf, done } => done(self.read(offset, buf)),
            Request::Write {
                offset,
                bytes,
                done,
            } => done(self.write(offset, &bytes)),
            Request::Flush { done } => done(self.file.sync_data().map_err(DeviceError::from)),
        }
    }

    fn read(&self, offset: u64, mut buf: AlignedBuf) -> Result<AlignedBuf, DeviceError> {
        let asked = buf.len();
        let mut done = 0;
        while done < asked {
            match self.file.read_at(&mut buf[done..], place(offset, done)) {
                Ok(0) => return Err(DeviceError::Short { done, asked }),
                Ok(n) => done += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(buf)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        let asked = bytes.len();
        let mut done = 0;
        while done < asked {
            match self.file.write_at(&bytes[done..], place(offset, done)) {
                Ok(0) => return Err(DeviceError::Short { done, asked }),
                Ok(n) => done += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The offset of byte `done` of a request at `offset`.
fn place(offset: u64, done: usize) -> u64 {
    offset.saturating_add(u64::try_from(done).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::{flush_blocking, read_blocking, write_blocking};
    use super::*;

    fn device(len: u64, threads: usize) -> PoolDevice {
        let file = tempfile::tempfile().unwrap();
        file.set_len(len).unwrap();
        let geometry = DeviceGeometry {
            bytes: len,
            sector: 1,
            physical: 4096,
        };
        PoolDevice::new(file, geometry, threads).unwrap()
    }

    #[test]
    fn what_was_written_is_read_back_at_its_offset() {
        for threads in [1, 4] {
            let device = device(1 << 20, threads);
            write_blocking(&device, 8192, AlignedBuf::padded(b"abc", 4096).into_bytes()).unwrap();
            flush_blocking(&device).unwrap();
            let read = read_blocking(&device, 8192, 4096).unwrap();
            assert!(read.starts_with(b"abc\0"));
            assert!(
                read_blocking(&device, 0, 4096)
                    .unwrap()
                    .iter()
                    .all(|b| *b == 0)
            );
        }
    }

    #[test]
    fn a_read_past_the_end_is_short_and_an_offset_past_the_system_s_range_fails() {
        let device = device(8192, 2);
        let short = read_blocking(&device, 4096, 8192).unwrap_err();
        assert_eq!(
            short,
            DeviceError::Short {
                done: 4096,
                asked: 8192
            }
        );
        let far = read_blocking(&device, u64::MAX - 1, 512).unwrap_err();
        assert!(matches!(far, DeviceError::System { .. }), "{far}");
    }

    #[test]
    fn closing_completes_everything_that_was_submitted() {
        for threads in [1, 2, 8] {
            assert_eq!(written_at_close(threads), 200);
        }
    }

    /// Writes that were done of 200 submitted just before the end.
    fn written_at_close(threads: usize) -> usize {
        let device = device(1 << 20, threads);
        let (send, receive) = std::sync::mpsc::channel();
        for n in 0..200 {
            let send = send.clone();
            device.submit(Request::Write {
                offset: n * 4096,
                bytes: AlignedBuf::zeroed(4096).into_bytes(),
                done: Box::new(move |outcome| send.send(outcome).unwrap()),
            });
        }
        drop(device);
        drop(send);
        receive.iter().filter(Result::is_ok).count()
    }
}
