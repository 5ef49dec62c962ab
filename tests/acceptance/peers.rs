//! The programs at the other ends: jtest, nginx, a TLS origin.

use crate::http;
use crate::process::Process;
use crate::site::{Site, free_port};
use crate::until::until;
use std::fs;
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// `jtest` against a site: how many documents, and its origin's port.
#[derive(Clone, Copy)]
pub(crate) struct Jtest {
    pub(crate) origin: u16,
    pub(crate) documents: u32,
}

impl Jtest {
    /// Asks for each document once, from 50 clients; with its own origin or
    /// without any, so that only the cache can answer.
    pub(crate) fn sweep(self, site: &Site, with_origin: bool) -> Counts {
        let mut args = vec!["--sweep", "-c", "50"];
        if !with_origin {
            args.push("-y");
        }
        self.run(site, &args)
    }

    /// Runs with the published flags and `more`; every byte must be right.
    pub(crate) fn run(self, site: &Site, more: &[&str]) -> Counts {
        let output = Command::new(env!("CARGO_BIN_EXE_jtest"))
            .args(["-P", "127.0.0.1", "-p", &site.port.to_string()])
            .args(["-S", "127.0.0.1", "-s", &self.origin.to_string()])
            .args(["-z", "1.0", "-D", "9080", "-k", "2", "-q", "100000000"])
            .args(["-Z", &self.documents.to_string()])
            .args(more)
            .output()
            .unwrap();
        Counts::of(&output)
    }
}

/// What `jtest` says of a proxy that is not there, in this many seconds.
pub(crate) fn jtest_alone(seconds: u32) -> Output {
    let nobody = free_port().to_string();
    let mut jtest = Command::new(env!("CARGO_BIN_EXE_jtest"));
    jtest.args(["-P", "127.0.0.1", "-p", &nobody, "-S", "127.0.0.1"]);
    jtest.args(["-s", "1", "-y", "-c", "200", "-t", &seconds.to_string()]);
    jtest.output().unwrap()
}

/// What `jtest` counted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    pub(crate) fetches: u64,
    pub(crate) errors: u64,
}

impl Counts {
    fn of(output: &Output) -> Self {
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.lines().last().unwrap_or("");
        let numbers: Vec<u64> = last
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        let [requests, fetches, errors] = numbers[..] else {
            panic!("jtest said {output:?}");
        };
        assert_eq!(errors, 0, "{output:?}");
        Self {
            requests,
            fetches,
            errors,
        }
    }
}

/// What a test itself asks of nginx, to have all before it logged.
const LAST: &str = "/the-last-before-the-log-is-read";

/// nginx as an origin for one file, with its access log.
pub(crate) struct Nginx {
    pub(crate) port: u16,
    dir: TempDir,
    _running: Process,
}

impl Nginx {
    /// Serves `image` of `bytes` bytes under `directives`.
    pub(crate) fn start(bytes: usize, directives: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = free_port();
        let home = dir.path().display();
        let image: Vec<u8> = (0..=255).cycle().take(bytes).collect();
        fs::write(dir.path().join("image"), image).unwrap();
        let conf = format!(
            "daemon off; master_process off; pid {home}/pid; error_log {home}/error.log;\n\
             events {{ worker_connections 2048; }}\n\
             http {{\n\
               access_log {home}/access.log;\n\
               client_body_temp_path {home}/tmp; proxy_temp_path {home}/tmp;\n\
               fastcgi_temp_path {home}/tmp; uwsgi_temp_path {home}/tmp; scgi_temp_path {home}/tmp;\n\
               server {{ listen 127.0.0.1:{port}; root {home}; {directives} }}\n\
             }}\n"
        );
        fs::write(dir.path().join("nginx.conf"), conf).unwrap();
        open_to_workers(&dir);
        let mut command = Command::new("nginx");
        command.arg("-c").arg(dir.path().join("nginx.conf"));
        command.arg("-p").arg(dir.path()).stderr(Stdio::null());
        let running = Process::start(&mut command);
        until("nginx", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self {
            port,
            dir,
            _running: running,
        }
    }

    /// Dates the image as `touch` understands it, from now.
    pub(crate) fn date_image(&self, when: &str) {
        let status = Command::new("touch")
            .args(["-d", when])
            .arg(self.dir.path().join("image"))
            .status()
            .unwrap();
        assert!(status.success());
    }

    /// Puts another image of another size in its place.
    pub(crate) fn replace_image(&self, bytes: usize) {
        fs::write(self.dir.path().join("next"), vec![7; bytes]).unwrap();
        fs::rename(self.dir.path().join("next"), self.dir.path().join("image")).unwrap();
        open_to_workers(&self.dir);
    }

    /// Puts a file beside the image.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.dir.path().join(name), bytes).unwrap();
        open_to_workers(&self.dir);
    }

    /// Bytes of bodies that have left nginx.
    pub(crate) fn sent(&self) -> u64 {
        let sizes = self.answers().into_iter().map(|(_, answer)| {
            let bytes = answer.rsplit(' ').next().unwrap();
            bytes.parse::<u64>().unwrap()
        });
        sizes.sum()
    }

    /// The requests that reached nginx: method and status of each.
    pub(crate) fn requests(&self) -> Vec<String> {
        let request = |(method, answer): (String, String)| {
            let status = answer.split(' ').next().unwrap();
            format!("{method} {status}")
        };
        self.answers().into_iter().map(request).collect()
    }

    /// What nginx has written of each request: its method, and what it was
    /// answered by, status and bytes.
    fn answers(&self) -> Vec<(String, String)> {
        // nginx writes a line after its answer has gone out; being one
        // process, it has written those of all before it answers this.
        http::get(self.port, LAST).unwrap();
        let log = fs::read_to_string(self.dir.path().join("access.log")).unwrap_or_default();
        let request = |line: &str| {
            let mut quoted = line.split('"').skip(1);
            let method = quoted.next()?.split(' ').next()?.to_owned();
            Some((method, quoted.next()?.trim().to_owned()))
        };
        let others = log.lines().filter(|line| !line.contains(LAST));
        others.filter_map(request).collect()
    }
}

/// nginx's workers are another user when the test runs as root.
fn open_to_workers(dir: &TempDir) {
    let status = Command::new("chmod")
        .args(["-R", "a+rX"])
        .arg(dir.path())
        .status()
        .unwrap();
    assert!(status.success());
}

/// A TLS origin with a certificate of its own making.
pub(crate) struct TlsOrigin {
    pub(crate) port: u16,
    _dir: TempDir,
    _running: Process,
}

impl TlsOrigin {
    pub(crate) fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let port = free_port();
        let (key, cert) = (dir.path().join("key.pem"), dir.path().join("cert.pem"));
        let made = Command::new("openssl")
            .args([
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
            ])
            .args(["-subj", "/CN=localhost", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&cert)
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(made.success());
        let mut command = Command::new("openssl");
        command.args(["s_server", "-www", "-quiet", "-accept", &port.to_string()]);
        command.arg("-key").arg(&key).arg("-cert").arg(&cert);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let running = Process::start(&mut command);
        until("openssl", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self {
            port,
            _dir: dir,
            _running: running,
        }
    }
}
