//! The whole product as an operator meets it: real programs, real clients,
//! real devices.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, and says what it saw"
)]

mod bench;
mod clients;
mod crowds;
mod devices;
mod dying;
mod forward;
mod http;
mod package;
mod packaging;
mod partitions;
mod peers;
mod reload;
mod restart;
mod seed;
mod site;
mod slow;
mod spans;
mod tiers;

#[expect(dead_code, reason = "the tests of devices use the rest of it")]
#[path = "../support/loop_device.rs"]
mod loop_device;

#[path = "../support/process.rs"]
mod process;
#[path = "../support/until.rs"]
mod until;
