//! What an opening would meet, judged by paths alone: nothing is opened, made or
//! changed.

use super::open::{FILE_IN_DIRECTORY, from_io, missing_device, refused, server_user};
use super::{OpenError, OpenRequest, block, file};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, faccessat, geteuid};
use std::ffi::OsString;
use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Judges a path as [`super::open()`] would, for the user in force.
///
/// Only the opening can tell whether a device is in use, or fails.
///
/// # Errors
/// Those of [`super::open()`], each with its cure.
pub fn check(request: &OpenRequest) -> Result<(), OpenError> {
    let path = &request.path;
    let names_directory = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => check_file(&inside(request)),
        Err(_) if names_directory => {
            let above = check_directory(path)?;
            sized(request)?;
            room(request, above)
        }
        found => judge(request, found),
    }
}

/// Judges whether a directory is there or can be made, and gives the nearest
/// one that is there.
///
/// # Errors
/// [`OpenError::Refused`], with its cure.
pub fn check_directory(path: &Path) -> Result<&Path, OpenError> {
    let failed = |error: &io::Error| from_io(path, error, "the directory can't be made");
    for above in path.ancestors().filter(|path| !path.as_os_str().is_empty()) {
        match std::fs::metadata(above) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&error)),
            Ok(found) if !found.is_dir() => return Err(failed(&Errno::ENOTDIR.into())),
            Ok(_) => return enterable(above).map(|()| above),
        }
    }
    Err(failed(&Errno::ENOENT.into()))
}

/// What tells one device from another, by whatever names it goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    /// A block device, by its number.
    Block(u64),
    /// A file, by its file system and number there.
    File(u64, u64),
    /// A file that is still to be made, by its directory and name.
    Missing(u64, u64, OsString),
}

/// The device that an opening of `path` would meet; none where it would make
/// directories, or fail.
#[must_use]
pub fn identity(path: &Path) -> Option<Identity> {
    let inside = path.is_dir().then(|| path.join(FILE_IN_DIRECTORY));
    let path = inside.as_deref().unwrap_or(path);
    match std::fs::metadata(path) {
        Ok(found) if found.file_type().is_block_device() => Some(Identity::Block(found.rdev())),
        Ok(found) => Some(Identity::File(found.dev(), found.ino())),
        Err(_) => {
            let dir = std::fs::metadata(path.parent()?).ok()?;
            let name = path.file_name()?.to_owned();
            Some(Identity::Missing(dir.dev(), dir.ino(), name))
        }
    }
}

fn inside(request: &OpenRequest) -> OpenRequest {
    OpenRequest {
        path: request.path.join(FILE_IN_DIRECTORY),
        ..request.clone()
    }
}

fn check_file(request: &OpenRequest) -> Result<(), OpenError> {
    judge(request, std::fs::metadata(&request.path))
}

fn judge(request: &OpenRequest, found: io::Result<Metadata>) -> Result<(), OpenError> {
    let path = &request.path;
    match found {
        Ok(found) if found.file_type().is_block_device() => {
            access(path).map_err(|errno| refused(path, errno, block::cure(request, errno)))
        }
        Ok(found) if !found.is_file() => Err(OpenError::WrongKind { path: path.clone() }),
        Ok(found) => {
            access(path).map_err(|errno| file::failed(request, &errno.into()))?;
            match found.len() {
                0 => sized(request).and_then(|()| room(request, path)),
                _ => Ok(()),
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => missing(request),
        Err(error) => Err(file::failed(request, &error)),
    }
}

/// A file that is to be made.
fn missing(request: &OpenRequest) -> Result<(), OpenError> {
    if let Some(error) = missing_device(&request.path) {
        return Err(error);
    }
    sized(request)?;
    let parent = request.path.parent().unwrap_or(Path::new("/"));
    if !parent.is_dir() {
        return Err(file::failed(request, &Errno::ENOENT.into()));
    }
    enterable(parent)?;
    room(request, parent)
}

fn sized(request: &OpenRequest) -> Result<(), OpenError> {
    let path = || request.path.clone();
    let size = request.size.map(drop);
    size.ok_or_else(|| OpenError::NoSize { path: path() })
}

fn access(path: &Path) -> nix::Result<()> {
    allowed(path, AccessFlags::R_OK | AccessFlags::W_OK)
}

fn allowed(path: &Path, flags: AccessFlags) -> nix::Result<()> {
    faccessat(AT_FDCWD, path, flags, AtFlags::AT_EACCESS)
}

/// Whether files can be made in a directory.
fn enterable(dir: &Path) -> Result<(), OpenError> {
    allowed(dir, AccessFlags::W_OK | AccessFlags::X_OK).map_err(|errno| {
        let user = server_user(geteuid());
        let cure = if errno == Errno::EROFS {
            "its file system is mounted to be read only".to_owned()
        } else {
            format!("chown {user} {}", dir.display())
        };
        refused(dir, errno, cure)
    })
}

/// Whether the file system of `there` has room for the whole file.
fn room(request: &OpenRequest, there: &Path) -> Result<(), OpenError> {
    let size = request.size.unwrap_or(0);
    // One that does not tell its room tells at the opening.
    let Ok(system) = statvfs(there) else {
        return Ok(());
    };
    let free = system.blocks_free().saturating_mul(system.fragment_size());
    match size <= free {
        true => Ok(()),
        false => Err(file::no_room(&request.path, Errno::ENOSPC, size)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::open::open;
    use super::*;
    use std::collections::HashSet;

    fn request(path: impl AsRef<Path>, size: Option<u64>) -> OpenRequest {
        OpenRequest {
            size,
            ..OpenRequest::at(path.as_ref())
        }
    }

    #[test]
    fn what_can_be_opened_is_no_fault_and_stays_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let made = dir.path().join("made/deep/");
        let span = dir.path().join("span");
        for path in [&span, dir.path(), &made] {
            check(&request(path, Some(1 << 20))).unwrap();
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        std::fs::write(&span, "data").unwrap();
        check(&request(&span, None)).unwrap();
        assert_eq!(std::fs::read(&span).unwrap(), b"data");
    }

    #[test]
    fn what_an_opening_would_refuse_is_refused_in_the_same_words() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "data").unwrap();
        let empty = dir.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        let size = Some(1 << 20);
        for (path, size) in [
            (dir.path().join("none"), None),
            (dir.path().to_owned(), None),
            (empty, None),
            (dir.path().join("none/span"), size),
            (file.join("span"), size),
            (file.join("dir/"), size),
            ("/dev/null".into(), size),
            ("/dev/nosuch".into(), None),
            ("/dev/nosuch".into(), size),
            (dir.path().join("vast"), Some(1 << 60)),
        ] {
            let request = request(&path, size);
            let judged = check(&request).unwrap_err().to_string();
            let opened = open(&request).err().unwrap().to_string();
            // Whether a size is beyond the room or beyond any is the system's.
            let text = judged
                .replace("ENOSPC", "EFBIG")
                .replace("errno 28", "errno 27");
            let same =
                judged == opened || opened.contains("lower SIZE") && text.contains("lower SIZE");
            assert!(same, "{}:\n{judged}\n{opened}", path.display());
        }
    }

    #[test]
    fn a_device_is_one_by_whatever_name_it_goes() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["real", "real/sub"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        std::fs::write(at("real/file"), "data").unwrap();
        std::os::unix::fs::symlink(at("real"), at("link")).unwrap();
        std::fs::hard_link(at("real/file"), at("other")).unwrap();
        for (one, same) in [
            ("real/file", "link/file"),
            ("real/file", "other"),
            ("real/new", "link/new"),
            ("real/sub", "link/sub/"),
            ("real/sub", "real/sub/cache.db"),
        ] {
            let found = identity(&at(one));
            assert!(found.is_some() && found == identity(&at(same)), "{same}");
        }
        let distinct = ["real/file", "real/new", "real/newer", "real/sub", "real"];
        let found: HashSet<_> = distinct.map(|name| identity(&at(name))).into();
        assert_eq!(found.len(), distinct.len());
        assert_eq!(identity(&at("none/deep/")), None);
        assert_ne!(identity(Path::new("/dev/null")), None);
    }

    #[test]
    fn a_file_in_place_of_a_directory_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(
            check_directory(&dir.path().join("a/b")).unwrap(),
            dir.path()
        );
        let error = check_directory(&file.join("a")).unwrap_err().to_string();
        assert!(error.contains("can't be made"), "{error}");
        assert!(check_directory(&file).is_err());
    }
}
