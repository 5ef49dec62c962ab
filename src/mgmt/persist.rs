//! A file changed in place so that a crash leaves the old one or the new one.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// Replaces the contents of `path`: temporary file beside it, fsync, rename,
/// fsync of the directory. Mode and, where allowed, owner stay; a symbolic
/// link stays one, and what it points to is replaced.
///
/// # Errors
///
/// The system's reason; the old contents stay.
pub fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let path = path.canonicalize()?;
    let fresh = beside(&path);
    let written = write(&fresh, &path, contents);
    let renamed = written.and_then(|()| std::fs::rename(&fresh, &path));
    if renamed.is_err() {
        // It may not exist; the reason that matters is the first one.
        drop(std::fs::remove_file(&fresh));
    }
    renamed?;
    sync_parent(&path)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    path.with_file_name(name)
}

fn write(fresh: &Path, old: &Path, contents: &[u8]) -> io::Result<()> {
    let meta = std::fs::metadata(old)?;
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(meta.mode() & 0o7777)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(fresh)?;
    file.set_permissions(meta.permissions())?;
    if fchown(&file, Some(meta.uid()), Some(meta.gid())).is_err() {
        tracing::debug!(file = %old.display(), "the owner could not be kept");
    }
    file.write_all(contents)?;
    file.sync_all()
}

fn sync_parent(path: &Path) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn contents_change_and_mode_and_link_stay() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        let link = dir.path().join("records.config");
        std::fs::write(&real, "old").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert_eq!(std::fs::read(&real).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&real).unwrap().mode() & 0o777, 0o640);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_failure_leaves_the_old_contents_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.config");
        std::fs::write(&path, "old").unwrap();
        std::fs::create_dir(dir.path().join("records.config.new")).unwrap();
        replace(&path, b"new").unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
    }
}
