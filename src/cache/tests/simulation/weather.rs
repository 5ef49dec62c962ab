//! What may go wrong while a seed runs.

use crate::base::prng::Prng;

/// Which faults a seed has; kills at any step and clean stops are in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cache) enum Weather {
    /// Writes of batches fail, wholly or half-way.
    Calm,
    /// Any read, write and flush may fail with EIO.
    Failing,
    /// The power goes: what was not flushed is there in part, in any order.
    Power,
    /// Some I/Os take very long, and the others overtake them.
    Slow,
    /// The disk lies, once between two starts: a write is lost, goes to
    /// another place, or bits rot.
    Lying,
}

const ALL: [Weather; 5] = [
    Weather::Calm,
    Weather::Failing,
    Weather::Power,
    Weather::Slow,
    Weather::Lying,
];

/// The weather of a seed, and how often what happens.
#[derive(Clone, Copy, Debug)]
pub(in crate::cache) struct Climate {
    pub(in crate::cache) weather: Weather,
    /// Steps between two stops, on average.
    pub(in crate::cache) run: u64,
    /// Steps between two syncs asked for, on average.
    pub(in crate::cache) sync: u64,
    /// I/Os begun in a hundred steps; more are ended.
    pub(in crate::cache) io: u64,
    /// Stores come in bursts, with as long a silence between two of them.
    pub(in crate::cache) bursts: bool,
    /// Reads of a start may fail.
    pub(in crate::cache) bad_reads: bool,
    /// Steps between two of a page's read, on average; 0: all are read at once.
    pub(in crate::cache) load: u64,
    /// Some of what is stored is pinned.
    pub(in crate::cache) pins: bool,
}

impl Climate {
    pub(in crate::cache) fn of(seed: u64, prng: &mut Prng) -> Self {
        let pick = |prng: &mut Prng, from: [u64; 3]| {
            let at = usize::try_from(prng.below(3)).unwrap();
            from[at]
        };
        let weathers = u64::try_from(ALL.len()).unwrap();
        Self {
            weather: ALL[usize::try_from(seed % weathers).unwrap()],
            run: pick(prng, [80, 300, 900]),
            sync: pick(prng, [40, 150, 600]),
            io: pick(prng, [10, 20, 30]),
            bursts: prng.below(2) == 0,
            bad_reads: prng.below(2) == 0,
            load: match seed % 13 {
                4 => 1,
                6 => 20,
                7 => 200,
                _ => 0,
            },
            pins: seed % 7 == 2,
        }
    }
}
