//! Files: created at their full size, locked, direct where possible.

use super::open::{Handle, OpenRequest, refused, server_user};
use super::{DeviceGeometry, OpenError};
use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate, posix_fallocate};
use nix::libc::O_DIRECT;
use nix::unistd::geteuid;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// What direct I/O on a file is aligned to, in bytes.
const DIRECT_SECTOR: u32 = 4096;
/// Bytes of the blocks that the system counts a file's room in.
const STAT_BLOCK: u64 = 512;

/// Opens a file, or creates it, and reserves all its room: a full file system
/// is an error now, not at some write.
///
/// # Errors
/// The system's word with the cure; `NoSize`; `InUse`.
pub(super) fn open(request: &OpenRequest) -> Result<Handle, OpenError> {
    let size = match (needs_room(&request.path), request.size) {
        (true, None) => {
            return Err(OpenError::NoSize {
                path: request.path.clone(),
            });
        }
        (true, size) => size,
        (false, _) => None,
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(0o660);
    let opened = open_direct(&options, &request.path);
    let (file, direct) = opened.map_err(|error| failed(request, &error))?;
    lock(request, &file)?;
    match size {
        Some(size) => reserve(request, &file, size)?,
        None => fill_holes(request, &file)?,
    }
    handle(request, file, direct)
}

/// Opens a file that is there to read it only, beside whoever else may have it.
///
/// # Errors
/// The system's word with the cure.
pub(super) fn open_to_read(request: &OpenRequest) -> Result<Handle, OpenError> {
    let mut options = OpenOptions::new();
    options.read(true);
    let opened = open_direct(&options, &request.path);
    let (file, direct) = opened.map_err(|error| failed(request, &error))?;
    handle(request, file, direct)
}

fn handle(request: &OpenRequest, file: File, direct: bool) -> Result<Handle, OpenError> {
    let metadata = file.metadata().map_err(|error| failed(request, &error))?;
    Ok(Handle {
        rotational: rotational(&file),
        file,
        geometry: DeviceGeometry {
            bytes: metadata.len(),
            sector: if direct { DIRECT_SECTOR } else { 1 },
            physical: request.force_sector.max(DIRECT_SECTOR),
        },
    })
}

fn needs_room(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.len() == 0) || !path.exists()
}

fn open_direct(options: &OpenOptions, path: &Path) -> io::Result<(File, bool)> {
    match options.clone().custom_flags(O_DIRECT).open(path) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.raw_os_error() == Some(Errno::EINVAL as i32) => {
            Ok((options.open(path)?, false))
        }
        Err(error) => Err(error),
    }
}

fn lock(request: &OpenRequest, file: &File) -> Result<(), OpenError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
            path: request.path.clone(),
        }),
        Err(TryLockError::Error(error)) => Err(failed(request, &error)),
    }
}

/// Reserves the room; what was created for it goes again if there is none.
fn reserve(request: &OpenRequest, file: &File, size: u64) -> Result<(), OpenError> {
    let length = i64::try_from(size).unwrap_or(i64::MAX);
    posix_fallocate(file, 0, length).map_err(|errno| {
        // The refusal says what matters; an empty file left behind does not.
        drop(file.set_len(0));
        drop(std::fs::remove_file(&request.path));
        no_room(&request.path, errno, size)
    })
}

/// Reserves the room of a file that is there and has holes; what it holds stays.
/// A file system that can't says so, and has its word at some write.
fn fill_holes(request: &OpenRequest, file: &File) -> Result<(), OpenError> {
    let found = file.metadata().map_err(|error| failed(request, &error))?;
    let used = request.size.unwrap_or(u64::MAX).min(found.len());
    if found.blocks().saturating_mul(STAT_BLOCK) >= used {
        return Ok(());
    }
    let length = i64::try_from(used).unwrap_or(i64::MAX);
    match fallocate(file, FallocateFlags::empty(), 0, length) {
        Ok(()) | Err(Errno::EOPNOTSUPP) => Ok(()),
        Err(errno) => Err(no_room(&request.path, errno, used)),
    }
}

pub(super) fn no_room(path: &Path, errno: Errno, size: u64) -> OpenError {
    let cure = format!("no room for {size} bytes: free some, or lower SIZE");
    refused(path, errno, cure)
}

pub(super) fn failed(request: &OpenRequest, error: &io::Error) -> OpenError {
    let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
    let path = request.path.display();
    let cure = if matches!(errno, Errno::EACCES | Errno::EPERM) {
        let user = server_user(geteuid());
        format!("chown {user} {path}, and let {user} enter and write the directory")
    } else if errno == Errno::ENOENT {
        "make its directory".to_owned()
    } else {
        "see the file system's log".to_owned()
    };
    refused(&request.path, errno, cure)
}

/// The flag of the disk that the file's file system lies on.
fn rotational(file: &File) -> Option<bool> {
    let device = file.metadata().ok()?.dev();
    let (major, minor) = (nix::sys::stat::major(device), nix::sys::stat::minor(device));
    let of_disk = format!("/sys/dev/block/{major}:{minor}/queue/rotational");
    let of_part = format!("/sys/dev/block/{major}:{minor}/../queue/rotational");
    let flag = std::fs::read_to_string(of_disk).or_else(|_| std::fs::read_to_string(of_part));
    Some(flag.ok()?.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::super::open::open;
    use super::*;

    fn request(path: &Path, size: Option<u64>) -> OpenRequest {
        OpenRequest {
            size,
            ..OpenRequest::at(path)
        }
    }

    #[test]
    fn a_new_file_gets_its_whole_size_and_keeps_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("span");
        let opened = open(&request(&path, Some(1 << 20))).unwrap();
        assert_eq!(opened.device.geometry().bytes, 1 << 20);
        let blocks = std::fs::metadata(&path).unwrap().blocks();
        assert!(blocks * 512 >= 1 << 20, "{blocks} blocks are reserved");
        drop(opened);
        let again = open(&request(&path, None)).unwrap();
        assert_eq!(again.device.geometry().bytes, 1 << 20);
    }

    #[test]
    fn the_holes_of_a_file_that_is_there_are_reserved_and_what_it_holds_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("span");
        let sparse = File::create(&path).unwrap();
        sparse.set_len(1 << 20).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&sparse, b"kept", 70_000).unwrap();
        assert!(sparse.metadata().unwrap().blocks() * 512 < 1 << 20);
        drop(open(&request(&path, None)).unwrap());
        let found = std::fs::metadata(&path).unwrap();
        assert_eq!(found.len(), 1 << 20);
        assert!(found.blocks() * 512 >= 1 << 20, "{}", found.blocks());
        assert_eq!(&std::fs::read(&path).unwrap()[70_000..70_004], b"kept");
    }

    #[test]
    fn a_directory_holds_its_span_in_cache_db() {
        let dir = tempfile::tempdir().unwrap();
        let opened = open(&request(dir.path(), Some(1 << 20))).unwrap();
        assert_eq!(opened.path, dir.path().join("cache.db"));
        drop(opened);
        let made = dir.path().join("made/");
        let opened = open(&request(&made, Some(1 << 20))).unwrap();
        assert_eq!(opened.path, made.join("cache.db"));
    }

    #[test]
    fn a_file_in_use_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("span");
        let first = open(&request(&path, Some(1 << 20))).unwrap();
        let second = open(&request(&path, Some(1 << 20))).err().unwrap();
        assert!(matches!(&second, OpenError::InUse { path: named } if *named == path));
        drop(first);
    }

    #[test]
    fn no_size_for_a_new_file_is_refused_and_makes_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("span");
        let error = open(&request(&path, None)).err().unwrap();
        assert!(matches!(error, OpenError::NoSize { .. }));
        assert!(!path.exists());
    }

    #[test]
    fn a_size_that_no_file_system_has_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("span");
        let error = open(&request(&path, Some(1 << 60))).err().unwrap();
        assert!(error.to_string().contains("lower SIZE"), "{error}");
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let error = open(&request(Path::new("/dev/null"), None)).err().unwrap();
        assert!(matches!(error, OpenError::WrongKind { .. }));
        let missing = Path::new("/nonexistent/dir/span");
        let error = open(&request(missing, Some(1 << 20))).err().unwrap();
        assert!(error.to_string().contains("make its directory"), "{error}");
    }
}
