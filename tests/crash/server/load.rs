//! Mixed load: a client that gets, changes, validates, purges and posts, and
//! checks every answer.

use super::documents::{Documents, number_of, path};
use super::http::{Answer, Client};
use super::key::{Event, Key, Stored};
use super::now;
use std::collections::BTreeMap;
use std::io;
use strata::base::clock::MonoTime;
use strata::base::prng::Prng;

/// Asks for what is stored, and for nothing else.
const ONLY_STORED: &str = "Cache-Control: only-if-cached\r\n";
/// Asks that it be validated.
const VALIDATED: &str = "Cache-Control: max-age=0\r\n";

/// A client, and the keys that no other one asks for.
pub(super) struct Load<'a> {
    pub(super) documents: &'a Documents,
    pub(super) keys: &'a mut BTreeMap<u64, Key>,
    pub(super) prng: Prng,
}

/// Why a client ended.
#[derive(Debug)]
pub(super) enum End {
    /// The connection broke, at this moment.
    Broken(MonoTime, io::Error),
    /// An answer was wrong.
    Wrong(String),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Broken(now(), error)
    }
}

impl Load<'_> {
    /// Works until the connection breaks.
    pub(super) fn run(mut self, port: u16) -> End {
        let ended = Client::connect(port).map_err(End::from);
        let ended = ended.and_then(|mut client| {
            loop {
                self.one(&mut client)?;
            }
        });
        let Err(end): Result<std::convert::Infallible, End> = ended;
        end
    }

    fn one(&mut self, client: &mut Client) -> Result<(), End> {
        let at = self.prng.below(self.keys.len().try_into().unwrap_or(1));
        let mut keys = self.keys.keys();
        let key = *keys.nth(usize::try_from(at).unwrap()).unwrap();
        self.note(key, Event::Touched);
        match self.prng.below(20) {
            0 | 1 => self.purge(client, key),
            2 => self.post(client, key),
            3..6 => {
                self.documents.change(key);
                self.get(client, key, VALIDATED)
            }
            6..8 => self.get(client, key, VALIDATED),
            _ => self.get(client, key, ""),
        }
    }

    fn note(&mut self, key: u64, event: Event) {
        self.keys.get_mut(&key).unwrap().note(event);
    }

    fn purge(&mut self, client: &mut Client, key: u64) -> Result<(), End> {
        let last = self.documents.last();
        let answer = client.ask("PURGE", &path(key), "")?;
        expect(key, &answer, &[200, 404])?;
        self.note(key, Event::Purged(last));
        Ok(())
    }

    fn post(&mut self, client: &mut Client, key: u64) -> Result<(), End> {
        let answer = client.ask("POST", &path(key), "")?;
        expect(key, &answer, &[204])?;
        let last = self.documents.last();
        self.note(key, Event::Invalid(last));
        Ok(())
    }

    /// Gets a document, and looks whether the answer was stored.
    fn get(&mut self, client: &mut Client, key: u64, fields: &str) -> Result<(), End> {
        let answer = client.ask("GET", &path(key), fields)?;
        expect(key, &answer, &[200])?;
        self.judge(key, &answer)?;
        let is_hit = answer
            .field("cache-status")
            .is_some_and(|s| s.contains("; hit"));
        if is_hit {
            self.keys.get_mut(&key).unwrap().untouched();
            return Ok(());
        }
        let again = client.ask("GET", &path(key), ONLY_STORED)?;
        expect(key, &again, &[200, 504])?;
        if again.status == 200 {
            let stored = self.judge(key, &again)?;
            self.note(key, Event::Stored(stored));
        }
        Ok(())
    }

    fn judge(&self, key: u64, answer: &Answer) -> Result<Stored, End> {
        let stored = stored(key, answer).map_err(End::Wrong)?;
        if self.keys[&key].may_be_served(stored) {
            return Ok(stored);
        }
        let known = &self.keys[&key];
        Err(End::Wrong(format!("key {key}: {stored:?} after {known:?}")))
    }
}

fn expect(key: u64, answer: &Answer, statuses: &[u16]) -> Result<(), End> {
    if statuses.contains(&answer.status) {
        return Ok(());
    }
    Err(End::Wrong(format!("key {key}: {answer:?}")))
}

/// What an answer of 200 holds, every byte checked.
fn stored(key: u64, answer: &Answer) -> Result<Stored, String> {
    let head = answer.field("x-head").and_then(|text| text.parse().ok());
    match (number_of(key, &answer.body), head) {
        (Some(body), Some(head)) => Ok(Stored { body, head }),
        _ => Err(format!("key {key}: wrong bytes in {answer:?}")),
    }
}

/// What the server has of a key, without asking the origin.
pub(super) fn look(client: &mut Client, key: u64) -> Result<Option<Stored>, String> {
    let asked = client.ask("GET", &path(key), ONLY_STORED);
    let answer = asked.map_err(|error| format!("key {key}: {error}"))?;
    match answer.status {
        200 => stored(key, &answer).map(Some),
        504 => Ok(None),
        _ => Err(format!("key {key}: {answer:?}")),
    }
}
