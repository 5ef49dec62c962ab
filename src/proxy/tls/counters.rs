//! What handshakes are counted as.

use super::handshake::HandshakeError;
use crate::metrics::{Cells, Metric};
use rustls::{
    AlertDescription, CertificateError, CipherSuite, Error, HandshakeKind, NamedGroup,
    PeerIncompatible, ProtocolVersion, ServerConnection,
};

const CIPHERS: [(CipherSuite, Metric); 9] = [
    (
        CipherSuite::TLS13_AES_128_GCM_SHA256,
        Metric::SslCipherAes128Gcm,
    ),
    (
        CipherSuite::TLS13_AES_256_GCM_SHA384,
        Metric::SslCipherAes256Gcm,
    ),
    (
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        Metric::SslCipherChacha20,
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        Metric::SslCipherEcdsaAes128Gcm,
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        Metric::SslCipherEcdsaAes256Gcm,
    ),
    (
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        Metric::SslCipherEcdsaChacha20,
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        Metric::SslCipherRsaAes128Gcm,
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        Metric::SslCipherRsaAes256Gcm,
    ),
    (
        CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        Metric::SslCipherRsaChacha20,
    ),
];

const GROUPS: [(NamedGroup, Metric); 4] = [
    (NamedGroup::X25519MLKEM768, Metric::SslGroupX25519MlKem768),
    (NamedGroup::X25519, Metric::SslGroupX25519),
    (NamedGroup::secp256r1, Metric::SslGroupP256),
    (NamedGroup::secp384r1, Metric::SslGroupP384),
];

/// Counts a handshake that is done: its version, cipher, group and resumption,
/// and whether a server was named.
pub(super) fn count_success(cells: &Cells, connection: &ServerConnection) {
    cells.add(Metric::SslSuccessIn, 1);
    let session = match connection.handshake_kind() {
        Some(HandshakeKind::Resumed) => Metric::SslSessionHit,
        Some(HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest) | None => {
            Metric::SslSessionMiss
        }
    };
    cells.add(session, 1);
    let version = match connection.protocol_version() {
        Some(ProtocolVersion::TLSv1_3) => Metric::SslTotalTls13,
        _ => Metric::SslTotalTls12,
    };
    cells.add(version, 1);
    if connection.server_name().is_none() {
        cells.add(Metric::SslClientUnnamed, 1);
    }
    let suite = connection.negotiated_cipher_suite();
    count_one(cells, &CIPHERS, suite.map(|suite| suite.suite()));
    let group = connection.negotiated_key_exchange_group();
    count_one(cells, &GROUPS, group.map(|group| group.name()));
}

/// Counts what was agreed on, if it is of the table.
fn count_one<T: PartialEq>(cells: &Cells, table: &[(T, Metric)], agreed: Option<T>) {
    let found = table
        .iter()
        .find(|(known, _)| Some(known) == agreed.as_ref());
    if let Some((_, metric)) = found {
        cells.add(*metric, 1);
    }
}

/// The counter of a handshake that failed.
pub(super) fn of_error(error: &HandshakeError) -> Metric {
    match error {
        HandshakeError::Slow(_) => Metric::SslHandshakeTimeouts,
        HandshakeError::Denied(_) => Metric::SslClientDenied,
        HandshakeError::UnknownName(_) => Metric::SslClientUnknownName,
        HandshakeError::Io(_) => Metric::SslErrorSyscall,
        HandshakeError::Tls(error) => of_tls(error),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library's reasons grow; those without a counter are others"
)]
fn of_tls(error: &Error) -> Metric {
    match error {
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::InvalidCertificate(error) => of_certificate(error),
        Error::PeerIncompatible(
            PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled
            | PeerIncompatible::Tls13RequiredForQuic
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::ServerDoesNotSupportTls12Or13,
        ) => Metric::SslClientWrongVersion,
        Error::DecryptError => Metric::SslClientDecryptionFailed,
        _ => Metric::SslClientOtherErrors,
    }
}

/// What the client says of our certificate, or of the handshake.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library's reasons grow; those without a counter are others"
)]
fn of_alert(alert: AlertDescription) -> Metric {
    match alert {
        AlertDescription::BadCertificate => Metric::SslClientBadCert,
        AlertDescription::CertificateExpired => Metric::SslClientExpiredCert,
        AlertDescription::CertificateRevoked => Metric::SslClientRevokedCert,
        AlertDescription::CertificateUnknown => Metric::SslClientUnknownCert,
        AlertDescription::UnknownCA => Metric::SslClientUnknownCa,
        AlertDescription::ProtocolVersion => Metric::SslClientWrongVersion,
        AlertDescription::DecryptError | AlertDescription::BadRecordMac => {
            Metric::SslClientDecryptionFailed
        }
        _ => Metric::SslClientOtherErrors,
    }
}

/// What we say of the client's.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the library's reasons grow; those without a counter are others"
)]
fn of_certificate(error: &CertificateError) -> Metric {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            Metric::SslClientExpiredCert
        }
        CertificateError::Revoked => Metric::SslClientRevokedCert,
        CertificateError::UnknownIssuer => Metric::SslClientUnknownCa,
        CertificateError::BadEncoding => Metric::SslClientBadCert,
        _ => Metric::SslClientCertVerifyFailed,
    }
}
