//! How often keys were read of late, in a few bytes a key: a count-min sketch
//! that ages.
//!
//! A key's counters lie in one cache line, so that they age together. A count
//! may be too high when keys share counters, never too low but by age: each
//! line is halved once in as many reads as a row has counters, one line at a
//! time, so that no read pays for all.

use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of counters of a line; a key has one counter in each.
const ROWS: usize = 4;
/// Counters of a row of a line: two words of eight.
const ROW_COUNTERS: u64 = 16;
const ROW_WORDS: usize = 2;
/// Lines, at least and at most.
const LINES: (u64, u64) = (1 << 10, 1 << 17);
/// All bits of a word but the highest of each counter.
const HALF: u64 = 0x7f7f_7f7f_7f7f_7f7f;

/// Counters of some keys, in one cache line.
#[repr(align(64))]
#[derive(Debug, Default)]
struct Line([AtomicU64; ROWS * ROW_WORDS]);

/// The counts. Any number of threads add at once; a race loses a count.
#[derive(Debug)]
pub(crate) struct Sketch {
    lines: Box<[Line]>,
    reads: AtomicU64,
}

impl Sketch {
    /// The highest count.
    pub(crate) const MAX: u8 = u8::MAX;

    /// A sketch that tells about `keys` keys apart, within its bounds of 64 KiB
    /// and 8 MiB.
    pub(crate) fn new(keys: u64) -> Self {
        let lines = (keys / ROW_COUNTERS).clamp(LINES.0, LINES.1);
        Self {
            lines: (0..lines).map(|_| Line::default()).collect(),
            reads: AtomicU64::new(0),
        }
    }

    /// Counts a read of the key with this hash. Gives how often it was read of
    /// late, this time included.
    pub(crate) fn add(&self, key_hash: u128) -> u8 {
        self.age();
        let low = u64::try_from(key_hash & u128::from(u64::MAX)).unwrap_or(0);
        let line = self.line(u64::try_from(key_hash >> 64).unwrap_or(0));
        let places = places(low);
        let counts = places.map(|place| line.count(place));
        let least = counts.into_iter().min().unwrap_or(0);
        if least == Self::MAX {
            return least;
        }
        // Only the lowest counters rise: the others are too high already.
        for (place, count) in places.into_iter().zip(counts) {
            if count == least {
                line.raise(place, least);
            }
        }
        least + 1
    }

    fn line(&self, number: u64) -> &Line {
        let lines = u64::try_from(self.lines.len()).unwrap_or(1).max(1);
        &self.lines[usize::try_from(number % lines).unwrap_or(0)]
    }

    /// Halves the counters of one line when it is due.
    fn age(&self) {
        let reads = self.reads.fetch_add(1, Ordering::Relaxed);
        if reads.is_multiple_of(ROW_COUNTERS) {
            self.line(reads / ROW_COUNTERS).halve();
        }
    }
}

/// The word and the shift of a key's counter in each row.
fn places(bits: u64) -> [(usize, u32); ROWS] {
    let mut word = 0;
    [0, 16, 32, 48].map(|shift| {
        let counter = (bits >> shift) % ROW_COUNTERS;
        let at = word + usize::from(counter >= 8);
        word += ROW_WORDS;
        (at, u32::try_from(counter % 8).unwrap_or(0) * 8)
    })
}

impl Line {
    fn count(&self, (word, shift): (usize, u32)) -> u8 {
        lane(self.0[word].load(Ordering::Relaxed), shift)
    }

    /// Raises a counter that still stands at `from`, so that none overflows
    /// into the next.
    fn raise(&self, (word, shift): (usize, u32), from: u8) {
        let raised = |bits: u64| (lane(bits, shift) == from).then(|| bits + (1 << shift));
        // Another thread has raised it meanwhile, or it has aged: as well.
        self.0[word]
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, raised)
            .ok();
    }

    fn halve(&self) {
        for word in &self.0 {
            let halved = |bits: u64| Some((bits >> 1) & HALF);
            word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, halved)
                .ok();
        }
    }
}

fn lane(bits: u64, shift: u32) -> u8 {
    (bits >> shift).to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::prng::Prng;

    fn key(prng: &mut Prng) -> u128 {
        u128::from(prng.next_u64()) << 64 | u128::from(prng.next_u64())
    }

    #[test]
    fn a_key_is_counted_from_one_up_to_the_highest_count() {
        let sketch = Sketch::new(1 << 16);
        let key = key(&mut Prng::seeded(1));
        let counts: Vec<u8> = (0..300).map(|_| sketch.add(key)).collect();
        let expected = (1..=255).chain(std::iter::repeat_n(255, 45));
        assert_eq!(counts, expected.collect::<Vec<u8>>());
        assert_eq!(sketch.add(!key), 1, "its neighbours are untouched");
    }

    #[test]
    fn keys_that_come_once_are_seldom_taken_for_known() {
        let sketch = Sketch::new(1 << 14);
        let mut prng = Prng::seeded(2);
        let known = (0..200_000).filter(|_| sketch.add(key(&mut prng)) > 1);
        let share = known.count() * 1000 / 200_000;
        assert!(share < 80, "{share} of 1000");
    }

    #[test]
    fn a_key_read_often_among_many_keeps_its_count() {
        let sketch = Sketch::new(1 << 14);
        let mut prng = Prng::seeded(3);
        let hot = key(&mut prng);
        let mut last = 0;
        for _ in 0..5000 {
            for _ in 0..20 {
                sketch.add(key(&mut prng));
            }
            last = sketch.add(hot);
        }
        assert!(last > 100, "{last}");
    }

    #[test]
    fn what_is_not_read_any_more_is_forgotten() {
        let sketch = Sketch::new(1 << 14);
        let mut prng = Prng::seeded(4);
        let old = key(&mut prng);
        for _ in 0..100 {
            sketch.add(old);
        }
        for _ in 0..(10 << 14) {
            sketch.add(key(&mut prng));
        }
        assert!(sketch.add(old) < 5);
    }

    #[test]
    fn its_memory_is_bounded_whatever_it_is_asked_for() {
        assert_eq!(Sketch::new(0).lines.len() * 64, 64 << 10);
        assert_eq!(Sketch::new(u64::MAX).lines.len() * 64, 8 << 20);
    }
}
