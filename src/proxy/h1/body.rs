//! The body of one request.

use super::error::{BodyError, ReplyError};
use super::read::{ReadSide, Rest};
use super::reply::Reply;
use bytes::Bytes;
use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncWrite};

/// The body of one request, read as it comes.
#[derive(Debug)]
pub struct RequestBody<'c, R> {
    read: &'c mut ReadSide<R>,
    /// The client waits for a 100; holds whether the connection may be kept
    /// once it has had it.
    invitation: Option<bool>,
}

impl<'c, R: AsyncRead + Unpin> RequestBody<'c, R> {
    pub(super) fn new(read: &'c mut ReadSide<R>, invitation: Option<bool>) -> Self {
        Self { read, invitation }
    }

    /// Sends `100 Continue` if the client waits for it (RFC 9110 10.1.1). To be
    /// called before the first [`Self::next`], once the body is wanted.
    ///
    /// # Errors
    /// [`ReplyError`] if the client is gone or stalls.
    pub async fn invite<W>(&mut self, reply: &mut Reply<'_, W>) -> Result<(), ReplyError>
    where
        W: AsyncWrite + Unpin,
    {
        let Some(keep_alive) = self.invitation.take() else {
            return Ok(());
        };
        reply.send_continue(keep_alive).await
    }

    /// The next part of the content, chunk framing taken off; `None` at the
    /// end. Cancel-safe.
    ///
    /// # Errors
    /// Any [`BodyError`]; the request is then void, and the connection can only
    /// be closed.
    pub async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        self.read.body().await
    }

    /// Waits until the client is gone beyond doubt: its connection was reset. A
    /// client that only ended its side may still read (RFC 9112 9.6), and is
    /// gone if `http.allow_half_open` is 0. Waits for ever while the body is
    /// not whole. Cancel-safe.
    pub async fn reset(&mut self) {
        self.read.reset().await;
    }

    /// Whether the unread rest is so short that reading past it is cheaper than
    /// another connection. An early answer to a longer one should close.
    #[must_use]
    pub fn is_short(&self) -> bool {
        match self.read.rest {
            Rest::Nothing => true,
            Rest::Left(bytes) => bytes <= self.read.options.drain_bytes_max,
            Rest::Chunked(_) | Rest::Raw | Rest::Lost => false,
        }
    }

    /// The trailer section, once the body is whole.
    pub fn trailers(&mut self) -> Option<HeaderMap> {
        self.read.trailers.take()
    }

    /// From here on the bytes are a tunnel's: [`Self::next`] gives whatever
    /// comes, without a timeout, and `None` when the client ends its side.
    pub fn into_tunnel(self) -> Self {
        self.read.rest = Rest::Raw;
        self
    }
}
