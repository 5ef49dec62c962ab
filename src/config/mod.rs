//! Configuration files to values: text in, values and every error out.
//!
//! Nothing here opens a file or reads a clock.

pub mod cache_rules;
pub mod connect_ports;
mod error;
mod fault;
pub mod hosting;
pub mod ip_allow;
pub mod ip_range;
pub mod lines;
mod list;
pub mod methods;
pub mod nearest;
pub mod place;
pub mod ports;
pub mod records;
pub mod remap;
pub mod sni;
pub mod ssl_multicert;
pub mod storage;
pub mod toml;
pub mod unheeded;
pub mod volume;
pub mod yaml;

pub use error::{ConfigError, Findings};
