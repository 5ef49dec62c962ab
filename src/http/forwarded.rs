//! The element that a proxy adds to Forwarded (RFC 7239), made of the parts that
//! a record names.

use super::forwarding::{ViaIdentity, append_member};
use super::head::is_tchar;
use ::http::header::FORWARDED;
use ::http::{HeaderMap, Version};
use std::net::IpAddr;

/// How `by` names this server (RFC 7239 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Unknown,
    ServerName,
    Uuid,
    Address,
}

/// How much `connection` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    Compact,
    Standard,
    Full,
}

/// The parts of our element, as `http.insert_forwarded` names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    client: bool,
    by: Option<By>,
    proto: bool,
    host: bool,
    connection: Option<Detail>,
}

impl Parts {
    /// The parts that `text` names, separated by `|`, in either case; unknown
    /// words name none. Of several kinds of `by` or `connection` the last counts,
    /// for a parameter stands in an element once (RFC 7239 4).
    #[must_use]
    pub fn named(text: &str) -> Self {
        let mut parts = Self::default();
        for word in text.split('|') {
            parts.add(&word.trim().to_ascii_lowercase());
        }
        parts
    }

    fn add(&mut self, word: &str) {
        match word {
            "for" => self.client = true,
            "by=unknown" => self.by = Some(By::Unknown),
            "by=servername" => self.by = Some(By::ServerName),
            "by=uuid" => self.by = Some(By::Uuid),
            "by=ip" => self.by = Some(By::Address),
            "proto" => self.proto = true,
            "host" => self.host = true,
            "connection=compact" => self.connection = Some(Detail::Compact),
            "connection=std" => self.connection = Some(Detail::Standard),
            "connection=full" => self.connection = Some(Detail::Full),
            _ => {}
        }
    }
}

/// How a request came to us.
#[derive(Clone, Copy, Debug)]
pub struct Hop<'a> {
    /// The client's address, if it is known.
    pub client: Option<IpAddr>,
    /// Ours, which it came to.
    pub local: IpAddr,
    /// Who we are.
    pub identity: &'a ViaIdentity,
    /// Whether the connection is secured.
    pub secured: bool,
    /// The client's Host.
    pub host: &'a str,
    /// The version of the request as received.
    pub version: Version,
}

/// Appends our element to Forwarded, if it has any part. What stands there
/// already is a client's word; where a quoted text in it does not end, so that
/// it would swallow ours, it goes.
pub fn append(fields: &mut HeaderMap, parts: Parts, hop: &Hop<'_>) {
    let element = hop.element(parts);
    if element.is_empty() {
        return;
    }
    let mut lines = fields.get_all(FORWARDED).iter();
    if !lines.all(|line| ends_its_quotes(line.as_bytes())) {
        fields.remove(FORWARDED);
    }
    append_member(fields, &FORWARDED, &element);
}

/// Whether each quoted text ends (RFC 9110 5.6.4).
fn ends_its_quotes(value: &[u8]) -> bool {
    let mut bytes = value.iter();
    let mut quoted = false;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => quoted = !quoted,
            b'\\' if quoted => drop(bytes.next()),
            _ => {}
        }
    }
    !quoted
}

impl Hop<'_> {
    /// The parts as `name=value`, separated by `;`, in ATS's order.
    fn element(&self, parts: Parts) -> String {
        let pairs = [
            ("for", parts.client.then(|| self.client())),
            ("by", parts.by.map(|by| self.by(by))),
            ("proto", parts.proto.then(|| self.proto().to_owned())),
            ("host", parts.host.then(|| self.host.to_owned())),
            (
                "connection",
                parts.connection.map(|told| self.connection(told)),
            ),
        ];
        let told: Vec<_> = pairs
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", quoted(&value?))))
            .collect();
        told.join(";")
    }

    fn client(&self) -> String {
        self.client.map_or_else(|| "unknown".to_owned(), node)
    }

    fn by(&self, by: By) -> String {
        match by {
            By::Unknown => "unknown".to_owned(),
            By::ServerName => obfuscated(&self.identity.alias),
            By::Uuid => obfuscated(&self.identity.uuid),
            By::Address => node(self.local),
        }
    }

    const fn proto(&self) -> &'static str {
        if self.secured { "https" } else { "http" }
    }

    /// Such as `http`, `http/1.1` or `https/2-tls-tcp-ipv4`.
    fn connection(&self, told: Detail) -> String {
        let mut text = self.proto().to_owned();
        if told >= Detail::Standard {
            text.push_str(match self.version {
                Version::HTTP_10 => "/1.0",
                Version::HTTP_2 => "/2",
                _ => "/1.1",
            });
        }
        if told == Detail::Full {
            text.push_str(if self.secured { "-tls-tcp" } else { "-tcp" });
            let is_v4 = self.local.to_canonical().is_ipv4();
            text.push_str(if is_v4 { "-ipv4" } else { "-ipv6" });
        }
        text
    }
}

/// An address as a node's name (RFC 7239 6.1).
fn node(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// A name that is no address, which begins with `_` (RFC 7239 6.3).
fn obfuscated(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let kept = name.chars().map(|c| if fits(c) { c } else { '_' });
    std::iter::once('_').chain(kept).collect()
}

/// The value as it stands, or between quotes where it is no token.
fn quoted(value: &str) -> String {
    if !value.is_empty() && value.bytes().all(is_tchar) {
        return value.to_owned();
    }
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::http::HeaderValue;

    fn element(parts: &str, hop: &Hop<'_>) -> String {
        let mut fields = HeaderMap::new();
        append(&mut fields, Parts::named(parts), hop);
        let value = fields.get(FORWARDED);
        value.map_or_else(String::new, |value| value.to_str().unwrap().to_owned())
    }

    fn identity() -> ViaIdentity {
        ViaIdentity {
            alias: "edge 1.example".to_owned(),
            uuid: "01-ab".to_owned(),
            product: "Strata".to_owned(),
        }
    }

    fn hop(identity: &ViaIdentity) -> Hop<'_> {
        Hop {
            client: Some("::ffff:192.0.2.1".parse().unwrap()),
            local: "2001:db8::1".parse().unwrap(),
            identity,
            secured: false,
            host: "a.example:8080",
            version: Version::HTTP_11,
        }
    }

    #[test]
    fn each_part_is_told_as_rfc_7239_writes_it() {
        let identity = identity();
        let plain = hop(&identity);
        let secured = Hop {
            client: Some("2001:db8::7".parse().unwrap()),
            local: "192.0.2.9".parse().unwrap(),
            secured: true,
            host: "a.example",
            version: Version::HTTP_2,
            ..plain
        };
        let unknown = Hop {
            client: None,
            version: Version::HTTP_10,
            ..plain
        };
        for (parts, hop, told) in [
            ("none", &plain, ""),
            ("", &plain, ""),
            ("for", &plain, "for=192.0.2.1"),
            ("for", &secured, "for=\"[2001:db8::7]\""),
            ("for", &unknown, "for=unknown"),
            ("by=unknown", &plain, "by=unknown"),
            ("by=servername", &plain, "by=_edge_1.example"),
            ("by=uuid", &plain, "by=_01-ab"),
            ("by=ip", &plain, "by=\"[2001:db8::1]\""),
            ("by=ip|by=uuid", &plain, "by=_01-ab"),
            ("proto", &secured, "proto=https"),
            ("host", &plain, "host=\"a.example:8080\""),
            ("host", &secured, "host=a.example"),
            ("connection=compact", &secured, "connection=https"),
            ("connection=std", &unknown, "connection=\"http/1.0\""),
            (
                "connection=full",
                &plain,
                "connection=\"http/1.1-tcp-ipv6\"",
            ),
            (
                "connection=full",
                &secured,
                "connection=\"https/2-tls-tcp-ipv4\"",
            ),
            ("Proto | FOR", &plain, "for=192.0.2.1;proto=http"),
        ] {
            assert_eq!(element(parts, hop), told, "{parts}");
        }
    }

    #[test]
    fn what_a_client_says_stays_before_ours_unless_it_would_swallow_it() {
        let identity = identity();
        for (before, after) in [
            ("for=1.2.3.4", "for=1.2.3.4, for=192.0.2.1"),
            ("for=\"a\\\"b\"", "for=\"a\\\"b\", for=192.0.2.1"),
            ("for=\"", "for=192.0.2.1"),
            ("for=\"a\\\"", "for=192.0.2.1"),
            ("for=\"a\\", "for=192.0.2.1"),
        ] {
            let mut fields = HeaderMap::new();
            fields.insert(FORWARDED, HeaderValue::from_str(before).unwrap());
            append(&mut fields, Parts::named("for"), &hop(&identity));
            assert_eq!(fields[FORWARDED], after, "{before}");
        }
    }
}
