//! Crowds of clients of one fetch, in this process, of a server in another.
//!
//! `STRATA_CROWD=<count>` is how many follow one fetch, 2,000 unless said.

use crate::site::Site;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

const MIB: usize = 1 << 20;
const STORED: &str = "Cache-Control: max-age=60\r\nETag: \"a\"\r\n";
/// Longer than any crowd here takes, so that a lost wake-up fails the test.
const PATIENCE: Duration = Duration::from_secs(100);
/// Clients that connect at a time: fewer than the server's queue holds.
const CONNECTING: usize = 100;

/// An origin of one body: `before` bytes of it at once, the rest when it opens.
struct Origin {
    fields: &'static str,
    body: Vec<u8>,
    before: usize,
    /// It opens by itself when it has been asked so often.
    opens_at: usize,
    asked: AtomicUsize,
    is_open: watch::Sender<bool>,
}

impl Origin {
    /// Of `len` bytes of which no two stretches are alike.
    fn new(fields: &'static str, len: usize, before: usize) -> Self {
        let words = (0..u64::try_from(len / 8).unwrap()).flat_map(u64::to_le_bytes);
        Self {
            fields,
            body: words.collect(),
            before,
            opens_at: usize::MAX,
            asked: AtomicUsize::new(0),
            is_open: watch::channel(false).0,
        }
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(Arc::clone(&self).answer(stream));
        }
    }

    async fn answer(self: Arc<Self>, mut stream: TcpStream) -> io::Result<()> {
        loop {
            read_head(&mut stream).await?;
            if self.asked.fetch_add(1, Ordering::SeqCst) + 1 == self.opens_at {
                self.open();
            }
            let (fields, len) = (self.fields, self.body.len());
            let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {len}\r\n\r\n");
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(&self.body[..self.before]).await?;
            let mut opens = self.is_open.subscribe();
            opens.wait_for(|open| *open).await.unwrap();
            stream.write_all(&self.body[self.before..]).await?;
        }
    }

    fn open(&self) {
        self.is_open.send_replace(true);
    }
}

/// The head, and what came with it of what follows.
async fn read_head(stream: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let rest = bytes.split_off(end + 4);
            return Ok((String::from_utf8(bytes).unwrap(), rest));
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// A client that has got the head, and checks the body as it comes.
struct Client {
    stream: TcpStream,
    origin: Arc<Origin>,
    /// Bytes of the body that have come.
    at: usize,
}

impl Client {
    async fn ask(port: u16, path: &str, origin: Arc<Origin>, connecting: &Semaphore) -> Self {
        let slot = connecting.acquire().await.unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        drop(slot);
        let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let (head, begun) = read_head(&mut stream).await.unwrap();
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let mut client = Self {
            stream,
            origin,
            at: 0,
        };
        client.check(&begun);
        client
    }

    fn check(&mut self, piece: &[u8]) {
        let expected = &self.origin.body[self.at..];
        assert!(expected.starts_with(piece), "at {}", self.at);
        self.at += piece.len();
    }

    /// Reads on until so many bytes of the body have come.
    async fn read(&mut self, bytes: usize) {
        let mut piece = vec![0; 65_536];
        while self.at < bytes {
            let read = self.stream.read(&mut piece).await.unwrap();
            assert!(read > 0, "cut at {}", self.at);
            self.check(&piece[..read]);
        }
    }
}

/// A server before such an origin.
struct Crowd {
    site: Site,
    origin: Arc<Origin>,
    connecting: Arc<Semaphore>,
}

impl Crowd {
    async fn before(origin: Origin) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let remap = format!("map / http://{}/\n", listener.local_addr().unwrap());
        let origin = Arc::new(origin);
        tokio::spawn(Arc::clone(&origin).accept(listener));
        let mut site = Site::new("", &remap, "span 200M\n");
        site.start();
        Self {
            site,
            origin,
            connecting: Arc::new(Semaphore::new(CONNECTING)),
        }
    }

    /// As many clients, which read so many bytes of the body.
    async fn gather(&self, path: &'static str, count: usize, bytes: usize) -> Vec<Client> {
        let mut asking = JoinSet::new();
        for _ in 0..count {
            let (port, origin) = (self.site.port, Arc::clone(&self.origin));
            let connecting = Arc::clone(&self.connecting);
            asking.spawn(async move {
                let mut client = Client::ask(port, path, origin, &connecting).await;
                client.read(bytes).await;
                client
            });
        }
        asking.join_all().await
    }

    /// 200 clients read a body whole, beside one that takes nothing of it.
    async fn pass(&self, path: &'static str) {
        let slow = self.gather(path, 1, 0).await;
        let clients = self.gather(path, 200, 0).await;
        self.origin.is_open.send_replace(true);
        finish(clients).await;
        drop(slow);
        self.origin.is_open.send_replace(false);
    }

    fn asked(&self) -> usize {
        self.origin.asked.load(Ordering::SeqCst)
    }

    /// The server's peak of memory begins anew.
    fn forget_peak(&self) {
        std::fs::write(self.site.proc_file("clear_refs"), "5").unwrap();
    }

    /// A line of /proc in bytes.
    fn memory(&self, name: &str) -> usize {
        let line = self.site.status_line(name);
        let kilobytes = line.trim().trim_end_matches(" kB");
        kilobytes.parse::<usize>().unwrap() * 1024
    }
}

/// All clients read to the body's end.
async fn finish(clients: Vec<Client>) {
    let mut reading = JoinSet::new();
    for mut client in clients {
        reading.spawn(async move {
            let end = client.origin.body.len();
            client.read(end).await;
        });
    }
    reading.join_all().await;
}

/// Runs it with as many descriptors as the system lets this process have.
fn run(test: impl Future<Output = ()>) {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let in_time = async { tokio::time::timeout(PATIENCE, test).await };
    runtime.unwrap().block_on(in_time).unwrap();
}

#[test]
fn thousands_follow_one_fetch_from_its_middle_to_its_end() {
    let count = std::env::var("STRATA_CROWD").map_or(2000, |count| count.parse().unwrap());
    run(async {
        let crowd = Crowd::before(Origin::new(STORED, 64 << 10, 32 << 10)).await;
        let clients = crowd.gather("/a", count, 32 << 10).await;
        crowd.origin.open();
        finish(clients).await;
        assert_eq!(crowd.asked(), 1);
    });
}

#[test]
fn two_hundred_clients_and_one_that_reads_nothing_take_one_fetch_and_little_memory() {
    run(async {
        let crowd = Crowd::before(Origin::new(STORED, 20_000_000, 0)).await;
        // The first round brings in the program's own pages too, which are many
        // in a debug build; what it leaves in memory serves all that follow.
        for (round, (path, most)) in [("/first", 48), ("/a", 16)].into_iter().enumerate() {
            let before = crowd.memory("VmRSS:");
            crowd.forget_peak();
            crowd.pass(path).await;
            let grown = crowd.memory("VmHWM:").saturating_sub(before);
            assert!(grown <= most * MIB, "{} MiB in round {round}", grown / MIB);
            assert_eq!(crowd.asked(), round + 1);
        }
    });
}

#[test]
fn a_thousand_clients_of_what_may_not_be_stored_are_at_the_origin_at_once() {
    run(async {
        // It says no more to any of them before it has heard of all.
        let origin = Origin {
            opens_at: 1000,
            ..Origin::new("Cache-Control: no-store\r\n", 8, 4)
        };
        let crowd = Crowd::before(origin).await;
        let clients = crowd.gather("/a", 1000, 4).await;
        finish(clients).await;
        assert_eq!(crowd.asked(), 1000);
    });
}
