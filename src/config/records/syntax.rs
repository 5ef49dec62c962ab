//! The forms that the text of a STRING must have.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::config::ip_range::IpRange;

/// A form of text that a record needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `ADDRESS:PORT`, or `off`.
    Listen,
    /// Addresses and networks.
    Networks,
    /// Addresses of servers, with or without a port.
    NameServers,
    /// HTTP statuses.
    Statuses,
    /// HTTP statuses, each perhaps with `=` and seconds.
    StatusTable,
    /// Names of HTTP fields.
    Fields,
    /// Host names and addresses, without ports.
    Hosts,
    /// Parts of an element of Forwarded.
    Forwarded,
    /// An absolute URL of http or https.
    Url,
}

impl Syntax {
    /// Whether the text has this form.
    pub(super) fn fits(self, text: &str) -> bool {
        match self {
            Self::Listen => text == "off" || text.parse::<SocketAddr>().is_ok(),
            Self::Networks => each(text, |word| IpRange::parse(word).is_ok()),
            Self::NameServers => each(text, is_name_server),
            Self::Statuses => each(text, is_status),
            Self::StatusTable => each(text, is_status_row),
            Self::Fields => each(text, is_field),
            Self::Hosts => text.split_ascii_whitespace().all(is_host),
            Self::Forwarded => text.split('|').all(is_forwarded_part),
            Self::Url => is_url(text),
        }
    }
}

/// Whether each word of a list fits.
fn each(text: &str, fits: impl FnMut(&str) -> bool) -> bool {
    let words = text.split([' ', '\t', ',']);
    words.filter(|word| !word.is_empty()).all(fits)
}

fn is_name_server(word: &str) -> bool {
    word.parse::<IpAddr>().is_ok() || word.parse::<SocketAddr>().is_ok()
}

fn is_status(word: &str) -> bool {
    word.parse()
        .is_ok_and(|status: u16| (100..600).contains(&status))
}

fn is_status_row(word: &str) -> bool {
    match word.split_once('=') {
        None => is_status(word),
        Some((status, seconds)) => is_status(status) && is_seconds(seconds),
    }
}

fn is_seconds(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_digit()) && word.parse::<u32>().is_ok()
}

/// RFC 9110 5.6.2.
fn is_field(word: &str) -> bool {
    word.bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

fn is_host(word: &str) -> bool {
    let address = word.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
    match address {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => word
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)),
    }
}

fn is_forwarded_part(word: &str) -> bool {
    const PARTS: [&str; 11] = [
        "none",
        "for",
        "by=unknown",
        "by=servername",
        "by=uuid",
        "by=ip",
        "proto",
        "host",
        "connection=compact",
        "connection=std",
        "connection=full",
    ];
    PARTS.contains(&&*word.trim().to_ascii_lowercase())
}

fn is_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    host.is_some_and(|host| !host.is_empty()) && text.bytes().all(|b| b.is_ascii_graphic())
}

impl fmt::Display for Syntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listen => "ADDRESS:PORT, or off",
            Self::Networks => "a list of networks",
            Self::NameServers => "a list of ADDRESS or ADDRESS:PORT",
            Self::Statuses => "a list of 100 to 599",
            Self::StatusTable => "a list of 100 to 599, each perhaps with =SECONDS",
            Self::Fields => "a list of field names",
            Self::Hosts => "host names without ports, between blanks",
            Self::Forwarded => "parts of Forwarded, a bar between two",
            Self::Url => "http://… or https://…",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(syntax: Syntax, fits: &[&str], others: &[&str]) {
        for text in fits {
            assert!(syntax.fits(text), "{text} is {syntax}");
        }
        for text in others {
            assert!(!syntax.fits(text), "{text} is not {syntax}");
        }
    }

    #[test]
    fn each_form_takes_what_it_names_and_nothing_else() {
        hold(
            Syntax::Listen,
            &["off", "127.0.0.1:8083", "[::1]:0"],
            &["8083", "127.0.0.1", "localhost:1", "::1:70000x"],
        );
        hold(
            Syntax::Networks,
            &["127.0.0.0/8 ::1", "10.0.0.1,10.0.0.5-10.0.0.9"],
            &["10.0.0.0/33", "all", "10.0.0.1 x"],
        );
        hold(
            Syntax::NameServers,
            &["9.9.9.9 [::1]:53,::1", "10.0.0.1:5353"],
            &["dns.example", "9.9.9.9:"],
        );
        hold(
            Syntax::Statuses,
            &["404", "404, 500 599"],
            &["99", "600", "404 5xx"],
        );
        hold(
            Syntax::StatusTable,
            &["404", "404=10, 500 599=0"],
            &[
                "99=1",
                "404=",
                "404=-1",
                "404=+1",
                "404=5s",
                "=5",
                "404=99999999999",
            ],
        );
        hold(
            Syntax::Fields,
            &["CDN-Cache-Control", "", "a, b c"],
            &["a:", "a b=c", "é"],
        );
        hold(
            Syntax::Hosts,
            &["cache.example", "a b_c.example 10.0.0.1 [::1]"],
            &["a/b", "a,b", "a:8083", "::1", "[a]"],
        );
        hold(
            Syntax::Forwarded,
            &["none", "for|by=ip|proto", "For | connection=full"],
            &["", "for,proto", "by", "by=me", "for|"],
        );
        hold(
            Syntax::Url,
            &["http://a", "https://a.example/x?y#z"],
            &[
                "zzz",
                "/x",
                "http://",
                "http:///x",
                "http://a/ b",
                "ftp://a/",
            ],
        );
    }
}
