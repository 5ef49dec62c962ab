//! The directory at a load of 0.90: inserts, lookups that hit and that miss on
//! one thread and on two, false matches, drops. `cargo bench --bench directory`
//! prints a row each. Time is the threads' own on a processor, so that what
//! else the machine does counts little.
#![expect(clippy::unwrap_used, reason = "a measurement stops at a surprise")]
#![expect(clippy::print_stdout, reason = "the rows are what it is for")]

use std::fs;
use std::hint::black_box;
use strata::base::prng::Prng;
use strata::cache::directory::{Directory, Hand, Home, LogShape};
use strata::cache::format::dir_entry::{DirEntry, EntryParts};
use strata::cache::format::directory_page::PAGE_SLOTS;

/// Pages; at the steady load about ten million entries live.
const PAGES: u32 = 1357;
/// Slots in use, in per cent.
const LOAD_PERCENT: u64 = 90;
/// Live entries at the steady load.
const ENTRIES: u64 = PAGES as u64 * PAGE_SLOTS * LOAD_PERCENT / 100;
/// Log bytes of an entry.
const ENTRY_BYTES: u64 = 4096;
/// Entries of a batch: the hand moves once for each.
const BATCH: u64 = 256;
/// Of each thread in a round.
const LOOKUPS: u64 = 2_000_000;
const ROUNDS: usize = 5;

/// The `n`th key that was ever inserted.
fn key(n: u64) -> u128 {
    let mut prng = Prng::seeded(n << 20);
    u128::from(prng.next_u64()) << 64 | u128::from(prng.next_u64())
}

/// A directory, and how many keys it has been given.
struct Filled {
    directory: Directory,
    hand: Hand,
    inserted: u64,
}

impl Filled {
    fn empty() -> Self {
        let log = LogShape {
            offset: 0,
            bytes: ENTRIES * ENTRY_BYTES,
        };
        Self {
            directory: Directory::new(1, log, PAGES, log.bytes),
            hand: Hand::default(),
            inserted: 0,
        }
    }

    /// Appends one entry, as the stripe does; returns how many it dropped.
    fn append(&mut self) -> u64 {
        let (directory, log) = (&self.directory, ENTRIES * ENTRY_BYTES);
        let at = directory.cursor();
        let home = Home::of(key(self.inserted), PAGES);
        let entry = DirEntry::new(EntryParts {
            // The log's first block is never a fragment's.
            offset: (at % log).max(512),
            tag: home.tag,
            size: ENTRY_BYTES,
            parity: (at / log) & 1 == 1,
            head: true,
            pinned: false,
        });
        directory.set_cursor(at + ENTRY_BYTES);
        self.inserted += 1;
        if self.inserted.is_multiple_of(BATCH) {
            self.hand.advance(directory, BATCH * ENTRY_BYTES);
        }
        let removed = directory.insert(home, entry, &[]);
        removed
            .iter()
            .map(|removed| u64::from(removed.for_room))
            .sum()
    }

    /// Appends `count` entries; prints what each took, and what they dropped.
    fn fill(&mut self, name: &str, count: u64) {
        let begin = cpu_ns();
        let dropped: u64 = (0..count).map(|_| self.append()).sum();
        let each = (cpu_ns() - begin) as f64 / count as f64;
        let share = dropped as f64 / count as f64;
        println!("{name}: {each:.0} ns an insert, {dropped} of {count} dropped ({share:.1e})");
    }

    /// The key of a live entry, or of one that never was.
    fn some_key(&self, prng: &mut Prng, live: bool) -> u128 {
        let back = 1 + prng.below(ENTRIES * 9 / 10);
        key(if live {
            self.inserted - back
        } else {
            self.inserted + back
        })
    }
}

/// Nanoseconds that this thread has been on a processor.
fn cpu_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

/// Lookups a second of one thread, and how many found something.
fn lookups(filled: &Filled, seed: u64, live: bool) -> (f64, u64) {
    let mut prng = Prng::seeded(seed);
    let begin = cpu_ns();
    let found = (0..LOOKUPS).filter(|_| {
        let key = filled.some_key(&mut prng, live);
        !black_box(filled.directory.lookup(black_box(key))).is_empty()
    });
    let found = found.count() as u64;
    let seconds = (cpu_ns() - begin) as f64 / 1e9;
    (LOOKUPS as f64 / seconds, found)
}

/// Lookups a second of `threads` together, and the share that found something.
fn together(filled: &Filled, threads: u64, live: bool) -> (f64, f64) {
    std::thread::scope(|scope| {
        let run = |seed| scope.spawn(move || lookups(filled, seed, live));
        let running: Vec<_> = (0..threads).map(run).collect();
        let done = running.into_iter().map(|thread| thread.join().unwrap());
        let (rate, found) = done.fold((0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (rate, found as f64 / (LOOKUPS * threads) as f64)
    })
}

fn print_lookups(filled: &Filled, threads: u64, live: bool) {
    let mut rounds: Vec<_> = (0..ROUNDS)
        .map(|_| together(filled, threads, live))
        .collect();
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (rate, found) = rounds[ROUNDS / 2];
    let [least, most] = [rounds[0].0, rounds[ROUNDS - 1].0].map(|rate| rate / 1e6);
    let what = if live { "hits" } else { "misses" };
    println!(
        "{what} on {threads} threads: {:.1} M lookups/s ({least:.1} to {most:.1}), {found:.2e} found",
        rate / 1e6
    );
}

fn main() {
    let mut filled = Filled::empty();
    filled.fill("into the empty directory", ENTRIES);
    filled.fill("at the steady load", ENTRIES);
    filled.fill("at the steady load", ENTRIES);
    let census = filled.directory.census();
    let load = census.valid as f64 / census.slots as f64;
    println!(
        "{} live of {} slots, load {load:.3}",
        census.valid, census.slots
    );
    for threads in [1, 2] {
        print_lookups(&filled, threads, true);
        print_lookups(&filled, threads, false);
    }
}
