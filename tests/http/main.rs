//! End to end on real sockets: a client, the proxy, an origin that records.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

#[path = "../support/pki.rs"]
mod pki;
#[path = "../support/mod.rs"]
mod support;

mod broken;
mod cache_rules;
mod caching;
mod connections;
mod counters;
mod differential;
mod fills;
mod forwarding;
mod framing;
mod h2;
mod h2_origins;
mod introduced;
mod invariants;
mod keys;
mod limits;
mod messages;
mod methods;
mod parts;
mod push;
mod ranges;
mod records;
mod sni;
mod sni_tunnel;
mod staple;
mod suspect;
mod targets;
mod tls;
mod tls_origins;
mod tls_records;
mod trailers;
mod upgrade;
mod uploads;
mod vary;
mod versions;
