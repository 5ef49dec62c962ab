//! What a transaction needs of its client, whatever version the client speaks.
//!
//! A codec gives an [`Exchange`]: the head, and the two ways to go on with the
//! request. Body and reply are apart, so that a response can be sent while the
//! request still comes in. Both are used on one event thread, in one task.

mod error;
mod head;

pub use error::{BodyError, ReplyError, RequestError};
pub use head::RequestHead;
pub(in crate::proxy) use head::{names_option, refuse_expectation};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::fmt::Arguments;

/// One request, and the two ways to go on with it.
#[derive(Debug)]
pub struct Exchange<R, W> {
    /// The head.
    pub head: RequestHead,
    /// The body, unread.
    pub body: R,
    /// The response to be written.
    pub reply: W,
}

/// What is known of a body's length before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// This many bytes.
    Known(u64),
    /// To be seen: the client is told the end when it is there.
    Unknown,
}

/// Bytes written for one response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Heads (interim ones too), framing of the body and trailers.
    pub head: u64,
    /// Content.
    pub body: u64,
}

/// The body of one request, read as it comes.
pub trait ClientRead {
    /// Sends `100 Continue` if the client waits for it (RFC 9110 10.1.1). To be
    /// called before the first [`Self::next`], once the body is wanted.
    ///
    /// # Errors
    /// [`ReplyError`] if the client is gone or stalls.
    fn invite<W: ClientWrite>(
        &mut self,
        reply: &mut W,
    ) -> impl Future<Output = Result<(), ReplyError>>;

    /// The next part of the content, framing taken off; `None` at the end.
    /// Cancel-safe.
    ///
    /// # Errors
    /// Any [`BodyError`]; the request is then void, and no more of it is read.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, BodyError>>;

    /// Waits until the client is gone beyond doubt: its connection was reset, or
    /// its stream. A client that only ended its side may still read (RFC 9112
    /// 9.6), and is gone if `http.allow_half_open` is 0. On HTTP/1, waits for
    /// ever while the body is not whole. Cancel-safe.
    fn reset(&mut self) -> impl Future<Output = ()>;

    /// Whether the unread rest is so short that reading past it is cheaper than
    /// another connection. An early answer to a longer one should close.
    fn is_short(&self) -> bool;

    /// The trailer section, once the body is whole.
    fn trailers(&mut self) -> Option<HeaderMap>;

    /// From here on the bytes are a tunnel's: [`Self::next`] gives whatever
    /// comes, without a timeout, and `None` when the client ends its side.
    #[must_use]
    fn into_tunnel(self) -> Self;
}

/// The response to one request.
///
/// ```text
/// interim* → begin → field* → send                       (whole at once)
///                           → start → chunk* → finish    (streamed)
///                           → start_tunnel → chunk* → end_tunnel
/// ```
///
/// The codec alone writes what frames the body and governs the connection; the
/// caller's fields must hold none of it, but for what a 101 switches to. A reply
/// dropped before it is whole is aborted: no client can take a part for the
/// whole.
pub trait ClientWrite {
    /// Whether content is sent at all: not to HEAD (RFC 9110 9.3.2).
    fn is_head(&self) -> bool;

    /// Whether the final head has left: too late for another answer.
    fn is_started(&self) -> bool;

    /// Whether the exchange is no HTTP any more: its head was a 101.
    fn is_switched(&self) -> bool;

    /// Bytes written so far.
    fn sent(&self) -> Sent;

    /// Makes this the last response of an HTTP/1 connection.
    fn close_after(&mut self);

    /// Sends an interim response (1xx, RFC 9110 15.2), except to a 1.0 client,
    /// for whom there are none.
    ///
    /// # Errors
    /// [`ReplyError`] if the client is gone or stalls.
    fn interim(
        &mut self,
        status: StatusCode,
        fields: &HeaderMap,
    ) -> impl Future<Output = Result<(), ReplyError>>;

    /// Begins the final head; fields follow by [`Self::field`].
    fn begin(&mut self, status: StatusCode);

    /// Adds a field line to the head.
    fn field(&mut self, name: &str, value: &[u8]);

    /// Adds a field line whose value is formatted.
    fn field_fmt(&mut self, name: &str, value: Arguments<'_>);

    /// Adds a field line.
    fn header(&mut self, name: &HeaderName, value: &HeaderValue);

    /// Adds every line of `map`.
    fn fields(&mut self, map: &HeaderMap) {
        for (name, value) in map {
            self.header(name, value);
        }
    }

    /// Sends the head begun, the `stored` field lines (each ends in CRLF) and
    /// the whole `body`, in as few writes as can be.
    ///
    /// # Errors
    /// [`ReplyError`] if the client is gone or stalls.
    fn send(
        &mut self,
        stored: &[u8],
        body: &[Bytes],
    ) -> impl Future<Output = Result<(), ReplyError>>;

    /// Sends the head begun and the `stored` field lines; [`Self::chunk`] and
    /// [`Self::finish`] send the body.
    ///
    /// # Errors
    /// [`ReplyError`] if the client is gone or stalls.
    fn start(
        &mut self,
        stored: &[u8],
        length: BodyLength,
    ) -> impl Future<Output = Result<(), ReplyError>>;

    /// Sends more of the body; nothing where the response has no content.
    ///
    /// # Errors
    /// [`ReplyError::Length`] if the body grows past what was announced; the
    /// others if the client is gone or stalls.
    fn chunk(&mut self, data: Bytes) -> impl Future<Output = Result<(), ReplyError>>;

    /// Ends the body. Trailers go to a client that asked for them, where the
    /// framing has room for them; else they are dropped (RFC 9110 6.5.1).
    ///
    /// # Errors
    /// [`ReplyError::Length`] if less was sent than announced; the others if
    /// the client is gone or stalls.
    fn finish(
        &mut self,
        trailers: Option<&HeaderMap>,
    ) -> impl Future<Output = Result<(), ReplyError>>;

    /// Sends the head begun as the start of a tunnel (a 2xx to CONNECT or a
    /// 101): no length, no coding; every [`Self::chunk`] goes out as it is.
    ///
    /// # Errors
    /// [`ReplyError`] if the client is gone or stalls.
    fn start_tunnel(&mut self) -> impl Future<Output = Result<(), ReplyError>>;

    /// Tells the client that the other end of the tunnel sends no more.
    fn end_tunnel(&mut self) -> impl Future<Output = ()>;

    /// Sends `100 Continue`; `keep_alive` says whether the connection may be
    /// kept, now that the body will come.
    fn send_continue(&mut self, keep_alive: bool) -> impl Future<Output = Result<(), ReplyError>>;
}

/// RFC 9110 6.4.1: statuses whose responses have no content. Nor do these carry
/// a Content-Length: 1xx and 204 must not (8.6), and in a 304 it would be the
/// length of the 200, which the empty body at hand doesn't tell.
#[must_use]
pub fn forbids_content(status: StatusCode) -> bool {
    status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED
}
