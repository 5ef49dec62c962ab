//! The two ends of a client connection.

use super::tls::Session;
use crate::base::scheme::Scheme;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Who is at each end, and what is between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The client's address.
    pub client: SocketAddr,
    /// Ours, which the client connected to.
    pub local: SocketAddr,
    /// Whether the client is at `client`. Not so where a balancer does not say
    /// whom it connects for: then that is the balancer's address.
    pub is_known: bool,
    /// `https` where the connection is secured, else `http`.
    pub scheme: Scheme,
    /// What they have agreed on over TLS; none in clear.
    pub session: Option<Arc<Session>>,
}

impl Peer {
    /// Both ends of a connection in clear, IPv4-mapped addresses as IPv4.
    #[must_use]
    pub fn new(client: SocketAddr, local: SocketAddr) -> Self {
        Self {
            client: canonical(client),
            local: canonical(local),
            is_known: true,
            scheme: Scheme::Http,
            session: None,
        }
    }

    /// The same, of a client who may be anywhere.
    #[must_use]
    pub fn unknown(self) -> Self {
        Self {
            is_known: false,
            ..self
        }
    }

    /// The same over TLS, on which that was agreed.
    #[must_use]
    pub fn secured(self, session: Session) -> Self {
        Self {
            scheme: Scheme::Https,
            session: Some(Arc::new(session)),
            ..self
        }
    }

    /// The client's address without its port.
    #[must_use]
    pub const fn ip(&self) -> IpAddr {
        self.client.ip()
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_address_is_the_ipv4_client_it_stands_for() {
        let mapped: SocketAddr = "[::ffff:10.0.0.1]:5".parse().unwrap();
        let peer = Peer::new(mapped, mapped);
        assert_eq!(peer.ip().to_string(), "10.0.0.1");
        assert_eq!(peer.local.port(), 5);
    }
}
