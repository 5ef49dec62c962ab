//! What tsar's modules (`mod_ts_*.c`) read: known traffic, and the value of
//! each metric after it as `traffic_line -r` prints it.

use crate::support::Config;
use crate::until::until;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use strata::base::clock::{Clock, SystemClock};

/// Objects below the cutoff are hits from RAM, the others from the span; a
/// client that closes is gone.
const RECORDS: &str = "CONFIG proxy.config.cache.ram_cache_cutoff INT 10000\n\
    CONFIG proxy.config.http.allow_half_open INT 0\n";
/// The statuses that have a metric and that an origin may answer.
const STATUSES: [u16; 9] = [301, 302, 400, 403, 404, 500, 502, 503, 504];

/// What the origin saw of its connections.
#[derive(Default)]
struct Seen {
    accepted: AtomicU64,
    open: AtomicU64,
    requests: AtomicU64,
    read: AtomicU64,
    written: AtomicU64,
}

/// An origin that counts. Its answers, by path: `/size/N/NAME` is storable,
/// `/status/N` is not, `/short` breaks off, `/held` waits to be released.
struct Origin {
    address: SocketAddr,
    seen: Arc<Seen>,
    release: Sender<()>,
}

impl Origin {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (release, gate) = channel();
        let origin = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            release,
        };
        let (seen, gate) = (Arc::clone(&origin.seen), Arc::new(Mutex::new(gate)));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, gate) = (Arc::clone(&seen), Arc::clone(&gate));
                seen.accepted.fetch_add(1, Ordering::SeqCst);
                seen.open.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    serve(&stream.unwrap(), &seen, &gate);
                    seen.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        origin
    }
}

fn serve(mut stream: &TcpStream, seen: &Seen, gate: &Mutex<Receiver<()>>) {
    let mut reader = BufReader::new(stream);
    while let Some(head) = read_head(&mut reader) {
        seen.requests.fetch_add(1, Ordering::SeqCst);
        seen.read.fetch_add(count(head.len()), Ordering::SeqCst);
        let path = head.split(' ').nth(1).unwrap();
        if path == "/held" {
            gate.lock().unwrap().recv().unwrap();
        }
        let answer = answer(path);
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
        seen.written
            .fetch_add(count(answer.len()), Ordering::SeqCst);
        if path == "/short" {
            return;
        }
    }
}

fn answer(path: &str) -> String {
    let mut words = path.split('/').skip(1);
    match (words.next(), words.next()) {
        (Some("size"), Some(size)) => {
            let body = "x".repeat(size.parse().unwrap());
            let fields = "Cache-Control: max-age=60\r\nETag: \"e\"\r\n";
            format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {size}\r\n\r\n{body}")
        }
        (Some("status"), Some(status)) => format!(
            "HTTP/1.1 {status} Said\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\r\n"
        ),
        (Some("short"), _) => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_owned(),
        _ => "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned(),
    }
}

fn read_head(reader: &mut impl BufRead) -> Option<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let read = reader.read_line(&mut head).ok()?;
        (read > 0).then_some(())?;
    }
    Some(head)
}

fn count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap()
}

/// A client connection that counts its bytes.
struct Client {
    stream: BufReader<TcpStream>,
    sent: u64,
    received: u64,
}

impl Client {
    fn connect(proxy: SocketAddr) -> Self {
        let stream = TcpStream::connect(proxy).unwrap();
        let patience = Some(Duration::from_secs(20));
        stream.set_read_timeout(patience).unwrap();
        let stream = BufReader::new(stream);
        let (sent, received) = (0, 0);
        Self {
            stream,
            sent,
            received,
        }
    }

    fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
        self.sent += count(text.len());
    }

    /// The status of the answer, which is read to its end.
    fn answer(&mut self) -> u16 {
        let head = read_head(&mut self.stream).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.to_ascii_lowercase();
        let length = length.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.lines().next());
        let length = length.map_or(0, |text| text.parse().unwrap());
        // What breaks off is counted as far as it came.
        let mut body = Vec::new();
        drop((&mut self.stream).take(length).read_to_end(&mut body));
        self.received += count(head.len() + body.len());
        status
    }

    fn ask(&mut self, path: &str, fields: &str) -> u16 {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
        self.answer()
    }
}

fn counted(config: &Config, name: &str) -> u64 {
    let text = config.line(&["-r", name]).ok();
    text.trim().parse().unwrap()
}

/// The client has its answer before all of it is counted.
fn wait_for(config: &Config, expected: &[(&str, u64)]) {
    for (name, expected) in expected {
        until(&format!("{name} = {expected}"), || {
            counted(config, name) == *expected
        });
    }
}

fn site(origin: &Origin) -> Config {
    let config = Config::new(RECORDS);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = nobody.local_addr().unwrap();
    let rules = format!(
        "map /dead/ http://{nobody}/\nmap / http://{}/\n",
        origin.address
    );
    config.write("remap.config", &rules);
    config.write("storage.config", "span 64M tier=fast\n");
    config
}

#[test]
fn after_known_traffic_each_counter_of_tsar_has_the_right_value() {
    let origin = Origin::start();
    let config = site(&origin);
    let server = config.start();
    let clock = SystemClock::new();
    let begun = clock.mono();
    let mut client = Client::connect(server.port());
    traffic(&mut client);
    let mut bad = Client::connect(server.port());
    bad.send("GET / HTTP/1.1\r\n\r\n");
    assert_eq!(bad.answer(), 400);
    let mut short = Client::connect(server.port());
    assert_eq!(short.ask("/short", ""), 200);
    drop(Client::connect(server.port()));
    Client::connect(server.port()).send("GET / HT");
    let received = client.received + bad.received + short.received;
    let requests = TRAFFIC + 2;
    let seen = |of: fn(&Seen) -> &AtomicU64| of(&origin.seen).load(Ordering::SeqCst);
    wait_for(&config, ANY_TRAFFIC);
    wait_for(
        &config,
        &[
            (
                "proxy.node.http.origin_server_total_response_bytes",
                seen(|seen| &seen.written),
            ),
            ("proxy.node.http.user_agent_total_response_bytes", received),
            (
                "proxy.node.http.user_agents_total_transactions_count",
                requests,
            ),
            ("proxy.process.http.incoming_requests", requests),
            // The one for `/dead` found nobody.
            (
                "proxy.process.http.outgoing_requests",
                seen(|seen| &seen.requests) + 1,
            ),
            ("proxy.process.http.total_client_connections", 5),
            (
                "proxy.process.http.total_server_connections",
                seen(|seen| &seen.accepted),
            ),
        ],
    );
    // One transaction after another: no more than all the time there was.
    let spent = counted(&config, "proxy.process.http.total_transactions_time");
    let passed = clock.mono().since(begun).as_nanos();
    assert!(
        spent > 0 && u128::from(spent) <= passed,
        "{spent} of {passed}"
    );
    // The bodies, and what the cache keeps beside them.
    let ram = counted(&config, "proxy.process.cache.ram_cache.bytes_used");
    assert!((1000..4000).contains(&ram), "{ram}");
    let disk = counted(&config, "proxy.process.cache.bytes_used");
    assert!((101_000..150_000).contains(&disk), "{disk}");
}

/// Requests of `traffic`.
const TRAFFIC: u64 = 3 + 4 + 5 + 2 + 9 + 1;

/// Three misses, four RAM hits and five from the span; one more of each kind of
/// hit with another status; what an origin answers, and one that is not there.
fn traffic(client: &mut Client) {
    let mut ask = |path: &str, fields: &str, status: u16| {
        assert_eq!(client.ask(path, fields), status, "{path} {fields}");
    };
    for path in ["/size/1000/a", "/size/50000/b", "/size/50000/c"] {
        ask(path, "", 200);
    }
    for _ in 0..4 {
        ask("/size/1000/a", "", 200);
    }
    for name in ["b", "c", "b", "c", "b"] {
        ask(&format!("/size/50000/{name}"), "", 200);
    }
    ask("/size/1000/a", "If-None-Match: \"e\"\r\n", 304);
    ask("/size/50000/b", "Range: bytes=0-9\r\n", 206);
    for status in STATUSES {
        ask(&format!("/status/{status}"), "", status);
    }
    ask("/dead/a", "", 502);
}

/// What `traffic` comes to, with a request that names no host (400), one whose
/// answer breaks off (200), and two connections that end without a request and
/// in the middle of one.
const ANY_TRAFFIC: &[(&str, u64)] = &[
    ("proxy.process.cache.direntries.used", 3),
    ("proxy.process.cache.ram.read.success", 4 + 1),
    ("proxy.process.cache.read.success", 4 + 1 + 5 + 1),
    ("proxy.process.cache.ssd.read.success", 5 + 1),
    ("proxy.process.http.200_responses", 3 + 4 + 5 + 1),
    ("proxy.process.http.206_responses", 1),
    ("proxy.process.http.301_responses", 1),
    ("proxy.process.http.302_responses", 1),
    ("proxy.process.http.304_responses", 1),
    ("proxy.process.http.400_responses", 1 + 1),
    ("proxy.process.http.403_responses", 1),
    ("proxy.process.http.404_responses", 1),
    ("proxy.process.http.500_responses", 1),
    ("proxy.process.http.502_responses", 1 + 1),
    ("proxy.process.http.503_responses", 1),
    ("proxy.process.http.504_responses", 1),
    ("proxy.process.http.missing_host_hdr", 1),
    ("proxy.process.http.transaction_counts.errors.aborts", 0),
    (
        "proxy.process.http.transaction_counts.errors.connect_failed",
        1,
    ),
    (
        "proxy.process.http.transaction_counts.errors.early_hangups",
        1,
    ),
    (
        "proxy.process.http.transaction_counts.errors.empty_hangups",
        1,
    ),
    ("proxy.process.http.transaction_counts.errors.other", 1),
    (
        "proxy.process.http.transaction_counts.errors.pre_accept_hangups",
        0,
    ),
];

#[test]
fn while_an_origin_is_waited_for_each_gauge_of_tsar_has_the_right_value() {
    let origin = Origin::start();
    let config = site(&origin);
    let server = config.start();
    let mut idle = Client::connect(server.port());
    assert_eq!(idle.ask("/size/1000/a", ""), 200);
    let mut held = Client::connect(server.port());
    held.send("GET /held HTTP/1.1\r\nHost: h\r\n\r\n");
    until("a held request", || {
        origin.seen.requests.load(Ordering::SeqCst) == 2
    });
    let gauges = |active, clients| await_gauges(&config, &origin, active, clients);
    gauges(1, 2);
    origin.release.send(()).unwrap();
    assert_eq!(held.answer(), 200);
    gauges(0, 2);
    // A client that leaves while the origin is waited for.
    held.send("GET /held HTTP/1.1\r\nHost: h\r\n\r\n");
    gauges(1, 2);
    drop((idle, held));
    let aborts = "proxy.process.http.transaction_counts.errors.aborts";
    wait_for(&config, &[(aborts, 1)]);
    origin.release.send(()).unwrap();
    gauges(0, 0);
}

/// Waits until the gauges tell of so many transactions and client connections,
/// and of as many origin connections as the origin has.
fn await_gauges(config: &Config, origin: &Origin, active: u64, clients: u64) {
    let gauges = |servers: u64| {
        [
            ("current_active_client_connections", active),
            ("current_cache_connections", active),
            ("current_client_connections", clients),
            ("current_client_transactions", active),
            ("current_server_connections", servers),
            ("current_server_transactions", active),
        ]
    };
    until(
        &format!("{active} transactions of {clients} clients"),
        || {
            let servers = origin.seen.open.load(Ordering::SeqCst);
            let open = "proxy.process.net.connections_currently_open";
            let mut gauges = gauges(servers).into_iter();
            counted(config, open) == clients + servers
                && gauges.all(|(name, value)| {
                    counted(config, &format!("proxy.process.http.{name}")) == value
                })
        },
    );
}

#[test]
fn each_ratio_of_tsar_is_that_of_the_last_ten_seconds() {
    let origin = Origin::start();
    let config = site(&origin);
    let server = config.start();
    let mut client = Client::connect(server.port());
    let seen = |of: fn(&Seen) -> &AtomicU64| of(&origin.seen).load(Ordering::SeqCst) as f64;
    let mut round = 0;
    // A machine that is so slow that a round is older than that has another.
    until("the ratios of a round", || {
        round += 1;
        // Two misses, three RAM hits and a hit from the span.
        for (size, times) in [(1000, 4), (50_000, 2)] {
            for _ in 0..times {
                assert_eq!(client.ask(&format!("/size/{size}/{round}"), ""), 200);
            }
        }
        let moved = seen(|seen| &seen.read) + seen(|seen| &seen.written);
        let bandwidth = 1.0 - moved / (client.sent + client.received) as f64;
        let expected = [
            ("proxy.node.bandwidth_hit_ratio_avg_10s", bandwidth),
            ("proxy.node.cache_hit_mem_ratio_avg_10s", 3.0 / 6.0),
            ("proxy.node.cache_hit_ratio_avg_10s", 4.0 / 6.0),
        ];
        let right = expected.map(|(name, expected)| {
            let value: f64 = config.line(&["-r", name]).ok().trim().parse().unwrap();
            (value - expected).abs() < 1e-3
        });
        right == [true; 3]
    });
}
