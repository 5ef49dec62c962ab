//! Records as the options of TLS.

use crate::config::records::Records;
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

/// What the records say of TLS with clients.
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// The versions spoken (`ssl.TLSv1_2`, `ssl.TLSv1_3`).
    pub versions: Vec<&'static SupportedProtocolVersion>,
    /// Tickets a client is given to resume with in TLS 1.3; 0 gives none in any
    /// version (`ssl.server.session_ticket.enable`, `.number`).
    pub tickets: usize,
    /// The longest that a handshake may take (`ssl.handshake_timeout_in`).
    pub handshake: Duration,
    /// Where files are.
    pub directories: Directories,
    /// What clients must prove.
    pub proof: ClientProof,
}

impl TlsOptions {
    /// The options, where the configuration lies in `dir`.
    #[must_use]
    pub fn from_records(records: &Records, dir: &Path) -> Self {
        let tickets = match records.ssl_server_session_ticket_enable {
            0 => 0,
            _ => usize::try_from(records.ssl_server_session_ticket_number).unwrap_or(0),
        };
        let directories = Directories::from_records(records, dir);
        Self {
            proof: proof(records, &directories),
            versions: versions(records),
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

/// A level without a file asks for what no file can prove: it is refused when
/// the file is read.
fn proof(records: &Records, directories: &Directories) -> ClientProof {
    let name = records.ssl_ca_cert_filename.as_deref().unwrap_or_default();
    let file = directories.authorities.join(name);
    match records.ssl_client_certification_level {
        0 => ClientProof::None,
        1 => ClientProof::Optional(file),
        _ => ClientProof::Required(file),
    }
}

fn versions(records: &Records) -> Vec<&'static SupportedProtocolVersion> {
    let spoken = [(records.ssl_tlsv1_2, &TLS12), (records.ssl_tlsv1_3, &TLS13)];
    let spoken = spoken.into_iter().filter(|(on, _)| *on != 0);
    spoken.map(|(_, version)| version).collect()
}
