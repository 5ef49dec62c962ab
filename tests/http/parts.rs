//! Objects that are held in part: ranges of what is not held whole, end to end
//! (RFC 9111 3.3 and 3.4).

use crate::support::{Client, Origin, Proxy, Recorded, Response, until};
use std::collections::HashSet;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use strata::metrics::Metric;

const MIB: u64 = 1 << 20;

/// The bytes of version `version` at `range`.
fn content(version: u64, range: Range<u64>) -> Vec<u8> {
    range
        .map(|at| {
            let word = (at / 8 + version).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            word.to_le_bytes()[usize::try_from(at % 8).unwrap()]
        })
        .collect()
}

/// An origin of one object that may be longer than any memory.
struct Site {
    origin: Origin,
    proxy: Proxy,
    version: Arc<AtomicU64>,
    len: u64,
    _dir: tempfile::TempDir,
}

/// How the origin answers.
#[derive(Clone)]
struct Manner {
    fields: &'static str,
    /// Whether it heeds Range.
    ranges: bool,
    /// Closes the connection after so many bytes of the next body.
    breaks_after: Arc<AtomicU64>,
    /// Answers 503.
    fails: Arc<AtomicBool>,
    /// Says no-store in place of a lifetime.
    forbids: Arc<AtomicBool>,
    /// Where it was asked from.
    connections: Arc<Mutex<HashSet<SocketAddr>>>,
}

impl Manner {
    fn with(fields: &'static str) -> Self {
        Self {
            fields,
            ranges: true,
            breaks_after: Arc::new(AtomicU64::new(u64::MAX)),
            fails: Arc::default(),
            forbids: Arc::default(),
            connections: Arc::default(),
        }
    }

    fn answer(&self, version: u64, len: u64, asked: &Recorded, stream: &TcpStream) -> bool {
        if self.fails.load(Ordering::SeqCst) {
            let answer = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
            return write(stream, answer.as_bytes());
        }
        let from = stream.peer_addr().unwrap();
        self.connections.lock().unwrap().insert(from);
        let tag = format!("\"{version}\"");
        let mut fields = self.fields.replace("{tag}", &tag);
        if self.forbids.load(Ordering::SeqCst) {
            fields = fields.replace("max-age=600", "no-store");
        }
        if asked.fields("if-none-match") == [&*tag] {
            return write(
                stream,
                format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n").as_bytes(),
            );
        }
        let range = self.range(&tag, len, asked);
        let (status, range) = match range {
            Some(range) if range.start >= len => {
                let head = "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n";
                let head = format!("{head}Content-Range: bytes */{len}\r\n\r\n");
                return write(stream, head.as_bytes());
            }
            Some(range) => {
                let last = range.end - 1;
                let part = format!("Content-Range: bytes {}-{last}/{len}\r\n", range.start);
                (format!("206 Partial Content\r\n{part}"), range)
            }
            None => ("200 OK\r\n".to_owned(), 0..len),
        };
        let length = range.end - range.start;
        let head = format!("HTTP/1.1 {status}{fields}Content-Length: {length}\r\n\r\n");
        let is_head = asked.head.starts_with("HEAD ");
        write(stream, head.as_bytes()) && (is_head || self.send(version, range, stream))
    }

    fn range(&self, tag: &str, len: u64, asked: &Recorded) -> Option<Range<u64>> {
        let text = *asked.fields("range").first().filter(|_| self.ranges)?;
        let condition = asked.fields("if-range");
        if condition.first().is_some_and(|condition| *condition != tag) {
            return None;
        }
        let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
        let first = match first {
            "" => return Some(len - last.parse::<u64>().ok()?..len),
            first => first.parse().ok()?,
        };
        let end = last.parse::<u64>().map_or(len, |last| len.min(last + 1));
        Some(first..end)
    }

    fn send(&self, version: u64, range: Range<u64>, stream: &TcpStream) -> bool {
        let breaks = self.breaks_after.swap(u64::MAX, Ordering::SeqCst);
        let end = range.end.min(range.start.saturating_add(breaks));
        let mut at = range.start;
        while at < end {
            let next = end.min(at + 65_536);
            if !write(stream, &content(version, at..next)) {
                return false;
            }
            at = next;
        }
        end == range.end
    }
}

fn write(mut stream: &TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).is_ok()
}

const FRESH: &str = "ETag: {tag}\r\nCache-Control: max-age=600\r\n";

impl Site {
    fn new(len: u64, manner: &Manner) -> Self {
        let version = Arc::new(AtomicU64::new(1));
        let (current, manner) = (Arc::clone(&version), manner.clone());
        let origin = Origin::speaking(move |asked, stream| {
            manner.answer(current.load(Ordering::SeqCst), len, asked, stream)
        });
        let dir = tempfile::tempdir().unwrap();
        let proxy = Proxy::on_disk("", &origin.map("/"), dir.path());
        Self {
            origin,
            proxy,
            version,
            len,
            _dir: dir,
        }
    }

    fn fresh(len: u64) -> Self {
        Self::new(len, &Manner::with(FRESH))
    }

    fn ask(&self, fields: &str) -> Response {
        Client::connect(self.proxy.address).ask(request("GET", fields))
    }

    /// Asks for a range, and judges the answer.
    fn range(&self, range: Range<u64>) {
        self.range_of(1, range);
    }

    fn range_of(&self, version: u64, range: Range<u64>) {
        let last = range.end - 1;
        let answer = self.ask(&format!("Range: bytes={}-{last}\r\n", range.start));
        assert_eq!(answer.status, 206, "{range:?}: {}", answer.head);
        let expected = format!("bytes {}-{last}/{}", range.start, self.len);
        assert_eq!(answer.fields("content-range"), [expected]);
        assert!(answer.body == content(version, range.clone()), "{range:?}");
    }

    /// The ranges that the origin was asked for so far, in MiB.
    fn asked(&self) -> Vec<Range<u64>> {
        let requests = self.origin.requests();
        let ranges = requests.iter().map(|asked| {
            let text = asked.fields("range").first().copied().unwrap_or("bytes=0-");
            let (first, last) = text
                .strip_prefix("bytes=")
                .unwrap()
                .split_once('-')
                .unwrap();
            let first: u64 = first.parse().unwrap();
            let end = last
                .parse::<u64>()
                .map_or(self.len, |last| self.len.min(last + 1));
            assert!(
                first.is_multiple_of(MIB) && (end.is_multiple_of(MIB) || end == self.len),
                "{text}"
            );
            first / MIB..end.div_ceil(MIB)
        });
        ranges.collect()
    }
}

fn request(method: &str, fields: &str) -> String {
    format!("{method} /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n")
}

#[test]
fn a_range_is_widened_to_fragments_and_only_what_is_missing_is_fetched() {
    let site = Site::fresh(10 * MIB + 17);
    site.range(MIB + 5..MIB + 10);
    assert_eq!(site.asked().len(), 1);
    assert_eq!(site.asked()[0], 1..2);
    // The same fragment again, then one beside it, and the last, short one.
    site.range(MIB..2 * MIB);
    site.range(MIB + 7..2 * MIB + 3);
    site.range(10 * MIB + 3..10 * MIB + 17);
    assert_eq!(site.asked(), [1..2, 2..3, 10..11]);
    site.range(0..10 * MIB + 17);
    assert_eq!(site.asked()[3..], [0..1, 3..10]);
    let fetched = site.proxy.counter(Metric::PartsFetched);
    assert_eq!(fetched, 11);
}

#[test]
fn an_object_becomes_whole_when_all_its_parts_are_there() {
    let manner = Manner::with(FRESH);
    let site = Site::new(5 * MIB + 1, &manner);
    site.range(2 * MIB..3 * MIB);
    let whole = site.ask("");
    assert_eq!(whole.status, 200);
    assert!(whole.body == content(1, 0..site.len));
    assert_eq!(site.asked(), [2..3, 0..2, 3..6]);
    // From now on nobody is asked.
    manner.fails.store(true, Ordering::SeqCst);
    for fields in ["", "Cache-Control: only-if-cached\r\n"] {
        let again = site.ask(fields);
        assert!(again.body == content(1, 0..site.len), "{}", again.head);
        let status = again.fields("cache-status");
        assert!(status[0].contains("; hit"), "{status:?}");
    }
    site.range(MIB - 1..4 * MIB + 1);
    assert_eq!(site.asked().len(), 3);
}

#[test]
fn what_is_missing_is_told_from_a_hit_and_not_asked_for_if_only_cached() {
    let site = Site::fresh(4 * MIB);
    let status = |answer: &Response| answer.fields("cache-status")[0].to_owned();
    let cold = site.ask("Range: bytes=0-9\r\n");
    assert!(status(&cold).contains("fwd=uri-miss"), "{}", cold.head);
    let hit = site.ask("Range: bytes=5-14\r\n");
    assert!(status(&hit).contains("; hit"), "{}", hit.head);
    let barred = site.ask("Range: bytes=2097152-2097160\r\nCache-Control: only-if-cached\r\n");
    assert_eq!(barred.status, 504);
    let partial = site.ask("Range: bytes=1048570-1048580\r\n");
    assert!(status(&partial).contains("fwd=partial"), "{}", partial.head);
    let head = Client::connect(site.proxy.address)
        .send(request("HEAD", ""))
        .head()
        .unwrap();
    assert_eq!(head.fields("content-length"), ["4194304"]);
    let known = site.ask("If-None-Match: \"1\"\r\n");
    assert_eq!(known.status, 304);
    assert_eq!(site.asked(), [0..1, 1..2]);
    assert_eq!(site.proxy.counter(Metric::OutcomeMissPartial), 1);
}

#[test]
fn many_clients_at_random_ranges_fetch_each_fragment_once() {
    let site = Site::fresh(24 * MIB + 100);
    std::thread::scope(|scope| {
        for client in 0..50_u64 {
            let site = &site;
            scope.spawn(move || {
                let mut seed = client.wrapping_mul(0x5851_f42d_4c95_7f2d) + 1;
                for _ in 0..6 {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let start = (seed >> 20) % (site.len - 1);
                    let length = 1 + (seed >> 40) % (2 * MIB);
                    site.range(start..site.len.min(start + length));
                }
            });
        }
    });
    let mut times = [0; 25];
    for range in site.asked() {
        for fragment in range {
            times[usize::try_from(fragment).unwrap()] += 1;
        }
    }
    assert!(times.iter().all(|times| *times <= 1), "{times:?}");
}

#[test]
fn a_purge_removes_every_part() {
    let site = Site::fresh(8 * MIB);
    site.range(3 * MIB..4 * MIB);
    site.range(6 * MIB..7 * MIB);
    let mut client = Client::connect(site.proxy.address);
    assert_eq!(client.ask(request("PURGE", "")).status, 200);
    site.version.store(2, Ordering::SeqCst);
    site.range_of(2, 6 * MIB..7 * MIB);
    site.range_of(2, 3 * MIB..4 * MIB);
    assert_eq!(site.asked(), [3..4, 6..7, 6..7, 3..4]);
    assert_eq!(client.ask(request("PURGE", "")).status, 200);
    assert_eq!(client.ask(request("PURGE", "")).status, 404);
}

#[test]
fn another_validator_drops_the_parts_and_never_mixes_versions() {
    let site = Site::fresh(8 * MIB);
    site.range(0..MIB);
    site.version.store(2, Ordering::SeqCst);
    // Nothing is sent yet: the new version answers.
    site.range_of(2, 4 * MIB..5 * MIB);
    site.range_of(2, 0..MIB);
    // A part of the old one is sent: the transfer breaks off.
    site.version.store(3, Ordering::SeqCst);
    let range = request("GET", "Range: bytes=0-2097151\r\n");
    let broken = Client::connect(site.proxy.address).send(range).response();
    assert!(broken.is_err());
    site.range_of(3, 0..2 * MIB);
}

#[test]
fn a_part_asked_for_earlier_does_not_take_the_place_of_what_was_asked_for_later() {
    let (opens, gate) = std::sync::mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let origin = Origin::speaking(move |asked, stream| {
        let fields = "Cache-Control: public, max-age=600\r\n";
        let answer = if asked.fields("range").is_empty() {
            format!("HTTP/1.1 200 OK\r\nETag: \"new\"\r\n{fields}Content-Length: 3\r\n\r\nnew")
        } else if asked.fields("range") == ["bytes=0-2"] {
            let part = "Content-Range: bytes 0-2/3145728\r\nContent-Length: 3\r\n\r\nold";
            format!("HTTP/1.1 206 Partial Content\r\nETag: \"old\"\r\n{fields}{part}")
        } else {
            gate.lock().unwrap().recv().unwrap();
            let part = "Content-Range: bytes 0-1048575/3145728\r\nContent-Length: 1048576";
            let body = "o".repeat(1 << 20);
            format!("HTTP/1.1 206 Partial Content\r\nETag: \"old\"\r\n{fields}{part}\r\n\r\n{body}")
        };
        write(stream, answer.as_bytes())
    });
    let dir = tempfile::tempdir().unwrap();
    let proxy = Proxy::on_disk("", &origin.map("/"), dir.path());
    let mut early = Client::connect(proxy.address);
    early.send(request("GET", "Range: bytes=0-2\r\n"));
    until("the origin is asked", || origin.requests().len() == 1);
    // Whoever has credentials waits for nobody.
    let mut late = Client::connect(proxy.address);
    let whole = late.ask(request("GET", "Authorization: Basic x\r\n"));
    assert_eq!(whole.text(), "new");
    opens.send(()).unwrap();
    assert_eq!(early.response().unwrap().text(), "old");
    assert_eq!(late.ask(request("GET", "")).text(), "new");
    assert_eq!(origin.requests().len(), 3);
}

#[test]
fn a_stale_part_is_validated_and_refreshed_rfc_9111_4_3() {
    let manner = Manner::with("ETag: {tag}\r\nCache-Control: max-age=0\r\n");
    let site = Site::new(8 * MIB, &manner);
    site.range(MIB..2 * MIB);
    site.range(MIB..2 * MIB);
    let requests = site.origin.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1].fields("if-none-match"), ["\"1\""]);
    // Another version: the part of it that is wanted comes at once.
    site.version.store(2, Ordering::SeqCst);
    site.range_of(2, 5 * MIB..6 * MIB);
    assert_eq!(site.asked()[2], 5..6);
    assert_eq!(site.asked().len(), 3);
}

#[test]
fn what_may_not_be_stored_in_part_is_passed_on_as_it_is_asked_for() {
    for fields in [
        "Cache-Control: max-age=600\r\n",
        "ETag: W/{tag}\r\nCache-Control: max-age=600\r\n",
        "ETag: {tag}\r\nCache-Control: no-store\r\n",
        "ETag: {tag}\r\nCache-Control: private\r\n",
    ] {
        let site = Site::new(4 * MIB, &Manner::with(fields));
        site.range(MIB + 5..MIB + 10);
        site.range(MIB + 5..MIB + 10);
        let requests = site.origin.requests();
        // Once to find out; then the key is remembered.
        assert_eq!(requests.len(), 3, "{fields}");
        assert_eq!(requests[1].fields("range"), ["bytes=1048581-1048585"]);
        assert_eq!(requests[2].fields("range"), ["bytes=1048581-1048585"]);
    }
}

#[test]
fn who_waits_for_a_part_that_may_not_be_stored_asks_once_for_his_own() {
    let site = Site::new(
        4 * MIB,
        &Manner::with("ETag: {tag}\r\nCache-Control: private\r\n"),
    );
    std::thread::scope(|scope| {
        for n in 0..50 {
            let site = &site;
            scope.spawn(move || site.range(MIB + n..MIB + n + 5));
        }
    });
    // Each its own, and one more to find out.
    let requests = site.origin.requests();
    assert!(requests.len() <= 51, "{}", requests.len());
}

#[test]
fn an_origin_without_ranges_gives_the_whole_once() {
    let manner = Manner {
        ranges: false,
        ..Manner::with(FRESH)
    };
    let site = Site::new(3 * MIB, &manner);
    site.range(MIB..MIB + 9);
    site.range(2 * MIB..2 * MIB + 9);
    assert_eq!(site.origin.requests().len(), 1);
}

#[test]
fn a_part_that_is_the_whole_is_stored_as_such_without_a_validator() {
    let site = Site::new(1000, &Manner::with("Cache-Control: max-age=600\r\n"));
    site.range(5..10);
    assert_eq!(site.ask("").body, content(1, 0..1000));
    assert_eq!(site.origin.requests().len(), 1);
}

#[test]
fn ranges_that_nothing_is_known_of_and_suffixes_find_their_way() {
    let site = Site::fresh(5 * MIB + 9);
    let beyond = site.ask("Range: bytes=9000000-\r\n");
    assert_eq!(beyond.status, 416);
    let suffix = "Range: bytes=-10\r\n";
    // Of an unknown length it can't be widened.
    let cold = site.ask(suffix);
    assert!(
        cold.body == content(1, site.len - 10..site.len),
        "{}",
        cold.head
    );
    site.range(0..5);
    let before = site.origin.requests().len();
    let known = site.ask(suffix);
    assert!(known.body == content(1, site.len - 10..site.len));
    let open = site.ask("Range: bytes=5242879-\r\n");
    assert!(open.body == content(1, 5 * MIB - 1..site.len));
    let last: Vec<_> = site.origin.requests()[before..]
        .iter()
        .map(|asked| asked.fields("range")[0].to_owned())
        .collect();
    assert_eq!(last, ["bytes=4194304-5242888"]);
    let past = site.ask("Range: bytes=9000000-\r\n");
    assert_eq!(past.fields("content-range"), ["bytes */5242889"]);
}

#[test]
fn several_ranges_of_a_part_come_in_one_answer() {
    let site = Site::fresh(8 * MIB);
    site.range(0..5);
    let answer = site.ask("Range: bytes=6291456-6291460,2-4\r\n");
    assert_eq!(answer.status, 206);
    let holds = |range: Range<u64>| {
        let wanted = content(1, range);
        let mut windows = answer.body.windows(wanted.len());
        windows.any(|window| window == wanted)
    };
    assert!(holds(6 * MIB..6 * MIB + 5) && holds(2..5));
    assert_eq!(site.asked(), [0..1, 6..7]);
}

#[test]
fn a_fetch_that_breaks_off_is_gone_on_with_and_trouble_drops_nothing() {
    let manner = Manner::with(FRESH);
    let site = Site::new(8 * MIB, &manner);
    site.range(0..5);
    manner.breaks_after.store(MIB + 500_000, Ordering::SeqCst);
    site.range(0..4 * MIB);
    assert_eq!(site.asked(), [0..1, 1..4, 2..4]);
    manner.fails.store(true, Ordering::SeqCst);
    let refused = site.ask("Range: bytes=7340032-7340040\r\n");
    assert!(refused.status >= 500, "{}", refused.head);
    site.range(0..4 * MIB);
    // A response that has begun is cut, never ended cleanly.
    let range = request("GET", "Range: bytes=3145728-7340040\r\n");
    let broken = Client::connect(site.proxy.address).send(range).response();
    assert!(broken.is_err());
}

#[test]
fn the_records_of_ranges_are_heeded() {
    let lookup = "CONFIG proxy.config.http.cache.range.lookup INT 0\n";
    let whole = "CONFIG proxy.config.http.cache.range.write INT 1\n";
    for (record, ranges) in [(lookup, vec!["bytes=5-9"; 2]), (whole, vec![])] {
        let site = Site::fresh(2 * MIB);
        site.proxy.reload(record, &site.origin.map("/"));
        site.range(5..10);
        site.range(5..10);
        let requests = site.origin.requests();
        let asked: Vec<_> = requests
            .iter()
            .flat_map(|asked| asked.fields("range"))
            .collect();
        assert_eq!(asked, ranges, "{record}");
    }
}

/// RFC 9111 3.5, 5.2.1.5.
#[test]
fn what_a_request_must_not_have_stored_or_shared_is_not_of_an_object_in_part_either() {
    for fields in ["Cache-Control: no-store\r\n", "Authorization: a\r\n"] {
        let site = Site::fresh(4 * MIB);
        site.range(0..MIB);
        for _ in 0..2 {
            let answer = site.ask(&format!("Range: bytes=10-2097161\r\n{fields}"));
            assert_eq!(answer.status, 206, "{}", answer.head);
            assert!(answer.body == content(1, 10..2 * MIB + 10), "{fields}");
        }
        assert_eq!(site.asked().len(), 5, "{fields}: {:?}", site.asked());
        site.range(MIB..2 * MIB);
        assert_eq!(site.asked().last(), Some(&(1..2)), "{fields}");
        site.range(0..2 * MIB);
        assert_eq!(site.asked().len(), 6, "what may be is stored: {fields}");
    }
}

/// The same where what is held is stale, and validated by that request.
#[test]
fn what_authorization_validates_it_does_not_add_to() {
    let site = Site::new(
        4 * MIB,
        &Manner::with("ETag: {tag}\r\nCache-Control: max-age=0\r\n"),
    );
    site.range(0..MIB);
    let answer = site.ask("Range: bytes=0-2097151\r\nAuthorization: a\r\n");
    assert!(answer.body == content(1, 0..2 * MIB), "{}", answer.head);
    let fetches = || {
        let requests = site.origin.requests();
        let parts = requests
            .iter()
            .filter(|asked| !asked.fields("if-range").is_empty());
        parts.count()
    };
    let asked = fetches();
    for more in 1..=2 {
        site.range(MIB..2 * MIB);
        assert_eq!(fetches(), asked + 1, "{more}");
    }
}

#[test]
fn a_part_that_says_it_may_not_be_stored_is_not() {
    let manner = Manner::with(FRESH);
    let site = Site::new(4 * MIB, &manner);
    site.range(0..MIB);
    manner.forbids.store(true, Ordering::SeqCst);
    site.range(2 * MIB..3 * MIB);
    let asked = site.asked().len();
    site.range(2 * MIB..3 * MIB);
    assert!(site.asked().len() > asked, "{:?}", site.asked());
    manner.forbids.store(false, Ordering::SeqCst);
    let asked = site.asked().len();
    site.range(0..MIB);
    assert!(site.asked().len() > asked, "nor is what was");
}

#[test]
fn stretches_of_parts_come_over_one_connection() {
    let manner = Manner::with(FRESH);
    let site = Site::new(40 * MIB, &manner);
    for at in [3, 9, 5, 20] {
        site.range(at * MIB..(at + 1) * MIB);
    }
    assert!(site.ask("").body == content(1, 0..site.len));
    assert!(site.asked().len() > 6);
    let connections = manner.connections.lock().unwrap().len();
    assert!(connections <= 2, "{connections} for {:?}", site.asked());
}

/// What was asked for: never the whole, for nobody waits for that.
#[test]
fn what_is_held_in_part_is_revalidated_meanwhile_without_its_body() {
    let said = "ETag: {tag}\r\nCache-Control: max-age=0, stale-while-revalidate=600\r\n";
    for (version, fields) in [
        (1, "Range: bytes=0-9\r\n"),
        (2, "Range: bytes=0-9\r\n"),
        (2, "Range: bytes=0-9,20-29\r\n"),
        (2, "Range: bytes=0-9\r\nIf-Range: \"1\"\r\n"),
    ] {
        let site = Site::new(40 * MIB, &Manner::with(said));
        site.range(0..MIB);
        site.version.store(version, Ordering::SeqCst);
        let answer = site.ask(fields);
        assert_eq!(answer.status, 206, "{}", answer.head);
        until("the validation", || site.origin.requests().len() >= 2);
        let asked = &site.origin.requests()[1];
        assert_eq!(asked.fields("if-none-match"), ["\"1\""], "{}", asked.head);
        let is_short =
            asked.head.starts_with("HEAD ") || asked.fields("range") == ["bytes=0-1048575"];
        assert!(is_short, "{fields}: {}", asked.head);
        until("its end", || {
            let current = site.ask("Range: bytes=0-9\r\n");
            current.body == content(version, 0..10)
        });
    }
}
