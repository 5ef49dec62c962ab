//! One HTTP/2 connection, from its preface to its close.

use super::PREFACE;
use super::body::RequestBody;
use super::guarded::Guarded;
use super::head::{self, Ask, Rules};
use super::options::H2Options;
use super::reply::Reply;
use super::room::Taken;
use super::stream::Stream;
use super::watch::Watch;
use crate::metrics::{Held, Metric};
use crate::proxy::client::{Exchange, RequestError};
use crate::proxy::context::WorkerContext;
use crate::proxy::h1::ConnOptions;
use crate::proxy::life::Stage;
use crate::proxy::patience::Patience;
use crate::proxy::peer::Peer;
use crate::proxy::transaction;
use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::{Method, Request};
use std::future::poll_fn;
use std::mem::replace;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{JoinError, JoinSet, yield_now};
use tokio::time::timeout;

/// Streams that are opened at a time, before those that are there may run: most
/// are hits, and end as soon as they do.
const BURST: usize = 32;

/// Wait for a client without streams to let go once it is asked to: it answers
/// a PING, unless it is asleep.
const GRACE: Duration = Duration::from_secs(1);

/// Wait for a client to take our last word.
const FAREWELL: Duration = Duration::from_secs(3);

/// A connection that is one of HTTP/2.
#[derive(Debug)]
pub(in crate::proxy) struct Arrived<T> {
    /// The socket.
    pub(in crate::proxy) io: T,
    /// What was read of it to find that out.
    pub(in crate::proxy) begun: Bytes,
    /// Its two ends.
    pub(in crate::proxy) peer: Peer,
    /// Its scheme, and bounds on its heads and waits.
    pub(in crate::proxy) conn: ConnOptions,
    /// The bounds of HTTP/2.
    pub(in crate::proxy) options: H2Options,
}

/// A request, and the way to answer it, as the library gives them.
type Accepted = (Request<RecvStream>, SendResponse<Bytes>);

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The client is gone, or was let go in order.
    Closed,
    /// It broke the protocol, or its socket failed.
    Failed,
    /// Nothing was asked for too long, or a head did not come to its end.
    Idle,
    /// It did not let go when the server drained.
    Drained,
    /// It did too much of something.
    Abuse,
}

/// Serves a connection to its end, each stream as a task of its own.
pub(in crate::proxy) async fn serve<T>(context: Rc<WorkerContext>, arrived: Arrived<T>)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let cells = &context.cells;
    cells.add(Metric::Http2Connections, 1);
    let _open = Held::new(cells, Metric::Http2CurrentConnections);
    let options = arrived.options;
    let watch = Rc::new(Watch::new(options.frames, cells, PREFACE.len()));
    let io = Guarded::new(arrived.io, arrived.begun, &watch);
    let mut connection = match prefaced(&context, io, &options).await {
        Ok(connection) => connection,
        Err(end) => return cells.add(end.metric(), 1),
    };
    let mut streams = Streams {
        rules: Rc::new(Rules {
            conn: arrived.conn,
            header_list: usize::try_from(options.header_list).unwrap_or(usize::MAX),
            websocket: options.websocket,
        }),
        peer: arrived.peer,
        context: Rc::clone(&context),
        watch,
        window: options.first_window(),
        wide: options.wide_window(),
        options,
        generation: 0,
        room: None,
        tasks: JoinSet::new(),
        opened: 0,
        drains: false,
        active: None,
    };
    let end = streams.accept(&mut connection).await;
    farewell(&context, &mut connection, end).await;
    // What still runs is told by its stream that the client is gone.
    drop(connection);
    streams.settle().await;
}

impl End {
    /// The counter of connections that end so.
    const fn metric(self) -> Metric {
        match self {
            Self::Closed | Self::Drained => Metric::Http2SessionsEos,
            Self::Failed | Self::Abuse => Metric::Http2SessionsError,
            Self::Idle => Metric::Http2SessionsInactive,
        }
    }

    /// What the client is told, if it can still hear it.
    const fn reason(self) -> Option<Reason> {
        match self {
            Self::Closed | Self::Failed => None,
            Self::Idle | Self::Drained => Some(Reason::NO_ERROR),
            Self::Abuse => Some(Reason::ENHANCE_YOUR_CALM),
        }
    }
}

/// Waits for the preface; a server that drains does not.
async fn prefaced<T>(
    context: &WorkerContext,
    io: Guarded<T>,
    options: &H2Options,
) -> Result<Connection<Guarded<T>, Bytes>, End>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let mut life = context.shared.life.clone();
    let handshake = timeout(options.first_byte, options.builder().handshake(io));
    tokio::select! {
        biased;
        done = handshake => match done {
            Ok(connection) => connection.map_err(|error| failed(&error)),
            Err(_) => Err(End::Idle),
        },
        () = life.reaches(Stage::Draining) => Err(End::Closed),
    }
}

/// Says why, where the client can still hear it.
async fn farewell<T>(context: &WorkerContext, connection: &mut Connection<T, Bytes>, end: End)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    context.cells.add(end.metric(), 1);
    if let Some(reason) = end.reason() {
        connection.abrupt_shutdown(reason);
        let closed = poll_fn(|cx| connection.poll_closed(cx));
        // One that doesn't listen isn't waited for.
        drop(timeout(FAREWELL, closed).await);
    }
}

/// The streams of one connection.
struct Streams {
    context: Rc<WorkerContext>,
    peer: Peer,
    rules: Rc<Rules>,
    options: H2Options,
    /// The configuration that was last seen to have the connection as it is.
    generation: u64,
    watch: Rc<Watch>,
    /// Bytes of the connection's window before an upload, and from then on.
    window: u32,
    wide: u32,
    /// There once the window is wide: a client keeps what it was given.
    room: Option<Taken>,
    tasks: JoinSet<()>,
    /// Streams since the connection began.
    opened: usize,
    /// Whether the client was asked to open no more.
    drains: bool,
    /// There while there is a stream.
    active: Option<Held>,
}

impl Streams {
    /// Takes stream after stream, to the connection's end. When the server
    /// drains, or what the connection was accepted under has changed, the client
    /// is asked to open no more, and those that are there are served.
    async fn accept<T>(&mut self, connection: &mut Connection<T, Bytes>) -> End
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let mut life = self.context.shared.life.clone();
        let mut draining = pin!(life.reaches(Stage::Draining));
        let watch = Rc::clone(&self.watch);
        let mut idle = pin!(watch.idle(self.options.idle));
        let mut unended = pin!(watch.unended(self.options.head));
        let mut deaf = pin!(watch.idle(GRACE));
        while watch.abuse().is_none() {
            tokio::select! {
                biased;
                accepted = connection.accept() => match accepted {
                    Some(Ok(accepted)) => {
                        self.widen(&accepted.0, connection);
                        self.open(accepted);
                        if !self.drains && self.is_outdated() {
                            self.drain(connection);
                        }
                        if self.opened.is_multiple_of(BURST) {
                            self.pause(connection).await;
                        }
                    }
                    Some(Err(error)) => return failed(&error),
                    None => return End::Closed,
                },
                Some(done) = self.tasks.join_next() => self.ended(done),
                _ = watch.abused() => return End::Abuse,
                () = &mut unended => return End::Idle,
                () = &mut draining, if !self.drains => self.drain(connection),
                () = &mut deaf, if self.drains && self.tasks.is_empty() => return End::Drained,
                () = &mut idle, if self.tasks.is_empty() => return End::Idle,
            }
        }
        End::Abuse
    }

    /// Lets streams run, and does what waits behind a client that never leaves
    /// a moment without a new one.
    async fn pause<T>(&mut self, connection: &mut Connection<T, Bytes>)
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        yield_now().await;
        while let Some(done) = self.tasks.try_join_next() {
            self.ended(done);
        }
        if !self.drains && self.context.shared.life.stage() != Stage::Serving {
            self.drain(connection);
        }
    }

    /// An upload has room of its own, while the thread has that for its
    /// connection; else it shares the connection's with the others. A tunnel is
    /// read as it comes.
    fn widen<T>(&mut self, request: &Request<RecvStream>, connection: &mut Connection<T, Bytes>)
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let uploads = !request.body().is_end_stream() && request.method() != Method::CONNECT;
        if uploads && self.room.is_none() {
            let more = self.wide.saturating_sub(self.window);
            self.room = self.context.uploads.take(more.into());
            if self.room.is_some() {
                connection.set_target_window_size(self.wide);
            }
        }
    }

    /// Whether a reload would have such a connection otherwise: by other bounds,
    /// or none like it for its name. To be asked at each stream: who asks for
    /// nothing has nothing to be told, and clients that a reload concerns do not
    /// come back all at once.
    fn is_outdated(&mut self) -> bool {
        let now = self.context.shared.snapshot.load();
        if replace(&mut self.generation, now.generation) == now.generation {
            return false;
        }
        let conn = ConnOptions {
            scheme: self.rules.conn.scheme,
            ..now.conn
        };
        conn != self.rules.conn || now.h2 != self.options || !now.sni.would_have(&self.peer)
    }

    fn drain<T>(&mut self, connection: &mut Connection<T, Bytes>)
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        self.drains = true;
        self.watch.touch();
        connection.graceful_shutdown();
    }

    fn open(&mut self, accepted: Accepted) {
        let cells = &self.context.cells;
        if self.active.is_none() {
            self.active = Some(Held::new(cells, Metric::CurrentActiveClientConnections));
        }
        cells.add(Metric::Http2Streams, 1);
        self.opened += 1;
        let (context, peer) = (Rc::clone(&self.context), self.peer.clone());
        let rules = Rc::clone(&self.rules);
        // Boxed: a task's own memory is aligned to 128 bytes, and glibc before
        // 2.38 does not use such memory of this size (16 KiB) again (its bug 14581).
        let stream = Box::pin(async move { exchange(&context, &peer, &rules, accepted).await });
        self.tasks.spawn_local(stream);
    }

    /// A stream that fell over takes none with it; its request was cut off.
    fn ended(&mut self, done: Result<(), JoinError>) {
        if let Err(error) = done {
            tracing::error!(%error, peer = %self.peer.client, "an HTTP/2 stream failed");
        }
        if self.tasks.is_empty() {
            self.active = None;
            self.watch.touch();
        }
    }

    /// Waits for the streams to account for themselves.
    async fn settle(&mut self) {
        while let Some(done) = self.tasks.join_next().await {
            self.ended(done);
        }
    }
}

fn failed(error: &h2::Error) -> End {
    tracing::debug!(%error, "an HTTP/2 connection failed");
    End::Failed
}

/// Carries one stream out.
async fn exchange(
    context: &WorkerContext,
    peer: &Peer,
    rules: &Rules,
    (request, respond): Accepted,
) {
    let _open = Held::new(&context.cells, Metric::Http2CurrentStreams);
    let stall = rules.conn.stall;
    let stream = Stream::new(respond);
    let (parts, recv) = request.into_parts();
    match head::read(parts, recv.is_end_stream(), rules) {
        Ok((head, ask)) => {
            let waits = head.expects_continue();
            let exchange = Exchange {
                body: RequestBody::new(recv, stream.clone(), stall).waiting(waits),
                reply: Reply::new(stream, ask, stall),
                head,
            };
            transaction::run(context, peer, exchange, &mut Patience::default()).await;
        }
        Err(RequestError::Blank(name)) => {
            tracing::debug!(%name, "a blank around a field's value");
            stream.reset(Reason::PROTOCOL_ERROR);
        }
        Err(error) => {
            if error.is_about_size() {
                context.cells.add(Metric::Http2HeaderListExceeded, 1);
            }
            let reply = Reply::new(stream, Ask::UNKNOWN, stall);
            transaction::refuse(context, peer, reply, &error).await;
        }
    }
}
