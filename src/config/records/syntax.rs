//! The forms that the text of a STRING must have.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

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
}

impl Syntax {
    /// Whether the text has this form.
    pub(super) fn fits(self, text: &str) -> bool {
        match self {
            Self::Listen => text == "off" || text.parse::<SocketAddr>().is_ok(),
            Self::Networks => each(text, |word| IpRange::parse(word).is_ok()),
            Self::NameServers => each(text, is_name_server),
            Self::Statuses => each(text, is_status),
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

impl fmt::Display for Syntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listen => "ADDRESS:PORT, or off",
            Self::Networks => "a list of networks",
            Self::NameServers => "a list of ADDRESS or ADDRESS:PORT",
            Self::Statuses => "a list of 100 to 599",
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
    }
}
