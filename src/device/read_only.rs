//! A device that is looked at and never written to: what tools open.

use super::open::{FILE_IN_DIRECTORY, from_io};
use super::{Device, DeviceError, DeviceGeometry, OpenError, Request, ioctl};
use crate::base::aligned::AlignedBuf;
use nix::errno::Errno;
use std::fs::{File, TryLockError};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

/// A device or a file, read by whoever asks and while it waits.
#[derive(Debug)]
pub struct ReadOnlyDevice {
    file: File,
    geometry: DeviceGeometry,
}

/// Opens what a span's path names, for reading; makes nothing. `None` where a
/// start would make a file.
///
/// # Errors
/// `Refused` with the system's word, `WrongKind`, and `InUse` by a server.
pub fn open_read_only(path: &Path) -> Result<Option<ReadOnlyDevice>, OpenError> {
    let path = match path.is_dir() {
        true => path.join(FILE_IN_DIRECTORY),
        false => path.to_owned(),
    };
    let failed = |error: &std::io::Error| from_io(&path, error, "it can't be read");
    let file = match File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| failed(&error))?,
    };
    let found = file.metadata().map_err(|error| failed(&error))?;
    let bytes = if found.file_type().is_block_device() {
        ioctl::size(&file).map_err(|errno| failed(&errno.into()))?
    } else if found.is_file() {
        lock(&path, &file)?;
        found.len()
    } else {
        return Err(OpenError::WrongKind { path });
    };
    let geometry = DeviceGeometry {
        bytes,
        sector: 1,
        physical: 4096,
    };
    Ok(Some(ReadOnlyDevice { file, geometry }))
}

/// A server holds its files to itself.
fn lock(path: &Path, file: &File) -> Result<(), OpenError> {
    match file.try_lock_shared() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
            path: PathBuf::from(path),
        }),
        Err(TryLockError::Error(error)) => Err(from_io(path, &error, "it can't be locked")),
    }
}

impl ReadOnlyDevice {
    fn read(&self, offset: u64, mut buf: AlignedBuf) -> Result<AlignedBuf, DeviceError> {
        self.file.read_exact_at(&mut buf, offset)?;
        Ok(buf)
    }
}

impl Device for ReadOnlyDevice {
    fn geometry(&self) -> DeviceGeometry {
        self.geometry
    }

    fn submit(&self, request: Request) {
        match request {
            Request::Read { offset, buf, done } => done(self.read(offset, buf)),
            Request::Write { done, .. } => done(Err(Errno::EROFS.into())),
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
    fn it_is_read_and_not_written_and_nothing_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("span");
        assert!(open_read_only(&path).unwrap().is_none());
        assert!(open_read_only(dir.path()).unwrap().is_none());
        std::fs::write(&path, [7; 8192]).unwrap();
        let device = open_read_only(&path).unwrap().unwrap();
        assert_eq!(device.geometry().bytes, 8192);
        assert_eq!(&*read_blocking(&device, 4096, 4).unwrap(), [7; 4]);
        assert!(read_blocking(&device, 8000, 4096).is_err());
        let written = write_blocking(&device, 0, Bytes::from_static(b"x"));
        assert_eq!(written, Err(Errno::EROFS.into()));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_server_holds_is_told_to_be_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("span");
        std::fs::write(&path, [7; 8192]).unwrap();
        let held = File::open(&path).unwrap();
        held.lock().unwrap();
        let error = open_read_only(&path).unwrap_err();
        assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    }
}
