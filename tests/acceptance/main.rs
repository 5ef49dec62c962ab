//! The whole product as an operator meets it: real programs, real clients,
//! real devices.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test stops at the first surprise, and says what it saw"
)]
#![cfg_attr(
    not(feature = "devices"),
    expect(dead_code, reason = "the groups on devices use more of the helpers")
)]

mod clients;
mod forward;
mod http;
mod peers;
mod reload;
mod restart;
mod site;

#[cfg(feature = "devices")]
mod devices;
#[cfg(feature = "devices")]
#[path = "../support/loop_device.rs"]
mod loop_device;
#[cfg(feature = "devices")]
mod seed;

/// Says in every ordinary run which groups it left out.
#[cfg(not(feature = "devices"))]
mod without_devices {
    #[test]
    #[ignore = "needs root and loop devices: cargo test --features devices"]
    fn devices() {}

    #[test]
    #[ignore = "needs root and loop devices: cargo test --features devices"]
    fn seed() {}
}
