//! The choice of a certificate within a handshake.

use super::certificates::Certificates;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::net::SocketAddr;
use std::sync::Arc;

/// Chooses for the clients of one address of ours.
#[derive(Debug)]
pub(super) struct Chooser {
    pub(super) certificates: Arc<Certificates>,
    pub(super) local: SocketAddr,
}

impl ResolvesServerCert for Chooser {
    /// The first candidate that can sign as the client understands it.
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let schemes = hello.signature_schemes();
        let mut candidates = self
            .certificates
            .candidates(hello.server_name(), self.local);
        let found = candidates.find(|found| found.key.key.choose_scheme(schemes).is_some());
        found.map(|certificate| Arc::clone(&certificate.key))
    }
}
