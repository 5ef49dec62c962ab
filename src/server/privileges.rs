//! From root to `proxy.config.admin.user_id`, for good and before threads.

use nix::unistd::{Gid, Uid, User, geteuid, initgroups, setgid, setuid};
use std::ffi::{CString, NulError};
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Why the process can't become the user it should be.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// No such user here.
    #[error("proxy.config.admin.user_id: no user {0:?} on this system")]
    UnknownUser(String),
    /// A server that faces the network does not run as root by that name.
    #[error("proxy.config.admin.user_id: root is refused; #-1 stays root, with a warning")]
    Root,
    /// The user database can't be read.
    #[error("proxy.config.admin.user_id: cannot look up {user:?}: {source}")]
    Lookup {
        /// The user asked for.
        user: String,
        /// The system's reason.
        source: nix::Error,
    },
    /// The user's name holds a NUL.
    #[error("proxy.config.admin.user_id: {0}")]
    Name(#[from] NulError),
    /// The system refused to change the user.
    #[error("cannot become user {user}: {source}")]
    Change {
        /// The user to become.
        user: String,
        /// The system's reason.
        source: nix::Error,
    },
    /// Root was given up and could be had back.
    #[error("user {0} could become root again; refusing to serve")]
    NotForGood(String),
}

/// Who the process is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunAs {
    /// Who it is: not started as root, so there is nothing to give up.
    Unchanged,
    /// Root, because the operator wrote `#-1`.
    StayRoot,
    /// That user.
    User {
        /// Its name.
        name: String,
        /// Its user id.
        uid: u32,
        /// Its group id; its other groups are added.
        gid: u32,
    },
}

impl RunAs {
    /// What `proxy.config.admin.user_id` asks for: a name, `#uid` or `#-1`.
    /// Only root can change users, so for others it means nothing.
    ///
    /// # Errors
    ///
    /// `UnknownUser`, `Root`, `Lookup`.
    pub fn resolve(user_id: &str) -> Result<Self, PrivilegeError> {
        if geteuid().is_root() {
            Self::of_user(user_id)
        } else {
            Ok(Self::Unchanged)
        }
    }

    /// Judges what root would become; nobody has to be root for that.
    ///
    /// # Errors
    ///
    /// As [`RunAs::resolve`] for root.
    pub fn check(user_id: &str) -> Result<(), PrivilegeError> {
        Self::of_user(user_id).map(|_| ())
    }

    fn of_user(user_id: &str) -> Result<Self, PrivilegeError> {
        if user_id == "#-1" {
            return Ok(Self::StayRoot);
        }
        let lookup = |source| PrivilegeError::Lookup {
            user: user_id.to_owned(),
            source,
        };
        let unknown = || PrivilegeError::UnknownUser(user_id.to_owned());
        let user = match user_id.strip_prefix('#') {
            Some(uid) => User::from_uid(Uid::from_raw(uid.parse().map_err(|_| unknown())?)),
            None => User::from_name(user_id),
        };
        let user = user.map_err(lookup)?.ok_or_else(unknown)?;
        if user.uid.is_root() {
            return Err(PrivilegeError::Root);
        }
        Ok(Self::User {
            name: user.name,
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
        })
    }

    /// Becomes the user, its groups included, and makes sure that there is no
    /// way back.
    ///
    /// # Errors
    ///
    /// `Change` with the system's reason, `NotForGood` if root can be had back.
    pub fn become_it(&self) -> Result<(), PrivilegeError> {
        let Self::User { name, uid, gid } = self else {
            return Ok(());
        };
        let (uid, gid) = (Uid::from_raw(*uid), Gid::from_raw(*gid));
        let c_name = CString::new(name.as_str())?;
        initgroups(&c_name, gid)
            .and_then(|()| setgid(gid))
            .and_then(|()| setuid(uid))
            .map_err(|source| PrivilegeError::Change {
                user: name.clone(),
                source,
            })?;
        match setuid(Uid::from_raw(0)) {
            Ok(()) => Err(PrivilegeError::NotForGood(name.clone())),
            Err(_) => Ok(()),
        }
    }

    /// Gives the user what root made below `dir`, so that it can go on with it.
    ///
    /// Only what belongs to root and has one name is given, and no link is
    /// followed: whoever can write to the directory must not be able to make
    /// this hand over another file.
    ///
    /// # Errors
    ///
    /// The system's reason for the first that can't be given.
    pub fn give(&self, dir: &Path) -> io::Result<()> {
        let Self::User { uid, gid, .. } = self else {
            return Ok(());
        };
        give_one(dir, *uid, *gid)?;
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.give(&entry.path())?;
            } else if kind.is_file() {
                give_one(&entry.path(), *uid, *gid)?;
            }
        }
        Ok(())
    }
}

/// What to say of a `proxy.config.admin.user_id` that this process can't heed
/// since it is not root; nothing if it is that user already, or is to stay.
pub(super) fn unheeded(user_id: &str) -> Option<String> {
    unheeded_by(geteuid(), user_id)
}

fn unheeded_by(uid: Uid, user_id: &str) -> Option<String> {
    let heeded = match RunAs::of_user(user_id) {
        Ok(RunAs::User { uid: wanted, .. }) => wanted == uid.as_raw(),
        Ok(RunAs::StayRoot | RunAs::Unchanged) => true,
        Err(_) => false,
    };
    if heeded || uid.is_root() {
        return None;
    }
    let name = User::from_uid(uid).ok().flatten().map(|user| user.name);
    let name = name.map(|name| format!("{name}, ")).unwrap_or_default();
    Some(format!(
        "proxy.config.admin.user_id has no effect, only root can change users: \
         the server stays {name}uid {uid}"
    ))
}

fn give_one(path: &Path, uid: u32, gid: u32) -> io::Result<()> {
    let file = File::options()
        .read(true)
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
        .open(path)?;
    let meta = file.metadata()?;
    let ours = meta.uid() == 0 && (meta.is_dir() || meta.nlink() == 1);
    if ours {
        std::os::unix::fs::fchown(&file, Some(uid), Some(gid))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_ids_are_names_numbers_or_stay() {
        assert_eq!(RunAs::of_user("#-1").unwrap(), RunAs::StayRoot);
        let nobody = RunAs::of_user("nobody").unwrap();
        let RunAs::User { uid, .. } = &nobody else {
            panic!("{nobody:?}");
        };
        assert_eq!(RunAs::of_user(&format!("#{uid}")).unwrap(), nobody);
    }

    #[test]
    fn unknown_users_and_root_are_refused_by_name() {
        for user in ["no-such-user-here", "#4294967294", "#x", ""] {
            let error = RunAs::of_user(user).unwrap_err();
            assert!(
                matches!(error, PrivilegeError::UnknownUser(_)),
                "{user}: {error}"
            );
        }
        for user in ["root", "#0"] {
            let error = RunAs::of_user(user).unwrap_err();
            assert!(matches!(error, PrivilegeError::Root), "{user}: {error}");
        }
    }

    #[test]
    fn a_user_that_is_not_root_is_told_what_it_can_not_become() {
        let RunAs::User { uid: nobody, .. } = RunAs::of_user("nobody").unwrap() else {
            panic!("nobody is a user");
        };
        let nobody = Uid::from_raw(nobody);
        for heeded in ["#-1", "nobody", &format!("#{nobody}")] {
            assert_eq!(unheeded_by(nobody, heeded), None, "{heeded}");
        }
        for other in ["root", "daemon", "no-such-user", "#4000000"] {
            let said = unheeded_by(nobody, other).unwrap();
            let stays = format!("the server stays nobody, uid {nobody}");
            assert!(said.ends_with(&stays), "{said}");
        }
        assert_eq!(unheeded_by(Uid::from_raw(0), "daemon"), None);
        let nameless = unheeded_by(Uid::from_raw(4_000_000), "daemon").unwrap();
        assert!(nameless.ends_with("stays uid 4000000"), "{nameless}");
    }

    #[test]
    fn a_link_is_not_followed_when_files_are_given() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
        assert!(give_one(&link, 65534, 65534).is_err());
    }
}
