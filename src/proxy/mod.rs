//! Floor 3: listeners, transactions, origins and fills.

pub mod answer;
pub mod cache_status;
pub mod context;
pub mod fill;
pub mod generator;
pub mod h1;
pub mod life;
pub mod listener;
pub mod origin;
pub mod outcome;
pub mod resolve;
pub mod settings;
pub mod snapshot;

pub use context::WorkerContext;
pub use outcome::{Ended, Finish, Outcome, Route};
pub use snapshot::Snapshot;
