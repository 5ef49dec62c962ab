//! What a client connection is bounded by.

use crate::base::scheme::Scheme;
use crate::http::head::HeadLimits;
use std::time::Duration;

/// The bounds of one client connection, taken from the records when it opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnOptions {
    /// The scheme that a target without one means.
    pub scheme: Scheme,
    /// Bounds on a head (`http.request_header_max_size`).
    pub head: HeadLimits,
    /// Wait for the first byte of a connection
    /// (`http.accept_no_activity_timeout`).
    pub first_byte: Duration,
    /// Wait for another request (`http.keep_alive_no_activity_timeout_in`).
    pub idle: Duration,
    /// Wait for a head to be whole, for more of a body, and for the client to
    /// take a byte (`http.transaction_no_activity_timeout_in`).
    pub stall: Duration,
    /// Whether connections are kept at all (`http.keep_alive_enabled_in`).
    pub keep_alive: bool,
    /// Whether a client that has ended its side may still wait for its response
    /// (`http.allow_half_open`).
    pub half_open: bool,
    /// Bytes of a body nobody wanted that are read past, to keep the
    /// connection; above that it closes.
    pub drain_bytes_max: u64,
}

impl Default for ConnOptions {
    fn default() -> Self {
        Self {
            scheme: Scheme::Http,
            head: HeadLimits::default(),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(120),
            stall: Duration::from_secs(30),
            keep_alive: true,
            half_open: true,
            drain_bytes_max: 65_536,
        }
    }
}
