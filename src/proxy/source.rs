//! Where a served body comes from: the cache, a fill under way, or the rest of
//! it from the origin.

use super::answer::Answer;
use super::cached::FillHead;
use super::fill::{Failure, FillReader, Next};
use super::origin::OriginError;
use super::outcome::Outcome;
use super::parts::PartsBody;
use super::resume::Tail;
use crate::cache::{BodyError, BodyReader, Cache};
use crate::metrics::{Cells, Metric};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// Why a body broke off.
#[derive(Debug)]
pub(super) struct SourceError {
    pub(super) outcome: Outcome,
    pub(super) answer: Answer,
    pub(super) detail: Box<str>,
    /// The cache has lost it: the origin may still have it.
    pub(super) is_lost: bool,
    /// And will not find it the next time either.
    pub(super) is_gone: bool,
}

impl SourceError {
    pub(super) fn lost(detail: &str) -> Self {
        Self {
            outcome: Outcome::MissReadError,
            answer: Answer::OriginClosed,
            detail: detail.into(),
            is_lost: true,
            is_gone: true,
        }
    }
}

impl From<&Failure> for SourceError {
    fn from(failure: &Failure) -> Self {
        Self {
            outcome: failure.outcome,
            answer: failure.answer,
            detail: (*failure.detail).into(),
            is_lost: false,
            is_gone: false,
        }
    }
}

impl From<BodyError> for SourceError {
    fn from(error: BodyError) -> Self {
        Self {
            // A device that is busy, or silent for once, has it yet.
            is_gone: matches!(error, BodyError::Missing { .. }),
            ..Self::lost(&error.to_string())
        }
    }
}

impl From<OriginError> for SourceError {
    fn from(error: OriginError) -> Self {
        Self {
            outcome: error.outcome(),
            answer: error.answer(),
            detail: error.to_string().into(),
            is_lost: false,
            is_gone: false,
        }
    }
}

/// A body, part by part.
pub(super) struct Source {
    place: Place,
    /// What is wanted and still to come.
    left: Range<u64>,
    /// Takes over where a fragment is lost.
    mending: Option<Box<PartsBody>>,
}

enum Place {
    Stored(BodyReader),
    Filling(Box<Following>),
    Origin(Tail),
    Parts(Box<PartsBody>),
}

impl Source {
    /// A stored body.
    pub(super) const fn stored(reader: BodyReader) -> Self {
        let left = 0..reader.remaining();
        Self {
            place: Place::Stored(reader),
            left,
            mending: None,
        }
    }

    /// The body of an object that was stored in part: `parts` gives what is
    /// missing, of which there may be nothing now.
    pub(super) fn in_part(reader: BodyReader, parts: PartsBody) -> Self {
        let left = 0..reader.remaining();
        let parts = Box::new(parts);
        if parts.is_whole() {
            let mending = Some(parts);
            let place = Place::Stored(reader);
            return Self {
                place,
                left,
                mending,
            };
        }
        Self {
            place: Place::Parts(parts),
            left,
            mending: None,
        }
    }

    /// The body of a fill.
    pub(super) fn filling(following: Following) -> Self {
        Self {
            place: Place::Filling(Box::new(following)),
            left: 0..u64::MAX,
            mending: None,
        }
    }

    /// The whole body, if all of it is in memory and wanted.
    pub(super) fn whole(&self) -> Option<&[Bytes]> {
        match &self.place {
            Place::Stored(reader) => reader.whole(),
            Place::Filling(_) | Place::Origin(_) | Place::Parts(_) => None,
        }
    }

    /// Whether it is a fill's, and still to come. The next piece can then be
    /// waited for in vain without losing any.
    pub(super) fn is_under_way(&self) -> bool {
        matches!(&self.place, Place::Filling(following) if !following.reader.is_behind())
    }

    /// Whether it can't go back: of several ranges the foremost must come first.
    pub(super) const fn only_goes_on(&self) -> bool {
        matches!(self.place, Place::Filling(_))
    }

    /// Gives only the bytes of `range` from now on.
    pub(super) fn seek(&mut self, range: Range<u64>) {
        if let Place::Stored(reader) = &mut self.place {
            reader.seek(range.clone());
        }
        self.left = range;
    }

    /// What is wanted and still to come.
    pub(super) fn left(&self) -> Range<u64> {
        self.left.clone()
    }

    /// Goes on by what the origin gives of what is left.
    pub(super) fn go_on(&mut self, tail: Tail) {
        self.place = Place::Origin(tail);
    }

    /// The next piece, never empty; `None` at the end.
    ///
    /// # Errors
    /// Why the rest can't be had from where it came so far.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, SourceError> {
        if self.left.is_empty() {
            self.end().await;
            return Ok(None);
        }
        let piece = match self.piece().await {
            Err(error) if error.is_lost => {
                let parts = self.mending.take().ok_or(error)?;
                self.place = Place::Parts(parts);
                self.piece().await?
            }
            piece => piece?,
        };
        self.left.start += piece.as_ref().map_or(0, length);
        Ok(piece)
    }

    /// Lets go of what all that is wanted came from.
    async fn end(&mut self) {
        if let Place::Origin(tail) = &mut self.place {
            tail.end().await;
        }
    }

    async fn piece(&mut self) -> Result<Option<Bytes>, SourceError> {
        match &mut self.place {
            Place::Stored(reader) => Ok(reader.next().await?),
            Place::Filling(following) => following.next(&self.left).await,
            Place::Origin(tail) => Ok(tail.next().await?),
            Place::Parts(parts) => parts.next(&self.left).await.map(Some),
        }
    }
}

/// A follower's place in a fill.
pub(super) struct Following {
    reader: FillReader<FillHead>,
    head: Arc<FillHead>,
    cache: Arc<Cache>,
    cells: Arc<Cells>,
    /// What had left the fill's memory, read from the cache.
    back: Option<BodyReader>,
    /// What came together with the last bytes wanted, and lies behind them.
    surplus: Option<Bytes>,
    /// Bytes of the body seen, or passed over, so far.
    at: u64,
}

impl Following {
    /// At the body's beginning.
    pub(super) fn new(
        reader: FillReader<FillHead>,
        head: Arc<FillHead>,
        (cache, cells): (Arc<Cache>, Arc<Cells>),
    ) -> Self {
        Self {
            reader,
            head,
            cache,
            cells,
            back: None,
            surplus: None,
            at: 0,
        }
    }

    /// The next piece of what is wanted.
    async fn next(&mut self, wanted: &Range<u64>) -> Result<Option<Bytes>, SourceError> {
        loop {
            let Some(data) = self.piece(wanted).await? else {
                return Ok(None);
            };
            if let Some(wanted) = self.cut(&data, wanted) {
                return Ok(Some(wanted));
            }
        }
    }

    /// The next piece of the body, wherever it is.
    async fn piece(&mut self, wanted: &Range<u64>) -> Result<Option<Bytes>, SourceError> {
        if let Some(data) = self.surplus.take() {
            return Ok(Some(data));
        }
        loop {
            if let Some(back) = &mut self.back {
                if let Some(data) = back.next().await? {
                    return Ok(Some(data));
                }
                self.back = None;
                self.reader.resume(self.at);
            }
            match self.reader.next().await {
                Next::Data(data) => return Ok(Some(data)),
                Next::End => return Ok(None),
                Next::Behind(base) => self.fall_back(wanted.start.min(base), base).await?,
                Next::Failed(failure) => return Err(SourceError::from(&failure)),
            }
        }
    }

    /// What of a piece is wanted.
    fn cut(&mut self, data: &Bytes, wanted: &Range<u64>) -> Option<Bytes> {
        let start = self.at;
        let end = start + length(data);
        let from = wanted.start.max(start);
        let to = wanted.end.min(end);
        let bound = |at: u64| usize::try_from(at - start).unwrap_or(data.len());
        if from >= to {
            self.at = end;
            return None;
        }
        self.at = to;
        self.surplus = (to < end).then(|| data.slice(bound(to)..));
        Some(data.slice(bound(from)..bound(to)))
    }

    /// The fill's memory begins at `base` by now: from the first byte wanted
    /// on, the cache gives what lies before it.
    async fn fall_back(&mut self, first: u64, base: u64) -> Result<(), SourceError> {
        self.at = self.at.max(first);
        if self.at >= base {
            self.reader.resume(self.at);
            return Ok(());
        }
        self.cells.add(Metric::FillReadbacks, 1);
        let (at, storing) = (self.at, &self.head.storing);
        let stored = self.reader.until(|is_over| {
            let back = storing.readback(at);
            (back.is_some() || is_over || !storing.is_open()).then_some(back)
        });
        self.back = match stored.await {
            Some(back) => Some(back),
            None => Some(self.committed().await?),
        };
        Ok(())
    }

    /// The object that the fill stored, if it is that very one.
    async fn committed(&self) -> Result<BodyReader, SourceError> {
        let hit = self.cache.read(&self.head.key).await;
        let hit = hit.map_err(|miss| SourceError::lost(&miss.to_string()))?;
        if hit.meta != *self.head.head.as_bytes() {
            return Err(SourceError::lost("another version took its place"));
        }
        let mut reader = hit.body;
        reader.seek(self.at..u64::MAX);
        Ok(reader)
    }
}

fn length(data: &Bytes) -> u64 {
    u64::try_from(data.len()).unwrap_or(u64::MAX)
}
