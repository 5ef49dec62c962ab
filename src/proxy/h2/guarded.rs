//! A client's socket as the library sees it, with an eye on what passes.

use super::watch::Watch;
use bytes::Bytes;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Wait for the rest of what a client sends to a connection that is closing, so
/// that our last word isn't lost to a reset.
const LINGER: Duration = Duration::from_secs(2);

/// Bytes read past meanwhile.
const LINGER_BYTES_MAX: usize = 1 << 20;

/// A socket that gives no more bytes once its client has been told off.
#[derive(Debug)]
pub(super) struct Guarded<T> {
    io: T,
    /// What was read of it already.
    begun: Bytes,
    watch: Rc<Watch>,
    linger: Option<Pin<Box<Sleep>>>,
    lingered: usize,
}

impl<T> Guarded<T> {
    pub(super) fn new(io: T, begun: Bytes, watch: &Rc<Watch>) -> Self {
        Self {
            io,
            begun,
            watch: Rc::clone(watch),
            linger: None,
            lingered: 0,
        }
    }
}

impl<T: AsyncRead + Unpin> Guarded<T> {
    fn poll_begun(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let now = self.begun.len().min(buf.remaining());
        buf.put_slice(&self.begun.split_to(now));
        now > 0
    }

    /// Reads past what the client still sends, within bounds.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.linger.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        if timer.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let mut scrap = [0; 4096];
        while self.lingered < LINGER_BYTES_MAX {
            let mut buf = ReadBuf::new(&mut scrap);
            let read = ready!(Pin::new(&mut self.io).poll_read(cx, &mut buf));
            if read.is_err() || buf.filled().is_empty() {
                break;
            }
            self.lingered += buf.filled().len();
        }
        Poll::Ready(())
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Guarded<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.watch.abuse().is_some() {
            return Poll::Pending;
        }
        let before = buf.filled().len();
        if !self.poll_begun(buf) {
            ready!(Pin::new(&mut self.io).poll_read(cx, buf))?;
        }
        let read = buf.filled().get(before..).unwrap_or_default();
        self.watch.read(read);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guarded<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write(cx, bytes))?;
        self.watch.wrote(bytes.get(..written).unwrap_or(bytes));
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write_vectored(cx, slices))?;
        let mut left = written;
        for slice in slices {
            let now = slice.get(..left).unwrap_or(slice);
            self.watch.wrote(now);
            left -= now.len();
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
        }
        self.poll_linger(cx).map(Ok)
    }
}
