//! One certificate with its key, from its files.

use super::ocsp::{self, StapleError};
use super::options::Directories;
use crate::config::ssl_multicert::CertificateFiles;
use rustls::SignatureAlgorithm;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The most bytes of one file: some hundreds of certificates.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why a certificate can't be used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file of it is not there, or not for us.
    #[error("{} can't be read: {cause}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's reason.
        cause: io::Error,
    },
    /// Its file holds none.
    #[error("{} holds no certificate in PEM: {cause}", file.display())]
    NoCertificate {
        /// The file.
        file: PathBuf,
        /// The reader's reason.
        cause: String,
    },
    /// Its file of keys holds none.
    #[error("{} holds no key in PEM: {cause}; an encrypted key must be decrypted first", file.display())]
    NoKey {
        /// The file.
        file: PathBuf,
        /// The reader's reason.
        cause: String,
    },
    /// A file of authorities has none that can be one.
    #[error("{} holds no certificate of an authority that can be read", file.display())]
    NoAuthority {
        /// The file.
        file: PathBuf,
    },
    /// The first certificate of its file can't be read.
    #[error("{} is no X.509 certificate: {cause}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The reader's reason.
        cause: String,
    },
    /// The key is of no kind that TLS has a use for, or another's.
    #[error("the key in {} is not usable with it: {cause}", file.display())]
    Key {
        /// The file of the key.
        file: PathBuf,
        /// The library's reason.
        cause: rustls::Error,
    },
}

/// The bytes of a certificate's files.
#[derive(Debug)]
pub(super) struct Contents {
    certificate: (PathBuf, Vec<u8>),
    /// None where it is in the certificate's own file.
    key: Option<(PathBuf, Vec<u8>)>,
    chain: Option<(PathBuf, Vec<u8>)>,
    /// A file that can't be read is no fault of the certificate.
    staple: Option<(PathBuf, Result<Vec<u8>, StapleError>)>,
}

impl Contents {
    /// Reads the files.
    pub(super) fn read(
        files: &CertificateFiles,
        directories: &Directories,
    ) -> Result<Self, CertificateError> {
        let key = files.key.as_ref().map(|name| (&directories.keys, name));
        let chain = files.chain.as_ref();
        let chain = chain.map(|name| (&directories.authorities, name));
        let staple = files.staple.as_ref();
        let staple = staple.map(|name| (&directories.staples, name));
        let read = |(dir, name): (&PathBuf, &String)| read(dir.join(name));
        Ok(Self {
            certificate: read((&directories.certificates, &files.certificate))?,
            key: key.map(read).transpose()?,
            chain: chain.map(read).transpose()?,
            staple: staple.map(|(dir, name)| read_staple(dir.join(name))),
        })
    }

    /// A hash of all of them.
    pub(super) fn digest(&self) -> u64 {
        let mut hash = Xxh3::new();
        let files = [
            Some(&self.certificate),
            self.key.as_ref(),
            self.chain.as_ref(),
        ];
        let files = files.into_iter().flatten().map(|(_, bytes)| bytes);
        let staple = self.staple.as_ref();
        let staple = staple.and_then(|(_, read)| read.as_ref().ok());
        for bytes in files.chain(staple) {
            // A digest of each, so that no byte may move from file to file.
            hash.update(&xxh3_64(bytes).to_le_bytes());
        }
        hash.digest()
    }
}

fn read(file: PathBuf) -> Result<(PathBuf, Vec<u8>), CertificateError> {
    match bounded(&file) {
        Ok(bytes) => Ok((file, bytes)),
        Err(cause) => Err(CertificateError::Unreadable { file, cause }),
    }
}

fn read_staple(file: PathBuf) -> (PathBuf, Result<Vec<u8>, StapleError>) {
    let read = bounded(&file);
    (
        file,
        read.map_err(|error| StapleError::Unreadable(error.to_string())),
    )
}

fn bounded(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let opened = File::open(file)?;
    opened.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|len| len > FILE_BYTES_MAX) {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    Ok(bytes)
}

/// A certificate that can be served.
#[derive(Debug)]
pub(super) struct Certificate {
    /// What the handshake needs.
    pub(super) key: Arc<CertifiedKey>,
    /// The names that it is for, in lower case; `*.` begins a wildcard.
    pub(super) names: Vec<String>,
    /// Its last second, since 1970.
    pub(super) expires: u64,
    /// Of what it was made from.
    pub(super) digest: u64,
    /// The second to which its staple holds; none without one.
    pub(super) stapled_until: Option<u64>,
    /// Why there is no staple, or an older one, though a file is named.
    pub(super) staple_fault: Option<(PathBuf, StapleError)>,
}

impl Certificate {
    /// Makes it from what its files hold at second `now` of 1970.
    pub(super) fn parse(contents: &Contents, now: u64) -> Result<Self, CertificateError> {
        let chain = chain(contents)?;
        let Described {
            names,
            expires,
            serial,
        } = described(&contents.certificate.0, &chain)?;
        let (file, bytes) = contents.key.as_ref().unwrap_or(&contents.certificate);
        let key = PrivateKeyDer::from_pem_slice(bytes);
        let key = key.map_err(|cause| CertificateError::NoKey {
            file: file.clone(),
            cause: cause.to_string(),
        })?;
        let mut key = certified(chain, &key).map_err(|cause| CertificateError::Key {
            file: file.clone(),
            cause,
        })?;
        let mut stapled_until = None;
        let mut staple_fault = None;
        if let Some((file, read)) = &contents.staple {
            match judged(read.as_ref(), &serial, now) {
                Ok((staple, end)) => {
                    key.ocsp = Some(staple.clone());
                    stapled_until = Some(end);
                }
                Err(fault) => staple_fault = Some((file.clone(), fault)),
            }
        }
        Ok(Self {
            key: Arc::new(key),
            names,
            expires,
            digest: contents.digest(),
            stapled_until,
            staple_fault,
        })
    }

    /// Whether its staple is not to be sent any more.
    pub(super) fn is_overdue(&self, now: u64) -> bool {
        self.stapled_until.is_some_and(|end| end <= now)
    }

    /// Whether its key is of RSA: slower to sign with than others.
    pub(super) fn is_rsa(&self) -> bool {
        self.key.key.algorithm() == SignatureAlgorithm::RSA
    }
}

/// Every certificate of a file, at least one.
pub(super) fn read_all(file: PathBuf) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let (file, bytes) = read(file)?;
    let mut all = Vec::new();
    append(&mut all, &file, &bytes)?;
    Ok(all)
}

/// The certificates that are sent: its own first.
fn chain(contents: &Contents) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let mut chain = Vec::new();
    let files = [Some(&contents.certificate), contents.chain.as_ref()];
    for (file, bytes) in files.into_iter().flatten() {
        append(&mut chain, file, bytes)?;
    }
    Ok(chain)
}

/// Adds the certificates of a file, at least one.
fn append(
    chain: &mut Vec<CertificateDer<'static>>,
    file: &Path,
    bytes: &[u8],
) -> Result<(), CertificateError> {
    let none = |cause: String| CertificateError::NoCertificate {
        file: file.to_owned(),
        cause,
    };
    let before = chain.len();
    for certificate in CertificateDer::pem_slice_iter(bytes) {
        chain.push(certificate.map_err(|cause| none(cause.to_string()))?);
    }
    if chain.len() == before {
        return Err(none("it has no such section".to_owned()));
    }
    Ok(())
}

fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: &PrivateKeyDer<'_>,
) -> Result<CertifiedKey, rustls::Error> {
    let certified = CertifiedKey::new(chain, any_supported_type(key)?);
    certified.keys_match()?;
    Ok(certified)
}

/// A staple, and the second to which it holds.
fn judged<'r>(
    read: Result<&'r Vec<u8>, &StapleError>,
    serial: &[u8],
    now: u64,
) -> Result<(&'r Vec<u8>, u64), StapleError> {
    let bytes = read.map_err(Clone::clone)?;
    Ok((bytes, ocsp::until(bytes, serial, now)?))
}

/// What is to be known of a certificate itself.
struct Described {
    names: Vec<String>,
    /// Its last second, since 1970.
    expires: u64,
    /// In the bytes of DER.
    serial: Vec<u8>,
}

/// What the first certificate says of itself.
fn described(file: &Path, chain: &[CertificateDer<'_>]) -> Result<Described, CertificateError> {
    let malformed = |cause: String| CertificateError::Malformed {
        file: file.to_owned(),
        cause,
    };
    let first = chain.first().map(AsRef::as_ref).unwrap_or_default();
    let (_, parsed) = X509Certificate::from_der(first).map_err(|e| malformed(e.to_string()))?;
    let expires = parsed.validity().not_after.timestamp();
    Ok(Described {
        names: names(&parsed).map_err(malformed)?,
        expires: u64::try_from(expires).unwrap_or(0),
        serial: parsed.raw_serial().to_vec(),
    })
}

/// The DNS names of the subject; its common name where it has none (RFC 9525
/// ends that for clients, old certificates of private sites live by it).
fn names(parsed: &X509Certificate<'_>) -> Result<Vec<String>, String> {
    let alternative = parsed.subject_alternative_name();
    let alternative = alternative.map_err(|error| error.to_string())?;
    let all = alternative.map(|found| found.value.general_names.as_slice());
    let dns = all.unwrap_or_default().iter().filter_map(dns_name);
    let mut names: Vec<&str> = dns.collect();
    if names.is_empty() {
        let common = parsed.subject().iter_common_name();
        names.extend(common.filter_map(|name| name.as_str().ok()));
    }
    let names = names.into_iter();
    Ok(names
        .map(|name| name.trim_end_matches('.').to_ascii_lowercase())
        .collect())
}

fn dns_name<'a>(name: &GeneralName<'a>) -> Option<&'a str> {
    if let GeneralName::DNSName(name) = name {
        return Some(name);
    }
    None
}
