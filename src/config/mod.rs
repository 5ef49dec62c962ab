//! Configuration files to values: text in, values and every error out.
//!
//! Nothing here opens a file or reads a clock.

mod error;
pub mod records;

pub use error::{ConfigError, Findings};
