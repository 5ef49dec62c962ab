//! Records as the options of TLS.

use super::ciphers::Ciphers;
use crate::config::records::Records;
use crate::config::ssl_multicert::TicketRule;
use crate::proxy::settings::limit;
use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The directories that names in ssl_multicert.config are relative to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directories {
    /// Of certificates (`ssl.server.cert.path`).
    pub certificates: PathBuf,
    /// Of keys (`ssl.server.private_key.path`).
    pub keys: PathBuf,
    /// Of what leads to an issuer (`ssl.CA.cert.path`).
    pub authorities: PathBuf,
    /// Of OCSP responses (`ssl.ocsp.response.path`).
    pub staples: PathBuf,
}

/// Whether clients must prove themselves by a certificate
/// (`ssl.client.certification_level`), and by whose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClientProof {
    /// None is asked for.
    #[default]
    None,
    /// One is asked for, and must be of an authority in this file if it comes.
    Optional(PathBuf),
    /// One of an authority in this file must come.
    Required(PathBuf),
}

/// Tickets to resume sessions with
/// (`ssl.server.session_ticket.enable`, `.number`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tickets {
    /// Whether there are any.
    pub enabled: bool,
    /// How many a client is given in TLS 1.3; 0 is none in any version.
    pub number: usize,
}

impl Tickets {
    /// How many there are where an entry of certificates says this.
    pub(super) fn under(self, rule: TicketRule) -> usize {
        match rule.enabled.unwrap_or(self.enabled) {
            true => rule.number.unwrap_or(self.number),
            false => 0,
        }
    }
}

/// What the records say of TLS with clients.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// The versions spoken (`ssl.TLSv1_2`, `ssl.TLSv1_3`, or
    /// `ssl.server.version.min` and `.max`).
    pub versions: Vec<&'static SupportedProtocolVersion>,
    /// The ciphers spoken (`ssl.server.cipher_suite`,
    /// `ssl.server.TLSv1_3.cipher_suites`).
    pub ciphers: Ciphers,
    /// Whether our order of them counts, and not the client's
    /// (`ssl.server.honor_cipher_order`).
    pub honor_cipher_order: bool,
    /// Tickets that clients are given to resume with.
    pub tickets: Tickets,
    /// The longest that a handshake may take (`ssl.handshake_timeout_in`).
    pub handshake: Duration,
    /// Where files are.
    pub directories: Directories,
    /// What clients must prove.
    pub proof: ClientProof,
    /// The file of those who vouch for clients (`ssl.CA.cert.filename`); the
    /// directory alone where none is named.
    pub authorities: PathBuf,
}

impl TlsOptions {
    /// The options, where the configuration lies in `dir`.
    #[must_use]
    pub fn from_records(records: &Records, dir: &Path) -> Self {
        let number = usize::try_from(records.ssl_server_session_ticket_number);
        let tickets = Tickets {
            enabled: records.ssl_server_session_ticket_enable != 0,
            number: number.unwrap_or(0),
        };
        let directories = Directories::from_records(records, dir);
        Self {
            proof: proof(records, authorities(records, &directories)),
            authorities: authorities(records, &directories),
            versions: versions(records),
            ciphers: Ciphers::from_records(records),
            honor_cipher_order: records.ssl_server_honor_cipher_order != 0,
            tickets,
            handshake: limit(records.ssl_handshake_timeout_in),
            directories,
        }
    }
}

impl Directories {
    fn from_records(records: &Records, dir: &Path) -> Self {
        let path = |name: &Option<_>| name.as_deref().map(|name: &str| dir.join(name));
        let certificates = path(&records.ssl_server_cert_path);
        let certificates = certificates.unwrap_or_else(|| dir.to_owned());
        let keys = path(&records.ssl_server_private_key_path);
        Self {
            keys: keys.unwrap_or_else(|| certificates.clone()),
            staples: path(&records.ssl_ocsp_response_path).unwrap_or_else(|| certificates.clone()),
            authorities: path(&records.ssl_ca_cert_path).unwrap_or_else(|| certificates.clone()),
            certificates,
        }
    }
}

fn authorities(records: &Records, directories: &Directories) -> PathBuf {
    let name = records.ssl_ca_cert_filename.as_deref().unwrap_or_default();
    directories.authorities.join(name)
}

/// A level without a file asks for what no file can prove: it is refused when
/// the file is read.
fn proof(records: &Records, file: PathBuf) -> ClientProof {
    match records.ssl_client_certification_level {
        0 => ClientProof::None,
        1 => ClientProof::Optional(file),
        _ => ClientProof::Required(file),
    }
}

/// A lowest or a highest version goes before the records of each (ATS 10).
fn versions(records: &Records) -> Vec<&'static SupportedProtocolVersion> {
    let (min, max) = (
        records.ssl_server_version_min,
        records.ssl_server_version_max,
    );
    let within = |number: i64| min <= number && (max < 0 || number <= max);
    let is_spoken = |number, record: i64| match min < 0 && max < 0 {
        true => record != 0,
        false => within(number),
    };
    let known = [
        (is_spoken(2, records.ssl_tlsv1_2), &TLS12),
        (is_spoken(3, records.ssl_tlsv1_3), &TLS13),
    ];
    let spoken = known.into_iter().filter(|(spoken, _)| *spoken);
    spoken.map(|(_, version)| version).collect()
}
