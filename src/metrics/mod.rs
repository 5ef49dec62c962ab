//! Counters and gauges: one table of names, cells a thread, sums when read.
//!
//! The hot path only ever adds to a cell of its own thread; nothing is shared
//! between threads until somebody scrapes.

mod cells;
mod collect;
mod derived;
pub mod doc;
pub mod export;
mod held;
mod http;
mod rows;
mod table;
mod volume;

pub use cells::{Cells, Registry};
pub use collect::{Collector, Scrape, Shown, Value, WINDOW};
pub use derived::{DERIVED, DerivedSpec};
pub use held::Held;
pub use rows::{METRICS, Metric};
pub use table::{MetricKind, MetricSpec, exported};
pub use volume::{VOLUME_METRICS, VolumeCells, VolumeMetric, VolumeSpec};
