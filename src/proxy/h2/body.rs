//! Reading the body of one request, at the pace of whoever wants it.

use super::stream::Stream;
use crate::http::chunked::is_trailer_field;
use crate::proxy::client::{BodyError, ClientRead, ClientWrite, ReplyError};
use crate::proxy::patience::Patience;
use bytes::Bytes;
use h2::RecvStream;
use http::HeaderMap;
use std::future::poll_fn;
use std::time::Duration;

/// The body of one request of an HTTP/2 connection. What was given out counts
/// against the client's window until more is asked for, so that no more than a
/// window is ever held of it.
#[derive(Debug)]
pub(super) struct RequestBody {
    recv: RecvStream,
    stream: Stream,
    /// Bytes given out last.
    held: usize,
    /// Whether the client waits to be invited (RFC 9110 10.1.1).
    waits: bool,
    /// Wait for more of it; none in a tunnel.
    stall: Option<Duration>,
    patience: Patience,
    trailers: Option<HeaderMap>,
}

impl RequestBody {
    pub(super) fn new(recv: RecvStream, stream: Stream, stall: Duration) -> Self {
        Self {
            recv,
            stream,
            held: 0,
            waits: false,
            stall: Some(stall),
            patience: Patience::default(),
            trailers: None,
        }
    }

    /// One that a client sends only once it is invited, if `waits`.
    pub(super) fn waiting(self, waits: bool) -> Self {
        Self { waits, ..self }
    }

    /// Gives the client room for as much as has been used up.
    fn release(&mut self) {
        let held = std::mem::take(&mut self.held);
        // Only a stream that has ended refuses, and that needs no room.
        drop(self.recv.flow_control().release_capacity(held));
    }

    async fn part(&mut self) -> Result<Option<Bytes>, BodyError> {
        let next = poll_fn(|cx| self.recv.poll_data(cx));
        let part = match self.stall {
            None => next.await,
            Some(stall) => {
                let part = self.patience.wait(stall, next).await;
                part.ok_or(BodyError::Stalled(stall))?
            }
        };
        part.transpose().map_err(broken)
    }
}

impl ClientRead for RequestBody {
    async fn invite<W: ClientWrite>(&mut self, reply: &mut W) -> Result<(), ReplyError> {
        if !std::mem::take(&mut self.waits) {
            return Ok(());
        }
        reply.send_continue(true).await
    }

    async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        self.release();
        if let Some(part) = self.part().await? {
            self.held = part.len();
            return Ok(Some(part));
        }
        let trailers = poll_fn(|cx| self.recv.poll_trailers(cx)).await;
        let trailers = trailers.map_err(broken)?;
        self.trailers = trailers.map(without_forbidden);
        Ok(None)
    }

    async fn reset(&mut self) {
        poll_fn(|cx| self.stream.poll_reset(cx)).await;
    }

    fn is_short(&self) -> bool {
        // What is left of it holds up no other request.
        true
    }

    fn trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take()
    }

    fn into_tunnel(self) -> Self {
        Self {
            stall: None,
            ..self
        }
    }
}

fn without_forbidden(trailers: HeaderMap) -> HeaderMap {
    let all = trailers.iter();
    all.filter(|(name, _)| is_trailer_field(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// A stream that was reset, or a body that is not as long as it said.
fn broken(error: h2::Error) -> BodyError {
    BodyError::Io(std::io::Error::other(error))
}
