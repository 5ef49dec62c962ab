//! The handshake of a connection, within its time.

use super::counters;
use super::server::TlsServer;
use crate::metrics::{Cells, Metric};
use crate::proxy::listener::Dialect;
use crate::proxy::peer::Peer;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

/// Why there is no connection over TLS.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The client took too long.
    #[error("the handshake was not done after {0:?}")]
    Slow(Duration),
    /// The two sides did not agree, or one broke the protocol.
    #[error("{0}")]
    Tls(rustls::Error),
    /// The connection ended.
    #[error("{0}")]
    Io(io::Error),
}

impl From<io::Error> for HandshakeError {
    fn from(error: io::Error) -> Self {
        let inner = error.get_ref();
        let tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match tls {
            Some(tls) => Self::Tls(tls.clone()),
            None => Self::Io(error),
        }
    }
}

/// Shakes hands with the client of `peer`; counted, with its reason if it
/// fails. The client is told the reason by an alert (RFC 8446 6.2).
///
/// # Errors
/// [`HandshakeError`]; the connection is closed.
pub(in crate::proxy) async fn accept<S>(
    tls: &TlsServer,
    stream: S,
    (peer, dialect, cells): (&Peer, Dialect, &Cells),
) -> Result<TlsStream<S>, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    cells.add(Metric::SslAttemptsIn, 1);
    let patience = tls.patience();
    let shaken = tokio::time::timeout(patience, shake(tls, stream, (peer, dialect))).await;
    let shaken = shaken.unwrap_or(Err(HandshakeError::Slow(patience)));
    match &shaken {
        Ok(stream) => counters::count_success(cells, stream.get_ref().1),
        Err(error) => cells.add(counters::of_error(error), 1),
    }
    shaken
}

async fn shake<S>(
    tls: &TlsServer,
    stream: S,
    (peer, dialect): (&Peer, Dialect),
) -> Result<TlsStream<S>, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let hello = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream).await?;
    let config = tls.config(peer.local, dialect);
    Ok(hello.into_stream(config).await?)
}
