//! What may be found under a key, by what its requests were answered.

use super::now;
use std::time::Duration;
use strata::base::clock::MonoTime;

/// What was stored is written so long after.
const WRITTEN_AFTER: Duration = Duration::from_secs(1);
/// Rounds in which the log does not come round.
const ROUNDS_KEPT: u64 = 2;

/// A stored answer: the numbers of its body and of its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) body: u64,
    pub(super) head: u64,
}

/// What became of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A request began that may change it.
    Touched,
    /// It was seen to be stored.
    Stored(Stored),
    /// All with numbers up to this one was purged, which was acknowledged.
    Purged(u64),
    /// All with numbers up to this one was made invalid by an unsafe method.
    Invalid(u64),
}

/// A key and its past.
#[derive(Debug, Default)]
pub(super) struct Key {
    /// Nothing with lesser numbers may be found.
    floor: Floor,
    /// What must be found.
    sure: Option<Sure>,
    /// What became of it in this round.
    events: Vec<(MonoTime, Event)>,
    /// What became of it before, for who reads of a fault.
    past: Vec<String>,
}

/// What must be found.
#[derive(Clone, Copy, Debug)]
struct Sure {
    stored: Stored,
    /// The round that it was stored in.
    round: u64,
    /// How long before the kill it was there.
    before: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Floor {
    body: u64,
    head: u64,
}

impl Floor {
    fn rise(&mut self, to: Stored) {
        self.body = self.body.max(to.body);
        self.head = self.head.max(to.head);
    }

    fn above(&mut self, number: u64) {
        self.rise(Stored {
            body: number + 1,
            head: number + 1,
        });
    }
}

impl Key {
    /// Notes what has just happened.
    pub(super) fn note(&mut self, event: Event) {
        self.events.push((now(), event));
    }

    /// Notes that the request that was begun last has changed nothing.
    pub(super) fn untouched(&mut self) {
        assert_eq!(
            self.events.pop().map(|(_, event)| event),
            Some(Event::Touched)
        );
    }

    /// Whether a running server may give this: nothing that was replaced.
    pub(super) fn may_be_served(&self, found: Stored) -> bool {
        let mut floor = self.floor;
        for (_, event) in &self.events {
            match *event {
                Event::Touched => {}
                Event::Stored(stored) => floor.rise(stored),
                Event::Purged(number) | Event::Invalid(number) => floor.above(number),
            }
        }
        found.body >= floor.body && found.head >= floor.head
    }

    /// Takes note that the server was killed at this moment of the round.
    pub(super) fn killed(&mut self, at: MonoTime, round: u64) {
        for (when, event) in std::mem::take(&mut self.events) {
            let before = at.since(when);
            let is_written = before >= WRITTEN_AFTER;
            self.past
                .push(format!("{event:?} {before:?} before a kill"));
            match event {
                Event::Purged(number) => self.floor.above(number),
                Event::Invalid(number) if is_written => self.floor.above(number),
                Event::Stored(stored) if is_written => self.floor.rise(stored),
                Event::Touched | Event::Invalid(_) | Event::Stored(_) => {}
            }
            self.sure = match event {
                Event::Stored(stored) if is_written => Some(Sure {
                    stored,
                    round,
                    before,
                }),
                Event::Touched | Event::Stored(_) | Event::Purged(_) | Event::Invalid(_) => None,
            };
        }
    }

    /// Judges what was found after the start, and goes on from there: what is
    /// gone stays so, and nothing older than what was found comes back. `last`
    /// is the last number given out.
    pub(super) fn found(
        &mut self,
        found: Option<Stored>,
        round: u64,
        last: u64,
    ) -> Result<(), String> {
        if let Some(old) = found.filter(|found| !self.may_be_served(*found)) {
            let (floor, past) = (self.floor, self.past.join(", "));
            return Err(format!("{old:?} is older than {floor:?}: {past}"));
        }
        self.past.push(format!("found {found:?} in {round}"));
        let sure = self.sure.filter(|sure| sure.round + ROUNDS_KEPT >= round);
        match found {
            Some(found) => {
                self.floor.rise(found);
                self.sure = self.sure.or(Some(Sure {
                    stored: found,
                    round,
                    before: Duration::ZERO,
                }));
            }
            None if let Some(sure) = sure => {
                let past = self.past.join(", ");
                let (stored, before) = (sure.stored, sure.before);
                return Err(format!("{stored:?}, {before:?} old, is lost: {past}"));
            }
            None => {
                self.sure = None;
                self.floor.above(last);
            }
        }
        Ok(())
    }
}
