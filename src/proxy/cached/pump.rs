//! Carrying a body from the origin to the followers and into the cache.

use super::job::{FillHead, Job, Tools};
use crate::cache::{CacheKey, NewObject, ObjectKind, ObjectWriter};
use crate::metrics::Metric;
use crate::proxy::fill::{Failure, FillBody};
use crate::proxy::marker::Marker;
use crate::proxy::origin::{OriginBody, OriginError};
use crate::proxy::outcome::Outcome;
use crate::proxy::settings::seconds;
use bytes::Bytes;
use http::StatusCode;
use std::time::Duration;
use tokio::time::Instant;

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

/// A body under way. It outlives the client that caused it.
pub(super) struct Pump {
    tools: Tools,
    fill: FillBody<FillHead>,
    object: Option<ObjectWriter>,
    /// The URL's key, and the marker to be stored there once the object is.
    marker: Option<(CacheKey, Marker)>,
    epoch: u64,
    background: Background,
    /// Since when no client is left.
    alone_since: Option<Instant>,
}

impl Pump {
    pub(super) fn new(
        job: &Job,
        fill: FillBody<FillHead>,
        (object, marker): (Option<ObjectWriter>, Option<Marker>),
        epoch: u64,
    ) -> Self {
        let records = &job.snapshot.records;
        Self {
            tools: job.tools.clone(),
            fill,
            object,
            marker: marker.map(|marker| (job.key.clone(), marker)),
            epoch,
            background: Background {
                threshold: records.http_background_fill_completed_threshold,
                timeout: seconds(records.http_background_fill_active_timeout),
            },
            alone_since: None,
        }
    }

    /// Runs to the body's end, however it ends.
    pub(super) async fn run(mut self, mut body: OriginBody, length: Option<u64>) {
        loop {
            match body.next().await {
                Ok(Some(data)) => {
                    self.store(&data);
                    self.fill.push(data).await;
                    if !self.may_go_on(length) {
                        return self.give_up();
                    }
                }
                Ok(None) => return self.finish(),
                Err(error) => {
                    self.count_alone(Metric::BackgroundFillBytesAborted);
                    return self.fill.fail(failure(&error));
                }
            }
        }
    }

    /// What the cache refuses, the followers still get.
    fn store(&mut self, data: &Bytes) {
        let Some(object) = &mut self.object else {
            return;
        };
        if object.push(data).is_err() {
            self.object = None;
            self.tools.cells.add(Metric::CacheWriteErrors, 1);
        }
    }

    /// Whether a client is left, or the records let the fill go on without.
    fn may_go_on(&mut self, length: Option<u64>) -> bool {
        if self.fill.followers() > 0 {
            self.leave_background();
            return true;
        }
        if self.object.is_none() {
            return false;
        }
        let since = self.enter_background();
        let in_time =
            self.background.timeout.is_zero() || since.elapsed() < self.background.timeout;
        in_time && self.has_come_far(length)
    }

    fn has_come_far(&self, length: Option<u64>) -> bool {
        let Some(length) = length else { return true };
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
    fn finish(mut self) {
        self.count_alone(Metric::BackgroundFillBytesCompleted);
        let committed = self.object.take().map(ObjectWriter::commit);
        match committed {
            Some(Ok(())) => self.store_marker(),
            Some(Err(_)) => self.tools.cells.add(Metric::CacheWriteErrors, 1),
            None => {}
        }
        self.fill.done();
    }

    fn store_marker(&mut self) {
        let Some((key, marker)) = self.marker.take() else {
            return;
        };
        let object = NewObject {
            key,
            kind: ObjectKind::Marker,
            meta: marker.to_bytes(),
            body_len: Some(0),
            epoch: self.epoch,
        };
        let stored = self.tools.cache.writer(object).map(ObjectWriter::commit);
        if !matches!(stored, Ok(Ok(()))) {
            self.tools.cells.add(Metric::CacheWriteErrors, 1);
        }
    }
}

/// What followers are told of an origin's failure.
pub(super) fn failure(error: &OriginError) -> Failure {
    Failure {
        outcome: error.outcome(),
        status: error.status(),
        detail: error.to_string().into(),
    }
}

/// A failure that carries an outcome of the origin's, as an error to answer by.
pub(super) fn is_origin_failure(failure: &Failure) -> bool {
    !matches!(
        failure.outcome,
        Outcome::DeniedForward | Outcome::ClientReadError | Outcome::AnsweredUnsupported
    ) && failure.status != StatusCode::FORBIDDEN
}
