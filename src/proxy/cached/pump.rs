//! Carrying a body from the origin to the followers and into the cache.

use super::job::{FillHead, Job, Moment, Tools};
use super::storing::{Lag, Storing};
use crate::cache::{CacheKey, NewObject, NotStored, ObjectKind, ObjectWriter};
use crate::http::policy::{CachePolicy, NormalizeAcceptEncoding};
use crate::metrics::Metric;
use crate::proxy::fill::{Failure, FillBody};
use crate::proxy::marker::Marker;
use crate::proxy::origin::{OriginBody, OriginError, Upstream};
use crate::proxy::outcome::Outcome;
use crate::proxy::resume::{self, Resume, Tail, Wanted};
use crate::proxy::settings::seconds;
use bytes::Bytes;
use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// When a fill goes on though no client is left.
#[derive(Clone, Copy, Debug)]
struct Background {
    /// Only if this part of the body has come
    /// (`http.background_fill_completed_threshold`).
    threshold: f64,
    /// For this long, zero for any time
    /// (`http.background_fill_active_timeout`).
    timeout: Duration,
}

/// How long a fill may be held back by clients that take nothing of it.
const HELD_MAX: Duration = Duration::from_secs(1);
/// Times that a body which broke off is gone on with.
const RESUMES_MAX: u32 = 3;

/// A body under way. It outlives the client that caused it.
pub(super) struct Pump {
    tools: Tools,
    fill: FillBody<FillHead>,
    storing: Storing,
    length: Option<u64>,
    /// The marker to be stored once the object is, where responses vary.
    marker: Option<Leading>,
    moment: Moment,
    /// Where the rest is asked for when the body breaks off.
    upstream: Upstream,
    fields: HeaderMap,
    policy: Arc<CachePolicy>,
    resumes: u32,
    background: Background,
    /// Since when no client is left.
    alone_since: Option<Instant>,
}

/// A marker on its way to the URL's key.
pub(super) struct Leading {
    key: CacheKey,
    marker: Marker,
    /// The fields that select the alternate.
    client: HeaderMap,
    /// How they are normalised, and how many alternates may be kept.
    policy: (NormalizeAcceptEncoding, usize),
    /// Unix time in seconds up to which it is kept, if it is to be pinned.
    pinned_until: Option<u64>,
}

impl Leading {
    pub(super) fn of(job: &Job, marker: Marker) -> Self {
        let max = job.snapshot.records.cache_limits_http_max_alts;
        let rule = job.policy.normalize_accept_encoding;
        Self {
            key: job.key.clone(),
            marker,
            client: job.client.clone(),
            policy: (rule, usize::try_from(max).unwrap_or(0)),
            pinned_until: job.pinned_until(),
        }
    }

    /// Stores the marker, with what another fill has noted there meanwhile;
    /// alternates that are too many by now leave. Not in place of another that is
    /// a later request's.
    pub(super) fn store(self, tools: &Tools, moment: &Moment) {
        let (rule, max) = self.policy;
        let held = tools.cache.read_ram(&self.key);
        let held = held.and_then(|hit| Marker::parse(&hit.meta));
        let held = held.filter(|held| held.is_same(&self.marker));
        let before = held.as_ref().map(Marker::to_bytes);
        let is_other = before.is_none();
        let mut marker = held.unwrap_or(self.marker);
        let is_used = |key: &CacheKey| tools.cache.was_used(key);
        for old in marker.note(&self.key, (&self.client, rule), max, is_used) {
            tools.cache.remove(&old);
        }
        if before == Some(marker.to_bytes()) {
            return;
        }
        let object = NewObject {
            key: self.key,
            kind: ObjectKind::Marker,
            meta: marker.to_bytes(),
            body_len: Some(0),
            epoch: moment.epoch,
        };
        let url = object.key.clone();
        let store = || put(tools, object, self.pinned_until);
        if is_other {
            moment.turn.store(&url, store);
        } else {
            store();
        }
    }
}

fn put(tools: &Tools, marker: NewObject, pinned_until: Option<u64>) {
    let writer = tools.cache.writer(marker);
    let writer = writer.map(|writer| match pinned_until {
        Some(until) => writer.pinned_until(until),
        None => writer,
    });
    let stored = writer.map(ObjectWriter::commit);
    if !matches!(stored, Ok(Ok(()))) {
        tools.cells.add(Metric::CacheWriteErrors, 1);
    }
}

/// Where the body comes from.
enum Coming {
    Body(OriginBody),
    Tail(Tail),
}

impl Coming {
    async fn next(&mut self) -> Result<Option<Bytes>, OriginError> {
        match self {
            Self::Body(body) => body.next().await,
            Self::Tail(tail) => tail.next().await,
        }
    }
}

impl Pump {
    pub(super) fn new(
        job: &Job,
        fill: FillBody<FillHead>,
        marker: Option<Marker>,
        moment: Moment,
    ) -> Self {
        let records = &job.snapshot.records;
        Self {
            tools: job.tools.clone(),
            storing: fill.told().storing.clone(),
            length: fill.told().length,
            fill,
            marker: marker.map(|marker| Leading::of(job, marker)),
            moment,
            upstream: job.upstream.clone(),
            fields: job.fields.clone(),
            policy: Arc::clone(&job.policy),
            // Only a GET can be asked for a part.
            resumes: job.content.as_ref().map_or(0, |_| RESUMES_MAX),
            background: Background {
                threshold: records.http_background_fill_completed_threshold,
                timeout: seconds(records.http_background_fill_active_timeout),
            },
            alone_since: None,
        }
    }

    /// Runs to the body's end, however it ends.
    pub(super) async fn run(mut self, body: OriginBody) {
        let mut coming = Coming::Body(body);
        loop {
            let Some(next) = self.next(&mut coming).await else {
                return self.give_up();
            };
            match next {
                Ok(Some(data)) => {
                    self.count(self.storing.push(&data));
                    self.hand_on(data).await;
                    self.count(self.storing.keep_up(Lag::UnderWay).await);
                }
                Ok(None) => return self.finish().await,
                Err(error) => match self.resume(&error).await {
                    Some(tail) => coming = Coming::Tail(tail),
                    None => {
                        self.count_alone(Metric::BackgroundFillBytesAborted);
                        return self.fill.fail(failure(&error));
                    }
                },
            }
        }
    }

    /// Gives a part of the body to the followers, at the pace of the fastest.
    /// One that takes nothing does not hold it where he finds again what he
    /// missed: in the store, or if that fails, at the origin.
    async fn hand_on(&self, data: Bytes) {
        let head = &self.fill.told().head;
        if !self.storing.is_open() || resume::validator(head).is_none() {
            return self.fill.push(data).await;
        }
        let handed = timeout(HELD_MAX, self.fill.push(data.clone())).await;
        if handed.is_err() {
            self.fill.outrun(&data);
        }
    }

    /// What comes next; `None` when it is not worth waiting for any more.
    async fn next(&mut self, coming: &mut Coming) -> Option<Result<Option<Bytes>, OriginError>> {
        let mut next = std::pin::pin!(coming.next());
        loop {
            if !self.may_go_on() {
                return None;
            }
            let is_alone = self.alone_since.is_some();
            tokio::select! {
                biased;
                next = &mut next => return Some(next),
                () = self.fill.deserted(), if !is_alone => {}
                () = self.overdue(), if is_alone => {}
            }
        }
    }

    /// When the time of a fill without clients is over.
    async fn overdue(&self) {
        match self.alone_since {
            Some(since) if !self.background.timeout.is_zero() => {
                tokio::time::sleep_until(since + self.background.timeout).await;
            }
            Some(_) | None => std::future::pending().await,
        }
    }

    /// The rest of a body that the origin broke off, from where it ended.
    async fn resume(&mut self, error: &OriginError) -> Option<Tail> {
        let total = self.fill.total();
        let is_lost = matches!(error, OriginError::Closed(_) | OriginError::Stalled(_));
        if !is_lost || total == 0 || self.resumes == RESUMES_MAX {
            return None;
        }
        self.resumes += 1;
        let resume = Resume {
            origins: &self.tools.origins,
            upstream: &self.upstream,
            fields: self.fields.clone(),
            policy: &self.policy,
        };
        let wanted = Wanted {
            head: &self.fill.told().head,
            length: self.length,
            bytes: total..u64::MAX,
        };
        let tail = resume.ask(&wanted).await.ok()?;
        if !tail.is_storable {
            self.storing.abandon();
        }
        self.tools.cells.add(Metric::FillResumed, 1);
        Some(tail)
    }

    /// What the cache refuses, the followers still get.
    fn count(&self, stored: Result<(), NotStored>) {
        if stored.is_err() {
            self.tools.cells.add(Metric::CacheWriteErrors, 1);
        }
    }

    /// Whether a client is left, or the records let the fill go on without.
    fn may_go_on(&mut self) -> bool {
        if self.fill.followers() > 0 {
            self.leave_background();
            return true;
        }
        if !self.storing.is_open() {
            return false;
        }
        let since = self.enter_background();
        let in_time =
            self.background.timeout.is_zero() || since.elapsed() < self.background.timeout;
        in_time && self.has_come_far()
    }

    fn has_come_far(&self) -> bool {
        let Some(length) = self.length else {
            return true;
        };
        let part = |bytes: u64| Duration::from_micros(bytes).as_secs_f64();
        part(self.fill.total()) >= part(length) * self.background.threshold
    }

    fn enter_background(&mut self) -> Instant {
        if let Some(since) = self.alone_since {
            return since;
        }
        let cells = &self.tools.cells;
        cells.add(Metric::BackgroundFillTotalCount, 1);
        cells.add(Metric::BackgroundFillCurrentCount, 1);
        *self.alone_since.insert(Instant::now())
    }

    fn leave_background(&mut self) {
        if self.alone_since.take().is_some() {
            self.tools.cells.sub(Metric::BackgroundFillCurrentCount, 1);
        }
    }

    fn count_alone(&mut self, metric: Metric) {
        if self.alone_since.is_some() {
            self.tools.cells.add(metric, self.fill.total());
        }
        self.leave_background();
    }

    /// Nobody is left to say it to.
    fn give_up(mut self) {
        self.count_alone(Metric::BackgroundFillBytesAborted);
    }

    /// The object first, then the marker that leads to it, then the news.
    async fn finish(mut self) {
        self.count_alone(Metric::BackgroundFillBytesCompleted);
        self.count(self.storing.keep_up(Lag::End).await);
        let (turn, told) = (&self.moment.turn, self.fill.told());
        let stored = turn.store(&told.key, || self.storing.commit()).flatten();
        if let (Some(Ok(())), Some(leading)) = (stored, self.marker.take()) {
            leading.store(&self.tools, &self.moment);
        }
        self.count(stored.unwrap_or(Ok(())));
        self.fill.done();
    }
}

/// What followers are told of an origin's failure.
pub(in crate::proxy) fn failure(error: &OriginError) -> Failure {
    Failure {
        outcome: error.outcome(),
        answer: error.answer(),
        status: None,
        detail: error.to_string().into(),
    }
}

/// A failure that carries an outcome of the origin's, as an error to answer by.
pub(super) fn is_origin_failure(failure: &Failure) -> bool {
    !matches!(
        failure.outcome,
        Outcome::DeniedForward | Outcome::ClientReadError | Outcome::AnsweredUnsupported
    )
}
