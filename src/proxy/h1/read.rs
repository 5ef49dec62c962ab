//! The read half of a client connection: a buffer that is filled only when
//! what is asked for isn't there yet.

use super::options::ConnOptions;
use crate::http::chunked::{ChunkDecoder, ChunkLimits, Decoded};
use crate::http::framing::BodyFraming;
use crate::http::head::HeadScanner;
use crate::proxy::client::{BodyError, RequestError};
use crate::proxy::patience::Patience;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;

/// Bytes that there is room for while a head is waited for. Each idle connection
/// holds as much.
const HEAD_BYTES: usize = 4 * 1024;

/// The same of a body.
const BODY_BYTES: usize = 16 * 1024;

/// The same of what comes while a request is being answered, mostly nothing: what
/// its head left of the buffer does.
const AHEAD_BYTES: usize = 512;

/// Bytes of later requests that are read while one is being answered.
const AHEAD_MAX: usize = 64 * 1024;

/// How much of the request's body is still to come.
#[derive(Debug)]
pub(super) enum Rest {
    /// The body is whole, or there was none.
    Nothing,
    /// This many bytes.
    Left(u64),
    /// Chunks up to the last.
    Chunked(Box<ChunkDecoder>),
    /// Whatever comes, to the end of the connection: a tunnel.
    Raw,
    /// The framing broke: no byte from here on can be told apart.
    Lost,
}

/// The read half with its buffer.
#[derive(Debug)]
pub(super) struct ReadSide<R> {
    io: R,
    buffer: BytesMut,
    patience: Patience,
    pub(super) rest: Rest,
    pub(super) trailers: Option<HeaderMap>,
    pub(super) options: ConnOptions,
}

impl<R: AsyncRead + Unpin> ReadSide<R> {
    pub(super) fn new(io: R, options: ConnOptions) -> Self {
        Self {
            io,
            buffer: BytesMut::new(),
            patience: Patience::default(),
            rest: Rest::Nothing,
            trailers: None,
            options,
        }
    }

    /// Takes bytes that were read before anything else.
    pub(super) fn put_back(&mut self, bytes: BytesMut) {
        self.buffer = bytes;
    }

    /// Takes note of the body that follows the head just read.
    pub(super) fn begin_body(&mut self, framing: BodyFraming) {
        self.trailers = None;
        self.rest = match framing {
            BodyFraming::None | BodyFraming::Length(0) | BodyFraming::UntilClose => Rest::Nothing,
            BodyFraming::Length(bytes) => Rest::Left(bytes),
            BodyFraming::Chunked => {
                Rest::Chunked(Box::new(ChunkDecoder::new(ChunkLimits::default())))
            }
        };
    }

    /// Waits at most `patience` for a first byte; false if the client closed
    /// or sent none. Cancel-safe.
    pub(super) async fn first_byte(&mut self, patience: Duration) -> bool {
        if !self.buffer.is_empty() {
            return true;
        }
        let fill = self.fill_within(patience, HEAD_BYTES).await;
        matches!(fill, Some(Ok(read)) if read > 0)
    }

    /// The next head, up to its empty line. The client has the transaction's
    /// inactivity timeout for the whole of it, however it drips.
    pub(super) async fn head(&mut self) -> Result<Bytes, RequestError> {
        let stall = self.options.stall;
        let mut deadline = None;
        let mut scanner = HeadScanner::new(self.options.head);
        loop {
            if let Some(span) = scanner.find_end(&self.buffer)? {
                let head = self.buffer.split_to(span.end).freeze();
                return Ok(head.slice(span.start..));
            }
            // Only a head that does not come at once needs a deadline.
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + stall);
            let left = deadline.saturating_duration_since(Instant::now());
            let fill = self.fill_within(left, HEAD_BYTES).await;
            let read = fill.ok_or(RequestError::Slow(stall))??;
            if read == 0 {
                return Err(RequestError::Truncated);
            }
        }
    }

    /// The next part of the body; `None` at its end. Cancel-safe.
    pub(super) async fn body(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            if let Some(part) = self.buffered_body()? {
                return Ok(Some(part));
            }
            if matches!(self.rest, Rest::Nothing) {
                return Ok(None);
            }
            if !self.fill_body().await? {
                return Ok(None);
            }
        }
    }

    /// Reads more of the body; false at the end of a tunnel.
    async fn fill_body(&mut self) -> Result<bool, BodyError> {
        let stall = self.options.stall;
        let raw = matches!(self.rest, Rest::Raw);
        let read = if raw {
            self.fill(BODY_BYTES).await?
        } else {
            let fill = self.fill_within(stall, BODY_BYTES).await;
            fill.ok_or(BodyError::Stalled(stall))??
        };
        if read > 0 {
            return Ok(true);
        }
        self.rest = if raw { Rest::Nothing } else { Rest::Lost };
        if raw {
            Ok(false)
        } else {
            Err(BodyError::Truncated)
        }
    }

    /// What the buffer holds of the body.
    fn buffered_body(&mut self) -> Result<Option<Bytes>, BodyError> {
        match &mut self.rest {
            Rest::Nothing => Ok(None),
            Rest::Lost => Err(BodyError::Truncated),
            _ if self.buffer.is_empty() => Ok(None),
            Rest::Raw => Ok(Some(self.buffer.split().freeze())),
            Rest::Left(left) => {
                let left = *left;
                Ok(Some(self.buffered_counted(left)))
            }
            Rest::Chunked(_) => self.buffered_chunk(),
        }
    }

    fn buffered_counted(&mut self, left: u64) -> Bytes {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX);
        let part = self.buffer.split_to(wanted.min(self.buffer.len()));
        let left = left.saturating_sub(u64::try_from(part.len()).unwrap_or(u64::MAX));
        self.rest = if left == 0 {
            Rest::Nothing
        } else {
            Rest::Left(left)
        };
        part.freeze()
    }

    fn buffered_chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        let Rest::Chunked(mut decoder) = std::mem::replace(&mut self.rest, Rest::Lost) else {
            return Ok(None);
        };
        let part = match decoder.decode(&mut self.buffer)? {
            Decoded::Data(part) => Some(part),
            Decoded::More => None,
            Decoded::End => {
                self.trailers = Some(decoder.into_trailers());
                self.rest = Rest::Nothing;
                return Ok(None);
            }
        };
        self.rest = Rest::Chunked(decoder);
        Ok(part)
    }

    /// One read into the buffer, which has room for at least `room` bytes more;
    /// 0 at the end of the stream. Cancel-safe.
    async fn fill(&mut self, room: usize) -> std::io::Result<usize> {
        self.buffer.reserve(room);
        self.io.read_buf(&mut self.buffer).await
    }

    /// Waits until the connection is reset, and no longer; for ever on one that
    /// is only silent. One that is half closed counts as the options say.
    /// Requests that come ahead of their time are kept, within bounds.
    /// Cancel-safe.
    pub(super) async fn reset(&mut self) {
        while matches!(self.rest, Rest::Nothing) && self.buffer.len() < AHEAD_MAX {
            match self.fill(AHEAD_BYTES).await {
                Ok(0) if self.options.half_open => break,
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        std::future::pending().await
    }

    /// The same within `limit`; `None` when that is over.
    async fn fill_within(
        &mut self,
        limit: Duration,
        room: usize,
    ) -> Option<std::io::Result<usize>> {
        self.buffer.reserve(room);
        let read = self.io.read_buf(&mut self.buffer);
        self.patience.wait(limit, read).await
    }

    /// Throws away what the client still sends, up to `bytes_max`; false if
    /// there was more. Of a tunnel or a broken body there is always more.
    pub(super) async fn drain(&mut self, bytes_max: u64) -> bool {
        let mut left = bytes_max;
        loop {
            match self.body().await {
                Ok(None) => return true,
                Err(_) => return false,
                Ok(Some(part)) => {
                    let bytes = u64::try_from(part.len()).unwrap_or(u64::MAX);
                    if bytes > left {
                        return false;
                    }
                    left -= bytes;
                }
            }
        }
    }

    /// Whether nothing is left to read past before a close.
    pub(super) fn at_end(&self) -> bool {
        self.buffer.is_empty() && matches!(self.rest, Rest::Nothing)
    }

    /// The half itself; what was read ahead is lost.
    pub(super) fn into_io(self) -> R {
        self.io
    }
}
