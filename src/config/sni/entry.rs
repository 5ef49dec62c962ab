//! One entry, from its node.

use super::{ClientCheck, NamePattern, Policy, SniEntry, TlsVersion, TunnelRoute};
use crate::config::ip_range::IpRange;
use crate::config::nearest::did_you_mean;
use crate::config::place::Place;
use crate::config::yaml::{Kind, Node};
use crate::config::{ConfigError, Findings};

const NAME: &str = "fqdn";

/// The fields that have an effect.
const KNOWN: [&str; 13] = [
    NAME,
    "client_cert",
    "client_key",
    "disable_h2",
    "host_sni_policy",
    "http2",
    "ip_allow",
    "tunnel_route",
    "valid_tls_versions_in",
    "verify_client",
    "verify_client_ca_certs",
    "verify_server_policy",
    "verify_server_properties",
];

/// Those of ATS that would change what clients may do, or where they come to.
const REFUSED: [&str; 12] = [
    "client_sni_policy",
    "forward_route",
    "inbound_port_ranges",
    "partial_blind_route",
    "quic",
    "server_TLSv1_3_cipher_suites",
    "server_cipher_suite",
    "server_groups_list",
    "tunnel_alpn",
    "valid_tls_version_max_in",
    "valid_tls_version_min_in",
    "verify_origin_server",
];

/// Those of ATS that are a matter of speed, or switch off what is not there.
const IDLE: [&str; 9] = [
    "http2_buffer_water_mark",
    "http2_initial_window_size_in",
    "http2_max_continuation_frames_per_minute",
    "http2_max_ping_frames_per_minute",
    "http2_max_priority_frames_per_minute",
    "http2_max_rst_stream_frames_per_minute",
    "http2_max_settings_frames_per_minute",
    "ip_allow_category",
    "server_max_early_data",
];

/// Reads an entry; none if anything of it is faulty.
pub(super) fn read(node: &Node, found: &mut Findings) -> Option<SniEntry> {
    let before = found.errors.len();
    let entry = Reader { node, found }.entry();
    entry.filter(|_| found.errors.len() == before)
}

/// The fields of an entry and where its faults go.
struct Reader<'a> {
    node: &'a Node,
    found: &'a mut Findings,
}

impl<'a> Reader<'a> {
    fn entry(&mut self) -> Option<SniEntry> {
        let Kind::Mapping(pairs) = &self.node.kind else {
            let error = self
                .node
                .error(format!("an entry has fields, {NAME} first"));
            self.found.errors.push(error);
            return None;
        };
        self.judge_keys(pairs);
        let name = self.take(NAME, |node| {
            NamePattern::parse(text(node)).map_err(|what| node.error(what))
        });
        if self.field(NAME).is_none() {
            let what = format!("the entry has no {NAME}");
            self.found.errors.push(self.node.place.error("", what));
        }
        let name = name?;
        let stars = name.stars();
        self.take("verify_server_properties", properties);
        let disabled = self.take("disable_h2", switch).map(|off| !off);
        let entry = SniEntry {
            place: self.node.place.clone(),
            versions: self.versions(),
            verify_client: self.take("verify_client", client_check),
            client_authorities: self.take("verify_client_ca_certs", authorities),
            http2: self.take("http2", switch).or(disabled),
            clients: self.clients(),
            tunnel: self.take("tunnel_route", |node| {
                TunnelRoute::parse(text(node), stars).map_err(|what| node.error(what))
            }),
            host_policy: self.take("host_sni_policy", policy),
            verify_server: self.take("verify_server_policy", policy),
            certificate: self.take("client_cert", file),
            key: self.take("client_key", file).map(|(_, name)| name),
            name,
        };
        self.warn_of_idle(&entry);
        Some(entry)
    }

    fn judge_keys(&mut self, pairs: &[(Node, Node)]) {
        let mut seen = Vec::new();
        for (key, _) in pairs {
            let name = text(key);
            if seen.contains(&name) {
                self.found
                    .errors
                    .push(key.error("a field that the entry has already"));
            } else if IDLE.contains(&name) {
                let what = format!("{name} has no effect: the records hold for every name");
                self.found.warnings.push(key.error(what));
            } else if !KNOWN.contains(&name) {
                self.found.errors.push(unknown(key));
            }
            seen.push(name);
        }
    }

    fn field(&self, name: &str) -> Option<&'a Node> {
        let Kind::Mapping(pairs) = &self.node.kind else {
            return None;
        };
        let mut pairs = pairs.iter();
        pairs.find_map(|(key, value)| (key.scalar() == Some(name)).then_some(value))
    }

    /// What a field says; none if it is not there or faulty.
    fn take<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Node) -> Result<T, ConfigError>,
    ) -> Option<T> {
        match read(self.field(name)?) {
            Ok(value) => Some(value),
            Err(error) => {
                self.found.errors.push(error);
                None
            }
        }
    }

    /// Old versions are left out with a warning; one must be left.
    fn versions(&mut self) -> Option<Vec<TlsVersion>> {
        let node = self.field("valid_tls_versions_in")?;
        let mut versions = Vec::new();
        for item in node.items() {
            match text(item) {
                "TLSv1_2" => versions.push(TlsVersion::V1_2),
                "TLSv1_3" => versions.push(TlsVersion::V1_3),
                "TLSv1" | "TLSv1_1" => {
                    let what = "this version is not spoken; it is left out";
                    self.found.warnings.push(item.error(what));
                }
                other => {
                    let mut error = item.error("no version of TLS");
                    error.help = did_you_mean(other, ["TLSv1_2", "TLSv1_3"]);
                    self.found.errors.push(error);
                }
            }
        }
        if versions.is_empty() {
            let mut error = node.place.error("", "no version is left to speak");
            error.help = Some("list TLSv1_2, TLSv1_3 or both".into());
            self.found.errors.push(error);
        }
        Some(versions)
    }

    /// A list, or ranges with commas between them.
    fn clients(&mut self) -> Option<Vec<IpRange>> {
        let node = self.field("ip_allow")?;
        let mut ranges = Vec::new();
        for item in node.items() {
            let words = text(item).split(',').map(str::trim);
            for word in words.filter(|word| !word.is_empty()) {
                match IpRange::parse(word) {
                    Ok(range) => ranges.push(range),
                    Err(error) => self.found.errors.push(item.error(error.to_string())),
                }
            }
        }
        if ranges.is_empty() {
            let error = node.place.error("", "ip_allow holds no address");
            self.found.errors.push(error);
        }
        Some(ranges)
    }

    /// What an entry says in vain.
    fn warn_of_idle(&mut self, entry: &SniEntry) {
        let tunnelled = ["verify_client", "valid_tls_versions_in", "http2"];
        let within = tunnelled.iter().filter(|_| entry.tunnel.is_some());
        let what = "no effect: with tunnel_route, TLS is the backend's";
        let mut idle: Vec<_> = within.map(|name| (*name, what)).collect();
        if entry.certificate.is_none() {
            idle.push(("client_key", "no effect without client_cert"));
        }
        if !matches!(
            entry.verify_client,
            Some(ClientCheck::Moderate | ClientCheck::Strict)
        ) {
            let what = "no effect unless verify_client is MODERATE or STRICT";
            idle.push(("verify_client_ca_certs", what));
        }
        for (name, what) in idle {
            if let Some(node) = self.field(name) {
                self.found.warnings.push(node.place.error(name, what));
            }
        }
    }
}

fn unknown(key: &Node) -> ConfigError {
    let name = text(key);
    if REFUSED.contains(&name) {
        return key.error(format!("{name} is not supported yet"));
    }
    let mut error = key.error("unknown field");
    error.help = did_you_mean(name, KNOWN);
    error
}

/// The text of a scalar; nothing for what is none.
fn text(node: &Node) -> &str {
    node.scalar().unwrap_or_default()
}

/// The value that `valid` has for the node's text, whatever its case.
fn one_of<T: Copy>(node: &Node, valid: &[(&str, T)]) -> Result<T, ConfigError> {
    let said = text(node);
    let mut same = valid
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(said));
    if let Some((_, value)) = same.next() {
        return Ok(*value);
    }
    let names: Vec<_> = valid.iter().map(|(name, _)| *name).collect();
    Err(node.error(format!("none of {}", names.join(", "))))
}

fn client_check(node: &Node) -> Result<ClientCheck, ConfigError> {
    let valid = [
        ("NONE", ClientCheck::None),
        ("MODERATE", ClientCheck::Moderate),
        ("STRICT", ClientCheck::Strict),
    ];
    one_of(node, &valid)
}

fn policy(node: &Node) -> Result<Policy, ConfigError> {
    let valid = [
        ("DISABLED", Policy::Disabled),
        ("PERMISSIVE", Policy::Permissive),
        ("ENFORCED", Policy::Enforced),
    ];
    one_of(node, &valid)
}

fn switch(node: &Node) -> Result<bool, ConfigError> {
    let valid = [
        ("on", true),
        ("off", false),
        ("true", true),
        ("false", false),
        ("yes", true),
        ("no", false),
    ];
    one_of(node, &valid)
}

/// Names and signatures are verified together here, or not at all.
fn properties(node: &Node) -> Result<(), ConfigError> {
    one_of(node, &[("ALL", ())]).map_err(|mut error| {
        error.help = Some("ALL is verified; verify_server_policy says what comes of it".into());
        error
    })
}

fn file(node: &Node) -> Result<(Place, String), ConfigError> {
    match text(node) {
        "" => Err(node.place.error("", "this names no file")),
        name => Ok((node.place.clone(), name.to_owned())),
    }
}

/// The name of a file, or a mapping with the key `file`.
fn authorities(node: &Node) -> Result<(Place, String), ConfigError> {
    let Kind::Mapping(pairs) = &node.kind else {
        return file(node);
    };
    match pairs.as_slice() {
        [(key, value)] if text(key) == "file" => file(value),
        _ => Err(node.place.error("", "only the key file is supported here")),
    }
}
