//! The configuration in force, whole and unchanging: what one reload swaps in.

use super::cache_rules::CacheRules;
use super::h1::ConnOptions;
use super::h2::H2Options;
use super::introduced::Introducers;
use super::resolve::{NameSources, ResolverOptions};
use super::settings;
use super::tls::OriginTls;
use crate::config::connect_ports::ConnectPorts;
use crate::config::records::Records;
use crate::http::policy::CachePolicy;
use crate::remap::{ForwardPolicy, IpAllow, Table};
use std::sync::Arc;

/// What the files say, read and built by the caller.
#[derive(Debug, Default)]
pub struct SnapshotParts {
    /// Every record's value.
    pub records: Records,
    /// The rules of remap.config.
    pub remap: Table,
    /// Ports that CONNECT may reach (`http.connect_ports`).
    pub connect_ports: ConnectPorts,
    /// The rules of cache.config.
    pub cache_rules: CacheRules,
    /// The rules of the ip_allow file, or the built-in ones.
    pub ip_allow: IpAllow,
    /// TLS with origins; without, none of https is asked.
    pub origin_tls: Option<Arc<OriginTls>>,
}

/// Everything that the files say and a reload can change. A transaction keeps
/// the one it began with.
#[derive(Debug)]
pub struct Snapshot {
    /// Counts the reloads: 1 at the start.
    pub generation: u64,
    /// Every record's value.
    pub records: Arc<Records>,
    /// The rules of storing and reuse, from the records.
    pub policy: Arc<CachePolicy>,
    /// What of them is otherwise for some requests, from cache.config.
    pub cache_rules: CacheRules,
    /// The bounds of a client connection, from the records.
    pub conn: ConnOptions,
    /// The bounds of an HTTP/2 connection, from the records.
    pub h2: H2Options,
    /// Ports that CONNECT may reach.
    pub connect_ports: ConnectPorts,
    /// Which URL goes where.
    pub remap: Table,
    /// Who may do what, and which origins may be reached.
    pub ip_allow: IpAllow,
    /// Who may choose the origin, from the records.
    pub forward: ForwardPolicy,
    /// Who is told Cache-Status, from the records.
    pub cache_status: ForwardPolicy,
    /// Who introduces clients, from the records.
    pub introducers: Introducers,
    /// TLS with origins.
    pub origin_tls: Option<Arc<OriginTls>>,
    /// What names are resolved by, from the records and the files they name.
    pub names: Arc<NameSources>,
}

impl SnapshotParts {
    /// Records alone: no rule, no port for CONNECT, the built-in ip_allow.
    #[must_use]
    pub fn of(records: Records) -> Self {
        Self {
            records,
            ..Self::default()
        }
    }
}

impl Snapshot {
    /// The snapshot of what the files say. Reads the files of the resolver:
    /// not for a thread that serves.
    #[must_use]
    pub fn new(generation: u64, parts: SnapshotParts) -> Self {
        let forward = clients(&parts.records.http_forward_allow);
        let cache_status = match parts.records.http_cache_status {
            0 => ForwardPolicy::nobody(),
            _ => clients(&parts.records.http_cache_status_allow),
        };
        let names = ResolverOptions::from_records(&parts.records);
        Self {
            generation,
            introducers: Introducers::of(parts.records.http_proxy_protocol_allowlist.as_deref()),
            names: Arc::new(NameSources::read(names)),
            policy: Arc::new(settings::cache_policy(&parts.records)),
            cache_rules: parts.cache_rules,
            conn: settings::conn_options(&parts.records),
            h2: settings::h2_options(&parts.records),
            records: Arc::new(parts.records),
            connect_ports: parts.connect_ports,
            remap: parts.remap,
            ip_allow: parts.ip_allow,
            origin_tls: parts.origin_tls,
            forward,
            cache_status,
        }
    }
}

/// The table of records has checked them; were it not so, nobody may.
fn clients(networks: &str) -> ForwardPolicy {
    ForwardPolicy::parse(networks).unwrap_or_else(|_| ForwardPolicy::nobody())
}
