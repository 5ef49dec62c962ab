//! Floor 1: raw devices and files behind one seam.
//!
//! A [`Device`] takes requests with owned buffers and answers each by a
//! completion, from whichever thread it likes. So the same cache runs on
//! io_uring, on a pool of threads, on the in-memory device of tests, and on
//! whatever else can read and write.

mod backend;
mod block;
mod check;
mod each;
#[cfg(feature = "faults")]
mod faults;
mod file;
mod ioctl;
mod mem;
mod open;
mod pool;
mod read_only;
mod ring;
mod uring;

use crate::base::aligned::AlignedBuf;
use bytes::Bytes;
use nix::errno::Errno;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

pub use backend::{Backend, Choice, Wish, choose};
pub use check::{Identity, check, check_directory, identity};
pub use each::{Pace, Wanted, read_each};
pub use mem::{MemDevice, MemDisk};
pub use open::{DeviceKind, OpenRequest, OpenedDevice, open, open_to_read};
pub use pool::PoolDevice;
pub use read_only::{ReadOnlyDevice, open_read_only};
pub use ring::drive_reads;

/// What a device is, as far as its users must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceGeometry {
    /// Bytes in all.
    pub bytes: u64,
    /// Offset, length and address of each request are multiples of this many
    /// bytes (the logical sector, or 1 when the page cache is in between).
    pub sector: u32,
    /// Bytes that the device writes at once; writing less costs it a read.
    pub physical: u32,
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The system said no.
    #[error("{errno} (errno {})", *errno as i32)]
    System {
        /// Its word.
        errno: Errno,
    },
    /// The device moved fewer bytes than asked for.
    #[error("{done} of {asked} bytes were moved")]
    Short {
        /// Bytes moved.
        done: usize,
        /// Bytes asked for.
        asked: usize,
    },
    /// As many requests wait as may.
    #[error("too many requests wait for the device")]
    Busy,
    /// The device has not answered.
    #[error("no answer for {} s", after.as_secs())]
    TimedOut {
        /// How long it was waited for.
        after: Duration,
    },
    /// The device is closed.
    #[error("the device is closed")]
    Closed,
}

impl From<std::io::Error> for DeviceError {
    fn from(error: std::io::Error) -> Self {
        Errno::from_raw(error.raw_os_error().unwrap_or(0)).into()
    }
}

impl From<Errno> for DeviceError {
    fn from(errno: Errno) -> Self {
        Self::System { errno }
    }
}

/// Called once, with the outcome, from a thread of the device's choice. It
/// must not block.
pub type Done<T> = Box<dyn FnOnce(Result<T, DeviceError>) + Send>;

/// One request.
pub enum Request {
    /// Fill a buffer from `offset` on.
    Read {
        /// Bytes from the device's start.
        offset: u64,
        /// To be filled, all of it.
        buf: AlignedBuf,
        /// Gets the filled buffer.
        done: Done<AlignedBuf>,
    },
    /// Write all of `bytes` at `offset`.
    Write {
        /// Bytes from the device's start.
        offset: u64,
        /// What to write, at an aligned address.
        bytes: Bytes,
        /// Is told of the end.
        done: Done<()>,
    },
    /// Bring what was written before, and completed, to the medium.
    Flush {
        /// Is told of the end.
        done: Done<()>,
    },
}

impl Request {
    /// Ends the request with `error`.
    pub fn fail(self, error: DeviceError) {
        match self {
            Self::Read { done, .. } => done(Err(error)),
            Self::Write { done, .. } | Self::Flush { done } => done(Err(error)),
        }
    }
}

/// How long a thread is blocked by a device, where nobody says.
const PATIENCE: Duration = Duration::from_secs(30);

/// Something that can be read and written at offsets. Requests may run in any
/// order and side by side; who needs an order waits for the completion.
pub trait Device: Send + Sync {
    /// What the device is.
    fn geometry(&self) -> DeviceGeometry;

    /// Starts a request; never blocks on the device. Its completion is called
    /// exactly once, even when the device is closed meanwhile.
    fn submit(&self, request: Request);

    /// How long a thread that is blocked by the device waits for an answer.
    fn patience(&self) -> Duration {
        PATIENCE
    }

    /// Starts a request that ends though the calling thread is blocked until
    /// it has.
    fn submit_to_block(&self, request: Request) {
        self.submit(request);
    }
}

/// Reads `len` bytes at `offset` and waits for them; for opening, not for
/// serving.
///
/// # Errors
/// What the device says; `TimedOut` if it says nothing.
pub fn read_blocking(
    device: &dyn Device,
    offset: u64,
    len: usize,
) -> Result<AlignedBuf, DeviceError> {
    wait(device.patience(), |done| {
        device.submit_to_block(Request::Read {
            offset,
            buf: AlignedBuf::recycled(len),
            done,
        });
    })
}

/// Writes `bytes` at `offset` and waits for the end.
///
/// # Errors
/// What the device says; `TimedOut` if it says nothing.
pub fn write_blocking(device: &dyn Device, offset: u64, bytes: Bytes) -> Result<(), DeviceError> {
    wait(device.patience(), |done| {
        device.submit_to_block(Request::Write {
            offset,
            bytes,
            done,
        });
    })
}

/// Flushes and waits for the end.
///
/// # Errors
/// What the device says; `TimedOut` if it says nothing.
pub fn flush_blocking(device: &dyn Device) -> Result<(), DeviceError> {
    wait(device.patience(), |done| {
        device.submit_to_block(Request::Flush { done });
    })
}

/// Waits for the answer; the request keeps its buffer if none comes.
fn wait<T: Send + 'static>(
    patience: Duration,
    start: impl FnOnce(Done<T>),
) -> Result<T, DeviceError> {
    let (send, receive) = std::sync::mpsc::sync_channel(1);
    start(Box::new(move |outcome| {
        // Nobody waits any more for an answer that comes too late.
        drop(send.send(outcome));
    }));
    match receive.recv_timeout(patience) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Timeout) => Err(DeviceError::TimedOut { after: patience }),
        Err(RecvTimeoutError::Disconnected) => Err(DeviceError::Closed),
    }
}

/// Why a path could not be opened as a device; each text names the cure.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The system refuses.
    #[error("{path}: {errno} (errno {}) for uid {uid}: {cure}", *errno as i32, path = path.display())]
    Refused {
        /// The path.
        path: PathBuf,
        /// The system's word.
        errno: Errno,
        /// Who we are.
        uid: u32,
        /// What to do.
        cure: String,
    },
    /// A file must be created and nobody said how large.
    #[error("{}: no such file, or an empty one, and no SIZE to make it with: PATH 256M", path.display())]
    NoSize {
        /// The path.
        path: PathBuf,
    },
    /// A path below `/dev` names nothing.
    #[error("{}: no such device; lsblk lists those that are there", path.display())]
    NoDevice {
        /// The path.
        path: PathBuf,
    },
    /// A character device, a socket or the like.
    #[error("{}: neither a block device nor a file nor a directory", path.display())]
    WrongKind {
        /// The path.
        path: PathBuf,
    },
    /// Another process, or another line of storage.config, holds its lock.
    #[error("{}: in use by another process, or listed twice", path.display())]
    InUse {
        /// The path.
        path: PathBuf,
    },
}
