//! The sending half of one stream, shared by its reply and by its body, which
//! has to know when the client resets it. Both are of one task.

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::{HeaderMap, Response};
use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll};

/// A stream that is answered.
#[derive(Clone, Debug)]
pub(super) struct Stream(Rc<RefCell<Half>>);

#[derive(Debug)]
struct Half {
    respond: SendResponse<Bytes>,
    /// The body's way out, once the head has left.
    body: Option<SendStream<Bytes>>,
}

impl Stream {
    pub(super) fn new(respond: SendResponse<Bytes>) -> Self {
        let half = Half {
            respond,
            body: None,
        };
        Self(Rc::new(RefCell::new(half)))
    }

    /// Sends an interim head.
    pub(super) fn interim(&self, head: Response<()>) -> Result<(), h2::Error> {
        self.0.borrow_mut().respond.send_informational(head)
    }

    /// Sends the final head; `ends` says that there is no body.
    pub(super) fn head(&self, head: Response<()>, ends: bool) -> Result<(), h2::Error> {
        let half = &mut *self.0.borrow_mut();
        half.body = Some(half.respond.send_response(head, ends)?);
        Ok(())
    }

    /// Sends content, as much as there is room for.
    pub(super) fn data(&self, data: Bytes, ends: bool) -> Result<(), h2::Error> {
        let half = &mut *self.0.borrow_mut();
        half.body
            .as_mut()
            .map_or(Ok(()), |body| body.send_data(data, ends))
    }

    /// Ends the stream with trailers.
    pub(super) fn trailers(&self, fields: HeaderMap) -> Result<(), h2::Error> {
        let half = &mut *self.0.borrow_mut();
        half.body
            .as_mut()
            .map_or(Ok(()), |body| body.send_trailers(fields))
    }

    /// Waits for room for some of `wanted` bytes; `None` when the stream takes
    /// no more.
    pub(super) fn poll_room(&self, wanted: usize, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        let half = &mut *self.0.borrow_mut();
        let Some(body) = &mut half.body else {
            return Poll::Ready(None);
        };
        body.reserve_capacity(wanted);
        let room = body.capacity();
        if room > 0 {
            return Poll::Ready(Some(room));
        }
        body.poll_capacity(cx).map(|room| room?.ok())
    }

    /// Waits until the client has reset the stream, or its connection is gone.
    pub(super) fn poll_reset(&self, cx: &mut Context<'_>) -> Poll<()> {
        let half = &mut *self.0.borrow_mut();
        let reset = match &mut half.body {
            Some(body) => body.poll_reset(cx),
            None => half.respond.poll_reset(cx),
        };
        reset.map(drop)
    }

    /// Breaks the stream off.
    pub(super) fn reset(&self, reason: Reason) {
        self.0.borrow_mut().respond.send_reset(reason);
    }
}
