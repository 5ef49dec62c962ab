//! TLS with origins: whom they must prove to be, and what we prove.

use super::certificate::{Certificate, CertificateError, Contents};
use super::options::Directories;
use crate::config::records::Records;
use crate::config::ssl_multicert::CertificateFiles;
use crate::metrics::{Cells, Metric};
use parking_lot::Mutex;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, ClientConfig, ClientConnection, DigitallySignedStruct, Error, HandshakeKind,
    RootCertStore, SignatureScheme,
};
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use xxhash_rust::xxh3::Xxh3;

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

/// What is made of a certificate that an origin can't prove itself by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    /// Nothing is verified.
    Disabled,
    /// A warning in the log.
    Permissive,
    /// There is no connection.
    Enforced,
}

impl Policy {
    fn named(name: &str) -> Self {
        match name {
            "DISABLED" => Self::Disabled,
            "PERMISSIVE" => Self::Permissive,
            _ => Self::Enforced,
        }
    }
}

/// Which versions of HTTP are spoken on a new connection to an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::proxy) enum Speech {
    /// HTTP/1.1.
    One,
    /// What the origin chooses, by ALPN.
    Either {
        /// Whether HTTP/2 is liked more.
        two_first: bool,
    },
    /// HTTP/2.
    Two,
}

impl Speech {
    /// As `ssl.client.alpn_protocols` has it.
    fn named(protocols: Option<&str>) -> Self {
        match protocols {
            Some("h2,http/1.1") => Self::Either { two_first: true },
            Some("http/1.1,h2") => Self::Either { two_first: false },
            Some("h2") => Self::Two,
            _ => Self::One,
        }
    }

    fn protocols(self) -> Vec<Vec<u8>> {
        let names: &[&[u8]] = match self {
            Self::One => &[b"http/1.1"],
            Self::Either { two_first: true } => &[b"h2", b"http/1.1"],
            Self::Either { two_first: false } => &[b"http/1.1", b"h2"],
            Self::Two => &[b"h2"],
        };
        names.iter().map(|name| name.to_vec()).collect()
    }
}

/// The settings of TLS with origins.
pub struct OriginTls {
    /// HTTP/1.1 alone is offered.
    config: Arc<ClientConfig>,
    /// What the record says is offered.
    offering: Arc<ClientConfig>,
    speech: Speech,
    identity: u64,
    authorities: usize,
    verifier: Arc<Verifier>,
    /// The same without our certificate, if there is one.
    nameless: Option<Arc<OriginTls>>,
}

impl fmt::Debug for OriginTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OriginTls")
            .field("identity", &self.identity)
            .field("authorities", &self.authorities)
            .finish_non_exhaustive()
    }
}

/// Equal are those of which a connection made by one serves the other.
impl PartialEq for OriginTls {
    fn eq(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

impl Eq for OriginTls {}

impl OriginTls {
    /// As the records want it, where the configuration lies in `dir`. Reads the
    /// authorities' certificates and ours: not for an event thread.
    ///
    /// # Errors
    /// [`TlsError`], if a record names a file that is not usable.
    pub fn read(records: &Records, dir: &Path) -> Result<Self, TlsError> {
        let authorities = authorities(records, dir)?;
        let own = own_certificate(records, dir)?;
        let nameless = match own {
            Some(_) => Some(Arc::new(Self::of(records, &authorities, None)?)),
            None => None,
        };
        let tls = Self::of(records, &authorities, own)?;
        match &records.ssl_client_ca_cert_filename {
            Some(name) if !tls.has_authorities() => {
                let file = authorities_dir(records, dir).join(&**name);
                Err(CertificateError::NoAuthority { file }.into())
            }
            _ => Ok(Self { nameless, ..tls }),
        }
    }

    /// By the records, with what their files hold.
    fn of(
        records: &Records,
        authorities: &[CertificateDer<'static>],
        own: Option<Certificate>,
    ) -> Result<Self, TlsError> {
        let policy = Policy::named(&records.ssl_client_verify_server_policy);
        let alpn = records.ssl_client_alpn_protocols.as_deref();
        let identity = identity((policy, alpn), authorities, own.as_ref());
        let verifier = Arc::new(Verifier::new(policy, authorities)?);
        let is_trusting = verifier.web.is_some();
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as _);
        let mut config = match own {
            Some(own) => builder
                .with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(own.key))),
            None => builder.with_no_client_auth(),
        };
        let speech = Speech::named(records.ssl_client_alpn_protocols.as_deref());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut offering = config.clone();
        offering.alpn_protocols = speech.protocols();
        Ok(Self {
            config: Arc::new(config),
            offering: Arc::new(offering),
            speech,
            identity,
            authorities: if is_trusting { authorities.len() } else { 0 },
            verifier,
            nameless: None,
        })
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
        let many = self.verifier.unproven.swap(0, Ordering::Relaxed);
        cells.add(Metric::SslOriginUnproven, many);
    }

    /// Whether the records name files of it, which may be renewed.
    #[must_use]
    pub const fn names_files(records: &Records) -> bool {
        records.ssl_client_ca_cert_filename.is_some() || records.ssl_client_cert_filename.is_some()
    }

    /// A number that differs where any setting does.
    pub(in crate::proxy) const fn identity(&self) -> u64 {
        self.identity
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
        let connector = TlsConnector::from(Arc::clone(match speech {
            Speech::One => &self.config,
            Speech::Either { .. } | Speech::Two => &self.offering,
        }));
        connector.connect(name, stream).await.map_err(TlsFault::of)
    }
}

/// Those of the record's file, else those that the system trusts.
fn authorities(
    records: &Records,
    dir: &Path,
) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let Some(name) = records.ssl_client_ca_cert_filename.as_deref() else {
        return Ok(rustls_native_certs::load_native_certs().certs);
    };
    super::certificate::read_all(authorities_dir(records, dir).join(name))
}

fn authorities_dir(records: &Records, dir: &Path) -> PathBuf {
    directory(records.ssl_client_ca_cert_path.as_deref(), dir)
}

fn directory(record: Option<&str>, dir: &Path) -> PathBuf {
    record.map_or_else(|| dir.to_owned(), |name| dir.join(name))
}

/// What we prove ourselves by to origins that ask.
fn own_certificate(records: &Records, dir: &Path) -> Result<Option<Certificate>, CertificateError> {
    let Some(name) = records.ssl_client_cert_filename.as_deref() else {
        return Ok(None);
    };
    let certificates = directory(records.ssl_client_cert_path.as_deref(), dir);
    let keys = records.ssl_client_private_key_path.as_deref();
    let directories = Directories {
        keys: keys.map_or_else(|| certificates.clone(), |name| dir.join(name)),
        certificates,
        ..Directories::default()
    };
    let key = records.ssl_client_private_key_filename.as_deref();
    let files = CertificateFiles {
        certificate: name.to_owned(),
        key: key.map(str::to_owned),
        chain: None,
        staple: None,
    };
    Certificate::parse(&Contents::read(&files, &directories)?, 0).map(Some)
}

fn identity(
    said: (Policy, Option<&str>),
    authorities: &[CertificateDer<'_>],
    own: Option<&Certificate>,
) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(format!("{said:?}").as_bytes());
    for authority in authorities {
        hash.update(authority);
    }
    let own = own.map_or(0, |own| own.digest);
    hash.update(&own.to_le_bytes());
    hash.digest()
}

/// Judges origins' certificates by a policy.
#[derive(Debug)]
struct Verifier {
    policy: Policy,
    /// None where nobody is trusted.
    web: Option<Arc<WebPkiServerVerifier>>,
    provider: CryptoProvider,
    told: Told,
    /// Origins that are used on though not proven, since this was asked last.
    unproven: AtomicU64,
}

/// Origins that a minute warns of, at most.
const TOLD_MAX: usize = 100;

/// The origins that there was a warning of in this minute.
#[derive(Debug, Default)]
struct Told(Mutex<(u64, HashSet<String>)>);

impl Told {
    /// Whether there is to be one: of each once a minute, of many not of all.
    fn is_news(&self, origin: &str, now: UnixTime) -> bool {
        let (minute, told) = &mut *self.0.lock();
        let this = now.as_secs() / 60;
        if std::mem::replace(minute, this) != this {
            told.clear();
        }
        told.len() < TOLD_MAX && told.insert(origin.to_owned())
    }
}

impl Verifier {
    /// Certificates of authorities that can't be read are left out, as
    /// everybody does: systems have odd ones.
    fn new(policy: Policy, authorities: &[CertificateDer<'static>]) -> Result<Self, Error> {
        let provider = default_provider();
        let mut roots = RootCertStore::empty();
        let (taken, _) = roots.add_parsable_certificates(authorities.iter().cloned());
        let web = (taken > 0).then(|| {
            let shared = Arc::new(provider.clone());
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), shared).build()
        });
        let web = web.transpose();
        let web = web.map_err(|error| Error::General(error.to_string()))?;
        Ok(Self {
            policy,
            web,
            provider,
            told: Told::default(),
            unproven: AtomicU64::new(0),
        })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        staple: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.policy == Policy::Disabled {
            return Ok(ServerCertVerified::assertion());
        }
        let unknown = Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let web = self.web.as_ref().ok_or(unknown);
        let judged =
            web.and_then(|web| web.verify_server_cert(certificate, chain, name, staple, now));
        match judged {
            Err(error) if self.policy == Policy::Permissive => {
                self.unproven.fetch_add(1, Ordering::Relaxed);
                let name = name.to_str();
                if self.told.is_news(&name, now) {
                    tracing::warn!(origin = %name, %error, "an origin that is not proven is used on");
                }
                Ok(ServerCertVerified::assertion())
            }
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_warned_of_once_a_minute_and_not_every_one_of_many() {
        let told = Told::default();
        let at = |secs| UnixTime::since_unix_epoch(Duration::from_secs(secs));
        let all = [("a", 1), ("b", 2), ("a", 59), ("a", 60), ("a", 61)];
        let news = all.map(|(origin, secs)| told.is_news(origin, at(secs)));
        assert_eq!(news, [true, true, false, true, false]);
        let many = (0..1000).filter(|number| told.is_news(&number.to_string(), at(70)));
        assert_eq!(many.count(), TOLD_MAX - 1);
    }

    #[test]
    fn a_file_of_authorities_that_holds_none_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        std::fs::write(dir.path().join("ca.pem"), junk).unwrap();
        let records = Records {
            ssl_client_ca_cert_filename: Some("ca.pem".into()),
            ..Records::default()
        };
        let error = OriginTls::read(&records, dir.path()).unwrap_err();
        let what = "ca.pem holds no certificate of an authority that can be read";
        assert!(error.to_string().ends_with(what), "{error}");
    }
}
