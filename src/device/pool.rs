//! A device served by a bounded pool of threads with pread and pwrite.

use super::{Device, DeviceError, DeviceGeometry, PATIENCE, Request};
use crate::base::aligned::AlignedBuf;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A write goes to the system in pieces of at most so many bytes: a read that
/// comes meanwhile waits for a piece, not for the whole of it.
const WRITE_PIECE: usize = 1 << 20;

/// Each kind waits in its own line. One write and one flush run at a time: a
/// disk gains nothing by more, and a read never waits behind several.
#[derive(Default)]
struct Lines {
    reads: VecDeque<Request>,
    writes: VecDeque<Request>,
    flushes: VecDeque<Request>,
    writing: bool,
    flushing: bool,
    closed: bool,
    /// Threads that have not ended.
    alive: usize,
    /// Those of them that run a request.
    running: usize,
}

/// What a request in a line needs to run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Flush,
}

struct Shared {
    file: Arc<File>,
    geometry: DeviceGeometry,
    lines: Mutex<Lines>,
    wake: Condvar,
    /// Told when a thread has ended.
    ended: Condvar,
    /// Reads that may wait when no thread is free.
    queue: usize,
    /// Threads that may be writing or flushing.
    writers: usize,
}

/// A device over an open file. Closing waits for what was submitted, as long
/// as its patience lasts.
pub struct PoolDevice {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    patience: Duration,
}

impl PoolDevice {
    /// A device over `file`, served by `threads` threads, at least one. From
    /// three on, a write and a flush leave one to read; `queue` reads may wait
    /// for it.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn new(
        file: Arc<File>,
        geometry: DeviceGeometry,
        threads: usize,
        queue: usize,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            file,
            geometry,
            lines: Mutex::default(),
            wake: Condvar::new(),
            ended: Condvar::new(),
            queue,
            writers: threads.saturating_sub(1).max(1),
        });
        let mut device = Self {
            shared: Arc::clone(&shared),
            threads: Vec::new(),
            patience: PATIENCE,
        };
        for _ in 0..threads.max(1) {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("strata-disk".into());
            device.threads.push(thread.spawn(move || shared.serve())?);
            device.shared.lines.lock().alive += 1;
        }
        Ok(device)
    }

    /// The same device, on whose answers who opens or closes it waits so long.
    #[must_use]
    pub const fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Waits until all threads but this one have ended; false if one does not.
    fn are_ended(&self) -> bool {
        let own = std::thread::current().id();
        let mut others = self.threads.iter().map(|thread| thread.thread().id());
        // A completion may hold the last reference: a thread can't wait for
        // itself, and ends by itself.
        let left = usize::from(others.any(|id| id == own));
        let mut lines = self.shared.lines.lock();
        let ended = &self.shared.ended;
        let waited = ended.wait_while_for(&mut lines, |lines| lines.alive > left, self.patience);
        !waited.timed_out()
    }

    /// Lets the threads go that have ended, and with them what they hold of the
    /// file: before that, the device can't be opened again.
    fn join(&mut self) {
        let own = std::thread::current().id();
        let ended = self.threads.drain(..).filter(|t| t.thread().id() != own);
        ended.for_each(|thread| drop(thread.join()));
    }
}

impl Device for PoolDevice {
    fn geometry(&self) -> DeviceGeometry {
        self.shared.geometry
    }

    fn patience(&self) -> Duration {
        self.patience
    }

    fn submit(&self, request: Request) {
        self.shared.take(request, self.shared.queue);
    }

    /// A thread that is blocked waits for one read: such are no crowd.
    fn submit_to_block(&self, request: Request) {
        self.shared.take(request, usize::MAX);
    }
}

impl Drop for PoolDevice {
    fn drop(&mut self) {
        self.shared.lines.lock().closed = true;
        self.shared.wake.notify_all();
        if self.are_ended() {
            return self.join();
        }
        // The threads wait in the system, which can't be helped: they are left
        // to it, and end when it lets them.
        tracing::error!(
            seconds = self.patience.as_secs(),
            "a closed device does not answer: it can't be opened again before it does"
        );
        let waiting = self.shared.lines.lock().take_all();
        for request in waiting {
            request.fail(DeviceError::Closed);
        }
    }
}

impl Kind {
    const fn of(request: &Request) -> Self {
        match request {
            Request::Read { .. } => Self::Read,
            Request::Write { .. } => Self::Write,
            Request::Flush { .. } => Self::Flush,
        }
    }
}

impl Lines {
    fn push(&mut self, request: Request) {
        let line = match Kind::of(&request) {
            Kind::Read => &mut self.reads,
            Kind::Write => &mut self.writes,
            Kind::Flush => &mut self.flushes,
        };
        line.push_back(request);
    }

    /// Whether one more read would be more than may wait.
    fn is_full(&self, queue: usize) -> bool {
        let free = self.alive.saturating_sub(self.running);
        self.reads.len() >= queue.saturating_add(free)
    }

    /// The next request that may run now.
    fn pop(&mut self, writers: usize) -> Option<Request> {
        let next = self.choose(writers);
        self.running += usize::from(next.is_some());
        next
    }

    /// A write or a flush comes first: as they take `writers` threads at most,
    /// reads have the others.
    fn choose(&mut self, writers: usize) -> Option<Request> {
        let busy = usize::from(self.writing) + usize::from(self.flushing);
        if busy >= writers {
            return self.reads.pop_front();
        }
        if !self.writing
            && let Some(write) = self.writes.pop_front()
        {
            self.writing = true;
            return Some(write);
        }
        if !self.flushing
            && let Some(flush) = self.flushes.pop_front()
        {
            self.flushing = true;
            return Some(flush);
        }
        self.reads.pop_front()
    }

    /// Notes that a request has ended.
    fn left(&mut self, kind: Kind) {
        self.running -= 1;
        match kind {
            Kind::Read => {}
            Kind::Write => self.writing = false,
            Kind::Flush => self.flushing = false,
        }
    }

    fn take_all(&mut self) -> Vec<Request> {
        let lines = [&mut self.reads, &mut self.writes, &mut self.flushes];
        lines.into_iter().flat_map(std::mem::take).collect()
    }

    fn are_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty() && self.flushes.is_empty()
    }
}

/// Counts the end of a thread, by a panic too.
struct Alive<'a>(&'a Shared);

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        self.0.lines.lock().alive -= 1;
        self.0.ended.notify_all();
    }
}

impl Shared {
    /// Puts a request in its line, but no read when `queue` wait already and no
    /// thread is free.
    fn take(&self, request: Request, queue: usize) {
        let mut lines = self.lines.lock();
        if lines.closed {
            drop(lines);
            return request.fail(DeviceError::Closed);
        }
        if Kind::of(&request) == Kind::Read && lines.is_full(queue) {
            drop(lines);
            return request.fail(DeviceError::Busy);
        }
        lines.push(request);
        drop(lines);
        self.wake.notify_one();
    }

    fn serve(&self) {
        let _alive = Alive(self);
        while let Some(request) = self.next() {
            let kind = Kind::of(&request);
            self.run(request);
            self.lines.lock().left(kind);
            if kind != Kind::Read {
                self.wake.notify_one();
            }
        }
    }

    /// The next request; `None` when closed and all is done.
    fn next(&self) -> Option<Request> {
        let mut lines = self.lines.lock();
        loop {
            if let Some(request) = lines.pop(self.writers) {
                return Some(request);
            }
            if lines.closed && lines.are_empty() {
                // The others wait for the request that was taken last.
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
            match self.file.write_at(piece(bytes, done), place(offset, done)) {
                Ok(0) => return Err(DeviceError::Short { done, asked }),
                Ok(n) => done += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// What to write next when `done` bytes are written.
fn piece(bytes: &[u8], done: usize) -> &[u8] {
    let end = done.saturating_add(WRITE_PIECE).min(bytes.len());
    bytes.get(done..end).unwrap_or_default()
}

/// The offset of byte `done` of a request at `offset`.
fn place(offset: u64, done: usize) -> u64 {
    offset.saturating_add(u64::try_from(done).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::read_blocking;
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// A device of 64 KiB over one thread, where no read may wait.
    fn narrow() -> PoolDevice {
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 << 10).unwrap();
        let geometry = DeviceGeometry {
            bytes: 64 << 10,
            sector: 1,
            physical: 4096,
        };
        PoolDevice::new(Arc::new(file), geometry, 1, 0).unwrap()
    }

    /// Keeps the thread busy until the sender is dropped; returns once it is.
    fn occupy(device: &PoolDevice) -> Sender<()> {
        let (hold, held) = channel::<()>();
        let (begun, begins) = channel();
        device.submit(Request::Flush {
            done: Box::new(move |_| {
                begun.send(()).unwrap();
                held.recv().unwrap_err();
            }),
        });
        begins.recv().unwrap();
        hold
    }

    fn read(device: &PoolDevice) -> Result<(), DeviceError> {
        let (send, receive) = channel();
        device.submit(Request::Read {
            offset: 0,
            buf: AlignedBuf::zeroed(512),
            done: Box::new(move |outcome| send.send(outcome.map(drop)).unwrap()),
        });
        receive.recv().unwrap()
    }

    #[test]
    fn without_a_queue_a_read_is_refused_only_when_no_thread_is_free() {
        let device = narrow();
        assert_eq!(read(&device), Ok(()));
        let hold = occupy(&device);
        assert_eq!(read(&device), Err(DeviceError::Busy));
        drop(hold);
        // The thread is free once it has ended what it ran.
        while read(&device) == Err(DeviceError::Busy) {
            std::thread::yield_now();
        }
    }

    #[test]
    fn who_is_blocked_by_a_read_waits_its_turn_however_short_the_queue() {
        let device = narrow();
        let hold = occupy(&device);
        std::thread::scope(|scope| {
            let blocked = scope.spawn(|| read_blocking(&device, 0, 512).map(drop));
            while device.shared.lines.lock().are_empty() && !blocked.is_finished() {
                std::thread::yield_now();
            }
            drop(hold);
            assert_eq!(blocked.join().unwrap(), Ok(()));
        });
    }
}
