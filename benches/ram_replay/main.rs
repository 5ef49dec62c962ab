//! The RAM cache's hit ratios beside LRU's and the offline optimum's, over
//! traces made from a seed. `cargo bench --bench ram_replay` prints a row each,
//! then what falls short of the goals.
#![expect(clippy::print_stdout, reason = "the rows are what it is for")]

mod policies;
mod traces;

use policies::{Hits, Product, Queue, optimum, replay};
use strata::base::prng::Prng;
use traces::{Scale, Trace, alike, cdn, news, scan, shifting, zipf};

/// Budgets, in thousandths of the bytes that a trace asks for.
const BUDGETS: [u64; 5] = [1, 10, 30, 100, 300];
/// Points that the product may be below LRU.
const MOST_BELOW: f64 = 0.5;
/// Points that it must be above LRU where `is_demanding`.
const LEAST_ABOVE: f64 = 2.0;

/// A policy's hits in per cent of the requests and of the bytes.
#[derive(Clone, Copy)]
struct Ratio {
    objects: f64,
    bytes: f64,
}

struct Row {
    trace: &'static str,
    budget: u64,
    product: Ratio,
    lru: Ratio,
    optimum: Ratio,
}

impl Row {
    fn measure(trace: &Trace, budget: u64) -> Self {
        let room = trace.footprint() * budget / 1000;
        let ratio = |hits| ratio(trace, hits);
        Self {
            trace: trace.name,
            budget,
            product: ratio(replay(trace, Product::new(room))),
            lru: ratio(replay(trace, Queue::new(room, true))),
            optimum: ratio(optimum(trace, room)),
        }
    }

    fn print(&self) {
        let share = format!("{} %", self.budget as f64 / 10.0);
        let of = |part: fn(&Ratio) -> f64| {
            let (product, lru) = (part(&self.product), part(&self.lru));
            let above = product - lru;
            format!(
                "{product:6.2} | {lru:6.2} | {:6.2} | {above:+6.2}",
                part(&self.optimum)
            )
        };
        let (objects, bytes) = (of(|r| r.objects), of(|r| r.bytes));
        println!("| {:8} | {share:>5} | {objects} | {bytes} |", self.trace);
    }

    /// How the row misses a goal.
    fn loss(&self) -> Option<String> {
        let (product, lru) = (self.product, self.lru);
        let above = (product.objects - lru.objects).min(product.bytes - lru.bytes);
        let least = if self.is_demanding() {
            LEAST_ABOVE
        } else {
            -MOST_BELOW
        };
        (above < least).then(|| {
            let share = self.budget as f64 / 10.0;
            format!(
                "loss: {} at {share} %: {above:+.2} to LRU, {least:+.1} wanted",
                self.trace
            )
        })
    }

    fn is_demanding(&self) -> bool {
        let budgets = 10..=100;
        ["zipf 0.9", "zipf 1.1", "scan"].contains(&self.trace) && budgets.contains(&self.budget)
    }
}

fn ratio(trace: &Trace, hits: Hits) -> Ratio {
    let bytes = trace
        .requests
        .iter()
        .map(|object| trace.bytes[*object as usize]);
    Ratio {
        objects: 100.0 * hits.objects as f64 / trace.requests.len() as f64,
        bytes: 100.0 * hits.bytes as f64 / bytes.sum::<u64>() as f64,
    }
}

/// What the design gives up on: objects that are read twice, up to a twentieth
/// of all apart, and never again.
fn twice(scale: Scale) -> Trace {
    let mut prng = Prng::seeded(6);
    let objects = scale.requests / 2;
    let mut requests = Vec::new();
    for object in 0..objects {
        let apart = prng.below(u64::from(objects / 20));
        requests.push((2 * u64::from(object), object));
        requests.push((2 * (u64::from(object) + apart) + 1, object));
    }
    requests.sort_unstable();
    let requests = requests.into_iter().map(|(_, object)| object);
    alike("twice", objects, requests.collect())
}

fn all() -> Vec<Trace> {
    let scale = Scale {
        objects: 100_000,
        requests: 2_000_000,
    };
    vec![
        zipf("zipf 0.7", 0.7, scale),
        zipf("zipf 0.9", 0.9, scale),
        zipf("zipf 1.1", 1.1, scale),
        scan(scale),
        shifting(scale),
        news(scale),
        cdn(scale),
        twice(scale),
    ]
}

fn main() {
    println!(
        "| trace | RAM | S3-FIFO, % of requests | LRU | optimum | to LRU | S3-FIFO, % of bytes | LRU | optimum | to LRU |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut losses = Vec::new();
    for trace in all() {
        for budget in BUDGETS {
            let row = Row::measure(&trace, budget);
            row.print();
            losses.extend(row.loss());
        }
    }
    println!("{} losses", losses.len());
    for loss in losses {
        println!("{loss}");
    }
}
