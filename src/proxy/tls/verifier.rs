//! Judges origins' certificates by a policy.

use crate::config::sni::Policy;
use parking_lot::Mutex;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Judges origins' certificates by a policy.
#[derive(Debug)]
pub(super) struct Verifier {
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
    pub(super) fn new(
        policy: Policy,
        authorities: &[CertificateDer<'static>],
    ) -> Result<Self, Error> {
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

    /// Whether anybody is trusted.
    pub(super) const fn is_trusting(&self) -> bool {
        self.web.is_some()
    }

    /// How many origins were used on though not proven, since this was asked
    /// last.
    pub(super) fn take_unproven(&self) -> u64 {
        self.unproven.swap(0, Ordering::Relaxed)
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
    use std::time::Duration;

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
}
