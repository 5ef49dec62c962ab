//! The writer's part of a fill: ask the origin, judge its answer, share it.

use super::job::{Conditions, FillHead, Job, Moment, Stale};
use super::parts::{Part, share_part};
use super::pump::{self, Pump};
use super::storing::Storing;
use crate::cache::{CacheKey, NewObject, NotStored, ObjectKind, ObjectWriter};
use crate::http::conditional;
use crate::http::forwarding;
use crate::http::framing::BodyFraming;
use crate::http::reuse::{self, OriginFailure};
use crate::http::storable::{self, Exchange, NotStorable, Storable, Times};
use crate::http::stored::{Received, StoredHead};
use crate::http::vary::{Vary, vary};
use crate::metrics::Metric;
use crate::proxy::answer::Answer;
use crate::proxy::decide;
use crate::proxy::fill::{Failure, FillWriter};
use crate::proxy::marker::{self, Marker};
use crate::proxy::origin::{Interim, OriginError, OriginResponse};
use crate::proxy::outcome::Outcome;
use http::header::{AGE, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, DATE, SERVER, SET_COOKIE, VIA};
use http::{HeaderMap, HeaderName, Method, StatusCode};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// What came of asking the origin.
pub(super) enum Fetched {
    /// A response that is shared, and stored unless the cache refused.
    Filling(Box<Filling>),
    /// What is held was validated: the merged head, and what of the 304 is for
    /// this client only.
    Refreshed(StoredHead, HeaderMap),
    /// A response for this client only.
    Relay(Box<OriginResponse>, NotStorable),
    /// The answer to a HEAD that speaks of another response than the held one.
    Changed(Box<OriginResponse>),
    /// An error response, and what is held may stand in for it.
    ErrorResponse(StatusCode),
    /// A part that is stored: the head of the whole, and what to serve it from.
    Part(Box<Part>),
    /// A part that can't be stored: the client's own range is to be asked for.
    NotPart,
    /// No response.
    Error(OriginError),
}

/// A response on its way to this client, to followers and to the cache.
pub(super) struct Filling {
    pub(super) head: Arc<FillHead>,
    pub(super) is_stored: bool,
    /// Fields for this client only: they are not stored.
    pub(super) own: HeaderMap,
}

/// Asks the origin as the writer of a fill, in a task of its own: while anybody
/// follows the fill, it goes on though the client that began it has left. No
/// answer comes when nobody did. Interim responses go to that client only.
pub(super) fn begin(
    job: Rc<Job>,
    writer: FillWriter<FillHead>,
    (stale, conditions): (Option<Rc<Stale>>, Conditions),
    interim: mpsc::Sender<Interim>,
) -> oneshot::Receiver<Fetched> {
    let (to, from) = oneshot::channel();
    let watch = writer.watch();
    tokio::task::spawn_local(async move {
        tokio::select! {
            biased;
            fetched = lead(&job, writer, (stale.as_deref(), conditions), Some(interim)) => {
                // Who asked may have left by now.
                drop(to.send(fetched));
            }
            () = watch.deserted() => {}
        }
    });
    from
}

/// Asks the origin as the writer of a fill.
pub(super) async fn lead(
    job: &Job,
    writer: FillWriter<FillHead>,
    (stale, conditions): (Option<&Stale>, Conditions),
    interim: Option<mpsc::Sender<Interim>>,
) -> Fetched {
    let moment = job.moment();
    let (mut request, validates) = job.request(stale, conditions);
    request.interim = interim;
    let response = match job.tools.origins.send(request).await {
        Ok(response) => response,
        Err(error) => return failed(writer, error),
    };
    match stale {
        Some(stale) if validates && response.status == StatusCode::NOT_MODIFIED => {
            validated(job, writer, stale, (response, moment)).await
        }
        Some(stale) if stands_in(job, stale, response.status) => {
            writer.fail(error_response(response.status));
            Fetched::ErrorResponse(response.status)
        }
        Some(stale) if job.method == Method::HEAD => {
            head_told(job, writer, stale, (response, &moment))
        }
        Some(_) | None => share(job, writer, response, moment).await,
    }
}

/// The answer to a HEAD: the stored head is brought up to date, or what is
/// stored is taken out (RFC 9111 4.3.5). Requests that want a body and waited
/// for it look again.
fn head_told(
    job: &Job,
    writer: FillWriter<FillHead>,
    stale: &Stale,
    (response, moment): (OriginResponse, &Moment),
) -> Fetched {
    let told = (response.status, &response.headers);
    if conditional::head_confirms(told, &stale.head, stale.length) {
        return merge(job, writer, stale, (&response, moment));
    }
    let is_gone = matches!(response.status, StatusCode::NOT_FOUND | StatusCode::GONE);
    if is_gone || response.status.is_success() {
        job.tools.cache.remove(&stale.at.key);
    }
    Fetched::Changed(Box::new(response))
}

fn failed(writer: FillWriter<FillHead>, error: OriginError) -> Fetched {
    writer.fail(pump::failure(&error));
    Fetched::Error(error)
}

/// What a stored response may stand in for.
pub(in crate::proxy) fn error_response(status: StatusCode) -> Failure {
    Failure {
        outcome: Outcome::OriginMalformed,
        answer: Answer::OriginMalformed,
        status: Some(status),
        detail: format!("the origin answered {status}").into(),
    }
}

/// Whether what is held is served instead of an error response (RFC 5861 4).
fn stands_in(job: &Job, stale: &Stale, status: StatusCode) -> bool {
    let policy = &job.policy;
    let now = job.tools.clock.wall();
    reuse::is_failure(status.as_u16(), policy)
        && stale.may_stand_in((&job.asked.directives, OriginFailure::Status), policy, now)
}

/// A 304: the stored head is brought up to date (RFC 9111 4.3.4).
async fn validated(
    job: &Job,
    writer: FillWriter<FillHead>,
    stale: &Stale,
    (response, moment): (OriginResponse, Moment),
) -> Fetched {
    if !conditional::confirms(&response.headers, &stale.head.validators()) {
        return anew(job, writer, stale, moment).await;
    }
    merge(job, writer, stale, (&response, &moment))
}

/// Brings the stored head up to date by a response that speaks of it.
fn merge(
    job: &Job,
    writer: FillWriter<FillHead>,
    stale: &Stale,
    (response, moment): (&OriginResponse, &Moment),
) -> Fetched {
    let own = own_fields(&response.headers, &[SET_COOKIE]);
    let policy = &job.policy;
    let merged = stale
        .head
        .merged_with_304(&response.headers, times(response), policy)
        .and_then(|head| {
            storable::confirmed_storable(&job.client, &head.header_map(), policy)?;
            Ok(head)
        });
    match merged {
        Ok(head) if !is_found(job, &head) => {
            // Dropping the writer sends the followers back to the cache.
            job.tools.cache.remove(&stale.at.key);
            Fetched::Refreshed(head, own)
        }
        Ok(head) => {
            let refresh = || refresh(job, stale, &head);
            moment.turn.store(&stale.at.key, refresh);
            writer.refreshed();
            Fetched::Refreshed(head, own)
        }
        Err(reason) => {
            if !is_left(job, stale, reason) {
                job.tools.cache.remove(&stale.at.key);
            }
            release(job, writer, reason);
            let told = (&response.headers, times(response));
            let served = stale.head.served_with_304(told.0, told.1, policy);
            Fetched::Refreshed(served, own)
        }
    }
}

/// Whether what is held stays as it was: it came by a request without
/// Authorization, and the answer to one with it takes no leave away that was
/// never needed.
fn is_left(job: &Job, stale: &Stale, reason: NotStorable) -> bool {
    reason == NotStorable::Authorization && !job.may_share(&stale.head)
}

/// Whether the requests that find the copy where it lies are those that its
/// Vary, as a 304 may have changed it, lets it answer (RFC 9111 4.1).
fn is_found(job: &Job, head: &StoredHead) -> bool {
    match vary(&head.header_map()) {
        Vary::Nothing => true,
        Vary::Star => false,
        Vary::Fields(fields) => job
            .marker
            .as_ref()
            .is_some_and(|marker| marker.tells(&fields)),
    }
}

/// A copy that was replaced meanwhile needs no refresh.
fn refresh(job: &Job, stale: &Stale, head: &StoredHead) {
    let meta = head.as_bytes().clone();
    let done = job.tools.cache.refresh(&stale.at.copy, &stale.at.key, meta);
    if done.is_ok() {
        job.tools.cells.add(Metric::CacheUpdates, 1);
    }
}

/// The 304 speaks of another representation: the whole one, without conditions.
async fn anew(job: &Job, writer: FillWriter<FillHead>, stale: &Stale, moment: Moment) -> Fetched {
    let (request, _) = job.request(None, Conditions::Strip);
    match job.tools.origins.send(request).await {
        Ok(response) if job.method == Method::HEAD => {
            head_told(job, writer, stale, (response, &moment))
        }
        Ok(response) => share(job, writer, response, moment).await,
        Err(error) => failed(writer, error),
    }
}

/// Shares and stores a response if it may be, a part that was asked for as that.
async fn share(
    job: &Job,
    writer: FillWriter<FillHead>,
    response: OriginResponse,
    moment: Moment,
) -> Fetched {
    match &job.part {
        Some(asked) if response.status == StatusCode::PARTIAL_CONTENT => {
            share_part(job, writer, asked, (response, moment)).await
        }
        Some(_) | None => share_whole(job, writer, response, moment),
    }
}

pub(super) fn judge(job: &Job, response: &OriginResponse) -> Result<Storable, NotStorable> {
    let exchange = Exchange {
        method: &Method::GET,
        url: &job.url,
        request: &job.client,
        status: response.status,
        response: &response.headers,
        times: times(response),
    };
    let judged = storable::storable(&exchange, &job.policy)?;
    // RFC 9110 9.3.3: a POST's response needs an explicit lifetime.
    if job.content.is_some() && !judged.lifetime.source.is_explicit() {
        return Err(NotStorable::Method);
    }
    Ok(judged)
}

pub(super) fn share_whole(
    job: &Job,
    writer: FillWriter<FillHead>,
    response: OriginResponse,
    moment: Moment,
) -> Fetched {
    match judge(job, &response) {
        Ok(storable) => fill(job, writer, response, (&storable, moment)),
        Err(reason) => relay(job, writer, response, reason),
    }
}

fn relay(
    job: &Job,
    writer: FillWriter<FillHead>,
    response: OriginResponse,
    reason: NotStorable,
) -> Fetched {
    release(job, writer, reason);
    Fetched::Relay(Box::new(response), reason)
}

/// Lets the followers go; the key is remembered when the reason lies in the
/// response.
fn release(job: &Job, writer: FillWriter<FillHead>, reason: NotStorable) {
    // A range beyond the end says nothing of the others.
    let beyond = NotStorable::Status(StatusCode::RANGE_NOT_SATISFIABLE.as_u16());
    let is_beyond = job.part.is_some() && reason == beyond;
    // Nor does what credentials meet, of those who have none.
    let is_own = job.client.contains_key(AUTHORIZATION);
    if decide::will_recur(reason) && !is_beyond && !is_own {
        writer.uncacheable(job.tools.clock.mono());
    } else {
        writer.unshareable();
    }
}

fn fill(
    job: &Job,
    writer: FillWriter<FillHead>,
    response: OriginResponse,
    (storable, moment): (&Storable, Moment),
) -> Fetched {
    let Some(place) = Place::of(job, &response.headers) else {
        return relay(job, writer, response, NotStorable::VaryStar);
    };
    let head = StoredHead::build(&received(&response), storable);
    let length = length(response.framing);
    let object = place.object(job, &head, length, moment.epoch).ok();
    let is_stored = object.is_some();
    let fill = writer.head(FillHead {
        head,
        length,
        key: place.key,
        storing: Storing::new(object),
        selected: place.selected,
        fields: place.fields,
        marker: place.marker.clone(),
    });
    let filling = Filling {
        head: Arc::clone(fill.told()),
        is_stored,
        own: own_fields(&response.headers, &storable.dropped),
    };
    let pump = Pump::new(job, fill, place.marker, moment);
    tokio::task::spawn_local(pump.run(response.body));
    Fetched::Filling(Box::new(filling))
}

/// What of a response's fields is not stored, and so is for the client alone that
/// caused it: `dropped`, less what concerns the connection or the framing.
pub(super) fn own_fields(response: &HeaderMap, dropped: &[HeaderName]) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for name in dropped {
        for value in response.get_all(name) {
            kept.append(name, value.clone());
        }
    }
    for name in [CONNECTION, CONTENT_LENGTH, AGE, VIA, DATE, SERVER] {
        kept.remove(name);
    }
    let nominations = response.get_all(CONNECTION).iter().cloned();
    nominations.for_each(|value| {
        kept.append(CONNECTION, value);
    });
    forwarding::remove_hop_by_hop(&mut kept);
    kept
}

/// Where a response is stored.
pub(super) struct Place {
    pub(super) key: CacheKey,
    fields: Vec<http::HeaderName>,
    selected: Vec<u8>,
    /// The marker that leads there, where responses vary.
    pub(super) marker: Option<Marker>,
}

impl Place {
    /// `None` when it varies by more than can be told apart.
    pub(super) fn of(job: &Job, response: &HeaderMap) -> Option<Self> {
        let rule = job.policy.normalize_accept_encoding;
        let fields = match vary(response) {
            Vary::Nothing => {
                return Some(Self {
                    key: job.key.clone(),
                    fields: Vec::new(),
                    selected: Vec::new(),
                    marker: None,
                });
            }
            Vary::Star => return None,
            Vary::Fields(fields) => fields,
        };
        let marker = Marker::with(job.marker.as_ref(), &fields)?;
        Some(Self {
            key: marker.alternate(&job.key, &job.client, rule),
            selected: marker::selected(&fields, &job.client, rule),
            fields,
            marker: Some(marker),
        })
    }

    pub(super) fn object(
        &self,
        job: &Job,
        head: &StoredHead,
        body_len: Option<u64>,
        epoch: u64,
    ) -> Result<ObjectWriter, NotStored> {
        let object = NewObject {
            key: self.key.clone(),
            kind: ObjectKind::Object,
            meta: head.as_bytes().clone(),
            body_len,
            epoch,
        };
        job.tools.cells.add(Metric::CacheWrites, 1);
        let writer = job.tools.cache.writer(object);
        let writer = writer.map(|writer| job.pinned(writer));
        writer.inspect_err(|_| job.tools.cells.add(Metric::CacheWriteErrors, 1))
    }
}

pub(super) const fn received(response: &OriginResponse) -> Received<'_> {
    Received {
        status: response.status,
        version: response.version,
        headers: &response.headers,
        times: times(response),
    }
}

const fn times(response: &OriginResponse) -> Times {
    Times {
        request: response.request_time,
        response: response.response_time,
    }
}

const fn length(framing: BodyFraming) -> Option<u64> {
    match framing {
        BodyFraming::None => Some(0),
        BodyFraming::Length(bytes) => Some(bytes),
        BodyFraming::Chunked | BodyFraming::UntilClose => None,
    }
}
