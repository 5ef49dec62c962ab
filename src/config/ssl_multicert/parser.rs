//! From the file's bytes to its entries.

use super::{CertificateFiles, Destination, Entry, MulticertFile, TicketRule};
use crate::config::lines::{Line, decode, lines};
use crate::config::nearest::did_you_mean;
use crate::config::place::{Place, shortened};
use crate::config::{ConfigError, Findings};
use std::net::{IpAddr, SocketAddr};

const CERTIFICATES: &str = "ssl_cert_name";
const KEYS: &str = "ssl_key_name";
const CHAINS: &str = "ssl_ca_name";
const STAPLES: &str = "ssl_ocsp_name";
const DESTINATION: &str = "dest_ip";
const TICKETS: &str = "ssl_ticket_enabled";
const TICKET_NUMBER: &str = "ssl_ticket_number";

/// The most tickets that a client is given at a time.
const TICKETS_MAX: usize = 16;

/// The words that have an effect.
const KNOWN: [&str; 7] = [
    CERTIFICATES,
    KEYS,
    CHAINS,
    STAPLES,
    DESTINATION,
    TICKETS,
    TICKET_NUMBER,
];

/// Those of ATS that have none, and what they are for.
const UNSUPPORTED: [(&str, &str); 3] = [
    ("action", "a tunnel without TLS of our own"),
    ("ssl_key_dialog", "keys behind a passphrase"),
    ("ssl_ticket_key_name", "ticket keys by entry"),
];

/// Reads the file, and finds everything that is wrong with it.
#[must_use]
pub fn parse(name: &str, bytes: &[u8]) -> (MulticertFile, Findings) {
    let mut found = Findings::default();
    let text = decode(name, bytes).unwrap_or_else(|error| {
        found.errors.push(error);
        ""
    });
    let mut entries = Vec::new();
    for line in lines(name, text).filter(|line| !line.is_blank()) {
        let mut words = Words::default();
        words.read(&line, &mut found.errors);
        match words.entry(line.place(1)) {
            Ok(entry) => entries.extend(entry),
            Err(error) => found.errors.push(error),
        }
    }
    (MulticertFile { entries }, found)
}

/// A value and where it stands.
type Value<'a> = (Place, &'a str);

/// What the words of a line have said so far.
#[derive(Default)]
struct Words<'a> {
    certificates: Option<Value<'a>>,
    keys: Option<Value<'a>>,
    chains: Option<Value<'a>>,
    staples: Option<Value<'a>>,
    destination: Option<Destination>,
    tickets: TicketRule,
    is_faulty: bool,
}

impl<'a> Words<'a> {
    fn read(&mut self, line: &Line<'a>, errors: &mut Vec<ConfigError>) {
        for word in line.words() {
            let place = line.place(word.column);
            if word.text.starts_with('#') {
                return;
            }
            if let Err(error) = self.word(&place, word.text) {
                self.is_faulty = true;
                errors.push(error);
            }
        }
    }

    fn word(&mut self, place: &Place, text: &'a str) -> Result<(), ConfigError> {
        let Some((key, value)) = text.split_once('=') else {
            return Err(place.error(text, "no KEY=VALUE"));
        };
        let at = place.right(key.chars().count() + 1);
        let bare = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
        let value = bare.unwrap_or(value);
        let key = key.to_ascii_lowercase();
        let slot = match key.as_str() {
            CERTIFICATES => &mut self.certificates,
            KEYS => &mut self.keys,
            CHAINS => &mut self.chains,
            STAPLES => &mut self.staples,
            DESTINATION => {
                self.destination = Some(destination(&at, value)?);
                return Ok(());
            }
            TICKETS => {
                self.tickets.enabled = Some(number(&at, value, 1)? == 1);
                return Ok(());
            }
            TICKET_NUMBER => {
                self.tickets.number = Some(number(&at, value, TICKETS_MAX)?);
                return Ok(());
            }
            _ => return Err(unknown(place, &key)),
        };
        if value.is_empty() {
            return Err(at.error("", format!("{key} names no file")));
        }
        match slot.replace((at, value)) {
            None => Ok(()),
            Some(_) => Err(place.error(&key, "this word stands on the line twice")),
        }
    }

    /// The line as an entry; none if a word of it is faulty.
    fn entry(self, place: Place) -> Result<Option<Entry>, ConfigError> {
        if self.is_faulty {
            return Ok(None);
        }
        let Some((_, names)) = &self.certificates else {
            return Err(place.error(
                "",
                format!("no {CERTIFICATES}: the entry has no certificate"),
            ));
        };
        let names: Vec<&str> = names.split(',').collect();
        let keys = beside(KEYS, self.keys.as_ref(), names.len())?;
        let chains = beside(CHAINS, self.chains.as_ref(), names.len())?;
        let staples = beside(STAPLES, self.staples.as_ref(), names.len())?;
        let lists = keys.into_iter().zip(chains).zip(staples);
        let files = names.iter().zip(lists);
        let certificates = files.map(|(name, ((key, chain), staple))| CertificateFiles {
            certificate: (*name).to_owned(),
            key,
            chain,
            staple,
        });
        Ok(Some(Entry {
            place,
            certificates: certificates.collect(),
            destination: self.destination.unwrap_or_default(),
            tickets: self.tickets,
        }))
    }
}

/// The files of a list that goes with `count` certificates, one by one.
fn beside(
    key: &str,
    value: Option<&Value<'_>>,
    count: usize,
) -> Result<Vec<Option<String>>, ConfigError> {
    let Some((place, list)) = value else {
        return Ok(vec![None; count]);
    };
    let files: Vec<_> = list.split(',').map(|name| Some(name.to_owned())).collect();
    if files.len() == count {
        return Ok(files);
    }
    let what = format!("{key} has {} files for {count} certificates", files.len());
    Err(place.error(list, what))
}

fn destination(place: &Place, value: &str) -> Result<Destination, ConfigError> {
    if value == "*" {
        return Ok(Destination::Any);
    }
    if let Ok(at) = value.parse::<SocketAddr>() {
        return Ok(Destination::Address(
            at.ip().to_canonical(),
            Some(at.port()),
        ));
    }
    let bare = value.strip_prefix('[').and_then(|v| v.strip_suffix(']'));
    let ip = bare.unwrap_or(value).parse::<IpAddr>();
    let ip = ip.map(|ip| Destination::Address(ip.to_canonical(), None));
    ip.map_err(|_| {
        let what = format!("\"{}\" is no address", shortened(value));
        let mut error = place.error(value, what);
        error.help = Some("write * for any, ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT".into());
        error
    })
}

/// A number from 0 to `max`.
fn number(place: &Place, value: &str, max: usize) -> Result<usize, ConfigError> {
    let number = value.parse().ok().filter(|number| *number <= max);
    number.ok_or_else(|| place.error(value, format!("no number from 0 to {max}")))
}

fn unknown(place: &Place, key: &str) -> ConfigError {
    if let Some((_, does)) = UNSUPPORTED.iter().find(|(name, _)| *name == key) {
        return place.error(key, format!("{key} ({does}) is not supported yet"));
    }
    let mut error = place.error(key, "unknown word");
    error.help = did_you_mean(key, KNOWN);
    error
}
