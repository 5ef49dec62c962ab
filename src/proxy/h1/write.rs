//! The write half of a client connection: bytes out, in as few calls as can be.

use crate::proxy::client::{ReplyError, Sent};
use crate::proxy::patience::Patience;
use bytes::Bytes;
use http::StatusCode;
use std::future::poll_fn;
use std::io::IoSlice;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Slices given to one vectored write; what is left goes with the next one.
const SLICES: usize = 64;

/// What a request says about the response it can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asker {
    /// Minor version of HTTP/1: 0 or 1.
    pub(super) minor: u8,
    /// A HEAD request: its response has no body.
    pub(super) is_head: bool,
    /// The connection may carry another request.
    pub(super) keep_alive: bool,
    /// The client spoke of `Proxy-Connection`, and reads the answer there.
    pub(super) proxy_connection: bool,
    /// `TE: trailers` was sent.
    pub(super) takes_trailers: bool,
}

impl Asker {
    /// One of whom nothing is known: a close-delimited HTTP/1.1 exchange.
    pub(super) const UNKNOWN: Self = Self {
        minor: 1,
        is_head: false,
        keep_alive: false,
        proxy_connection: false,
        takes_trailers: false,
    };
}

/// How the end of the body under way is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// This many bytes are still owed.
    Left(u64),
    /// Chunks (RFC 9112 7.1).
    Chunked,
    /// The close of the connection.
    UntilClose,
    /// The response has no body, whatever its fields say.
    Bodiless,
}

/// Where the response under way stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The final head has not been sent.
    Waiting,
    /// The head is out, the body is not whole.
    Streaming(Coding),
    /// The response is whole.
    Whole,
    /// A write failed: nothing more can be said.
    Broken,
}

/// The write half, with the scratch buffer that every head is built in.
#[derive(Debug)]
pub(super) struct WriteSide<W> {
    io: W,
    pub(super) scratch: Vec<u8>,
    stall: Duration,
    patience: Patience,
    pub(super) asker: Asker,
    pub(super) phase: Phase,
    /// Of the head last begun.
    pub(super) status: StatusCode,
    pub(super) sent: Sent,
}

impl<W: AsyncWrite + Unpin> WriteSide<W> {
    /// `stall` bounds the wait for the client to take any byte at all.
    pub(super) fn new(io: W, stall: Duration) -> Self {
        Self {
            io,
            scratch: Vec::with_capacity(1024),
            stall,
            patience: Patience::default(),
            asker: Asker::UNKNOWN,
            phase: Phase::Whole,
            status: StatusCode::OK,
            sent: Sent::default(),
        }
    }

    /// Begins the response to another request.
    pub(super) fn begin(&mut self, asker: Asker) {
        self.asker = asker;
        self.phase = Phase::Waiting;
        self.sent = Sent::default();
        self.scratch.clear();
    }

    /// Writes the scratch buffer, `tail` and `body`, in that order, whole.
    pub(super) async fn write(
        &mut self,
        tail: [&[u8]; 2],
        body: &[Bytes],
    ) -> Result<(), ReplyError> {
        let mut parts = Parts {
            head: [&self.scratch, tail[0], tail[1]],
            body,
            next: 0,
            offset: 0,
        };
        let wait = (&mut self.patience, self.stall);
        let mut result = write_parts(&mut self.io, &mut parts, wait).await;
        if result.is_ok() {
            result = self.flush().await;
        }
        if result.is_err() {
            self.phase = Phase::Broken;
        }
        result
    }

    /// Over TLS, what was written may still wait here for room in the socket,
    /// and nobody would come back to it.
    async fn flush(&mut self) -> Result<(), ReplyError> {
        let flush = self.io.flush();
        let flushed = self.patience.wait(self.stall, flush).await;
        Ok(flushed.ok_or(ReplyError::Stalled(self.stall))??)
    }

    /// Tells the peer that nothing more comes.
    pub(super) async fn shutdown(&mut self) {
        // A peer that is gone already needs no farewell.
        drop(tokio::time::timeout(self.stall, self.io.shutdown()).await);
    }

    /// The half itself.
    pub(super) fn into_io(self) -> W {
        self.io
    }
}

/// What is to be written, and how much of it has been.
struct Parts<'a> {
    head: [&'a [u8]; 3],
    body: &'a [Bytes],
    next: usize,
    offset: usize,
}

impl<'a> Parts<'a> {
    fn part(&self, index: usize) -> Option<&'a [u8]> {
        let body = || self.body.get(index - self.head.len()).map(Bytes::as_ref);
        self.head.get(index).copied().or_else(body)
    }

    /// Lays the unwritten parts into `slices`; returns how many it filled.
    fn lay(&self, slices: &mut [IoSlice<'a>; SLICES]) -> usize {
        let mut skip = self.offset;
        let mut filled = 0;
        let parts = (self.next..).map_while(|index| self.part(index));
        for (slice, part) in slices.iter_mut().zip(parts) {
            *slice = IoSlice::new(part.get(skip..).unwrap_or_default());
            skip = 0;
            filled += 1;
        }
        filled
    }

    /// Takes note of `written` bytes; whether anything is left.
    fn advance(&mut self, mut written: usize) -> bool {
        while let Some(part) = self.part(self.next) {
            let left = part.len().saturating_sub(self.offset);
            if written < left {
                self.offset += written;
                return true;
            }
            written -= left;
            self.next += 1;
            self.offset = 0;
        }
        false
    }
}

async fn write_parts<W: AsyncWrite + Unpin>(
    io: &mut W,
    parts: &mut Parts<'_>,
    (patience, stall): (&mut Patience, Duration),
) -> Result<(), ReplyError> {
    // Leading empty parts are passed over, so that a write of nothing is none.
    while parts.advance(0) {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let filled = parts.lay(&mut slices);
        let slices = slices.get(..filled).unwrap_or_default();
        let write = poll_fn(|cx| Pin::new(&mut *io).poll_write_vectored(cx, slices));
        let written = patience.wait(stall, write).await;
        let written = written.ok_or(ReplyError::Stalled(stall))??;
        if written == 0 {
            return Err(ReplyError::Io(std::io::ErrorKind::WriteZero.into()));
        }
        parts.advance(written);
    }
    Ok(())
}
