//! How a message's body ends (RFC 9112 6), decided so that no recipient after
//! us can decide otherwise.
//!
//! Where RFC 9112 6.3 leaves a choice, the ambiguous message is refused:
//! Transfer-Encoding with Content-Length, Transfer-Encoding in HTTP/1.0, and a
//! transfer coding whose list is not exactly `chunked`. An empty list element
//! is legal but refused too.

use ::http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use ::http::{HeaderMap, HeaderValue, Method, StatusCode, Version};

/// How the body of a message is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// No body follows the head.
    None,
    /// This many bytes follow.
    Length(u64),
    /// The chunked transfer coding, which ends itself.
    Chunked,
    /// Everything until the connection closes: responses only, and only then
    /// does an orderly close mean that the body is whole.
    UntilClose,
}

/// Why the end of a body is in doubt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// Content-Length is no decimal number, or two of them differ
    /// (RFC 9112 6.3 rule 5).
    #[error("bad Content-Length \"{0}\"")]
    ContentLength(String),
    /// Content-Length is 2^64 or more.
    #[error("Content-Length \"{0}\" is above 2^64 - 1")]
    TooLong(String),
    /// Transfer-Encoding is malformed, or chunked is not its last coding, or
    /// not only once (6.3 rule 4, 7).
    #[error("bad Transfer-Encoding \"{0}\"")]
    TransferEncoding(String),
    /// A well-formed list of codings that ends in chunked, with one before it
    /// that we do not implement (6.1).
    #[error("transfer codings \"{0}\" are not supported")]
    UnsupportedCoding(String),
    /// Both Transfer-Encoding and Content-Length (6.3 rule 3).
    #[error("both Transfer-Encoding and Content-Length")]
    Both,
    /// Transfer-Encoding in a version below 1.1 (6.1).
    #[error("Transfer-Encoding in HTTP/1.0")]
    OldVersion,
}

impl FramingError {
    /// The status that answers a request with this fault: 501 for a coding we
    /// lack, else 400. The connection closes. A response with any of them
    /// becomes 502 and is not stored.
    #[must_use]
    pub const fn request_status(&self) -> u16 {
        match self {
            Self::UnsupportedCoding(_) => 501,
            Self::ContentLength(_)
            | Self::TooLong(_)
            | Self::TransferEncoding(_)
            | Self::Both
            | Self::OldVersion => 400,
        }
    }
}

/// How the body of a request ends: never [`BodyFraming::UntilClose`].
///
/// # Errors
/// Any [`FramingError`]; see [`FramingError::request_status`].
pub fn request_framing(version: Version, headers: &HeaderMap) -> Result<BodyFraming, FramingError> {
    let framing = delimiter(version, headers)?;
    Ok(framing.unwrap_or(BodyFraming::None))
}

/// How the body of a response ends (RFC 9112 6.3). [`BodyFraming::None`] for
/// HEAD, 1xx, 204, 304 and a successful CONNECT, whatever the fields say; they
/// are checked all the same where they describe a body that GET would give.
///
/// # Errors
/// Any [`FramingError`]: the client gets 502 and nothing is stored.
pub fn response_framing(
    method: &Method,
    status: StatusCode,
    version: Version,
    headers: &HeaderMap,
) -> Result<BodyFraming, FramingError> {
    let is_tunnel = *method == Method::CONNECT && status.is_success();
    if status.is_informational() || status == StatusCode::NO_CONTENT || is_tunnel {
        return Ok(BodyFraming::None);
    }
    let framing = delimiter(version, headers)?;
    if *method == Method::HEAD || status == StatusCode::NOT_MODIFIED {
        return Ok(BodyFraming::None);
    }
    Ok(framing.unwrap_or(BodyFraming::UntilClose))
}

/// What Content-Length says: one number, or several that are written alike.
/// Senders of the message must write it as that one number.
///
/// # Errors
/// [`FramingError::ContentLength`] or [`FramingError::TooLong`].
pub fn content_length(headers: &HeaderMap) -> Result<Option<u64>, FramingError> {
    let mut lines = headers.get_all(CONTENT_LENGTH).iter().peekable();
    if lines.peek().is_none() {
        return Ok(None);
    }
    let mut first: Option<&[u8]> = None;
    for element in lines.flat_map(elements) {
        let digits = !element.is_empty() && element.iter().all(u8::is_ascii_digit);
        if !digits || first.is_some_and(|first| first != element) {
            return Err(FramingError::ContentLength(shown(headers, &CONTENT_LENGTH)));
        }
        first = Some(element);
    }
    let text = std::str::from_utf8(first.unwrap_or_default()).unwrap_or_default();
    let length = text
        .parse()
        .map_err(|_| FramingError::TooLong(text.to_owned()))?;
    Ok(Some(length))
}

/// `None` when no field says anything.
fn delimiter(version: Version, headers: &HeaderMap) -> Result<Option<BodyFraming>, FramingError> {
    if headers.contains_key(TRANSFER_ENCODING) {
        return transfer_encoding(version, headers).map(Some);
    }
    Ok(content_length(headers)?.map(BodyFraming::Length))
}

fn transfer_encoding(version: Version, headers: &HeaderMap) -> Result<BodyFraming, FramingError> {
    let text = || shown(headers, &TRANSFER_ENCODING);
    let lines = headers.get_all(TRANSFER_ENCODING).iter();
    let codings: Vec<&[u8]> = lines.flat_map(elements).collect();
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    let Some((last, before)) = codings.split_last() else {
        return Err(FramingError::TransferEncoding(text()));
    };
    let well_formed = before
        .iter()
        .all(|coding| is_token(coding) && !is_chunked(coding));
    if !is_chunked(last) || !well_formed {
        return Err(FramingError::TransferEncoding(text()));
    }
    if headers.contains_key(CONTENT_LENGTH) {
        return Err(FramingError::Both);
    }
    if version < Version::HTTP_11 {
        return Err(FramingError::OldVersion);
    }
    if !before.is_empty() {
        return Err(FramingError::UnsupportedCoding(text()));
    }
    Ok(BodyFraming::Chunked)
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().copied().all(super::head::is_tchar)
}

/// The comma-separated elements of one line, empty ones too.
fn elements(line: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    line.as_bytes()
        .split(|b| *b == b',')
        .map(<[u8]>::trim_ascii)
}

fn shown(headers: &HeaderMap, name: &::http::HeaderName) -> String {
    let lines = headers.get_all(name).iter();
    let shown: Vec<_> = lines
        .map(|line| String::from_utf8_lossy(line.as_bytes()))
        .collect();
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        map
    }

    fn request(lines: &[(&'static str, &str)]) -> Result<BodyFraming, u16> {
        request_framing(Version::HTTP_11, &fields(lines)).map_err(|e| e.request_status())
    }

    fn response(status: u16, lines: &[(&'static str, &str)]) -> Result<BodyFraming, FramingError> {
        let status = StatusCode::from_u16(status).unwrap();
        response_framing(&Method::GET, status, Version::HTTP_11, &fields(lines))
    }

    const CL: &str = "content-length";
    const TE: &str = "transfer-encoding";

    #[test]
    fn no_field_means_no_request_body_and_a_response_until_close() {
        assert_eq!(request(&[]), Ok(BodyFraming::None));
        assert_eq!(response(200, &[]), Ok(BodyFraming::UntilClose));
    }

    #[test]
    fn content_length_is_one_decimal_number() {
        let good = [
            ("5", 5),
            ("0", 0),
            ("010", 10),
            ("5,5", 5),
            ("5 ", 5),
            ("5 , 5", 5),
            ("18446744073709551615", u64::MAX),
        ];
        for (value, length) in good {
            assert_eq!(
                request(&[(CL, value)]),
                Ok(BodyFraming::Length(length)),
                "{value}"
            );
            assert_eq!(
                response(200, &[(CL, value)]),
                Ok(BodyFraming::Length(length))
            );
        }
        assert_eq!(request(&[(CL, "5"), (CL, "5")]), Ok(BodyFraming::Length(5)));
    }

    #[test]
    fn other_content_lengths_are_refused_rfc_9112_6_3() {
        let bad = [
            "",
            "+5",
            "0x5",
            "5 5",
            "5,6",
            "-1",
            "18446744073709551616",
            "5,",
            ",5",
            "5,05",
            "five",
            "5.0",
            "5;5",
            "\u{e9}",
        ];
        for value in bad {
            assert_eq!(request(&[(CL, value)]), Err(400), "{value:?}");
            assert!(response(200, &[(CL, value)]).is_err(), "{value:?}");
        }
        assert_eq!(request(&[(CL, "5"), (CL, "6")]), Err(400));
        assert!(response(200, &[(CL, "5"), (CL, "6")]).is_err());
    }

    #[test]
    fn transfer_encoding_is_exactly_chunked() {
        for value in ["chunked", "Chunked", " chunked "] {
            assert_eq!(request(&[(TE, value)]), Ok(BodyFraming::Chunked));
            assert_eq!(response(200, &[(TE, value)]), Ok(BodyFraming::Chunked));
        }
    }

    #[test]
    fn other_transfer_encodings_are_refused_rfc_9112_6_1() {
        let bad = [
            "chunked, identity",
            "gzip, chunked, x",
            "chunked, chunked",
            ",chunked",
            "chunked,",
            "xchunked",
            "",
            "identity",
            "gzip",
            "chunked;a=b",
            "g zip, chunked",
            "\"chunked\"",
            "chunked\u{e9}",
            "\u{b}chunked",
        ];
        for value in bad {
            if HeaderValue::from_bytes(value.as_bytes()).is_ok() {
                assert_eq!(request(&[(TE, value)]), Err(400), "{value:?}");
                assert!(response(200, &[(TE, value)]).is_err(), "{value:?}");
            }
        }
        assert_eq!(request(&[(TE, "chunked"), (TE, "chunked")]), Err(400));
        assert_eq!(request(&[(TE, "chunked"), (TE, "identity")]), Err(400));
        assert_eq!(request(&[(TE, "gzip, chunked")]), Err(501));
        assert_eq!(request(&[(TE, "gzip"), (TE, "chunked")]), Err(501));
    }

    #[test]
    fn both_fields_or_an_old_version_are_refused() {
        let both = [(CL, "5"), (TE, "chunked")];
        assert_eq!(request(&both), Err(400));
        assert_eq!(response(200, &both), Err(FramingError::Both));
        let chunked = fields(&[(TE, "chunked")]);
        let old = request_framing(Version::HTTP_10, &chunked);
        assert_eq!(old, Err(FramingError::OldVersion));
    }

    #[test]
    fn responses_without_a_body_have_none_whatever_they_say_rfc_9112_6_3() {
        for status in [100, 103, 204, 304] {
            let framing = response(status, &[(CL, "5")]);
            assert_eq!(framing, Ok(BodyFraming::None), "{status}");
        }
        let get = |method: Method, status: u16| {
            let status = StatusCode::from_u16(status).unwrap();
            response_framing(&method, status, Version::HTTP_11, &fields(&[(CL, "5")]))
        };
        assert_eq!(get(Method::HEAD, 200), Ok(BodyFraming::None));
        assert_eq!(get(Method::CONNECT, 200), Ok(BodyFraming::None));
        assert_eq!(get(Method::CONNECT, 403), Ok(BodyFraming::Length(5)));
        let head = fields(&[(CL, "5,6")]);
        assert!(response_framing(&Method::HEAD, StatusCode::OK, Version::HTTP_11, &head).is_err());
    }

    /// Values of what codings and lengths are made of, and some of garbage.
    fn values() -> impl Strategy<Value = Vec<String>> {
        let piece = proptest::sample::select(vec![
            "chunked",
            "Chunked",
            "identity",
            "gzip",
            "5",
            "05",
            "6",
            "0",
            "18446744073709551616",
            ",",
            " ",
            "\t",
            ";",
            "+",
            "-",
            "\"",
            "x",
            "\u{b}",
            "\u{e9}",
        ]);
        let value = proptest::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat());
        proptest::collection::vec(value, 0..3)
    }

    proptest! {
        #[test]
        fn what_is_taken_can_be_read_in_no_other_way_rfc_9112_6_3(
            codings in values(), lengths in values(), is_old in any::<bool>(),
        ) {
            let mut map = HeaderMap::new();
            let mut append = |name: &::http::HeaderName, values: &[String]| {
                let values = values.iter().filter_map(|v| HeaderValue::from_bytes(v.as_bytes()).ok());
                values.for_each(|value| { map.append(name, value); });
            };
            append(&TRANSFER_ENCODING, &codings);
            append(&CONTENT_LENGTH, &lengths);
            let version = if is_old { Version::HTTP_10 } else { Version::HTTP_11 };
            let lines = |name| map.get_all(name).iter().map(HeaderValue::as_bytes);
            match request_framing(version, &map) {
                Ok(BodyFraming::None) => prop_assert!(map.is_empty()),
                Ok(BodyFraming::Chunked) => {
                    let only: Vec<_> = lines(TRANSFER_ENCODING).collect();
                    prop_assert_eq!(only.len(), 1);
                    prop_assert!(only[0].trim_ascii().eq_ignore_ascii_case(b"chunked"));
                    prop_assert!(!is_old && lines(CONTENT_LENGTH).next().is_none());
                }
                Ok(BodyFraming::Length(length)) => {
                    prop_assert!(lines(TRANSFER_ENCODING).next().is_none());
                    for element in lines(CONTENT_LENGTH).flat_map(|line| line.split(|b| *b == b',')) {
                        let digits = std::str::from_utf8(element.trim_ascii()).unwrap();
                        prop_assert!(digits.bytes().all(|byte| byte.is_ascii_digit()));
                        prop_assert_eq!(digits.parse(), Ok(length));
                    }
                }
                Ok(BodyFraming::UntilClose) => prop_assert!(false, "of a request"),
                Err(error) => prop_assert!([400, 501].contains(&error.request_status())),
            }
        }
    }
}
