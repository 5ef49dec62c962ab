//! One request on a stream of a shared connection (RFC 9113 8).

use super::connect::HEAD_FIELDS_MAX;
use super::error::OriginError;
use super::exchange::{Again, Asked, Exchange, Failed, field_bytes, request_bytes, response_bytes};
use super::request::{BrokenBody, Interim, OriginRequest, RequestBody};
use super::response::{Limits, OriginBody, OriginResponse};
use super::shared::StreamLease;
use crate::http::framing::{BodyFraming, response_framing};
use crate::metrics::{Cells, Metric};
use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, HeaderValue, Request, Response, Uri, header};
use http_body_util::BodyExt;
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Why a request's body broke off, once it has.
type Broken = Rc<RefCell<Option<BrokenBody>>>;

impl Exchange<'_> {
    /// As `attempt` on a connection of one's own.
    pub(super) async fn attempt_stream(
        &self,
        lease: StreamLease,
        request: OriginRequest,
    ) -> Result<OriginResponse, Failed> {
        let again = Again::of(&request);
        let taken = request.body.taken();
        let asked = Asked::of(&request, &self.pool.state);
        let interim = request.interim.clone();
        let (head, body) = self.stream_message(request)?;
        let broken = Broken::default();
        let sent = send(&lease, head, body, Rc::clone(&broken));
        let response = async { Heads::new(sent.await?, interim).await };
        let response = match self.in_time(response, &taken).await {
            Ok(response) => response,
            Err(error) => {
                lease.abandon_connection();
                return Err(error.into());
            }
        };
        match response {
            Ok(response) => Ok(self.accept_stream(&asked, response, lease)?),
            Err(error) => Err(failed(&error, &broken, &lease, again)),
        }
    }

    fn stream_message(
        &self,
        request: OriginRequest,
    ) -> Result<(Request<()>, RequestBody), OriginError> {
        let bytes = request_bytes(&request.method, &request.upstream, &request.headers);
        let cells = &self.pool.state.cells;
        cells.add(Metric::OriginRequestHeadBytes, bytes);
        let mut headers = request.headers;
        let authority = headers.remove(header::HOST);
        frame(&mut headers, request.body.framing());
        let uri = uri(
            self.server.is_secured(),
            authority.as_ref(),
            &request.upstream.path_and_query,
        );
        let refused = |error: http::Error| OriginError::Target(error.to_string());
        let message = Request::builder().method(request.method).uri(uri?).body(());
        let mut message = message.map_err(refused)?;
        *message.headers_mut() = headers;
        Ok((message, request.body.counted(cells)))
    }

    /// Judges the head as that of HTTP/1 is judged; what RFC 9113 forbids in it
    /// the library refuses.
    fn accept_stream(
        &self,
        asked: &Asked,
        response: Response<RecvStream>,
        lease: StreamLease,
    ) -> Result<OriginResponse, OriginError> {
        let (head, incoming) = response.into_parts();
        let cells = &self.pool.state.cells;
        cells.add(Metric::IncomingResponses, 1);
        let bytes = response_bytes(head.status, None, &head.headers);
        cells.add(Metric::OriginResponseHeadBytes, bytes);
        self.judge_size(field_bytes(&head.headers))?;
        judge_fields(&head.headers)?;
        asked.judge_status(head.status, &head.headers)?;
        let framing = response_framing(&asked.method, head.status, head.version, &head.headers);
        let framing = framing.map_err(|error| OriginError::Malformed(error.to_string()))?;
        // Without a length the stream tells its end itself.
        let framing = match framing == BodyFraming::UntilClose {
            true => BodyFraming::Chunked,
            false => framing,
        };
        let body = match framing {
            BodyFraming::None | BodyFraming::Length(0) => OriginBody::Empty,
            BodyFraming::Length(_) | BodyFraming::Chunked | BodyFraming::UntilClose => {
                let body = StreamBody::new(incoming, lease, self.limits, Arc::clone(cells));
                OriginBody::Stream(Box::new(body))
            }
        };
        Ok(OriginResponse {
            status: head.status,
            version: head.version,
            headers: head.headers,
            framing,
            body,
            request_time: asked.at,
            response_time: self.pool.state.clock.wall(),
        })
    }
}

fn uri(secured: bool, host: Option<&HeaderValue>, path: &str) -> Result<Uri, OriginError> {
    let refused = |error: http::Error| OriginError::Target(error.to_string());
    let host = host.map(HeaderValue::as_bytes).unwrap_or_default();
    let authority = Authority::try_from(host).map_err(|error| refused(error.into()))?;
    let scheme = if secured { Scheme::HTTPS } else { Scheme::HTTP };
    let uri = Uri::builder().scheme(scheme).authority(authority);
    uri.path_and_query(path).build().map_err(refused)
}

/// The length, if it is known; the stream tells every end (RFC 9113 8.1.1).
fn frame(headers: &mut HeaderMap, framing: BodyFraming) {
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::TRANSFER_ENCODING);
    if let BodyFraming::Length(bytes) = framing {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
    }
}

/// As many fields as HTTP/1 may have, and values without blanks around them
/// (RFC 9113 8.2.1).
fn judge_fields(headers: &HeaderMap) -> Result<(), OriginError> {
    if headers.len() > HEAD_FIELDS_MAX {
        let why = format!("more than {HEAD_FIELDS_MAX} fields");
        return Err(OriginError::Malformed(why));
    }
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let padded = |value: &HeaderValue| {
        is_blank(value.as_bytes().first()) || is_blank(value.as_bytes().last())
    };
    match headers.iter().find(|(_, value)| padded(value)) {
        None => Ok(()),
        Some((name, _)) => Err(OriginError::Malformed(format!("blanks around {name}"))),
    }
}

/// Puts the head on a stream, and lets its body follow by itself.
async fn send(
    lease: &StreamLease,
    head: Request<()>,
    body: RequestBody,
    broken: Broken,
) -> Result<ResponseFuture, h2::Error> {
    let mut sender = lease.sender().ready().await?;
    let is_whole = body.is_empty();
    let (response, stream) = sender.send_request(head, is_whole)?;
    if !is_whole {
        tokio::task::spawn_local(send_body(stream, body, broken));
    }
    Ok(response)
}

/// Sends content as it comes and as there is room, until the origin wants no
/// more. A body that breaks off resets the stream: the origin must not take it
/// for whole.
async fn send_body(mut stream: SendStream<Bytes>, mut body: RequestBody, broken: Broken) {
    loop {
        let frame = tokio::select! {
            biased;
            _ = poll_fn(|cx| stream.poll_reset(cx)) => return,
            frame = body.frame() => frame,
        };
        let sent = match frame {
            None => {
                drop(stream.send_data(Bytes::new(), true));
                return;
            }
            Some(Err(reason)) => {
                broken.replace(Some(reason));
                stream.send_reset(Reason::CANCEL);
                return;
            }
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => send_data(&mut stream, data).await,
                Err(other) => {
                    let trailers = other.into_trailers().unwrap_or_default();
                    drop(stream.send_trailers(trailers));
                    return;
                }
            },
        };
        if !sent {
            return;
        }
    }
}

/// False when the stream takes no more.
async fn send_data(stream: &mut SendStream<Bytes>, mut data: Bytes) -> bool {
    while !data.is_empty() {
        stream.reserve_capacity(data.len());
        let room = match stream.capacity() {
            0 => match poll_fn(|cx| stream.poll_capacity(cx)).await {
                Some(Ok(room)) => room,
                Some(Err(_)) | None => return false,
            },
            room => room,
        };
        let now = data.split_to(room.min(data.len()));
        if stream.send_data(now, false).is_err() {
            return false;
        }
    }
    true
}

/// What a failure on a stream means. An origin that leaves says which streams
/// it has not looked at; those may go out again (RFC 9113 6.8, 8.7).
fn failed(error: &h2::Error, broken: &Broken, lease: &StreamLease, again: Again) -> Failed {
    if let Some(reason) = broken.borrow_mut().take() {
        return OriginError::of_body(reason).into();
    }
    let of_the_origin = error.is_remote();
    let unseen = of_the_origin
        && (error.reason() == Some(Reason::REFUSED_STREAM)
            || (error.is_go_away() && error.reason() == Some(Reason::NO_ERROR)));
    if !error.is_reset() {
        lease.abandon_connection();
    }
    let failure = OriginError::from_h2(error);
    match error.is_reset() && !unseen {
        true => failure.into(),
        false => again.after(failure, unseen),
    }
}

/// The heads of a response: interim ones are handed on, the final one is it.
struct Heads {
    response: ResponseFuture,
    interim: Option<mpsc::Sender<Interim>>,
}

impl Heads {
    fn new(response: ResponseFuture, interim: Option<mpsc::Sender<Interim>>) -> Self {
        Self { response, interim }
    }

    /// A client too slow for them misses some.
    fn pass(&self, head: Response<()>) {
        let (head, ()) = head.into_parts();
        if let Some(to) = &self.interim {
            drop(to.try_send((head.status, head.headers)));
        }
    }
}

impl Future for Heads {
    type Output = Result<Response<RecvStream>, h2::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        while let Poll::Ready(Some(interim)) = self.response.poll_informational(cx) {
            self.pass(interim?);
        }
        Pin::new(&mut self.response).poll(cx)
    }
}

/// A body on a stream. Dropped before its end, it resets the stream, and the
/// connection goes on.
#[derive(Debug)]
pub struct StreamBody {
    incoming: RecvStream,
    lease: Option<StreamLease>,
    /// Bytes handed out whose room the origin has not got back.
    held: usize,
    trailers: Option<HeaderMap>,
    limits: Limits,
    cells: Arc<Cells>,
}

impl StreamBody {
    fn new(incoming: RecvStream, lease: StreamLease, limits: Limits, cells: Arc<Cells>) -> Self {
        Self {
            incoming,
            lease: Some(lease),
            held: 0,
            trailers: None,
            limits,
            cells,
        }
    }

    /// As [`OriginBody::next`].
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, OriginError> {
        loop {
            self.release();
            let incoming = &mut self.incoming;
            let data = self.limits.wait(poll_fn(|cx| incoming.poll_data(cx)));
            let Some(data) = data.await? else {
                return self.ended().await;
            };
            let data = data.map_err(|error| OriginError::from_h2(&error))?;
            self.held = data.len();
            if !data.is_empty() {
                let bytes = u64::try_from(data.len()).unwrap_or(u64::MAX);
                self.cells.add(Metric::OriginResponseBodyBytes, bytes);
                return Ok(Some(data));
            }
        }
    }

    /// The trailer fields.
    pub(super) fn trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take()
    }

    fn release(&mut self) {
        let held = std::mem::take(&mut self.held);
        // It fails for a stream that is over, which needs no room.
        drop(self.incoming.flow_control().release_capacity(held));
    }

    async fn ended(&mut self) -> Result<Option<Bytes>, OriginError> {
        let incoming = &mut self.incoming;
        let trailers = self.limits.wait(poll_fn(|cx| incoming.poll_trailers(cx)));
        let trailers = trailers.await?;
        self.trailers = trailers.map_err(|error| OriginError::from_h2(&error))?;
        self.lease = None;
        Ok(None)
    }
}
