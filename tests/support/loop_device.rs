//! A raw block device over a file, detached whatever happens to the test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A loop device with direct I/O, and the file under it.
pub(crate) struct LoopDevice {
    path: PathBuf,
    dir: Option<TempDir>,
}

impl LoopDevice {
    /// A device of `bytes` zeros.
    pub(crate) fn zeroed(bytes: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let backing = backing_of(&dir);
        File::create(&backing).unwrap().set_len(bytes).unwrap();
        Self {
            path: attached(&backing),
            dir: Some(dir),
        }
    }

    /// Where the device is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file under it.
    pub(crate) fn backing(&self) -> PathBuf {
        backing_of(self.dir.as_ref().unwrap())
    }

    /// Makes an ext4 file system on it.
    pub(crate) fn make_ext4(&self) {
        run(Command::new("mkfs.ext4").arg("-q").arg(&self.path));
    }

    /// Makes swap space of it.
    pub(crate) fn make_swap(&self) {
        run(Command::new("mkswap").arg("-q").arg(&self.path));
    }

    /// Mounts it until the mount is dropped.
    pub(crate) fn mounted(&self) -> Mount {
        let dir = tempfile::tempdir().unwrap();
        run(Command::new("mount").arg(&self.path).arg(dir.path()));
        Mount(dir)
    }

    /// Gives the device up for another one, of another number, over the same
    /// content.
    pub(crate) fn renumbered(mut self) -> Self {
        // The old number is let go last, so that it can't be given out again.
        Self {
            path: attached(&self.backing()),
            dir: self.dir.take(),
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let detached = Command::new("losetup").arg("-d").arg(&self.path).status();
        let is_detached = detached.is_ok_and(|status| status.success());
        assert!(is_detached || std::thread::panicking(), "{:?}", self.path);
    }
}

/// A mounted file system.
pub(crate) struct Mount(TempDir);

impl Mount {
    /// A file on it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(self.0.path()).status();
        let is_unmounted = unmounted.is_ok_and(|status| status.success());
        assert!(is_unmounted || std::thread::panicking(), "{:?}", self.0);
    }
}

fn backing_of(dir: &TempDir) -> PathBuf {
    dir.path().join("backing.img")
}

/// The next free loop device, now over `backing`.
fn attached(backing: &Path) -> PathBuf {
    let mut losetup = Command::new("losetup");
    losetup.args(["--find", "--show", "--direct-io=on"]);
    PathBuf::from(run(losetup.arg(backing)).trim())
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
