//! The rest of a body that broke off: a Range request to the origin under a
//! strong validator (RFC 9110 13.1.5, 14.2).

use super::cached::{error_response, failure};
use super::fill::Failure;
use super::origin::{OriginBody, OriginError, OriginPool, OriginRequest, OriginResponse, Upstream};
use crate::http::conditional;
use crate::http::policy::CachePolicy;
use crate::http::range::Part;
use crate::http::storable::part_storable;
use crate::http::stored::StoredHead;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_RANGE, ETAG, IF_RANGE, RANGE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::ops::Range;

/// Who is asked, and by which fields.
pub(super) struct Resume<'a> {
    pub(super) origins: &'a OriginPool,
    pub(super) upstream: &'a Upstream,
    /// The request's fields as they go to the origin.
    pub(super) fields: HeaderMap,
    pub(super) policy: &'a CachePolicy,
}

/// What is wanted of which representation.
pub(super) struct Wanted<'a> {
    pub(super) head: &'a StoredHead,
    /// The body's length in bytes, when it is known.
    pub(super) length: Option<u64>,
    /// The bytes, not none of them; an end past the body's is the body's.
    pub(super) bytes: Range<u64>,
}

impl Resume<'_> {
    /// Asks for the rest, of the very same representation.
    ///
    /// # Errors
    /// No strong validator, another answer than that part, or none.
    pub(super) async fn ask(mut self, wanted: &Wanted<'_>) -> Result<Tail, NotResumed> {
        self.set_range(wanted).ok_or(NotResumed::Changed)?;
        let is_authorized = self.fields.contains_key(AUTHORIZATION);
        let request = OriginRequest::new(self.upstream.clone(), Method::GET, self.fields);
        let response = self.origins.send(request).await;
        let response = response.map_err(|error| NotResumed::Failed(failure(&error)))?;
        if is_passing_trouble(response.status) {
            return Err(NotResumed::Failed(error_response(response.status)));
        }
        let judged = part_storable(is_authorized, &response.headers, self.policy);
        let tail = Tail::of(response, wanted).ok_or(NotResumed::Changed)?;
        Ok(Tail {
            is_storable: judged.is_ok(),
            ..tail
        })
    }

    fn set_range(&mut self, wanted: &Wanted<'_>) -> Option<()> {
        let tag = validator(wanted.head)?;
        let Range { start, end } = wanted.bytes;
        let range = match wanted.length.map_or(end, |length| end.min(length)) {
            u64::MAX => format!("bytes={start}-"),
            end if end > start => format!("bytes={start}-{}", end - 1),
            _ => return None,
        };
        conditional::remove_conditions(&mut self.fields);
        self.fields
            .insert(RANGE, HeaderValue::try_from(range).ok()?);
        self.fields
            .insert(IF_RANGE, HeaderValue::from_bytes(tag).ok()?);
        Some(())
    }
}

/// Why the rest can't be had.
pub(super) enum NotResumed {
    /// Not of this representation, now or later.
    Changed,
    /// The origin gave no answer, or an error that tells nothing of it.
    Failed(Failure),
}

/// Whether a status says that the origin is in trouble, and nothing of the
/// representation.
fn is_passing_trouble(status: StatusCode) -> bool {
    status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT
}

/// The strong validator of a whole representation.
pub(super) fn validator(head: &StoredHead) -> Option<&[u8]> {
    let tag = head.etag().filter(|_| head.status() == StatusCode::OK)?;
    conditional::strongly_equal(tag, tag).then_some(tag)
}

/// The rest of a body, no byte more or less than was asked for.
pub(super) struct Tail {
    body: OriginBody,
    left: u64,
    /// Whether its response says nothing against it.
    pub(super) is_storable: bool,
}

impl Tail {
    /// The body of a response with so many bytes of a representation, which was
    /// judged storable.
    pub(super) const fn new(body: OriginBody, left: u64) -> Self {
        Self {
            body,
            left,
            is_storable: true,
        }
    }

    fn of(response: OriginResponse, wanted: &Wanted<'_>) -> Option<Self> {
        let tag = response.headers.get(ETAG)?.as_bytes();
        let is_same = conditional::strongly_equal(tag, wanted.head.etag()?);
        if response.status != StatusCode::PARTIAL_CONTENT || !is_same {
            return None;
        }
        let part = Part::parse(response.headers.get(CONTENT_RANGE)?.as_bytes())?;
        let end = wanted.bytes.end.min(part.whole);
        let is_asked = part.first == wanted.bytes.start && part.last + 1 == end;
        let fits = wanted.length.is_none_or(|length| length == part.whole);
        (is_asked && fits).then(|| Self::new(response.body, part.len()))
    }

    /// Reads past the end of a body of which all has come, so that its connection
    /// can carry another request.
    pub(super) async fn end(&mut self) {
        if self.left == 0 {
            // Who has all that was asked for has no use for what went wrong.
            drop(self.next().await);
        }
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// The origin broke off again, or sent more than it said.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, OriginError> {
        let Some(data) = self.body.next().await? else {
            let is_whole = self.left == 0;
            let short = || OriginError::Closed("a part is shorter than its range".to_owned());
            return if is_whole { Ok(None) } else { Err(short()) };
        };
        let bytes = u64::try_from(data.len()).unwrap_or(u64::MAX);
        let left = self.left.checked_sub(bytes);
        let long = || OriginError::Malformed("a part is longer than its range".to_owned());
        self.left = left.ok_or_else(long)?;
        Ok(Some(data))
    }
}
