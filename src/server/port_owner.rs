//! Who listens on a port, as far as `/proc` tells this user.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// The state of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    name: String,
    pid: u32,
}

impl Owner {
    /// Whether it is the process that asks.
    pub(super) fn is_this_process(&self) -> bool {
        self.pid == std::process::id()
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, process {}", self.name, self.pid)
    }
}

/// The process that listens where `address` would; `None` if it is another
/// user's, which only root is told of.
pub(super) fn find(address: SocketAddr) -> Option<Owner> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let tables = tables.map(|path| fs::read_to_string(path).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines());
    let inode = lines.filter_map(|line| inode_of(line, address)).next()?;
    let link = format!("socket:[{inode}]");
    let mut processes = fs::read_dir("/proc").ok()?.flatten();
    processes.find_map(|process| owner(&process.path(), &link))
}

/// The socket of a line, if it listens where `address` would.
fn inode_of(line: &str, address: SocketAddr) -> Option<&str> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (ip, port) = fields.next()?.split_once(':')?;
    let state = fields.nth(1)?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let listens = state == LISTEN && port == address.port();
    let overlaps = listens && overlap(ip_of(ip)?, address.ip());
    overlaps.then(|| fields.nth(5)).flatten()
}

fn overlap(a: IpAddr, b: IpAddr) -> bool {
    a == b || a.is_unspecified() || b.is_unspecified()
}

/// The kernel prints an address as words in its own byte order.
#[expect(
    clippy::host_endian_bytes,
    reason = "the order that the kernel prints in"
)]
fn ip_of(hex: &str) -> Option<IpAddr> {
    let mut bytes = Vec::new();
    for word in hex.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let v4 = <[u8; 4]>::try_from(bytes.as_slice()).map(|v4| Ipv4Addr::from(v4).into());
    let v6 = || <[u8; 16]>::try_from(bytes.as_slice()).map(|v6| Ipv6Addr::from(v6).into());
    v4.or_else(|_| v6()).ok()
}

/// The process of that directory of `/proc`, if it has the socket open.
fn owner(process: &Path, link: &str) -> Option<Owner> {
    let pid = process.file_name()?.to_str()?.parse().ok()?;
    let mut files = fs::read_dir(process.join("fd")).ok()?.flatten();
    files.find(|file| fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == link))?;
    let name = fs::read_to_string(process.join("comm")).ok()?;
    Some(Owner {
        name: name.trim_end().to_owned(),
        pid,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_listener_of_this_process_is_found_by_any_address_that_reaches_it() {
        for bound in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"] {
            let listener = TcpListener::bind(bound).unwrap();
            let mut address = listener.local_addr().unwrap();
            let owner = find(address).unwrap();
            assert_eq!(owner.pid, std::process::id(), "{bound}");
            address.set_ip(Ipv4Addr::UNSPECIFIED.into());
            assert_eq!(find(address), Some(owner));
        }
    }

    #[test]
    #[expect(
        clippy::host_endian_bytes,
        reason = "the order that the kernel prints in"
    )]
    fn what_does_not_listen_there_is_passed_over() {
        let address: SocketAddr = "127.0.0.1:8080".parse().unwrap();
        let line = |local: &str, state: &str| {
            let line = format!("  0: {local} 00000000:0000 {state} 0:0 0:0 0 1000 0 4711 1 0");
            inode_of(&line, address).map(str::to_owned)
        };
        let loopback = u32::from_ne_bytes([127, 0, 0, 1]);
        let here = format!("{loopback:08X}:1F90");
        assert_eq!(line(&here, LISTEN).as_deref(), Some("4711"));
        assert_eq!(line("00000000:1F90", LISTEN).as_deref(), Some("4711"));
        assert_eq!(line(&here, "01"), None);
        assert_eq!(line(&here.replace("1F90", "1F91"), LISTEN), None);
        assert_eq!(line("0A0A0A0A:1F90", LISTEN), None);
        for odd in ["", "sl local_address", "0: x:y z 0A", "0: é:1F90 z 0A"] {
            assert_eq!(inode_of(odd, address), None, "{odd}");
        }
    }
}
