//! Framing by the thousand: mutated messages through the proxy, judged by an
//! independent strict reader at the other end (RFC 9112 6.3 and 11.2).
//!
//! A failed case prints its seed; `STRATA_FRAMING_SEED=<seed>` runs that one
//! alone. `STRATA_FRAMING_CASES=<count>` runs so many from a new seed, without
//! a limit of time.

mod grammar;
mod reading;
mod requests;
mod responses;

use grammar::Dice;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;
use strata::base::clock::{Clock, MonoTime, SystemClock};

/// What the gate runs from, so that it tests the same each time.
const SEED: u64 = 0x0057_7261_7461;

/// How long the gate's cases may take together; on a machine that is busy it
/// runs fewer.
const GATE: Duration = Duration::from_secs(12);

/// The seeds of a run, one a case.
struct Seeds {
    next: u64,
    end: u64,
    limit: Option<Duration>,
    clock: SystemClock,
    begun: MonoTime,
}

impl Seeds {
    /// So many as the environment says, or `count`.
    fn of_run(count: u64) -> Self {
        let given = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        if let Some(seed) = given("STRATA_FRAMING_SEED") {
            return Self::from(seed, 1, None);
        }
        match given("STRATA_FRAMING_CASES") {
            Some(cases) => Self::from(strata::base::prng::system_u64() >> 1, cases, None),
            None => Self::from(SEED, count, Some(GATE)),
        }
    }

    fn from(next: u64, count: u64, limit: Option<Duration>) -> Self {
        let clock = SystemClock::new();
        Self {
            next,
            end: next.saturating_add(count),
            limit,
            begun: clock.mono(),
            clock,
        }
    }
}

impl Iterator for Seeds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let took = self.clock.mono().since(self.begun);
        let in_time = self.limit.is_none_or(|limit| took < limit);
        let seed = self.next;
        self.next += 1;
        (in_time && seed < self.end).then_some(seed)
    }
}

/// A message, and what it takes to repeat it.
struct Case {
    seed: u64,
    bytes: Vec<u8>,
    is_mutated: bool,
}

impl Case {
    /// One in six is left as it is.
    fn of(seed: u64, make: fn(&mut Dice) -> Vec<u8>) -> (Self, Dice) {
        let mut dice = Dice::new(seed);
        let mut bytes = make(&mut dice);
        let mutations = dice.below(6).min(3);
        for _ in 0..mutations {
            grammar::mutate(&mut dice, &mut bytes);
        }
        let case = Self {
            seed,
            bytes,
            is_mutated: mutations > 0,
        };
        (case, dice)
    }

    #[expect(clippy::panic, reason = "a test stops at the first surprise")]
    fn failed(&self, why: &str, got: &[u8]) -> ! {
        panic!(
            "{why}\nSTRATA_FRAMING_SEED={}\n{}\ngave\n{}",
            self.seed,
            self.bytes.escape_ascii(),
            got.escape_ascii()
        )
    }
}

/// Sends `input` in pieces of `step` bytes, ends that side and reads to the end
/// of the other; whether that ended in order.
fn exchange(proxy: SocketAddr, input: &[u8], step: usize) -> (Vec<u8>, bool) {
    let mut stream = TcpStream::connect(proxy).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    for piece in input.chunks(step) {
        if stream.write_all(piece).is_err() {
            break;
        }
    }
    drop(stream.shutdown(Shutdown::Write));
    let mut got = Vec::new();
    let end = stream.read_to_end(&mut got);
    let timed_out = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    assert!(
        !end.as_ref().is_err_and(timed_out),
        "no end of {}",
        got.escape_ascii()
    );
    (got, end.is_ok())
}
