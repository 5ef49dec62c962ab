//! The body of one request.

use super::read::{ReadSide, Rest};
use crate::proxy::client::{BodyError, ClientRead, ClientWrite, ReplyError};
use bytes::Bytes;
use http::HeaderMap;
use tokio::io::AsyncRead;

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
}

impl<R: AsyncRead + Unpin> ClientRead for RequestBody<'_, R> {
    async fn invite<W: ClientWrite>(&mut self, reply: &mut W) -> Result<(), ReplyError> {
        let Some(keep_alive) = self.invitation.take() else {
            return Ok(());
        };
        reply.send_continue(keep_alive).await
    }

    async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        self.read.body().await
    }

    async fn reset(&mut self) {
        self.read.reset().await;
    }

    fn is_short(&self) -> bool {
        match self.read.rest {
            Rest::Nothing => true,
            Rest::Left(bytes) => bytes <= self.read.options.drain_bytes_max,
            Rest::Chunked(_) | Rest::Raw | Rest::Lost => false,
        }
    }

    fn trailers(&mut self) -> Option<HeaderMap> {
        self.read.trailers.take()
    }

    fn into_tunnel(self) -> Self {
        self.read.rest = Rest::Raw;
        self
    }
}
