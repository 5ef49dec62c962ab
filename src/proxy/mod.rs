//! Floor 3: listeners, transactions, origins and fills.

pub mod answer;
pub mod cache_status;
pub mod h1;
pub mod listener;
pub mod outcome;

pub use outcome::{Ended, Finish, Outcome, Route};
