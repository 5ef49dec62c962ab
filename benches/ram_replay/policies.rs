//! What a trace is replayed through: the product's RAM cache, queues to
//! compare it with, and what no cache can beat.

use super::traces::Trace;
use std::collections::{BTreeMap, BTreeSet};
use strata::cache::RamOptions;
use strata::cache::ram::{RamCache, RamValue};

/// Bytes that each policy pays for an object beside its own, as the product
/// does.
pub(crate) const OVERHEAD: u64 = 128;

/// Hits of a replay.
#[derive(Clone, Copy, Default)]
pub(crate) struct Hits {
    /// Requests.
    pub(crate) objects: u64,
    /// Bytes of the objects asked for.
    pub(crate) bytes: u64,
}

/// A cache without its bodies.
pub(crate) trait Policy {
    /// Whether `object` is held, which counts as read; if not, it is stored.
    fn read_or_store(&mut self, object: u32, bytes: u64) -> bool;
}

/// What `policy` hits of the whole trace, its cold start included.
pub(crate) fn replay(trace: &Trace, mut policy: impl Policy) -> Hits {
    let mut hits = Hits::default();
    for object in &trace.requests {
        let bytes = trace.bytes[*object as usize];
        if policy.read_or_store(*object, bytes) {
            hits.objects += 1;
            hits.bytes += bytes;
        }
    }
    hits
}

/// A body that is nothing but its length.
#[derive(Clone)]
struct Length(u64);

impl RamValue for Length {
    fn ram_bytes(&self) -> u64 {
        self.0
    }

    fn body_len(&self) -> u64 {
        self.0
    }
}

/// The product's RAM cache.
pub(crate) struct Product(RamCache<Length>);

impl Product {
    /// An empty one of `budget` bytes, without a cutoff.
    pub(crate) fn new(budget: u64) -> Self {
        let options = RamOptions {
            size: None,
            cutoff: 0,
            seen_filter: 0,
        };
        Self(RamCache::new(budget, &options))
    }
}

/// A hash of the object, as keys are.
fn key(object: u32) -> u128 {
    let mut prng = strata::base::prng::Prng::seeded(object.into());
    u128::from(prng.next_u64()) << 64 | u128::from(prng.next_u64())
}

impl Policy for Product {
    fn read_or_store(&mut self, object: u32, bytes: u64) -> bool {
        let key = key(object);
        let hit = self.0.read(key).is_some();
        if !hit {
            self.0.insert(key, Length(bytes));
        }
        hit
    }
}

/// One queue; the oldest goes.
pub(crate) struct Queue {
    budget: u64,
    used: u64,
    /// Where each object stands in the queue.
    stands: BTreeMap<u32, u64>,
    /// The object at each place, and its bytes.
    queue: BTreeMap<u64, (u32, u64)>,
    next: u64,
    on_read: bool,
}

impl Queue {
    /// An empty one of `budget` bytes: least recently used goes if a read puts
    /// its object at the new end, else first in, first out.
    pub(crate) fn new(budget: u64, on_read: bool) -> Self {
        Self {
            budget,
            used: 0,
            stands: BTreeMap::new(),
            queue: BTreeMap::new(),
            next: 0,
            on_read,
        }
    }

    fn push(&mut self, object: u32, charge: u64) {
        self.next += 1;
        self.stands.insert(object, self.next);
        self.queue.insert(self.next, (object, charge));
        self.used += charge;
    }

    fn take(&mut self, place: u64) {
        if let Some((object, charge)) = self.queue.remove(&place) {
            self.stands.remove(&object);
            self.used -= charge;
        }
    }
}

impl Policy for Queue {
    fn read_or_store(&mut self, object: u32, bytes: u64) -> bool {
        let charge = bytes + OVERHEAD;
        let stands = self.stands.get(&object).copied();
        match stands {
            Some(place) if self.on_read => self.take(place),
            Some(_) => return true,
            None if charge > self.budget => return false,
            None => {}
        }
        self.push(object, charge);
        while self.used > self.budget {
            let oldest = *self.queue.keys().next().expect("it is over its budget");
            self.take(oldest);
        }
        stands.is_some()
    }
}

/// When each request's object is asked for again; `None`: never.
fn next_uses(trace: &Trace) -> Vec<Option<usize>> {
    let mut next = vec![None; trace.bytes.len()];
    let mut uses = vec![None; trace.requests.len()];
    for (at, object) in trace.requests.iter().enumerate().rev() {
        uses[at] = next[*object as usize].replace(at);
    }
    uses
}

/// Hits of the offline optimum, or of a bound that is never below it.
///
/// Objects of one size: Belady's MIN, which may pass an object by. Of several
/// sizes the optimum is NP-hard, and the bound lets a cache be over its budget
/// at one time if it is below at another: of the spans of time from a request
/// to the next one for the same object, the cheapest in bytes × requests are
/// hits until they fill budget × requests (PFOO-U of Berger, Beckmann and
/// Harchol-Balter, 2018). Requests and bytes have a bound each.
pub(crate) fn optimum(trace: &Trace, budget: u64) -> Hits {
    if trace.is_uniform() {
        belady(trace, budget)
    } else {
        Hits {
            objects: bound(trace, budget, |bytes, span| (bytes * span, 1)),
            bytes: bound(trace, budget, |bytes, span| (span, bytes)),
        }
    }
}

fn belady(trace: &Trace, budget: u64) -> Hits {
    let bytes = trace.bytes[0];
    let room = usize::try_from(budget / (bytes + OVERHEAD)).expect("fewer than memory has");
    let mut held = BTreeSet::new();
    let mut hits = 0;
    for (at, next) in next_uses(trace).into_iter().enumerate() {
        hits += u64::from(held.remove(&at));
        held.extend(next);
        if held.len() > room {
            held.pop_last();
        }
    }
    Hits {
        objects: hits,
        bytes: hits * bytes,
    }
}

/// The most that spans within the budget gain, by `of(bytes, span)`: what a
/// span is ranked by, least first, and its gain.
fn bound(trace: &Trace, budget: u64, of: impl Fn(u64, u64) -> (u64, u64)) -> u64 {
    let mut spans = Vec::new();
    for (at, next) in next_uses(trace).into_iter().enumerate() {
        let bytes = trace.bytes[trace.requests[at] as usize];
        let Some(next) = next.filter(|_| bytes + OVERHEAD <= budget) else {
            continue;
        };
        let span = u64::try_from(next - at).expect("shorter than the trace");
        let (rank, gain) = of(bytes + OVERHEAD, span);
        spans.push((rank, (bytes + OVERHEAD) * span, gain));
    }
    spans.sort_unstable();
    let mut left = u128::from(budget) * trace.requests.len() as u128;
    let within = spans.iter().take_while(|(_, cost, _)| {
        let fits = left >= u128::from(*cost);
        left = left.saturating_sub(u128::from(*cost));
        fits
    });
    within.map(|(_, _, gain)| gain).sum()
}
