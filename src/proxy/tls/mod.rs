//! TLS with clients: which certificate for whom, and the handshake.
//!
//! What the records say of it holds from the start; the certificates change
//! while the server runs, each for itself.

mod certificate;
mod certificates;
mod choose;
mod counters;
mod handshake;
mod options;
mod server;

pub use certificate::CertificateError;
pub use handshake::HandshakeError;
pub use options::{Directories, TlsOptions};
pub use server::{CertificateState, Summary, TlsServer};

pub(super) use handshake::accept;

#[cfg(test)]
mod tests;
