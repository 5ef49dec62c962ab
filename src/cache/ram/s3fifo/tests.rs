//! Tests of `cache::ram::s3fifo`.

use super::*;
use crate::base::prng::Prng;

/// Room for `objects` objects of `body` bytes.
fn cache(objects: u64, body: u64) -> S3Fifo<u64> {
    S3Fifo::new(objects * (body + NODE_BYTES))
}

/// Hits of a cache that reads each key of `trace` and stores what it missed.
fn hits(trace: &[u128], objects: u64) -> usize {
    let mut cache = cache(objects, 1000);
    let read_or_store = |key: &&u128| {
        let hit = cache.read(**key).is_some();
        if !hit {
            cache.insert(**key, 0, 1000);
        }
        hit
    };
    trace.iter().filter(read_or_store).count()
}

/// Hits of a plain queue of `objects` keys; a read moves its key to the new
/// end when `on_read`, which makes it LRU.
fn queue_hits(trace: &[u128], objects: usize, on_read: bool) -> usize {
    let mut queue: Vec<u128> = Vec::new();
    let mut hits = 0;
    for key in trace {
        let at = queue.iter().position(|held| held == key);
        hits += usize::from(at.is_some());
        match at {
            Some(at) if on_read => {
                queue.remove(at);
            }
            Some(_) => continue,
            None if queue.len() == objects => {
                queue.remove(0);
            }
            None => {}
        }
        queue.push(*key);
    }
    hits
}

/// A fixed trace: skewed reads of 1,000 keys, each tenth a key of its own.
fn skewed_trace(length: usize) -> Vec<u128> {
    let mut prng = Prng::seeded(11);
    let mut step = |n: usize| {
        if n.is_multiple_of(10) {
            return u128::from(prng.next_u64());
        }
        let skew = prng.fraction() * prng.fraction() * prng.fraction() * 1e6;
        u128::from(Prng::seeded(skew.to_bits() >> 44).next_u64()) % 1000
    };
    (0..length).map(&mut step).collect()
}

#[test]
fn it_beats_fifo_and_lru_on_skewed_reads_with_strangers() {
    let trace = skewed_trace(30_000);
    let s3 = hits(&trace, 100);
    let (fifo, lru) = (
        queue_hits(&trace, 100, false),
        queue_hits(&trace, 100, true),
    );
    let points = trace.len() / 100;
    assert!(s3 > lru + points, "s3 {s3}, lru {lru}, fifo {fifo}");
    assert!(s3 > fifo + 2 * points, "s3 {s3}, lru {lru}, fifo {fifo}");
}

#[test]
fn a_scan_of_strangers_does_not_wash_out_what_was_read() {
    let mut cache = cache(100, 1000);
    for key in 0..50 {
        cache.insert(key, 0, 1000);
        cache.read(key);
        cache.read(key);
    }
    for key in 1000..3000 {
        cache.insert(key, 0, 1000);
    }
    let left = (0..50).filter(|key| cache.peek(*key).is_some()).count();
    assert_eq!(left, 50);
}

#[test]
fn who_comes_back_after_leaving_small_enters_main() {
    let mut cache = cache(20, 1000);
    for key in 0..30 {
        cache.insert(key, 0, 1000);
    }
    assert!(cache.peek(9).is_none());
    cache.insert(9, 0, 1000);
    for key in 100..118 {
        cache.insert(key, 0, 1000);
    }
    assert!(cache.peek(9).is_some());
}

#[test]
fn bytes_never_pass_the_budget_and_go_back_to_nothing() {
    let mut prng = Prng::seeded(5);
    let mut cache: S3Fifo<u64> = S3Fifo::new(100_000);
    for _ in 0..20_000 {
        let key = u128::from(prng.below(500));
        match prng.below(4) {
            0 => drop(cache.remove(key)),
            1 => drop(cache.read(key).copied()),
            _ => {
                cache.insert(key, 0, prng.below(9000));
            }
        }
        assert!(cache.used() <= 100_000, "{} bytes", cache.used());
    }
    cache.retain(|_| false);
    assert_eq!(
        (cache.len(), cache.small_bytes, cache.main_bytes),
        (0, 0, 0)
    );
}

#[test]
fn an_object_larger_than_the_budget_is_refused_and_its_older_self_is_gone() {
    let mut cache = cache(2, 1000);
    assert!(cache.insert(1, 0, 500));
    assert!(!cache.insert(1, 1, 5000));
    assert!(cache.peek(1).is_none());
}

#[test]
fn a_smaller_budget_evicts_at_once() {
    let mut cache = cache(100, 1000);
    for key in 0..100 {
        cache.insert(key, 0, 1000);
    }
    cache.set_budget(10_000);
    assert!(cache.used() <= 10_000);
    assert!(cache.len() > 3);
}
