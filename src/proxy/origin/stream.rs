//! The bytes to and from an origin: in clear, or over TLS.

use socket2::SockRef;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection to an origin.
#[derive(Debug)]
pub enum OriginStream {
    /// In clear.
    Plain(TcpStream),
    /// Over TLS.
    Tls(Box<TlsStream<TcpStream>>),
}

impl OriginStream {
    /// Whether both ends have chosen HTTP/2 (ALPN).
    pub(super) fn agreed_on_h2(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(b"h2"),
        }
    }

    /// How long its bytes may take to leave once it is dropped: zero lets it end
    /// by a reset (SO_LINGER). A matter of manners: a socket that refuses serves
    /// all the same.
    pub(in crate::proxy) fn linger(&self, time: Option<Duration>) {
        let socket = match self {
            Self::Plain(socket) => socket,
            Self::Tls(secured) => secured.get_ref().0,
        };
        drop(SockRef::from(socket).set_linger(time));
    }
}

/// Calls the method of what is within.
macro_rules! within {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream.get_mut() {
            Self::Plain(inner) => {
                let $inner = Pin::new(inner);
                $call
            }
            Self::Tls(inner) => {
                let $inner = Pin::new(inner.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for OriginStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        within!(self, inner => inner.poll_read(cx, buf))
    }
}

impl AsyncWrite for OriginStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        within!(self, inner => inner.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        within!(self, inner => inner.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        within!(self, inner => inner.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        within!(self, inner => inner.poll_shutdown(cx))
    }
}
