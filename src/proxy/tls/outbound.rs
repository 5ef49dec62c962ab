//! TLS with origins: whom they must prove to be, and what we prove.

use super::certificate::CertificateError;
use super::terms::{Maker, Speech, Terms, authorities_dir};
use crate::config::ConfigError;
use crate::config::records::Records;
use crate::config::sni::{NamePattern, SniEntry, SniFile};
use crate::metrics::{Cells, Metric};
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConnection, Error, HandshakeKind};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Why there is no TLS as the records want it.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file of authorities, or our certificate for origins.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The library refuses what the files hold.
    #[error("TLS can't be had: {0}")]
    Library(#[from] Error),
}

/// Why there is no connection over TLS with an origin.
#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    /// Its name can't be asked for.
    #[error("{0}")]
    Name(String),
    /// It took longer than a connection may (`http.connect_attempts_timeout`).
    #[error("the handshake was not done after {0:?}")]
    Slow(Duration),
    /// It could not prove itself, or the two did not agree.
    #[error("{0}")]
    Library(Error),
    /// The connection ended.
    #[error("{0}")]
    Io(io::Error),
}

impl TlsFault {
    fn of(error: io::Error) -> Self {
        let inner = error.get_ref();
        let tls = inner.and_then(|inner| inner.downcast_ref::<Error>());
        match tls {
            Some(tls) => Self::Library(tls.clone()),
            None => Self::Io(error),
        }
    }

    /// The counter of it.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the library's reasons grow; those without a counter are others"
    )]
    pub(in crate::proxy) fn metric(&self) -> Metric {
        use rustls::CertificateError as Certificate;
        let Self::Library(error) = self else {
            return Metric::SslOriginOtherErrors;
        };
        match error {
            Error::InvalidCertificate(
                Certificate::Expired | Certificate::ExpiredContext { .. },
            ) => Metric::SslOriginExpiredCert,
            Error::InvalidCertificate(Certificate::UnknownIssuer) => Metric::SslOriginUnknownCa,
            Error::InvalidCertificate(_) => Metric::SslOriginCertVerifyFailed,
            Error::AlertReceived(AlertDescription::ProtocolVersion)
            | Error::PeerIncompatible(_) => Metric::SslOriginWrongVersion,
            _ => Metric::SslOriginOtherErrors,
        }
    }
}

/// Counts a handshake with an origin that is done.
pub(in crate::proxy) fn count_origin(cells: &Cells, connection: &ClientConnection) {
    cells.add(Metric::SslSuccessOut, 1);
    if connection.handshake_kind() == Some(HandshakeKind::Resumed) {
        cells.add(Metric::SslOriginSessionReused, 1);
    }
}

/// The settings of TLS with origins.
pub struct OriginTls {
    /// As the records have them.
    others: Arc<Terms>,
    /// As sni.toml has them for some names, in its order.
    named: Vec<(NamePattern, Arc<Terms>)>,
    /// What these were read by.
    names: SniFile,
    speech: Speech,
    authorities: usize,
    /// The same without our certificate, if there is one.
    nameless: Option<Arc<OriginTls>>,
}

impl fmt::Debug for OriginTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OriginTls")
            .field("identity", &self.others.identity)
            .field("named", &self.named.len())
            .field("authorities", &self.authorities)
            .finish_non_exhaustive()
    }
}

/// Equal are those of which a connection made by one serves the other.
impl PartialEq for OriginTls {
    fn eq(&self, other: &Self) -> bool {
        let identities = |tls: &Self| -> Vec<_> {
            let named = tls.named.iter();
            named
                .map(|(name, terms)| (name.clone(), terms.identity))
                .collect()
        };
        self.others.identity == other.others.identity && identities(self) == identities(other)
    }
}

impl Eq for OriginTls {}

impl OriginTls {
    /// As the records want it, where the configuration lies in `dir`, and for
    /// some names as `names` does; beside it, what is wrong with the files of
    /// these. Reads the authorities' certificates and ours: not for an event
    /// thread.
    ///
    /// # Errors
    /// [`TlsError`], if a record names a file that is not usable.
    pub fn read(
        records: &Records,
        dir: &Path,
        names: &SniFile,
    ) -> Result<(Self, Vec<ConfigError>), TlsError> {
        let maker = Maker::read(records, dir)?;
        let (mut tls, errors) = Self::made(&maker, names)?;
        if let Some(name) = &records.ssl_client_ca_cert_filename
            && !tls.has_authorities()
        {
            let file = authorities_dir(records, dir).join(&**name);
            return Err(CertificateError::NoAuthority { file }.into());
        }
        let mut entries = names.entries.iter();
        if maker.own.is_some() || entries.any(|entry| entry.certificate.is_some()) {
            let (nameless, _) = Self::made(&maker.anonymous(), &without_ours(names))?;
            tls.nameless = Some(Arc::new(nameless));
        }
        Ok((tls, errors))
    }

    fn made(maker: &Maker, names: &SniFile) -> Result<(Self, Vec<ConfigError>), Error> {
        let others = maker.others()?;
        let is_trusting = others.verifier.is_trusting();
        let (named, errors) = named(maker, &others, names);
        let tls = Self {
            others,
            named,
            names: names.clone(),
            speech: maker.speech(),
            authorities: if is_trusting {
                maker.authorities.len()
            } else {
                0
            },
            nameless: None,
        };
        Ok((tls, errors))
    }

    /// The same by what the files hold now.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn reread(
        &self,
        records: &Records,
        dir: &Path,
    ) -> Result<(Self, Vec<ConfigError>), TlsError> {
        Self::read(records, dir, &self.names)
    }

    /// Whether these were read by that file of names.
    #[must_use]
    pub fn is_for(&self, names: &SniFile) -> bool {
        self.names == *names
    }

    /// The last second of the certificate of ours that ends first, since 1970.
    #[must_use]
    pub fn first_expiry(&self) -> Option<u64> {
        let named = self.named.iter().map(|(_, terms)| terms);
        named
            .chain([&self.others])
            .filter_map(|terms| terms.expires)
            .min()
    }

    /// Whether both have the same records of TLS with origins.
    #[must_use]
    pub fn says_the_same(one: &Records, other: &Records) -> bool {
        let said = |records: &Records| {
            [
                records.ssl_client_ca_cert_filename.clone(),
                records.ssl_client_ca_cert_path.clone(),
                records.ssl_client_cert_filename.clone(),
                records.ssl_client_cert_path.clone(),
                records.ssl_client_private_key_filename.clone(),
                records.ssl_client_alpn_protocols.clone(),
                records.ssl_client_private_key_path.clone(),
                Some(Arc::clone(&records.ssl_client_verify_server_policy)),
            ]
        };
        said(one) == said(other)
    }

    /// The same for origins that clients choose: what we prove ourselves by is
    /// for the operator's own.
    #[must_use]
    pub fn nameless(self: &Arc<Self>) -> Arc<Self> {
        Arc::clone(self.nameless.as_ref().unwrap_or(self))
    }

    /// Counts the origins that are used on though they are not proven.
    pub(in crate::proxy) fn count_unproven(&self, cells: &Cells) {
        let named = self.named.iter().map(|(_, terms)| terms);
        let all = named.chain([&self.others]);
        let many = all.map(|terms| terms.verifier.take_unproven());
        cells.add(Metric::SslOriginUnproven, many.sum());
    }

    /// Whether the records, or entries of names, name files of it, which may be
    /// renewed.
    #[must_use]
    pub fn names_files(&self, records: &Records) -> bool {
        let mut entries = self.names.entries.iter();
        records.ssl_client_ca_cert_filename.is_some()
            || records.ssl_client_cert_filename.is_some()
            || entries.any(|entry| entry.certificate.is_some())
    }

    /// The terms for an origin: of the first entry that fits its name.
    fn terms(&self, host: &str) -> &Terms {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let mut named = self.named.iter();
        let found = named.find(|(name, _)| name.captures(&host).is_some());
        found.map_or(&self.others, |(_, terms)| terms)
    }

    /// A number that differs where any setting for that origin does.
    pub(in crate::proxy) fn identity(&self, host: &str) -> u64 {
        self.terms(host).identity
    }

    /// Whether an origin could prove itself at all, if it must.
    #[must_use]
    pub const fn has_authorities(&self) -> bool {
        self.authorities > 0
    }

    /// What origins are offered (`ssl.client.alpn_protocols`).
    pub(in crate::proxy) const fn speech(&self) -> Speech {
        self.speech
    }

    /// Shakes hands with the origin of that name or address, in URL form, which
    /// is asked for (SNI) and must be its certificate's; offers HTTP/1.1 alone,
    /// or what the record says.
    pub(in crate::proxy) async fn connect(
        &self,
        stream: TcpStream,
        host: &str,
        speech: Speech,
    ) -> Result<TlsStream<TcpStream>, TlsFault> {
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        let name = ServerName::try_from(bare.unwrap_or(host).to_owned());
        let name = name.map_err(|error| TlsFault::Name(error.to_string()))?;
        let terms = self.terms(host);
        let connector = TlsConnector::from(Arc::clone(match speech {
            Speech::One => &terms.config,
            Speech::Either { .. } | Speech::Two => &terms.offering,
        }));
        connector.connect(name, stream).await.map_err(TlsFault::of)
    }
}

/// Who has which terms. An entry that says nothing of origins goes before later
/// ones all the same.
fn named(
    maker: &Maker,
    others: &Arc<Terms>,
    names: &SniFile,
) -> (Vec<(NamePattern, Arc<Terms>)>, Vec<ConfigError>) {
    let is_silent = |entry: &SniEntry| entry.verify_server.is_none() && entry.certificate.is_none();
    let mut named = Vec::new();
    let mut errors = Vec::new();
    for entry in &names.entries {
        let terms = match is_silent(entry) {
            true => Ok(Arc::clone(others)),
            false => maker.named(entry),
        };
        match terms {
            Ok(terms) => named.push((entry.name.clone(), terms)),
            Err(error) => errors.push(error),
        }
    }
    (named, errors)
}

/// Entries of names, but for what we prove ourselves by.
fn without_ours(names: &SniFile) -> SniFile {
    let mut names = names.clone();
    for entry in &mut names.entries {
        entry.certificate = None;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_authorities_that_holds_none_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        std::fs::write(dir.path().join("ca.pem"), junk).unwrap();
        let records = Records {
            ssl_client_ca_cert_filename: Some("ca.pem".into()),
            ..Records::default()
        };
        let error = OriginTls::read(&records, dir.path(), &SniFile::default()).unwrap_err();
        let what = "ca.pem holds no certificate of an authority that can be read";
        assert!(error.to_string().ends_with(what), "{error}");
    }
}
