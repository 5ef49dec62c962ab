//! TLS with clients: which certificate for whom, and the handshake; and TLS with
//! origins.
//!
//! What the records say of the clients' side holds from the start; the
//! certificates change while the server runs, each for itself.

mod certificate;
mod certificates;
mod choose;
mod ciphers;
mod counters;
mod handshake;
mod heard;
mod ocsp;
mod options;
mod outbound;
mod proof;
mod rules;
mod server;
mod session;
mod settings;
mod terms;
mod verifier;

pub use certificate::CertificateError;
pub use ciphers::Ciphers;
pub use handshake::HandshakeError;
pub use ocsp::StapleError;
pub use options::{ClientProof, Directories, Tickets, TlsOptions};
pub use outbound::{OriginTls, TlsError, TlsFault};
pub use rules::SniRules;
pub use server::{CertificateState, Summary, TlsServer};
pub use session::Session;

pub(super) use handshake::{Met, Passed, accept};
pub(super) use heard::Heard;
pub(super) use outbound::count_origin;
pub(super) use rules::TunnelEnd;
pub(super) use terms::Speech;

#[cfg(test)]
mod tests;
