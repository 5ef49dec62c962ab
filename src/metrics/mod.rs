//! Counters and gauges: one table of names, cells a thread, sums when read.
//!
//! The hot path only ever adds to a cell of its own thread; nothing is shared
//! between threads until somebody scrapes.

mod cells;
mod table;

pub use cells::{Cells, Registry};
pub use table::{METRICS, Metric, MetricKind, MetricSpec};
