//! Clients of HTTP/2, by prior knowledge on cleartext connections: well-behaved
//! ones by the `h2` library, the others by frames as they are.
#![expect(clippy::big_endian_bytes, reason = "the order of the network")]

mod abuse;
mod client;
mod connections;
mod exchange;
mod raw;
mod strict;
mod tls;
mod websocket;

use crate::support::{Origin, Proxy};

/// Turns HTTP/2 on.
const ON: &str = "CONFIG proxy.config.http2.prior_knowledge_in INT 1\n";

/// A proxy that speaks HTTP/2, with these further records.
fn proxy(records: &str, origin: &Origin) -> Proxy {
    Proxy::with(&format!("{ON}{records}"), &origin.map("/"))
}
