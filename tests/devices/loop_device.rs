//! Loop devices that are detached whatever happens to the test.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A loop device over a file.
pub(crate) struct LoopDevice {
    path: PathBuf,
}

impl LoopDevice {
    /// The next free loop device over `backing`.
    pub(crate) fn over(backing: &Path) -> Self {
        let shown = run(Command::new("losetup")
            .args(["--find", "--show", "--direct-io=on"])
            .arg(backing));
        Self {
            path: PathBuf::from(shown.trim()),
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let detached = Command::new("losetup").arg("-d").arg(&self.path).status();
        assert!(detached.is_ok_and(|status| status.success()));
    }
}

/// A sparse file of zeros.
pub(crate) fn backing_file(dir: &Path, name: &str, size: u64) -> PathBuf {
    let path = dir.join(name);
    File::create(&path).unwrap().set_len(size).unwrap();
    path
}

/// Makes an ext4 file system in a file.
pub(crate) fn make_ext4(path: &Path) {
    run(Command::new("mkfs.ext4").arg("-q").arg(path));
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
