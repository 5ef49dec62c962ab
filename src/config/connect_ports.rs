//! `proxy.config.http.connect_ports`: where CONNECT may go.

use std::ops::RangeInclusive;

use super::list::items;
use super::place::Place;
use super::{ConfigError, Findings};

/// The ports that CONNECT may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectPorts {
    ranges: Vec<RangeInclusive<u16>>,
}

impl ConnectPorts {
    /// Reads a list of ports, ranges `LOW-HIGH`, and `*` for all ports, that
    /// begins at `place`.
    #[must_use]
    pub fn parse(value: &str, place: &Place) -> (Self, Findings) {
        let mut ports = Self::default();
        let mut found = Findings::default();
        for item in items(value, place) {
            match range(item.text) {
                Ok(range) => ports.ranges.push(range),
                Err(what) => found.errors.push(fault(&item.place, item.text, what)),
            }
        }
        (ports, found)
    }

    /// Whether CONNECT may reach the port.
    #[must_use]
    pub fn allow(&self, port: u16) -> bool {
        self.ranges.iter().any(|range| range.contains(&port))
    }
}

fn fault(place: &Place, token: &str, what: String) -> ConfigError {
    let mut error = place.error(token, what);
    error.help = Some("list ports as 443, ranges as 8000-8099, or * for all".into());
    error
}

/// One item as a range of ports.
fn range(text: &str) -> Result<RangeInclusive<u16>, String> {
    if text == "*" {
        return Ok(1..=u16::MAX);
    }
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let (low, high) = (port(low)?, port(high)?);
    if low > high {
        return Err(format!("{low} is above {high}"));
    }
    Ok(low..=high)
}

/// A port that can be connected to.
///
/// # Errors
/// A clause that says why it is none.
fn port(text: &str) -> Result<u16, String> {
    match super::ports::port_number(text)? {
        0 => Err("port 0 can't be connected to".into()),
        port => Ok(port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: &str) -> (ConnectPorts, Vec<String>) {
        let place = Place {
            file: "records.config".into(),
            line: 1,
            column: 1,
        };
        let (ports, found) = ConnectPorts::parse(value, &place);
        (ports, found.errors.iter().map(|e| e.what.clone()).collect())
    }

    #[test]
    fn ports_and_ranges_are_allowed_and_no_others() {
        let (ports, errors) = parse("443 563,8000-8002");
        assert_eq!(errors, [""; 0]);
        let allowed: Vec<u16> = (0..=u16::MAX).filter(|port| ports.allow(*port)).collect();
        assert_eq!(allowed, [443, 563, 8000, 8001, 8002]);
    }

    #[test]
    fn a_star_allows_every_port_but_0() {
        let (ports, _) = parse("*");
        assert!(ports.allow(1) && ports.allow(u16::MAX) && !ports.allow(0));
    }

    #[test]
    fn what_is_no_port_is_refused_with_a_reason() {
        let (ports, errors) = parse("https 70000 9-8 0 -5 5- 1-2-3");
        assert_eq!(ports, ConnectPorts::default());
        assert_eq!(
            errors,
            [
                "\"https\" is no port",
                "port 70000 is above 65535",
                "9 is above 8",
                "port 0 can't be connected to",
                "\"\" is no port",
                "\"\" is no port",
                "\"2-3\" is no port",
            ]
        );
    }
}
