//! OCSP responses for a test.

use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

/// An OCSP response that the certificate is good (RFC 6960 4.2.1), for a long
/// time. Nobody signed it.
pub(crate) fn staple(certificate: &CertificateDer<'_>) -> Vec<u8> {
    let (_, parsed) = X509Certificate::from_der(certificate).unwrap();
    let algorithm = element(0x30, &[&[6, 1, 42]]);
    let (hash, time) = ([4, 1, 0], b"\x18\x0f20200101000000Z");
    let serial = element(2, &[parsed.raw_serial()]);
    let identity = element(0x30, &[&algorithm, &hash, &hash, &serial]);
    let next = element(0xa0, &[b"\x18\x0f29990101000000Z"]);
    let single = element(0x30, &[&identity, &[0x80, 0], time, &next]);
    let all = element(0x30, &[&single]);
    let data = element(0x30, &[&element(0xa2, &[&hash]), time, &all]);
    let basic = element(4, &[&element(0x30, &[&data, &algorithm, &[3, 1, 0]])]);
    let kind = element(6, &[&[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1]]);
    let bytes = element(0xa0, &[&element(0x30, &[&kind, &basic])]);
    element(0x30, &[&[10, 1, 0], &bytes])
}

/// An element of DER, shorter than 64 KiB.
fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let len = u16::try_from(content.len()).unwrap();
    let [high, low] = [len >> 8, len & 0xff].map(|byte| u8::try_from(byte).unwrap());
    let head: &[u8] = match len {
        0..128 => &[tag, low],
        128..256 => &[tag, 0x81, low],
        _ => &[tag, 0x82, high, low],
    };
    [head, &content].concat()
}
