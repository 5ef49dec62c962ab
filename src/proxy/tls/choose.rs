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
        let candidates = self
            .certificates
            .candidates(hello.server_name(), self.local);
        let mut found = candidates.filter_map(|candidate| {
            let key = &candidate.certificate.key;
            key.key.choose_scheme(schemes).map(|_| Arc::clone(key))
        });
        found.next()
    }
}
