//! What an origin answers, its body checked against its framing.

use super::error::OriginError;
use super::judged::Judged;
use super::pool::Lease;
use super::stream::OriginStream;
use super::streams::StreamBody;
use crate::base::clock::WallTime;
use crate::http::framing::BodyFraming;
use crate::metrics::{Cells, Metric};
use crate::proxy::generator::Generated;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A final response's head, and its body to come.
#[derive(Debug)]
pub struct OriginResponse {
    /// The status.
    pub status: StatusCode,
    /// The version the origin speaks.
    pub version: Version,
    /// The fields as they came, hop-by-hop ones included.
    pub headers: HeaderMap,
    /// How the body ends; checked already.
    pub framing: BodyFraming,
    /// The body.
    pub body: OriginBody,
    /// When the request went out.
    pub request_time: WallTime,
    /// When the head had come in.
    pub response_time: WallTime,
}

/// A response's body, part by part.
#[derive(Debug)]
pub enum OriginBody {
    /// From a connection, which goes back to the pool at the body's end.
    Network(Box<NetworkBody>),
    /// From a stream of a connection that others share.
    Stream(Box<StreamBody>),
    /// From the built-in generator.
    Generated(Generated),
    /// None: the connection has been switched to another protocol by a 101.
    Switched(Box<Switched>),
    /// All that is left, at once.
    Whole(Bytes),
    /// Nothing.
    Empty,
}

impl OriginBody {
    /// The next part of the content; `None` at its end.
    ///
    /// # Errors
    /// [`OriginError`] when it breaks off: an early close is never an end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, OriginError> {
        match self {
            Self::Network(body) => body.next().await,
            Self::Stream(body) => body.next().await,
            Self::Generated(body) => Ok(body.next().await),
            Self::Whole(bytes) => {
                let all = std::mem::take(bytes);
                Ok((!all.is_empty()).then_some(all))
            }
            Self::Switched(_) | Self::Empty => Ok(None),
        }
    }

    /// The trailer fields, once [`Self::next`] has told the end.
    #[must_use]
    pub fn trailers(&mut self) -> Option<HeaderMap> {
        match self {
            Self::Network(body) => body.trailers.take(),
            Self::Stream(body) => body.trailers(),
            Self::Generated(_) | Self::Switched(_) | Self::Whole(_) | Self::Empty => None,
        }
    }
}

/// A connection that speaks another protocol now (RFC 9110 7.8).
#[derive(Debug)]
pub struct Switched {
    /// The connection.
    pub stream: OriginStream,
    /// What of the other protocol came with the 101.
    pub first: Bytes,
    /// Counts it as long as it lasts.
    _lease: Lease,
}

impl Switched {
    /// Takes the socket from hyper, once that has let go of it.
    pub(super) async fn of(switch: OnUpgrade, lease: Lease) -> Result<Self, OriginError> {
        let gone = |error| OriginError::from_hyper(&error);
        let upgraded = switch.await.map_err(gone)?;
        let parts = upgraded.downcast::<TokioIo<Judged<OriginStream>>>();
        let parts = parts.map_err(|_| OriginError::Closed("its socket is gone".to_owned()))?;
        let (stream, rest) = parts.io.into_inner().into_parts();
        Ok(Self {
            stream,
            first: [parts.read_buf, rest.freeze()].concat().into(),
            _lease: lease,
        })
    }
}

/// A body on a connection. Dropped before its end, it closes the connection.
#[derive(Debug)]
pub struct NetworkBody {
    incoming: Incoming,
    lease: Option<Lease>,
    trailers: Option<HeaderMap>,
    limits: Limits,
    cells: Arc<Cells>,
}

/// How long a body may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Longest silence.
    pub(super) no_activity: Duration,
    /// When the whole exchange must be over, and how long it was given.
    pub(super) deadline: Option<(Instant, Duration)>,
}

impl Limits {
    /// Waits for `what`, but no longer than allowed.
    pub(super) async fn wait<F: Future>(&self, what: F) -> Result<F::Output, OriginError> {
        let silence = tokio::time::timeout(self.no_activity, what);
        let stalled = |_| OriginError::Stalled(self.no_activity);
        let Some((at, given)) = self.deadline else {
            return silence.await.map_err(stalled);
        };
        let answer = tokio::time::timeout_at(at, silence).await;
        answer
            .map_err(|_| OriginError::Overdue(given))?
            .map_err(stalled)
    }
}

impl NetworkBody {
    pub(super) fn new(incoming: Incoming, lease: Lease, limits: Limits, cells: Arc<Cells>) -> Self {
        Self {
            incoming,
            lease: Some(lease),
            trailers: None,
            limits,
            cells,
        }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, OriginError> {
        loop {
            let Some(frame) = self.limits.wait(self.incoming.frame()).await? else {
                return Ok(self.ended());
            };
            let frame = frame.map_err(|error| OriginError::from_hyper(&error))?;
            match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => return Ok(Some(self.counted(data))),
                Err(other) => self.trailers = other.into_trailers().ok(),
            }
        }
    }

    fn counted(&self, data: Bytes) -> Bytes {
        let bytes = u64::try_from(data.len()).unwrap_or(u64::MAX);
        self.cells.add(Metric::OriginResponseBodyBytes, bytes);
        data
    }

    /// The end: the connection may carry another request.
    fn ended(&mut self) -> Option<Bytes> {
        if let Some(lease) = self.lease.take() {
            lease.give_back();
        }
        None
    }
}
