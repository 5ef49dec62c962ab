//! What clients must prove, and whether one proof stands for another.

use super::certificate::read_all;
use super::options::ClientProof;
use super::outbound::TlsError;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use std::path::Path;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// How much must be proven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Level {
    #[default]
    None,
    Optional,
    Required,
}

/// What was proven, or must be: how much, and by whose word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ProofId {
    level: Level,
    /// A hash of the authorities' certificates; 0 without any.
    authorities: u64,
}

impl ProofId {
    /// Whether a client that was asked for this has proven no less than
    /// `required`: as much, by the word of the same authorities.
    pub(super) fn covers(self, required: Self) -> bool {
        required.level == Level::None
            || (self.authorities == required.authorities && self.level >= required.level)
    }
}

/// What clients are asked for in a handshake.
#[derive(Clone, Debug)]
pub(super) struct Proof {
    pub(super) id: ProofId,
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
}

impl Proof {
    /// Reads the file of the authorities.
    ///
    /// # Errors
    /// It can't be read, or holds no authority.
    pub(super) fn read(
        proof: &ClientProof,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, TlsError> {
        match proof {
            ClientProof::None => Ok(Self {
                id: ProofId::default(),
                verifier: WebPkiClientVerifier::no_client_auth(),
            }),
            ClientProof::Optional(file) => Self::of(Level::Optional, file, provider),
            ClientProof::Required(file) => Self::of(Level::Required, file, provider),
        }
    }

    fn of(level: Level, file: &Path, provider: &Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        let mut hash = Xxh3::new();
        for authority in read_all(file.to_owned())? {
            hash.update(&authority);
            roots.add(authority)?;
        }
        let provider = Arc::clone(provider);
        let builder = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
        let builder = match level {
            Level::Optional => builder.allow_unauthenticated(),
            Level::Required | Level::None => builder,
        };
        let verifier = builder.build();
        let authorities = hash.digest();
        Ok(Self {
            id: ProofId { level, authorities },
            verifier: verifier.map_err(|error| rustls::Error::General(error.to_string()))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_covers_what_asks_for_no_more_by_the_same_word() {
        let id = |level, authorities| ProofId { level, authorities };
        let none = ProofId::default();
        let (optional, required) = (id(Level::Optional, 1), id(Level::Required, 1));
        assert!(required.covers(none) && required.covers(optional));
        assert!(required.covers(required) && none.covers(none));
        assert!(!optional.covers(required) && !none.covers(optional));
        assert!(!id(Level::Required, 2).covers(optional));
    }
}
