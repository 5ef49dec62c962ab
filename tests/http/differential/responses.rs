//! Responses: what a client sees of them.

use super::grammar;
use super::reading::{self, Message};
use super::{Case, Seeds, exchange};
use crate::support::{Origin, Proxy, ok};
use std::io::Write;
use std::net::Shutdown;
use std::sync::{Arc, Mutex};

/// A response that nobody asked for, sent behind another.
const POISON: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";

/// What the origin answers, and whether it keeps the connection after it.
type Script = Arc<Mutex<(Vec<u8>, bool)>>;

fn scripted() -> (Origin, Script) {
    let script = Script::default();
    let lines = Arc::clone(&script);
    let origin = Origin::speaking(move |request, mut stream| {
        if request.target() == "/canary" {
            return stream.write_all(&ok("canary")).is_ok();
        }
        let (answer, keeps) = lines.lock().unwrap().clone();
        // A proxy that has seen enough may be gone.
        let is_sent = stream.write_all(&answer).is_ok();
        if !keeps {
            drop(stream.shutdown(Shutdown::Write));
        }
        keeps && is_sent
    });
    (origin, script)
}

fn ask(proxy: &Proxy, line: &str) -> (Vec<u8>, bool) {
    let request = format!("{line}\r\nHost: h\r\nConnection: close\r\n\r\n");
    exchange(proxy.address, request.as_bytes(), usize::MAX)
}

/// Whether the answer is the proxy's own, to what it refused.
fn is_refusal(answer: &Message) -> bool {
    let status = reading::status(&answer.head);
    [Some(502), Some(504)].contains(&status) && answer.head.all("via").is_empty()
}

/// The one response in `got`; none if it broke off. A 1.0 client is told by the
/// connection's end alone.
fn whole(case: &Case, got: &[u8], is_clean: bool, to_head: bool) -> Option<Message> {
    match reading::response(got, to_head) {
        Ok(Some(answer)) if is_clean && answer.end == got.len() => Some(answer),
        Ok(Some(_)) if is_clean => case.failed("bytes follow the response", got),
        Ok(_) => None,
        Err(_) => case.failed("the client saw what is no response", got),
    }
}

/// Whether the response got through; all of it and nothing else.
fn judge(case: &Case, proxy: &Proxy, line: &str) -> bool {
    let to_head = line.starts_with("HEAD");
    let (got, is_clean) = ask(proxy, line);
    let expected = reading::response(&case.bytes, to_head);
    let Some(answer) = whole(case, &got, is_clean, to_head) else {
        if !case.is_mutated {
            case.failed("a good response broke off", &got);
        }
        return false;
    };
    if is_refusal(&answer) {
        if !case.is_mutated {
            case.failed("a good response was refused", &got);
        }
        return false;
    }
    let Ok(Some(expected)) = expected else {
        case.failed("a broken response passed for a whole one", &got);
    };
    let is_same = reading::status(&answer.head) == reading::status(&expected.head)
        && answer.body == expected.body;
    if !is_same {
        case.failed(
            &format!("the client saw another response than {expected:?}"),
            &got,
        );
    }
    true
}

/// Puts another response behind one that ends by itself, whose connection may
/// then be kept.
fn poisoned(case: &mut Case, to_head: bool) -> bool {
    let end = |bytes: &[u8]| Some(reading::response(bytes, to_head).ok()??.end);
    let poisoned = [&case.bytes, POISON].concat();
    let ends_itself = end(&case.bytes).is_some_and(|at| end(&poisoned) == Some(at));
    if ends_itself {
        case.bytes = poisoned;
    }
    ends_itself
}

#[test]
#[expect(clippy::print_stdout, reason = "how many cases there was time for")]
fn a_client_sees_the_one_response_that_an_origin_sent_or_that_it_broke_off() {
    let (origin, script) = scripted();
    let records = "CONFIG proxy.config.http.transaction_no_activity_timeout_out INT 1\n\
                   CONFIG proxy.config.http.negative_revalidating_enabled INT 0\n";
    let proxy = Proxy::with(records, &origin.map("/"));
    let (mut passed, mut cases) = (0, 0);
    for seed in Seeds::of_run(4000) {
        cases += 1;
        let (mut case, mut dice) = Case::of(seed, grammar::response);
        let method = ["GET", "GET", "HEAD", "POST"][dice.below(4)];
        let version = ["HTTP/1.1", "HTTP/1.1", "HTTP/1.0"][dice.below(3)];
        let keeps = poisoned(&mut case, method == "HEAD") && dice.one_in(2);
        *script.lock().unwrap() = (case.bytes.clone(), keeps);
        let line = format!("{method} /{seed} {version}");
        // The second time it may be a hit.
        for _ in 0..2 {
            passed += usize::from(judge(&case, &proxy, &line));
            let (got, _) = ask(&proxy, "GET /canary HTTP/1.1");
            let canary = reading::response(&got, false);
            if canary
                .ok()
                .flatten()
                .is_none_or(|canary| canary.body != b"canary")
            {
                case.failed("the next request got another answer", &got);
            }
        }
    }
    println!("{passed} of {cases} passed");
}
