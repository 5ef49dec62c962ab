//! A device that fails as it is told to, for tests: it is compiled in by the
//! cargo feature `faults` only.
//!
//! The variable `STRATA_FAULTS` names a control file. It is read before each
//! request, so that a fault begins and ends while the server runs. A line is
//! the path of a device as storage.config names it, made absolute, and what
//! it does:
//!
//! | line           | from now on                                            |
//! |----------------|--------------------------------------------------------|
//! | `PATH dead`    | every request fails with EIO                           |
//! | `PATH eio N`   | about one request in N fails with EIO                  |
//! | `PATH short N` | about one read in N is short                           |
//! | `PATH flip N`  | about one read in N has a bit turned                   |
//! | `PATH slow N`  | a write takes N ms longer                              |
//! | `PATH hang`    | requests stay unanswered, until the line is gone       |
//! | `PATH stuck`   | an answer blocks its thread, until the line is gone     |
//! | `seed N`       | which requests are hit follows from N, not from chance |
//!
//! A line that is none of these is no fault.

use super::{Device, DeviceError, DeviceGeometry, Done, Request};
use crate::base::aligned::AlignedBuf;
use crate::base::prng::{Prng, system_u64};
use nix::errno::Errno;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Names the control file.
const VARIABLE: &str = "STRATA_FAULTS";
/// Time between two looks of a stuck thread.
const STUCK_LOOK: Duration = Duration::from_millis(10);

/// What a device does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Dead,
    Eio(u64),
    Short(u64),
    Flip(u64),
    Slow(u64),
    Hang,
    Stuck,
}

/// What the control file says of one device.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    faults: Vec<Fault>,
    seed: Option<u64>,
}

impl Told {
    fn of(text: &str, path: &Path) -> Self {
        let mut told = Self::default();
        for line in text.lines() {
            match *line.split_whitespace().collect::<Vec<_>>() {
                ["seed", number] => told.seed = number.parse().ok(),
                [named, ref words @ ..] if Path::new(named) == path => {
                    told.faults.extend(fault(words));
                }
                _ => {}
            }
        }
        told
    }
}

fn fault(words: &[&str]) -> Option<Fault> {
    let number = words.get(1).and_then(|word| word.parse().ok());
    match (*words.first()?, number) {
        ("dead", None) => Some(Fault::Dead),
        ("hang", None) => Some(Fault::Hang),
        ("stuck", None) => Some(Fault::Stuck),
        ("eio", Some(one_in)) => Some(Fault::Eio(one_in)),
        ("short", Some(one_in)) => Some(Fault::Short(one_in)),
        ("flip", Some(one_in)) => Some(Fault::Flip(one_in)),
        ("slow", Some(ms)) => Some(Fault::Slow(ms)),
        _ => None,
    }
}

/// `device`, which lies at `path`, with the faults of the control file; just
/// itself if the variable names none.
pub(super) fn wrap(device: Arc<dyn Device>, path: &Path) -> Arc<dyn Device> {
    let Some(control) = std::env::var_os(VARIABLE) else {
        return device;
    };
    tracing::warn!(path = %path.display(), control = %PathBuf::from(&control).display(),
        "this device fails as the control file says: for tests only");
    Arc::new(FaultyDevice::new(device, path, control.into()))
}

struct FaultyDevice {
    inner: Arc<dyn Device>,
    path: PathBuf,
    control: PathBuf,
    /// The seed, once the control file has named one, and what follows.
    chance: Mutex<(Option<u64>, Prng)>,
    held: Mutex<Vec<Request>>,
}

impl FaultyDevice {
    fn new(inner: Arc<dyn Device>, path: &Path, control: PathBuf) -> Self {
        Self {
            inner,
            path: path.to_owned(),
            control,
            chance: Mutex::new((None, Prng::seeded(system_u64()))),
            held: Mutex::default(),
        }
    }

    /// The fault that hits this request.
    fn strikes(&self, request: &Request) -> Option<Fault> {
        let text = std::fs::read_to_string(&self.control).unwrap_or_default();
        let told = Told::of(&text, &self.path);
        let mut chance = self.chance.lock();
        if told.seed.is_some() && chance.0 != told.seed {
            *chance = (told.seed, Prng::seeded(told.seed.unwrap_or_default()));
        }
        let is_read = matches!(request, Request::Read { .. });
        let is_write = matches!(request, Request::Write { .. });
        let mut faults = told.faults.into_iter();
        faults.find(|fault| match fault {
            Fault::Dead | Fault::Hang | Fault::Stuck => true,
            Fault::Slow(_) => is_write,
            Fault::Eio(one_in) => chance.1.below(*one_in) == 0,
            Fault::Short(one_in) | Fault::Flip(one_in) => is_read && chance.1.below(*one_in) == 0,
        })
    }

    /// A request whose completion blocks its thread while the control file
    /// says so, as a device does that the system waits for.
    fn stuck(&self, request: Request) -> Request {
        let (control, path) = (self.control.clone(), self.path.clone());
        let block = move || {
            let text = || std::fs::read_to_string(&control).unwrap_or_default();
            while Told::of(&text(), &path).faults.contains(&Fault::Stuck) {
                std::thread::park_timeout(STUCK_LOOK);
            }
        };
        match request {
            Request::Read { offset, buf, done } => Request::Read {
                offset,
                buf,
                done: after(block, done),
            },
            Request::Write {
                offset,
                bytes,
                done,
            } => Request::Write {
                offset,
                bytes,
                done: after(block, done),
            },
            Request::Flush { done } => Request::Flush {
                done: after(block, done),
            },
        }
    }

    /// Hands on what was held. Who asked may be blocked by now.
    fn release(&self) {
        let held = std::mem::take(&mut *self.held.lock());
        for request in held {
            self.inner.submit_to_block(request);
        }
    }

    /// Has `hand_on` start the request on the device below, or what became of
    /// it.
    fn pass(&self, request: Request, hand_on: impl FnOnce(Request)) {
        match self.strikes(&request) {
            None => {
                self.release();
                hand_on(request);
            }
            Some(Fault::Dead | Fault::Eio(_)) => request.fail(Errno::EIO.into()),
            Some(Fault::Short(_)) => {
                let asked = asked(&request);
                request.fail(DeviceError::Short { done: 0, asked });
            }
            Some(Fault::Flip(_)) => {
                let chosen = self.chance.lock().1.next_u64();
                hand_on(flipped(request, chosen));
            }
            Some(Fault::Slow(ms)) => {
                let inner = Arc::clone(&self.inner);
                std::thread::spawn(move || {
                    std::thread::park_timeout(Duration::from_millis(ms));
                    inner.submit_to_block(request);
                });
            }
            Some(Fault::Hang) => self.held.lock().push(request),
            Some(Fault::Stuck) => self.inner.submit_to_block(self.stuck(request)),
        }
    }
}

impl Device for FaultyDevice {
    fn geometry(&self) -> DeviceGeometry {
        self.inner.geometry()
    }

    fn patience(&self) -> Duration {
        self.inner.patience()
    }

    fn submit(&self, request: Request) {
        self.pass(request, |request| self.inner.submit(request));
    }

    fn submit_to_block(&self, request: Request) {
        self.pass(request, |request| self.inner.submit_to_block(request));
    }
}

impl Drop for FaultyDevice {
    fn drop(&mut self) {
        for request in self.held.get_mut().drain(..) {
            request.fail(DeviceError::Closed);
        }
    }
}

fn after<T: 'static>(block: impl FnOnce() + Send + 'static, done: Done<T>) -> Done<T> {
    Box::new(move |outcome| {
        block();
        done(outcome);
    })
}

fn asked(request: &Request) -> usize {
    match request {
        Request::Read { buf, .. } => buf.len(),
        Request::Write { bytes, .. } => bytes.len(),
        Request::Flush { .. } => 0,
    }
}

/// A read that ends with the chosen bit turned.
fn flipped(request: Request, chosen: u64) -> Request {
    let Request::Read { offset, buf, done } = request else {
        return request;
    };
    let turn = move |mut read: AlignedBuf| {
        let at = usize::try_from(chosen >> 3).unwrap_or(0) % read.len().max(1);
        if let Some(byte) = read.get_mut(at) {
            *byte ^= 1 << (chosen & 7);
        }
        read
    };
    Request::Read {
        offset,
        buf,
        done: Box::new(move |outcome| done(outcome.map(turn))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MemDisk, read_blocking, write_blocking};
    use super::*;
    use bytes::Bytes;

    const PATH: &str = "/dev/one";

    struct Bench {
        dir: tempfile::TempDir,
        device: Arc<FaultyDevice>,
    }

    fn bench() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let inner = Arc::new(MemDisk::blank(1 << 20).device());
        let control = dir.path().join("faults");
        let device = Arc::new(FaultyDevice::new(inner, Path::new(PATH), control));
        Bench { dir, device }
    }

    impl Bench {
        fn tell(&self, text: &str) {
            std::fs::write(self.dir.path().join("faults"), text).unwrap();
        }

        fn read(&self) -> Result<Vec<u8>, DeviceError> {
            read_blocking(&*self.device, 4096, 512).map(|bytes| bytes.to_vec())
        }
    }

    #[test]
    fn a_device_is_dead_while_the_control_file_says_so_and_others_are_not() {
        let bench = bench();
        let write = || write_blocking(&*bench.device, 0, Bytes::from_static(b"x"));
        bench.tell("/dev/two dead\n/dev/one nonsense\n");
        assert!(bench.read().is_ok() && write().is_ok());
        bench.tell("/dev/one dead\n");
        assert_eq!(bench.read(), Err(Errno::EIO.into()));
        assert_eq!(write(), Err(Errno::EIO.into()));
        bench.tell("");
        assert!(bench.read().is_ok());
    }

    #[test]
    fn one_seed_hits_the_same_requests_each_time() {
        let hits = |seed: u64| {
            let bench = bench();
            bench.tell(&format!("seed {seed}\n{PATH} eio 5\n"));
            (0..100).map(|_| bench.read().is_err()).collect::<Vec<_>>()
        };
        assert_eq!(hits(7), hits(7));
        assert_ne!(hits(7), hits(8));
        let struck = hits(7).iter().filter(|hit| **hit).count();
        assert!((5..40).contains(&struck), "{struck}");
    }

    #[test]
    fn a_flip_turns_one_bit_and_a_short_read_says_so() {
        let bench = bench();
        bench.tell("seed 1\n/dev/one flip 1\n");
        let ones: u32 = bench.read().unwrap().iter().map(|b| b.count_ones()).sum();
        assert_eq!(ones, 1);
        bench.tell("/dev/one short 1\n");
        let short = DeviceError::Short {
            done: 0,
            asked: 512,
        };
        assert_eq!(bench.read(), Err(short));
    }

    /// A device that answers only who says that it blocks.
    struct ForBlocked(Arc<dyn Device>);

    impl Device for ForBlocked {
        fn geometry(&self) -> DeviceGeometry {
            self.0.geometry()
        }

        fn submit(&self, request: Request) {
            request.fail(DeviceError::Busy);
        }

        fn submit_to_block(&self, request: Request) {
            self.0.submit(request);
        }
    }

    #[test]
    fn who_blocks_and_who_does_not_come_to_the_device_as_they_are_and_are_hit_alike() {
        let dir = tempfile::tempdir().unwrap();
        let control = dir.path().join("faults");
        let inner = ForBlocked(Arc::new(MemDisk::blank(1 << 20).device()));
        let device = FaultyDevice::new(Arc::new(inner), Path::new(PATH), control.clone());
        let unblocked = || {
            let (send, receive) = std::sync::mpsc::channel();
            device.submit(Request::Flush {
                done: Box::new(move |ended| send.send(ended).unwrap()),
            });
            receive.recv().unwrap()
        };
        let blocked = || read_blocking(&device, 0, 512).map(drop);
        assert_eq!((blocked(), unblocked()), (Ok(()), Err(DeviceError::Busy)));
        std::fs::write(control, "/dev/one dead\n").unwrap();
        let dead = Err(Errno::EIO.into());
        assert_eq!((blocked(), unblocked()), (dead, dead));
    }

    #[test]
    fn what_hangs_is_answered_when_the_hanging_ends_or_the_device_goes() {
        let bench = bench();
        let (send, receive) = std::sync::mpsc::channel();
        let submit = |send: &std::sync::mpsc::Sender<_>| {
            let send = send.clone();
            bench.device.submit(Request::Flush {
                done: Box::new(move |ended| send.send(ended).unwrap()),
            });
        };
        bench.tell("/dev/one hang\n");
        submit(&send);
        assert!(receive.try_recv().is_err());
        bench.tell("");
        submit(&send);
        assert_eq!((receive.recv(), receive.recv()), (Ok(Ok(())), Ok(Ok(()))));
        bench.tell("/dev/one hang\n");
        submit(&send);
        drop(bench);
        assert_eq!(receive.recv(), Ok(Err(DeviceError::Closed)));
    }
}
