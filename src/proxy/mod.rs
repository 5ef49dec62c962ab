//! Floor 3: listeners, transactions, origins and fills.

pub mod access_log;
pub mod answer;
pub mod cache_rules;
pub mod cache_status;
pub mod cached;
pub mod client;
mod connection;
pub mod context;
pub mod decide;
pub mod fetch;
pub mod fill;
mod forward;
pub mod generator;
pub mod h1;
pub mod h2;
pub mod key;
pub mod life;
pub mod listener;
pub mod marker;
mod metered;
pub mod origin;
pub mod outcome;
mod parts;
pub mod patience;
mod peer;
mod relay;
pub mod resolve;
mod resume;
pub mod route;
pub mod routed;
mod serve;
pub mod settings;
pub mod snapshot;
mod source;
#[cfg(test)]
mod testing;
pub mod tls;
mod transaction;
mod tunnel;
mod via;
pub mod worker;

pub use context::{Shared, WorkerContext};
pub use outcome::{Ended, Finish, Outcome, Route};
pub use peer::Peer;
pub use routed::{Mode, Routed};
pub use snapshot::Snapshot;
