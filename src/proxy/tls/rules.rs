//! sni.toml, ready to be asked: in a handshake, and for each request.

use super::options::{ClientProof, TlsOptions};
use super::proof::Proof;
use super::session::Session;
use crate::config::ConfigError;
use crate::config::ip_range::IpRange;
use crate::config::records::Records;
use crate::config::sni::{
    ClientCheck, NamePattern, Policy, SniEntry, SniFile, TlsVersion, TunnelRoute,
};
use crate::proxy::peer::Peer;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::version::{TLS12, TLS13};
use rustls::{Error, ServerConfig, SupportedProtocolVersion};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The record of the file of those who vouch for clients.
const AUTHORITIES: &str = "proxy.config.ssl.CA.cert.filename";

/// What holds for which name; the first entry that fits.
#[derive(Debug, Default)]
pub struct SniRules {
    rules: Vec<SniRule>,
    exact: HashMap<Box<str>, usize>,
    /// Those with a `*`, in the file's order.
    globs: Vec<usize>,
}

/// What holds for the names of one entry.
#[derive(Debug)]
pub(super) struct SniRule {
    name: NamePattern,
    pub(super) versions: Option<Vec<&'static SupportedProtocolVersion>>,
    pub(super) proof: Option<Proof>,
    pub(super) http2: Option<bool>,
    clients: Option<Vec<IpRange>>,
    tunnel: Option<TunnelRoute>,
    host_policy: Option<Policy>,
    /// The settings of such handshakes, made for the first.
    pub(super) settings: OnceLock<Result<Arc<ServerConfig>, Error>>,
}

/// A host and a port that a connection is passed on to as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::proxy) struct TunnelEnd {
    pub(in crate::proxy) host: String,
    pub(in crate::proxy) port: u16,
    /// Whether the client had a say in it.
    pub(in crate::proxy) is_chosen: bool,
}

impl SniRules {
    /// The rules of a file of the configuration in `dir`, and what is wrong
    /// with the files that they name. Reads those: not for an event thread.
    #[must_use]
    pub fn read(file: &SniFile, records: &Records, dir: &Path) -> (Self, Vec<ConfigError>) {
        let mut rules = Self::default();
        let mut errors = Vec::new();
        let options = TlsOptions::from_records(records, dir);
        for entry in &file.entries {
            match proof(entry, &options.authorities, dir) {
                Ok(proof) => rules.add(SniRule::new(entry, proof)),
                Err(error) => errors.push(error),
            }
        }
        (rules, errors)
    }

    fn add(&mut self, rule: SniRule) {
        let at = self.rules.len();
        if rule.name.is_exact() {
            self.exact.entry(rule.name.text().into()).or_insert(at);
        } else {
            self.globs.push(at);
        }
        self.rules.push(rule);
    }

    /// Whether some names lead past TLS.
    pub(super) fn has_tunnels(&self) -> bool {
        self.rules.iter().any(|rule| rule.tunnel.is_some())
    }

    /// The first entry for a name, which is in lower case; that of no name is
    /// empty.
    pub(super) fn of(&self, name: &str) -> Option<&SniRule> {
        let exact = self.exact.get(name).copied();
        let before = |at: &&usize| exact.is_none_or(|exact| **at < exact);
        let mut globs = self.globs.iter().take_while(before);
        let fits = |at: &&usize| {
            let rule = self.rules.get(**at);
            rule.is_some_and(|rule| rule.name.captures(name).is_some())
        };
        let found = globs.find(fits).copied().or(exact)?;
        self.rules.get(found)
    }

    /// Whether a connection of HTTP/2 that is there could be made as it is now.
    pub(in crate::proxy) fn would_have(&self, peer: &Peer) -> bool {
        let Some(session) = &peer.session else {
            return true;
        };
        let rule = self.of(session.name.as_deref().unwrap_or_default());
        let is_for_it = |rule: &SniRule| {
            rule.tunnel.is_none() && rule.http2 != Some(false) && rule.is_open_to(peer)
        };
        rule.is_none_or(is_for_it) && is_proven(rule, session)
    }

    /// Whether a request for `host` may come on a connection that was made for
    /// another name: its client must be one that could have asked for the host
    /// itself, by what it has shown. `otherwise` is the policy of hosts that
    /// have none (`http.host_sni_policy`).
    pub(in crate::proxy) fn admit(
        &self,
        host: &str,
        (session, peer): (&Session, &Peer),
        otherwise: Policy,
    ) -> bool {
        // In DNS a last dot changes nothing, so it must not here.
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let rule = self.of(&host);
        let is_open = rule.is_none_or(|rule| rule.is_open_to(peer));
        if is_open && is_proven(rule, session) {
            return true;
        }
        match rule.and_then(|rule| rule.host_policy).unwrap_or(otherwise) {
            Policy::Disabled => true,
            Policy::Permissive => {
                let name = session.name.as_deref().unwrap_or_default();
                let client = peer.ip();
                tracing::warn!(%host, name, %client, "a connection for another name is let through");
                true
            }
            Policy::Enforced => false,
        }
    }
}

impl SniRule {
    fn new(entry: &SniEntry, proof: Option<Proof>) -> Self {
        let versions = entry.versions.as_ref();
        Self {
            name: entry.name.clone(),
            versions: versions.map(|all| all.iter().map(|one| version(*one)).collect()),
            proof,
            http2: entry.http2,
            clients: entry.clients.clone(),
            tunnel: entry.tunnel.clone(),
            host_policy: entry.host_policy,
            settings: OnceLock::new(),
        }
    }

    /// Whether the client may ask for the name (`ip_allow`). One that may be
    /// anywhere gains nothing from being introduced by this machine.
    pub(super) fn is_open_to(&self, peer: &Peer) -> bool {
        let covers =
            |range: &IpRange| range.contains(peer.ip()) && (peer.is_known || !range.is_loopback());
        let clients = self.clients.as_ref();
        clients.is_none_or(|ranges| ranges.iter().any(covers))
    }

    fn speaks(&self, session: &Session) -> bool {
        let versions = self.versions.as_ref();
        versions.is_none_or(|all| all.iter().any(|one| one.version == session.version))
    }

    /// Where a connection for `name` is passed on to.
    pub(super) fn tunnel(&self, name: &str) -> Option<TunnelEnd> {
        let route = self.tunnel.as_ref()?;
        let captures = self.name.captures(name).unwrap_or_default();
        Some(TunnelEnd {
            host: route.host(&captures),
            port: route.port,
            is_chosen: route.has_gaps(),
        })
    }
}

/// Whether the session shows what an entry asks for, or the records where there
/// is none.
fn is_proven(rule: Option<&SniRule>, session: &Session) -> bool {
    let own = rule.and_then(|rule| rule.proof.as_ref());
    let required = own.map_or(session.proofs.unnamed, |proof| proof.id);
    let speaks = rule.is_none_or(|rule| rule.speaks(session));
    speaks && session.proofs.asked.covers(required)
}

fn version(version: TlsVersion) -> &'static SupportedProtocolVersion {
    match version {
        TlsVersion::V1_2 => &TLS12,
        TlsVersion::V1_3 => &TLS13,
    }
}

/// What an entry asks clients to prove; none where it leaves that to records.
fn proof(entry: &SniEntry, by_default: &Path, dir: &Path) -> Result<Option<Proof>, ConfigError> {
    let Some(check) = entry.verify_client else {
        return Ok(None);
    };
    let own = entry.client_authorities.as_ref();
    let file = own.map_or_else(|| by_default.to_owned(), |(_, name)| dir.join(name));
    let wanted = match check {
        ClientCheck::None => ClientProof::None,
        ClientCheck::Moderate => ClientProof::Optional(file),
        ClientCheck::Strict => ClientProof::Required(file),
    };
    let proof = Proof::read(&wanted, &Arc::new(default_provider()));
    proof.map(Some).map_err(|error| {
        let (place, token) = own.map_or((&entry.place, ""), |(at, name)| (at, name));
        let mut error = place.error(token, error.to_string());
        if own.is_none() {
            error.help = Some(format!(
                "name one by verify_client_ca_certs or {AUTHORITIES}"
            ));
        }
        error
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::sni;

    #[test]
    fn the_first_entry_that_fits_is_the_one() {
        let names = ["a.example", "*.example", "b.example", "*.c.example", "*"];
        let text: String = names
            .iter()
            .map(|name| format!("[[sni]]\nfqdn = \"{name}\"\n"))
            .collect();
        let (file, found) = sni::parse("sni.toml", text.as_bytes());
        assert_eq!(found.errors, []);
        let (rules, errors) = SniRules::read(&file, &Records::default(), Path::new("/"));
        assert_eq!(errors, []);
        let of = |name| rules.of(name).unwrap().name.text().to_owned();
        assert_eq!(of("a.example"), "a.example");
        assert_eq!(of("b.example"), "*.example");
        assert_eq!(of("x.c.example"), "*.example");
        assert_eq!(of("other.test"), "*");
        assert_eq!(of(""), "*");
    }
}
