//! ssl_multicert.config: the server's certificates, an entry a line.
//!
//! ```text
//! ssl_cert_name=FILE[,FILE…] [ssl_key_name=FILE[,FILE…]] [ssl_ca_name=FILE[,FILE…]]
//!     [ssl_ocsp_name=FILE[,FILE…]] [dest_ip=ADDRESS[:PORT] | dest_ip=*]
//!     [ssl_ticket_enabled=0|1] [ssl_ticket_number=NUMBER]
//! ```
//!
//! All on one line, the words in any order, a value with or without quotation
//! marks. Several certificates of one entry are the same names' with keys of
//! several kinds, such as RSA and ECDSA; the other lists go with them one by
//! one. A key that is not named is in its certificate's file. What ATS knows
//! beside these is refused by name until it has its effect; any fault refuses
//! the file.

mod parser;

pub use parser::parse;

use super::place::Place;
use std::net::IpAddr;

/// The files of one certificate, as the configuration names them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CertificateFiles {
    /// The certificate, then those that lead to its issuer, in PEM.
    pub certificate: String,
    /// Its key in PEM; that of the certificate's own file where none is named.
    pub key: Option<String>,
    /// More certificates that lead to the issuer.
    pub chain: Option<String>,
    /// The OCSP response that is sent along (RFC 6961), in DER.
    pub staple: Option<String>,
}

/// Whom an entry is for, besides those who ask for its certificates' names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Destination {
    /// Nobody.
    #[default]
    Names,
    /// Who connected to this address of ours, at this port or at any.
    Address(IpAddr, Option<u16>),
    /// Everybody.
    Any,
}

/// Tickets to resume sessions with; what a line does not say is as the records
/// have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TicketRule {
    /// Whether there are any (`ssl_ticket_enabled`).
    pub enabled: Option<bool>,
    /// How many a client is given in TLS 1.3, 16 at most (`ssl_ticket_number`).
    pub number: Option<usize>,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it begins.
    pub place: Place,
    /// At least one.
    pub certificates: Vec<CertificateFiles>,
    /// Whom it is for.
    pub destination: Destination,
    /// How their sessions are resumed.
    pub tickets: TicketRule,
}

/// The lines, in the file's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MulticertFile {
    /// Each line.
    pub entries: Vec<Entry>,
}

#[cfg(test)]
mod tests;
