//! The request-target and Host, and the effective URL they give
//! (RFC 9112 3.2 and 3.3, RFC 9110 4.2 and 7.2).
//!
//! Stricter than the grammar in three ways, all on the safe side: a host name
//! holds only letters, digits, `-`, `.`, `_` and `~` (no percent-encoding and
//! no sub-delims, which no resolvable name holds); an IP literal is IPv6
//! without a zone; userinfo is refused (RFC 9110 4.2.4). More lenient in one:
//! path and query may hold any visible ASCII but `#`, `<`, `>` and the grave
//! accent, since clients in the wild send `|`, `{` and the like. Those four are
//! refused, for the origin side's HTTP library can't send them, and to encode
//! them would be another URL (RFC 9112 3.2). Percent-encoding is never folded.

use crate::base::scheme::Scheme;
use ::http::header::HOST;
use ::http::{HeaderMap, Method, Version};
use std::fmt::Write;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// The longest host name, in bytes.
const MAX_HOST: usize = 255;

/// Why a request names no URL that we can serve; each is answered with 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// An HTTP/1.1 request without Host (RFC 9112 3.2).
    #[error("no Host in an HTTP/1.1 request")]
    NoHost,
    /// More than one Host field line (RFC 9112 3.2).
    #[error("{0} Host field lines")]
    SeveralHosts(usize),
    /// A host that is empty, too long or holds a byte that no host holds.
    #[error("bad host \"{0}\"")]
    Host(String),
    /// A port that is missing where it must be, or no number in 1..=65535.
    #[error("bad port \"{0}\"")]
    Port(String),
    /// `user@` or `user:password@` before the host (RFC 9110 4.2.4).
    #[error("userinfo in the target")]
    UserInfo,
    /// A byte that no request-target holds: a control, a space, non-ASCII, or
    /// one of `#`, `<`, `>` and the grave accent.
    #[error("byte 0x{byte:02x} at offset {offset} of the target")]
    Byte {
        /// The byte.
        byte: u8,
        /// Where it is, from 0.
        offset: usize,
    },
    /// A target in none of the four forms, or in a form that its method forbids.
    #[error("a target of the wrong form for {0}")]
    Form(Method),
    /// An absolute URL of a scheme other than http and https.
    #[error("scheme \"{0}\" is neither http nor https")]
    Scheme(String),
}

/// What the target is read from.
#[derive(Clone, Copy, Debug)]
pub struct TargetInput<'a> {
    /// The request's method.
    pub method: &'a Method,
    /// The request-target as received.
    pub target: &'a [u8],
    /// The request's version: only HTTP/1.0 may omit Host.
    pub version: Version,
    /// The request's fields, of which Host is read.
    pub headers: &'a HeaderMap,
    /// The scheme of the connection, for a target that names none.
    pub scheme: Scheme,
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    /// Lower case; an IPv6 address in brackets and in its canonical text.
    pub host: String,
    /// In 1..=65535.
    pub port: u16,
}

impl Authority {
    /// Reads `host` or `host:port`; without a port, it is the scheme's.
    ///
    /// # Errors
    /// [`TargetError::UserInfo`], [`TargetError::Host`] or [`TargetError::Port`].
    pub fn parse(text: &str, scheme: Scheme) -> Result<Self, TargetError> {
        parse_authority(text, scheme)
    }
}

/// A request-target by its form (RFC 9112 3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `/path`: the effective URL has the authority of Host, or no host at all
    /// in an HTTP/1.0 request without one.
    Origin(RequestUrl),
    /// `http://host/path`: Host was checked but does not count (3.2.2).
    Absolute(RequestUrl),
    /// `host:port` of CONNECT.
    Authority(Authority),
    /// `*` of OPTIONS, or OPTIONS for an absolute URL without path, which goes
    /// to the origin as `*` (3.2.4). The URL's path is `/` and has no meaning.
    Asterisk(RequestUrl),
}

impl Target {
    /// The effective URL; none for CONNECT.
    #[must_use]
    pub const fn url(&self) -> Option<&RequestUrl> {
        match self {
            Self::Origin(url) | Self::Absolute(url) | Self::Asterisk(url) => Some(url),
            Self::Authority(_) => None,
        }
    }
}

/// An absolute http or https URL: the effective URL of a request.
///
/// Scheme and host are in lower case, a default port is left out of the text,
/// path and query are byte for byte as received. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestUrl {
    text: Arc<str>,
    scheme: Scheme,
    port: u16,
    host_end: usize,
    path_start: usize,
    query_start: Option<usize>,
}

impl RequestUrl {
    /// Reads an absolute URL, for instance one that an operator names.
    ///
    /// # Errors
    /// As for an absolute-form request-target.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let text = checked_text(text.as_bytes())?;
        let (scheme, authority, rest) = split_absolute(text, &Method::GET)?;
        Ok(Self::assemble(
            scheme,
            &parse_authority(authority, scheme)?,
            rest,
        ))
    }

    /// `rest` is empty, or begins with `/` or `?`.
    fn assemble(scheme: Scheme, authority: &Authority, rest: &str) -> Self {
        let mut text = String::with_capacity(authority.host.len() + rest.len() + 16);
        text.push_str(scheme.as_str());
        text.push_str("://");
        text.push_str(&authority.host);
        let host_end = text.len();
        if authority.port != scheme.default_port() {
            let written = write!(text, ":{}", authority.port);
            written.expect("writing to a String can't fail");
        }
        let path_start = text.len();
        if !rest.starts_with('/') {
            text.push('/');
        }
        text.push_str(rest);
        let query_start = text
            .bytes()
            .skip(path_start)
            .position(|b| b == b'?')
            .map(|at| path_start + at + 1);
        Self {
            text: text.into(),
            scheme,
            port: authority.port,
            host_end,
            path_start,
            query_start,
        }
    }

    /// The whole URL, in the canonical text described at the type.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The same text, shared.
    #[must_use]
    pub fn shared_text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// `http` or `https`; `ws` or `wss` after [`Self::as_websocket`].
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        self.scheme.as_str()
    }

    /// The scheme as a value.
    #[must_use]
    pub const fn scheme_kind(&self) -> Scheme {
        self.scheme
    }

    /// The host in lower case, IPv6 in brackets; empty only for an HTTP/1.0
    /// request in origin-form without Host.
    #[must_use]
    pub fn host(&self) -> &str {
        let start = self.scheme().len() + 3;
        self.text.get(start..self.host_end).unwrap_or_default()
    }

    /// The port, named or the scheme's default.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The same URL as a WebSocket's: of scheme ws or wss.
    #[must_use]
    pub fn as_websocket(&self) -> Self {
        let authority = Authority {
            host: self.host().to_owned(),
            port: self.port,
        };
        Self::assemble(self.scheme.websocket(), &authority, self.path_and_query())
    }

    /// `host`, or `host:port` when the port is not the scheme's default: what a
    /// Host field says for this URL.
    #[must_use]
    pub fn authority(&self) -> &str {
        let start = self.scheme().len() + 3;
        self.text.get(start..self.path_start).unwrap_or_default()
    }

    /// The path; begins with `/`.
    #[must_use]
    pub fn path(&self) -> &str {
        let end = self.query_start.map_or(self.text.len(), |at| at - 1);
        self.text.get(self.path_start..end).unwrap_or_default()
    }

    /// What follows the first `?`; `Some("")` when nothing does.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.query_start.and_then(|at| self.text.get(at..))
    }

    /// Path and query as an origin-form target has them.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        self.text.get(self.path_start..).unwrap_or_default()
    }

    /// Whether both URLs have one origin: scheme, host and port
    /// (RFC 9110 4.3.1).
    #[must_use]
    pub fn same_origin(&self, other: &Self) -> bool {
        (self.scheme, self.host(), self.port) == (other.scheme, other.host(), other.port)
    }
}

/// Reads the request-target, with Host where the target has no authority.
///
/// Host is checked whatever the form: at most one line, a valid authority, and
/// present unless the version is below 1.1.
///
/// # Errors
/// Any [`TargetError`]; the answer is 400 and the connection closes.
pub fn parse(input: &TargetInput<'_>) -> Result<Target, TargetError> {
    let text = checked_text(input.target)?;
    let host = host_field(input)?;
    if *input.method == Method::CONNECT {
        return authority_form(text).map(Target::Authority);
    }
    if text == "*" {
        return asterisk_form(input, host);
    }
    if text.starts_with('/') {
        let url = RequestUrl::assemble(input.scheme, &or_no_host(host, input.scheme), text);
        return Ok(Target::Origin(url));
    }
    absolute_form(text, input.method)
}

fn asterisk_form(input: &TargetInput<'_>, host: Option<Authority>) -> Result<Target, TargetError> {
    if *input.method != Method::OPTIONS {
        return Err(TargetError::Form(input.method.clone()));
    }
    let authority = or_no_host(host, input.scheme);
    let url = RequestUrl::assemble(input.scheme, &authority, "/");
    Ok(Target::Asterisk(url))
}

fn absolute_form(text: &str, method: &Method) -> Result<Target, TargetError> {
    let (scheme, authority, rest) = split_absolute(text, method)?;
    let authority = parse_authority(authority, scheme)?;
    let url = RequestUrl::assemble(scheme, &authority, rest);
    if rest.is_empty() && *method == Method::OPTIONS {
        return Ok(Target::Asterisk(url));
    }
    Ok(Target::Absolute(url))
}

fn authority_form(text: &str) -> Result<Authority, TargetError> {
    refuse_userinfo(text)?;
    let (host, port) = split_port(text)?;
    let port = port.ok_or_else(|| TargetError::Port(String::new()))?;
    Ok(Authority {
        host: parse_host(host)?,
        port: parse_port(port)?,
    })
}

fn or_no_host(host: Option<Authority>, scheme: Scheme) -> Authority {
    host.unwrap_or(Authority {
        host: String::new(),
        port: scheme.default_port(),
    })
}

fn host_field(input: &TargetInput<'_>) -> Result<Option<Authority>, TargetError> {
    let mut lines = input.headers.get_all(HOST).iter();
    let Some(line) = lines.next() else {
        return if input.version < Version::HTTP_11 {
            Ok(None)
        } else {
            Err(TargetError::NoHost)
        };
    };
    let others = lines.count();
    if others > 0 {
        return Err(TargetError::SeveralHosts(others + 1));
    }
    let shown = || TargetError::Host(String::from_utf8_lossy(line.as_bytes()).into_owned());
    let text = line.to_str().map_err(|_| shown())?;
    parse_authority(text.trim_matches([' ', '\t']), input.scheme).map(Some)
}

/// The target as text, when every byte of it may stand in a target.
fn checked_text(target: &[u8]) -> Result<&str, TargetError> {
    let bad = target
        .iter()
        .position(|b| !b.is_ascii_graphic() || b"#<>`".contains(b));
    if let Some(offset) = bad {
        let byte = target.get(offset).copied().unwrap_or_default();
        return Err(TargetError::Byte { byte, offset });
    }
    Ok(std::str::from_utf8(target).unwrap_or_default())
}

/// Splits `scheme://authority[rest]`; the rest is empty or begins with `/` or
/// `?`.
fn split_absolute<'a>(
    text: &'a str,
    method: &Method,
) -> Result<(Scheme, &'a str, &'a str), TargetError> {
    let (scheme, after) = text
        .split_once("://")
        .ok_or_else(|| TargetError::Form(method.clone()))?;
    let end = after.find(['/', '?']).unwrap_or(after.len());
    let (authority, rest) = after.split_at(end);
    let known = Scheme::named(scheme).ok_or_else(|| TargetError::Scheme(scheme.to_owned()))?;
    Ok((known, authority, rest))
}

/// Reads `host[:port]`; no port and an empty one mean the scheme's default
/// (RFC 9110 4.2.1).
fn parse_authority(text: &str, scheme: Scheme) -> Result<Authority, TargetError> {
    refuse_userinfo(text)?;
    let (host, port) = split_port(text)?;
    let port = match port {
        None | Some("") => scheme.default_port(),
        Some(port) => parse_port(port)?,
    };
    let host = parse_host(host)?;
    Ok(Authority { host, port })
}

fn refuse_userinfo(text: &str) -> Result<(), TargetError> {
    if text.contains('@') {
        return Err(TargetError::UserInfo);
    }
    Ok(())
}

/// Splits off what follows the host's colon; the brackets stay on an address.
fn split_port(text: &str) -> Result<(&str, Option<&str>), TargetError> {
    if !text.starts_with('[') {
        return Ok(match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        });
    }
    let bad = || TargetError::Host(text.to_owned());
    let end = text.find(']').ok_or_else(bad)?;
    let (host, rest) = text.split_at(end + 1);
    match rest.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if rest.is_empty() => Ok((host, None)),
        None => Err(bad()),
    }
}

fn parse_port(text: &str) -> Result<u16, TargetError> {
    let bad = || TargetError::Port(text.to_owned());
    if text.len() > 5 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    text.parse().ok().filter(|port| *port != 0).ok_or_else(bad)
}

fn parse_host(text: &str) -> Result<String, TargetError> {
    if let Some(inner) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        let address: Option<Ipv6Addr> = inner.parse().ok();
        return address
            .map(|address| format!("[{address}]"))
            .ok_or_else(|| TargetError::Host(text.to_owned()));
    }
    if !is_host_name(text) {
        return Err(TargetError::Host(text.to_owned()));
    }
    Ok(text.to_ascii_lowercase())
}

/// No label may be empty but the last: a trailing dot names the root.
fn is_host_name(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    let labels = text.strip_suffix('.').unwrap_or(text);
    text.len() <= MAX_HOST
        && text.bytes().all(allowed)
        && labels.split('.').all(|label| !label.is_empty())
}

#[cfg(test)]
mod tests;
