//! Sockets that clients connect to: one a port and thread, sharing the port.

use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};

/// How sockets are opened.
#[derive(Clone, Copy, Debug)]
pub struct ListenOptions {
    /// Connections that wait to be accepted (`net.listen_backlog`); the kernel
    /// caps it by somaxconn.
    pub backlog: i32,
    /// How many sockets share each port: one a thread.
    pub shares: usize,
}

/// A port could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another server listens there, maybe another of ours.
    #[error("port {port} on {ip} is taken by another server")]
    Taken {
        /// The address asked for.
        ip: IpAddr,
        /// The port asked for.
        port: u16,
    },
    /// The system refused.
    #[error("can't listen on {address}: {cause}")]
    System {
        /// The address asked for.
        address: SocketAddr,
        /// Its reason.
        cause: io::Error,
    },
}

/// What clients of a port speak below HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dialect {
    /// TLS (`ssl` in `http.server_ports`).
    pub tls: bool,
    /// The PROXY protocol before all else (`pp` in `http.server_ports`).
    pub introduced: bool,
    /// Whether clients may speak HTTP/2 (`proto` in `http.server_ports`); where
    /// it is not said, they may over TLS, and in clear by
    /// `http2.prior_knowledge_in`.
    pub http2: Option<bool>,
}

/// A socket that clients connect to, and what they speak there.
#[derive(Debug)]
pub struct Door {
    /// The socket.
    pub socket: TcpListener,
    /// What is spoken.
    pub dialect: Dialect,
}

/// The sockets of one port.
#[derive(Debug)]
pub struct Listeners {
    /// The address bound, with the port the system chose for port 0.
    pub address: SocketAddr,
    /// One a thread.
    pub sockets: Vec<TcpListener>,
}

/// Listens on `address`, by `options.shares` sockets.
///
/// `SO_REUSEPORT` would let two servers share a port by mistake, each with half
/// of the connections; so the port is first bound without it, which fails when
/// anybody listens there.
///
/// # Errors
/// [`ListenError::Taken`] if the port is in use, [`ListenError::System`] for
/// everything else the system objects to.
pub fn listen(address: SocketAddr, options: ListenOptions) -> Result<Listeners, ListenError> {
    probe(address)?;
    let first = open(address, options.backlog).map_err(|cause| named(address, cause))?;
    let bound = first.local_addr().map_err(|cause| named(address, cause))?;
    let mut sockets = vec![first];
    while sockets.len() < options.shares {
        let next = open(bound, options.backlog).map_err(|cause| named(bound, cause))?;
        sockets.push(next);
    }
    Ok(Listeners {
        address: bound,
        sockets,
    })
}

/// Every address that reaches a listener: its own, and for one bound to any
/// address, each of this machine's with its port.
#[must_use]
pub fn every_address(bound: SocketAddr) -> Vec<SocketAddr> {
    let mut all = vec![bound];
    if bound.ip().is_unspecified() {
        let port = bound.port();
        all.extend(machine_addresses().map(|ip| SocketAddr::new(ip, port)));
    }
    all
}

/// None if the system does not tell.
fn machine_addresses() -> impl Iterator<Item = IpAddr> {
    let interfaces = nix::ifaddrs::getifaddrs().into_iter().flatten();
    interfaces.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    })
}

fn probe(address: SocketAddr) -> Result<(), ListenError> {
    if address.port() == 0 {
        return Ok(());
    }
    let bind = || -> io::Result<()> { socket(address)?.bind(&address.into()) };
    bind().map_err(|cause| named(address, cause))
}

fn open(address: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
    let socket = socket(address)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// A socket that takes a port whose last connections are in TIME_WAIT, but not
/// one that is listened on.
fn socket(address: SocketAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        // A dual-stack socket would take the IPv4 port too.
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    Ok(socket)
}

fn named(address: SocketAddr, cause: io::Error) -> ListenError {
    if cause.kind() == io::ErrorKind::AddrInUse {
        return ListenError::Taken {
            ip: address.ip(),
            port: address.port(),
        };
    }
    ListenError::System { address, cause }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const OPTIONS: ListenOptions = ListenOptions {
        backlog: 16,
        shares: 2,
    };

    fn any_port() -> SocketAddr {
        SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)
    }

    #[test]
    fn shares_of_a_port_zero_have_one_port() {
        let listeners = listen(any_port(), OPTIONS).unwrap();
        assert_eq!(listeners.sockets.len(), 2);
        for socket in &listeners.sockets {
            assert_eq!(socket.local_addr().unwrap(), listeners.address);
        }
    }

    #[test]
    fn a_second_server_on_a_port_fails_by_name() {
        let first = listen(any_port(), OPTIONS).unwrap();
        let error = listen(first.address, OPTIONS).unwrap_err();
        let port = first.address.port();
        assert_eq!(
            error.to_string(),
            format!("port {port} on 127.0.0.1 is taken by another server")
        );
    }

    #[test]
    fn a_listener_on_any_address_is_reached_by_each_of_the_machine() {
        let any = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 80);
        let loopback = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 80);
        assert!(every_address(any).contains(&loopback));
        assert_eq!(every_address(loopback), [loopback]);
    }

    #[test]
    fn a_port_is_free_again_once_its_listeners_are_gone() {
        let first = listen(any_port(), OPTIONS).unwrap();
        let address = first.address;
        drop(first);
        assert_eq!(listen(address, OPTIONS).unwrap().address, address);
    }
}
