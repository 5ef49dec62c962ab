//! A client connection: one request after another, one response each.

use super::body::RequestBody;
use super::head;
use super::options::ConnOptions;
use super::read::{ReadSide, Rest};
use super::reply::Reply;
use super::write::{Asker, Phase, WriteSide};
use crate::proxy::client::{self, RequestError};
use bytes::BytesMut;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// Wait for the rest of what a client sends to a connection that is closing.
const LINGER: Duration = Duration::from_secs(2);

/// Bytes read past before a close, so that the last response isn't lost to a
/// reset (RFC 9112 9.6).
const LINGER_BYTES_MAX: u64 = 1 << 20;

/// One request over a socket's two halves.
pub type Exchange<'c, R, W> = client::Exchange<RequestBody<'c, R>, Reply<'c, W>>;

/// A client connection over a socket's two halves.
///
/// The owner loops: [`Self::ready`], [`Self::request`], a whole reply; then
/// [`Self::close`]. What a reply leaves undone (a body not read, a response not
/// whole) is settled by the next [`Self::ready`].
#[derive(Debug)]
pub struct ClientConn<R, W> {
    read: ReadSide<R>,
    write: WriteSide<W>,
    requests: u64,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> ClientConn<R, W> {
    /// A connection on which nothing has been read yet.
    pub fn new(read: R, write: W, options: ConnOptions) -> Self {
        Self {
            read: ReadSide::new(read, options),
            write: WriteSide::new(write, options.stall),
            requests: 0,
        }
    }

    /// The same, of which these bytes have been read already.
    #[must_use]
    pub fn begun(mut self, bytes: BytesMut) -> Self {
        self.read.put_back(bytes);
        self
    }

    /// Requests read so far.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.requests
    }

    /// Waits for another request to begin; false when there will be none: the
    /// client closed or was silent for too long, or the last exchange ended the
    /// connection. A body left unread is read past first, within bounds.
    ///
    /// May be cancelled when the connection is closed next.
    pub async fn ready(&mut self) -> bool {
        let options = self.read.options;
        if self.requests == 0 {
            return self.read.first_byte(options.first_byte).await;
        }
        let kept = self.write.phase == Phase::Whole && self.write.asker.keep_alive;
        kept && self.read.drain(options.drain_bytes_max).await
            && self.read.first_byte(options.idle).await
    }

    /// Reads the next head.
    ///
    /// # Errors
    /// Any [`RequestError`]; answer it by [`Self::refuse`] if its status says
    /// that somebody is there, and close.
    pub async fn request(&mut self) -> Result<Exchange<'_, R, W>, RequestError> {
        self.write.begin(Asker::UNKNOWN);
        self.requests += 1;
        let bytes = self.read.head().await?;
        let options = &self.read.options;
        let (head, mut asker) = head::parse(&bytes, options)?;
        let expects = head.expects_continue();
        asker.keep_alive &= options.keep_alive;
        self.read.begin_body(head.framing);
        let invitation = expects.then_some(asker.keep_alive);
        // A client that waits to be invited may or may not send its body after
        // another answer, so that answer ends the connection.
        asker.keep_alive &= !expects;
        self.write.begin(asker);
        Ok(Exchange {
            head,
            body: RequestBody::new(&mut self.read, invitation),
            reply: Reply::new(&mut self.write),
        })
    }

    /// The answer to a request that could not be read; the last one.
    pub fn refuse(&mut self) -> Reply<'_, W> {
        self.read.rest = Rest::Lost;
        Reply::new(&mut self.write)
    }

    /// Closes. After a whole response, the client can read it to its end even
    /// while it is still sending; false if the response was not whole, and the
    /// socket must be reset rather than closed in order.
    pub async fn close(&mut self) -> bool {
        if self.write.phase != Phase::Whole {
            return false;
        }
        self.write.shutdown().await;
        if self.requests > 0 && !self.read.at_end() {
            self.read.rest = Rest::Raw;
            let drain = self.read.drain(LINGER_BYTES_MAX);
            // Past the bound, the client has had its chance.
            drop(tokio::time::timeout(LINGER, drain).await);
        }
        true
    }

    /// The socket's halves.
    pub fn into_halves(self) -> (R, W) {
        (self.read.into_io(), self.write.into_io())
    }
}

#[cfg(test)]
#[path = "conn_tests.rs"]
mod tests;
