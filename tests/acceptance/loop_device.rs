//! A raw block device over a file, detached whatever happens.

use crate::site::stdout;
use std::fs::File;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A loop device with direct I/O.
pub(crate) struct LoopDevice {
    pub(crate) path: String,
    backing: PathBuf,
    _dir: Option<TempDir>,
}

impl LoopDevice {
    /// A device of `bytes` zeros.
    pub(crate) fn zeroed(bytes: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let backing = dir.path().join("backing.img");
        File::create(&backing).unwrap().set_len(bytes).unwrap();
        let mut device = Self::over(&backing);
        device._dir = Some(dir);
        device
    }

    /// Another device over the same file.
    pub(crate) fn over(backing: &Path) -> Self {
        let args = ["--find", "--show", "--direct-io=on"];
        let file = backing.to_str().unwrap();
        let path = stdout("losetup", &[&args[..], &[file]].concat());
        Self {
            path: path.trim().to_owned(),
            backing: backing.to_owned(),
            _dir: None,
        }
    }

    pub(crate) fn backing(&self) -> &Path {
        &self.backing
    }

    /// Gives the device up and takes another one, of another number, for the
    /// same content.
    pub(crate) fn renumbered(self) -> Self {
        let backing = self.backing.clone();
        let mut old = self;
        let dir = old._dir.take();
        let other_use = tempfile::NamedTempFile::new().unwrap();
        other_use.as_file().set_len(1 << 20).unwrap();
        let old_path = old.path.clone();
        drop(old);
        // Something else takes the old number first.
        let taken = Self::over(other_use.path());
        let mut new = Self::over(&backing);
        assert_ne!(new.path, old_path);
        drop(taken);
        new._dir = dir;
        new
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let detached = std::process::Command::new("losetup")
            .args(["--detach", &self.path])
            .status();
        drop(detached);
    }
}
