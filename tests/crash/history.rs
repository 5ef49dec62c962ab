//! What the writer does, by number, and what may be found afterwards.

use strata::base::prng::Prng;

/// Keys that are written.
pub(crate) const KEYS: u64 = 400;
/// Operations that the writer may have begun after the last it told of.
const UNHEARD: u64 = 64;

/// One operation; all follow from a seed and their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Store,
    Refresh,
    Remove,
    Purge,
}

/// The key and the operation with this number.
pub(crate) fn op(seed: u64, number: u64) -> (u64, Op) {
    let mut prng = Prng::seeded(seed ^ number.wrapping_mul(0x9e37_79b9));
    let key = prng.below(KEYS);
    let op = match prng.below(20) {
        0 => Op::Remove,
        1 => Op::Purge,
        2 | 3 => Op::Refresh,
        _ => Op::Store,
    };
    (key, op)
}

/// What may not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    /// A version that was replaced, removed or purged before.
    Old {
        newest: u64,
    },
    /// Not there, though it had been written.
    Lost {
        newest: u64,
    },
    /// A version that nobody stored.
    Invented,
}

/// What the writer has told of.
#[derive(Debug)]
pub(crate) struct History {
    seed: u64,
    /// The first operation of this round.
    from: u64,
    /// Every operation below this one is written.
    written: u64,
    /// The last purge that was acknowledged, and those before it.
    purged: Vec<u64>,
}

impl History {
    pub(crate) fn starting_with(seed: u64) -> Self {
        Self {
            seed,
            from: 1,
            written: 1,
            purged: Vec::new(),
        }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn from(&self) -> u64 {
        self.from
    }

    /// Whether anything was told of in this round.
    pub(crate) fn heard(&self) -> bool {
        self.written > self.from
    }

    /// Takes down a line of the writer: `written at N` or `purged at N`.
    pub(crate) fn hear(&mut self, line: &str) {
        let number = line.rsplit(' ').next().unwrap().parse().unwrap();
        if line.contains("written") {
            self.written = number;
        } else {
            self.purged.push(number);
        }
    }

    /// The next round begins behind all that may have been done.
    pub(crate) fn go_on_behind(&mut self) {
        let last = self.purged.last().copied().unwrap_or(0);
        self.from = self.written.max(last) + UNHEARD + 1;
        self.written = self.from;
    }

    /// Whether the key may have this version now: the number of the operation
    /// that stored it.
    pub(crate) fn judge(&self, key: u64, found: Option<u64>) -> Verdict {
        if let Some(version) = found
            && op(self.seed, version) != (key, Op::Store)
        {
            return Verdict::Invented;
        }
        let newest = self.newest(key);
        let floor = newest.map_or(0, |(number, _)| number);
        match found {
            Some(version) if version < floor => Verdict::Old { newest: floor },
            None if newest.is_some_and(|(_, op)| op == Op::Store) && !self.touched(key) => {
                Verdict::Lost { newest: floor }
            }
            Some(_) | None => Verdict::Right,
        }
    }

    /// The last change of the key in this round that is known to be written.
    fn newest(&self, key: u64) -> Option<(u64, Op)> {
        let last = self.purged.last().copied().unwrap_or(0);
        let end = self.written.max(last + 1);
        let known = (self.from..end)
            .rev()
            .map(|number| (number, op(self.seed, number)));
        known
            .filter(|(number, _)| *number < self.written || self.purged.contains(number))
            .find(|(_, (of, op))| *of == key && *op != Op::Refresh)
            .map(|(number, (_, op))| (number, op))
    }

    /// Whether a later operation, not known to be written, is the key's. A
    /// refresh too stores anew: on another span, where the object lies on one
    /// that it belongs to no more.
    fn touched(&self, key: u64) -> bool {
        let last = self.purged.last().copied().unwrap_or(0);
        let end = self.written.max(last) + UNHEARD;
        (self.written..end).any(|number| op(self.seed, number).0 == key)
    }
}
