//! From a path of storage.config to an open device.

use super::ring::{ReadLimits, RingDevice};
use super::{Backend, Device, DeviceGeometry, OpenError, PATIENCE, PoolDevice, block, file};
use nix::errno::Errno;
use nix::unistd::{Uid, User, geteuid};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The span's file in a directory.
pub(super) const FILE_IN_DIRECTORY: &str = "cache.db";

/// What to open.
#[derive(Clone, Debug)]
pub struct OpenRequest {
    /// A block device, a file, or a directory.
    pub path: PathBuf,
    /// Bytes of the file if it must be created.
    pub size: Option<u64>,
    /// How it is read.
    pub backend: Backend,
    /// I/O threads; at least one.
    pub threads: usize,
    /// Reads that one ring has under way, at least one.
    pub read_depth: usize,
    /// Reads that wait for a thread, or for room in a ring, before one fails
    /// as `Busy`.
    pub read_queue: usize,
    /// Overrides the physical sector's size in bytes; 0 asks the device.
    pub force_sector: u32,
    /// How long who opens or closes it waits for an answer.
    pub patience: Duration,
}

impl OpenRequest {
    /// `path` with its own size and sector, read by four threads.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            size: None,
            backend: Backend::Threads,
            threads: 4,
            read_depth: 64,
            read_queue: 1024,
            force_sector: 0,
            patience: PATIENCE,
        }
    }
}

/// What a path turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A disk or a partition.
    Block,
    /// A regular file.
    File,
}

/// An open device, ours alone until it is dropped.
#[derive(Clone)]
pub struct OpenedDevice {
    /// To read and write it.
    pub device: Arc<dyn Device>,
    /// What it is.
    pub kind: DeviceKind,
    /// The path that was opened: of a directory, the file in it.
    pub path: PathBuf,
    /// The kernel's rotational flag, when there is one.
    pub rotational: Option<bool>,
}

/// What the two kinds of opening give.
pub(super) struct Handle {
    pub(super) file: File,
    pub(super) geometry: DeviceGeometry,
    pub(super) rotational: Option<bool>,
}

/// How often, and how long after another, a device in use is tried: the kernel
/// may let go of what was closed a moment later, above all what a ring has read.
const TRIES: u32 = 25;
const PAUSE: Duration = Duration::from_millis(20);

/// Opens a path as a device. Nothing is written to what exists; a file that
/// is missing is created with its whole size reserved. One in use is refused
/// after half a second.
///
/// # Errors
/// Each names the path, the reason and the cure.
pub fn open(request: &OpenRequest) -> Result<OpenedDevice, OpenError> {
    let mut request = request.clone();
    request.path = inside_directory(&request.path)?;
    let kind = kind(&request.path)?;
    let handle = once_free(|| match kind {
        DeviceKind::Block => block::open(&request),
        DeviceKind::File => file::open(&request),
    })?;
    let opened = served(kind, handle, request)?;
    #[cfg(feature = "faults")]
    let opened = OpenedDevice {
        device: super::faults::wrap(opened.device, &opened.path),
        ..opened
    };
    Ok(opened)
}

fn once_free(open: impl Fn() -> Result<Handle, OpenError>) -> Result<Handle, OpenError> {
    for _ in 1..TRIES {
        match open() {
            Err(error) if is_in_use(&error) => std::thread::park_timeout(PAUSE),
            ended => return ended,
        }
    }
    open()
}

fn is_in_use(error: &OpenError) -> bool {
    match error {
        OpenError::Refused { errno, .. } => *errno == Errno::EBUSY,
        OpenError::InUse { .. } => true,
        OpenError::NoSize { .. } | OpenError::NoDevice { .. } | OpenError::WrongKind { .. } => {
            false
        }
    }
}

/// Opens a path to read what lies there, as [`open`] would find it: nothing is
/// made, written or locked, and a device in use is no fault. None where there
/// is nothing yet: no file, or an empty one.
///
/// # Errors
/// Each names the path, the reason and the cure.
pub fn open_to_read(request: &OpenRequest) -> Result<Option<OpenedDevice>, OpenError> {
    let mut request = OpenRequest {
        backend: Backend::Threads,
        threads: 1,
        ..request.clone()
    };
    if request.path.is_dir() {
        request.path.push(FILE_IN_DIRECTORY);
    }
    let Ok(found) = std::fs::metadata(&request.path) else {
        return Ok(None);
    };
    if found.is_file() && found.len() == 0 {
        return Ok(None);
    }
    let kind = kind(&request.path)?;
    let handle = match kind {
        DeviceKind::Block => block::open_to_read(&request)?,
        DeviceKind::File => file::open_to_read(&request)?,
    };
    served(kind, handle, request).map(Some)
}

fn served(
    kind: DeviceKind,
    handle: Handle,
    request: OpenRequest,
) -> Result<OpenedDevice, OpenError> {
    let device = serve(handle.file, handle.geometry, &request)
        .map_err(|error| from_io(&request.path, &error, "the system gives no thread"))?;
    Ok(OpenedDevice {
        device,
        kind,
        path: request.path,
        rotational: handle.rotational,
    })
}

fn serve(
    file: File,
    geometry: DeviceGeometry,
    request: &OpenRequest,
) -> io::Result<Arc<dyn Device>> {
    let file = Arc::new(file);
    let (threads, queue) = (request.threads, request.read_queue);
    let pool = PoolDevice::new(Arc::clone(&file), geometry, threads, queue)?;
    let pool = pool.with_patience(request.patience);
    Ok(match request.backend {
        Backend::Threads => Arc::new(pool),
        Backend::Rings => {
            let depth = request.read_depth;
            let limits = ReadLimits { depth, queue };
            Arc::new(RingDevice::new(file, limits, pool))
        }
    })
}

fn inside_directory(path: &Path) -> Result<PathBuf, OpenError> {
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        std::fs::create_dir_all(path)
            .map_err(|error| from_io(path, &error, "the directory can't be made"))?;
    }
    if path.is_dir() {
        return Ok(path.join(FILE_IN_DIRECTORY));
    }
    Ok(path.to_owned())
}

fn kind(path: &Path) -> Result<DeviceKind, OpenError> {
    match std::fs::metadata(path) {
        Ok(found) if found.file_type().is_block_device() => Ok(DeviceKind::Block),
        Ok(found) if !found.is_file() => Err(OpenError::WrongKind {
            path: path.to_owned(),
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => match missing_device(path) {
            Some(error) => Err(error),
            None => Ok(DeviceKind::File),
        },
        // A missing file is made; any other error comes again at opening.
        Ok(_) | Err(_) => Ok(DeviceKind::File),
    }
}

/// A name of a device that is not there: a file by it would lie in RAM.
pub(super) fn missing_device(path: &Path) -> Option<OpenError> {
    let is_device = path.starts_with("/dev") && !path.starts_with("/dev/shm");
    is_device.then(|| OpenError::NoDevice {
        path: path.to_owned(),
    })
}

pub(super) fn from_io(path: &Path, error: &io::Error, what: &str) -> OpenError {
    let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
    refused(path, errno, what.to_owned())
}

/// The name of a user, such as the one that the server became; its number if
/// it has none.
pub(super) fn server_user(uid: Uid) -> String {
    match User::from_uid(uid) {
        Ok(Some(user)) => user.name,
        Ok(None) | Err(_) => uid.to_string(),
    }
}

/// A refusal by the system, with who we are.
pub(super) fn refused(path: &Path, errno: Errno, cure: String) -> OpenError {
    OpenError::Refused {
        path: path.to_owned(),
        errno,
        uid: geteuid().as_raw(),
        cure,
    }
}
