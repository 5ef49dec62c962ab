//! The programs as processes of their own, on a directory of configuration.

use crate::until::until;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use tempfile::TempDir;

/// A directory of configuration files.
pub(crate) struct ConfigDir {
    dir: TempDir,
}

impl ConfigDir {
    /// With these records, and ports on loopback, of which the system chooses
    /// what is 0. The user stays, so that root can run the tests.
    pub(crate) fn new(port: u16, admin: u16, records: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let dir = Self { dir };
        let base = format!(
            "CONFIG proxy.config.http.server_ports STRING ip-in=127.0.0.1:{port}\n\
             CONFIG proxy.config.admin.listen STRING 127.0.0.1:{admin}\n\
             CONFIG proxy.config.admin.user_id STRING #-1\n"
        );
        dir.write("records.config", &(base + records));
        dir
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// One of the programs, to be run there.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.arg("--config").arg(self.dir.path());
        command.current_dir(self.dir.path());
        command
    }
}

/// A process that is killed when its owner is done with it.
pub(crate) struct Process {
    pub(crate) child: Child,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::null()).spawn();
        assert!(child.is_ok(), "{command:?}: {child:?}");
        let child = child.unwrap();
        Self { child }
    }

    /// Sends a signal by its name, such as `-TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits until it has ended by itself.
    pub(crate) fn ended(mut self) -> ExitStatus {
        let mut status = None;
        until("the end of a process", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already, which is what most tests wait for.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
