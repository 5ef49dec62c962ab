//! Certificates made for a test, and a TLS client that trusts their issuer.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long a client waits before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Issuers made so far.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// A connection over TLS.
pub(crate) type TlsClient = StreamOwned<ClientConnection, TcpStream>;

/// An issuer of certificates.
pub(crate) struct Authority {
    pub(crate) issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key.
pub(crate) struct Issued {
    pub(crate) certificate: CertificateDer<'static>,
    pem: String,
    pub(crate) key: KeyPair,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        // A namesake would be told apart by its signatures only.
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = &mut params.distinguished_name;
        name.push(DnType::CommonName, format!("authority {number}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        Self { issuer }
    }

    /// A certificate for these names with a new ECDSA key.
    pub(crate) fn issue(&self, names: &[&str]) -> Issued {
        self.issue_for(names, KeyPair::generate().unwrap())
    }

    /// A certificate for these names and that key.
    pub(crate) fn issue_for(&self, names: &[&str], key: KeyPair) -> Issued {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        self.signed(&CertificateParams::new(names).unwrap(), key)
    }

    /// A certificate as `params` want it, for that key.
    pub(crate) fn signed(&self, params: &CertificateParams, key: KeyPair) -> Issued {
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Issued {
            pem: certificate.pem(),
            certificate: certificate.der().clone(),
            key,
        }
    }

    /// A file of the issuer's own certificate.
    pub(crate) fn write(&self, file: &Path) {
        std::fs::write(file, self.issuer.pem()).unwrap();
    }

    /// Those who trust this issuer alone.
    pub(crate) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        roots
    }

    /// A client that trusts this issuer.
    pub(crate) fn client(&self) -> ClientConfig {
        ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots())
            .with_no_client_auth()
    }
}

/// The provider of cryptography.
pub(crate) fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

impl Issued {
    /// One file of the certificate and its key.
    pub(crate) fn write(&self, file: &Path) {
        std::fs::write(file, self.pem.clone() + &self.key.serialize_pem()).unwrap();
    }

    /// A file each.
    pub(crate) fn write_apart(&self, certificate: &Path, key: &Path) {
        std::fs::write(certificate, &self.pem).unwrap();
        std::fs::write(key, self.key.serialize_pem()).unwrap();
    }
}

/// A connection that asks for `name`, before its handshake.
pub(crate) fn connect(config: &Arc<ClientConfig>, at: SocketAddr, name: &str) -> TlsClient {
    let socket = TcpStream::connect(at).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connection = ClientConnection::new(Arc::clone(config), name).unwrap();
    StreamOwned::new(connection, socket)
}

/// The certificate that a client is given who asks for `name`.
pub(crate) fn given(
    config: &Arc<ClientConfig>,
    at: SocketAddr,
    name: &str,
) -> Result<CertificateDer<'static>, String> {
    let mut client = connect(config, at, name);
    let TlsClient { conn, sock } = &mut client;
    while conn.is_handshaking() {
        conn.complete_io(sock).map_err(|error| error.to_string())?;
    }
    let chain = conn.peer_certificates().unwrap_or_default();
    chain.first().cloned().ok_or_else(|| "none".to_owned())
}
