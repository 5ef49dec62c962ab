//! `sni.toml`, or ATS's `sni.yaml`: what holds for clients that ask for a name.
//!
//! ```toml
//! [[sni]]
//! fqdn = "*.a.example"
//! verify_client = "STRICT"
//! verify_client_ca_certs = "clients.pem"
//! valid_tls_versions_in = ["TLSv1_3"]
//! ```
//!
//! The fields are those of ATS. Entries are asked in the file's order, and the
//! first whose name fits is the only one that holds. What ATS knows beside
//! these fields is refused by name where it would change what clients may do,
//! and warned of where it is a matter of speed.

mod entry;
mod name;
mod route;
#[cfg(test)]
mod tests;

pub use name::NamePattern;
pub use route::TunnelRoute;

use super::ip_range::IpRange;
use super::nearest::did_you_mean;
use super::place::Place;
use super::yaml::{self, Kind, Node};
use super::{Findings, toml};

/// The key that the entries stand below.
const ROOT: &str = "sni";

/// The entries, in the file's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SniFile {
    /// Each entry.
    pub entries: Vec<SniEntry>,
}

/// What holds for the names of one entry; what it does not say is as the
/// records have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SniEntry {
    /// Where it begins.
    pub place: Place,
    /// Which names it is for (`fqdn`).
    pub name: NamePattern,
    /// The versions spoken (`valid_tls_versions_in`), at least one.
    pub versions: Option<Vec<TlsVersion>>,
    /// What clients must prove (`verify_client`).
    pub verify_client: Option<ClientCheck>,
    /// The file of those who vouch for clients (`verify_client_ca_certs`), and
    /// where it is named.
    pub client_authorities: Option<(Place, String)>,
    /// Whether HTTP/2 is offered (`http2`).
    pub http2: Option<bool>,
    /// The only clients that may ask for the name (`ip_allow`).
    pub clients: Option<Vec<IpRange>>,
    /// Where connections go without an end of TLS here (`tunnel_route`).
    pub tunnel: Option<TunnelRoute>,
    /// What is made of a request for such a host that comes on a connection for
    /// another name (`host_sni_policy`).
    pub host_policy: Option<Policy>,
    /// What becomes of an origin of that name that can't prove itself
    /// (`verify_server_policy`).
    pub verify_server: Option<Policy>,
    /// The certificate that such an origin is shown (`client_cert`), and where
    /// it is named.
    pub certificate: Option<(Place, String)>,
    /// Its key (`client_key`).
    pub key: Option<String>,
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    /// RFC 5246.
    V1_2,
    /// RFC 8446.
    V1_3,
}

/// Whether clients must show a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCheck {
    /// None is asked for.
    None,
    /// One is asked for, and must be good if it comes.
    Moderate,
    /// A good one must come.
    Strict,
}

/// What is made of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Nothing.
    Disabled,
    /// A warning.
    Permissive,
    /// It is refused.
    Enforced,
}

/// Reads the file: YAML if its name ends in `.yaml` or `.yml`, else TOML. Finds
/// everything that is wrong with it.
#[must_use]
pub fn parse(file: &str, bytes: &[u8]) -> (SniFile, Findings) {
    let mut found = Findings::default();
    let is_yaml = file.ends_with(".yaml") || file.ends_with(".yml");
    let root = match is_yaml {
        true => yaml::parse(file, bytes),
        false => toml::parse(file, bytes).map(Some),
    };
    let root = root.unwrap_or_else(|error| {
        found.errors.push(error);
        None
    });
    let nodes = root.map_or_else(Vec::new, |root| below(root, &mut found));
    let entries = nodes
        .iter()
        .filter_map(|node| entry::read(node, &mut found));
    let entries: Vec<SniEntry> = entries.collect();
    found.warnings.extend(shadowed(&entries));
    (SniFile { entries }, found)
}

/// The entries' nodes.
fn below(root: Node, found: &mut Findings) -> Vec<Node> {
    let Kind::Mapping(pairs) = root.kind else {
        let what = format!("the file has no list of entries below {ROOT}");
        found.errors.push(root.error(what));
        return Vec::new();
    };
    let mut nodes = None;
    for (key, value) in pairs {
        match (key.scalar(), value.kind) {
            (Some(ROOT), _) if nodes.is_some() => {
                found.errors.push(key.error("this key stands twice"));
            }
            (Some(ROOT), Kind::List(items)) => nodes = Some(items),
            (Some(ROOT), Kind::Scalar(text)) if text.is_empty() => nodes = Some(Vec::new()),
            (Some(ROOT), _) => {
                let mut error = key.error("the entries are no list");
                error.help = Some("begin each by [[sni]], or by \"- fqdn:\" in YAML".into());
                found.errors.push(error);
            }
            (other, _) => {
                let mut error = key.error("unknown key");
                error.help = did_you_mean(other.unwrap_or_default(), [ROOT]);
                found.errors.push(error);
            }
        }
    }
    nodes.unwrap_or_default()
}

/// A warning for each entry that an earlier one of the same name hides.
fn shadowed(entries: &[SniEntry]) -> Vec<super::ConfigError> {
    let mut first = std::collections::HashMap::new();
    let mut warnings = Vec::new();
    for entry in entries {
        let before = first.entry(entry.name.text()).or_insert(&entry.place);
        if *before != &entry.place {
            let what = format!("no effect: the entry at {before} has that name");
            warnings.push(entry.place.error(entry.name.text(), what));
        }
    }
    warnings
}
