//! What is sent to an origin.

use super::OriginOptions;
use crate::http::framing::BodyFraming;
use crate::http::upgrade::Offer;
use crate::metrics::{Cells, Metric};
use crate::proxy::introduction::Introduction;
use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body::{Body, Frame, SizeHint};
use std::cell::Cell;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

/// Parts of a request body that may wait for the origin to take them.
const BODY_QUEUE: usize = 4;

/// Judges an address before it is connected to; the error is the reason.
pub type AddressGuard = Rc<dyn Fn(IpAddr) -> Result<(), String>>;

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A server on the network.
    Server {
        /// `http`; others are refused by name.
        scheme: &'static str,
        /// The name or address, in URL form, lower-case.
        host: Arc<str>,
        /// The port.
        port: u16,
    },
    /// The built-in generator (`@plugin=generator.so`).
    Generator,
}

impl Place {
    /// A server spoken to in clear.
    #[must_use]
    pub fn http(host: &str, port: u16) -> Self {
        Self::Server {
            scheme: "http",
            host: host.to_ascii_lowercase().into(),
            port,
        }
    }

    /// The name for the log (`%<shn>`).
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Server { host, .. } => host,
            Self::Generator => "generator",
        }
    }
}

/// Where a request goes, and under whose policy.
#[derive(Clone)]
pub struct Upstream {
    /// The origin.
    pub place: Place,
    /// The request-target there: path and query, beginning with `/`.
    pub path_and_query: String,
    /// Judges the address; `None` for targets written literally in a rule.
    pub guard: Option<AddressGuard>,
    /// The options that hold for the requests of a rule; `None` for the pool's.
    pub options: Option<Arc<OriginOptions>>,
    /// What a connection begins with, which then serves this request alone
    /// (`http.proxy_protocol_out`).
    pub introduction: Option<Introduction>,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream")
            .field("place", &self.place)
            .field("path_and_query", &self.path_and_query)
            .field("guarded", &self.guard.is_some())
            .finish()
    }
}

/// An interim response (RFC 9110 15.2) on its way to the client.
pub type Interim = (http::StatusCode, HeaderMap);

/// A request to an origin.
pub struct OriginRequest {
    /// Where to.
    pub upstream: Upstream,
    /// The method.
    pub method: Method,
    /// The fields as they go out, `Host` included: hop-by-hop ones taken off,
    /// Via added. Framing fields are taken off here, the body tells them.
    pub headers: HeaderMap,
    /// The body.
    pub body: RequestBody,
    /// Where interim responses go; full or absent, they are dropped.
    pub interim: Option<mpsc::Sender<Interim>>,
    /// What the connection may switch to (RFC 9110 7.8). The request then goes
    /// out on a new connection, once, which is not kept.
    pub upgrade: Option<Offer>,
}

impl OriginRequest {
    /// A request without a body.
    #[must_use]
    pub const fn new(upstream: Upstream, method: Method, headers: HeaderMap) -> Self {
        Self {
            upstream,
            method,
            headers,
            body: RequestBody::empty(),
            interim: None,
            upgrade: None,
        }
    }
}

/// A request's body, handed over part by part, never held whole.
#[derive(Debug, Default)]
pub struct RequestBody {
    stream: Option<Stream>,
}

#[derive(Debug)]
struct Stream {
    parts: mpsc::Receiver<Part>,
    /// Content still owed when the length is known, in bytes.
    left: Option<u64>,
    /// Parts taken so far; shared with whoever waits for the response.
    taken: Rc<Cell<u64>>,
    /// Where content is counted once it is on its way to an origin.
    cells: Option<Arc<Cells>>,
}

type Part = Result<Frame<Bytes>, BrokenBody>;

/// Why a request's body broke off.
#[derive(Clone, Debug, thiserror::Error)]
pub enum BrokenBody {
    /// The client left, or broke the framing.
    #[error("{0}")]
    Broken(String),
    /// The client sent nothing for this long.
    #[error("stalled for {0:?}")]
    Stalled(Duration),
}

/// The end that a request's body is put into. Dropped before
/// [`BodySender::finish`], it breaks the body off.
#[derive(Debug)]
pub struct BodySender {
    parts: Option<mpsc::Sender<Part>>,
}

impl RequestBody {
    /// No body.
    #[must_use]
    pub const fn empty() -> Self {
        Self { stream: None }
    }

    /// A body that is sent while it comes in: `length` bytes, or chunked.
    #[must_use]
    pub fn streamed(length: Option<u64>) -> (BodySender, Self) {
        let (sender, parts) = mpsc::channel(BODY_QUEUE);
        let stream = Stream {
            parts,
            left: length,
            taken: Rc::default(),
            cells: None,
        };
        let parts = Some(sender);
        let body = Self {
            stream: Some(stream),
        };
        (BodySender { parts }, body)
    }

    /// A body that is at hand.
    #[must_use]
    pub fn whole(content: Bytes) -> Self {
        let left = u64::try_from(content.len()).unwrap_or(u64::MAX);
        let (sender, parts) = mpsc::channel(1);
        // The queue has room for it, and its end follows.
        drop(sender.try_send(Ok(Frame::data(content))));
        Self {
            stream: Some(Stream {
                parts,
                left: Some(left),
                taken: Rc::default(),
                cells: None,
            }),
        }
    }

    /// Whether there is none, so that the request can be sent again.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.stream.is_none()
    }

    /// How its end is told to the origin, as far as it is still to come.
    pub(super) fn framing(&self) -> BodyFraming {
        let Some(stream) = &self.stream else {
            return BodyFraming::None;
        };
        stream
            .left
            .map_or(BodyFraming::Chunked, BodyFraming::Length)
    }

    /// The same body, whose content is counted as it is taken.
    pub(super) fn counted(mut self, cells: &Arc<Cells>) -> Self {
        if let Some(stream) = &mut self.stream {
            stream.cells = Some(Arc::clone(cells));
        }
        self
    }

    /// The count of parts that the origin has taken.
    pub(super) fn taken(&self) -> Rc<Cell<u64>> {
        let stream = self.stream.as_ref();
        stream
            .map(|stream| Rc::clone(&stream.taken))
            .unwrap_or_default()
    }
}

impl BodySender {
    /// Hands over more content, when the origin has room for it. False when
    /// the origin wants no more.
    pub async fn send(&self, data: Bytes) -> bool {
        self.put(Ok(Frame::data(data))).await
    }

    /// Ends the body, with its trailers if it has any.
    pub async fn finish(mut self, trailers: Option<HeaderMap>) {
        if let Some(trailers) = trailers {
            self.put(Ok(Frame::trailers(trailers))).await;
        }
        self.parts = None;
    }

    /// Breaks the body off: the origin must not take it for whole.
    pub async fn fail(mut self, reason: BrokenBody) {
        self.put(Err(reason)).await;
        self.parts = None;
    }

    async fn put(&self, part: Part) -> bool {
        let Some(parts) = &self.parts else {
            return false;
        };
        parts.send(part).await.is_ok()
    }
}

impl Drop for BodySender {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            // An end of the queue alone would read as the end of a chunked
            // body, so the note must get through, however full the queue is.
            let broken = Err(BrokenBody::Broken("client broke off".to_owned()));
            drop(tokio::task::spawn_local(
                async move { parts.send(broken).await },
            ));
        }
    }
}

impl Stream {
    fn account(&mut self, part: Part) -> Part {
        self.taken.set(self.taken.get() + 1);
        let frame = part?;
        let data = frame.data_ref().map_or(0, Bytes::len);
        let bytes = u64::try_from(data).unwrap_or(u64::MAX);
        if let Some(cells) = &self.cells {
            cells.add(Metric::OriginRequestBodyBytes, bytes);
        }
        if let Some(left) = self.left {
            let rest = left.checked_sub(bytes);
            let rest =
                rest.ok_or_else(|| BrokenBody::Broken("longer than announced".to_owned()))?;
            self.left = Some(rest);
        }
        Ok(frame)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BrokenBody;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(None);
        };
        let part = std::task::ready!(stream.parts.poll_recv(cx));
        Poll::Ready(part.map(|part| stream.account(part)))
    }

    fn is_end_stream(&self) -> bool {
        self.stream
            .as_ref()
            .is_none_or(|stream| stream.left == Some(0))
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.stream.as_ref().map_or(Some(0), |stream| stream.left);
        left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
