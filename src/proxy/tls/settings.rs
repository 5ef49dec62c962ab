//! The library's settings: as the records have them, and as a name's entry does.

use super::options::{Tickets, TlsOptions};
use super::outbound::TlsError;
use super::proof::{Proof, ProofId};
use super::rules::SniRule;
use super::session::Proofs;
use crate::config::ssl_multicert::TicketRule;
use parking_lot::Mutex;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{Ticketer, default_provider};
use rustls::server::{NoServerSessionStorage, ProducesTickets, ResolvesServerCertUsingSni};
use rustls::{Error, ServerConfig, SupportedProtocolVersion};
use std::collections::HashMap;
use std::sync::Arc;

/// What is spoken over TLS, best first (RFC 7301).
const PROTOCOLS: [&[u8]; 3] = [HTTP2, b"http/1.1", b"http/1.0"];

/// HTTP/2 among them.
pub(super) const HTTP2: &[u8] = b"h2";

/// Keys of tickets that are kept though nobody may use them any more.
const KEYS_MAX: usize = 64;

/// What handshakes are made by, but for certificates. Sessions are kept by
/// clients alone, in tickets whose keys all threads share and change every few
/// hours; nothing is stored for them here.
pub(super) struct Settings {
    provider: Arc<CryptoProvider>,
    versions: Vec<&'static SupportedProtocolVersion>,
    honor_cipher_order: bool,
    tickets: Tickets,
    /// Of which no ticket comes.
    no_keys: Arc<dyn ProducesTickets>,
    proof: Proof,
    base: Arc<ServerConfig>,
    /// By what a client has proven: a ticket stands for that proof, so it must
    /// not be taken where another is asked for.
    keys: Mutex<HashMap<ProofId, Arc<dyn ProducesTickets>>>,
}

impl Settings {
    pub(super) fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        let provider = Arc::new(CryptoProvider {
            cipher_suites: options.ciphers.suites.clone(),
            ..default_provider()
        });
        let proof = Proof::read(&options.proof, &provider)?;
        let base = bare(&provider, &options.versions, &proof)?;
        let mut settings = Self {
            provider,
            versions: options.versions.clone(),
            honor_cipher_order: options.honor_cipher_order,
            tickets: options.tickets,
            no_keys: Arc::clone(&base.ticketer),
            proof,
            base: Arc::new(base),
            keys: Mutex::default(),
        };
        settings.base = Arc::new(settings.made(None)?);
        Ok(settings)
    }

    /// Those of handshakes for a name with that entry; without one, those of
    /// the records. No certificate can be had by them as they are.
    pub(super) fn of(&self, rule: Option<&SniRule>) -> Result<Arc<ServerConfig>, Error> {
        let Some(rule) = rule else {
            return Ok(Arc::clone(&self.base));
        };
        let made = || self.made(Some(rule)).map(Arc::new);
        rule.settings.get_or_init(made).clone()
    }

    /// Gives a client as many tickets as an entry of certificates says.
    pub(super) fn give_tickets(&self, config: &mut ServerConfig, rule: TicketRule) {
        let number = self.tickets.under(rule);
        config.send_tls13_tickets = number;
        if number == 0 {
            config.ticketer = Arc::clone(&self.no_keys);
        }
    }

    /// What clients are asked to prove where that entry holds.
    pub(super) fn proofs(&self, rule: Option<&SniRule>) -> Proofs {
        Proofs {
            asked: self.proof(rule).id,
            unnamed: self.proof.id,
        }
    }

    fn proof<'a>(&'a self, rule: Option<&'a SniRule>) -> &'a Proof {
        let own = rule.and_then(|rule| rule.proof.as_ref());
        own.unwrap_or(&self.proof)
    }

    fn made(&self, rule: Option<&SniRule>) -> Result<ServerConfig, Error> {
        let versions = rule.and_then(|rule| rule.versions.as_ref());
        let proof = self.proof(rule);
        let mut made = bare(&self.provider, versions.unwrap_or(&self.versions), proof)?;
        let http2 = rule.and_then(|rule| rule.http2).unwrap_or(true);
        let protocols = PROTOCOLS.iter().filter(|name| http2 || **name != HTTP2);
        made.alpn_protocols = protocols.map(|name| name.to_vec()).collect();
        made.ignore_client_order = self.honor_cipher_order;
        made.session_storage = Arc::new(NoServerSessionStorage {});
        made.ticketer = self.keys_of(proof.id)?;
        Ok(made)
    }

    /// The keys of tickets for clients of that proof; reloads do not change
    /// them.
    fn keys_of(&self, proof: ProofId) -> Result<Arc<dyn ProducesTickets>, Error> {
        let mut keys = self.keys.lock();
        if let Some(known) = keys.get(&proof) {
            return Ok(Arc::clone(known));
        }
        if keys.len() >= KEYS_MAX {
            keys.retain(|_, keys| Arc::strong_count(keys) > 1);
        }
        let new = Ticketer::new()?;
        keys.insert(proof, Arc::clone(&new));
        Ok(new)
    }
}

fn bare(
    provider: &Arc<CryptoProvider>,
    versions: &[&'static SupportedProtocolVersion],
    proof: &Proof,
) -> Result<ServerConfig, Error> {
    Ok(ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(versions)?
        .with_client_cert_verifier(Arc::clone(&proof.verifier))
        .with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new())))
}
