//! Where the access log goes, and whether the server's user may write there.

use super::privileges::RunAs;
use crate::mgmt::load::{Loaded, Source};
use crate::proxy::access_log::LogOptions;
use nix::errno::Errno;
use nix::unistd::{AccessFlags, Gid, Uid, access, geteuid, getgrouplist};
use std::ffi::CString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The record of the log's directory.
pub(super) const LOGFILE_DIR: &str = "proxy.config.log.logfile_dir";

/// The access log can't be written.
#[derive(Debug, thiserror::Error)]
#[error("{LOGFILE_DIR}: {}: {errno} (errno {}) for uid {uid}: {}",
        path.display(), *errno as i32, cure(*errno, path, *uid))]
pub struct LogError {
    path: PathBuf,
    errno: Errno,
    uid: u32,
}

impl LogError {
    /// The system's `error` when the user in force opened that file.
    pub(super) fn of(path: PathBuf, error: &io::Error) -> Self {
        Self {
            path,
            errno: Errno::from_raw(error.raw_os_error().unwrap_or(0)),
            uid: geteuid().as_raw(),
        }
    }
}

fn cure(errno: Errno, path: &Path, uid: u32) -> String {
    let dir = path.parent().unwrap_or(path).display();
    if [Errno::EACCES, Errno::EPERM].contains(&errno) {
        return format!(
            "mkdir -p {dir} && chown -R {uid} {dir}, and let uid {uid} enter the directories above"
        );
    }
    let cure = if [Errno::ENOTDIR, Errno::EEXIST].contains(&errno) {
        "a file stands where a directory should"
    } else if errno == Errno::EROFS {
        "its file system is mounted to be read only"
    } else {
        "name a directory that can be written"
    };
    cure.to_owned()
}

/// What the access log is opened with.
pub(super) fn log_options(source: &Source, loaded: &Loaded) -> LogOptions {
    let state = source.path(&*loaded.records.local_state_dir);
    let mut log = LogOptions::from_records(&loaded.records, state.join("log"));
    log.dir = source.path(&log.dir);
    log
}

/// Why the server could not open its log once it is `run_as`; judged by owners
/// and modes, without making anything. A log in the state directory is not
/// judged: a start gives the user that directory.
pub(super) fn fault(source: &Source, loaded: &Loaded, run_as: &RunAs) -> Option<LogError> {
    let log = log_options(source, loaded);
    let state = source.path(&*loaded.records.local_state_dir);
    if !log.enabled || log.dir.starts_with(state) {
        return None;
    }
    let path = std::path::absolute(log.path()).ok()?;
    let who = Who::of(run_as);
    let errno = who.refusal(&path)?;
    let uid = who.uid();
    Some(LogError { path, errno, uid })
}

/// Who opens the log.
enum Who {
    /// The user in force, whom the system judges.
    Here,
    /// One that the server is still to become.
    Other { uid: u32, groups: Vec<Gid> },
}

impl Who {
    fn of(run_as: &RunAs) -> Self {
        let RunAs::User { name, uid, gid } = run_as else {
            return Self::Here;
        };
        let gid = Gid::from_raw(*gid);
        let name = CString::new(name.as_str()).unwrap_or_default();
        Self::Other {
            uid: *uid,
            groups: getgrouplist(&name, gid).unwrap_or_else(|_| vec![gid]),
        }
    }

    fn uid(&self) -> u32 {
        match self {
            Self::Here => geteuid().as_raw(),
            Self::Other { uid, .. } => *uid,
        }
    }

    /// Why `file`, an absolute path, could not be opened for writing, with the
    /// directories made that it lacks.
    fn refusal(&self, file: &Path) -> Option<Errno> {
        let (deepest, found) = file
            .ancestors()
            .find_map(|path| Some((path, std::fs::metadata(path).ok()?)))?;
        let last = match (deepest == file, found.is_dir()) {
            (true, true) => return Some(Errno::EISDIR),
            (true, false) => AccessFlags::W_OK,
            (false, true) => AccessFlags::W_OK | AccessFlags::X_OK,
            (false, false) => return Some(Errno::ENOTDIR),
        };
        let above = deepest.ancestors().skip(1);
        let entered = above.map(|dir| self.may(dir, AccessFlags::X_OK));
        entered
            .chain([self.may(deepest, last)])
            .find_map(Result::err)
    }

    fn may(&self, path: &Path, how: AccessFlags) -> Result<(), Errno> {
        let Self::Other { uid, groups } = self else {
            return access(path, how);
        };
        let found = std::fs::metadata(path).map_err(|_| Errno::EACCES)?;
        let granted = granted(&found, Uid::from_raw(*uid), groups);
        granted.contains(how).then_some(()).ok_or(Errno::EACCES)
    }
}

/// What the mode grants a user who is not root.
fn granted(found: &Metadata, uid: Uid, groups: &[Gid]) -> AccessFlags {
    let shift = if found.uid() == uid.as_raw() {
        6
    } else if groups.contains(&Gid::from_raw(found.gid())) {
        3
    } else {
        0
    };
    let bits = i32::try_from(found.mode() >> shift & 7).unwrap_or(0);
    AccessFlags::from_bits_truncate(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn stranger() -> Who {
        Who::Other {
            uid: 4_000_000,
            groups: vec![Gid::from_raw(4_000_000)],
        }
    }

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn another_user_is_judged_by_owner_and_mode_of_every_directory() {
        let dir = tempfile::tempdir().unwrap();
        let open = dir.path().join("open");
        std::fs::create_dir(&open).unwrap();
        set_mode(&open, 0o777);
        let refused = |file: &str| stranger().refusal(&open.join(file));
        set_mode(dir.path(), 0o700);
        assert_eq!(refused("made/strata.log"), Some(Errno::EACCES), "entered");
        set_mode(dir.path(), 0o711);
        assert_eq!(refused("made/strata.log"), None);
        std::fs::write(open.join("strata.log"), "").unwrap();
        set_mode(&open.join("strata.log"), 0o644);
        assert_eq!(refused("strata.log"), Some(Errno::EACCES), "the file");
        set_mode(&open.join("strata.log"), 0o646);
        assert_eq!(refused("strata.log"), None);
        assert_eq!(refused("strata.log/x"), Some(Errno::ENOTDIR));
        set_mode(&open, 0o755);
        assert_eq!(refused("made/strata.log"), Some(Errno::EACCES), "made");
        assert_eq!(Who::Here.refusal(&open.join("made/strata.log")), None);
    }

    #[test]
    fn the_error_names_record_path_user_errno_and_cure() {
        let error = io::Error::from_raw_os_error(Errno::EACCES as i32);
        let error = LogError::of("/logs/x/strata.log".into(), &error);
        let uid = geteuid();
        assert_eq!(
            error.to_string(),
            format!(
                "proxy.config.log.logfile_dir: /logs/x/strata.log: EACCES: Permission denied \
                 (errno 13) for uid {uid}: mkdir -p /logs/x && chown -R {uid} /logs/x, \
                 and let uid {uid} enter the directories above"
            )
        );
    }
}
