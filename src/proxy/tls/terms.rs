//! How hands are shaken with an origin: as the records have it, and as the entry
//! of its name does.

use super::certificate::{Certificate, CertificateError, Contents};
use super::options::Directories;
use super::verifier::Verifier;
use crate::config::ConfigError;
use crate::config::records::Records;
use crate::config::sni::{Policy, SniEntry};
use crate::config::ssl_multicert::CertificateFiles;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, Error};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

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

/// How hands are shaken with an origin.
pub(super) struct Terms {
    /// HTTP/1.1 alone is offered.
    pub(super) config: Arc<ClientConfig>,
    /// What the record says is offered.
    pub(super) offering: Arc<ClientConfig>,
    /// A number that differs where anything does.
    pub(super) identity: u64,
    pub(super) verifier: Arc<Verifier>,
    /// The last second of the certificate that is shown, since 1970.
    pub(super) expires: Option<u64>,
}

/// As the record has it.
fn policy(name: &str) -> Policy {
    match name {
        "DISABLED" => Policy::Disabled,
        "PERMISSIVE" => Policy::Permissive,
        _ => Policy::Enforced,
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

pub(super) fn authorities_dir(records: &Records, dir: &Path) -> PathBuf {
    directory(records.ssl_client_ca_cert_path.as_deref(), dir)
}

fn directory(record: Option<&str>, dir: &Path) -> PathBuf {
    record.map_or_else(|| dir.to_owned(), |name| dir.join(name))
}

/// Where our certificates for origins are.
fn own_directories(records: &Records, dir: &Path) -> Directories {
    let certificates = directory(records.ssl_client_cert_path.as_deref(), dir);
    let keys = records.ssl_client_private_key_path.as_deref();
    Directories {
        keys: keys.map_or_else(|| certificates.clone(), |name| dir.join(name)),
        certificates,
        ..Directories::default()
    }
}

/// What we prove ourselves by to origins that ask.
fn own_certificate(records: &Records, dir: &Path) -> Result<Option<Certificate>, CertificateError> {
    let Some(name) = records.ssl_client_cert_filename.as_deref() else {
        return Ok(None);
    };
    let key = records.ssl_client_private_key_filename.as_deref();
    let own = certificate((name, key), &own_directories(records, dir));
    own.map(Some)
}

fn certificate(
    (name, key): (&str, Option<&str>),
    directories: &Directories,
) -> Result<Certificate, CertificateError> {
    let files = CertificateFiles {
        certificate: name.to_owned(),
        key: key.map(str::to_owned),
        chain: None,
        staple: None,
    };
    Certificate::parse(&Contents::read(&files, directories)?, 0)
}

/// What terms are made of.
pub(super) struct Maker {
    policy: Policy,
    alpn: Option<Arc<str>>,
    pub(super) authorities: Vec<CertificateDer<'static>>,
    pub(super) own: Option<Certificate>,
    directories: Directories,
}

impl Maker {
    pub(super) fn read(records: &Records, dir: &Path) -> Result<Self, CertificateError> {
        Ok(Self {
            policy: policy(&records.ssl_client_verify_server_policy),
            alpn: records.ssl_client_alpn_protocols.clone(),
            authorities: authorities(records, dir)?,
            own: own_certificate(records, dir)?,
            directories: own_directories(records, dir),
        })
    }

    /// The same without our certificate.
    pub(super) fn anonymous(self) -> Self {
        Self { own: None, ..self }
    }

    /// The terms of all origins.
    pub(super) fn others(&self) -> Result<Arc<Terms>, Error> {
        let terms = self.terms(self.policy, self.own.as_ref());
        terms.map(Arc::new)
    }

    pub(super) fn speech(&self) -> Speech {
        Speech::named(self.alpn.as_deref())
    }

    fn terms(&self, policy: Policy, own: Option<&Certificate>) -> Result<Terms, Error> {
        let verifier = Arc::new(Verifier::new(policy, &self.authorities)?);
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as _);
        let shown = |own: &Certificate| Arc::new(SingleCertAndKey::from(Arc::clone(&own.key)));
        let mut config = match own {
            Some(own) => builder.with_client_cert_resolver(shown(own)),
            None => builder.with_no_client_auth(),
        };
        let alpn = self.alpn.as_deref();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut offering = config.clone();
        offering.alpn_protocols = self.speech().protocols();
        Ok(Terms {
            config: Arc::new(config),
            offering: Arc::new(offering),
            identity: identity((policy, alpn), &self.authorities, own),
            verifier,
            expires: own.map(|own| own.expires),
        })
    }

    /// The terms for the names of an entry; what it does not say is as the
    /// records have it.
    pub(super) fn named(&self, entry: &SniEntry) -> Result<Arc<Terms>, ConfigError> {
        let named = entry.certificate.as_ref();
        let (place, token) = named.map_or((&entry.place, ""), |(at, name)| (at, name));
        let fault = |error: String| place.error(token, error);
        let own =
            named.map(|(_, name)| certificate((name, entry.key.as_deref()), &self.directories));
        let own = own.transpose().map_err(|error| fault(error.to_string()))?;
        let policy = entry.verify_server.unwrap_or(self.policy);
        let terms = self.terms(policy, own.as_ref().or(self.own.as_ref()));
        terms
            .map(Arc::new)
            .map_err(|error| fault(error.to_string()))
    }
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
