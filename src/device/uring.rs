//! An `io_uring` that owns what the kernel writes into.
#![expect(
    unsafe_code,
    reason = "a queue entry holds an address that the kernel writes to after the \
              call; docs/decisions/0011 says why each such write meets live memory"
)]

use crate::base::aligned::AlignedBuf;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, Probe, opcode};
use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Times that a ring which goes waits for its last reads.
pub(super) const DRAIN_WAITS: u32 = 50;
/// Each of these waits.
const DRAIN_WAIT: Duration = Duration::from_millis(100);
/// The longest piece of one read, in bytes: what pread moves at most.
const PIECE: usize = 1 << 30;

/// The last offset of the system's; u64::MAX would mean the file's position.
const OFFSET_MAX: u64 = u64::MAX >> 1;

/// A read, with all that must outlive it in the kernel.
pub(super) struct RingRead<T> {
    pub(super) file: Arc<File>,
    /// Bytes from the file's start.
    pub(super) offset: u64,
    /// To be filled from `done` on.
    pub(super) buf: AlignedBuf,
    /// Bytes that earlier pieces of this read have filled.
    pub(super) done: usize,
    /// The owner's own.
    pub(super) tag: T,
}

/// A ring of one thread. Reads that are under way belong to it; it ends only
/// after they have, or else leaves their buffers to the kernel for good.
pub(super) struct Ring<T> {
    ring: IoUring,
    /// By the user data of their queue entry.
    reads: Vec<Option<RingRead<T>>>,
    free: Vec<usize>,
    /// The kernel takes entries from the thread that made the ring only.
    of_one_thread: PhantomData<Rc<()>>,
}

/// Whether the system gives rings that read.
///
/// # Errors
/// The system's word; `EOPNOTSUPP` from a kernel whose rings can't read.
pub(super) fn probe() -> io::Result<()> {
    let ring = setup(1)?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    let reads = probe.is_supported(opcode::Read::CODE) && ring.params().is_feature_ext_arg();
    reads.then_some(()).ok_or(Errno::EOPNOTSUPP.into())
}

/// A ring of `entries`; completions are made known when this thread asks, if
/// the kernel can do that (6.1), else at its next call of any kind (5.19),
/// else by an interrupt.
fn setup(entries: u32) -> io::Result<IoUring> {
    let mut deferred = IoUring::builder();
    deferred
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag();
    let mut cooperative = IoUring::builder();
    cooperative.setup_coop_taskrun().setup_taskrun_flag();
    let not_known = |error: &io::Error| error.raw_os_error() == Some(Errno::EINVAL as i32);
    match deferred.build(entries) {
        Err(error) if not_known(&error) => match cooperative.build(entries) {
            Err(error) if not_known(&error) => IoUring::new(entries),
            made => made,
        },
        made => made,
    }
}

impl<T> Ring<T> {
    /// A ring for `entries` reads at a time, a power of two.
    ///
    /// # Errors
    /// The system's word.
    pub(super) fn new(entries: u32) -> io::Result<Self> {
        let ring = setup(entries)?;
        let entries = usize::try_from(ring.params().sq_entries()).unwrap_or(0);
        Ok(Self {
            ring,
            reads: (0..entries).map(|_| None).collect(),
            free: (0..entries).collect(),
            of_one_thread: PhantomData,
        })
    }

    /// What becomes readable anew whenever something completes, in the runtime
    /// that this is called in.
    ///
    /// # Errors
    /// The system's word.
    pub(super) fn event(&self) -> io::Result<AsyncFd<EventFd>> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let event = EventFd::from_value_and_flags(0, flags)?;
        let submitter = self.ring.submitter();
        submitter.register_eventfd(event.as_fd().as_raw_fd())?;
        // SAFETY: the descriptor is open, and owned by `event`, which gives
        // the same one as long as it lives; the result owns `event`.
        let waited = unsafe { AsyncFd::register_with_interest(event, Interest::READABLE) };
        waited.map_err(io::Error::from)
    }

    /// Reads that may be started now.
    pub(super) const fn room(&self) -> usize {
        self.free.len()
    }

    /// Reads under way.
    pub(super) const fn under_way(&self) -> usize {
        self.reads.len() - self.free.len()
    }

    /// Queues a read for the next [`Ring::turn`]; gives it back when there is
    /// no room.
    pub(super) fn start(&mut self, read: RingRead<T>) -> Result<(), RingRead<T>> {
        let Some(slot) = self.free.pop() else {
            return Err(read);
        };
        let fd = Fd(read.file.as_raw_fd());
        // From here on the read is the ring's: the address stays that of its
        // buffer's storage, on the heap, until the completion is taken.
        let read = self.reads[slot].insert(read);
        let rest = read.buf.get_mut(read.done..).unwrap_or_default();
        let len = u32::try_from(rest.len().min(PIECE)).unwrap_or(0);
        let place = u64::try_from(read.done).unwrap_or(u64::MAX);
        let entry = opcode::Read::new(fd, rest.as_mut_ptr(), len)
            .offset(read.offset.saturating_add(place).min(OFFSET_MAX))
            .build()
            .user_data(u64::try_from(slot).unwrap_or(u64::MAX));
        // SAFETY: the entry names an open file and `len` bytes of initialised
        // memory that nobody else refers to. Both belong to `self.reads[slot]`,
        // which is emptied only by `reap`, when the kernel is done with them,
        // and is never dropped before (see `drop`).
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_err() {
            // There are as many entries as slots; should it ever be full, the
            // kernel knows nothing of this read.
            self.free.push(slot);
            return self.reads[slot].take().map_or(Ok(()), Err);
        }
        Ok(())
    }

    /// Hands what was started to the kernel and takes all that has completed:
    /// only what completes after the return makes the event ready again.
    ///
    /// # Errors
    /// The system's word; what was not taken stays queued.
    pub(super) fn turn(&mut self, ended: &mut Vec<Ended<T>>) -> io::Result<()> {
        // The kernel makes the event ready when it defers work while none is
        // deferred, and not for what comes on top. A call does some twenty
        // pieces of that work, of which any may complete nothing (a read that
        // must wait once more). So whoever leaves a piece undone may wait for
        // ever. What a call leaves is said by a flag before the call returns;
        // what is deferred after it finds nothing deferred, and is announced.
        while self.under_way() > 0 {
            let called = self.enter();
            self.reap(ended);
            called?;
            if !self.has_more() {
                break;
            }
        }
        Ok(())
    }

    /// Whether the last call left entries in the queue, or deferred work.
    fn has_more(&mut self) -> bool {
        let queue = self.ring.submission();
        queue.taskrun() || !queue.is_empty()
    }

    /// Hands the queue over, and has what is deferred made known. Waits for
    /// nothing.
    fn enter(&mut self) -> io::Result<()> {
        let queued = self.ring.submission().len();
        let queued = u32::try_from(queued).unwrap_or(0);
        let flags = EnterFlags::GETEVENTS.bits();
        // SAFETY: no argument is passed, and so many entries are queued; what
        // they point to is alive (see `start`).
        let called = unsafe { self.ring.submitter().enter::<()>(queued, 0, flags, None) };
        called.map(drop)
    }

    /// Waits at most `limit` for something to complete, and takes it.
    pub(super) fn wait(&mut self, limit: Duration, ended: &mut Vec<Ended<T>>) {
        let limit = Timespec::from(limit);
        let args = SubmitArgs::new().timespec(&limit);
        let waited = self.ring.submitter().submit_with_args(1, &args);
        if let Err(error) = waited
            && !matches!(
                Errno::from_raw(error.raw_os_error().unwrap_or(0)),
                Errno::ETIME | Errno::EINTR
            )
        {
            tracing::debug!(%error, "a wait for the ring's reads failed");
        }
        self.reap(ended);
    }

    fn reap(&mut self, ended: &mut Vec<Ended<T>>) {
        for entry in self.ring.completion() {
            let slot = usize::try_from(entry.user_data()).unwrap_or(usize::MAX);
            let read = self.reads.get_mut(slot).and_then(Option::take);
            if let Some(read) = read {
                self.free.push(slot);
                let result = usize::try_from(entry.result())
                    .map_err(|_| Errno::from_raw(entry.result().saturating_neg()));
                ended.push(Ended { read, result });
            }
        }
    }
}

/// A read that the kernel is done with.
pub(super) struct Ended<T> {
    pub(super) read: RingRead<T>,
    /// Bytes that this piece has filled.
    pub(super) result: Result<usize, Errno>,
}

impl<T> Ring<T> {
    /// Waits for the reads under way, until so many waits have brought none.
    /// Those that have not ended then are given up: their tags are returned,
    /// their buffers are the kernel's for good.
    pub(super) fn close(&mut self, waits: u32, ended: &mut Vec<Ended<T>>) -> Vec<T> {
        let mut vain = 0;
        while vain < waits {
            if self.under_way() == 0 {
                return Vec::new();
            }
            let before = ended.len();
            self.wait(DRAIN_WAIT, ended);
            vain += u32::from(ended.len() == before);
        }
        let left = self.reads.drain(..).flatten().map(|read| {
            // The kernel may still write into these: nobody may get the memory.
            std::mem::forget((read.file, read.buf));
            read.tag
        });
        let left: Vec<T> = left.collect();
        self.free.clear();
        tracing::error!(
            reads = left.len(),
            "a device never answered: its buffers are lost"
        );
        left
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        self.close(DRAIN_WAITS, &mut Vec::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read_of(file: impl Into<std::os::fd::OwnedFd>, tag: u8) -> RingRead<u8> {
        RingRead {
            file: Arc::new(File::from(file.into())),
            offset: 0,
            buf: AlignedBuf::zeroed(4096),
            done: 0,
            tag,
        }
    }

    #[test]
    fn a_read_that_never_ends_is_given_up_and_the_others_are_taken() {
        let (never, _writer) = io::pipe().unwrap();
        let (ready, mut writer) = io::pipe().unwrap();
        writer.write_all(b"abc").unwrap();
        let mut ring = Ring::new(4).unwrap();
        assert!(ring.start(read_of(never, 1)).is_ok());
        assert!(ring.start(read_of(ready, 2)).is_ok());
        let mut ended = Vec::new();
        assert_eq!(ring.close(3, &mut ended), [1]);
        assert_eq!(ended.len(), 1);
        assert_eq!((ended[0].read.tag, ended[0].result), (2, Ok(3)));
        assert!(ended[0].read.buf.starts_with(b"abc\0"));
        assert_eq!((ring.room(), ring.under_way()), (0, 0));
    }

    #[test]
    fn a_ring_that_goes_gives_up_no_read_while_others_end() {
        let mut ring = Ring::new(128).unwrap();
        let mut pipes = Vec::new();
        for tag in 0..100 {
            let (reader, writer) = io::pipe().unwrap();
            pipes.push(writer);
            assert!(ring.start(read_of(reader, tag)).is_ok());
        }
        let mut ended = Vec::new();
        ring.turn(&mut ended).unwrap();
        drop(pipes);
        assert!(ring.close(1, &mut ended).is_empty());
        assert_eq!(ended.len(), 100);
    }

    #[test]
    fn a_turn_takes_everything_that_has_completed() {
        let mut ring = Ring::new(128).unwrap();
        let mut pipes = Vec::new();
        for tag in 0..100 {
            let (reader, writer) = io::pipe().unwrap();
            pipes.push(writer);
            assert!(ring.start(read_of(reader, tag)).is_ok());
        }
        let mut ended = Vec::new();
        ring.turn(&mut ended).unwrap();
        assert!(ended.is_empty());
        drop(pipes);
        ring.turn(&mut ended).unwrap();
        assert_eq!(ended.len(), 100);
    }

    /// Readers of one pipe are all woken by one byte, and all but one of them
    /// wait again: work that completes nothing, before what does.
    #[test]
    fn what_completes_behind_much_that_does_not_is_taken_in_the_same_turn() {
        let mut ring = Ring::new(256).unwrap();
        let (crowded, mut byte) = io::pipe().unwrap();
        let (behind, mut other) = io::pipe().unwrap();
        for _ in 0..200 {
            let reader = crowded.try_clone().unwrap();
            assert!(ring.start(read_of(reader, 1)).is_ok());
        }
        assert!(ring.start(read_of(behind, 2)).is_ok());
        let mut ended = Vec::new();
        ring.turn(&mut ended).unwrap();
        assert!(ended.is_empty());
        byte.write_all(b"a").unwrap();
        other.write_all(b"b").unwrap();
        ring.turn(&mut ended).unwrap();
        let mut tags: Vec<u8> = ended.iter().map(|ended| ended.read.tag).collect();
        tags.sort_unstable();
        assert_eq!(tags, [1, 2]);
        drop((byte, crowded));
    }

    #[test]
    fn a_ring_takes_no_more_than_it_has_room_for() {
        let mut pipes = Vec::new();
        let mut ring = Ring::new(2).unwrap();
        for tag in 0..3 {
            let (reader, writer) = io::pipe().unwrap();
            pipes.push(writer);
            let back = ring.start(read_of(reader, tag)).err();
            assert_eq!(back.map(|read| read.tag), (tag == 2).then_some(2));
        }
        drop(pipes);
        let mut ended = Vec::new();
        assert!(ring.close(DRAIN_WAITS, &mut ended).is_empty());
        assert_eq!(ended.iter().filter(|e| e.result == Ok(0)).count(), 2);
    }
}
