//! The configuration in force, whole and unchanging: what one reload swaps in.

use super::h1::ConnOptions;
use super::settings::{self, ConnectPorts};
use crate::config::records::Records;
use crate::http::policy::CachePolicy;
use std::sync::Arc;

/// Everything that the files say and a reload can change. A transaction keeps
/// the one it began with.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Counts the reloads: 1 at the start.
    pub generation: u64,
    /// Every record's value.
    pub records: Arc<Records>,
    /// The rules of storing and reuse, from the records.
    pub policy: CachePolicy,
    /// The bounds of a client connection, from the records.
    pub conn: ConnOptions,
    /// Ports that CONNECT may reach, from the records.
    pub connect_ports: ConnectPorts,
}

impl Snapshot {
    /// The snapshot of `records`.
    #[must_use]
    pub fn new(generation: u64, records: Records) -> Self {
        Self {
            generation,
            policy: settings::cache_policy(&records),
            conn: settings::conn_options(&records),
            connect_ports: ConnectPorts::parse(&records.http_connect_ports),
            records: Arc::new(records),
        }
    }
}
