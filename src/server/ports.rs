//! Every address that the server listens on, bound before root is given up.

use super::port_owner::{self, Owner};
use crate::config::ports::Port;
use crate::config::records::Records;
use crate::mgmt::load::Loaded;
use crate::proxy::listener::{
    Dialect, ListenError, ListenOptions, Listeners, every_address, listen,
};
use std::io;
use std::net::{SocketAddr, TcpListener};

/// The value of `proxy.config.admin.listen` that means no listener.
const OFF: &str = "off";

/// Why an address can't be had. `note` tells who has it and what to do; it is
/// empty when nobody has it.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// A port for clients.
    #[error("proxy.config.http.server_ports: {error}{note}")]
    Client {
        /// The port and the reason.
        error: ListenError,
        /// Who has it.
        note: String,
    },
    /// The admin listener's record is not an address.
    #[error("proxy.config.admin.listen: {0:?} is not ADDRESS:PORT, nor \"off\"")]
    AdminAddress(String),
    /// The admin listener's address is taken or not ours.
    #[error("proxy.config.admin.listen: cannot listen on {address}: {source}{note}")]
    Admin {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
        /// Who has it.
        note: String,
    },
}

/// Every address that can't be had, at least one.
#[derive(Debug, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct PortErrors(pub Vec<PortError>);

fn lines(errors: &[PortError]) -> String {
    let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// A port for clients, bound.
#[derive(Debug)]
pub(super) struct Client {
    /// A socket a thread.
    pub(super) listeners: Listeners,
    /// What is spoken there.
    pub(super) dialect: Dialect,
}

/// The bound addresses.
#[derive(Debug)]
pub(super) struct Bound {
    /// For clients.
    pub(super) clients: Vec<Client>,
    /// For the admin pages.
    pub(super) admin: Option<TcpListener>,
    /// Every address, of clients' ports and the admin pages; requests are
    /// never forwarded to one of them. Fixed at the bind: the sockets above
    /// are given away one by one while the server starts, and a list made
    /// after that once left the admin pages open to the forward proxy.
    pub(super) own: Vec<SocketAddr>,
}

impl Bound {
    /// Where clients connect.
    pub(super) fn ports(&self) -> Vec<SocketAddr> {
        let clients = self.clients.iter();
        clients.map(|port| port.listeners.address).collect()
    }

    /// Where the admin pages are.
    pub(super) fn admin_address(&self) -> Option<SocketAddr> {
        let admin = self.admin.as_ref()?;
        admin.local_addr().ok()
    }
}

/// Binds every address, clients' by `threads` sockets each.
pub(super) fn bind(loaded: &Loaded, threads: usize) -> Result<Bound, PortErrors> {
    let options = ListenOptions {
        backlog: backlog(&loaded.records),
        shares: threads,
    };
    let mut errors = Vec::new();
    let mut clients = Vec::new();
    for port in &loaded.ports.ports {
        match bind_client(port, options) {
            Ok(client) => clients.push(client),
            Err(error) => errors.push(error),
        }
    }
    let admin = bind_admin(&loaded.records.admin_listen).unwrap_or_else(|error| {
        errors.push(error);
        None
    });
    if !errors.is_empty() {
        return Err(PortErrors(errors));
    }
    let mut bound = Bound {
        clients,
        admin,
        own: Vec::new(),
    };
    let addresses = bound.ports().into_iter().chain(bound.admin_address());
    bound.own = addresses.flat_map(every_address).collect();
    Ok(bound)
}

/// -1 is as many as the system allows, which caps it.
fn backlog(records: &Records) -> i32 {
    match i32::try_from(records.net_listen_backlog) {
        Ok(backlog) if backlog > 0 => backlog,
        _ => i32::MAX,
    }
}

fn bind_client(port: &Port, options: ListenOptions) -> Result<Client, PortError> {
    let address = port.socket_addr();
    let dialect = Dialect {
        tls: port.tls,
        introduced: port.introduced,
        http2: port.http2,
    };
    let bound = listen(address, options).map(|listeners| Client { listeners, dialect });
    bound.map_err(|error| {
        let taken = matches!(error, ListenError::Taken { .. });
        let note = note(address, taken);
        PortError::Client { error, note }
    })
}

/// What follows the reason for which an address can't be had.
fn note(address: SocketAddr, taken: bool) -> String {
    if !taken {
        return String::new();
    }
    let owner = port_owner::find(address);
    if owner.as_ref().is_some_and(Owner::is_this_process) {
        return ", which this server has already, by proxy.config.http.server_ports; \
                choose another port in one of the two places"
            .to_owned();
    }
    let owner = owner.map(|owner| format!(", {owner}")).unwrap_or_default();
    format!("{owner}; stop it, or choose another port")
}

fn bind_admin(record: &str) -> Result<Option<TcpListener>, PortError> {
    if record == OFF {
        return Ok(None);
    }
    let address: SocketAddr = record
        .parse()
        .map_err(|_| PortError::AdminAddress(record.to_owned()))?;
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    bound.map(Some).map_err(|source| PortError::Admin {
        address,
        note: note(address, source.kind() == io::ErrorKind::AddrInUse),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_admin_listener_can_be_off_and_faults_name_its_record() {
        assert!(bind_admin("off").unwrap().is_none());
        let taken = bind_admin("127.0.0.1:0").unwrap().unwrap();
        let address = taken.local_addr().unwrap().to_string();
        for record in ["localhost:1", "8083", "", &address] {
            let error = bind_admin(record).unwrap_err().to_string();
            assert!(error.starts_with("proxy.config.admin.listen: "), "{error}");
        }
    }
}
