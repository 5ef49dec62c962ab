//! A tunnel: bytes both ways until both sides are done, after CONNECT
//! (RFC 9110 9.3.6) or an origin's 101 (7.8).

use super::answer::{self, Answer};
use super::client::{ClientRead, ClientWrite};
use super::context::WorkerContext;
use super::origin::{OriginError, OriginStream, Place, Switched, Upstream, introduce};
use super::outcome::{Ended, Finish, Outcome, Route};
use super::relay::{self, Framed};
use super::routed::Routed;
use super::settings::limit;
use super::snapshot::Snapshot;
use crate::metrics::{Cells, Metric};
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use std::cell::Cell;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Bytes read from the origin at a time.
const READ_BYTES: usize = 16 * 1024;

/// Connects and, only then, opens the tunnel; the address that was judged is
/// the one connected to. Whatever fails before that is an ordinary answer.
pub(super) async fn run<R: ClientRead, W: ClientWrite>(
    context: &WorkerContext,
    snapshot: &Snapshot,
    upstream: &Upstream,
    body: R,
    reply: &mut W,
) -> Ended {
    match connect(context, upstream).await {
        Ok(origin) => {
            reply.begin(StatusCode::OK);
            let origin = Origin {
                stream: OriginStream::Plain(origin),
                first: Bytes::new(),
            };
            let ends = (body, reply);
            let carried = carry(&context.cells, origin, ends, snapshot.conn.stall).await;
            Ended {
                status: StatusCode::OK.as_u16(),
                route: Route::Direct(upstream.place.name().to_owned()),
                ..carried
            }
        }
        Err(error) => {
            tracing::debug!(%error, "no tunnel");
            let answer = refusal(&error);
            answer::send(answer, reply, &context.voice(snapshot), &[]).await
        }
    }
}

/// Passes an origin's 101 on, and then whatever either side sends. What the
/// client had sent behind its request is the other protocol's.
pub(super) async fn switched<R: ClientRead, W: ClientWrite>(
    (cells, routed): (&Cells, &Routed),
    framed: &Framed,
    switched: Switched,
    (body, reply): (R, &mut W),
) -> Ended {
    reply.begin(framed.status);
    reply.fields(&framed.fields);
    if let Some(protocol) = &framed.protocol {
        reply.field("Upgrade", protocol.as_bytes());
        reply.field("Connection", b"Upgrade");
    }
    let idle = limit(routed.snapshot.records.websocket_no_activity_timeout);
    // What is left of `switched` counts the connection until this returns.
    let origin = Origin {
        stream: switched.stream,
        first: switched.first,
    };
    let carried = carry(cells, origin, (body, reply), idle).await;
    Ended {
        status: framed.status.as_u16(),
        route: relay::route(routed),
        ..carried
    }
}

async fn connect(context: &WorkerContext, upstream: &Upstream) -> Result<TcpStream, OriginError> {
    let Place::Server { host, port, .. } = &upstream.place else {
        return Err(OriginError::Scheme("generator".to_owned()));
    };
    let guard = upstream.guard.as_ref();
    let mut stream = context.origins.connect(host, *port, guard).await?;
    introduce(&mut stream, upstream.introduction.as_deref()).await?;
    Ok(stream)
}

fn refusal(error: &OriginError) -> Answer {
    if matches!(error, OriginError::Refused { .. }) {
        return Answer::TunnelForbidden;
    }
    error.answer()
}

/// The origin's end of a tunnel.
struct Origin {
    stream: OriginStream,
    /// What it has sent into the tunnel already.
    first: Bytes,
}

/// Sends the head begun and carries the tunnel's bytes; its status is the
/// caller's to tell.
async fn carry<R: ClientRead, W: ClientWrite>(
    cells: &Cells,
    origin: Origin,
    (body, reply): (R, &mut W),
    idle: Duration,
) -> Ended {
    let mut ended = Ended::new(Outcome::Tunnel, 0);
    if reply.start_tunnel().await.is_err() {
        ended.outcome = Outcome::ClientAbort;
        ended.finish = Finish::Cut;
        return ended;
    }
    // Whatever cuts the tunnel short resets its origin: with an orderly end, a
    // part would look whole (RFC 9113 8.5).
    origin.stream.linger(Some(Duration::ZERO));
    let (mut from_origin, mut to_origin) = tokio::io::split(origin.stream);
    let (moved, asked) = (Cell::new(Instant::now()), Cell::new(0));
    let up = upward(body.into_tunnel(), &mut to_origin, (&moved, &asked));
    let down = downward((origin.first, &mut from_origin), reply, &moved);
    let whole = tokio::select! {
        both = async { tokio::try_join!(up, down) } => both.is_ok_and(|(sent, ())| sent),
        () = idleness(&moved, idle) => false,
    };
    if whole {
        from_origin.unsplit(to_origin).linger(None);
    } else {
        ended.finish = Finish::Cut;
    }
    ended.head_bytes = reply.sent().head;
    ended.body_bytes = reply.sent().body;
    count(cells, asked.get(), ended.body_bytes);
    ended
}

/// Counts what a tunnel carried, in bytes: what was asked, and what was
/// answered, which is counted with its end at the client.
pub(super) fn count(cells: &Cells, asked: u64, answered: u64) {
    cells.add(Metric::ClientRequestBodyBytes, asked);
    cells.add(Metric::OriginRequestBodyBytes, asked);
    cells.add(Metric::OriginResponseBodyBytes, answered);
}

/// Ends when nothing moved for `idle`, either way.
pub(super) async fn idleness(moved: &Cell<Instant>, idle: Duration) {
    loop {
        let until = moved.get() + idle;
        if until <= Instant::now() {
            return;
        }
        tokio::time::sleep_until(until).await;
    }
}

/// One of the ends is gone, and the tunnel with it.
struct Gone;

/// Client to origin, to the client's end; false if the origin takes no more,
/// which may have something to say all the same. `asked` counts the bytes.
async fn upward<R: ClientRead>(
    mut body: R,
    origin: &mut WriteHalf<OriginStream>,
    (moved, asked): (&Cell<Instant>, &Cell<u64>),
) -> Result<bool, Gone> {
    while let Some(part) = body.next().await.map_err(|_| Gone)? {
        moved.set(Instant::now());
        if origin.write_all(&part).await.is_err() || origin.flush().await.is_err() {
            return Ok(false);
        }
        asked.set(asked.get() + u64::try_from(part.len()).unwrap_or(u64::MAX));
    }
    // An origin that is gone needs not be told.
    drop(origin.shutdown().await);
    Ok(true)
}

/// Origin to client, to the origin's end.
async fn downward<W: ClientWrite>(
    (first, origin): (Bytes, &mut ReadHalf<OriginStream>),
    reply: &mut W,
    moved: &Cell<Instant>,
) -> Result<(), Gone> {
    reply.chunk(first).await.map_err(|_| Gone)?;
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(READ_BYTES);
        if origin.read_buf(&mut buffer).await.map_err(|_| Gone)? == 0 {
            reply.end_tunnel().await;
            return Ok(());
        }
        moved.set(Instant::now());
        let part: Bytes = buffer.split().freeze();
        reply.chunk(part).await.map_err(|_| Gone)?;
    }
}
