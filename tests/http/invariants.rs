//! What holds at every reading of the counters, whatever goes on.

use crate::support::{Client, Origin, Proxy, snapshot, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use strata::base::prng::Prng;
use strata::metrics::{METRICS, Metric, Registry};
use strata::proxy::Shared;
use strata::proxy::access_log::{AccessLog, Format, LogOptions};

const CLIENTS: u64 = 4;
const REQUESTS: u64 = 150;

/// Requests of each kind that a client may make; `{n}` is a small number.
const KINDS: &[&str] = &[
    "GET /fresh/{n} HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /fresh/{n} HTTP/1.1\r\nHost: h\r\nIf-None-Match: \"e\"\r\n\r\n",
    "GET /fresh/{n} HTTP/1.1\r\nHost: h\r\nRange: bytes=1-2\r\n\r\n",
    "GET /stale/{n} HTTP/1.1\r\nHost: h\r\n\r\n",
    "HEAD /stale/{n} HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /private/{n} HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /broken/{n} HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET /new HTTP/1.1\r\nHost: h\r\nCache-Control: only-if-cached\r\n\r\n",
    "POST /fresh/{n} HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx",
    "PURGE /fresh/{n} HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n",
    "TRACE /fresh/{n} HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\n\r\n",
    "GET /large/{n} HTTP/1.1\r\nHost: h\r\n\r\n",
];

fn answer(target: &str) -> Vec<u8> {
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\nETag: \"e\"\r\n{fields}\r\n\r\n");
    let short = "Content-Length: 5";
    match target.split('/').nth(1) {
        Some("stale") => head(&format!("Cache-Control: max-age=0\r\n{short}")) + "hello",
        Some("private") => head(&format!("Cache-Control: private\r\n{short}")) + "hello",
        Some("broken") => head("Connection: close\r\nContent-Length: 9") + "half",
        Some("large") => head("Content-Length: 300000") + &"x".repeat(300_000),
        _ => head(&format!("Cache-Control: max-age=60\r\n{short}")) + "hello",
    }
    .into_bytes()
}

/// One client: requests of random kinds, some left before their answer.
fn traffic(proxy: &Proxy, seed: u64) {
    let mut prng = Prng::seeded(seed);
    for _ in 0..REQUESTS {
        let kind = KINDS[usize::try_from(prng.below(KINDS.len() as u64)).unwrap()];
        let request = kind.replace("{n}", &prng.below(5).to_string());
        let mut client = Client::connect(proxy.address);
        client.send(&request);
        match prng.below(6) {
            0 => client.reset(),
            1 => drop(client),
            _ if request.starts_with("HEAD") => drop(client.head()),
            _ => drop(client.response()),
        }
    }
}

/// What is not as it must be in one reading.
fn fault(registry: &Registry) -> Option<String> {
    let sums = registry.sums();
    let of = |metric: Metric| sums[metric.index()];
    let rows = METRICS.iter().zip(&sums);
    let outcomes = rows.filter(|(row, _)| row.name.starts_with("strata.outcome."));
    let outcomes: u64 = outcomes.map(|(_, sum)| sum).sum();
    let all = outcomes + of(Metric::CurrentClientTransactions);
    let incoming = of(Metric::IncomingRequests);
    let told = of(Metric::ClientResponseHeadBytes) + of(Metric::ClientResponseBodyBytes);
    let written = of(Metric::NetWriteBytes);
    let right = incoming == all && told <= written;
    (!right).then(|| {
        format!(
            "{incoming} came, {outcomes} ended, {all} with those in work; \
             {told} bytes of responses in {written} written"
        )
    })
}

#[test]
fn requests_are_the_sum_of_outcomes_at_every_reading() {
    let origin = Origin::answering(|request| answer(request.target()));
    let rules = origin.map("/");
    let proxy = Proxy::start(&rules);
    let done = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|seed| {
                scope.spawn({
                    let proxy = &proxy;
                    move || traffic(proxy, seed)
                })
            })
            .collect();
        let read = scope.spawn(|| {
            let mut readings = 0_u64;
            while !done.load(Ordering::SeqCst) {
                assert_eq!(fault(&proxy.registry), None, "reading {readings}");
                readings += 1;
            }
            readings
        });
        for round in 0..20 {
            let record = format!("CONFIG proxy.config.http.cache.http INT {}\n", round % 2);
            proxy.reload(&record, &rules);
            std::thread::yield_now();
        }
        proxy.reload("", &rules);
        clients
            .into_iter()
            .for_each(|client| client.join().unwrap());
        done.store(true, Ordering::SeqCst);
        assert!(read.join().unwrap() > 100);
    });
    until("rest", || {
        proxy.counter(Metric::CurrentClientTransactions) == 0
    });
    assert_eq!(fault(&proxy.registry), None);
    assert!(proxy.counter(Metric::IncomingRequests) > CLIENTS * REQUESTS / 2);
}

/// Bytes sent to clients, by each line of a log in squid's format.
fn bytes_of(log: &str) -> Vec<u64> {
    let bytes = |line: &str| line.split_ascii_whitespace().nth(4)?.parse().ok();
    log.lines().map(|line| bytes(line).unwrap()).collect()
}

#[test]
fn at_rest_the_log_has_a_line_for_each_request_and_its_bytes_are_those_counted() {
    let dir = tempfile::tempdir().unwrap();
    let options = LogOptions {
        dir: dir.path().to_owned(),
        format: Format::named("squid"),
        flush: Duration::from_secs(60),
        enabled: true,
    };
    let path = options.path();
    let log = AccessLog::start(options).unwrap();
    let used = log.clone();
    let origin = Origin::answering(|request| answer(request.target()));
    let adapt = move |shared| Shared {
        log: Arc::new(used),
        ..shared
    };
    let proxy = Proxy::running(snapshot("", &origin.map("/")), Box::new(adapt));
    std::thread::scope(|scope| {
        for seed in 10..10 + CLIENTS {
            let proxy = &proxy;
            scope.spawn(move || traffic(proxy, seed));
        }
    });
    // One that is not accepted yet is not counted as open either.
    until("rest", || {
        proxy.counter(Metric::TotalClientConnections) == CLIENTS * REQUESTS
            && proxy.counter(Metric::CurrentClientConnections) == 0
    });
    let of = |metric| proxy.counter(metric);
    let (incoming, told) = (
        of(Metric::IncomingRequests),
        of(Metric::ClientResponseHeadBytes) + of(Metric::ClientResponseBodyBytes),
    );
    assert_eq!(of(Metric::CurrentClientTransactions), 0);
    assert_eq!(fault(&proxy.registry), None);
    drop(proxy);
    log.stop();
    let logged = bytes_of(&std::fs::read_to_string(path).unwrap());
    assert_eq!(u64::try_from(logged.len()).unwrap(), incoming);
    assert_eq!(logged.iter().sum::<u64>(), told);
}
