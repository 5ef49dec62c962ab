//! Connections that a balancer introduces by the PROXY protocol, versions 1 and
//! 2: the client's address in front of all else.

use crate::config::ip_range::{IpRange, parse_list};
use ppp::{v1, v2};
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncRead, AsyncReadExt};

/// What version 2 begins with.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Bytes of version 2 up to the count of those that follow.
const FIXED: usize = 16;

/// The longest line of version 1, its end included.
const LINE_MAX: usize = 107;

/// The most bytes that follow in version 2: addresses, and what a balancer
/// tells beside them.
const MORE_MAX: usize = 4096;

/// Whose introductions are believed (`http.proxy_protocol_allowlist`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Introducers(Vec<IpRange>);

impl Introducers {
    /// Those of the record; nobody without one.
    #[must_use]
    pub fn of(record: Option<&str>) -> Self {
        // The table of records has checked it; were it not so, nobody would be.
        Self(
            record
                .and_then(|text| parse_list(text).ok())
                .unwrap_or_default(),
        )
    }

    /// Whether one that comes from there is believed.
    #[must_use]
    pub fn has(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|range| range.contains(ip))
    }
}

/// Why a connection that should be introduced is not served.
#[derive(Debug, thiserror::Error)]
pub enum IntroductionError {
    /// It comes from an address that introduces nobody.
    #[error("{0} is not in proxy.config.http.proxy_protocol_allowlist")]
    Stranger(IpAddr),
    /// It does not begin as the protocol says.
    #[error("no PROXY protocol: {0}")]
    Malformed(String),
    /// It ended, or failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Whom an introduction is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Introduced {
    /// A client at this address.
    Client(SocketAddr),
    /// A client whose address is not told, as it has none of the kinds that are
    /// known, or as the balancer does not know.
    Unknown,
    /// The balancer itself, which asks how we are.
    Balancer,
}

impl<A: Into<IpAddr>> From<(A, u16)> for Introduced {
    fn from(at: (A, u16)) -> Self {
        Self::Client(at.into())
    }
}

/// Reads the introduction and nothing behind it. Not cancel-safe.
///
/// # Errors
/// [`IntroductionError`]; the protocol forbids to guess what else it may be.
pub(super) async fn read<S: AsyncRead + Unpin>(
    stream: &mut S,
) -> Result<Introduced, IntroductionError> {
    let mut bytes = vec![0; SIGNATURE.len()];
    stream.read_exact(&mut bytes).await?;
    if bytes == SIGNATURE {
        return read_binary(stream, bytes).await;
    }
    if !bytes.starts_with(b"PROXY ") {
        let what = "it begins otherwise".to_owned();
        return Err(IntroductionError::Malformed(what));
    }
    read_line(stream, bytes).await
}

async fn read_binary<S: AsyncRead + Unpin>(
    stream: &mut S,
    mut bytes: Vec<u8>,
) -> Result<Introduced, IntroductionError> {
    let mut fixed = [0; FIXED - SIGNATURE.len()];
    stream.read_exact(&mut fixed).await?;
    let [_, _, high, low] = fixed;
    let more = usize::from(high) << 8 | usize::from(low);
    if more > MORE_MAX {
        let what = format!("{more} bytes of addresses, of at most {MORE_MAX}");
        return Err(IntroductionError::Malformed(what));
    }
    bytes.extend(fixed);
    bytes.resize(FIXED + more, 0);
    let rest = bytes.get_mut(FIXED..).unwrap_or_default();
    stream.read_exact(rest).await?;
    let header = v2::Header::try_from(bytes.as_slice());
    let header = header.map_err(|error| IntroductionError::Malformed(error.to_string()))?;
    Ok(match (header.command, header.addresses) {
        (v2::Command::Local, _) => Introduced::Balancer,
        (v2::Command::Proxy, v2::Addresses::IPv4(at)) => (at.source_address, at.source_port).into(),
        (v2::Command::Proxy, v2::Addresses::IPv6(at)) => (at.source_address, at.source_port).into(),
        (v2::Command::Proxy, v2::Addresses::Unix(_) | v2::Addresses::Unspecified) => {
            Introduced::Unknown
        }
    })
}

/// Byte by byte, so that none behind the line's end is taken.
async fn read_line<S: AsyncRead + Unpin>(
    stream: &mut S,
    mut bytes: Vec<u8>,
) -> Result<Introduced, IntroductionError> {
    while !bytes.ends_with(b"\n") {
        if bytes.len() == LINE_MAX {
            let what = "its line has no end".to_owned();
            return Err(IntroductionError::Malformed(what));
        }
        bytes.push(stream.read_u8().await?);
    }
    let header = v1::Header::try_from(bytes.as_slice());
    let header = header.map_err(|error| IntroductionError::Malformed(error.to_string()))?;
    Ok(match header.addresses {
        v1::Addresses::Tcp4(at) => (at.source_address, at.source_port).into(),
        v1::Addresses::Tcp6(at) => (at.source_address, at.source_port).into(),
        v1::Addresses::Unknown => Introduced::Unknown,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn told(bytes: &[u8]) -> Result<(Introduced, Vec<u8>), String> {
        let mut stream = bytes;
        let client = read(&mut stream).await.map_err(|error| error.to_string())?;
        Ok((client, stream.to_vec()))
    }

    fn client(at: &str) -> Introduced {
        Introduced::Client(at.parse().unwrap())
    }

    fn binary(command: u8, family: u8, more: &[u8]) -> Vec<u8> {
        let length = u16::try_from(more.len()).unwrap();
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([0x20 | command, family]);
        bytes.push(u8::try_from(length >> 8).unwrap());
        bytes.push(u8::try_from(length & 0xff).unwrap());
        bytes.extend(more);
        bytes
    }

    #[tokio::test]
    async fn the_client_is_told_and_nothing_behind_is_taken() {
        let v4 = [10, 0, 0, 1, 10, 0, 0, 2, 0x12, 0x34, 0, 80];
        let mut v6 = [0; 36];
        (v6[15], v6[33]) = (1, 7);
        let unix = [b'a'; 216];
        for (bytes, whom) in [
            (
                b"PROXY TCP4 10.0.0.1 10.0.0.2 4660 80\r\n".to_vec(),
                client("10.0.0.1:4660"),
            ),
            (b"PROXY TCP6 ::1 ::2 7 80\r\n".to_vec(), client("[::1]:7")),
            (b"PROXY UNKNOWN\r\n".to_vec(), Introduced::Unknown),
            (b"PROXY UNKNOWN whatever\r\n".to_vec(), Introduced::Unknown),
            (binary(1, 0x11, &v4), client("10.0.0.1:4660")),
            (
                binary(1, 0x11, &[&v4[..], &[4, 0, 1, 9]].concat()),
                client("10.0.0.1:4660"),
            ),
            (binary(1, 0x21, &v6), client("[::1]:7")),
            (binary(1, 0x31, &unix), Introduced::Unknown),
            (binary(1, 0x00, b""), Introduced::Unknown),
            (binary(0, 0x11, &v4), Introduced::Balancer),
            (binary(0, 0x00, b""), Introduced::Balancer),
        ] {
            let all = [&bytes[..], b"GET /"].concat();
            let (found, behind) = told(&all).await.unwrap();
            assert_eq!(found, whom, "{bytes:?}");
            assert_eq!(behind, b"GET /", "{bytes:?}");
        }
    }

    #[tokio::test]
    async fn what_is_no_introduction_is_refused_at_every_cut() {
        let whole = binary(1, 0x11, &[10, 0, 0, 1, 10, 0, 0, 2, 0x12, 0x34, 0, 80]);
        for cut in 0..whole.len() {
            assert!(told(&whole[..cut]).await.is_err(), "{cut}");
        }
        for bytes in [
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            b"PROXY TCP4 10.0.0.1\r\nGET / HTTP/1.1\r\n".to_vec(),
            b"PROXY TCP4 a b 1 2\r\n".to_vec(),
            [&b"PROXY UNKNOWN "[..], &[b'x'; 200]].concat(),
            binary(1, 0x11, &[1, 2, 3]),
            binary(1, 0x11, &vec![0; MORE_MAX + 1]),
            binary(7, 0x11, &[0; 12]),
        ] {
            assert!(told(&bytes).await.is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn nobody_introduces_without_the_record() {
        let here = "127.0.0.1".parse().unwrap();
        assert!(!Introducers::of(None).has(here));
        assert!(!Introducers::of(Some("10.0.0.0/8")).has(here));
        assert!(Introducers::of(Some("10.0.0.0/8 127.0.0.1")).has(here));
    }
}
