//! Reads of an event thread by a ring of its own: started together once a
//! turn of its loop, and completed on it.

use super::uring::{DRAIN_WAITS, Ended, Ring, RingRead};
use super::{Device, DeviceError, DeviceGeometry, Done, PATIENCE, PoolDevice, Request};
use crate::base::aligned::AlignedBuf;
use nix::errno::Errno;
use nix::sys::eventfd::EventFd;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// Reads that one thread has under way, over all devices.
const ENTRIES: u32 = 1024;
/// Looks at whether the last reads of a closed device have ended.
const CLOSE_LOOKS: u32 = 5000;
/// Time between two of them.
const CLOSE_PAUSE: Duration = Duration::from_millis(1);

thread_local! {
    static HERE: RefCell<Option<Rc<ThreadRing>>> = const { RefCell::new(None) };
}

/// What a device bounds its reads by.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadLimits {
    /// Reads that one event thread has under way, at least 1.
    pub(super) depth: usize,
    /// Reads that wait beside them, before one is refused.
    pub(super) queue: usize,
}

/// A device whose reads go by the ring of the thread that asks, if it has one.
/// Everything else is a pool's.
pub(super) struct RingDevice {
    file: Arc<File>,
    limits: ReadLimits,
    pool: Option<PoolDevice>,
}

impl RingDevice {
    pub(super) const fn new(file: Arc<File>, limits: ReadLimits, pool: PoolDevice) -> Self {
        Self {
            file,
            limits,
            pool: Some(pool),
        }
    }
}

impl Device for RingDevice {
    fn geometry(&self) -> DeviceGeometry {
        let pool = self.pool.as_ref();
        pool.expect("the pool goes with the device").geometry()
    }

    fn patience(&self) -> Duration {
        self.pool.as_ref().map_or(PATIENCE, PoolDevice::patience)
    }

    fn submit(&self, request: Request) {
        match (here(), request) {
            (Some(here), Request::Read { offset, buf, done }) => {
                let tag = Tag {
                    device: self.file.as_raw_fd(),
                    done,
                };
                let read = RingRead {
                    file: Arc::clone(&self.file),
                    offset,
                    buf,
                    done: 0,
                    tag,
                };
                here.submit(read, self.limits);
            }
            (_, request) => match &self.pool {
                Some(pool) => pool.submit(request),
                None => request.fail(DeviceError::Closed),
            },
        }
    }

    fn submit_to_block(&self, request: Request) {
        match &self.pool {
            Some(pool) => pool.submit_to_block(request),
            None => request.fail(DeviceError::Closed),
        }
    }
}

impl Drop for RingDevice {
    /// Returns when the last read has ended, so that the file is closed.
    fn drop(&mut self) {
        self.pool.take();
        for _ in 0..CLOSE_LOOKS {
            if let Some(here) = here() {
                here.turn();
            }
            if Arc::strong_count(&self.file) == 1 {
                return;
            }
            std::thread::park_timeout(CLOSE_PAUSE);
        }
        tracing::error!("a closed device still reads: it can't be opened again yet");
    }
}

/// This thread's ring.
fn here() -> Option<Rc<ThreadRing>> {
    HERE.with_borrow(Clone::clone)
}

/// What a read of the ring is for.
struct Tag {
    /// Names the device while the read holds it open.
    device: RawFd,
    done: Done<AlignedBuf>,
}

type Read = RingRead<Tag>;
type Answer = (Done<AlignedBuf>, Result<AlignedBuf, DeviceError>);

/// The reads of one device.
struct Lane {
    device: RawFd,
    depth: usize,
    under_way: usize,
    waiting: VecDeque<Read>,
}

struct State {
    ring: Ring<Tag>,
    lanes: Vec<Lane>,
    /// Whether a turn is asked for.
    asked: bool,
}

/// A thread's ring and what wakes its turns.
struct ThreadRing {
    state: RefCell<State>,
    event: AsyncFd<EventFd>,
    waker: RefCell<Option<Waker>>,
}

/// Gives this thread a ring for its reads, until the future is dropped: it
/// must be polled on the thread, inside a runtime. Reads that are under way
/// then are waited for; those that wait fail as `Closed`.
///
/// # Errors
/// The system gives no ring; reads go by the device's threads then.
pub async fn drive_reads() -> io::Result<Infallible> {
    let attached = Attached::new()?;
    poll_fn(|context| attached.0.poll(context)).await
}

struct Attached(Rc<ThreadRing>);

impl Attached {
    fn new() -> io::Result<Self> {
        let ring = Ring::new(ENTRIES)?;
        let event = ring.event()?;
        let here = Rc::new(ThreadRing {
            state: RefCell::new(State {
                ring,
                lanes: Vec::new(),
                asked: false,
            }),
            event,
            waker: RefCell::new(None),
        });
        HERE.set(Some(Rc::clone(&here)));
        Ok(Self(here))
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        HERE.set(None);
        let answers = self.0.state.borrow_mut().close();
        answer(answers);
    }
}

impl ThreadRing {
    fn poll(&self, context: &mut Context<'_>) -> Poll<io::Result<Infallible>> {
        self.waker.replace(Some(context.waker().clone()));
        // The eventfd is never read: each completion makes it ready anew.
        while let Poll::Ready(ready) = self.event.poll_read_ready(context) {
            match ready {
                Ok(mut ready) => ready.clear_ready(),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        self.turn();
        Poll::Pending
    }

    fn submit(&self, read: Read, limits: ReadLimits) {
        let mut state = self.state.borrow_mut();
        let refused = state.take(read, limits);
        let ask = !std::mem::replace(&mut state.asked, true);
        drop(state);
        if let Some(read) = refused {
            (read.tag.done)(Err(DeviceError::Busy));
        }
        if ask {
            self.wake();
        }
    }

    /// Has the turn made after what is ready to run now, so that all of it
    /// goes to the kernel in one call.
    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    fn turn(&self) {
        self.state.borrow_mut().asked = false;
        loop {
            let (answers, more) = self.state.borrow_mut().turn();
            answer(answers);
            match more {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    tracing::debug!(%error, "the ring takes no reads just now");
                    return self.wake();
                }
            }
        }
    }
}

/// Tells whoever asked; the state is not borrowed, so that they may ask again.
fn answer(answers: Vec<Answer>) {
    for (done, outcome) in answers {
        done(outcome);
    }
}

impl State {
    /// Takes a read in; gives it back when too many wait.
    fn take(&mut self, read: Read, limits: ReadLimits) -> Option<Read> {
        let device = read.tag.device;
        let at = self.lane(device);
        let lane = &mut self.lanes[at];
        lane.depth = limits.depth.max(1);
        if lane.waiting.len() >= limits.queue && !lane.may_start(&self.ring) {
            return Some(read);
        }
        lane.waiting.push_back(read);
        self.start_waiting();
        None
    }

    fn lane(&mut self, device: RawFd) -> usize {
        if let Some(at) = self.lanes.iter().position(|lane| lane.device == device) {
            return at;
        }
        self.lanes.retain(|lane| !lane.is_idle());
        self.lanes.push(Lane {
            device,
            depth: 1,
            under_way: 0,
            waiting: VecDeque::new(),
        });
        self.lanes.len() - 1
    }

    /// Starts what may be; whether something was.
    fn start_waiting(&mut self) -> bool {
        let mut started = false;
        for lane in &mut self.lanes {
            while lane.may_start(&self.ring)
                && let Some(read) = lane.waiting.pop_front()
            {
                lane.under_way += 1;
                if let Err(read) = self.ring.start(read) {
                    lane.under_way -= 1;
                    lane.waiting.push_front(read);
                    break;
                }
                started = true;
            }
        }
        started
    }

    /// One exchange with the kernel: the answers, and whether there is reason
    /// for another one.
    fn turn(&mut self) -> (Vec<Answer>, io::Result<bool>) {
        let mut ended = Vec::new();
        let called = self.ring.turn(&mut ended);
        let mut answers = Vec::with_capacity(ended.len());
        for ended in ended {
            match settle(ended) {
                Settled::Answer(device, answer) => {
                    self.leave(device);
                    answers.push(answer);
                }
                Settled::Rest(read) => {
                    let at = self.lane(read.tag.device);
                    self.lanes[at].under_way -= 1;
                    self.lanes[at].waiting.push_front(read);
                }
            }
        }
        let more = self.start_waiting();
        (answers, called.map(|()| more))
    }

    fn leave(&mut self, device: RawFd) {
        let lane = self.lanes.iter_mut().find(|lane| lane.device == device);
        if let Some(lane) = lane {
            lane.under_way -= 1;
        }
    }

    fn close(&mut self) -> Vec<Answer> {
        let lanes = self.lanes.drain(..);
        let waiting = lanes.flat_map(|lane| lane.waiting);
        let mut answers: Vec<Answer> = waiting.map(|read| closed(read.tag)).collect();
        let mut ended = Vec::new();
        let left = self.ring.close(DRAIN_WAITS, &mut ended);
        answers.extend(ended.into_iter().map(|ended| match settle(ended) {
            Settled::Answer(_, answer) => answer,
            Settled::Rest(read) => closed(read.tag),
        }));
        answers.extend(left.into_iter().map(closed));
        answers
    }
}

impl Lane {
    fn may_start(&self, ring: &Ring<Tag>) -> bool {
        self.under_way < self.depth && ring.room() > 0
    }

    fn is_idle(&self) -> bool {
        self.under_way == 0 && self.waiting.is_empty()
    }
}

fn closed(tag: Tag) -> Answer {
    (tag.done, Err(DeviceError::Closed))
}

/// What follows from a completion.
enum Settled {
    Answer(RawFd, Answer),
    /// The read is not full yet.
    Rest(Read),
}

fn settle(ended: Ended<Tag>) -> Settled {
    let Ended { mut read, result } = ended;
    let asked = read.buf.len();
    let outcome = match result {
        Err(Errno::EINTR) => return Settled::Rest(read),
        Err(errno) => Err(errno.into()),
        Ok(0) if read.done < asked => Err(DeviceError::Short {
            done: read.done,
            asked,
        }),
        Ok(more) => {
            read.done += more;
            if read.done < asked {
                return Settled::Rest(read);
            }
            Ok(read.buf)
        }
    };
    Settled::Answer(read.tag.device, (read.tag.done, outcome))
}
