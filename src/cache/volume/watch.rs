//! The requests under way on a span: one that the device does not answer is
//! a fault like another, and who waits for a read is not kept waiting.

use crate::base::aligned::AlignedBuf;
use crate::base::clock::MonoTime;
use crate::device::{DeviceError, Done, Request};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// A request that has not been answered.
struct Waiting {
    /// When it came, or was told of last.
    since: MonoTime,
    /// Who waits for a read. The others keep waiting: what they wrote may
    /// reach the device at any time, so that its buffer must stay.
    read: Option<Done<AlignedBuf>>,
    /// A read that was answered in the device's place.
    is_over: bool,
}

#[derive(Default)]
struct Table {
    next: u64,
    waiting: HashMap<u64, Waiting>,
}

impl Table {
    fn add(&mut self, since: MonoTime, read: Option<Done<AlignedBuf>>) -> u64 {
        self.next += 1;
        let waiting = Waiting {
            since,
            read,
            is_over: false,
        };
        self.waiting.insert(self.next, waiting);
        self.next
    }
}

/// The requests under way.
#[derive(Default)]
pub(super) struct Watch {
    table: Mutex<Table>,
}

impl Watch {
    /// The same request, watched from `now` until it is answered.
    pub(super) fn over(self: &Arc<Self>, request: Request, now: MonoTime) -> Request {
        match request {
            Request::Read { offset, buf, done } => Request::Read {
                offset,
                buf,
                done: self.read(done, now),
            },
            Request::Write {
                offset,
                bytes,
                done,
            } => Request::Write {
                offset,
                bytes,
                done: self.other(done, now),
            },
            Request::Flush { done } => Request::Flush {
                done: self.other(done, now),
            },
        }
    }

    fn read(self: &Arc<Self>, done: Done<AlignedBuf>, now: MonoTime) -> Done<AlignedBuf> {
        let id = self.table.lock().add(now, Some(done));
        let watch = Arc::clone(self);
        Box::new(move |outcome| {
            let waiting = watch.table.lock().waiting.remove(&id);
            if let Some(done) = waiting.and_then(|waiting| waiting.read) {
                done(outcome);
            }
        })
    }

    fn other(self: &Arc<Self>, done: Done<()>, now: MonoTime) -> Done<()> {
        let id = self.table.lock().add(now, None);
        let watch = Arc::clone(self);
        Box::new(move |outcome| {
            watch.table.lock().waiting.remove(&id);
            done(outcome);
        })
    }

    /// Answers the reads that have waited longer than `limit`, and gives how
    /// many other requests have done so, or have once more since they were told
    /// of: a device that stays silent fails again and again, however little it
    /// was asked for.
    pub(super) fn expire(&self, now: MonoTime, limit: Duration) -> usize {
        let (mut reads, mut others) = (Vec::new(), 0);
        let mut table = self.table.lock();
        for waiting in table.waiting.values_mut() {
            if waiting.is_over || now.since(waiting.since) <= limit {
                continue;
            }
            waiting.since = now;
            match waiting.read.take() {
                Some(done) => {
                    waiting.is_over = true;
                    reads.push(done);
                }
                None => others += 1,
            }
        }
        drop(table);
        let after = limit;
        for done in reads {
            done(Err(DeviceError::TimedOut { after }));
        }
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const LIMIT: Duration = Duration::from_secs(30);

    #[test]
    fn a_read_is_answered_once_by_the_device_or_by_the_limit() {
        let watch = Arc::new(Watch::default());
        let start = MonoTime::default();
        for is_late in [false, true] {
            let (send, receive) = channel();
            let request = Request::Read {
                offset: 0,
                buf: AlignedBuf::zeroed(512),
                done: Box::new(move |outcome| send.send(outcome.map(drop)).unwrap()),
            };
            let Request::Read { buf, done, .. } = watch.over(request, start) else {
                panic!("another request");
            };
            watch.expire(start.plus(LIMIT), LIMIT);
            assert!(receive.try_recv().is_err());
            let late = Err(DeviceError::TimedOut { after: LIMIT });
            if is_late {
                watch.expire(start.plus(LIMIT * 2), LIMIT);
            }
            done(Ok(buf));
            assert_eq!(receive.recv(), Ok(if is_late { late } else { Ok(()) }));
            assert!(receive.recv().is_err(), "answered twice");
            assert_eq!(watch.table.lock().waiting.len(), 0);
        }
    }

    #[test]
    fn a_late_write_is_told_of_once_each_limit_and_answered_by_the_device() {
        let watch = Arc::new(Watch::default());
        let (send, receive) = channel();
        let request = Request::Flush {
            done: Box::new(move |outcome| send.send(outcome).unwrap()),
        };
        let Request::Flush { done } = watch.over(request, MonoTime::default()) else {
            panic!("another request");
        };
        let now = MonoTime::default().plus(LIMIT * 2);
        assert_eq!((watch.expire(now, LIMIT), watch.expire(now, LIMIT)), (1, 0));
        let later = [LIMIT, LIMIT * 2].map(|more| watch.expire(now.plus(more), LIMIT));
        assert_eq!(later, [0, 1]);
        assert!(receive.try_recv().is_err());
        done(Ok(()));
        assert_eq!(receive.recv(), Ok(Ok(())));
    }
}
