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

    /// Such a device under a GPT, which divides it into two partitions of
    /// `bytes` each.
    pub(crate) fn in_two(bytes: u64) -> Self {
        // The table and its copy take less than a MiB each.
        let device = Self::zeroed(2 * bytes + (2 << 20));
        let table = device.dir.as_ref().unwrap().path().join("table");
        let half = bytes / 512;
        std::fs::write(&table, format!("label: gpt\n,{half}\n,{half}\n")).unwrap();
        run(Command::new("sfdisk")
            .args(["--quiet", "--no-reread", "--no-tell-kernel"])
            .arg(&device.path)
            .stdin(File::open(&table).unwrap()));
        // Not every kernel reads such tables itself.
        run(Command::new("partx").arg("--update").arg(&device.path));
        device
    }

    /// One of its partitions, from 1.
    pub(crate) fn partition(&self, number: u32) -> PathBuf {
        PathBuf::from(format!("{}p{number}", self.path.display()))
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
        make_ext4(&self.path);
    }

    /// Makes swap space of it.
    pub(crate) fn make_swap(&self) {
        run(Command::new("mkswap").arg("-q").arg(&self.path));
    }

    /// Mounts it until the mount is dropped.
    pub(crate) fn mounted(&self) -> Mount {
        Mount::of(&self.path)
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
    /// Mounts a device.
    pub(crate) fn of(device: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        run(Command::new("mount").arg(device).arg(dir.path()));
        Self(dir)
    }

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

/// Makes an ext4 file system on a device.
pub(crate) fn make_ext4(device: &Path) {
    run(Command::new("mkfs.ext4").arg("-q").arg(device));
}

fn backing_of(dir: &TempDir) -> PathBuf {
    dir.path().join("backing.img")
}

/// The next free loop device, now over `backing`.
fn attached(backing: &Path) -> PathBuf {
    let mut losetup = Command::new("losetup");
    losetup.args(["--find", "--show", "--direct-io=on", "--partscan"]);
    PathBuf::from(run(losetup.arg(backing)).trim())
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
