//! The state directory: one server at a time, told by a lock.

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The lock's name in the state directory; it holds the server's process id.
pub const LOCK_NAME: &str = "server.lock";

/// How often, and how long after another, a lock that is held is tried: the
/// kernel takes its time to undo a server that was killed.
const TRIES: u32 = 150;
const PAUSE: Duration = Duration::from_millis(20);

/// Why the state directory can't be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// It can't be made or opened.
    #[error("state directory {}: {source} (proxy.config.local_state_dir)", path.display())]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Another server has it.
    #[error(
        "state directory {} is in use by another server{}; \
         stop it, or give each server a proxy.config.local_state_dir of its own",
        path.display(),
        owner.as_ref().map(|pid| format!(", process {pid}")).unwrap_or_default()
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The other server's process id, if it wrote one.
        owner: Option<String>,
    },
}

/// A locked state directory; unlocked when dropped, however that comes about.
#[derive(Debug)]
pub struct StateDir {
    path: PathBuf,
    _lock: Flock<File>,
}

impl StateDir {
    /// Makes the directory if need be (mode 0750) and locks it.
    ///
    /// # Errors
    ///
    /// `InUse` if another process still holds the lock after 3 s, else
    /// `Unusable`.
    pub fn lock(path: &Path) -> Result<Self, StateError> {
        let unusable = |source| StateError::Unusable {
            path: path.to_owned(),
            source,
        };
        make(path).map_err(unusable)?;
        let file = open_lock(path).map_err(unusable)?;
        match lock_once_free(file) {
            Ok(mut lock) => {
                write_pid(&mut lock).map_err(unusable)?;
                Ok(Self {
                    path: path.to_owned(),
                    _lock: lock,
                })
            }
            Err((mut file, Errno::EWOULDBLOCK)) => Err(StateError::InUse {
                path: path.to_owned(),
                owner: read_pid(&mut file),
            }),
            Err((_, errno)) => Err(unusable(errno.into())),
        }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn make(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o750)
        .create(path)
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o640)
        .open(path.join(LOCK_NAME))
}

fn lock_once_free(mut file: File) -> Result<Flock<File>, (File, Errno)> {
    for _ in 1..TRIES {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Err((held, Errno::EWOULDBLOCK)) => file = held,
            ended => return ended,
        }
        std::thread::park_timeout(PAUSE);
    }
    Flock::lock(file, FlockArg::LockExclusiveNonblock)
}

fn write_pid(lock: &mut File) -> io::Result<()> {
    lock.set_len(0)?;
    writeln!(lock, "{}", std::process::id())
}

fn read_pid(lock: &mut File) -> Option<String> {
    let mut text = String::new();
    lock.rewind().ok()?;
    lock.take(32).read_to_string(&mut text).ok()?;
    let pid = text.trim();
    let digits = !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| pid.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_server_is_told_whose_the_directory_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/var");
        let first = StateDir::lock(&path).unwrap();
        let error = StateDir::lock(&path).unwrap_err().to_string();
        let pid = std::process::id().to_string();
        assert!(error.contains(&pid) && error.contains("a/var"), "{error}");
        drop(first);
        StateDir::lock(&path).unwrap();
    }

    #[test]
    fn the_lock_of_a_server_that_ends_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("var");
        let first = StateDir::lock(&path).unwrap();
        let (begun, begins) = std::sync::mpsc::channel();
        let second = std::thread::spawn({
            let path = path.clone();
            move || {
                begun.send(()).unwrap();
                StateDir::lock(&path)
            }
        });
        begins.recv().unwrap();
        drop(first);
        second.join().unwrap().unwrap();
    }

    #[test]
    fn a_file_in_its_place_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("var");
        std::fs::write(&path, "").unwrap();
        let error = StateDir::lock(&path).unwrap_err().to_string();
        assert!(error.contains("local_state_dir"), "{error}");
    }
}
