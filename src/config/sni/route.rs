//! Where a tunnel leads: a host and a port, `$1` for what a `*` stands for.

/// The port where none is written.
const PORT: u16 = 443;

/// A host with gaps, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelRoute {
    pieces: Vec<Piece>,
    /// The port.
    pub port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// What the `*` of that number, from 0, stands for.
    Star(usize),
}

impl TunnelRoute {
    /// Reads `HOST` or `HOST:PORT` for a name with that many `*`; the error
    /// says what is wrong.
    pub(super) fn parse(text: &str, stars: usize) -> Result<Self, String> {
        let (host, port) = ends(text)?;
        if host.is_empty() {
            return Err("the route names no host".to_owned());
        }
        let mut pieces = Vec::new();
        let mut parts = host.split('$');
        pieces.extend(parts.next().map(|part| Piece::Text(part.to_owned())));
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_digit());
            let (digits, rest) = part.split_at(end.unwrap_or(part.len()));
            let number = digits.parse().unwrap_or(0);
            if number == 0 || number > stars {
                return Err(format!("${digits} is none of the name's {stars} *"));
            }
            pieces.push(Piece::Star(number - 1));
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self { pieces, port })
    }

    /// Whether the host depends on the name that is asked for.
    #[must_use]
    pub fn has_gaps(&self) -> bool {
        let mut pieces = self.pieces.iter();
        pieces.any(|piece| matches!(piece, Piece::Star(_)))
    }

    /// The host, where the `*` stand for `captures`.
    #[must_use]
    pub fn host(&self, captures: &[&str]) -> String {
        let texts = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Star(number) => captures.get(*number).copied().unwrap_or_default(),
        });
        texts.collect()
    }
}

/// Host and port; an address of IPv6 keeps its brackets.
fn ends(text: &str) -> Result<(&str, u16), String> {
    if text.contains(['{', '/', ' ']) {
        return Err("the route is no HOST:PORT".to_owned());
    }
    let after = text.rfind(']').map_or(0, |at| at + 1);
    let Some(colon) = text.get(after..).and_then(|rest| rest.rfind(':')) else {
        return Ok((text, PORT));
    };
    let (host, port) = text.split_at(after + colon);
    let port = port.strip_prefix(':').and_then(|port| port.parse().ok());
    match port {
        Some(port) if port > 0 => Ok((host, port)),
        _ => Err("the route's port is no number from 1 to 65535".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_takes_what_stars_stand_for() {
        let host = |text, stars: &[&str]| {
            let route = TunnelRoute::parse(text, stars.len()).unwrap();
            (route.host(stars), route.port)
        };
        assert_eq!(host("a.example", &[]), ("a.example".to_owned(), 443));
        let swapped = ("y.at.x".to_owned(), 8443);
        assert_eq!(host("$2.at.$1:8443", &["x", "y"]), swapped);
        assert_eq!(host("[::1]:444", &[]), ("[::1]".to_owned(), 444));
        assert_eq!(host("[::1]", &[]), ("[::1]".to_owned(), 443));
        assert!(TunnelRoute::parse("$1.b", 1).unwrap().has_gaps());
        assert!(!TunnelRoute::parse("a.b", 1).unwrap().has_gaps());
    }

    #[test]
    fn a_route_that_leads_nowhere_is_refused() {
        for text in ["", ":1", "a:0", "a:70000", "a:x", "$2", "$0", "$", "a/b"] {
            assert!(TunnelRoute::parse(text, 1).is_err(), "{text}");
        }
        assert!(TunnelRoute::parse("a:{inbound_local_port}", 0).is_err());
    }
}
