//! A tunnel: bytes both ways until both sides are done (RFC 9110 9.3.6).

use super::answer::{self, Answer};
use super::context::WorkerContext;
use super::h1::{ClientRead, ClientWrite, Reply, RequestBody};
use super::origin::{OriginError, Place, Upstream};
use super::outcome::{Ended, Finish, Outcome, Route};
use super::snapshot::Snapshot;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use std::cell::Cell;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Instant;

/// Bytes read from the origin at a time.
const READ_BYTES: usize = 16 * 1024;

/// Connects and, only then, opens the tunnel; the address that was judged is
/// the one connected to. Whatever fails before that is an ordinary answer.
pub(super) async fn run<R: ClientRead, W: ClientWrite>(
    context: &WorkerContext,
    snapshot: &Snapshot,
    upstream: &Upstream,
    body: RequestBody<'_, R>,
    reply: &mut Reply<'_, W>,
) -> Ended {
    match connect(context, upstream).await {
        Ok(origin) => {
            let mut ended = carry(origin, body, reply, snapshot.conn.stall).await;
            ended.route = Route::Direct(upstream.place.name().to_owned());
            ended
        }
        Err(error) => {
            tracing::debug!(%error, "no tunnel");
            let answer = refusal(&error);
            answer::send(answer, reply, &context.voice(snapshot), &[]).await
        }
    }
}

async fn connect(context: &WorkerContext, upstream: &Upstream) -> Result<TcpStream, OriginError> {
    let Place::Server { host, port, .. } = &upstream.place else {
        return Err(OriginError::Scheme("generator".to_owned()));
    };
    let guard = upstream.guard.as_ref();
    context.origins.connect(host, *port, guard).await
}

fn refusal(error: &OriginError) -> Answer {
    if matches!(error, OriginError::Refused { .. }) {
        return Answer::TunnelForbidden;
    }
    error.answer()
}

async fn carry<R: ClientRead, W: ClientWrite>(
    origin: TcpStream,
    body: RequestBody<'_, R>,
    reply: &mut Reply<'_, W>,
    idle: Duration,
) -> Ended {
    let mut ended = Ended::new(Outcome::Tunnel, StatusCode::OK.as_u16());
    reply.begin(StatusCode::OK);
    if reply.start_tunnel().await.is_err() {
        ended.outcome = Outcome::ClientAbort;
        ended.finish = Finish::Cut;
        return ended;
    }
    let (from_origin, to_origin) = origin.into_split();
    let moved = Cell::new(Instant::now());
    let up = upward(body.into_tunnel(), to_origin, &moved);
    let down = downward(from_origin, reply, &moved);
    let whole = tokio::select! {
        (sent, received) = async { tokio::join!(up, down) } => sent && received,
        () = idleness(&moved, idle) => false,
    };
    if !whole {
        ended.finish = Finish::Cut;
    }
    ended.head_bytes = reply.sent().head;
    ended.body_bytes = reply.sent().body;
    ended.origin_bytes = ended.body_bytes;
    ended
}

/// Ends when nothing moved for `idle`, either way.
async fn idleness(moved: &Cell<Instant>, idle: Duration) {
    loop {
        let until = moved.get() + idle;
        if until <= Instant::now() {
            return;
        }
        tokio::time::sleep_until(until).await;
    }
}

/// Client to origin, to the client's end; false if it broke off.
async fn upward<R: ClientRead>(
    mut body: RequestBody<'_, R>,
    mut origin: OwnedWriteHalf,
    moved: &Cell<Instant>,
) -> bool {
    loop {
        match body.next().await {
            Ok(Some(part)) => {
                moved.set(Instant::now());
                if origin.write_all(&part).await.is_err() {
                    return false;
                }
            }
            // Dropping the half passes the end on.
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Origin to client, to the origin's end; false if it broke off.
async fn downward<W: ClientWrite>(
    mut origin: OwnedReadHalf,
    reply: &mut Reply<'_, W>,
    moved: &Cell<Instant>,
) -> bool {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(READ_BYTES);
        match origin.read_buf(&mut buffer).await {
            Ok(0) => {
                reply.end_tunnel().await;
                return true;
            }
            Ok(_) => {
                moved.set(Instant::now());
                let part: Bytes = buffer.split().freeze();
                if reply.chunk(part).await.is_err() {
                    return false;
                }
            }
            Err(_) => return false,
        }
    }
}
