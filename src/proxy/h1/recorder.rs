//! A client's write half that remembers each write, for tests of how many
//! there are.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// One part of a write, and where in memory it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::proxy) struct Part {
    pub(in crate::proxy) text: String,
    pub(in crate::proxy) at: *const u8,
}

/// The writes so far, each in its parts; a plain write has one.
pub(in crate::proxy) type Writes = Rc<RefCell<Vec<Vec<Part>>>>;

/// Passes everything on to `io`.
#[derive(Debug)]
pub(in crate::proxy) struct Recorder<T> {
    io: T,
    writes: Writes,
}

impl<T> Recorder<T> {
    pub(in crate::proxy) fn new(io: T, writes: &Writes) -> Self {
        let writes = Rc::clone(writes);
        Self { io, writes }
    }

    fn note<'b>(&self, parts: impl Iterator<Item = &'b [u8]>) {
        let parts = parts.map(|part| Part {
            text: String::from_utf8_lossy(part).into_owned(),
            at: part.as_ptr(),
        });
        self.writes.borrow_mut().push(parts.collect());
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Recorder<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write(cx, bytes));
        self.note(std::iter::once(bytes));
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write_vectored(cx, slices));
        self.note(slices.iter().map(|slice| &**slice));
        Poll::Ready(written)
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
