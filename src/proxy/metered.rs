//! A client socket's halves, with their bytes counted.

use crate::metrics::{Cells, Metric};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A half of a connection: what passes through it moves
/// `net.read_bytes` or `net.write_bytes`.
#[derive(Debug)]
pub(super) struct Metered<T> {
    io: T,
    cells: Arc<Cells>,
}

impl<T> Metered<T> {
    pub(super) fn new(io: T, cells: &Arc<Cells>) -> Self {
        let cells = Arc::clone(cells);
        Self { io, cells }
    }

    /// The half itself.
    pub(super) fn into_inner(self) -> T {
        self.io
    }

    fn count(&self, metric: Metric, bytes: usize) {
        self.cells
            .add(metric, u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    fn written(&self, written: io::Result<usize>) -> Poll<io::Result<usize>> {
        if let Ok(bytes) = written {
            self.count(Metric::NetWriteBytes, bytes);
        }
        Poll::Ready(written)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Metered<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut self.io).poll_read(cx, buf));
        self.count(Metric::NetReadBytes, buf.filled().len() - before);
        Poll::Ready(read)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Metered<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write(cx, bytes));
        self.written(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write_vectored(cx, slices));
        self.written(written)
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
