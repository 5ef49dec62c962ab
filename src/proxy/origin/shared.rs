//! HTTP/2 connections to origins: many requests share one (RFC 9113 9.1).

use super::OriginOptions;
use super::error::OriginError;
use super::pool::{PoolState, ServerKey, Slot};
use super::stream::OriginStream;
use crate::base::clock::{Clock, MonoTime};
use crate::metrics::{Cells, Held, Metric};
use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// Bytes of responses that a connection may hold, all its streams together.
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Bytes of requests' content that a stream holds beyond what the socket takes.
const SEND_BUFFER: usize = 65_536;

/// A connection that requests share.
pub(super) struct SharedConnection {
    sender: SendRequest<Bytes>,
    peer: IpAddr,
    open: Cell<usize>,
    /// No more requests: the origin has said so, or has fallen silent.
    ending: Rc<Cell<bool>>,
    idle_since: Cell<MonoTime>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for SharedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedConnection")
            .field("peer", &self.peer)
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

impl SharedConnection {
    /// Speaks HTTP/2 on a socket; the slot is held until the connection closes.
    pub(super) async fn shake(
        (stream, peer): (OriginStream, IpAddr),
        slot: Rc<Slot>,
        options: &OriginOptions,
        pool: &PoolState,
    ) -> Result<Rc<Self>, OriginError> {
        let shaken = builder(options).handshake(stream).await;
        let (sender, connection) = shaken.map_err(|error| OriginError::from_h2(&error))?;
        let ending = Rc::new(Cell::new(false));
        let held = Held::new(&pool.cells, Metric::Http2OriginCurrentConnections);
        pool.cells.add(Metric::Http2OriginConnections, 1);
        let ended = Rc::clone(&ending);
        tokio::task::spawn_local(async move {
            // Its error reaches whoever waits for a response or reads a body.
            drop(connection.await);
            ended.set(true);
            drop((held, slot));
        });
        Ok(Rc::new(Self {
            sender,
            peer,
            open: Cell::new(0),
            ending,
            idle_since: Cell::new(pool.clock.mono()),
            clock: Arc::clone(&pool.clock),
        }))
    }

    /// Whether it takes another request, where `max` may be open on it.
    fn has_room(&self, max: usize) -> bool {
        let max = max.min(self.sender.current_max_send_streams());
        !self.ending.get() && self.open.get() < max
    }

    /// Whether it is of no more use, or has had none for that long.
    fn is_over(&self, now: MonoTime, idle: Duration) -> bool {
        let unused = self.open.get() == 0;
        self.ending.get() || (unused && now.since(self.idle_since.get()) >= idle)
    }
}

fn builder(options: &OriginOptions) -> Builder {
    let mut builder = Builder::new();
    let bytes = u32::try_from(options.head_bytes_max).unwrap_or(u32::MAX);
    builder
        .enable_push(false)
        .initial_window_size(options.stream_window)
        .initial_connection_window_size(CONNECTION_WINDOW.max(options.stream_window))
        .max_header_list_size(bytes)
        .max_send_buffer_size(SEND_BUFFER);
    builder
}

/// One request's share of a connection.
#[derive(Debug)]
pub(super) struct StreamLease {
    connection: Rc<SharedConnection>,
    _in_work: Held,
}

impl StreamLease {
    pub(super) fn new(connection: &Rc<SharedConnection>, cells: &Arc<Cells>) -> Self {
        connection.open.set(connection.open.get() + 1);
        cells.add(Metric::Http2OriginStreams, 1);
        Self {
            connection: Rc::clone(connection),
            _in_work: Held::new(cells, Metric::CurrentServerTransactions),
        }
    }

    pub(super) fn sender(&self) -> SendRequest<Bytes> {
        self.connection.sender.clone()
    }

    /// No other request is to come on this connection.
    pub(super) fn abandon_connection(&self) {
        self.connection.ending.set(true);
    }
}

impl Drop for StreamLease {
    fn drop(&mut self) {
        let connection = &self.connection;
        connection.open.set(connection.open.get().saturating_sub(1));
        connection.idle_since.set(connection.clock.mono());
    }
}

/// One thread's shared connections.
#[derive(Debug, Default)]
pub(super) struct SharedConnections {
    servers: RefCell<HashMap<ServerKey, Server>>,
}

#[derive(Debug, Default)]
struct Server {
    connections: Vec<Rc<SharedConnection>>,
    gate: Rc<Gate>,
}

impl SharedConnections {
    /// A stream on a connection with room, to an address that `allowed` lets
    /// through.
    pub(super) fn lease(
        &self,
        server: &ServerKey,
        max: usize,
        allowed: impl Fn(IpAddr) -> bool,
        cells: &Arc<Cells>,
    ) -> Option<StreamLease> {
        let servers = self.servers.borrow();
        let mut connections = servers.get(server)?.connections.iter();
        let found = connections.find(|one| one.has_room(max) && allowed(one.peer))?;
        Some(StreamLease::new(found, cells))
    }

    /// Lets others share the connection.
    pub(super) fn add(&self, server: &ServerKey, connection: &Rc<SharedConnection>) {
        let mut servers = self.servers.borrow_mut();
        let server = servers.entry(server.clone()).or_default();
        server.connections.push(Rc::clone(connection));
    }

    /// The turns of those who connect to the server.
    pub(super) fn gate(&self, server: &ServerKey) -> Rc<Gate> {
        let mut servers = self.servers.borrow_mut();
        Rc::clone(&servers.entry(server.clone()).or_default().gate)
    }

    /// Lets go of connections that are over; they close once their last stream
    /// has ended.
    pub(super) fn sweep(&self, now: MonoTime, idle: Duration) {
        let mut servers = self.servers.borrow_mut();
        for server in servers.values_mut() {
            server.connections.retain(|one| !one.is_over(now, idle));
        }
        servers.retain(|_, one| !one.connections.is_empty() || Rc::strong_count(&one.gate) > 1);
    }
}

/// Who may connect to a server that perhaps speaks HTTP/2: one at a time, as
/// the others are to share what comes of it.
#[derive(Debug, Default)]
pub(super) struct Gate {
    taken: Cell<bool>,
    /// Turns that brought no connection to share.
    vain: Cell<u64>,
    changed: Notify,
}

/// What a request at the gate is to do.
#[derive(Debug)]
pub(super) enum Turn {
    /// Connect; others wait until it is told or dropped.
    Connect(Taken),
    /// Look again: somebody has connected.
    Look,
    /// Connect without a turn: what others tried cannot be shared.
    Alone,
}

/// A turn. Dropped untold, it was in vain.
#[derive(Debug)]
pub(super) struct Taken(Rc<Gate>);

impl Gate {
    /// Takes the turn, or waits for who has it.
    pub(super) async fn turn(self: Rc<Self>) -> Turn {
        if !self.taken.replace(true) {
            return Turn::Connect(Taken(self));
        }
        let vain = self.vain.get();
        self.changed.notified().await;
        match self.vain.get() == vain {
            true => Turn::Look,
            false => Turn::Alone,
        }
    }
}

impl Taken {
    /// Others can share the connection.
    pub(super) fn shared(self) {
        // The drop counts one in vain.
        self.0.vain.set(self.0.vain.get().wrapping_sub(1));
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.vain.set(self.0.vain.get().wrapping_add(1));
        self.0.taken.set(false);
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    fn look<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    fn taken(gate: &Rc<Gate>) -> Taken {
        let turn = look(pin!(Rc::clone(gate).turn()));
        let Poll::Ready(Turn::Connect(taken)) = turn else {
            panic!("{turn:?}")
        };
        taken
    }

    #[test]
    fn one_connects_and_the_others_look_again_or_go_alone_when_it_was_in_vain() {
        let gate = Rc::new(Gate::default());
        for in_vain in [false, true, false] {
            let first = taken(&gate);
            let mut second = pin!(Rc::clone(&gate).turn());
            assert!(look(second.as_mut()).is_pending());
            match in_vain {
                true => drop(first),
                false => first.shared(),
            }
            let turn = look(second.as_mut());
            let alone = matches!(turn, Poll::Ready(Turn::Alone));
            let looks = matches!(turn, Poll::Ready(Turn::Look));
            assert_eq!((alone, looks), (in_vain, !in_vain));
        }
    }
}
