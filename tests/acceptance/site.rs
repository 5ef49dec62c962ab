//! A proxy as a process of its own, in a directory of its own.

use crate::http;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// How long a start or a stop may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(20);

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// Asks `done` again and again until it says yes.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let pause = Duration::from_millis(20);
    for _ in 0..PATIENCE.as_millis() / pause.as_millis() {
        if done() {
            return;
        }
        std::thread::park_timeout(pause);
    }
    panic!("{what}: not within {PATIENCE:?}");
}

/// Waits while the system under test is left alone.
pub(crate) fn quiet(time: Duration) {
    std::thread::park_timeout(time);
}

/// A proxy's directory, and the proxy while it runs.
pub(crate) struct Site {
    pub(crate) dir: TempDir,
    pub(crate) port: u16,
    pub(crate) admin: u16,
    child: Option<Child>,
}

impl Site {
    /// A directory with the given rules and spans, and `records` beside the
    /// ones that every test needs.
    pub(crate) fn new(records: &str, remap: &str, storage: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (port, admin) = (free_port(), free_port());
        let base = format!(
            "CONFIG proxy.config.http.server_ports STRING {port}:ip-in=127.0.0.1\n\
             CONFIG proxy.config.admin.listen STRING 127.0.0.1:{admin}\n\
             CONFIG proxy.config.admin.user_id STRING #-1\n"
        );
        fs::write(dir.path().join("records.config"), base + records).unwrap();
        fs::write(dir.path().join("remap.config"), remap).unwrap();
        fs::write(dir.path().join("storage.config"), storage).unwrap();
        let child = None;
        Self {
            dir,
            port,
            admin,
            child,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Starts the server and waits until it is ready.
    pub(crate) fn start(&mut self) {
        self.spawn();
        let admin = self.admin;
        eventually("ready", || {
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
        let child = Command::new(env!("CARGO_BIN_EXE_traffic_server"))
            .arg("--config")
            .arg(self.dir.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
    }

    /// What the server has said so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("server.log")).unwrap_or_default()
    }

    /// SIGTERM, and the exit status.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        let mut child = self.child.take().unwrap();
        signal(&child, "TERM");
        let mut status = None;
        eventually("stopped", || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Runs `traffic_line` on this site.
    pub(crate) fn line(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_traffic_line"))
            .arg("--config")
            .arg(self.dir.path())
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
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
        if std::thread::panicking() {
            eprintln!("the server said:\n{}", self.log());
        }
    }
}

/// Sends a signal by its name to a process that the test started.
pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([format!("-{name}"), child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
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

/// A child that is killed when its owner is done with it.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::null()).spawn();
        Self(child.unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The bytes of a file, for what must not change.
pub(crate) fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap()
}
