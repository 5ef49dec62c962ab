//! What a connection over TLS has agreed on.

use super::proof::ProofId;
use rustls::{CipherSuite, HandshakeKind, NamedGroup, ProtocolVersion, ServerConnection};

/// What of a handshake outlives it. Texts are as ATS's log has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The name asked for (RFC 6066 3), in lower case.
    pub name: Option<Box<str>>,
    /// The protocol agreed on by ALPN (RFC 7301).
    pub alpn: Option<Box<str>>,
    /// The cipher by OpenSSL's name.
    pub cipher: &'static str,
    /// The group of the key exchange; none where a session of TLS 1.2 is resumed.
    pub group: Option<&'static str>,
    /// Whether an older session was resumed.
    pub resumed: bool,
    pub(super) version: ProtocolVersion,
    /// What the client was asked to prove, and what one is asked whose name no
    /// entry is for.
    pub(super) proofs: Proofs,
}

/// What clients are asked to prove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Proofs {
    /// This one.
    pub(super) asked: ProofId,
    /// One whose name no entry is for.
    pub(super) unnamed: ProofId,
}

impl Session {
    /// What a handshake that is done came to.
    pub(super) fn of(connection: &ServerConnection, proofs: Proofs) -> Self {
        let alpn = connection.alpn_protocol().map(String::from_utf8_lossy);
        let suite = connection.negotiated_cipher_suite();
        let group = connection.negotiated_key_exchange_group();
        let version = connection.protocol_version();
        Self {
            name: connection.server_name().map(Into::into),
            alpn: alpn.map(|alpn| alpn.as_ref().into()),
            cipher: suite.map_or("-", |suite| cipher_name(suite.suite())),
            group: group.map(|group| group_name(group.name())),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            version: version.unwrap_or(ProtocolVersion::TLSv1_2),
            proofs,
        }
    }

    /// The version, as OpenSSL has it.
    #[must_use]
    pub fn version(&self) -> &'static str {
        if self.version == ProtocolVersion::TLSv1_3 {
            "TLSv1.3"
        } else {
            "TLSv1.2"
        }
    }
}

/// The ciphers that are spoken, by OpenSSL's names.
pub(super) const CIPHERS: [(CipherSuite, &str); 9] = [
    (
        CipherSuite::TLS13_AES_256_GCM_SHA384,
        "TLS_AES_256_GCM_SHA384",
    ),
    (
        CipherSuite::TLS13_AES_128_GCM_SHA256,
        "TLS_AES_128_GCM_SHA256",
    ),
    (
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        "TLS_CHACHA20_POLY1305_SHA256",
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        "ECDHE-ECDSA-AES256-GCM-SHA384",
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        "ECDHE-ECDSA-AES128-GCM-SHA256",
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        "ECDHE-ECDSA-CHACHA20-POLY1305",
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        "ECDHE-RSA-AES256-GCM-SHA384",
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        "ECDHE-RSA-AES128-GCM-SHA256",
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        "ECDHE-RSA-CHACHA20-POLY1305",
    ),
];

pub(super) fn cipher_name(suite: CipherSuite) -> &'static str {
    let found = CIPHERS.iter().find(|(known, _)| *known == suite);
    found.map_or("-", |(_, name)| name)
}

/// Groups that OpenSSL has another name for than RFC 8446.
const GROUPS: [(NamedGroup, &str); 2] = [
    (NamedGroup::secp256r1, "P-256"),
    (NamedGroup::secp384r1, "P-384"),
];

fn group_name(group: NamedGroup) -> &'static str {
    let found = GROUPS.iter().find(|(known, _)| *known == group);
    let other = group.as_str().unwrap_or("-");
    found.map_or(other, |(_, name)| name)
}
