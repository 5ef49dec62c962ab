//! The body of an object that is held in part.

use super::STRETCH_MAX;
use super::fetch::{self, Means};
use crate::cache::Parts;
use crate::metrics::Metric;
use crate::proxy::answer::Answer;
use crate::proxy::fill::{PartClaim, PartFailure};
use crate::proxy::outcome::Outcome;
use crate::proxy::source::SourceError;
use bytes::Bytes;
use std::ops::Range;
use std::rc::Rc;

/// How often a fragment is asked for before the response is cut.
const TRIES: u32 = 4;

/// A body whose gaps are filled as they are come to.
pub(in crate::proxy) struct PartsBody {
    parts: Parts,
    means: Rc<Means>,
}

impl PartsBody {
    pub(in crate::proxy) const fn new(parts: Parts, means: Rc<Means>) -> Self {
        Self { parts, means }
    }

    /// Whether nothing is missing now.
    pub(in crate::proxy) fn is_whole(&self) -> bool {
        self.parts.is_whole()
    }

    /// The first bytes of `wanted`, at least one: as far as their fragment goes.
    ///
    /// # Errors
    /// The representation has changed, or the origin gives no answer.
    pub(in crate::proxy) async fn next(&self, wanted: &Range<u64>) -> Result<Bytes, SourceError> {
        let index = wanted.start / self.parts.fragment_bytes();
        let fragment = self.fragment(index, wanted.end).await?;
        let start = self.parts.bytes_of(&(index..index + 1)).start;
        let bound = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
        let end = bound(wanted.end).min(fragment.len());
        Ok(fragment.slice(bound(wanted.start).min(end)..end))
    }

    /// Fragment `index`; those up to the body's byte `end` are wanted next.
    async fn fragment(&self, index: u64, end: u64) -> Result<Bytes, SourceError> {
        let mut is_lost = false;
        for _ in 0..TRIES {
            if self.parts.has(index) && !is_lost {
                match self.parts.read(index).await {
                    Ok(bytes) => return Ok(bytes),
                    Err(_) => self.means.cells.add(Metric::CacheReadErrors, 1),
                }
                // Though the directory may still have it.
                is_lost = true;
            }
            let there = |other| self.parts.has(other) && !(is_lost && other == index);
            if let Some(bytes) = self.fetched(index, end, there).await? {
                return Ok(bytes);
            }
        }
        Err(SourceError {
            outcome: Outcome::OriginClosed,
            answer: Answer::OriginClosed,
            detail: "a fragment could not be had in several tries".into(),
            is_lost: false,
            is_gone: false,
        })
    }

    /// Fragment `index` from the origin; `None` when it is to be looked for again.
    async fn fetched(
        &self,
        index: u64,
        end: u64,
        there: impl Fn(u64) -> bool,
    ) -> Result<Option<Bytes>, SourceError> {
        if !self.means.shares {
            let fetched = fetch::private(&self.means, &self.parts, index);
            let fetched = Box::pin(fetched).await;
            return fetched.map_err(|failure| not_had(&failure));
        }
        let last = end
            .min(self.parts.body_len())
            .div_ceil(self.parts.fragment_bytes());
        let indices = index..last.min(index + STRETCH_MAX).max(index + 1);
        let wait = match self.means.table.claim(self.parts.id(), indices, there) {
            PartClaim::There => return Ok(None),
            PartClaim::Wait(wait) => wait,
            PartClaim::Fetch(stretch, wait) => {
                fetch::spawn(Rc::clone(&self.means), self.parts.clone(), stretch);
                wait
            }
        };
        wait.arrival().await.map_err(|failure| not_had(&failure))
    }
}

fn not_had(failure: &PartFailure) -> SourceError {
    match failure {
        PartFailure::Changed => SourceError::lost("the representation has changed"),
        PartFailure::Origin(failure) => SourceError::from(failure),
    }
}
