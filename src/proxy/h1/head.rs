//! One request's head: tokens and every rule of framing and of the target by
//! `http`.

use super::options::ConnOptions;
use super::write::Asker;
use crate::http::framing;
use crate::http::head::{HeadError, blank_preferences, read_request_head};
use crate::http::target::{self, TargetInput};
use crate::proxy::client::{RequestError, RequestHead, names_option, refuse_expectation};
use bytes::Bytes;
use http::header::{CONNECTION, TE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version};

/// Fields for which there is room at once.
const FIELDS: usize = 12;

/// The name by which HTTP/1.0 clients ask a proxy to keep the connection.
pub(super) const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

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

fn token(cause: impl ToString) -> RequestError {
    RequestError::Token(cause.to_string())
}
