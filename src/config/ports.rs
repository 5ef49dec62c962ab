//! `proxy.config.http.server_ports`: the ports to listen on.
//!
//! Descriptors stand between blanks or commas; each is tokens joined by `:`,
//! in any order and case: a port, and `ipv4`, `ipv6`, `ip-in=ADDRESS`, `ssl`, `pp`,
//! `proto=http;http/2`, with `[` `]` around the colons of an address. ATS's other tokens are refused by
//! name until they are supported; a token nobody knows is left out with a
//! warning, and so is a descriptor without a port.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::list::{Item, items};
use super::nearest::did_you_mean;
use super::place::{Place, shortened};
use super::{ConfigError, Findings};

/// The port where the list names none.
const DEFAULT_PORT: u16 = 8080;

/// The address family of a port that names no address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// All IPv4 addresses.
    #[default]
    V4,
    /// All IPv6 addresses, and no IPv4 ones.
    V6,
}

/// One port to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The address to bind; `None` is any of the family.
    pub addr: Option<IpAddr>,
    /// The family; that of the address, where there is one.
    pub family: Family,
    /// The port; 0 lets the system choose.
    pub port: u16,
    /// Whether clients speak TLS to it.
    pub tls: bool,
    /// Whether balancers introduce clients to it by the PROXY protocol.
    pub introduced: bool,
    /// Whether clients may speak HTTP/2 to it, beside HTTP/1 (`proto`). Where it
    /// is not said, they may over TLS, and in clear as the records have it.
    pub http2: Option<bool>,
}

impl Port {
    /// The address to bind.
    #[must_use]
    pub fn socket_addr(&self) -> SocketAddr {
        let any = match self.family {
            Family::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Family::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        SocketAddr::new(self.addr.unwrap_or(any), self.port)
    }
}

/// All ports to listen on, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortList {
    /// In the order of the list; never empty.
    pub ports: Vec<Port>,
}

impl PortList {
    /// Reads a list that begins at `place`.
    #[must_use]
    pub fn parse(value: &str, place: &Place) -> (Self, Findings) {
        let mut found = Findings::default();
        let mut ports: Vec<Port> = Vec::new();
        for item in items(value, place) {
            let Some(descriptor) = Descriptor::read(&item, &mut found) else {
                continue;
            };
            match descriptor.port(&item) {
                Ok(port) => add(&mut ports, port, &item, &mut found),
                Err(warning) => found.warnings.push(warning),
            }
        }
        if ports.is_empty() {
            ports.push(Descriptor::plain(DEFAULT_PORT));
        }
        (Self { ports }, found)
    }
}

/// Adds a port, unless its address is listed before.
fn add(ports: &mut Vec<Port>, port: Port, item: &Item<'_>, found: &mut Findings) {
    let at = port.socket_addr();
    let same = ports
        .iter()
        .find(|other| at.port() != 0 && other.socket_addr() == at);
    match same {
        None => ports.push(port),
        Some(other) if *other == port => {
            let what = "this port is listed before; it is left out here";
            found.warnings.push(item.place.error(item.text, what));
        }
        Some(_) => {
            let what = "this port is listed before with other tokens";
            found.errors.push(item.place.error(item.text, what));
        }
    }
}

/// Tokens with a value, as `key=value`, `key-value` or `keyvalue`.
const VALUED: [&str; 5] = ["ip-resolve", "ip-out", "ip-in", "proto", "fd"];

/// What the tokens that are not supported yet would do.
const UNSUPPORTED: [(&str, &str); 13] = [
    ("allow-plain", "plain HTTP on a TLS port"),
    ("blind", "blind tunnels"),
    ("compressed", "compressed ports"),
    ("fd", "a listening socket that is handed over"),
    ("ip-out", "a source address for origins"),
    ("ip-resolve", "an order of address families"),
    ("mptcp", "Multipath TCP"),
    ("plugin", "plugins"),
    ("quic", "HTTP/3"),
    ("tr-full", "transparency"),
    ("tr-in", "transparency"),
    ("tr-out", "transparency"),
    ("tr-pass", "transparency"),
];

/// What the tokens of a descriptor have said so far.
#[derive(Default)]
struct Descriptor {
    port: Option<u16>,
    addr: Option<IpAddr>,
    family: Family,
    tls: bool,
    introduced: bool,
    http2: Option<bool>,
}

impl Descriptor {
    /// A port of every IPv4 address.
    fn plain(port: u16) -> Port {
        Port {
            addr: None,
            family: Family::V4,
            port,
            tls: false,
            introduced: false,
            http2: None,
        }
    }

    /// Reads the tokens of an item; `None` when one of them is refused.
    fn read(item: &Item<'_>, found: &mut Findings) -> Option<Self> {
        let mut descriptor = Self::default();
        let mut refused = false;
        for (place, token) in tokens(item) {
            match descriptor.token(token) {
                Ok(()) => {}
                Err(Fault::Unknown(help)) => {
                    let mut warning = place.error(token, "unknown token; it is ignored");
                    warning.help = help;
                    found.warnings.push(warning);
                }
                Err(Fault::Refused(what)) => {
                    refused = true;
                    found.errors.push(place.error(token, what));
                }
            }
        }
        (!refused).then_some(descriptor)
    }

    fn token(&mut self, token: &str) -> Result<(), Fault> {
        if token.starts_with(|c: char| c.is_ascii_digit()) {
            self.port = Some(port_number(token).map_err(Fault::Refused)?);
            return Ok(());
        }
        let lower = token.to_ascii_lowercase();
        match lower.as_str() {
            "ipv4" => self.family = Family::V4,
            "ipv6" => self.family = Family::V6,
            "ssl" => self.tls = true,
            "pp" => self.introduced = true,
            other => return self.valued(other),
        }
        Ok(())
    }

    /// A token with a value, or one of those that are not supported.
    fn valued(&mut self, token: &str) -> Result<(), Fault> {
        let (key, value) = key_value(token);
        match (key, value) {
            ("ip-in", value) => self.addr = Some(address(value)?),
            ("proto", protocols) => self.http2 = Some(has_http2(protocols)?),
            (key, _) => return Err(unsupported(key)),
        }
        Ok(())
    }

    /// The port that the tokens describe.
    fn port(self, item: &Item<'_>) -> Result<Port, ConfigError> {
        let Some(port) = self.port else {
            let what = "no port; it is left out";
            return Err(item.place.error(item.text, what));
        };
        let family = match self.addr {
            Some(IpAddr::V4(_)) => Family::V4,
            Some(IpAddr::V6(_)) => Family::V6,
            None => self.family,
        };
        Ok(Port {
            addr: self.addr,
            family,
            port,
            tls: self.tls,
            introduced: self.introduced,
            http2: self.http2,
        })
    }
}

/// Why a token is not taken.
enum Fault {
    /// Nobody knows it; with a better one.
    Unknown(Option<String>),
    /// It must not be ignored.
    Refused(String),
}

/// The tokens of a descriptor: what stands between colons outside brackets.
fn tokens<'a>(item: &Item<'a>) -> Vec<(Place, &'a str)> {
    let mut depth = 0_u32;
    let between = |c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ':' && depth == 0
    };
    let mut place = item.place.clone();
    let mut tokens = Vec::new();
    for token in item.text.split(between) {
        if !token.is_empty() {
            tokens.push((place.clone(), token));
        }
        place = place.right(token.chars().count() + 1);
    }
    tokens
}

/// A token's key and value; a token without a value is all key.
fn key_value(token: &str) -> (&str, &str) {
    for key in VALUED {
        if let Some(value) = token.strip_prefix(key) {
            let value = value.strip_prefix(['=', '-']).unwrap_or(value);
            return (key, value);
        }
    }
    (token, "")
}

/// A token that ATS knows is refused, another one is unknown.
fn unsupported(key: &str) -> Fault {
    match UNSUPPORTED.iter().find(|(name, _)| *name == key) {
        Some((name, does)) => Fault::Refused(format!("{name} ({does}) is not supported yet")),
        None => {
            let known = UNSUPPORTED.iter().map(|(name, _)| *name);
            Fault::Unknown(did_you_mean(
                key,
                known.chain(["ip-in", "ipv4", "ipv6", "pp", "proto", "ssl"]),
            ))
        }
    }
}

/// Whether HTTP/2 is one of the protocols, between semicolons; HTTP/1 must be.
fn has_http2(protocols: &str) -> Result<bool, Fault> {
    let (mut http1, mut http2) = (false, false);
    for name in protocols.split(';') {
        match name {
            "http" | "http/0.9" | "http/1.0" | "http/1.1" => http1 = true,
            "http2" | "http/2" | "http/2.0" | "h2" => http2 = true,
            other => {
                let other = shortened(other);
                let what = format!("\"{other}\" is no protocol of a port: http and http/2 are");
                return Err(Fault::Refused(what));
            }
        }
    }
    if !http1 {
        let what = "http/2 without http is not supported: write proto=http;http/2";
        return Err(Fault::Refused(what.to_owned()));
    }
    Ok(http2)
}

/// An address, with or without brackets.
fn address(text: &str) -> Result<IpAddr, Fault> {
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    bare.unwrap_or(text).parse().map_err(|_| {
        let text = shortened(text);
        Fault::Refused(format!(
            "\"{text}\" is no address; an IPv6 one stands in [ ]"
        ))
    })
}

/// A port's number, 0 included.
///
/// # Errors
/// A clause that says why it is none.
pub(super) fn port_number(text: &str) -> Result<u16, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits {
        return Err(format!("\"{}\" is no port", shortened(text)));
    }
    text.parse()
        .map_err(|_| format!("port {} is above {}", shortened(text), u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: &str) -> (Vec<String>, Findings) {
        let place = Place {
            file: "records.config".into(),
            line: 1,
            column: 43,
        };
        let (list, found) = PortList::parse(value, &place);
        let shown = list.ports.iter().map(|p| p.socket_addr().to_string());
        (shown.collect(), found)
    }

    fn clean(value: &str) -> Vec<String> {
        let (ports, found) = parse(value);
        assert_eq!(found, Findings::default(), "{value}");
        ports
    }

    #[test]
    fn ports_stand_between_blanks_or_commas() {
        assert_eq!(clean("8080"), ["0.0.0.0:8080"]);
        assert_eq!(clean("8080 8080:ipv6"), ["0.0.0.0:8080", "[::]:8080"]);
        assert_eq!(
            clean("80,81 , 82"),
            ["0.0.0.0:80", "0.0.0.0:81", "0.0.0.0:82"]
        );
        assert_eq!(clean("0"), ["0.0.0.0:0"]);
    }

    #[test]
    fn tokens_come_in_any_order_case_and_spelling() {
        for value in [
            "8080:ip-in=127.0.0.1",
            "ip-in-127.0.0.1:8080",
            "IP-IN127.0.0.1:8080:IPv4",
            "proto=http:ipv6:8080:ip-in=[127.0.0.1]",
        ] {
            assert_eq!(clean(value), ["127.0.0.1:8080"], "{value}");
        }
        assert_eq!(clean("ip-in=[::1]:8080:ipv4"), ["[::1]:8080"]);
    }

    #[test]
    fn an_empty_list_is_port_8080() {
        assert_eq!(clean(""), ["0.0.0.0:8080"]);
        let (ports, found) = parse("ipv6");
        assert_eq!(ports, ["0.0.0.0:8080"]);
        assert!(found.is_usable());
        assert_eq!(found.warnings[0].what, "no port; it is left out");
    }

    #[test]
    fn what_is_not_supported_yet_is_refused_by_name() {
        for (token, _) in UNSUPPORTED {
            let (_, found) = parse(&format!("80 8443:{token}"));
            assert_eq!(found.errors.len(), 1, "{token}");
            assert!(found.errors[0].what.starts_with(token), "{token}");
            assert_eq!(found.errors[0].column, 51, "{token}");
        }
        let (_, found) = parse("8443:TR-IN fd=3:80 ip-out=10.0.0.1:80 80:proto=http2");
        assert_eq!(found.errors.len(), 4);
        assert_eq!(
            found.errors[0].to_string(),
            "records.config:1:48: tr-in (transparency) is not supported yet (at \"TR-IN\")"
        );
    }

    #[test]
    fn protocols_stand_between_semicolons() {
        let place = Place {
            file: "records.config".into(),
            line: 1,
            column: 1,
        };
        for (token, http2) in [
            ("ssl", None),
            ("proto=http", Some(false)),
            ("proto=http/1.0;http/1.1", Some(false)),
            ("proto=http/2;http", Some(true)),
            ("proto-HTTP;HTTP2", Some(true)),
        ] {
            let (list, found) = PortList::parse(&format!("443:{token}"), &place);
            assert_eq!(found, Findings::default(), "{token}");
            assert_eq!(list.ports.first().unwrap().http2, http2, "{token}");
        }
        for (token, what) in [
            ("proto=http/2", "http/2 without http is not supported"),
            ("proto=http;spdy", "\"spdy\" is no protocol of a port"),
            ("proto=", "\"\" is no protocol of a port"),
        ] {
            let (_, found) = PortList::parse(&format!("443:{token}"), &place);
            assert!(found.errors[0].what.starts_with(what), "{token}");
        }
    }

    #[test]
    fn a_token_nobody_knows_is_ignored_with_the_nearest_one() {
        let (ports, found) = parse("8080:ipv5");
        assert_eq!(ports, ["0.0.0.0:8080"]);
        assert!(found.is_usable());
        assert_eq!(
            found.warnings[0].to_string(),
            "records.config:1:48: unknown token; it is ignored (at \"ipv5\"); did you mean ipv4?"
        );
    }

    #[test]
    fn bad_numbers_and_addresses_are_errors() {
        for (value, what) in [
            ("70000", "port 70000 is above 65535"),
            ("8o8o", "\"8o8o\" is no port"),
            (
                "80:ip-in=::1",
                "\"\" is no address; an IPv6 one stands in [ ]",
            ),
            (
                "80:ip-in=local",
                "\"local\" is no address; an IPv6 one stands in [ ]",
            ),
            (
                "80:ip-in=[::1",
                "\"[::1\" is no address; an IPv6 one stands in [ ]",
            ),
        ] {
            let (_, found) = parse(value);
            assert_eq!(found.errors[0].what, what, "{value}");
            assert_eq!(found.warnings, [], "{value}");
        }
    }

    #[test]
    fn a_port_listed_twice_is_listened_on_once() {
        let (ports, found) = parse("8080 8080:ipv4");
        assert_eq!(ports, ["0.0.0.0:8080"]);
        assert_eq!(found.warnings.len(), 1);
    }

    #[test]
    fn a_port_speaks_tls_when_it_says_so_and_never_both() {
        let place = Place {
            file: "records.config".into(),
            line: 1,
            column: 1,
        };
        let (list, found) = PortList::parse("80 SSL:443 [::1]:0:ssl:ipv6", &place);
        assert!(found.is_usable());
        let tls: Vec<_> = list.ports.iter().map(|port| port.tls).collect();
        assert_eq!(tls, [false, true, true]);
        let (_, found) = parse("443 443:ssl");
        let what = "this port is listed before with other tokens";
        assert_eq!(found.errors[0].what, what);
    }
}
