//! PUSH: a client puts a response into the cache, as its origin would have.

use super::job::Job;
use super::lead::Place;
use super::lookup::{self, Reading};
use super::pump::Leading;
use super::storing::{Lag, Storing};
use crate::cache::{Cache, NotStored, ObjectWriter};
use crate::http::framing::FramingError;
use crate::http::framing::{BodyFraming, response_framing};
use crate::http::head::{HeadError, HeadLimits, HeadScanner, read_response_head};
use crate::http::storable::{Exchange, NotStorable, Times, storable};
use crate::http::stored::{Received, StoredHead};
use crate::proxy::answer::Answer;
use crate::proxy::cache_status::Forwarded;
use crate::proxy::client::{BodyError, ClientRead};
use crate::proxy::context::WorkerContext;
use crate::proxy::origin::OriginError;
use crate::proxy::outcome::Outcome;
use crate::proxy::routed::{Mode, Routed};
use crate::proxy::via::Told;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use std::sync::Arc;

/// Why a PUSH stored nothing.
#[derive(Debug, thiserror::Error)]
pub(in crate::proxy) enum PushError {
    /// The client may not reach the address whose URL it gives.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// The PUSH itself broke off.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The enclosed head breaks the grammar, or a limit.
    #[error("enclosed response: {0}")]
    Head(#[from] HeadError),
    /// A token of it that the HTTP library does not take, in its words.
    #[error("enclosed response: {0}")]
    Token(String),
    /// The end of its body is in doubt.
    #[error("enclosed response: {0}")]
    Framing(#[from] FramingError),
    /// It ends inside its head.
    #[error("enclosed response: no end of its head in {0} bytes")]
    NoHead(usize),
    /// Its body is framed by chunks; the PUSH's own body may be.
    #[error("enclosed response: chunked; frame the PUSH so instead")]
    Chunked,
    /// No response that a cache may keep (RFC 9111 3).
    #[error("{0}")]
    NotStorable(#[from] NotStorable),
    /// The cache takes nothing now, or not this.
    #[error("{0}")]
    NotStored(#[from] NotStored),
    /// There is no cache.
    #[error("caching is off")]
    Off,
}

impl PushError {
    /// What the client is answered.
    pub(in crate::proxy) const fn answer(&self) -> Answer {
        match self {
            Self::Origin(error) => error.answer(),
            Self::Body(BodyError::Stalled(_)) => Answer::RequestTimeout,
            Self::Body(_) => Answer::BodyBroken,
            Self::Head(_) | Self::Token(_) | Self::Framing(_) | Self::NoHead(_) => {
                Answer::BadRequest
            }
            Self::NotStored(NotStored::WrongLength) => Answer::BadRequest,
            Self::Chunked => Answer::NotImplemented,
            Self::NotStorable(_) | Self::Off => Answer::NotStored,
            Self::NotStored(NotStored::TooLarge | NotStored::MetaTooLong) => Answer::NotStored,
            Self::NotStored(_) => Answer::Unavailable,
        }
    }

    /// Cache-Status with the reason (RFC 9211 2.8): a string without what would
    /// need an escape there.
    pub(in crate::proxy) fn cache_status(&self) -> String {
        let plain = |c: char| (c.is_ascii_graphic() || c == ' ') && !matches!(c, '"' | '\\');
        let reason: String = self.to_string().chars().filter(|c| plain(*c)).collect();
        format!("strata; detail=\"{reason}\"")
    }
}

/// Stores the response that is the body of a PUSH: a whole HTTP/1 message, its
/// own length given by Content-Length or by the end of the PUSH. It is judged
/// as an origin's response to a GET without credentials, received now; where
/// it varies, the PUSH's own fields select it. Whether it took another's place.
pub(in crate::proxy) async fn push<R: ClientRead>(
    ctx: &WorkerContext,
    routed: &Routed,
    body: &mut R,
) -> Result<bool, PushError> {
    let cache = ctx.shared.cache.as_ref().ok_or(PushError::Off)?;
    if routed.mode == Mode::Forward {
        ctx.origins.judge(&routed.upstream).await?;
    }
    let mut job = job(ctx, routed, cache);
    // Before the response comes.
    let moment = job.moment();
    let (enclosed, rest) = enclosed(&job, body).await?;
    let found = lookup::look_up(cache, routed, Reading::First).await;
    job.marker = found.marker;
    let place = Place::of(&job, &enclosed.headers).ok_or(NotStorable::VaryStar)?;
    let object = Storing::new(Some(enclosed.begin(&job, &place, moment.epoch)?));
    object.push(&rest)?;
    while let Some(part) = body.next().await? {
        object.push(&part)?;
        object.keep_up(Lag::UnderWay).await?;
    }
    object.keep_up(Lag::End).await?;
    let stored = moment.turn.store(&place.key, || object.commit()).flatten();
    stored.unwrap_or(Err(NotStored::Aborted))?;
    if let Some(marker) = place.marker {
        Leading::of(&job, marker).store(&job.tools, &moment);
    }
    Ok(found.held.is_ok())
}

fn job(ctx: &WorkerContext, routed: &Routed, cache: &Arc<Cache>) -> Job {
    let told = Told::asking(Outcome::AnsweredPushed, Forwarded::Method);
    Job::of(ctx, routed, cache, (super::asked(routed), told))
}

/// The head of the enclosed response, and what has come of its body.
async fn enclosed<R: ClientRead>(job: &Job, body: &mut R) -> Result<(Enclosed, Bytes), PushError> {
    let bytes = job.snapshot.records.http_response_header_max_size;
    let limits = HeadLimits {
        bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        ..HeadLimits::default()
    };
    let mut scanner = HeadScanner::new(limits);
    let mut buffer = BytesMut::new();
    loop {
        if let Some(span) = scanner.find_end(&buffer)? {
            let head = buffer.split_to(span.end).freeze();
            let head = head.slice(span.start..);
            return Ok((Enclosed::parse(&head, &limits)?, buffer.freeze()));
        }
        let part = body.next().await?;
        buffer.extend_from_slice(&part.ok_or(PushError::NoHead(buffer.len()))?);
    }
}

/// The head of a response inside a request.
struct Enclosed {
    status: StatusCode,
    version: Version,
    headers: HeaderMap,
    /// Bytes of its body, when it says.
    length: Option<u64>,
}

impl Enclosed {
    fn parse(head: &Bytes, limits: &HeadLimits) -> Result<Self, PushError> {
        let mut headers = HeaderMap::new();
        let line = read_response_head(head, limits, |name, value| {
            let name = HeaderName::from_bytes(name).map_err(token)?;
            let value = HeaderValue::from_maybe_shared(head.slice_ref(value)).map_err(token)?;
            headers.try_append(name, value).map_err(token)?;
            Ok::<_, PushError>(())
        })?;
        let status = StatusCode::from_u16(line.status).map_err(token)?;
        let version = match line.minor {
            0 => Version::HTTP_10,
            _ => Version::HTTP_11,
        };
        let length = match response_framing(&Method::GET, status, version, &headers)? {
            BodyFraming::None => Some(0),
            BodyFraming::Length(bytes) => Some(bytes),
            BodyFraming::UntilClose => None,
            BodyFraming::Chunked => return Err(PushError::Chunked),
        };
        Ok(Self {
            status,
            version,
            headers,
            length,
        })
    }

    /// Judges it, and begins its store.
    fn begin(&self, job: &Job, place: &Place, epoch: u64) -> Result<ObjectWriter, PushError> {
        let now = job.tools.clock.wall();
        let times = Times {
            request: now,
            response: now,
        };
        let exchange = Exchange {
            method: &Method::GET,
            url: &job.url,
            request: &HeaderMap::new(),
            status: self.status,
            response: &self.headers,
            times,
        };
        let storable = storable(&exchange, &job.policy)?;
        let received = Received {
            status: self.status,
            version: self.version,
            headers: &self.headers,
            times,
        };
        let head = StoredHead::build(&received, &storable);
        Ok(place.object(job, &head, self.length, epoch)?)
    }
}

fn token(cause: impl ToString) -> PushError {
    PushError::Token(cause.to_string())
}
