//! The RAM cache beside queues over small fixed traces: a policy that
//! degenerates to first in, first out, or to least recently used, fails here.
//! `cargo bench --bench ram_replay` measures it at length.

#[path = "../benches/ram_replay/policies.rs"]
mod policies;
#[path = "../benches/ram_replay/traces.rs"]
mod traces;

use policies::{Product, Queue, optimum, replay};
use traces::{Scale, Trace, cdn, news, scan, shifting, zipf};

const SCALE: Scale = Scale {
    objects: 5_000,
    requests: 40_000,
};
const BUDGETS_PERMILLE: [u64; 3] = [10, 30, 100];

/// Hits for each 10,000 requests: of the product, LRU, FIFO, the optimum.
fn hits(trace: &Trace, budget: u64) -> [i64; 4] {
    let room = trace.footprint() * budget / 1000;
    let hits = [
        replay(trace, Product::new(room)),
        replay(trace, Queue::new(room, true)),
        replay(trace, Queue::new(room, false)),
        optimum(trace, room),
    ];
    let requests = i64::from(SCALE.requests);
    hits.map(|hits| i64::try_from(hits.objects).expect("few") * 10_000 / requests)
}

/// Asserts how far the product is above both queues, in hundredths of a point.
fn assert_above(trace: &Trace, least_above: i64) {
    for budget in BUDGETS_PERMILLE {
        let [product, lru, fifo, optimum] = hits(trace, budget);
        let said = format!(
            "{} at {budget} permille: {product}, LRU {lru}, FIFO {fifo}, optimum {optimum}",
            trace.name
        );
        assert!(product >= lru.max(fifo) + least_above, "{said}");
        assert!(lru.max(product) <= optimum, "no cache beats it: {said}");
    }
}

#[test]
fn it_is_two_points_above_lru_and_fifo_on_skewed_reads() {
    assert_above(&zipf("zipf 0.9", 0.9, SCALE), 200);
    assert_above(&zipf("zipf 1.1", 1.1, SCALE), 200);
}

#[test]
fn it_is_two_points_above_lru_and_fifo_beside_a_crawler() {
    assert_above(&scan(SCALE), 200);
}

#[test]
fn it_is_not_half_a_point_below_lru_and_fifo_as_the_hot_set_changes() {
    for trace in [shifting(SCALE), news(SCALE), cdn(SCALE)] {
        assert_above(&trace, -50);
    }
}
