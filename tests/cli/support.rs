//! A server process on a configuration of its own.

use crate::process::{ConfigDir, Process};
use crate::until::until;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// How long a server may take to be ready, or to stop.
const PATIENCE: Duration = Duration::from_secs(30);

/// A directory of configuration files.
pub(crate) struct Config {
    dir: ConfigDir,
}

impl Config {
    /// The usual records and these more, and one rule.
    pub(crate) fn new(records: &str) -> Self {
        let dir = ConfigDir::new(0, 0, records);
        let config = Self { dir };
        config.write("remap.config", "map http://a.example/ http://b.example/\n");
        config.write("storage.config", "");
        config
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        self.dir.write(name, text);
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs one of the programs to its end.
    pub(crate) fn run(&self, program: &str, args: &[&str]) -> Ran {
        Ran(self.dir.command(program).args(args).output().unwrap())
    }

    pub(crate) fn line(&self, args: &[&str]) -> Ran {
        self.run(env!("CARGO_BIN_EXE_traffic_line"), args)
    }

    /// As `line`, by another user; only root can.
    pub(crate) fn line_as(&self, uid: u32, args: &[&str]) -> Ran {
        let mut command = self.dir.command(env!("CARGO_BIN_EXE_traffic_line"));
        Ran(command.args(args).uid(uid).gid(uid).output().unwrap())
    }

    /// As `line`, with the state directory by the environment.
    pub(crate) fn line_by(&self, state_dir: &str, args: &[&str]) -> Ran {
        let mut command = self.dir.command(env!("CARGO_BIN_EXE_traffic_line"));
        let variable = "PROXY_CONFIG_LOCAL_STATE_DIR";
        Ran(command
            .env(variable, state_dir)
            .args(args)
            .output()
            .unwrap())
    }

    /// Runs one of the programs with these for its standard output and error.
    pub(crate) fn run_onto(
        &self,
        (program, args): (&str, &[&str]),
        out: impl Into<Stdio>,
        err: impl Into<Stdio>,
    ) -> Ran {
        let mut command = self.dir.command(program);
        let command = command.args(args).stdout(out).stderr(err);
        Ran(command.spawn().unwrap().wait_with_output().unwrap())
    }

    pub(crate) fn ctl(&self, args: &[&str]) -> Ran {
        self.run(env!("CARGO_BIN_EXE_traffic_ctl"), args)
    }

    /// The rows of `storage list`.
    pub(crate) fn spans(&self) -> Value {
        let json = self.ctl(&["storage", "list", "-f", "json"]).ok();
        let list: Value = serde_json::from_str(&json).unwrap();
        list["spans"].clone()
    }

    /// Waits until no span is being read any more; their rows.
    pub(crate) fn spans_read(&self) -> Value {
        until("spans that have been read", || {
            let spans = self.spans();
            let mut spans = spans.as_array().unwrap().iter();
            spans.all(|span| span["state"] != "loading")
        });
        self.spans()
    }

    /// Starts a server and waits until it says that it is ready, or that it
    /// can't be: clients are served either way.
    pub(crate) fn start(&self) -> Server {
        self.start_with(&[])
    }

    /// As `start`; its log tells what `filter` lets through.
    pub(crate) fn start_telling(&self, filter: &str) -> Server {
        let mut command = self.dir.command(env!("CARGO_BIN_EXE_traffic_server"));
        Self::begin(command.env("STRATA_LOG", filter))
    }

    /// As `start`, with these arguments.
    pub(crate) fn start_with(&self, args: &[&str]) -> Server {
        let mut command = self.dir.command(env!("CARGO_BIN_EXE_traffic_server"));
        Self::begin(command.args(args))
    }

    fn begin(command: &mut Command) -> Server {
        let mut process = Process::start(command.stderr(Stdio::piped()));
        let mut log = BufReader::new(process.child.stderr.take().unwrap());
        let mut started = String::new();
        let listening = line_with(&mut log, &[" listening "], &mut started);
        let ready = line_with(&mut log, &[" ready ", " not ready: "], &mut started);
        Server {
            process,
            log,
            started,
            listening,
            ready,
        }
    }

    /// Starts a server and kills it once it has logged a line with this text.
    pub(crate) fn killed_at(&self, text: &str) {
        let mut command = self.dir.command(env!("CARGO_BIN_EXE_traffic_server"));
        let mut process = Process::start(command.stderr(Stdio::piped()));
        let mut log = BufReader::new(process.child.stderr.take().unwrap());
        line_with(&mut log, &[text], &mut String::new());
        process.signal("-KILL");
        process.ended();
    }

    /// Tries to start a server that must fail; its standard error.
    pub(crate) fn start_fails(&self, args: &[&str]) -> String {
        let ran = self.run(env!("CARGO_BIN_EXE_traffic_server"), args);
        assert_eq!(ran.code(), 1, "{}", ran.err());
        ran.err()
    }
}

/// A program that has ended.
pub(crate) struct Ran(Output);

impl Ran {
    pub(crate) fn code(&self) -> i32 {
        self.0.status.code().unwrap()
    }

    pub(crate) fn out(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }

    /// Standard output of a program that must have succeeded in silence.
    pub(crate) fn ok(&self) -> String {
        assert_eq!((self.code(), self.err().as_str()), (0, ""));
        self.out()
    }
}

/// A running server; killed when dropped.
pub(crate) struct Server {
    process: Process,
    log: BufReader<std::process::ChildStderr>,
    started: String,
    listening: String,
    ready: String,
}

/// The next line of a log that holds one of these texts; all lines that were
/// read for it go to `read`.
fn line_with(log: &mut impl BufRead, texts: &[&str], read: &mut String) -> String {
    let mut line = String::new();
    while !texts.iter().any(|text| line.contains(text)) {
        line.clear();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "it ended");
        read.push_str(&line);
    }
    line
}

impl Server {
    /// The first port of `ports=[…]` in the line that says where it listens.
    pub(crate) fn port(&self) -> SocketAddr {
        self.address("ports=[")
    }

    /// The admin listener in that line.
    pub(crate) fn admin(&self) -> SocketAddr {
        self.address("admin=")
    }

    /// The log until it said whether it is ready.
    pub(crate) fn started(&self) -> &str {
        &self.started
    }

    /// The line that says whether the server is ready.
    pub(crate) fn readiness(&self) -> &str {
        &self.ready
    }

    fn address(&self, before: &str) -> SocketAddr {
        let (_, rest) = self.listening.split_once(before).unwrap();
        let end = rest.find([']', ',', ' ', '\n']).unwrap();
        rest.get(..end).unwrap().parse().unwrap()
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.child.id()
    }

    /// Sends a signal by its name, such as `-TERM`.
    pub(crate) fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Stops reading its log, as a pipe whose reader died; then asks it to
    /// stop, and waits: the exit code.
    pub(crate) fn stopped_unheard(self) -> i32 {
        drop(self.log);
        self.process.signal("-TERM");
        self.process.ended().code().unwrap_or(-1)
    }

    /// Waits for the end: exit code, and the log since it was ready.
    pub(crate) fn ended(mut self) -> (i32, String) {
        let mut log = String::new();
        self.log.read_to_string(&mut log).unwrap();
        let status = self.process.ended();
        (status.code().unwrap_or(-1), log)
    }
}

/// Sends a request head and reads to the end of the connection.
pub(crate) fn exchange(address: SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// GET of an admin page under a Host.
pub(crate) fn get(address: SocketAddr, path: &str, host: &str) -> String {
    exchange(
        address,
        &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
    )
}

/// Whether two paths name one file, links followed.
pub(crate) fn exists(path: &Path) -> bool {
    path.try_exists().unwrap()
}
