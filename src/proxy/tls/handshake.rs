//! The handshake of a connection, within its time.

use super::counters;
use super::heard::Heard;
use super::rules::{SniRules, TunnelEnd};
use super::server::TlsServer;
use super::session::Session;
use crate::metrics::{Cells, Metric};
use crate::proxy::listener::Dialect;
use crate::proxy::peer::Peer;
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::{StartHandshake, TlsStream};

/// Why there is no connection over TLS.
#[derive(Debug, thiserror::Error)]
pub enum HandshakeError {
    /// The client took too long.
    #[error("the handshake was not done after {0:?}")]
    Slow(Duration),
    /// The client may not ask for that name (`ip_allow` in sni.toml).
    #[error("{0} may not ask for that name")]
    Denied(IpAddr),
    /// There is no certificate for what the client asks for.
    #[error("there is no certificate for the name {0:?}")]
    UnknownName(String),
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

/// What a client that says hello gets.
pub(in crate::proxy) enum Met<S> {
    /// TLS with us.
    Shaken(Box<TlsStream<Heard<S>>>, Session),
    /// A tunnel to who ends TLS instead of us.
    Passed(Passed<S>),
}

/// A connection whose TLS is another's.
#[derive(Debug)]
pub(in crate::proxy) struct Passed<S> {
    pub(in crate::proxy) io: S,
    /// What the client has said so far.
    pub(in crate::proxy) hello: Vec<u8>,
    /// The name that it asked for.
    pub(in crate::proxy) name: String,
    pub(in crate::proxy) end: TunnelEnd,
}

/// Shakes hands with the client of `peer`, unless its connection is another's;
/// counted, with its reason if it fails. The client is told the reason by an
/// alert (RFC 8446 6.2).
///
/// # Errors
/// [`HandshakeError`]; the connection is closed.
pub(in crate::proxy) async fn accept<S>(
    (tls, rules): (&TlsServer, &SniRules),
    stream: S,
    (peer, dialect, cells): (&Peer, Dialect, &Cells),
) -> Result<Met<S>, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    cells.add(Metric::SslAttemptsIn, 1);
    let patience = tls.patience();
    let met = meet((tls, rules), stream, (peer, dialect));
    let met = tokio::time::timeout(patience, met).await;
    let met = met.unwrap_or(Err(HandshakeError::Slow(patience)));
    match &met {
        Ok(Met::Shaken(stream, _)) => counters::count_success(cells, stream.get_ref().1),
        Ok(Met::Passed(_)) => {}
        Err(error) => cells.add(counters::of_error(error), 1),
    }
    met
}

async fn meet<S>(
    (tls, rules): (&TlsServer, &SniRules),
    stream: S,
    (peer, dialect): (&Peer, Dialect),
) -> Result<Met<S>, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let heard = Heard::new(stream, rules.has_tunnels());
    let mut hello = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), heard).await?;
    let name = hello
        .client_hello()
        .server_name()
        .map(str::to_ascii_lowercase);
    let name = name.unwrap_or_default();
    let rule = rules.of(&name);
    if rule.is_some_and(|rule| !rule.is_open_to(peer)) {
        refuse(tls, hello).await;
        return Err(HandshakeError::Denied(peer.ip()));
    }
    if let Some(end) = rule.and_then(|rule| rule.tunnel(&name)) {
        let (io, hello) = hello.io.into_parts();
        return Ok(Met::Passed(Passed {
            io,
            hello,
            name,
            end,
        }));
    }
    hello.io.forget();
    let settings = tls.settings().of(rule).map_err(HandshakeError::Tls)?;
    let named = Some(name.as_str()).filter(|name| !name.is_empty());
    let Some(config) = tls.config(&settings, (named, peer.local), dialect) else {
        refuse(tls, hello).await;
        return Err(HandshakeError::UnknownName(name));
    };
    let stream = hello.into_stream(config).await?;
    let session = Session::of(stream.get_ref().1, tls.settings().proofs(rule));
    Ok(Met::Shaken(Box::new(stream), session))
}

/// Tells the client by an alert; whether it hears that does not matter.
async fn refuse<S>(tls: &TlsServer, hello: StartHandshake<Heard<S>>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // These settings have no certificate for anybody: access_denied.
    if let Ok(settings) = tls.settings().of(None) {
        drop(hello.into_stream(settings).await);
    }
}
