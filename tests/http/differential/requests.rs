//! Requests: what an origin sees of them.

use super::grammar;
use super::reading::{self, Framing, Malformed, Message};
use super::{Case, Seeds, exchange};
use crate::support::Proxy;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nX-Seen: 1\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\r\n";

const CANARY: &[u8] = b"GET /canary HTTP/1.1\r\nHost: h\r\n\r\n";

/// What an origin made of the bytes it was sent: whole requests alone.
type Seen = Arc<Mutex<Vec<Result<Message, Malformed>>>>;

/// An origin that reads strictly. It stops when the other ends are gone.
fn recorder() -> (SocketAddr, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Seen::default();
    let record = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let record = Arc::clone(&record);
            std::thread::spawn(move || serve(stream.unwrap(), &record));
        }
    });
    (address, seen)
}

fn serve(mut stream: TcpStream, seen: &Seen) {
    let (mut buffer, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match reading::request(&buffer) {
            Ok(Some(request)) => {
                buffer.drain(..request.end);
                seen.lock().unwrap().push(Ok(request));
                if stream.write_all(ANSWER).is_err() {
                    return;
                }
            }
            Err(Malformed) => return seen.lock().unwrap().push(Err(Malformed)),
            Ok(None) => match stream.read(&mut piece) {
                Ok(read @ 1..) => buffer.extend_from_slice(&piece[..read]),
                Ok(0) | Err(_) => return,
            },
        }
    }
}

/// How the content ends; none and no bytes of it are the same in a request that
/// the cache may answer.
fn framing(request: &Message) -> Framing {
    let framing = request.head.framing(2).unwrap().unwrap_or(Framing::None);
    let is_cached = ["GET", "HEAD"].contains(&request.head.line[0].as_str());
    if is_cached && framing == Framing::Length(0) {
        return Framing::None;
    }
    framing
}

/// Of two slashes at its beginning a rule leaves out one, as ATS's do.
fn mapped((method, target, framing, body): Essence<'_>) -> Essence<'_> {
    let rest = target
        .strip_prefix('/')
        .filter(|rest| rest.starts_with('/'));
    let target = rest.map_or(target.clone(), str::to_owned);
    (method, target, framing, body)
}

/// All requests that a strict reader finds, up to what it can't take.
fn readings(mut input: &[u8]) -> Vec<Message> {
    let mut found = Vec::new();
    while let Ok(Some(request)) = reading::request(input) {
        input = &input[request.end..];
        found.push(request);
    }
    found
}

/// OPTIONS of a whole server, which the proxy is (RFC 9110 9.3.7).
fn is_for_the_proxy(request: &Message) -> bool {
    let target = request.head.line[1].as_str();
    let rest = target.split_once("://").map(|(_, rest)| rest);
    let is_whole = target == "*" || rest.is_some_and(|rest| !rest.contains(['/', '?']));
    request.head.line[0] == "OPTIONS" && is_whole && !target.starts_with('/')
}

/// Method, origin-form target, framing and content.
type Essence<'m> = (&'m str, String, Framing, &'m [u8]);

fn essence(request: &Message) -> Essence<'_> {
    let target = request.head.line[1].as_str();
    let path = match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => {
            rest.find(['/', '?']).map_or("", |at| rest.split_at(at).1)
        }
        _ => target,
    };
    let slash = if path.starts_with('/') { "" } else { "/" };
    (
        &request.head.line[0],
        format!("{slash}{path}"),
        framing(request),
        &request.body,
    )
}

/// What became of the cases.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    refused: usize,
}

fn judge(case: &Case, proxy: &Proxy, seen: &Seen, step: usize) -> usize {
    let input = [&case.bytes, CANARY].concat();
    let (got, _) = exchange(proxy.address, &input, step);
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let answers = got.windows(11).filter(|found| found == b"\r\nX-Seen: 1");
    let readings = readings(&input);
    let is_passed_on = readings
        .first()
        .is_some_and(|first| !is_for_the_proxy(first));
    let mut expected = readings.iter().filter(|request| !is_for_the_proxy(request));
    if seen.len() != answers.count() {
        case.failed(&format!("not one request an answer: {seen:?}"), &got);
    }
    for request in &seen {
        let Ok(request) = request else {
            case.failed("the origin saw what is no request", &got);
        };
        if expected.next().map(essence).map(mapped) != Some(essence(request)) {
            case.failed(
                &format!("the origin saw another request: {request:?}"),
                &got,
            );
        }
    }
    if !case.is_mutated && seen.is_empty() && is_passed_on {
        case.failed("a good request was refused", &got);
    }
    seen.len()
}

#[test]
#[expect(clippy::print_stdout, reason = "how many cases there was time for")]
fn an_origin_sees_one_request_for_each_that_passes_and_none_of_the_others() {
    let (address, seen) = recorder();
    let proxy = Proxy::start(&format!("map / http://{address}/\n"));
    let mut tally = Tally::default();
    for seed in Seeds::of_run(10_000) {
        let (case, mut dice) = Case::of(seed, grammar::request);
        let step = if dice.one_in(16) { 1 } else { usize::MAX };
        match judge(&case, &proxy, &seen, step) {
            0 => tally.refused += 1,
            _ => tally.passed += 1,
        }
    }
    println!("{tally:?}");
}
