//! The formats: which fields stand in a line, and what they say.

use crate::base::clock::WallTime;
use crate::proxy::outcome::{Ended, Finish, Route};
use crate::proxy::tls::Session;
use http::Version;
use std::fmt::{self, Write};
use std::net::IpAddr;
use std::time::Duration;

/// ATS's `squid` format (9.x).
const SQUID: &str =
    "%<cqtq> %<ttms> %<chi> %<crc>/%<pssc> %<psql> %<cqhm> %<cquc> %<caun> %<phr>/%<shn> %<psct>";
/// Squid's fields, then the protocol and what of TLS was agreed on, how it was a
/// hit or a miss, and the one outcome.
const STRATA: &str = "%<cqtq> %<ttms> %<chi> %<crc>/%<pssc> %<psql> %<cqhm> %<cquc> %<caun> %<phr>/%<shn> %<psct> %<cqpv> %<cqssv> %<cqssc> %<cqssu> %<cssn> %<cqssr> %<cqssa> %<chm> %<outcome>";

/// One transaction, as far as the log needs to know it.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// What it came to.
    pub ended: &'a Ended,
    /// When its head had come in.
    pub begun: WallTime,
    /// From there to its last byte.
    pub took: Duration,
    /// The client's address.
    pub client: IpAddr,
    /// The method; `-` if it could not be read.
    pub method: &'a str,
    /// The client's URL, before remapping; `-` if it could not be read.
    pub url: &'a str,
    /// The version of HTTP; none if it could not be read, or was not HTTP.
    pub version: Option<Version>,
    /// What was agreed on over TLS; none in clear.
    pub session: Option<&'a Session>,
    /// The name that was asked for over TLS, whoever ended that.
    pub name: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// `cqtq`: seconds and milliseconds of the begin.
    Time,
    /// `ttms`: milliseconds it took.
    Took,
    /// `chi`: the client's address.
    Client,
    /// `crc`: squid's result code.
    Result,
    /// `pssc`: the status sent.
    Status,
    /// `psql`: bytes sent, head and body.
    Sent,
    /// `pscl`: bytes of the body sent.
    Body,
    /// `cqhm`: the method.
    Method,
    /// `cquc`: the URL.
    Url,
    /// `caun`: the authenticated user; nobody is authenticated here.
    User,
    /// `phr`: whom it was asked of.
    Route,
    /// `shn`: the server's name.
    Server,
    /// `psct`: the content type, without its parameters.
    ContentType,
    /// `pfsc`: how the transfer ended.
    Finish,
    /// `cqpv`: the version of HTTP.
    Protocol,
    /// `cqssv`: the version of TLS.
    TlsVersion,
    /// `cqssc`: its cipher.
    Cipher,
    /// `cqssu`: the group of its key exchange.
    Group,
    /// `cssn`: the name asked for in it.
    Name,
    /// `cqssr`: 1 if an older session was resumed.
    Resumed,
    /// `cqssa`: the protocol agreed on in it.
    Alpn,
    /// `chm`: ATS's hit or miss code.
    HitMiss,
    /// `outcome`: ours.
    Outcome,
}

impl Field {
    fn named(symbol: &str) -> Option<Self> {
        Some(match symbol {
            "cqtq" => Self::Time,
            "ttms" => Self::Took,
            "chi" => Self::Client,
            "crc" => Self::Result,
            "pssc" => Self::Status,
            "psql" => Self::Sent,
            "pscl" => Self::Body,
            "cqhm" => Self::Method,
            "cquc" => Self::Url,
            "caun" => Self::User,
            "phr" => Self::Route,
            "shn" => Self::Server,
            "psct" => Self::ContentType,
            "pfsc" => Self::Finish,
            "cqpv" => Self::Protocol,
            "cqssv" => Self::TlsVersion,
            "cqssc" => Self::Cipher,
            "cqssu" => Self::Group,
            "cssn" => Self::Name,
            "cqssr" => Self::Resumed,
            "cqssa" => Self::Alpn,
            "chm" => Self::HitMiss,
            "outcome" => Self::Outcome,
            _ => return None,
        })
    }

    fn write(self, entry: &Entry<'_>, out: &mut Line<'_>) -> fmt::Result {
        let ended = entry.ended;
        match self {
            Self::Time => {
                let ms = entry.begun.as_millis();
                write!(out, "{}.{:03}", ms / 1000, ms % 1000)
            }
            Self::Took => write!(out, "{}", entry.took.as_millis()),
            Self::Client => write!(out, "{}", entry.client),
            Self::Result => out.write_str(ended.outcome.crc()),
            Self::Status => write!(out, "{:03}", ended.status),
            Self::Sent => write!(out, "{}", ended.head_bytes + ended.body_bytes),
            Self::Body => write!(out, "{}", ended.body_bytes),
            Self::Method => out.text(entry.method.as_bytes()),
            Self::Url => out.text(entry.url.as_bytes()),
            Self::User => out.write_str("-"),
            Self::Route => out.write_str(route(&ended.route)),
            Self::Server => out.text(server(&ended.route).as_bytes()),
            Self::ContentType => out.text(media_type(ended)),
            Self::Finish => out.write_str(finish(ended.finish)),
            Self::Protocol => out.write_str(protocol(entry.version)),
            Self::Name => out.text(entry.name.unwrap_or_default().as_bytes()),
            Self::TlsVersion => out.of(entry.session, |session| session.version()),
            Self::Cipher => out.of(entry.session, |session| session.cipher),
            Self::Group => out.of(entry.session, |session| session.group.unwrap_or_default()),
            Self::Resumed => out.of(entry.session, |session| resumed(session)),
            Self::Alpn => out.of(entry.session, |session| {
                session.alpn.as_deref().unwrap_or_default()
            }),
            Self::HitMiss => out.write_str(ended.outcome.chm()),
            Self::Outcome => out.write_str(ended.outcome.label()),
        }
    }
}

/// As ATS has them.
const fn protocol(version: Option<Version>) -> &'static str {
    match version {
        Some(Version::HTTP_10) => "http/1.0",
        Some(Version::HTTP_11) => "http/1.1",
        Some(Version::HTTP_2) => "http/2",
        _ => "-",
    }
}

const fn resumed(session: &Session) -> &'static str {
    if session.resumed { "1" } else { "0" }
}

const fn route(route: &Route) -> &'static str {
    match route {
        Route::None => "NONE",
        Route::Direct(_) => "DIRECT",
    }
}

fn server(route: &Route) -> &str {
    match route {
        Route::None => "",
        Route::Direct(name) => name,
    }
}

fn media_type(ended: &Ended) -> &[u8] {
    let value = ended.content_type.as_deref().unwrap_or_default();
    let media = value.split(|byte| *byte == b';').next();
    media.unwrap_or_default().trim_ascii()
}

const fn finish(finish: Finish) -> &'static str {
    match finish {
        Finish::Whole => "FIN",
        Finish::Cut => "INTR",
    }
}

/// A line being written.
struct Line<'a>(&'a mut Vec<u8>);

impl Line<'_> {
    /// What a session has to say; nothing is `-`, and so is all in clear.
    fn of(
        &mut self,
        session: Option<&Session>,
        said: impl FnOnce(&Session) -> &str,
    ) -> fmt::Result {
        self.text(session.map_or("", said).as_bytes())
    }

    /// Text from the network: whatever could break the line's fields apart is
    /// percent-encoded, nothing is `-`.
    fn text(&mut self, text: &[u8]) -> fmt::Result {
        if text.is_empty() {
            return self.write_str("-");
        }
        for run in text.chunk_by(|a, b| a.is_ascii_graphic() && b.is_ascii_graphic()) {
            match run {
                [byte] if !byte.is_ascii_graphic() => write!(self, "%{byte:02X}")?,
                _ => self.0.extend_from_slice(run),
            }
        }
        Ok(())
    }
}

impl Write for Line<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(Box<str>),
    Field(Field),
}

/// A format, ready to write lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    name: &'static str,
    parts: Vec<Part>,
}

impl Format {
    /// The format of a name: `squid`, and `strata` for every other one.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let (name, text) = match name {
            "squid" => ("squid", SQUID),
            _ => ("strata", STRATA),
        };
        let parts = parse(text);
        Self { name, parts }
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Appends the line of `entry`, its end included.
    pub fn line(&self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        let mut line = Line(out);
        for part in &self.parts {
            let written = match part {
                Part::Literal(text) => line.write_str(text),
                Part::Field(field) => field.write(entry, &mut line),
            };
            debug_assert!(written.is_ok(), "writing to memory can't fail");
        }
        out.push(b'\n');
    }
}

/// Literals and `%<symbol>`; a symbol that isn't one stays as it stands.
fn parse(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut pieces = text.split("%<");
    let literal = |text: &str, parts: &mut Vec<Part>| {
        if !text.is_empty() {
            parts.push(Part::Literal(text.into()));
        }
    };
    literal(pieces.next().unwrap_or(""), &mut parts);
    for piece in pieces {
        let (symbol, rest) = piece.split_once('>').unwrap_or((piece, ""));
        match Field::named(symbol) {
            Some(field) => parts.push(Part::Field(field)),
            None => literal(symbol, &mut parts),
        }
        literal(rest, &mut parts);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::outcome::Outcome;

    fn line(format: &str, entry: &Entry<'_>) -> String {
        let mut out = Vec::new();
        Format::named(format).line(entry, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn entry(ended: &Ended) -> Entry<'_> {
        Entry {
            ended,
            begun: WallTime::from_millis(1_700_000_000_007),
            took: Duration::from_millis(12),
            client: IpAddr::from([192, 0, 2, 1]),
            method: "GET",
            url: "http://a/b?c",
            version: Some(Version::HTTP_11),
            session: None,
            name: None,
        }
    }

    #[test]
    fn a_hit_reads_as_squid_writes_it() {
        let mut ended = Ended::new(Outcome::HitFast, 200);
        (ended.head_bytes, ended.body_bytes) = (100, 15);
        ended.content_type = Some("text/html; charset=utf-8".into());
        let expected =
            "1700000000.007 12 192.0.2.1 TCP_HIT/200 115 GET http://a/b?c - NONE/- text/html";
        assert_eq!(line("squid", &entry(&ended)), format!("{expected}\n"));
        assert_eq!(
            line("strata", &entry(&ended)),
            format!("{expected} http/1.1 - - - - - - HIT_SSD hit_ssd\n")
        );
    }

    #[test]
    fn text_from_the_network_cannot_forge_fields_or_lines() {
        let mut ended = Ended::new(Outcome::MissCold, 200);
        ended.content_type = Some("a b\nc\u{7f}".into());
        ended.route = Route::Direct("origin".to_owned());
        let text = line("squid", &entry(&ended));
        assert!(text.ends_with(" DIRECT/origin a%20b%0Ac%7F\n"), "{text}");
        assert_eq!(text.lines().count(), 1);
    }
}
