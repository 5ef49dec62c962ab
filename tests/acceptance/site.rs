//! A proxy as a process of its own, in a directory of its own.

use crate::http;
use crate::process::{ConfigDir, Process};
use crate::until::until;
use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};
use std::time::Duration;

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Waits while the system under test is left alone.
pub(crate) fn quiet(time: Duration) {
    std::thread::park_timeout(time);
}

/// A proxy's directory, and the proxy while it runs.
pub(crate) struct Site {
    dir: ConfigDir,
    pub(crate) port: u16,
    pub(crate) admin: u16,
    process: Option<Process>,
}

impl Site {
    /// A directory with the given rules and spans, and `records` beside the
    /// ones that every test needs.
    pub(crate) fn new(records: &str, remap: &str, storage: &str) -> Self {
        let (port, admin) = (free_port(), free_port());
        let dir = ConfigDir::new(port, admin, records);
        dir.write("remap.config", remap);
        dir.write("storage.config", storage);
        Self {
            dir,
            port,
            admin,
            process: None,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path(name)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Starts the server and waits until it is ready.
    pub(crate) fn start(&mut self) {
        self.spawn();
        let admin = self.admin;
        until("ready", || {
            http::get(admin, "/readyz").is_ok_and(|answer| answer.status == 200)
        });
    }

    /// Starts the server without waiting.
    pub(crate) fn spawn(&mut self) {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path("server.log"))
            .unwrap();
        let mut command = self.dir.command(env!("CARGO_BIN_EXE_traffic_server"));
        command.stdout(log.try_clone().unwrap()).stderr(log);
        // A device fails as this file says, where the feature `faults` is on.
        let faults = self.path("faults");
        if faults.exists() {
            command.env("STRATA_FAULTS", faults);
        }
        self.process = Some(Process::start(&mut command));
    }

    /// A line of what the system tells of the running server.
    pub(crate) fn status_line(&self, name: &str) -> String {
        let status = fs::read_to_string(self.proc_file("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {status}"))
            .to_owned()
    }

    /// A file of the running server in /proc.
    pub(crate) fn proc_file(&self, name: &str) -> PathBuf {
        let id = self.process.as_ref().unwrap().child.id();
        format!("/proc/{id}/{name}").into()
    }

    /// What the server has said so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("server.log")).unwrap_or_default()
    }

    /// Runs the server's program by another user, to its end; only root can.
    pub(crate) fn server_as(&self, uid: u32, args: &[&str]) -> Output {
        let mut command = self.dir.command(env!("CARGO_BIN_EXE_traffic_server"));
        command.args(args).uid(uid).gid(uid).output().unwrap()
    }

    /// Runs the server's program to its end.
    pub(crate) fn server(&self, args: &[&str]) -> Output {
        let mut command = self.dir.command(env!("CARGO_BIN_EXE_traffic_server"));
        command.args(args).output().unwrap()
    }

    /// SIGTERM, and the exit status.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        let process = self.process.take().unwrap();
        process.signal("-TERM");
        process.ended()
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        drop(self.process.take().unwrap());
    }

    /// Runs `traffic_line` on this site.
    pub(crate) fn line(&self, args: &[&str]) -> Output {
        self.dir
            .command(env!("CARGO_BIN_EXE_traffic_line"))
            .args(args)
            .output()
            .unwrap()
    }

    /// Runs `traffic_line`, which must succeed.
    pub(crate) fn line_ok(&self, args: &[&str]) -> String {
        let output = self.line(args);
        assert!(output.status.success(), "traffic_line {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `traffic_ctl` on this site.
    pub(crate) fn ctl(&self, args: &[&str]) -> Output {
        let mut command = self.dir.command(env!("CARGO_BIN_EXE_traffic_ctl"));
        command.args(args).output().unwrap()
    }

    /// Runs `traffic_ctl`, which must succeed.
    pub(crate) fn ctl_ok(&self, args: &[&str]) -> String {
        let output = self.ctl(args);
        assert!(output.status.success(), "traffic_ctl {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// A metric by its dotted name.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let value = self.line_ok(&["-r", name]);
        value.trim().parse().unwrap()
    }

    /// A gauge as the Prometheus page shows it.
    pub(crate) fn gauge(&self, name: &str) -> f64 {
        let page = http::get(self.admin, "/metrics").unwrap().text();
        let row = page.lines().find_map(|line| line.strip_prefix(name));
        let value = row.unwrap_or_else(|| panic!("no {name} in {page}"));
        value.trim().parse().unwrap()
    }

    /// The successful cache reads: ram, ssd, disk, and all.
    pub(crate) fn reads(&self) -> Reads {
        let read = |tier: &str| self.metric(&format!("proxy.process.cache.{tier}read.success"));
        Reads {
            ram: read("ram."),
            ssd: read("ssd."),
            disk: read("disk."),
            all: read(""),
        }
    }
}

/// Successful cache reads by tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reads {
    pub(crate) ram: u64,
    pub(crate) ssd: u64,
    pub(crate) disk: u64,
    pub(crate) all: u64,
}

impl Reads {
    /// What was read since `before`; the tiers must sum to the whole.
    pub(crate) fn since(self, before: Self) -> Self {
        let reads = Self {
            ram: self.ram - before.ram,
            ssd: self.ssd - before.ssd,
            disk: self.disk - before.disk,
            all: self.all - before.all,
        };
        assert_eq!(reads.ram + reads.ssd + reads.disk, reads.all, "{reads:?}");
        reads
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(self.process.take());
        if std::thread::panicking() {
            eprintln!("the server said:\n{}", self.log());
        }
    }
}

/// Runs a client program of the system; a missing one fails the test.
pub(crate) fn run(program: &str, args: &[&str]) -> Output {
    let output = Command::new(program).args(args).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}; .ci/run installs it"))
}

/// The text that a client program printed.
pub(crate) fn stdout(program: &str, args: &[&str]) -> String {
    let output = run(program, args);
    assert!(output.status.success(), "{program} {args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The bytes of a file, for what must not change.
pub(crate) fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap()
}
