//! What an OCSP response says of a certificate (RFC 6960 4.2), as far as it must
//! be known to staple it: whether it is one, of this certificate, and till when.
//!
//! Its signature is the client's to verify, who has the issuer's key at hand.

use x509_parser::asn1_rs::{Any, Class, Tag};
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

/// What the content of a response is (id-pkix-ocsp-basic).
const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];

/// Why a response is not stapled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StapleError {
    /// Its file is not there, or not for us.
    #[error("it can't be read: {0}")]
    Unreadable(String),
    /// It breaks the grammar, or is none.
    #[error("it is no OCSP response: {0}")]
    Malformed(String),
    /// The responder gave no answer.
    #[error("it holds an error of its responder, number {0} (RFC 6960 4.2.1)")]
    Unanswered(u8),
    /// It is about other certificates.
    #[error("it is of another certificate")]
    Other,
    /// The certificate is revoked, or the responder knows nothing of it.
    #[error("it does not say that the certificate is good")]
    NotGood,
    /// Its time is over.
    #[error("its time is over since second {0} of 1970")]
    Expired(u64),
}

/// Elements of DER, one behind the other.
struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    fn next(&mut self) -> Result<Any<'a>, StapleError> {
        let next = Any::from_der(self.0);
        let (rest, element) = next.map_err(|error| StapleError::Malformed(error.to_string()))?;
        self.0 = rest;
        Ok(element)
    }

    /// Those within the next one, a SEQUENCE.
    fn sequence(&mut self) -> Result<Self, StapleError> {
        let element = self.next()?;
        match element.tag() {
            Tag::Sequence => Ok(Self(element.data)),
            other => Err(StapleError::Malformed(format!("{other} for a sequence"))),
        }
    }
}

/// The second since 1970 to which a response holds for the certificate of that
/// serial number, in the bytes of DER; without an end, the last there is.
///
/// # Errors
/// [`StapleError`], if it is not to be stapled at second `now`.
pub(super) fn until(response: &[u8], serial: &[u8], now: u64) -> Result<u64, StapleError> {
    let mut all = responses(response)?;
    while !all.0.is_empty() {
        let mut one = all.sequence()?;
        if serial_of(one.sequence()?)? == serial {
            return end_of(one, now);
        }
    }
    Err(StapleError::Other)
}

/// The single responses of a basic one.
fn responses(response: &[u8]) -> Result<Elements<'_>, StapleError> {
    let mut outer = Elements(response).sequence()?;
    match outer.next()?.data {
        [0] => {}
        [error] => return Err(StapleError::Unanswered(*error)),
        _ => return Err(StapleError::Malformed("its status is no number".to_owned())),
    }
    let mut bytes = Elements(outer.next()?.data).sequence()?;
    if bytes.next()?.data != BASIC {
        return Err(StapleError::Malformed("its kind is not known".to_owned()));
    }
    let mut basic = Elements(bytes.next()?.data).sequence()?;
    let mut data = basic.sequence()?;
    // Version, responder and time stand before them, and are no sequences.
    loop {
        let field = data.next()?;
        if field.class() == Class::Universal && field.tag() == Tag::Sequence {
            return Ok(Elements(field.data));
        }
    }
}

/// The last of what identifies a certificate.
fn serial_of(mut identity: Elements<'_>) -> Result<&[u8], StapleError> {
    for _algorithm_name_and_key in 0..3 {
        identity.next()?;
    }
    Ok(identity.next()?.data)
}

/// The end of a single response, of which its identity was taken.
fn end_of(mut one: Elements<'_>, now: u64) -> Result<u64, StapleError> {
    if one.next()?.tag() != Tag(0) {
        return Err(StapleError::NotGood);
    }
    let _this_update = one.next()?;
    let next = if one.0.is_empty() {
        None
    } else {
        Some(one.next()?).filter(|field| field.tag() == Tag(0))
    };
    let Some(next) = next else {
        return Ok(u64::MAX);
    };
    let time = ASN1Time::from_der(next.data);
    let (_, time) = time.map_err(|error| StapleError::Malformed(error.to_string()))?;
    match u64::try_from(time.timestamp()).unwrap_or(0) {
        end if end <= now => Err(StapleError::Expired(end)),
        end => Ok(end),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const SERIAL: &[u8] = &[0x12, 0x34];
    /// The seconds of `20330518033320Z`.
    const END: u64 = 2_000_000_000;

    /// An element: its tag's byte, and what is within.
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

    fn single(serial: &[u8], status: u8, next: &str) -> Vec<u8> {
        let sha1 = element(0x30, &[&[6, 1, 42]]);
        let hash = [4, 1, 0];
        let identity = element(0x30, &[&sha1, &hash, &hash, &element(2, &[serial])]);
        let time = |text: &str| element(0x18, &[text.as_bytes()]);
        let next = match next {
            "" => Vec::new(),
            next => element(0xa0, &[&time(next)]),
        };
        let this = time("20200101000000Z");
        element(0x30, &[&identity, &[status, 0], &this, &next])
    }

    /// A response that the certificate is good to the end of that time.
    pub(in crate::proxy::tls) fn response(serial: &[u8], next: &str) -> Vec<u8> {
        of(&[
            single(&[9], 0x80, "20200102000000Z"),
            single(serial, 0x80, next),
        ])
    }

    fn of(singles: &[Vec<u8>]) -> Vec<u8> {
        let responder = element(0xa2, &[&[4, 1, 0]]);
        let produced = element(0x18, &[b"20200101000000Z"]);
        let all = element(0x30, &[&singles.concat()]);
        let data = element(0x30, &[&responder, &produced, &all]);
        let basic = element(0x30, &[&data, &element(0x30, &[&[6, 1, 42]]), &[3, 1, 0]]);
        let bytes = [element(6, &[BASIC]), element(4, &[&basic])].concat();
        let bytes = element(0xa0, &[&element(0x30, &[&bytes])]);
        element(0x30, &[&[10, 1, 0], &bytes])
    }

    #[test]
    fn a_response_holds_to_its_end() {
        let whole = response(SERIAL, "20330518033320Z");
        assert_eq!(until(&whole, SERIAL, END - 1), Ok(END));
        assert_eq!(until(&whole, SERIAL, END), Err(StapleError::Expired(END)));
        assert_eq!(until(&response(SERIAL, ""), SERIAL, END), Ok(u64::MAX));
    }

    #[test]
    fn what_a_client_would_refuse_is_not_stapled() {
        let end = "20330518033320Z";
        assert_eq!(
            until(&response(&[1], end), SERIAL, 0),
            Err(StapleError::Other)
        );
        for status in [0xa1, 0x82] {
            let bad = of(&[single(SERIAL, status, end)]);
            assert_eq!(until(&bad, SERIAL, 0), Err(StapleError::NotGood));
        }
        let refused = element(0x30, &[&[10, 1, 3]]);
        assert_eq!(until(&refused, SERIAL, 0), Err(StapleError::Unanswered(3)));
        for bytes in [&b""[..], b"a response", b"\x30\x00"] {
            let error = until(bytes, SERIAL, 0).unwrap_err();
            assert!(matches!(error, StapleError::Malformed(_)), "{error}");
        }
    }

    #[test]
    fn a_response_that_is_cut_anywhere_is_refused() {
        let whole = response(SERIAL, "20330518033320Z");
        for cut in 0..whole.len() {
            assert!(until(&whole[..cut], SERIAL, 0).is_err(), "{cut}");
        }
    }
}
