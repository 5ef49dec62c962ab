//! Where a served body comes from: the cache, or a fill under way.

use super::fill::{FillReader, Next};
use super::outcome::Outcome;
use crate::cache::{BodyError, BodyReader, Cache, CacheKey};
use bytes::Bytes;
use http::StatusCode;
use std::ops::Range;
use std::sync::Arc;

use super::cached::FillHead;

/// Why a body broke off.
#[derive(Debug)]
pub(super) struct SourceError {
    pub(super) outcome: Outcome,
    pub(super) status: StatusCode,
    pub(super) detail: Box<str>,
}

impl SourceError {
    fn lost(detail: &str) -> Self {
        Self {
            outcome: Outcome::MissReadError,
            status: StatusCode::BAD_GATEWAY,
            detail: detail.into(),
        }
    }
}

impl From<BodyError> for SourceError {
    fn from(error: BodyError) -> Self {
        Self::lost(&error.to_string())
    }
}

/// A body, part by part.
pub(super) enum Source {
    /// From the cache.
    Stored(BodyReader),
    /// From a fill.
    Filling(Box<Following>),
}

/// A follower's place in a fill, and where the rest is to be had when it falls
/// out of the window.
pub(super) struct Following {
    pub(super) reader: FillReader<FillHead>,
    pub(super) cache: Arc<Cache>,
    /// The key that the fill stores by.
    pub(super) key: CacheKey,
    /// The stored head, by which the right copy is known again.
    pub(super) meta: Bytes,
    /// What of the body is wanted and still to come.
    pub(super) wanted: Range<u64>,
    /// Bytes of the body seen so far.
    pub(super) at: u64,
}

impl Source {
    /// The whole body, if all of it is in memory and wanted.
    pub(super) fn whole(&self) -> Option<&[Bytes]> {
        match self {
            Self::Stored(reader) => reader.whole(),
            Self::Filling(_) => None,
        }
    }

    /// Gives only the bytes of `range` from now on.
    pub(super) fn seek(&mut self, range: Range<u64>) {
        match self {
            Self::Stored(reader) => reader.seek(range),
            Self::Filling(following) => following.wanted = range,
        }
    }

    /// The next piece, never empty; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, SourceError> {
        loop {
            let following = match self {
                Self::Stored(reader) => return Ok(reader.next().await?),
                Self::Filling(following) => following,
            };
            if following.wanted.is_empty() {
                return Ok(None);
            }
            match following.reader.next().await {
                Next::Data(data) => {
                    if let Some(piece) = following.cut(&data) {
                        return Ok(Some(piece));
                    }
                }
                Next::End => return Ok(None),
                Next::Behind(_) => *self = Self::Stored(following.catch_up().await?),
                Next::Failed(failure) => {
                    return Err(SourceError {
                        outcome: failure.outcome,
                        status: failure.status,
                        detail: (*failure.detail).into(),
                    });
                }
            }
        }
    }
}

impl Following {
    /// What of a piece is wanted.
    fn cut(&mut self, data: &Bytes) -> Option<Bytes> {
        let start = self.at;
        self.at += u64::try_from(data.len()).unwrap_or(u64::MAX);
        let from = self.wanted.start.max(start);
        let to = self.wanted.end.min(self.at);
        if from >= to {
            return None;
        }
        self.wanted.start = to;
        let bound = |at: u64| usize::try_from(at - start).unwrap_or(data.len());
        Some(data.slice(bound(from)..bound(to)))
    }

    /// The fill is done and the rest no longer in its memory: on from the
    /// cache, if that very object was stored.
    async fn catch_up(&self) -> Result<BodyReader, SourceError> {
        let hit = self.cache.read(&self.key).await;
        let hit = hit.map_err(|miss| SourceError::lost(&miss.to_string()))?;
        if hit.meta != self.meta {
            return Err(SourceError::lost("another version took its place"));
        }
        let mut reader = hit.body;
        reader.seek(self.wanted.clone());
        Ok(reader)
    }
}
