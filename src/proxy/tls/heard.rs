//! A stream that remembers what it has heard, until it is known what for.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream and what was read of it while it listened.
#[derive(Debug)]
pub(in crate::proxy) struct Heard<T> {
    io: T,
    /// None once nobody will ask for it.
    kept: Option<Vec<u8>>,
}

impl<T> Heard<T> {
    /// Remembers what is read if it `listens`.
    pub(super) fn new(io: T, listens: bool) -> Self {
        let kept = listens.then(Vec::new);
        Self { io, kept }
    }

    /// Forgets it, and remembers nothing more.
    pub(super) fn forget(&mut self) {
        self.kept = None;
    }

    /// The stream, and what was read of it.
    pub(super) fn into_parts(self) -> (T, Vec<u8>) {
        (self.io, self.kept.unwrap_or_default())
    }

    /// The stream.
    pub(in crate::proxy) fn into_inner(self) -> T {
        self.io
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Heard<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut self.io).poll_read(cx, buf));
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(buf.filled().get(before..).unwrap_or_default());
        }
        Poll::Ready(read)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Heard<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
