//! TLS with clients: which certificate for whom, and the handshake; and TLS with
//! origins.
//!
//! What the records say of the clients' side holds from the start; the certificates change
//! while the server runs, each for itself.

mod certificate;
mod certificates;
mod choose;
mod counters;
mod handshake;
mod ocsp;
mod options;
mod outbound;
mod server;

pub use certificate::CertificateError;
pub use handshake::HandshakeError;
pub use ocsp::StapleError;
pub use options::{ClientProof, Directories, TlsOptions};
pub use outbound::{OriginTls, TlsError, TlsFault};
pub use server::{CertificateState, Summary, TlsServer};

pub(super) use handshake::accept;
pub(super) use outbound::{Speech, count_origin};

#[cfg(test)]
mod tests;
