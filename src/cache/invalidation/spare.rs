//! Room in the state directory that a start on a full disk takes.
//!
//! A start writes down that it is one, or nothing that the spans hold can be
//! used: what was purged meanwhile would come back. The disk of the state is
//! that of the logs on many machines, and full sooner or later.

use super::state::StateError;
use nix::errno::Errno;
use nix::fcntl::posix_fallocate;
use std::fs::{File, OpenOptions};
use std::path::Path;

/// The file that holds the room.
const FILE: &str = "spare-room";
/// Bytes of it: those of several starts, each of which takes a segment of the
/// database, and of the purges between them.
const BYTES: i64 = 8 << 20;

/// Holds the room from now on, unless that is so or there is none.
pub(super) fn hold(dir: &Path) {
    let file = dir.join(FILE);
    let create = |file| OpenOptions::new().create(true).append(true).open(file);
    let held = create(&file).is_ok_and(|file: File| posix_fallocate(&file, 0, BYTES).is_ok());
    if !held {
        // What is there of it belongs to whoever is in need of it.
        give_up(dir);
        tracing::warn!(
            path = %file.display(),
            bytes = BYTES,
            "no room to set aside for a start on a full disk: what the spans hold may be \
             lost at one; free some in the state directory"
        );
    }
}

/// Gives the room to others; whether there was any.
pub(super) fn give_up(dir: &Path) -> bool {
    let file = dir.join(FILE);
    let held = std::fs::metadata(&file).is_ok_and(|held| held.len() > 0);
    held && std::fs::remove_file(&file).is_ok()
}

/// Whether more room may help.
pub(super) fn may_help(error: &StateError) -> bool {
    let (StateError::Sled(sled::Error::Io(error)) | StateError::Copy(error)) = error else {
        return false;
    };
    let full = [Errno::ENOSPC, Errno::EDQUOT].map(std::io::Error::from);
    full.iter().any(|full| full.kind() == error.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(errno: Errno) -> StateError {
        StateError::Sled(sled::Error::Io(errno.into()))
    }

    #[test]
    fn room_is_held_once_and_given_up_once() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!give_up(dir.path()));
        for _ in 0..2 {
            hold(dir.path());
            let held = std::fs::metadata(dir.path().join(FILE)).unwrap();
            assert_eq!(i64::try_from(held.len()), Ok(BYTES));
        }
        assert!(give_up(dir.path()));
        assert!(!give_up(dir.path()));
    }

    #[test]
    fn room_is_given_for_a_full_disk_and_a_full_quota_only() {
        assert!(may_help(&io(Errno::ENOSPC)) && may_help(&io(Errno::EDQUOT)));
        assert!(!may_help(&io(Errno::EIO)) && !may_help(&io(Errno::EACCES)));
    }
}
