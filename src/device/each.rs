//! Many reads, a few of them under way at a time, by a thread that has nothing
//! else to do.

use super::{DeviceError, Request};
use crate::base::aligned::AlignedBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// A read that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted<T> {
    /// What its answer comes back with.
    pub name: T,
    /// Bytes from the device's start.
    pub offset: u64,
    /// Bytes to read.
    pub len: usize,
}

/// How reads are made.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Reads under way at a time, at least one.
    pub depth: usize,
    /// How long the next answer is waited for; then all that are under way
    /// count as `TimedOut`.
    pub patience: Duration,
}

/// Makes the reads that `next` asks for until it asks for no more, by handing
/// them to `submit`, and gives each answer to `take` in the order in which they
/// come. Blocks: for opening, not for serving.
pub fn read_each<T>(
    pace: Pace,
    submit: impl Fn(Request),
    mut next: impl FnMut() -> Option<Wanted<T>>,
    mut take: impl FnMut(T, Result<AlignedBuf, DeviceError>),
) {
    let mut reads = UnderWay::new();
    loop {
        while reads.names.len() < pace.depth.max(1)
            && let Some(wanted) = next()
        {
            submit(reads.request(wanted));
        }
        if reads.names.is_empty() {
            return;
        }
        for (name, read) in reads.ended(pace.patience) {
            take(name, read);
        }
    }
}

type Answer = (u64, Result<AlignedBuf, DeviceError>);

/// Reads under way, each under a number of its own.
struct UnderWay<T> {
    names: Vec<(u64, T)>,
    next: u64,
    send: Sender<Answer>,
    receive: Receiver<Answer>,
}

impl<T> UnderWay<T> {
    fn new() -> Self {
        let (send, receive) = channel();
        Self {
            names: Vec::new(),
            next: 0,
            send,
            receive,
        }
    }

    fn request(&mut self, wanted: Wanted<T>) -> Request {
        let (number, send) = (self.next, self.send.clone());
        self.next += 1;
        self.names.push((number, wanted.name));
        Request::Read {
            offset: wanted.offset,
            buf: AlignedBuf::recycled(wanted.len),
            // Nobody waits any more for an answer that comes too late.
            done: Box::new(move |read| drop(send.send((number, read)))),
        }
    }

    /// The next answer, or, if none comes in time, that for all of them.
    fn ended(&mut self, patience: Duration) -> Vec<(T, Result<AlignedBuf, DeviceError>)> {
        let Ok((number, read)) = self.receive.recv_timeout(patience) else {
            let late = self.names.drain(..);
            let silent = DeviceError::TimedOut { after: patience };
            return late.map(|(_, name)| (name, Err(silent))).collect();
        };
        let at = self.names.iter().position(|(known, _)| *known == number);
        let named = at.map(|at| self.names.swap_remove(at).1);
        named.map(|name| (name, read)).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Device, MemDisk, write_blocking};
    use bytes::Bytes;
    use std::cell::Cell;

    const COUNT: u64 = 10;

    fn pace(depth: usize, millis: u64) -> Pace {
        Pace {
            depth,
            patience: Duration::from_millis(millis),
        }
    }

    /// Asks for `COUNT` reads of 4096 bytes, one behind the other.
    fn asks() -> impl FnMut() -> Option<Wanted<u64>> {
        let mut names = 0..COUNT;
        move || {
            let name = names.next()?;
            Some(Wanted {
                name,
                offset: name * 4096,
                len: 4096,
            })
        }
    }

    #[test]
    fn each_answer_comes_under_its_name_and_no_more_are_under_way_than_may() {
        let device = MemDisk::blank(64 << 10).device();
        for name in 0..COUNT {
            let bytes = vec![u8::try_from(name).unwrap(); 4096];
            write_blocking(&device, name * 4096, Bytes::from(bytes)).unwrap();
        }
        for (depth, most) in [(0, 1), (1, 1), (3, 3), (64, COUNT)] {
            let (out, max, taken) = (Cell::new(0), Cell::new(0), Cell::new(0));
            let submit = |request| {
                out.set(out.get() + 1);
                max.set(max.get().max(out.get()));
                device.submit(request);
            };
            read_each(pace(depth, 30_000), submit, asks(), |name, read| {
                out.set(out.get() - 1);
                taken.set(taken.get() + 1);
                assert!(read.unwrap().iter().all(|byte| u64::from(*byte) == name));
            });
            assert_eq!((max.get(), taken.get()), (most, COUNT), "depth {depth}");
        }
    }

    #[test]
    fn what_a_silent_device_does_not_answer_has_timed_out_and_an_answer_too_late_is_nobodys() {
        let silent = Cell::new(Vec::new());
        let hold = |request| {
            let mut held = silent.take();
            held.push(request);
            silent.set(held);
        };
        let mut late = Vec::new();
        read_each(pace(4, 1), hold, asks(), |name, read| {
            let after = Duration::from_millis(1);
            assert_eq!(read.map(drop), Err(DeviceError::TimedOut { after }));
            late.push(name);
            silent.take().into_iter().for_each(|request| {
                request.fail(DeviceError::Closed);
            });
        });
        assert_eq!(late, (0..COUNT).collect::<Vec<_>>());
    }
}
