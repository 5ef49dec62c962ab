//! One client connection, from accept to close.

use super::client::RequestError;
use super::context::WorkerContext;
use super::h1::{ClientConn, ConnOptions};
use super::h2::{self, Arrived, PREFACE};
use super::introduced::{self, Introduced, IntroductionError};
use super::life::Stage;
use super::listener::Dialect;
use super::metered::Metered;
use super::passed;
use super::patience::Patience;
use super::peer::Peer;
use super::snapshot::Snapshot;
use super::tls::{self, Heard, Met};
use super::transaction;
use crate::base::scheme::Scheme;
use crate::metrics::{Cells, Held, Metric};
use bytes::{Bytes, BytesMut};
use socket2::SockRef;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// Bits of `net.sock_option_flag_in`.
const NODELAY: i64 = 1;
const KEEPALIVE: i64 = 2;

/// Bytes read to see which version a client speaks.
const FIRST_READ: usize = 1024;

/// Serves a connection to its end. One whose last response is not whole is
/// reset, so that nobody takes the part for the whole.
pub(super) async fn serve(
    context: Rc<WorkerContext>,
    mut stream: TcpStream,
    (mut peer, dialect): (Peer, Dialect),
) {
    let snapshot = context.snapshot();
    set_options(&stream, snapshot.records.net_sock_option_flag_in);
    if dialect.introduced {
        match introduction(&context, &mut stream, (&peer, &snapshot)).await {
            Some(introduced) => peer = introduced,
            None => return,
        }
    }
    if dialect.tls {
        Box::pin(serve_tls(context, stream, (peer, dialect, snapshot))).await;
    } else {
        serve_plain(context, stream, (peer, dialect, snapshot)).await;
    }
}

/// Who is at the ends of an introduced connection; none if it is not served.
async fn introduction(
    context: &WorkerContext,
    stream: &mut TcpStream,
    (peer, snapshot): (&Peer, &Snapshot),
) -> Option<Peer> {
    let mut life = context.shared.life.clone();
    let read = async {
        match snapshot.introducers.has(peer.ip()) {
            true => introduced::read(stream).await,
            false => Err(IntroductionError::Stranger(peer.ip())),
        }
    };
    let read = tokio::time::timeout(snapshot.conn.first_byte, read);
    let read = tokio::select! {
        biased;
        read = read => read.ok()?,
        () = life.reaches(Stage::Draining) => return None,
    };
    match read {
        Ok(Introduced::Client(client)) => Some(Peer::new(client, peer.local)),
        Ok(Introduced::Unknown) => Some(peer.clone().unknown()),
        Ok(Introduced::Balancer) => Some(peer.clone()),
        Err(error) => {
            context.cells.add(Metric::NetIntroductionsRefused, 1);
            tracing::debug!(%error, client = %peer.client, "not introduced");
            None
        }
    }
}

/// Serves the version that a client's first bytes are of, where the port or a
/// record lets them tell.
async fn serve_plain(
    context: Rc<WorkerContext>,
    stream: TcpStream,
    (peer, dialect, snapshot): (Peer, Dialect, Arc<Snapshot>),
) {
    let (conn, options) = (snapshot.conn, snapshot.h2);
    drop(snapshot);
    if !dialect.http2.unwrap_or(options.prior_knowledge) {
        return serve_h1(&context, (stream, BytesMut::new()), (peer, conn)).await;
    }
    let mut io = Metered::new(stream, &context.cells);
    let mut life = context.shared.life.clone();
    let begun = tokio::select! {
        biased;
        begun = first_bytes(&mut io, options.first_byte) => begun,
        () = life.reaches(Stage::Draining) => return,
    };
    if !begun.starts_with(PREFACE) {
        return serve_h1(&context, (io.into_inner(), begun), (peer, conn)).await;
    }
    let arrived = Arrived {
        io,
        begun: begun.freeze(),
        peer,
        conn,
        options,
    };
    Box::pin(serve_h2(context, arrived)).await;
}

/// Reads until it is known whether the client speaks HTTP/2, `limit` at most.
async fn first_bytes(io: &mut Metered<TcpStream>, limit: Duration) -> BytesMut {
    let mut begun = BytesMut::with_capacity(FIRST_READ);
    let reading = async {
        while begun.len() < PREFACE.len() && PREFACE.starts_with(&begun) {
            if io.read_buf(&mut begun).await.unwrap_or(0) == 0 {
                return;
            }
        }
    };
    // A client that says nothing speaks HTTP/1, and waits there.
    drop(tokio::time::timeout(limit, reading).await);
    begun
}

/// A stream of HTTP/2 says where it ends: what is cut off needs no reset.
async fn serve_h2<T: AsyncRead + AsyncWrite + Unpin>(
    context: Rc<WorkerContext>,
    arrived: Arrived<T>,
) {
    let mut life = context.shared.life.clone();
    tokio::select! {
        () = h2::serve(context, arrived) => {}
        () = life.reaches(Stage::Stopped) => {}
    }
}

async fn serve_h1(
    context: &WorkerContext,
    (stream, begun): (TcpStream, BytesMut),
    (peer, options): (Peer, ConnOptions),
) {
    let (read, write) = stream.into_split();
    let read = Metered::new(read, &context.cells);
    let write = Metered::new(write, &context.cells);
    let conn = ClientConn::new(read, write, options).begun(begun);
    let Some((read, write)) = converse(context, &peer, conn).await else {
        return;
    };
    // One half alone would send a FIN.
    if let Ok(stream) = read.into_inner().reunite(write.into_inner()) {
        reset(&stream);
    }
}

/// A client that does not get through the handshake has been told, or is gone.
async fn serve_tls(
    context: Rc<WorkerContext>,
    stream: TcpStream,
    (peer, dialect, snapshot): (Peer, Dialect, Arc<Snapshot>),
) {
    let Some(server) = &context.shared.tls else {
        return;
    };
    let stream = Metered::new(stream, &context.cells);
    let mut life = context.shared.life.clone();
    let by = (server.as_ref(), snapshot.sni.as_ref());
    let met = tokio::select! {
        biased;
        met = tls::accept(by, stream, (&peer, dialect, &context.cells)) => met,
        () = life.reaches(Stage::Draining) => return,
    };
    match met {
        Ok(Met::Shaken(stream, session)) => {
            let peer = peer.secured(session);
            Box::pin(serve_shaken(context, *stream, (peer, snapshot))).await;
        }
        Ok(Met::Passed(passed)) => tokio::select! {
            () = passed::run(&context, passed, (&peer, &snapshot)) => {}
            () = life.reaches(Stage::Stopped) => {}
        },
        Err(error) => tracing::debug!(%error, client = %peer.client, "no TLS"),
    }
}

/// Serves the version that client and server have agreed on.
async fn serve_shaken(
    context: Rc<WorkerContext>,
    stream: TlsStream<Heard<Metered<TcpStream>>>,
    (peer, snapshot): (Peer, Arc<Snapshot>),
) {
    let options = ConnOptions {
        scheme: Scheme::Https,
        ..snapshot.conn
    };
    if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        let arrived = Arrived {
            io: stream,
            begun: Bytes::new(),
            peer,
            conn: options,
            options: snapshot.h2,
        };
        drop(snapshot);
        return serve_h2(context, arrived).await;
    }
    drop(snapshot);
    let (read, write) = tokio::io::split(stream);
    let conn = ClientConn::new(read, write, options);
    if let Some((read, write)) = converse(&context, &peer, conn).await {
        let (stream, _) = read.unsplit(write).into_inner();
        reset(&stream.into_inner().into_inner());
    }
}

/// Serves a connection until it ends or the server does; its halves if it must
/// be reset.
async fn converse<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    context: &WorkerContext,
    peer: &Peer,
    mut conn: ClientConn<R, W>,
) -> Option<(R, W)> {
    let mut life = context.shared.life.clone();
    let clean = tokio::select! {
        clean = requests(context, peer, &mut conn) => clean,
        () = life.reaches(Stage::Stopped) => false,
    };
    (!clean).then(|| conn.into_halves())
}

/// Serves request after request; whether the connection may close in order.
async fn requests<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    context: &WorkerContext,
    peer: &Peer,
    conn: &mut ClientConn<R, W>,
) -> bool {
    let mut life = context.shared.life.clone();
    // One wait for the whole connection: to begin it anew for each request
    // would take the locks of what all threads watch.
    let mut draining = pin!(life.reaches(Stage::Draining));
    let mut patience = Patience::default();
    while ready(conn, draining.as_mut()).await {
        let _active = Held::new(&context.cells, Metric::CurrentActiveClientConnections);
        match conn.request().await {
            Ok(exchange) => transaction::run(context, peer, exchange, &mut patience).await,
            Err(error) => {
                count_hangup(&context.cells, &error);
                transaction::refuse(context, peer, conn.refuse(), &error).await;
                break;
            }
        }
    }
    if conn.requests() == 0 && context.shared.life.stage() == Stage::Serving {
        let cells = &context.cells;
        cells.add(Metric::TransactionErrorsEmptyHangups, 1);
    }
    conn.close().await
}

/// A client that left in the middle of a head.
fn count_hangup(cells: &Cells, error: &RequestError) {
    if matches!(error, RequestError::Truncated | RequestError::Io(_)) {
        cells.add(Metric::TransactionErrorsEarlyHangups, 1);
    }
}

/// Whether another request comes; an idle connection ends when the server
/// drains. Not to be asked again once that has been said.
async fn ready<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    conn: &mut ClientConn<R, W>,
    draining: Pin<&mut impl Future<Output = ()>>,
) -> bool {
    tokio::select! {
        biased;
        ready = conn.ready() => ready,
        () = draining => false,
    }
}

/// Options are a matter of speed: a socket that refuses one serves all the same.
fn set_options(stream: &TcpStream, flags: i64) {
    if flags & NODELAY != 0 {
        drop(stream.set_nodelay(true));
    }
    if flags & KEEPALIVE != 0 {
        drop(SockRef::from(stream).set_keepalive(true));
    }
}

/// Lets a connection end by RST: with a FIN, a body delimited by close would
/// look whole.
fn reset(stream: &TcpStream) {
    drop(SockRef::from(stream).set_linger(Some(Duration::ZERO)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// `net.sock_option_flag_in` by its bits.
    #[tokio::test]
    async fn a_client_s_socket_has_the_options_of_the_record() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        for (flags, nodelay, keepalive) in [
            (0, false, false),
            (NODELAY, true, false),
            (KEEPALIVE, false, true),
            (NODELAY | KEEPALIVE, true, true),
        ] {
            let at = listener.local_addr().unwrap();
            let stream = TcpStream::connect(at).await.unwrap();
            set_options(&stream, flags);
            assert_eq!(stream.nodelay().unwrap(), nodelay);
            assert_eq!(SockRef::from(&stream).keepalive().unwrap(), keepalive);
        }
    }
}
