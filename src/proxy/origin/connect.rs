//! A new connection: resolve, judge the address, connect to that very one.

use super::OriginOptions;
use super::down;
use super::error::OriginError;
use super::judged::{Announcer, Judged};
use super::pool::{Connection, PoolState, ServerKey, Slot};
use super::request::{AddressGuard, RequestBody};
use super::shared::SharedConnection;
use super::stream::OriginStream;
use crate::http::head::HeadLimits;
use crate::metrics::Metric;
use crate::proxy::resolve::Resolver;
use crate::proxy::tls::{self, Speech, TlsFault};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// The most fields in a response head, twice what a client may send. The
/// parser takes 64 bytes of memory for each, whether or not it comes.
pub(super) const HEAD_FIELDS_MAX: usize = 2048;

/// What a new connection takes.
pub(super) struct Dial<'a> {
    pub(super) pool: &'a PoolState,
    pub(super) resolver: &'a Resolver,
    pub(super) options: &'a OriginOptions,
    pub(super) server: &'a ServerKey,
    pub(super) guard: Option<&'a AddressGuard>,
}

/// A new connection.
pub(super) enum Dialled {
    /// Of HTTP/1.
    Own(Box<Connection>),
    /// Of HTTP/2.
    Shared(Rc<SharedConnection>),
}

impl Dial<'_> {
    /// A connection on which that is spoken, behind the `first` bytes; HTTP no
    /// more once it is `switching`.
    pub(super) async fn connect(
        &self,
        speech: Speech,
        switching: bool,
        first: Option<&[u8]>,
    ) -> Result<Dialled, OriginError> {
        let slot = Rc::new(Slot::take(self.pool, self.server, self.options)?);
        let kept = switching.then(|| Rc::clone(&slot));
        let addresses = self.addresses().await?;
        // Boxed, as is what is in it: what waits for an origin would grow by all of it.
        let ready = self.first(&addresses, async |ip| self.ready(ip, speech, first).await);
        let (stream, peer) = Box::pin(ready).await?;
        let unasked = speech == Speech::Two && !self.server.is_secured();
        if unasked || stream.agreed_on_h2() {
            let shaken = SharedConnection::shake((stream, peer), slot, self.options, self.pool);
            return Ok(Dialled::Shared(Box::pin(shaken).await?));
        }
        let shaken = handshake(stream, slot, self.options.head_bytes_max);
        let (sender, announcer) = Box::pin(shaken).await?;
        Ok(Dialled::Own(Box::new(Connection {
            sender,
            announcer,
            peer,
            _slot: kept,
        })))
    }

    /// A connection to that address, as its server wants it, behind the `first`
    /// bytes.
    async fn ready(
        &self,
        ip: IpAddr,
        speech: Speech,
        first: Option<&[u8]>,
    ) -> Result<(OriginStream, IpAddr), OriginError> {
        let mut stream = self.open(ip).await?;
        introduce(&mut stream, first).await?;
        Ok((self.secured(stream, speech).await?, ip))
    }

    /// The connection as its server wants it: in clear, or over TLS.
    async fn secured(
        &self,
        stream: TcpStream,
        speech: Speech,
    ) -> Result<OriginStream, OriginError> {
        let tls = self.options.tls.as_ref();
        let Some(tls) = tls.filter(|_| self.server.is_secured()) else {
            return Ok(OriginStream::Plain(stream));
        };
        self.pool.cells.add(Metric::SslAttemptsOut, 1);
        let host = &self.server.host;
        let after = self.options.connect_timeout;
        let shaken = Box::pin(tls.connect(stream, host, speech));
        let shaken = tokio::time::timeout(after, shaken).await;
        let late = |_| TlsFault::Slow(after);
        match shaken.map_err(late).flatten() {
            Ok(stream) => {
                tls::count_origin(&self.pool.cells, stream.get_ref().1);
                tls.count_unproven(&self.pool.cells);
                Ok(OriginStream::Tls(Box::new(stream)))
            }
            Err(fault) => {
                self.pool.cells.add(fault.metric(), 1);
                let host = Arc::clone(host);
                Err(OriginError::Tls { host, fault })
            }
        }
    }

    /// A socket: the server's addresses are tried in turn.
    pub(super) async fn stream(&self) -> Result<TcpStream, OriginError> {
        let addresses = self.addresses().await?;
        self.first(&addresses, async |ip| self.open(ip).await).await
    }

    /// The server's addresses that the policy lets through, at least one.
    pub(super) async fn addresses(&self) -> Result<Vec<IpAddr>, OriginError> {
        let addresses = self.resolver.addresses(&self.server.host).await?;
        self.allowed(&addresses)
    }

    pub(super) fn allowed(&self, addresses: &[IpAddr]) -> Result<Vec<IpAddr>, OriginError> {
        let judge = |ip: &IpAddr| self.guard.map_or(Ok(()), |guard| guard(*ip));
        let allowed: Vec<_> = addresses
            .iter()
            .copied()
            .filter(|ip| judge(ip).is_ok())
            .collect();
        let refused = addresses
            .iter()
            .find_map(|ip| Some((*ip, judge(ip).err()?)));
        match refused {
            Some((ip, reason)) if allowed.is_empty() => Err(OriginError::Refused { ip, reason }),
            _ => Ok(allowed),
        }
    }

    /// What `open` makes of the first address that it can. An address is tried
    /// again within the records' limits, but for one whose server can't prove
    /// itself: another may, and it would not a moment later.
    async fn first<T>(
        &self,
        addresses: &[IpAddr],
        open: impl AsyncFn(IpAddr) -> Result<T, OriginError>,
    ) -> Result<T, OriginError> {
        let order = self.order(addresses);
        let mut last = OriginError::Closed("no address was tried".to_owned());
        let mut unproven = Vec::new();
        for (nth, ip) in order.iter().enumerate() {
            if unproven.contains(ip) {
                continue;
            }
            match open(*ip).await {
                Ok(opened) => {
                    self.pool.down.borrow_mut().answered(self.at(*ip));
                    return Ok(opened);
                }
                Err(error) => {
                    if order.get(nth + 1) != Some(ip) {
                        self.given_up(*ip, &error);
                    }
                    if matches!(error, OriginError::Tls { .. }) {
                        unproven.push(*ip);
                    }
                    last = error;
                }
            }
        }
        Err(last)
    }

    fn order(&self, addresses: &[IpAddr]) -> Vec<IpAddr> {
        let now = self.pool.clock.mono();
        let down = self.pool.down.borrow();
        let is_down = |ip: IpAddr| down.has(self.at(ip), now);
        down::attempts(addresses, is_down, self.options)
    }

    /// An address that nothing answers at counts as down for a while.
    fn given_up(&self, ip: IpAddr, error: &OriginError) {
        use OriginError::{Connect, ConnectTimeout};
        if !matches!(error, Connect { .. } | ConnectTimeout { .. }) {
            return;
        }
        let (now, time) = (self.pool.clock.mono(), self.options.down_time);
        let mut down = self.pool.down.borrow_mut();
        if down.failed(self.at(ip), now, time) {
            let secs = time.as_secs();
            tracing::warn!("{error}; the address counts as down for {secs} s, or until it answers");
        }
    }

    const fn at(&self, ip: IpAddr) -> SocketAddr {
        SocketAddr::new(ip, self.server.port)
    }

    async fn open(&self, ip: IpAddr) -> Result<TcpStream, OriginError> {
        let addr = self.at(ip);
        let after = self.options.connect_timeout;
        let stream = tokio::time::timeout(after, TcpStream::connect(addr))
            .await
            .map_err(|_| OriginError::ConnectTimeout { addr, after })?
            .map_err(|source| OriginError::Connect { addr, source })?;
        // Without it only the latency suffers.
        drop(stream.set_nodelay(true));
        self.pool.cells.add(Metric::TotalServerConnections, 1);
        Ok(stream)
    }
}

/// Tells a server who the client is. A socket that was just opened has room for
/// it.
pub(in crate::proxy) async fn introduce(
    stream: &mut TcpStream,
    introduction: Option<&[u8]>,
) -> Result<(), OriginError> {
    let Some(bytes) = introduction else {
        return Ok(());
    };
    let sent = stream.write_all(bytes).await;
    sent.map_err(|error| OriginError::Closed(error.to_string()))
}

/// Starts HTTP/1 on a socket; the slot is held until the connection closes.
async fn handshake(
    stream: OriginStream,
    slot: Rc<Slot>,
    head_bytes_max: usize,
) -> Result<(http1::SendRequest<RequestBody>, Announcer), OriginError> {
    let judged = Judged::new(
        stream,
        HeadLimits {
            bytes: head_bytes_max,
            fields: HEAD_FIELDS_MAX,
            ..HeadLimits::default()
        },
    );
    let announcer = judged.announcer();
    let (sender, connection) = http1::Builder::new()
        .max_headers(HEAD_FIELDS_MAX)
        .max_header_size(head_bytes_max)
        .handshake(TokioIo::new(judged))
        .await
        .map_err(|error| OriginError::from_hyper(&error))?;
    tokio::task::spawn_local(async move {
        // Its error reaches whoever waits for a response or reads a body.
        drop(connection.with_upgrades().await);
        drop(slot);
    });
    Ok((sender, announcer))
}
