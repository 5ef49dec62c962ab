//! One request's head: tokens and every rule of framing and of the target by
//! `http`.

use super::error::RequestError;
use super::options::ConnOptions;
use super::write::Asker;
use crate::http::framing::{self, BodyFraming};
use crate::http::head::{HeadError, blank_preferences, read_request_head};
use crate::http::target::{self, RequestUrl, Target, TargetInput};
use crate::http::upgrade::{Offer, UpgradeInput};
use bytes::Bytes;
use http::header::{CONNECTION, EXPECT, IF_MODIFIED_SINCE, IF_NONE_MATCH, TE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version};

/// Fields for which there is room at once.
const FIELDS: usize = 12;

/// The name by which HTTP/1.0 clients ask a proxy to keep the connection.
pub(super) const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// A request whose head has passed every check.
#[derive(Clone, Debug)]
pub struct RequestHead {
    /// Any token; unknown methods pass through the proxy.
    pub method: Method,
    /// HTTP/1.0 or HTTP/1.1.
    pub version: Version,
    /// What is asked for, by the form it was asked in.
    pub target: Target,
    /// Every field as received, hop-by-hop ones too.
    pub headers: HeaderMap,
    /// How the body ends.
    pub framing: BodyFraming,
    /// Bytes of the head, its last CRLF included.
    pub bytes: u64,
}

impl RequestHead {
    /// The effective URL; none for CONNECT.
    #[must_use]
    pub fn url(&self) -> Option<&RequestUrl> {
        self.target.url()
    }

    /// Whether a body follows, be it an empty one.
    #[must_use]
    pub fn has_body(&self) -> bool {
        self.framing != BodyFraming::None
    }

    /// Whether the client has a copy, and asks for another response only if
    /// that one is not current.
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        let conditions = [IF_NONE_MATCH, IF_MODIFIED_SINCE];
        conditions
            .iter()
            .any(|name| self.headers.contains_key(name))
    }

    /// What of `allowed` the connection may switch to ([`Offer::of`]).
    #[must_use]
    pub fn upgrade(&self, allowed: &str) -> Option<Offer> {
        let input = UpgradeInput {
            method: &self.method,
            version: self.version,
            framing: self.framing,
            headers: &self.headers,
        };
        Offer::of(&input, allowed)
    }

    /// Whether the client waits for a 100 before it sends its body. An
    /// HTTP/1.0 client can't, whatever it says (RFC 9110 10.1.1).
    #[must_use]
    pub fn expects_continue(&self) -> bool {
        self.version == Version::HTTP_11 && self.has_body() && self.headers.contains_key(EXPECT)
    }
}

/// Reads a head that ends in an empty line. Garbage in a preference leaves the
/// request without that preference.
pub(super) fn parse(
    bytes: &Bytes,
    options: &ConnOptions,
) -> Result<(RequestHead, Asker), RequestError> {
    match parse_strictly(bytes, options) {
        Err(RequestError::Head(HeadError::FieldValue(_))) => {
            parse_strictly(&blank_preferences(bytes).into(), options)
        }
        parsed => parsed,
    }
}

fn parse_strictly(
    bytes: &Bytes,
    options: &ConnOptions,
) -> Result<(RequestHead, Asker), RequestError> {
    let mut headers = HeaderMap::with_capacity(FIELDS);
    let line = read_request_head(bytes, &options.head, |name, value| {
        append(&mut headers, bytes, (name, value))
    })?;
    let method = Method::from_bytes(line.method).map_err(token)?;
    let version = match line.minor {
        0 => Version::HTTP_10,
        _ => Version::HTTP_11,
    };
    let target = target::parse(&TargetInput {
        method: &method,
        target: line.target,
        version,
        headers: &headers,
        scheme: options.scheme,
    })?;
    let framing = framing::request_framing(version, &headers)?;
    refuse_expectation(version, &headers)?;
    let asker = asker(&method, version, &headers);
    let head = RequestHead {
        method,
        version,
        target,
        headers,
        framing,
        bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
    };
    Ok((head, asker))
}

/// Values are slices of the head's bytes, not copies.
fn append(
    headers: &mut HeaderMap,
    bytes: &Bytes,
    (name, value): (&[u8], &[u8]),
) -> Result<(), RequestError> {
    let name = HeaderName::from_bytes(name).map_err(token)?;
    let value = HeaderValue::from_maybe_shared(bytes.slice_ref(value)).map_err(token)?;
    headers.try_append(name, value).map_err(token)?;
    Ok(())
}

/// The only expectation there is, is 100-continue (RFC 9110 10.1.1).
fn refuse_expectation(version: Version, headers: &HeaderMap) -> Result<(), RequestError> {
    let mut lines = headers.get_all(EXPECT).iter();
    let known = lines.all(|line| line.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    if known || version == Version::HTTP_10 {
        return Ok(());
    }
    Err(RequestError::Expectation)
}

fn asker(method: &Method, version: Version, headers: &HeaderMap) -> Asker {
    let minor = u8::from(version == Version::HTTP_11);
    let proxy_connection = headers.contains_key(&PROXY_CONNECTION);
    let says = |option| {
        names_option(headers, &CONNECTION, option)
            || (!headers.contains_key(CONNECTION)
                && names_option(headers, &PROXY_CONNECTION, option))
    };
    Asker {
        minor,
        is_head: *method == Method::HEAD,
        keep_alive: !says("close") && (minor == 1 || says("keep-alive")),
        proxy_connection,
        takes_trailers: names_option(headers, &TE, "trailers"),
    }
}

/// Whether a comma-separated list holds a token, in any of the field's lines.
fn names_option(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let lines = headers.get_all(name).iter();
    let mut members = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    members.any(|member| member.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

fn token(cause: impl ToString) -> RequestError {
    RequestError::Token(cause.to_string())
}
