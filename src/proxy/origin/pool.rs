//! One thread's connections to origins: idle ones, and how many there may be.

use super::OriginOptions;
use super::down::Down;
use super::error::OriginError;
use super::judged::Announcer;
use super::request::RequestBody;
use super::shared::SharedConnections;
use crate::base::clock::{Clock, MonoTime};
use crate::metrics::{Cells, Held, Metric};
use hyper::client::conn::http1::SendRequest;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The server a connection belongs to, and what it is secured by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ServerKey {
    /// Its name or address, in URL form; over TLS it has proven to be that.
    pub(super) host: Arc<str>,
    pub(super) port: u16,
    /// The identity of the settings of TLS; none in clear.
    pub(super) tls: Option<u64>,
    /// Whether HTTP/2 is spoken there unasked (prior knowledge).
    pub(super) knows_h2: bool,
}

impl ServerKey {
    /// A server spoken to in clear.
    pub(super) const fn plain(host: Arc<str>, port: u16) -> Self {
        Self {
            host,
            port,
            tls: None,
            knows_h2: false,
        }
    }

    /// Whether it is spoken to over TLS.
    pub(super) const fn is_secured(&self) -> bool {
        self.tls.is_some()
    }
}

/// Connections open over all threads; those to each server are kept apart only
/// while `per_server.connection.max` limits them.
#[derive(Debug, Default)]
pub struct ServerCounts {
    total: AtomicUsize,
    open: Mutex<HashMap<ServerKey, usize>>,
}

impl ServerCounts {
    /// Takes a slot, unless `max` of this server's are taken.
    fn take(&self, server: &ServerKey, max: usize) -> bool {
        let mut open = self.open.lock();
        let count = open.entry(server.clone()).or_default();
        let room = *count < max;
        *count += usize::from(room);
        room
    }

    fn give(&self, server: &ServerKey) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(server) {
            *count = count.saturating_sub(1);
        }
        open.retain(|_, count| *count > 0);
    }
}

/// A connection's slot among those of its server; dropped when it is closed.
#[derive(Debug)]
pub(super) struct Slot {
    counts: Arc<ServerCounts>,
    server: Option<ServerKey>,
    _gauges: [Held; 2],
}

impl Slot {
    /// A slot for a new connection.
    ///
    /// # Errors
    /// `Busy` with the limit that is reached.
    pub(super) fn take(
        pool: &PoolState,
        server: &ServerKey,
        options: &OriginOptions,
    ) -> Result<Self, OriginError> {
        let mut slot = Self::any(pool);
        let all = pool.counts.total.load(Ordering::Relaxed);
        if options.total_max > 0 && all > options.total_max {
            return Err(OriginError::Busy(options.total_max));
        }
        let max = options.per_server_max;
        if max > 0 && !pool.counts.take(server, max) {
            return Err(OriginError::Busy(max));
        }
        slot.server = (max > 0).then(|| server.clone());
        Ok(slot)
    }

    fn any(pool: &PoolState) -> Self {
        pool.counts.total.fetch_add(1, Ordering::Relaxed);
        let gauges = [Metric::CurrentServerConnections, Metric::NetConnectionsOpen];
        Self {
            counts: Arc::clone(&pool.counts),
            server: None,
            _gauges: gauges.map(|gauge| Held::new(&pool.cells, gauge)),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.counts.total.fetch_sub(1, Ordering::Relaxed);
        if let Some(server) = self.server.take() {
            self.counts.give(&server);
        }
    }
}

/// The way to send requests on one connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: SendRequest<RequestBody>,
    /// Told of each request before it is sent.
    pub(super) announcer: Announcer,
    pub(super) peer: IpAddr,
    /// Held by what may outlive the HTTP on the connection, else by that.
    pub(super) _slot: Option<Rc<Slot>>,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: MonoTime,
}

/// What one thread's pool holds.
pub(super) struct PoolState {
    pub(super) counts: Arc<ServerCounts>,
    pub(super) cells: Arc<Cells>,
    pub(super) clock: Arc<dyn Clock>,
    /// The connections of HTTP/2.
    pub(super) shared: SharedConnections,
    /// The addresses that count as down.
    pub(super) down: RefCell<Down>,
    idle: RefCell<HashMap<ServerKey, Vec<Idle>>>,
}

impl PoolState {
    pub(super) fn new(counts: Arc<ServerCounts>, cells: Arc<Cells>, clock: Arc<dyn Clock>) -> Self {
        Self {
            counts,
            cells,
            clock,
            shared: SharedConnections::default(),
            down: RefCell::default(),
            idle: RefCell::default(),
        }
    }

    /// The idle connection used last that is still open, not idle for too
    /// long, and leads to an address that `allowed` lets through.
    pub(super) fn take(
        &self,
        server: &ServerKey,
        options: &OriginOptions,
        allowed: impl Fn(IpAddr) -> bool,
    ) -> Option<Connection> {
        let now = self.clock.mono();
        let mut idle = self.idle.borrow_mut();
        let list = idle.get_mut(server)?;
        self.keep(list, |one| now.since(one.since) < options.idle_timeout);
        let at = list.iter().rposition(|one| allowed(one.connection.peer))?;
        self.cells.sub(Metric::PooledServerConnections, 1);
        Some(list.remove(at).connection)
    }

    /// Closes what has been idle for too long, or was closed by its peer.
    pub(super) fn sweep(&self, options: &OriginOptions) {
        let now = self.clock.mono();
        let mut idle = self.idle.borrow_mut();
        for list in idle.values_mut() {
            self.keep(list, |one| now.since(one.since) < options.idle_timeout);
        }
        idle.retain(|_, list| !list.is_empty());
        self.shared.sweep(now, options.idle_timeout);
        self.down.borrow_mut().sweep(now);
    }

    fn keep(&self, list: &mut Vec<Idle>, fits: impl Fn(&Idle) -> bool) {
        let before = list.len();
        list.retain(|one| !one.connection.sender.is_closed() && fits(one));
        let closed = u64::try_from(before - list.len()).unwrap_or(0);
        self.cells.sub(Metric::PooledServerConnections, closed);
    }

    fn put(&self, server: ServerKey, connection: Connection) {
        let since = self.clock.mono();
        let idle = Idle { connection, since };
        self.idle.borrow_mut().entry(server).or_default().push(idle);
        self.cells.add(Metric::PooledServerConnections, 1);
    }
}

/// A connection in use. Dropped, it closes once hyper has no more use for it.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) connection: Connection,
    server: ServerKey,
    home: Option<Weak<PoolState>>,
    _in_work: Held,
}

impl std::fmt::Debug for PoolState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PoolState").finish_non_exhaustive()
    }
}

impl Lease {
    /// `keep` says whether it may go back to the pool.
    pub(super) fn new(
        connection: Connection,
        server: ServerKey,
        pool: &Rc<PoolState>,
        keep: bool,
    ) -> Self {
        Self {
            connection,
            server,
            home: keep.then(|| Rc::downgrade(pool)),
            _in_work: Held::new(&pool.cells, Metric::CurrentServerTransactions),
        }
    }

    /// Back to the pool, if its message exchange is over and it may be kept.
    pub(super) fn give_back(self) {
        let pool = self.home.and_then(|home| home.upgrade());
        let open = !self.connection.sender.is_closed();
        if let Some(pool) = pool.filter(|_| open) {
            pool.put(self.server, self.connection);
        }
    }
}
