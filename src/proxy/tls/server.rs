//! The server's side of TLS: what all event threads share.

use super::certificates::Certificates;
use super::choose::Chooser;
use super::options::{Directories, TlsOptions};
use super::outbound::TlsError;
use super::settings::{HTTP2, Settings};
use crate::base::clock::{Clock, SystemClock};
use crate::config::ssl_multicert::MulticertFile;
use crate::config::{ConfigError, Findings};
use crate::proxy::listener::Dialect;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::ServerConfig;
use serde::Serialize;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

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
    settings: Settings,
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
            settings: Settings::new(&options)?,
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

    /// What handshakes are made by, but for certificates.
    pub(super) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Those settings with the certificates of now, for a client that connected
    /// to `local` and asks for `name`; none if there is no certificate for it.
    pub(super) fn config(
        &self,
        settings: &ServerConfig,
        (name, local): (Option<&str>, SocketAddr),
        dialect: Dialect,
    ) -> Option<Arc<ServerConfig>> {
        let certificates = self.certificates.load_full();
        let tickets = certificates.candidates(name, local).next()?.tickets;
        let mut config = settings.clone();
        if dialect.http2 == Some(false) {
            config.alpn_protocols.retain(|name| name != HTTP2);
        }
        self.settings.give_tickets(&mut config, tickets);
        config.cert_resolver = Arc::new(Chooser {
            certificates,
            local,
        });
        Some(Arc::new(config))
    }
}
