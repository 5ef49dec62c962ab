//! The FROM and TO of a rule.

use super::lexer::Word;
use super::pattern;
use super::value::{FromUrl, HostMatch, HostPart, ToUrl};
use crate::base::scheme::Scheme;
use crate::config::ConfigError;
use crate::config::nearest::did_you_mean;
use std::net::Ipv6Addr;

/// The longest host name, in bytes.
const MAX_HOST: usize = 255;

/// Schemes of ATS that we refuse by name.
const UNSUPPORTED: &[&str] = &["tunnel", "file", "ftp", "http+unix", "h2"];

/// A piece of a word, with its distance from the word's begin. All of the
/// word is ASCII by then, so bytes are columns.
#[derive(Clone, Copy)]
struct Piece<'w, 't> {
    word: &'w Word<'t>,
    text: &'t str,
    at: usize,
}

impl<'w, 't> Piece<'w, 't> {
    fn error(&self, what: impl Into<String>) -> ConfigError {
        self.word.place.right(self.at).error(self.text, what)
    }

    /// Cut before byte `at` of the piece.
    fn cut(self, at: usize) -> (Self, Self) {
        let (head, tail) = self.text.split_at_checked(at).unwrap_or((self.text, ""));
        let tail_at = self.at + head.len();
        (
            Self { text: head, ..self },
            Self {
                text: tail,
                at: tail_at,
                ..self
            },
        )
    }

    fn skip(self, bytes: usize) -> Self {
        self.cut(bytes).1
    }
}

/// A URL in pieces.
struct Pieces<'w, 't> {
    scheme: Option<Scheme>,
    /// None when the URL is a bare path.
    authority: Option<Piece<'w, 't>>,
    /// Without the leading `/`.
    path: String,
}

/// What the authority of a FROM takes.
struct Hosts {
    host: HostMatch,
    port: Option<u16>,
    /// Every host.
    every: bool,
    captures: usize,
}

impl Hosts {
    /// Those of a bare path.
    const fn any() -> Self {
        Self {
            host: HostMatch::Any,
            port: None,
            every: true,
            captures: 0,
        }
    }
}

/// Reads a rule's FROM; `regex` says that its host is a pattern. Gives the
/// URL and the number of capture groups.
pub(super) fn parse_from(word: &Word<'_>, regex: bool) -> Result<(FromUrl, usize), ConfigError> {
    let pieces = split(word)?;
    let Hosts {
        host,
        port,
        every,
        captures,
    } = match pieces.authority {
        None if regex => {
            let error = word
                .place
                .error(word.text, "a regex_ rule needs a host to match");
            return Err(helped(
                error,
                "write http://PATTERN/…, or use the plain rule",
            ));
        }
        None => Hosts::any(),
        Some(authority) if regex => from_pattern(authority)?,
        Some(authority) => from_host(authority)?,
    };
    let from = FromUrl {
        scheme: pieces.scheme,
        host,
        every_port: every && port.is_none(),
        port,
        path: pieces.path,
    };
    Ok((from, captures))
}

/// Reads a rule's TO, whose ws and wss are the http and https that a WebSocket
/// begins as. `captures` is the number of FROM's capture groups; none
/// for a rule without a pattern, in whose TO a `$` is an error.
pub(super) fn parse_to(word: &Word<'_>, captures: Option<usize>) -> Result<ToUrl, ConfigError> {
    let pieces = split(word)?;
    let Some(authority) = pieces.authority else {
        let error = word.place.error(word.text, "TO has no host");
        return Err(helped(error, "write http://HOST/PATH"));
    };
    let Some(scheme) = pieces.scheme else {
        let error = word.place.error(word.text, "TO has no scheme");
        return Err(helped(error, "write http://HOST/PATH"));
    };
    let (host, port) = host_and_port(authority)?;
    let host = match captures {
        Some(captures) if host.text.contains('$') => host_parts(host, captures)?,
        Some(_) | None => vec![HostPart::Text(exact_host(host)?.into())],
    };
    Ok(ToUrl {
        scheme: scheme.connection(),
        host,
        port,
        path: pieces.path,
    })
}

fn helped(error: ConfigError, help: &str) -> ConfigError {
    ConfigError {
        help: Some(help.to_owned()),
        ..error
    }
}

fn split<'w, 't>(word: &'w Word<'t>) -> Result<Pieces<'w, 't>, ConfigError> {
    all_visible_ascii(word)?;
    let text = Piece {
        word,
        text: word.text,
        at: 0,
    };
    let (scheme, rest) = scheme_of(text)?;
    let Some(rest) = rest else {
        return Ok(Pieces {
            scheme: None,
            authority: None,
            path: path_of(text)?,
        });
    };
    let end = rest.text.find('/').unwrap_or(rest.text.len());
    let (authority, path) = rest.cut(end);
    if let Some(at) = authority.text.find('@') {
        return Err(authority
            .cut(at + 1)
            .0
            .error("userinfo has no meaning in a rule"));
    }
    Ok(Pieces {
        scheme,
        authority: Some(authority),
        path: path_of(path)?,
    })
}

fn all_visible_ascii(word: &Word<'_>) -> Result<(), ConfigError> {
    let odd = |c: &char| !c.is_ascii_graphic();
    let Some(at) = word.text.chars().position(|c| odd(&c)) else {
        return Ok(());
    };
    let found: String = word.text.chars().filter(odd).take(1).collect();
    let what = "a URL holds visible ASCII only";
    let error = word.place.right(at).error(&found, what);
    let help = "percent-encode the path, write the host in punycode";
    Err(helped(error, help))
}

/// The scheme, and what follows it unless that is a bare path.
fn scheme_of<'w, 't>(
    text: Piece<'w, 't>,
) -> Result<(Option<Scheme>, Option<Piece<'w, 't>>), ConfigError> {
    if text.text.starts_with("//") {
        return Ok((None, Some(text.skip(2))));
    }
    if text.text.starts_with('/') {
        return Ok((None, None));
    }
    let Some(end) = text.text.find("://") else {
        return without_scheme(text);
    };
    let (name, rest) = text.cut(end);
    let scheme = Scheme::of_rule(name.text);
    match scheme {
        Some(scheme) => Ok((Some(scheme), Some(rest.skip(3)))),
        None => Err(scheme_error(name)),
    }
}

fn without_scheme<'w, 't>(
    text: Piece<'w, 't>,
) -> Result<(Option<Scheme>, Option<Piece<'w, 't>>), ConfigError> {
    let head = text.text.split(':').next().unwrap_or_default();
    if Scheme::of_rule(head).is_some() && head.len() < text.text.len() {
        let error = text.error("a scheme without //");
        return Err(helped(error, &format!("write {head}://…")));
    }
    Ok((None, Some(text)))
}

fn scheme_error(name: Piece<'_, '_>) -> ConfigError {
    let lower = name.text.to_ascii_lowercase();
    if UNSUPPORTED.contains(&lower.as_str()) {
        let error = name.error(format!("scheme {lower} is not supported yet"));
        return helped(error, "use http or https");
    }
    ConfigError {
        help: did_you_mean(&lower, ["http", "https", "ws", "wss"]),
        ..name.error("unknown scheme")
    }
}

fn path_of(path: Piece<'_, '_>) -> Result<String, ConfigError> {
    if let Some(at) = path.text.find(['?', '#']) {
        let error = path
            .skip(at)
            .error("a rule's URL has no query and no fragment");
        return Err(helped(error, "leave it out: the request's query is kept"));
    }
    Ok(path.text.strip_prefix('/').unwrap_or(path.text).to_owned())
}

/// Splits `host`, `host:port`, `[v6]` and `[v6]:port`.
fn host_and_port<'w, 't>(
    authority: Piece<'w, 't>,
) -> Result<(Piece<'w, 't>, Option<u16>), ConfigError> {
    let host_end = match authority.text.rfind(']') {
        Some(bracket) => bracket + 1,
        None => authority.text.find(':').unwrap_or(authority.text.len()),
    };
    let (host, rest) = authority.cut(host_end);
    if rest.text.is_empty() {
        return Ok((host, None));
    }
    if rest.text.matches(':').count() > 1 {
        let error = authority.error("more than one : in host and port");
        return Err(helped(error, "write an IPv6 address in brackets"));
    }
    Ok((host, Some(port_of(rest)?)))
}

/// `text` begins with the colon.
fn port_of(text: Piece<'_, '_>) -> Result<u16, ConfigError> {
    let digits = text.skip(1);
    let number = text.text.strip_prefix(':').filter(|d| all_digits(d));
    match number.and_then(|d| d.parse::<u16>().ok()) {
        Some(port) if port > 0 => Ok(port),
        Some(_) | None => Err(digits.error("a port is a number from 1 to 65535")),
    }
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn exact_host(host: Piece<'_, '_>) -> Result<String, ConfigError> {
    if host.text.is_empty() {
        return Err(host.word.place.right(host.at).error("", "no host here"));
    }
    if host.text.len() > MAX_HOST {
        return Err(host.error(format!("a host is at most {MAX_HOST} bytes long")));
    }
    if let Some(inner) = host.text.strip_prefix('[') {
        let address = inner.strip_suffix(']').map(str::parse::<Ipv6Addr>);
        return match address {
            Some(Ok(address)) => Ok(format!("[{address}]")),
            Some(Err(_)) | None => Err(host.error("no IPv6 address in the brackets")),
        };
    }
    host_letters(host)?;
    Ok(host.text.to_ascii_lowercase())
}

/// Whether the text is a host as URLs hold it: a name of at most 255 bytes, an
/// IPv4 address, or an IPv6 address in brackets.
#[must_use]
pub fn is_host(text: &str) -> bool {
    if let Some(inner) = text.strip_prefix('[') {
        let address = inner.strip_suffix(']').map(str::parse::<Ipv6Addr>);
        return matches!(address, Some(Ok(_)));
    }
    !text.is_empty() && text.len() <= MAX_HOST && text.bytes().all(is_host_byte)
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn host_letters(host: Piece<'_, '_>) -> Result<(), ConfigError> {
    let Some(at) = host.text.bytes().position(|b| !is_host_byte(b)) else {
        return Ok(());
    };
    let wrong = host.skip(at).cut(1).0;
    let error = wrong.error("no host name holds this character");
    Err(match wrong.text {
        "$" => helped(error, "captures need a regex_ rule"),
        "*" | "(" | "[" | "\\" | "^" => helped(error, "write a pattern as a regex_ rule"),
        _ => error,
    })
}

fn from_host(authority: Piece<'_, '_>) -> Result<Hosts, ConfigError> {
    let (host, port) = host_and_port(authority)?;
    Ok(Hosts {
        host: HostMatch::Exact(exact_host(host)?),
        port,
        every: false,
        captures: 0,
    })
}

fn from_pattern(authority: Piece<'_, '_>) -> Result<Hosts, ConfigError> {
    let (host, port) = pattern_and_port(authority)?;
    if host.text.is_empty() {
        return Err(host
            .word
            .place
            .right(host.at)
            .error("", "no host pattern here"));
    }
    let hir = pattern::checked(host.text).map_err(|fault| {
        let place = host.word.place.right(host.at + fault.offset);
        ConfigError {
            help: fault.help.map(str::to_owned),
            ..place.error(&fault.token, fault.what)
        }
    })?;
    Ok(Hosts {
        host: HostMatch::Pattern(host.text.to_owned()),
        port,
        every: pattern::takes_every_host(&hir),
        captures: hir.properties().explicit_captures_len(),
    })
}

/// A colon may belong to the pattern, as in `(?:a|b)`: the last one begins
/// the port unless a group or class closes after it.
fn pattern_and_port<'w, 't>(
    authority: Piece<'w, 't>,
) -> Result<(Piece<'w, 't>, Option<u16>), ConfigError> {
    let Some(colon) = authority.text.rfind(':') else {
        return Ok((authority, None));
    };
    let (host, port) = authority.cut(colon);
    if port.text.contains([')', ']']) {
        return Ok((authority, None));
    }
    let port = port_of(port).map_err(|e| helped(e, "only the host is a pattern"))?;
    Ok((host, Some(port)))
}

fn host_parts(host: Piece<'_, '_>, captures: usize) -> Result<Vec<HostPart>, ConfigError> {
    let mut parts = Vec::new();
    let mut rest = host;
    while let Some(dollar) = rest.text.find('$') {
        let (text, reference) = rest.cut(dollar);
        push_text(&mut parts, text)?;
        let (reference, tail) = reference.cut(2);
        parts.push(HostPart::Capture(capture_number(reference, captures)?));
        rest = tail;
    }
    push_text(&mut parts, rest)?;
    Ok(parts)
}

fn push_text(parts: &mut Vec<HostPart>, text: Piece<'_, '_>) -> Result<(), ConfigError> {
    host_letters(text)?;
    if !text.text.is_empty() {
        parts.push(HostPart::Text(text.text.to_ascii_lowercase().into()));
    }
    Ok(())
}

fn capture_number(reference: Piece<'_, '_>, captures: usize) -> Result<u8, ConfigError> {
    let digit = reference
        .text
        .as_bytes()
        .get(1)
        .filter(|d| d.is_ascii_digit());
    let number = digit.map(|d| d - b'0').ok_or_else(|| {
        let error = reference.error("$ is followed by no digit");
        helped(error, "name a capture group: $0 to $9")
    })?;
    if usize::from(number) > captures {
        let what = format!("FROM has {captures} capture groups, so there is no ${number}");
        return Err(reference.error(what));
    }
    Ok(number)
}
