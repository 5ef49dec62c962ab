//! Origins that break off, lie about lengths, stall or fail: no client takes a
//! part for the whole, and no part is stored as one (RFC 9112 8, RFC 9111 3.3).
//!
//! `STRATA_BROKEN_ROUNDS=<count>` kills an origin so many times from a new seed;
//! a failed round prints its seed for `STRATA_BROKEN_SEED`.

use crate::support::{Client, Origin, Proxy, ok, until};
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use strata::base::prng::{Prng, system_u64};
use strata::metrics::Metric;

/// How an origin ends a response that is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Close,
    Reset,
    /// It keeps the connection and says no more.
    Silence,
}

impl End {
    fn of(self, mut stream: &TcpStream) {
        match self {
            Self::Close => {}
            Self::Reset => SockRef::from(stream)
                .set_linger(Some(Duration::ZERO))
                .unwrap(),
            // Until the proxy has had enough of it.
            Self::Silence => drop(stream.read(&mut [0])),
        }
    }
}

const HASTE: &str = "CONFIG proxy.config.http.transaction_no_activity_timeout_out INT 1\n";

/// What an origin sends the first time it is asked for a path; any other time
/// it sends a body that is whole.
fn once_broken(bytes: &'static str, end: End) -> Origin {
    let asked = AtomicUsize::new(0);
    Origin::speaking(move |_, mut stream| {
        if asked.fetch_add(1, Ordering::SeqCst) > 0 {
            return stream.write_all(&ok("whole")).is_ok();
        }
        stream.write_all(bytes.as_bytes()).unwrap();
        end.of(stream);
        false
    })
}

const LENGTH: &str =
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 9\r\n\r\nhello";
const CHUNKS: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
const IN_CHUNK: &str =
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello";
const BAD_CHUNK: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n";
const BAD_SIZE: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n";
/// Chunks that some reader takes for good ones.
const ODD_CHUNKS: [&str; 5] = [
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n5;a\nb\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n5;\r\r\nhello\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\n\r\n",
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX : y\r\n\r\n",
];
const TO_CLOSE: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\nhello";

#[test]
fn a_body_that_is_not_whole_is_cut_off_for_the_client_and_not_stored() {
    for (bytes, end) in [
        (LENGTH, End::Close),
        (LENGTH, End::Reset),
        (LENGTH, End::Silence),
        (CHUNKS, End::Close),
        (CHUNKS, End::Reset),
        (IN_CHUNK, End::Close),
        (IN_CHUNK, End::Silence),
        (BAD_CHUNK, End::Close),
        (BAD_SIZE, End::Close),
        (TO_CLOSE, End::Reset),
        (TO_CLOSE, End::Silence),
    ]
    .into_iter()
    .chain(ODD_CHUNKS.map(|bytes| (bytes, End::Close)))
    {
        for line in ["GET / HTTP/1.1", "GET / HTTP/1.0", "POST / HTTP/1.1"] {
            let origin = once_broken(bytes, end);
            let proxy = Proxy::with(HASTE, &origin.map("/"));
            let ask = format!("{line}\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
            let ask = if line.starts_with("GET") {
                format!("{line}\r\nHost: h\r\n\r\n")
            } else {
                ask
            };
            let broken = Client::connect(proxy.address).send(&ask).response();
            let is_told = broken.as_ref().is_ok_and(|answer| answer.status >= 502);
            assert!(
                broken.is_err() || is_told,
                "{line} {bytes:?} {end:?}: {broken:?}"
            );
            let next = Client::connect(proxy.address).ask(&ask);
            assert_eq!(next.text(), "whole", "{line} {bytes:?} {end:?}");
        }
    }
}

#[test]
fn an_answer_that_does_not_come_is_502_or_504_and_the_next_one_passes() {
    for (bytes, end, status) in [
        ("HTTP/1.1 200 OK\r\nContent-Len", End::Close, 502),
        ("HTTP/1.1 200 OK\r\nContent-Len", End::Reset, 502),
        ("HTTP/1.1 200 OK\r\nContent-Len", End::Silence, 504),
        ("", End::Silence, 504),
        ("HTTP/1.1 103 Early Hints\r\n\r\n", End::Close, 502),
        ("HTTP/1.1 100 Continue\r\n\r\n", End::Silence, 504),
        ("SSH-2.0-x\r\n", End::Close, 502),
        ("HTTP/1.1 2000 OK\r\n\r\n", End::Close, 502),
        ("HTTP/2.0 200 OK\r\n\r\n", End::Close, 502),
    ] {
        let origin = once_broken(bytes, end);
        let proxy = Proxy::with(HASTE, &origin.map("/"));
        let mut client = Client::connect(proxy.address);
        let post = "POST / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n";
        assert_eq!(client.ask(post).status, status, "{bytes:?} {end:?}");
        assert_eq!(client.ask(post).text(), "whole", "{bytes:?} {end:?}");
    }
}

#[test]
fn a_failure_that_is_whole_passes_as_it_is_and_is_not_stored() {
    for status in [500, 502, 503, 504] {
        let origin = Origin::answering(move |_| {
            format!("HTTP/1.1 {status} No\r\nContent-Length: 4\r\n\r\noops").into_bytes()
        });
        let proxy = Proxy::start(&origin.map("/"));
        let mut client = Client::connect(proxy.address);
        for asked in 1..=2 {
            let answer = client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
            assert_eq!((answer.status, answer.text().as_str()), (status, "oops"));
            assert_eq!(origin.requests().len(), asked);
        }
    }
}

#[test]
fn a_body_that_trickles_is_not_a_silent_one() {
    let (_never, pause) = std::sync::mpsc::channel::<()>();
    let pause = Mutex::new(pause);
    let origin = Origin::speaking(move |_, mut stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        for byte in b"hello" {
            // Longer than the limit in all, and shorter each time.
            let paused = pause
                .lock()
                .unwrap()
                .recv_timeout(Duration::from_millis(300));
            assert!(paused.is_err());
            stream.write_all(&[*byte]).unwrap();
        }
        true
    });
    let proxy = Proxy::with(HASTE, &origin.map("/"));
    let ask = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(Client::connect(proxy.address).ask(ask).text(), "hello");
}

#[test]
fn what_is_stale_stands_in_for_an_origin_that_breaks_before_its_head_if_it_may() {
    for (directive, status) in [("", 200), (", must-revalidate", 502)] {
        for end in [End::Close, End::Reset] {
            let asked = AtomicUsize::new(0);
            let origin = Origin::speaking(move |_, mut stream| {
                if asked.fetch_add(1, Ordering::SeqCst) > 0 {
                    end.of(stream);
                    return false;
                }
                let head = format!(
                    "HTTP/1.1 200 OK\r\nETag: \"a\"\r\nCache-Control: max-age=0{directive}"
                );
                stream
                    .write_all(format!("{head}\r\nContent-Length: 3\r\n\r\nold").as_bytes())
                    .is_ok()
            });
            let proxy = Proxy::start(&origin.map("/"));
            let mut client = Client::connect(proxy.address);
            let ask = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
            assert_eq!(client.ask(ask).text(), "old");
            until("the store", || {
                proxy.counter(Metric::CacheWriteSuccess) == 1
            });
            assert_eq!(client.ask(ask).status, status, "{directive:?} {end:?}");
        }
    }
}

const CLIENTS: usize = 200;

/// One killing of an origin.
#[derive(Clone, Debug)]
struct Round {
    seed: u64,
    length: usize,
    chunked: bool,
    /// Bytes of the response, head and all, after which it dies.
    cut: usize,
    end: End,
    /// It gives the rest to who asks by a range.
    resumes: bool,
}

impl Round {
    fn of(seed: u64) -> Self {
        let mut prng = Prng::seeded(seed);
        let mut below = |bound: u64| usize::try_from(prng.below(bound)).unwrap();
        let length = [100, 10_000, 300_000, 2_000_000][below(4)];
        let ends = [End::Close, End::Close, End::Reset, End::Reset, End::Silence];
        let room = u64::try_from(length).unwrap();
        Self {
            seed,
            length,
            chunked: below(2) == 0,
            cut: below(room),
            end: ends[below(5)],
            resumes: below(3) == 0,
        }
    }

    /// The body of this round: of no other one, and no part of it alike.
    fn body(&self) -> Vec<u8> {
        let mut prng = Prng::seeded(!self.seed);
        let words = std::iter::from_fn(|| Some(prng.next_u64().to_le_bytes()));
        words.flatten().take(self.length).collect()
    }

    /// The whole response.
    fn response(&self) -> Vec<u8> {
        let seed = self.seed;
        let head = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"{seed}\"\r\n");
        if !self.chunked {
            let head = format!("{head}Content-Length: {}\r\n\r\n", self.length);
            return [head.as_bytes(), &self.body()].concat();
        }
        let mut response = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
        for chunk in self.body().chunks(10_007) {
            response.extend(format!("{:x}\r\n", chunk.len()).bytes());
            response.extend(chunk);
            response.extend(b"\r\n");
        }
        response.extend(b"0\r\n\r\n");
        response
    }

    /// The answer to a range of one end, `bytes=FIRST-…`.
    fn part(&self, range: &str) -> Vec<u8> {
        let (first, last) = range.trim_start_matches("bytes=").split_once('-').unwrap();
        let first: usize = first.parse().unwrap();
        let last = last
            .parse()
            .map_or(self.length - 1, |last: usize| last.min(self.length - 1));
        let (seed, length) = (self.seed, self.length);
        let head = format!(
            "HTTP/1.1 206 Partial Content\r\nETag: \"{seed}\"\r\n\
             Content-Range: bytes {first}-{last}/{length}\r\nContent-Length: {}\r\n\r\n",
            last + 1 - first
        );
        [head.as_bytes(), &self.body()[first..=last]].concat()
    }
}

/// An origin that dies as its round says while it is `deadly`.
fn mortal(round: &Round, deadly: &Arc<AtomicUsize>) -> Origin {
    let (round, deadly) = (round.clone(), Arc::clone(deadly));
    let response = round.response();
    Origin::speaking(move |request, mut stream| {
        let range = request
            .fields("range")
            .first()
            .map(|range| (*range).to_owned());
        if let Some(range) = range.filter(|_| round.resumes) {
            return stream.write_all(&round.part(&range)).is_ok();
        }
        if deadly.load(Ordering::SeqCst) == 0 {
            return stream.write_all(&response).is_ok();
        }
        drop(stream.write_all(&response[..round.cut]));
        round.end.of(stream);
        drop(stream.shutdown(Shutdown::Both));
        false
    })
}

/// What is wrong with what a client got: nothing, if its body is whole or if it
/// knows that it is not.
fn fault(round: &Round, body: &[u8], client: usize, proxy: &Proxy) -> Option<String> {
    let version = if client.is_multiple_of(3) {
        "1.0"
    } else {
        "1.1"
    };
    let ask = format!("GET /{} HTTP/{version}\r\nHost: h\r\n\r\n", round.seed);
    let answer = Client::connect(proxy.address).send(ask).response().ok()?;
    let is_right = answer.status == 200 && answer.body == body;
    let is_told = [502, 504].contains(&answer.status);
    (!is_right && !is_told).then(|| {
        let got = answer.body.len();
        format!("client {client}: a clean {} of {got} bytes", answer.status)
    })
}

fn kill(round: &Round) {
    let deadly = Arc::new(AtomicUsize::new(1));
    let origin = mortal(round, &deadly);
    let proxy = Proxy::with(HASTE, &origin.map("/"));
    let body = round.body();
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (faults, body, proxy) = (&faults, &body, &proxy);
            scope.spawn(move || {
                let fault = fault(round, body, client, proxy);
                faults.lock().unwrap().extend(fault);
            });
        }
    });
    assert_eq!(faults.into_inner().unwrap(), [""; 0], "{round:?}");
    deadly.store(0, Ordering::SeqCst);
    let ask = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", round.seed);
    let next = Client::connect(proxy.address).ask(ask);
    assert!(
        next.status == 200 && next.body == body,
        "the next request: {round:?}"
    );
}

#[test]
#[expect(clippy::print_stdout, reason = "a round that fails is to be replayed")]
fn no_client_of_an_origin_that_is_killed_gets_a_clean_wrong_body() {
    let given = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let rounds = given("STRATA_BROKEN_ROUNDS");
    let first = match given("STRATA_BROKEN_SEED") {
        Some(seed) => seed..=seed,
        None => {
            // From 11 on they are of every kind.
            let first = rounds.map_or(11, |_| system_u64() >> 8);
            first..=first + rounds.unwrap_or(4) - 1
        }
    };
    for seed in first {
        println!("STRATA_BROKEN_SEED={seed}");
        kill(&Round::of(seed));
    }
}

/// Answers so many requests, each on a connection of its own, and is gone.
fn passing(listener: TcpListener, answers: usize, body: &'static str) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for _ in 0..answers {
            let (mut stream, _) = listener.accept().unwrap();
            assert_ne!(stream.read(&mut [0; 4096]).unwrap(), 0);
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\n";
            write!(stream, "{head}{body}").unwrap();
        }
    })
}

#[test]
fn an_address_that_could_not_be_connected_to_is_tried_behind_the_others_for_a_while() {
    let one = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = one.local_addr().unwrap().port();
    let dir = tempfile::tempdir().unwrap();
    let hosts = dir.path().join("hosts");
    std::fs::write(&hosts, "127.0.0.2 site.example\n127.0.0.1 site.example\n").unwrap();
    let records = format!(
        "CONFIG proxy.config.hostdb.host_file.path STRING {}\n\
         CONFIG proxy.config.http.down_server.cache_time INT 3600\n",
        hosts.display()
    );
    let proxy = Proxy::with(&records, &format!("map / http://site.example:{port}/\n"));
    let mut client = Client::connect(proxy.address);
    let mut ask = || client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").text();
    let one = passing(one, 2, "one");
    assert_eq!(ask(), "one", "the first address refuses");
    let two = TcpListener::bind(("127.0.0.2", port)).unwrap();
    assert_eq!(ask(), "one", "it counts as down");
    one.join().unwrap();
    let two = passing(two, 2, "two");
    assert_eq!(ask(), "two", "nothing else is up");
    assert_eq!(ask(), "two", "it is up again");
    two.join().unwrap();
}
