//! The origin: documents that change, each answer of its own number.

use crate::support::{Origin, Recorded};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use strata::base::prng::Prng;

/// What the origin knows.
#[derive(Debug, Default)]
struct Site {
    /// The version of each document, 0 at first.
    versions: HashMap<u64, u64>,
    /// The last number that was given out.
    number: u64,
}

/// The documents, and the server that has them.
pub(super) struct Documents {
    pub(super) origin: Origin,
    site: Arc<Mutex<Site>>,
}

impl Documents {
    pub(super) fn start() -> Self {
        let site: Arc<Mutex<Site>> = Arc::default();
        let answers = Arc::clone(&site);
        let origin = Origin::answering(move |request| answer(&answers, request));
        Self { origin, site }
    }

    /// Changes a document.
    pub(super) fn change(&self, key: u64) {
        change(&self.site, key);
    }

    /// The last number that was given out: everything that comes from now on
    /// has a greater one.
    pub(super) fn last(&self) -> u64 {
        self.site.lock().unwrap().number
    }
}

fn change(site: &Mutex<Site>, key: u64) {
    *site.lock().unwrap().versions.entry(key).or_default() += 1;
}

pub(super) fn path(key: u64) -> String {
    format!("/{key}")
}

/// A 200 whose body follows from the document and the answer's number, or a
/// 304 with a number of its own; a POST changes the document.
fn answer(site: &Mutex<Site>, request: &Recorded) -> Vec<u8> {
    let key = request.target().trim_start_matches('/').parse().unwrap();
    if request.head.starts_with("POST") {
        change(site, key);
        return b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
    }
    let mut site = site.lock().unwrap();
    site.number += 1;
    let number = site.number;
    let tag = format!("\"{}\"", site.versions.entry(key).or_default());
    drop(site);
    let fields = format!("Cache-Control: max-age=99999\r\nETag: {tag}\r\nX-Head: {number}\r\n");
    if request.fields("if-none-match") == [&*tag] {
        return format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n").into_bytes();
    }
    let body = body(key, number);
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n");
    [head.into_bytes(), body].concat()
}

/// A body: the number of its answer, and noise that follows from it and the
/// document; one in 64 is longer than a fragment.
fn body(key: u64, number: u64) -> Vec<u8> {
    let mut prng = Prng::seeded(key << 40 ^ number);
    let words = if prng.below(64) == 0 {
        300_000
    } else {
        prng.below(4000)
    };
    let noise = (0..words).map(|_| prng.next_u64());
    let words = std::iter::once(number).chain(noise);
    words.flat_map(u64::to_le_bytes).collect()
}

/// The number that a document's body has, if it is whole and that document's.
pub(super) fn number_of(key: u64, found: &[u8]) -> Option<u64> {
    let number = found.first_chunk().copied().map(u64::from_le_bytes)?;
    (found == body(key, number)).then_some(number)
}
