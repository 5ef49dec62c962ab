//! Strata: a tiered HTTP cache and proxy.
//!
//! A RAM cache lies above cyclic-log stripes on raw SSD (fast tier) and disk
//! (capacity tier) devices. `docs/ARCHITECTURE.md` is the map; the modules
//! below are its floors, and a module uses lower floors only.

pub mod base;

pub mod config;
pub mod device;
pub mod http;
pub mod metrics;

pub mod cache;
pub mod remap;

pub mod proxy;

pub mod mgmt;

pub mod server;
