//! An event thread: one single-threaded runtime, its own sockets, its own
//! connections. A connection lives and dies on one thread.

use super::connection;
use super::context::WorkerContext;
use super::life::Stage;
use super::listener::{Dialect, Door};
use super::peer::Peer;
use crate::device::drive_reads;
use crate::metrics::{Cells, Held, Metric};
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::{LocalSet, spawn_local};

/// Pause after an accept that failed for want of something: descriptors or
/// memory are not there any sooner for asking again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Wait for connections to notice that they are cut off.
const CUT_GRACE: Duration = Duration::from_secs(1);

/// Client connections that the server takes at a time, over all threads
/// (`net.max_connections_in`, bounded by `net.connections_throttle`). At the
/// limit, new ones wait: one for each socket, the others in the kernel's queue.
pub type Slots = Arc<Semaphore>;

/// Runs an event thread until the server is stopped: accepts at `doors`,
/// serves, drains. `context` is made on the thread, inside its runtime.
///
/// # Errors
/// The system refuses a runtime, or to wait on a socket.
pub fn run<F>(doors: Vec<Door>, slots: Slots, context: F) -> io::Result<()>
where
    F: FnOnce() -> WorkerContext,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let local = LocalSet::new();
    local.block_on(&runtime, async move {
        let worker = Rc::new(Worker {
            context: Rc::new(context()),
            slots,
            open: Cell::new(0),
            closed: Notify::new(),
        });
        spawn_local(read_by_ring(Rc::clone(&worker)));
        for Door { socket, dialect } in doors {
            let listener = TcpListener::from_std(socket)?;
            spawn_local(accept(Rc::clone(&worker), listener, dialect));
        }
        worker.until_stopped().await;
        Ok(())
    })
}

struct Worker {
    context: Rc<WorkerContext>,
    slots: Slots,
    open: Cell<usize>,
    closed: Notify,
}

impl Worker {
    async fn until_stopped(&self) {
        let mut life = self.context.shared.life.clone();
        life.reaches(Stage::Draining).await;
        tokio::select! {
            () = self.idle() => {}
            () = life.reaches(Stage::Stopped) => {
                // Past this, dropping the runtime cuts them off all the same.
                drop(tokio::time::timeout(CUT_GRACE, self.empty()).await);
            }
        }
    }

    /// Until nobody is connected, nor follows from another thread what may be
    /// fetched on this one.
    async fn idle(&self) {
        self.empty().await;
        self.context.shared.fills.deserted().await;
    }

    async fn empty(&self) {
        while self.open.get() > 0 {
            self.closed.notified().await;
        }
    }
}

/// Lets the thread read the spans by itself, where that is how they are read.
async fn read_by_ring(worker: Rc<Worker>) {
    let cache = worker.context.shared.cache.as_ref();
    if cache.is_some_and(|cache| cache.is_read_by_rings())
        && let Err(error) = drive_reads().await
    {
        tracing::warn!(%error, "no io_uring for this event thread: its reads go by threads");
    }
}

/// Accepts until the server drains; dropping the listener refuses the rest.
async fn accept(worker: Rc<Worker>, listener: TcpListener, dialect: Dialect) {
    let mut life = worker.context.shared.life.clone();
    let cells = &worker.context.cells;
    let _open = Held::new(cells, Metric::NetAcceptsOpen);
    loop {
        tokio::select! {
            () = life.reaches(Stage::Draining) => return,
            accepted = next(&worker, &listener) => match accepted {
                Ok((stream, client, permit)) => {
                    let local = stream.local_addr().unwrap_or(client);
                    let peer = Peer::new(client, local);
                    open(&worker, (stream, peer, dialect), permit);
                }
                Err(error) => pause(&error, cells).await,
            },
        }
    }
}

/// The next connection, and its slot. The slot is taken last: a socket that
/// nobody connects to must not keep one from the others.
async fn next(
    worker: &Worker,
    listener: &TcpListener,
) -> io::Result<(TcpStream, SocketAddr, Option<OwnedSemaphorePermit>)> {
    let (stream, client) = listener.accept().await?;
    if worker.slots.available_permits() == 0 {
        let cells = &worker.context.cells;
        cells.add(Metric::NetConnectionsThrottledIn, 1);
    }
    // The semaphore is never closed, so there is always a permit.
    let permit = Arc::clone(&worker.slots).acquire_owned().await.ok();
    Ok((stream, client, permit))
}

/// A client that left before it was accepted is no reason to wait; anything
/// else is a shortage (EMFILE, ENFILE, ENOBUFS, ENOMEM).
async fn pause(error: &io::Error, cells: &Cells) {
    let gone = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    );
    if gone {
        cells.add(Metric::TransactionErrorsPreAcceptHangups, 1);
    } else {
        tracing::warn!(%error, "can't accept");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

fn open(
    worker: &Rc<Worker>,
    (stream, peer, dialect): (TcpStream, Peer, Dialect),
    permit: Option<OwnedSemaphorePermit>,
) {
    let counted = Counted::new(Rc::clone(worker), &peer);
    spawn_local(async move {
        let context = Rc::clone(&counted.worker.context);
        connection::serve(context, stream, (peer, dialect)).await;
        drop(permit);
        drop(counted);
    });
}

/// An open connection in the counters, and in the thread's tally for drain.
struct Counted {
    worker: Rc<Worker>,
    _gauges: [Held; 2],
}

impl Counted {
    fn new(worker: Rc<Worker>, peer: &Peer) -> Self {
        let cells = &worker.context.cells;
        cells.add(Metric::TotalClientConnections, 1);
        cells.add(Metric::TotalIncomingConnections, 1);
        let family = if peer.client.is_ipv4() {
            Metric::TotalClientConnectionsIpv4
        } else {
            Metric::TotalClientConnectionsIpv6
        };
        cells.add(family, 1);
        worker.open.set(worker.open.get() + 1);
        let gauges = [Metric::CurrentClientConnections, Metric::NetConnectionsOpen];
        let held = gauges.map(|gauge| Held::new(cells, gauge));
        Self {
            _gauges: held,
            worker,
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let worker = &self.worker;
        worker.open.set(worker.open.get().saturating_sub(1));
        worker.closed.notify_waiters();
    }
}
