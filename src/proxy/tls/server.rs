//! The server's side of TLS: what all event threads share.

use super::certificate::read_all;
use super::certificates::Certificates;
use super::choose::Chooser;
use super::options::{ClientProof, Directories, TlsOptions};
use super::outbound::TlsError;
use crate::base::clock::{Clock, SystemClock};
use crate::config::ssl_multicert::MulticertFile;
use crate::config::{ConfigError, Findings};
use crate::proxy::listener::Dialect;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{Ticketer, default_provider};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ResolvesServerCertUsingSni, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use serde::Serialize;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// What is spoken over TLS, best first (RFC 7301).
const PROTOCOLS: [&[u8]; 3] = [HTTP2, b"http/1.1", b"http/1.0"];

/// HTTP/2 among them.
const HTTP2: &[u8] = b"h2";

/// A certificate as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CertificateState {
    /// The file, as ssl_multicert.config names it.
    pub file: String,
    /// The names it is for.
    pub names: Vec<String>,
    /// Its last second, since 1970.
    pub expires: u64,
}

/// The certificates in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// That clients may be given.
    pub served: u64,
    /// Whose files can't be used now.
    pub faulty: u64,
    /// The first one's last second, since 1970; 0 without any.
    pub first_expiry: u64,
}

/// TLS with clients: settings of the start, certificates of now.
pub struct TlsServer {
    settings: ServerConfig,
    handshake: Duration,
    directories: Directories,
    certificates: ArcSwap<Certificates>,
    /// The file that they are of. Held while they are loaded, so that one load
    /// follows the other; no event thread asks for it.
    file: Mutex<MulticertFile>,
}

impl fmt::Debug for TlsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsServer")
            .field("handshake", &self.handshake)
            .field("directories", &self.directories)
            .finish_non_exhaustive()
    }
}

impl TlsServer {
    /// A server without certificates.
    ///
    /// # Errors
    /// No version is spoken, the authorities of clients can't be read, or the
    /// system gives no random bytes for the keys of tickets.
    pub fn new(options: TlsOptions) -> Result<Self, TlsError> {
        Ok(Self {
            settings: settings(&options)?,
            handshake: options.handshake,
            directories: options.directories,
            certificates: ArcSwap::default(),
            file: Mutex::default(),
        })
    }

    /// Serves the certificates of the file from now on; handshakes under way go
    /// on with those they began with. What is wrong with single ones is
    /// returned: one of the errors is served as it was before, if it was; one of
    /// the warnings without its OCSP response. Reads files: not for an event
    /// thread.
    pub fn load(&self, file: &MulticertFile) -> Findings {
        let mut now = self.file.lock();
        now.clone_from(file);
        self.reload(&now)
    }

    /// Reads the certificates' files again. What is wrong is returned if it is
    /// not what was wrong before.
    pub fn refresh(&self) -> Vec<ConfigError> {
        let file = self.file.lock();
        let before = self.certificates.load_full();
        let found = self.reload(&file);
        let faults = found.errors.into_iter().chain(found.warnings);
        let is_new = |fault: &ConfigError| before.faults().all(|known| known != fault);
        faults.filter(is_new).collect()
    }

    fn reload(&self, file: &MulticertFile) -> Findings {
        let before = self.certificates.load_full();
        let now = SystemClock::new().wall().as_secs();
        let loaded = Certificates::load(file, (&self.directories, now), &before);
        let found = loaded.found.clone();
        self.certificates.store(Arc::new(loaded));
        found
    }

    /// Every certificate that is served, by its file's name.
    #[must_use]
    pub fn certificates(&self) -> Vec<CertificateState> {
        let certificates = self.certificates.load_full();
        let states = certificates
            .held()
            .map(|(files, certificate)| CertificateState {
                file: files.certificate.clone(),
                names: certificate.names.clone(),
                expires: certificate.expires,
            });
        let mut states: Vec<_> = states.collect();
        states.sort_by(|a, b| a.file.cmp(&b.file));
        states
    }

    /// What is wrong with certificates now.
    #[must_use]
    pub fn faults(&self) -> Vec<ConfigError> {
        self.certificates.load().faults().cloned().collect()
    }

    /// All of them in three numbers.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let certificates = self.certificates.load();
        let count = |number| u64::try_from(number).unwrap_or(u64::MAX);
        let ends = certificates.held().map(|(_, held)| held.expires);
        Summary {
            served: count(certificates.held().count()),
            faulty: count(certificates.faults().count()),
            first_expiry: ends.min().unwrap_or(0),
        }
    }

    /// Each certificate that is served.
    #[cfg(test)]
    pub(super) fn held(&self) -> Vec<Arc<super::certificate::Certificate>> {
        let certificates = self.certificates.load_full();
        certificates
            .held()
            .map(|(_, held)| Arc::clone(held))
            .collect()
    }

    /// The longest that a handshake may take.
    pub(super) const fn patience(&self) -> Duration {
        self.handshake
    }

    /// The settings of one handshake, with a client that connected to `local`.
    pub(super) fn config(&self, local: SocketAddr, dialect: Dialect) -> Arc<ServerConfig> {
        let mut config = self.settings.clone();
        if dialect.http2 == Some(false) {
            config.alpn_protocols.retain(|name| name != HTTP2);
        }
        config.cert_resolver = Arc::new(Chooser {
            certificates: self.certificates.load_full(),
            local,
        });
        Arc::new(config)
    }
}

fn client_verifier(
    proof: &ClientProof,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let (ClientProof::Optional(file) | ClientProof::Required(file)) = proof else {
        return Ok(WebPkiClientVerifier::no_client_auth());
    };
    let mut roots = RootCertStore::empty();
    for authority in read_all(file.clone())? {
        roots.add(authority)?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(provider));
    let builder = match proof {
        ClientProof::Optional(_) => builder.allow_unauthenticated(),
        ClientProof::Required(_) | ClientProof::None => builder,
    };
    let verifier = builder.build();
    Ok(verifier.map_err(|error| rustls::Error::General(error.to_string()))?)
}

/// What does not change: versions, tickets, protocols. Sessions are kept by
/// clients alone, in tickets whose keys all threads share and change every few
/// hours; nothing is stored for them here.
fn settings(options: &TlsOptions) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(default_provider());
    let verifier = client_verifier(&options.proof, &provider)?;
    let mut settings = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&options.versions)?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
    settings.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    settings.session_storage = Arc::new(NoServerSessionStorage {});
    settings.send_tls13_tickets = options.tickets;
    if options.tickets > 0 {
        settings.ticketer = Ticketer::new()?;
    }
    Ok(settings)
}
