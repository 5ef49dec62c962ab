//! Each record of the proxy has its effect: requests under its default, then
//! the same after a reload that sets it, and what differs.

mod effects;
mod limits;
mod rules;
mod times;

use crate::support::{Client, Origin, Proxy, Recorded, Response};
use std::collections::HashMap;
use std::sync::Mutex;
use strata::config::records::{RecordType, find};
use strata::metrics::Metric;

/// A record, what is asked under its default and under a value, and what must
/// differ.
struct Effect {
    /// Names without `proxy.config.`, and values: the record itself first, then
    /// those that both rounds have.
    records: &'static [(&'static str, &'static str)],
    /// Request line and fields; the path is of one round only.
    asks: &'static [&'static str],
    /// Status and fields of the origin's first answer, its second and so on;
    /// the last one is given again.
    answers: &'static [&'static str],
    seen: fn(&Seen) -> String,
    by_default: &'static str,
    set: &'static str,
}

/// What a round came to.
struct Seen {
    /// What the client got.
    got: Vec<Response>,
    /// What the origin was asked.
    asked: Vec<Recorded>,
    /// Connections to the origin that were made.
    connections: u64,
}

impl Seen {
    fn fetches(&self) -> String {
        self.asked.len().to_string()
    }

    fn connections(&self) -> String {
        self.connections.to_string()
    }

    fn status(&self) -> String {
        self.last().status.to_string()
    }

    /// A field of the last response.
    fn field(&self, name: &str) -> String {
        self.last().fields(name).join(",")
    }

    /// Whether the last response has the field.
    fn has(&self, name: &str) -> String {
        (!self.last().fields(name).is_empty()).to_string()
    }

    /// A field of the origin's last request.
    fn sent(&self, name: &str) -> String {
        self.asked.last().unwrap().fields(name).join(",")
    }

    /// The lifetime of a hit: what is left of it and what is over.
    fn lifetime(&self) -> String {
        let status = self.field("cache-status");
        let (_, ttl) = status.split_once("ttl=").unwrap();
        let left: u64 = ttl.split(';').next().unwrap().parse().unwrap();
        let age: u64 = self.field("age").parse().unwrap();
        (left + age).to_string()
    }

    fn last(&self) -> &Response {
        self.got.last().unwrap()
    }
}

/// Lines of records.config; names are without `proxy.config.`.
fn lines(records: &[(&str, &str)]) -> String {
    let line = |(name, value): &(&str, &str)| {
        let name = format!("proxy.config.{name}");
        let kind = match find(&name).unwrap().kind {
            RecordType::Int => "INT",
            RecordType::Float => "FLOAT",
            RecordType::String => "STRING",
        };
        format!("CONFIG {name} {kind} {value}\n")
    };
    records.iter().map(line).collect()
}

/// Stands for a text of 2000 bytes.
const LONG: &str = "{long}";

fn spelled(text: &str) -> String {
    text.replace(LONG, &"x".repeat(2000))
}

fn response(text: &str) -> Vec<u8> {
    let body = if text.starts_with("304") { "" } else { "hello" };
    let length = body.len();
    format!(
        "HTTP/1.1 {}\r\nContent-Length: {length}\r\n\r\n{body}",
        spelled(text)
    )
    .into_bytes()
}

/// An origin that answers each path's requests in turn.
fn origin(answers: &'static [&'static str]) -> Origin {
    let counts = Mutex::new(HashMap::<String, usize>::new());
    Origin::answering(move |request| {
        let mut counts = counts.lock().unwrap();
        let count = counts.entry(request.target().to_owned()).or_default();
        *count += 1;
        response(answers[(*count).min(answers.len()) - 1])
    })
}

/// Asks under paths that end in `round`, each on a connection of its own.
fn round(effect: &Effect, proxy: &Proxy, origin: &Origin, round: &str) -> Seen {
    let connections = proxy.counter(Metric::OriginMakeNew);
    let before = origin.requests().len();
    let asks = effect.asks.iter().map(|ask| {
        let (line, fields) = ask.split_once("\r\n").unwrap_or((ask, "X: x"));
        let fields = spelled(fields);
        format!("{line}{round} HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n")
    });
    let got = asks.map(|ask| Client::connect(proxy.address).ask(ask));
    Seen {
        got: got.collect(),
        asked: origin.requests().split_off(before),
        connections: proxy.counter(Metric::OriginMakeNew) - connections,
    }
}

/// Where the record has no such effect, or has it unset.
fn faults(effect: &Effect) -> Option<String> {
    let origin = origin(effect.answers);
    let rules = origin.map("/");
    let proxy = Proxy::with(&lines(&effect.records[1..]), &rules);
    let by_default = (effect.seen)(&round(effect, &proxy, &origin, "1"));
    proxy.reload(&lines(effect.records), &rules);
    let set = (effect.seen)(&round(effect, &proxy, &origin, "2"));
    let right = by_default == effect.by_default && set == effect.set;
    let (name, value) = effect.records[0];
    (!right).then(|| format!("{name} {value}: {by_default:?} by default, then {set:?}"))
}

/// Where the record has no such effect by a rule that overrides it.
fn faults_by_rule(effect: &Effect) -> Option<String> {
    let origin = origin(effect.answers);
    let (name, value) = effect.records[0];
    let rule = origin.map("/");
    let rule = format!(
        "{} @plugin=conf_remap.so @pparam=proxy.config.{name}={value}\n",
        rule.trim_end()
    );
    let proxy = Proxy::with(&lines(&effect.records[1..]), &rule);
    let set = (effect.seen)(&round(effect, &proxy, &origin, "1"));
    (set != effect.set).then(|| format!("{name} {value}: {set:?} by a rule"))
}
