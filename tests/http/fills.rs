//! Fetches that several clients share: who waits, who falls behind, who leaves.

use crate::support::{Client, Origin, Proxy, ok, until};
use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use strata::metrics::Metric;

const MIB: usize = 1 << 20;
const GET: &str = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

/// Bytes of which no two stretches are alike.
fn pattern(len: usize) -> Vec<u8> {
    let words = 0..u64::try_from(len.div_ceil(8)).unwrap();
    let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    bytes.truncate(len);
    bytes
}

/// An origin of one body with a strong validator. To a request without a range
/// it gives the first `before` bytes, and the rest when the gate is opened; it
/// breaks off there when the gate is dropped.
fn gated(len: usize, before: usize, ranges: bool) -> (Origin, Sender<()>) {
    let (open, gate) = channel();
    let gate: Mutex<Receiver<()>> = Mutex::new(gate);
    let body = Arc::new(pattern(len));
    let origin = Origin::speaking(move |request, mut stream| {
        if let Some(range) = request.fields("range").first().filter(|_| ranges) {
            return part(&body, range, stream);
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Length: {len}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        if stream.write_all(&body[..before]).is_err() {
            return false;
        }
        gate.lock().unwrap().recv().is_ok() && stream.write_all(&body[before..]).is_ok()
    });
    (origin, open)
}

fn part(body: &[u8], range: &str, mut stream: &std::net::TcpStream) -> bool {
    let (first, last) = range
        .strip_prefix("bytes=")
        .unwrap()
        .split_once('-')
        .unwrap();
    let first: usize = first.parse().unwrap();
    let last = last.parse().unwrap_or(body.len() - 1);
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nContent-Range: bytes {first}-{last}/{}\r\nContent-Length: {}\r\n\r\n",
        body.len(),
        last + 1 - first
    );
    stream.write_all(head.as_bytes()).is_ok() && stream.write_all(&body[first..=last]).is_ok()
}

/// As many clients, whose requests have all been read.
fn waiting(proxy: &Proxy, count: u64) -> Vec<Client> {
    let ask = |_| {
        let mut client = Client::connect(proxy.address);
        client.send(GET);
        client
    };
    let clients = (0..count).map(ask).collect();
    let all_read = || proxy.counter(Metric::IncomingRequests) == count;
    until("all requests", all_read);
    clients
}

/// A client that has got the head and the first `bytes` of the body.
fn reading(proxy: &Proxy, bytes: usize) -> (Client, Vec<u8>) {
    let mut client = Client::connect(proxy.address);
    let head = client.send(GET).head().unwrap();
    assert_eq!(head.status, 200, "{}", head.head);
    let begun = client.bytes(bytes);
    (client, begun)
}

#[test]
fn who_comes_late_reads_from_the_cache_what_memory_has_let_go() {
    let dir = tempfile::tempdir().unwrap();
    let (origin, gate) = gated(20 * MIB, 16 * MIB, false);
    let proxy = Proxy::on_disk("", &origin.map("/"), dir.path());
    let (mut first, mut got) = reading(&proxy, 16 * MIB);
    let (mut late, mut behind) = reading(&proxy, 15 * MIB);
    assert!(proxy.counter(Metric::FillReadbacks) > 0);
    gate.send(()).unwrap();
    got.extend(first.bytes(4 * MIB));
    behind.extend(late.bytes(5 * MIB));
    assert!(got == pattern(20 * MIB) && behind == got);
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn who_lags_behind_what_is_not_stored_asks_for_the_part_he_missed() {
    const LEN: usize = 40 * MIB;
    let (origin, gate) = gated(LEN, 0, true);
    let proxy = Proxy::start(&origin.map("/"));
    let (mut slow, _) = reading(&proxy, 0);
    let (mut fast, _) = reading(&proxy, 0);
    gate.send(()).unwrap();
    let mut got = slow.bytes(MIB);
    assert!(fast.bytes(LEN) == pattern(LEN));
    got.extend(slow.bytes(LEN - MIB));
    assert!(got == pattern(LEN));
    let asked = origin.requests();
    assert_eq!(asked[1].fields("if-range"), ["\"a\""], "{asked:?}");
    until("FillResumed", || proxy.counter(Metric::FillResumed) == 1);
}

#[test]
fn who_lags_behind_what_can_not_be_had_again_is_cut_and_counted() {
    const LEN: usize = 40 * MIB;
    let (origin, gate) = gated(LEN, 0, false);
    let proxy = Proxy::start(&origin.map("/"));
    let (mut slow, _) = reading(&proxy, 0);
    let (mut fast, _) = reading(&proxy, 0);
    gate.send(()).unwrap();
    let mut got = slow.bytes(MIB);
    fast.bytes(LEN);
    drop(gate);
    let (rest, in_order) = slow.rest();
    got.extend(rest);
    assert!(!in_order && got.len() < LEN && pattern(LEN).starts_with(&got));
    until("FillCut", || proxy.counter(Metric::FillCut) == 1);
}

#[test]
fn a_body_that_breaks_off_goes_on_by_a_range_under_a_strong_validator() {
    let (origin, gate) = gated(3 * MIB, MIB, true);
    drop(gate);
    let proxy = Proxy::start(&origin.map("/"));
    let (_, got) = reading(&proxy, 3 * MIB);
    assert!(got == pattern(3 * MIB));
    let asked = origin.requests();
    assert_eq!(asked[1].fields("range"), ["bytes=1048576-3145727"]);
    assert_eq!(asked[1].fields("if-range"), ["\"a\""]);
    until("FillResumed", || proxy.counter(Metric::FillResumed) == 1);
    until("the store", || {
        let mut again = Client::connect(proxy.address);
        again.ask(GET).body == pattern(3 * MIB) && origin.requests().len() == 2
    });
}

#[test]
fn two_hundred_clients_of_an_origin_that_dies_get_no_clean_short_body() {
    let (origin, gate) = gated(2 * MIB, MIB, false);
    let proxy = Proxy::start(&origin.map("/"));
    let mut clients = waiting(&proxy, 200);
    drop(gate);
    for client in &mut clients {
        assert!(client.response().is_err());
    }
    let before = origin.requests().len();
    let mut again = Client::connect(proxy.address);
    assert!(again.send(GET).response().is_err());
    assert!(origin.requests().len() > before, "nothing was stored");
}

#[test]
fn a_thousand_cold_clients_make_one_fetch() {
    let (origin, gate) = gated(1000, 0, false);
    let proxy = Proxy::start(&origin.map("/"));
    let mut clients = waiting(&proxy, 1000);
    gate.send(()).unwrap();
    for client in &mut clients {
        assert_eq!(client.response().unwrap().body, pattern(1000));
    }
    assert_eq!(origin.requests().len(), 1);
    until("OutcomeHitWhileWriting", || {
        proxy.counter(Metric::OutcomeHitWhileWriting) == 999
    });
}

#[test]
fn a_client_that_takes_nothing_does_not_hold_what_is_stored() {
    const LEN: usize = 24 * MIB;
    let dir = tempfile::tempdir().unwrap();
    let (origin, gate) = gated(LEN, 0, true);
    let proxy = Proxy::on_disk("", &origin.map("/"), dir.path());
    let (mut slow, _) = reading(&proxy, 0);
    gate.send(()).unwrap();
    until("the store", || {
        proxy.counter(Metric::CacheWriteSuccess) == 1
    });
    assert!(slow.bytes(LEN) == pattern(LEN));
    assert!(proxy.counter(Metric::FillReadbacks) > 0);
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn a_fetch_outlives_its_drained_thread_for_who_follows_from_another() {
    let (origin, gate) = gated(1000, 500, false);
    let (proxy, other) = Proxy::of_two_threads(&origin.map("/"));
    let (first, _) = reading(&proxy, 500);
    let mut second = Client::connect(other);
    assert_eq!(second.send(GET).head().unwrap().status, 200);
    let mut got = second.bytes(500);
    proxy.drain();
    until("no thread accepts", || {
        proxy.counter(Metric::NetAcceptsOpen) == 0
    });
    first.reset();
    until("the abort", || {
        proxy.counter(Metric::OutcomeClientAbort) == 1
    });
    // What the first thread would do by itself, it has done now.
    assert!(!second.has_answer_within(Duration::from_millis(50)));
    gate.send(()).unwrap();
    got.extend(second.bytes(500));
    assert!(got == pattern(1000));
    assert_eq!(origin.requests().len(), 1);
    proxy.ended();
}

/// What an origin that tells languages and users apart has at `/a`, and what a
/// client is to get of it.
fn own_answer(language: &str, user: &str) -> Vec<u8> {
    format!("{language}/{user}").repeat(1000).into_bytes()
}

#[test]
fn clients_that_differ_get_their_own_right_answers_on_one_cold_key() {
    let (open, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let origin = Origin::answering(move |request| {
        let field = |name| {
            request
                .fields(name)
                .first()
                .copied()
                .unwrap_or("-")
                .to_owned()
        };
        let body = own_answer(&field("accept-language"), &field("authorization"));
        // It opens for good when the sender is dropped.
        gate.lock().unwrap().recv().ok();
        let head = "HTTP/1.1 200 OK\r\nVary: Accept-Language\r\nCache-Control: max-age=60\r\n";
        let length = body.len();
        let head = format!("{head}Content-Length: {length}\r\n\r\n");
        [head.as_bytes(), &body].concat()
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut asked = Vec::new();
    for n in 0..120_usize {
        let language = ["de", "fr", "it"][n % 3];
        let user = if n.is_multiple_of(10) {
            format!("user{n}")
        } else {
            "-".to_owned()
        };
        let mut fields = format!("Accept-Language: {language}\r\n");
        if user != "-" {
            fields += &format!("Authorization: {user}\r\n");
        }
        let range = (n.is_multiple_of(4)).then(|| n * 7..n * 9 + 50);
        if let Some(range) = &range {
            fields += &format!("Range: bytes={}-{}\r\n", range.start, range.end - 1);
        }
        let mut client = Client::connect(proxy.address);
        client.send(format!("GET /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
        asked.push((client, own_answer(language, &user), range));
    }
    until("all requests", || {
        proxy.counter(Metric::IncomingRequests) == 120
    });
    drop(open);
    for (client, whole, range) in &mut asked {
        let answer = client.response().unwrap();
        match (answer.status, range) {
            (206, Some(range)) => assert!(answer.body == whole[range.clone()], "{}", answer.head),
            (200, _) => assert!(answer.body == *whole, "{}", answer.head),
            _ => panic!("{}", answer.head),
        }
    }
}

/// An origin that never answers, and tells when its connection is ended.
fn silent() -> (Origin, Receiver<()>) {
    let (ended, gone) = channel();
    let origin = Origin::speaking(move |_, mut stream| {
        let read = std::io::Read::read(&mut stream, &mut [0]);
        if matches!(read, Ok(0) | Err(_)) {
            ended.send(()).unwrap();
        }
        false
    });
    (origin, gone)
}

#[test]
fn a_fetch_that_nobody_waits_for_any_more_is_given_up() {
    for method in ["GET", "HEAD", "DELETE"] {
        let (origin, gone) = silent();
        let proxy = Proxy::start(&origin.map("/"));
        let mut client = Client::connect(proxy.address);
        client.send(format!("{method} /a HTTP/1.1\r\nHost: h\r\n\r\n"));
        until("the request", || !origin.requests().is_empty());
        client.reset();
        gone.recv_timeout(Duration::from_secs(5)).expect(method);
        until("the outcome", || {
            proxy.counter(Metric::OutcomeClientAbort) == 1
        });
    }
}

#[test]
fn a_client_that_ended_its_side_is_gone_where_half_open_is_not_allowed() {
    let records = "CONFIG proxy.config.http.allow_half_open INT 0\n";
    for method in ["GET", "HEAD", "DELETE"] {
        let (origin, gone) = silent();
        let proxy = Proxy::with(records, &origin.map("/"));
        let mut client = Client::connect(proxy.address);
        client.send(format!("{method} /a HTTP/1.1\r\nHost: h\r\n\r\n"));
        until("the request", || !origin.requests().is_empty());
        client.finish();
        gone.recv_timeout(Duration::from_secs(5)).expect(method);
        until("the outcome", || {
            proxy.counter(Metric::OutcomeClientAbort) == 1
        });
        assert!(client.is_closed(), "{method}");
    }
}

#[test]
fn a_fetch_goes_on_for_who_still_waits_when_the_first_client_leaves() {
    let (origin, gate) = gated(1000, 0, false);
    let proxy = Proxy::start(&origin.map("/"));
    let mut first = Client::connect(proxy.address);
    first.send(GET);
    until("the fetch", || !origin.requests().is_empty());
    let mut second = Client::connect(proxy.address);
    second.send(GET);
    until("both", || proxy.counter(Metric::IncomingRequests) == 2);
    first.reset();
    until("the abort", || {
        proxy.counter(Metric::OutcomeClientAbort) == 1
    });
    gate.send(()).unwrap();
    assert_eq!(second.response().unwrap().body, pattern(1000));
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn a_client_that_only_ended_its_side_still_gets_its_answer() {
    let (open, gate) = channel();
    let gate = Mutex::new(gate);
    let origin = Origin::answering(move |_| {
        gate.lock().unwrap().recv().unwrap();
        ok("answer")
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    client.send(GET).finish();
    until("the fetch", || !origin.requests().is_empty());
    assert!(!client.has_answer_within(Duration::from_millis(50)));
    open.send(()).unwrap();
    assert_eq!(client.response().unwrap().text(), "answer");
}

#[test]
fn a_damaged_copy_is_fetched_again_within_the_request() {
    let dir = tempfile::tempdir().unwrap();
    let (origin, gate) = gated(5 * MIB, MIB, true);
    gate.send(()).unwrap();
    gate.send(()).unwrap();
    let proxy = Proxy::on_disk("", &origin.map("/"), dir.path());
    assert!(reading(&proxy, 5 * MIB).1 == pattern(5 * MIB));
    until("the write", || {
        damage(&dir.path().join("span"), &pattern(5 * MIB))
    });
    assert!(reading(&proxy, 5 * MIB).1 == pattern(5 * MIB));
    assert_eq!(origin.requests().len(), 2);
    until("the store", || {
        let before = origin.requests().len();
        reading(&proxy, 5 * MIB).1 == pattern(5 * MIB) && origin.requests().len() == before
    });
}

#[test]
fn a_damaged_copy_is_504_to_who_wants_it_only_if_cached() {
    let dir = tempfile::tempdir().unwrap();
    let (origin, gate) = gated(5 * MIB, MIB, true);
    gate.send(()).unwrap();
    let proxy = Proxy::on_disk("", &origin.map("/"), dir.path());
    assert!(reading(&proxy, 5 * MIB).1 == pattern(5 * MIB));
    until("the write", || {
        damage(&dir.path().join("span"), &pattern(5 * MIB))
    });
    let only = "Range: bytes=-100001\r\nCache-Control: only-if-cached\r\n";
    let request = format!("GET /a HTTP/1.1\r\nHost: h\r\n{only}\r\n");
    let answer = Client::connect(proxy.address).ask(request);
    assert_eq!((answer.status, origin.requests().len()), (504, 1));
}

/// Overwrites a block in the last MiB of `body` in the span, once it is there.
fn damage(span: &std::path::Path, body: &[u8]) -> bool {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(span)
        .unwrap();
    let sought = &body[body.len() - 100_000..body.len() - 99_000];
    let held = std::fs::read(span).unwrap();
    let Some(at) = held
        .windows(sought.len())
        .position(|window| window == sought)
    else {
        return false;
    };
    file.write_all_at(&[0; 512], u64::try_from(at).unwrap())
        .unwrap();
    true
}

/// An origin whose one object is always stale. A validation is answered by
/// `again` when the gate opens.
fn stale(again: Vec<u8>) -> (Origin, Sender<()>) {
    let (open, gate) = channel();
    let gate: Mutex<Receiver<()>> = Mutex::new(gate);
    let origin = Origin::speaking(move |request, mut stream| {
        if request.fields("if-none-match").is_empty() {
            let stale = b"HTTP/1.1 200 OK\r\nETag: \"a\"\r\nCache-Control: max-age=0\r\nContent-Length: 1\r\n\r\nx";
            return stream.write_all(stale).is_ok();
        }
        // It opens for good when the sender is dropped.
        gate.lock().unwrap().recv().ok();
        stream.write_all(&again).is_ok()
    });
    (origin, open)
}

#[test]
fn each_request_for_what_is_validated_counts_one_read() {
    let (origin, gate) = stale(b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n".to_vec());
    let proxy = Proxy::start(&origin.map("/"));
    assert_eq!(Client::connect(proxy.address).ask(GET).status, 200);
    until("the store", || {
        proxy.counter(Metric::CacheWriteSuccess) == 1
    });
    let ask = |_| {
        let mut client = Client::connect(proxy.address);
        client.send(GET);
        client
    };
    let mut clients: Vec<_> = (0..50).map(ask).collect();
    until("all reads", || {
        proxy.counter(Metric::CacheReadSuccess) == 50
    });
    drop(gate);
    for client in &mut clients {
        assert_eq!(client.response().unwrap().text(), "x");
    }
    until("all accounts", || {
        proxy.counter(Metric::OutcomeHitRevalidated) == 50
    });
    assert_eq!(proxy.counter(Metric::CacheReadSuccess), 50);
    assert_eq!(proxy.counter(Metric::CacheRamReadSuccess), 50);
}

#[test]
fn who_comes_after_a_purge_does_not_follow_the_fetch_from_before() {
    let (origin, gate) = gated(2 * MIB, MIB, false);
    let proxy = Proxy::start(&origin.map("/"));
    let (mut first, mut got) = reading(&proxy, MIB);
    let purged = Client::connect(proxy.address).ask("PURGE /a HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!([200, 404].contains(&purged.status), "{}", purged.head);
    let (mut second, _) = reading(&proxy, MIB);
    assert_eq!(origin.requests().len(), 2);
    // Who comes now shares the second, and the first's end takes nothing away.
    for _ in 0..2 {
        gate.send(()).unwrap();
    }
    got.extend(first.bytes(MIB));
    assert!(got == pattern(2 * MIB));
    second.bytes(MIB);
    until("the store", || {
        let only = "GET /a HTTP/1.1\r\nHost: h\r\nCache-Control: only-if-cached\r\n\r\n";
        Client::connect(proxy.address).ask(only).status == 200
    });
    assert_eq!(origin.requests().len(), 2, "the second one is stored");
}
