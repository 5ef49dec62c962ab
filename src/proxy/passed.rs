//! A connection over TLS whose end is not here: from the ClientHello on, its
//! bytes go to where sni.toml leads (`tunnel_route`), and back.

use super::context::WorkerContext;
use super::forward;
use super::introduction;
use super::origin::{OriginError, introduce};
use super::outcome::{Ended, Finish, Outcome, Route};
use super::peer::Peer;
use super::snapshot::Snapshot;
use super::tls::{Passed, TunnelEnd};
use super::transaction;
use super::tunnel::{self, idleness};
use crate::metrics::{Cells, Held, Metric};
use crate::remap::Client;
use http::Method;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Bytes read of either side at a time.
const READ_BYTES: usize = 16 * 1024;

/// Why such a connection is not passed on.
#[derive(Debug, thiserror::Error)]
enum PassError {
    /// The client, or the port, is none that CONNECT may have.
    #[error("{client} may not be passed on to port {port}")]
    Forbidden { client: std::net::IpAddr, port: u16 },
    /// There is no connection to where it leads.
    #[error(transparent)]
    Origin(#[from] OriginError),
}

impl PassError {
    const fn outcome(&self) -> Outcome {
        match self {
            Self::Forbidden { .. } => Outcome::DeniedForward,
            Self::Origin(error) => error.answer().outcome(),
        }
    }
}

/// Carries the connection until both sides are done, and accounts for it as a
/// CONNECT that no status was sent for.
pub(super) async fn run<S: AsyncRead + AsyncWrite + Unpin>(
    context: &WorkerContext,
    passed: Passed<S>,
    (peer, snapshot): (&Peer, &Arc<Snapshot>),
) {
    let asked = transaction::Asked::tunnel(context, peer, &passed.name);
    let _current = Held::new(&context.cells, Metric::TunnelsTlsCurrent);
    context.cells.add(Metric::TunnelsTls, 1);
    let ended = match connect(context, &passed.end, (peer, snapshot)).await {
        Ok(origin) => carry(&context.cells, passed, origin, snapshot.conn.stall).await,
        Err(error) => {
            tracing::debug!(%error, client = %peer.client, name = passed.name, "no tunnel");
            Ended {
                finish: Finish::Cut,
                detail: Some(error.to_string().into()),
                ..Ended::new(error.outcome(), 0)
            }
        }
    };
    asked.account(context, &ended);
}

/// Judged as CONNECT is, but for `http.forward_allow` where the operator wrote
/// the whole host.
async fn connect(
    context: &WorkerContext,
    end: &TunnelEnd,
    (peer, snapshot): (&Peer, &Arc<Snapshot>),
) -> Result<TcpStream, PassError> {
    let client = Client::new(peer.ip(), Method::CONNECT.as_str()).relayed(!peer.is_known, true);
    let may = snapshot.ip_allow.allows_client(&client)
        && snapshot.connect_ports.allow(end.port)
        && (!end.is_chosen || snapshot.forward.allows(&client));
    if !may {
        return Err(PassError::Forbidden {
            client: peer.ip(),
            port: end.port,
        });
    }
    let guard = forward::guard(snapshot, &context.shared.own, &Method::CONNECT, end.port);
    let connected = context.origins.connect(&end.host, end.port, Some(&guard));
    let mut stream = connected.await?;
    let version = snapshot.records.http_proxy_protocol_out;
    let introduction = introduction::of(version, peer);
    introduce(&mut stream, introduction.as_deref()).await?;
    Ok(stream)
}

async fn carry<S: AsyncRead + AsyncWrite + Unpin>(
    cells: &Cells,
    passed: Passed<S>,
    origin: TcpStream,
    idle: Duration,
) -> Ended {
    let (mut client_read, mut client_write) = split(passed.io);
    let (mut origin_read, mut origin_write) = origin.into_split();
    let moved = Cell::new(Instant::now());
    let hello = u64::try_from(passed.hello.len()).unwrap_or(u64::MAX);
    let (asked, sent) = (Cell::new(hello), Cell::new(0));
    let up = async {
        // What the client has said belongs to whoever ends its TLS.
        origin_write.write_all(&passed.hello).await.is_ok()
            && pump(&mut client_read, &mut origin_write, |bytes| {
                moved.set(Instant::now());
                asked.set(asked.get() + bytes);
            })
            .await
    };
    let down = pump(&mut origin_read, &mut client_write, |bytes| {
        moved.set(Instant::now());
        sent.set(sent.get() + bytes);
    });
    let whole = tokio::select! {
        (up, down) = async { tokio::join!(up, down) } => up && down,
        () = idleness(&moved, idle) => false,
    };
    let mut ended = Ended::new(Outcome::Tunnel, 0);
    ended.body_bytes = sent.get();
    tunnel::count(cells, asked.get(), sent.get());
    ended.route = Route::Direct(passed.end.host);
    if !whole {
        ended.finish = Finish::Cut;
    }
    ended
}

/// One way, to the reader's end, which the writer is told; false if it broke
/// off. `told` is told of what has gone through.
async fn pump<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    from: &mut R,
    to: &mut W,
    told: impl Fn(u64),
) -> bool {
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        buffer.reserve(READ_BYTES);
        match from.read_buf(&mut buffer).await {
            // A side that is gone needs not be told.
            Ok(0) => {
                drop(to.shutdown().await);
                return true;
            }
            Ok(bytes) if to.write_all(&buffer).await.is_ok() => {
                told(u64::try_from(bytes).unwrap_or(u64::MAX));
            }
            Ok(_) | Err(_) => return false,
        }
    }
}
