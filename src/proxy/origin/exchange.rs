//! One request on its way through the pool: which connection, sent how often.

use super::connect::{Dial, Dialled};
use super::error::OriginError;
use super::pool::{Connection, Lease, PoolState, ServerKey};
use super::request::{Interim, OriginRequest, RequestBody, Upstream};
use super::response::{Limits, NetworkBody, OriginBody, OriginResponse, Switched};
use super::shared::{StreamLease, Turn};
use super::{OriginOptions, OriginPool};
use crate::base::clock::WallTime;
use crate::http::framing::{BodyFraming, response_framing};
use crate::http::upgrade::Offer;
use crate::metrics::Metric;
use crate::proxy::tls::Speech;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use tokio::sync::mpsc;

pub(super) struct Exchange<'a> {
    pub(super) pool: &'a OriginPool,
    pub(super) options: &'a OriginOptions,
    pub(super) server: ServerKey,
    /// Whether connections may be kept, before and after.
    pub(super) reuse: bool,
    pub(super) limits: Limits,
}

/// What a request is sent over.
pub(super) enum Link {
    /// A connection of HTTP/1, its own for the time.
    Own(Box<Connection>),
    /// A stream of a connection of HTTP/2.
    Shared(StreamLease),
}

/// A request that failed on one connection.
pub(super) struct Failed {
    error: OriginError,
    /// The request itself, when it may be sent again.
    again: Option<OriginRequest>,
}

impl Exchange<'_> {
    pub(super) async fn run(
        &self,
        mut request: OriginRequest,
    ) -> Result<OriginResponse, OriginError> {
        // One kept connection may have been ended by the origin meanwhile; what
        // fails there goes out once more on one of its own, not on each that is
        // kept.
        if let Some(link) = self.kept(&request).await {
            self.count(Metric::OriginReuse);
            match self.attempt(link, request).await {
                Ok(response) => return Ok(response),
                Err(failed) => request = failed.again.ok_or(failed.error)?,
            }
        }
        let link = self.fresh(&request).await?;
        let answer = self.attempt(link, request).await;
        answer.map_err(|failed| failed.error)
    }

    fn count(&self, metric: Metric) {
        self.pool.state.cells.add(metric, 1);
    }

    /// A connection to share, or a kept one that is ready to send.
    async fn kept(&self, request: &OriginRequest) -> Option<Link> {
        if !self.reuse {
            return None;
        }
        if let Some(stream) = self.shared(request) {
            return Some(Link::Shared(stream));
        }
        let guard = request.upstream.guard.as_ref();
        let allowed = |ip: IpAddr| guard.is_none_or(|guard| guard(ip).is_ok());
        loop {
            let state = &self.pool.state;
            let mut kept = state.take(&self.server, self.options, allowed)?;
            if kept.sender.ready().await.is_ok() {
                return Some(Link::Own(Box::new(kept)));
            }
        }
    }

    fn shared(&self, request: &OriginRequest) -> Option<StreamLease> {
        let guard = request.upstream.guard.as_ref();
        let allowed = |ip: IpAddr| guard.is_none_or(|guard| guard(ip).is_ok());
        let state = &self.pool.state;
        let max = self.options.streams_max;
        state.shared.lease(&self.server, max, allowed, &state.cells)
    }

    /// A new connection; where it may come to be shared, those who want one at
    /// the same time wait for the first.
    async fn fresh(&self, request: &OriginRequest) -> Result<Link, OriginError> {
        let speech = self.speech(request);
        if !self.reuse || speech == Speech::One {
            return self.dial(request, speech).await;
        }
        let gate = self.pool.state.shared.gate(&self.server);
        loop {
            match Rc::clone(&gate).turn().await {
                Turn::Connect(taken) => {
                    let link = self.dial(request, speech).await;
                    if let Ok(Link::Shared(_)) = &link {
                        taken.shared();
                    }
                    return link;
                }
                Turn::Alone => return self.dial(request, speech).await,
                Turn::Look => {
                    if let Some(stream) = self.shared(request) {
                        self.count(Metric::OriginReuse);
                        return Ok(Link::Shared(stream));
                    }
                }
            }
        }
    }

    /// What is spoken on a new connection: a switch to another protocol is one
    /// of HTTP/1, and so is a connection that is not kept.
    fn speech(&self, request: &OriginRequest) -> Speech {
        let switches = request.upgrade.is_some();
        match (self.server.knows_h2, &self.options.tls) {
            (true, _) if !switches => Speech::Two,
            (_, Some(tls)) if !switches && self.reuse && self.server.is_secured() => tls.speech(),
            _ => Speech::One,
        }
    }

    async fn dial(&self, request: &OriginRequest, speech: Speech) -> Result<Link, OriginError> {
        self.count(Metric::OriginMakeNew);
        let state = &self.pool.state;
        let dial = Dial {
            pool: state,
            resolver: &self.pool.resolver(),
            options: self.options,
            server: &self.server,
            guard: request.upstream.guard.as_ref(),
        };
        let first = request.upstream.introduction.as_deref();
        let switching = request.upgrade.is_some();
        Ok(match dial.connect(speech, switching, first).await? {
            Dialled::Own(connection) => Link::Own(connection),
            Dialled::Shared(connection) => {
                if self.reuse {
                    state.shared.add(&self.server, &connection);
                }
                Link::Shared(StreamLease::new(&connection, &state.cells))
            }
        })
    }

    async fn attempt(&self, link: Link, request: OriginRequest) -> Result<OriginResponse, Failed> {
        match link {
            Link::Own(connection) => self.attempt_alone(*connection, request).await,
            Link::Shared(stream) => Box::pin(self.attempt_stream(stream, request)).await,
        }
    }

    async fn attempt_alone(
        &self,
        connection: Connection,
        request: OriginRequest,
    ) -> Result<OriginResponse, Failed> {
        let state = &self.pool.state;
        let mut lease = Lease::new(connection, self.server.clone(), state, self.reuse);
        let again = Again::of(&request);
        let taken = request.body.taken();
        let asked = Asked::of(&request, state);
        let message = self.message(request)?;
        lease.connection.announcer.announce(&asked.method);
        let sent = lease.connection.sender.try_send_request(message);
        let response = match self.in_time(sent, &taken).await? {
            Ok(response) => response,
            Err(mut refused) => {
                let unsent = refused.take_message().is_some();
                let error = OriginError::from_hyper(&refused.into_error());
                return Err(again.after(error, unsent));
            }
        };
        Ok(self.accept(&asked, response, lease).await?)
    }

    /// Waits for the head; each part of the request's body that the origin
    /// takes is activity.
    pub(super) async fn in_time<F: Future>(
        &self,
        sent: F,
        taken: &Cell<u64>,
    ) -> Result<F::Output, OriginError> {
        let mut sent = std::pin::pin!(sent);
        loop {
            let before = taken.get();
            match self.limits.wait(sent.as_mut()).await {
                Err(OriginError::Stalled(_)) if taken.get() != before => {}
                answer => return answer,
            }
        }
    }

    fn message(&self, request: OriginRequest) -> Result<Request<RequestBody>, OriginError> {
        let mut headers = request.headers;
        frame(&mut headers, request.body.framing());
        if let Some(offer) = &request.upgrade {
            ask_to_switch(&mut headers, offer);
        }
        let bytes = request_bytes(&request.method, &request.upstream, &headers);
        let cells = &self.pool.state.cells;
        cells.add(Metric::OriginRequestHeadBytes, bytes);
        let mut message = Request::builder()
            .method(request.method)
            .uri(request.upstream.path_and_query)
            .body(request.body.counted(cells))
            .map_err(|error| OriginError::Target(error.to_string()))?;
        *message.headers_mut() = headers;
        if let Some(to) = request.interim {
            pass_interim(&mut message, to);
        }
        Ok(message)
    }

    /// Judges the head by RFC 9112 6, more strictly than hyper does.
    async fn accept(
        &self,
        asked: &Asked,
        mut response: Response<Incoming>,
        lease: Lease,
    ) -> Result<OriginResponse, OriginError> {
        let switch = hyper::upgrade::on(&mut response);
        let (head, incoming) = response.into_parts();
        self.count(Metric::IncomingResponses);
        let reason = head.extensions.get::<ReasonPhrase>();
        let bytes = response_bytes(head.status, reason, &head.headers);
        let cells = &self.pool.state.cells;
        cells.add(Metric::OriginResponseHeadBytes, bytes);
        self.judge_size(field_bytes(&head.headers))?;
        asked.judge_status(head.status, &head.headers)?;
        let framing = response_framing(&asked.method, head.status, head.version, &head.headers)
            .map_err(|error| OriginError::Malformed(error.to_string()))?;
        let body = if head.status == StatusCode::SWITCHING_PROTOCOLS {
            OriginBody::Switched(Box::new(Switched::of(switch, lease).await?))
        } else {
            self.body(framing, incoming, lease)
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

    /// A kept connection holds to the limit that it was opened with, which a
    /// reload may have lowered.
    pub(super) fn judge_size(&self, bytes: u64) -> Result<(), OriginError> {
        let max = u64::try_from(self.options.head_bytes_max).unwrap_or(u64::MAX);
        if bytes > max {
            let why = format!("its head has {bytes} bytes, of at most {max}");
            return Err(OriginError::Malformed(why));
        }
        Ok(())
    }

    fn body(&self, framing: BodyFraming, incoming: Incoming, lease: Lease) -> OriginBody {
        if matches!(framing, BodyFraming::None | BodyFraming::Length(0)) {
            lease.give_back();
            return OriginBody::Empty;
        }
        let cells = std::sync::Arc::clone(&self.pool.state.cells);
        let body = NetworkBody::new(incoming, lease, self.limits, cells);
        OriginBody::Network(Box::new(body))
    }
}

/// What was asked, and when.
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) at: WallTime,
    upgrade: Option<Offer>,
}

impl Asked {
    pub(super) fn of(request: &OriginRequest, pool: &PoolState) -> Self {
        Self {
            method: request.method.clone(),
            at: pool.clock.wall(),
            upgrade: request.upgrade.clone(),
        }
    }

    /// A response that ends an exchange is a final one, or the 101 that was
    /// asked for (RFC 9110 15.2.2).
    pub(super) fn judge_status(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<(), OriginError> {
        let offer = self.upgrade.as_ref();
        let is_asked_for = status == StatusCode::SWITCHING_PROTOCOLS
            && offer.is_some_and(|offer| offer.is_taken_by(headers));
        if status.is_informational() && !is_asked_for {
            let why = format!("{status}, which does not answer what was asked");
            return Err(OriginError::Malformed(why));
        }
        Ok(())
    }
}

/// What it takes to send a request a second time.
pub(super) struct Again {
    request: Option<(Upstream, Method, HeaderMap)>,
}

impl Again {
    /// Only a request without a body can be sent again.
    pub(super) fn of(request: &OriginRequest) -> Self {
        let parts = || {
            let upstream = request.upstream.clone();
            (upstream, request.method.clone(), request.headers.clone())
        };
        Self {
            request: request.body.is_empty().then(parts),
        }
    }

    pub(super) fn after(self, error: OriginError, unsent: bool) -> Failed {
        let closed = matches!(error, OriginError::Closed(_));
        let safe = |method: &Method| unsent || (closed && method.is_idempotent());
        let again = self.request.filter(|(_, method, _)| safe(method));
        let again =
            again.map(|(upstream, method, headers)| OriginRequest::new(upstream, method, headers));
        Failed { error, again }
    }
}

impl From<OriginError> for Failed {
    fn from(error: OriginError) -> Self {
        Self { error, again: None }
    }
}

impl From<Failed> for OriginError {
    fn from(failed: Failed) -> Self {
        failed.error
    }
}

/// Says how the body ends, which hyper leaves out of some requests: it takes a
/// body of unknown length for none in GET and HEAD, and names no length of 0.
fn frame(headers: &mut HeaderMap, framing: BodyFraming) {
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::TRANSFER_ENCODING);
    match framing {
        BodyFraming::None | BodyFraming::UntilClose => {}
        BodyFraming::Length(bytes) => {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
        }
        BodyFraming::Chunked => {
            let chunked = HeaderValue::from_static("chunked");
            headers.insert(header::TRANSFER_ENCODING, chunked);
        }
    }
}

/// Both are for this connection only (RFC 9110 7.6.1), so they are written anew.
fn ask_to_switch(headers: &mut HeaderMap, offer: &Offer) {
    headers.insert(header::UPGRADE, offer.value().clone());
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
}

/// Hands interim responses on; a client too slow for them misses some.
fn pass_interim(message: &mut Request<RequestBody>, to: mpsc::Sender<Interim>) {
    hyper::ext::on_informational(message, move |interim| {
        let interim = (interim.status(), interim.headers().clone());
        drop(to.try_send(interim));
    });
}

/// Bytes of a request's head on the wire: request line, fields, empty line
/// (RFC 9112 2.1).
pub(super) fn request_bytes(method: &Method, upstream: &Upstream, headers: &HeaderMap) -> u64 {
    let line = "  HTTP/1.1\r\n\r\n".len();
    let line = line + method.as_str().len() + upstream.path_and_query.len();
    count(line) + field_bytes(headers)
}

/// As [`request_bytes`], of a response; `reason` where it is not the usual one
/// of its status.
pub(super) fn response_bytes(
    status: StatusCode,
    reason: Option<&ReasonPhrase>,
    headers: &HeaderMap,
) -> u64 {
    let usual = || status.canonical_reason().unwrap_or("").len();
    let reason = reason.map_or_else(usual, |reason| reason.as_bytes().len());
    count("HTTP/1.1 200 \r\n\r\n".len() + reason) + field_bytes(headers)
}

/// Bytes that the field lines take.
pub(super) fn field_bytes(headers: &HeaderMap) -> u64 {
    let line = |(name, value): (&header::HeaderName, &header::HeaderValue)| {
        name.as_str().len() + value.len() + 4
    };
    count(headers.iter().map(line).sum())
}

/// Bytes as the counters have them.
fn count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
