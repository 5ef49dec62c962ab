//! How an origin is told who the client is, in front of all else: the PROXY
//! protocol, versions 1 and 2 (`http.proxy_protocol_out`).

use super::peer::Peer;
use ppp::v2;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// The bytes that begin a connection.
pub(in crate::proxy) type Introduction = Arc<[u8]>;

/// The introduction of a client in that version; none in another, and none
/// where the record is off.
#[must_use]
pub(super) fn of(version: i64, peer: &Peer) -> Option<Introduction> {
    let (client, server) = alike(peer.client, peer.local);
    match (version, peer.is_known) {
        (1, true) => Some(line(client, server).into_bytes().into()),
        (1, false) => Some(b"PROXY UNKNOWN\r\n"[..].into()),
        (2, true) => binary((client, server).into()).ok().map(Into::into),
        (2, false) => binary(v2::Addresses::Unspecified).ok().map(Into::into),
        _ => None,
    }
}

/// Both ends of one family, which the protocol has no other way to tell.
fn alike(client: SocketAddr, server: SocketAddr) -> (SocketAddr, SocketAddr) {
    match client.is_ipv4() == server.is_ipv4() {
        true => (client, server),
        false => (mapped(client), mapped(server)),
    }
}

fn mapped(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(IpAddr::V6(in_six(address.ip())), address.port())
}

fn in_six(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

fn line(client: SocketAddr, server: SocketAddr) -> String {
    let family = if client.is_ipv4() { "TCP4" } else { "TCP6" };
    let (from, to) = (client.ip(), server.ip());
    let (from_port, to_port) = (client.port(), server.port());
    format!("PROXY {family} {from} {to} {from_port} {to_port}\r\n")
}

fn binary(ends: v2::Addresses) -> io::Result<Vec<u8>> {
    let kind = v2::Version::Two | v2::Command::Proxy;
    v2::Builder::with_addresses(kind, v2::Protocol::Stream, ends).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::introduced::{self, Introduced};

    fn peer(client: &str, local: &str) -> Peer {
        Peer::new(client.parse().unwrap(), local.parse().unwrap())
    }

    #[test]
    fn version_1_is_a_line_of_one_family() {
        for (client, local, expected) in [
            (
                "10.0.0.1:4660",
                "10.0.0.2:80",
                "PROXY TCP4 10.0.0.1 10.0.0.2 4660 80\r\n",
            ),
            ("[::1]:7", "[::2]:80", "PROXY TCP6 ::1 ::2 7 80\r\n"),
            (
                "[::1]:7",
                "10.0.0.2:80",
                "PROXY TCP6 ::1 ::ffff:10.0.0.2 7 80\r\n",
            ),
        ] {
            let said = of(1, &peer(client, local)).unwrap();
            assert_eq!(&*said, expected.as_bytes());
        }
    }

    #[tokio::test]
    async fn what_is_told_in_either_version_is_what_is_read() {
        for client in ["10.0.0.1:4660", "[2001:db8::1]:65535"] {
            for version in [1, 2] {
                let said = of(version, &peer(client, "10.0.0.2:80")).unwrap();
                let mut stream = &said[..];
                let read = introduced::read(&mut stream).await.unwrap();
                let expected = Introduced::Client(client.parse().unwrap());
                assert_eq!(read, expected, "{version}");
                assert!(stream.is_empty());
            }
        }
    }

    #[tokio::test]
    async fn a_client_whose_address_is_not_known_is_introduced_as_that() {
        let peer = peer("127.0.0.1:4660", "127.0.0.1:80").unknown();
        for version in [1, 2] {
            let said = of(version, &peer).unwrap();
            let read = introduced::read(&mut &said[..]).await.unwrap();
            assert_eq!(read, Introduced::Unknown, "{version}");
        }
    }

    #[test]
    fn nobody_is_introduced_when_the_record_is_off() {
        for version in [-1, 0, 3] {
            assert_eq!(of(version, &peer("[::1]:7", "[::2]:80")), None);
        }
    }
}
