//! Floor 5: start order, stop order, signals and privileges.

mod announce;
mod cache_options;
mod certificates;
mod gauges;
pub mod limits;
mod log_place;
mod management;
pub mod options;
pub mod port_owner;
mod ports;
pub mod privileges;
mod readiness;
pub mod running;
mod serve;
pub mod start;
pub mod state;
mod workers;

pub use options::Options;
pub use running::{Running, StopError};
pub use start::{StartError, check, clear, init_span, plan_storage, start, verify};
