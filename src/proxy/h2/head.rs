//! One request's head: from what the library has decoded to what a transaction
//! reads, by the same rules as HTTP/1 (RFC 9113 8.3).
//!
//! The library has refused names with capitals, pseudo-fields that are missing,
//! repeated, unknown or late, fields of the connection, TE other than trailers,
//! and values with CR, LF or NUL. What is left to see is what an HTTP/1 origin
//! could misunderstand: who is asked, by which path, with how long a body.

use crate::base::prng::system_u128;
use crate::http::framing::{self, BodyFraming};
use crate::http::head::{HeadError, HeadLimits};
use crate::http::target::{self, Authority, Target, TargetError, TargetInput};
use crate::http::upgrade;
use crate::proxy::client::{RequestError, RequestHead, names_option, refuse_expectation};
use crate::proxy::h1::ConnOptions;
use h2::ext::Protocol;
use http::header::{CONNECTION, COOKIE, HOST, SEC_WEBSOCKET_KEY, TE, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};

/// What RFC 9113 6.5.2 adds to the length of each field.
const FIELD_OVERHEAD: usize = 32;

/// Meant for an HTTP/1 server that is asked to switch (RFC 7540 3.2.1).
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// What a request says about the response it can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    is_head: bool,
    is_websocket: bool,
    /// `te: trailers` was sent.
    pub(super) takes_trailers: bool,
}

impl Ask {
    /// One of whom nothing is known.
    pub(super) const UNKNOWN: Self = Self {
        is_head: false,
        is_websocket: false,
        takes_trailers: false,
    };

    /// Whether the response has no content, whatever its fields say.
    pub(super) const fn is_head(self) -> bool {
        self.is_head
    }

    /// The status that the client is told. To an extended CONNECT, 2xx says that
    /// the tunnel is there: the origin's 101 does, and no other answer may
    /// (RFC 8441 5).
    pub(super) fn told(self, status: StatusCode) -> StatusCode {
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return StatusCode::OK;
        }
        if self.is_websocket && status.is_success() {
            return StatusCode::BAD_GATEWAY;
        }
        status
    }
}

/// What a head is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The connection's: its scheme, and bounds on a head.
    pub(super) conn: ConnOptions,
    /// Bytes of fields, as RFC 9113 6.5.2 counts them.
    pub(super) header_list: usize,
    /// Whether WebSockets are passed on.
    pub(super) websocket: bool,
}

/// Reads a head; `ends` says that no content follows.
pub(super) fn read(
    mut parts: Parts,
    ends: bool,
    rules: &Rules,
) -> Result<(RequestHead, Ask), RequestError> {
    let bytes = refuse_size(&parts, rules)?;
    refuse_blanks(&parts.headers)?;
    let is_websocket = refuse_protocol(&parts, rules.websocket)?;
    parts.headers.remove(HTTP2_SETTINGS);
    join_cookies(&mut parts.headers)?;
    let target = target(&mut parts, is_websocket, &rules.conn)?;
    let framing = framing(&parts, ends, is_websocket)?;
    refuse_expectation(Version::HTTP_2, &parts.headers)?;
    let ask = Ask {
        is_head: parts.method == Method::HEAD,
        is_websocket,
        takes_trailers: names_option(&parts.headers, &TE, "trailers"),
    };
    let mut method = parts.method;
    if is_websocket {
        method = Method::GET;
        ask_to_switch(&mut parts.headers);
    }
    let head = RequestHead {
        method,
        version: Version::HTTP_2,
        target,
        headers: parts.headers,
        framing,
        bytes,
    };
    Ok((head, ask))
}

/// The head's bytes as HTTP/1 would write them, if it is within bounds.
fn refuse_size(parts: &Parts, rules: &Rules) -> Result<u64, HeadError> {
    let HeadLimits {
        bytes,
        fields,
        target,
    } = rules.conn.head;
    let size = |name: &HeaderName, value: &HeaderValue| name.as_str().len() + value.len();
    let text: usize = parts
        .headers
        .iter()
        .map(|(name, value)| size(name, value))
        .sum();
    let (lines, path) = (parts.headers.len(), parts.uri.to_string().len());
    if path > target {
        return Err(HeadError::TargetTooLong(path));
    }
    if lines > fields {
        return Err(HeadError::TooManyFields(fields));
    }
    let limit = bytes.min(rules.header_list);
    if text + path + lines * FIELD_OVERHEAD > limit {
        return Err(HeadError::TooLong(limit));
    }
    let line = parts.method.as_str().len() + path + " HTTP/2\r\n\r\n".len();
    let written = text + lines * ": \r\n".len() + line;
    Ok(u64::try_from(written).unwrap_or(u64::MAX))
}

/// A value that begins or ends with a blank is malformed (RFC 9113 8.2.1): in
/// HTTP/1 it would be another value.
fn refuse_blanks(headers: &HeaderMap) -> Result<(), RequestError> {
    let mut fields = headers.iter();
    match fields.find(|(_, value)| value.as_bytes().trim_ascii() != value.as_bytes()) {
        Some((name, _)) => Err(RequestError::Blank(name.clone())),
        None => Ok(()),
    }
}

/// Whether an extended CONNECT asks for a WebSocket, the one protocol there is
/// for it (RFC 8441 4).
fn refuse_protocol(parts: &Parts, websocket: bool) -> Result<bool, RequestError> {
    match parts.extensions.get::<Protocol>().map(Protocol::as_str) {
        None => Ok(false),
        Some("websocket") if websocket => Ok(true),
        Some(other) => Err(RequestError::Protocol(other.to_owned())),
    }
}

/// Several lines are one field cut up (RFC 9113 8.2.3); an HTTP/1 server reads
/// only one.
fn join_cookies(headers: &mut HeaderMap) -> Result<(), RequestError> {
    let mut lines = headers.get_all(COOKIE).iter();
    if lines.nth(1).is_none() {
        return Ok(());
    }
    let lines: Vec<_> = headers
        .get_all(COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    let joined = HeaderValue::from_bytes(&lines.join(&b"; "[..]));
    let joined = joined.map_err(|error| RequestError::Token(error.to_string()))?;
    headers.insert(COOKIE, joined);
    Ok(())
}

/// The target. `:authority` is who is asked; Host may say the same again, or
/// stand in its place (RFC 9113 8.3.1). The scheme is the connection's, for that
/// is what there is to know of it.
fn target(
    parts: &mut Parts,
    is_websocket: bool,
    conn: &ConnOptions,
) -> Result<Target, RequestError> {
    if let Some(scheme) = parts.uri.scheme_str()
        && !matches!(scheme, "http" | "https")
    {
        return Err(TargetError::Scheme(scheme.to_owned()).into());
    }
    let authority = parts
        .uri
        .authority()
        .map(|authority| authority.as_str().to_owned());
    set_host(&mut parts.headers, authority.as_deref(), conn)?;
    if parts.method == Method::CONNECT && !is_websocket {
        let target = authority.unwrap_or_default();
        return parse(&Method::CONNECT, &target, &parts.headers, conn);
    }
    let method = if is_websocket {
        &Method::GET
    } else {
        &parts.method
    };
    let path = parts.uri.path_and_query().map_or("", |path| path.as_str());
    if !path.starts_with('/') && path != "*" {
        return Err(TargetError::Form(method.clone()).into());
    }
    parse(method, path, &parts.headers, conn)
}

fn parse(
    method: &Method,
    target: &str,
    headers: &HeaderMap,
    conn: &ConnOptions,
) -> Result<Target, RequestError> {
    let input = TargetInput {
        method,
        target: target.as_bytes(),
        version: Version::HTTP_2,
        headers,
        scheme: conn.scheme,
    };
    Ok(target::parse(&input)?)
}

/// Makes Host say what `:authority` says. Both must name the same server.
fn set_host(
    headers: &mut HeaderMap,
    authority: Option<&str>,
    conn: &ConnOptions,
) -> Result<(), RequestError> {
    let Some(authority) = authority else {
        return Ok(());
    };
    let named = Authority::parse(authority, conn.scheme)?;
    let hosts: Vec<_> = headers.get_all(HOST).iter().collect();
    if hosts.len() > 1 {
        return Err(TargetError::SeveralHosts(hosts.len()).into());
    }
    if let Some(host) = hosts.first() {
        let host = String::from_utf8_lossy(host.as_bytes());
        if Authority::parse(host.trim(), conn.scheme)? != named {
            return Err(RequestError::Authority(
                authority.to_owned(),
                host.into_owned(),
            ));
        }
    }
    let host = HeaderValue::from_str(authority);
    let host = host.map_err(|error| RequestError::Token(error.to_string()))?;
    headers.insert(HOST, host);
    Ok(())
}

/// How the body ends: the library holds it to a Content-Length.
fn framing(parts: &Parts, ends: bool, is_websocket: bool) -> Result<BodyFraming, RequestError> {
    let length = framing::content_length(&parts.headers)?;
    let is_tunnel = is_websocket || parts.method == Method::CONNECT;
    Ok(match length {
        _ if is_tunnel => BodyFraming::None,
        Some(bytes) => BodyFraming::Length(bytes),
        None if ends => BodyFraming::None,
        None => BodyFraming::Chunked,
    })
}

/// Asks an HTTP/1 origin for what the extended CONNECT asks of us: by an
/// Upgrade, with a key that HTTP/2 has no need of (RFC 8441 5).
fn ask_to_switch(headers: &mut HeaderMap) {
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    if let Ok(key) = HeaderValue::try_from(upgrade::websocket_key(system_u128().to_le_bytes())) {
        headers.insert(SEC_WEBSOCKET_KEY, key);
    }
}
