//! Reading a body: what is in memory at once, fragments as they are read.

use super::answer::BodyError;
use super::stored::Stored;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// The body of a hit, or a range of it.
#[derive(Debug)]
pub struct BodyReader {
    stored: Arc<Stored>,
    /// The next chunk, and the body offset at which it begins.
    chunk: usize,
    chunk_start: u64,
    /// What is left to give.
    left: Range<u64>,
}

impl BodyReader {
    /// A reader of the whole body of an object in memory.
    pub(crate) fn new(stored: Arc<Stored>) -> Self {
        let left = 0..stored.body_len;
        Self {
            stored,
            chunk: 0,
            chunk_start: 0,
            left,
        }
    }

    /// The whole body when all of it is in memory and no range was chosen;
    /// the pieces in order. Nothing is copied.
    #[must_use]
    pub fn whole(&self) -> Option<&[Bytes]> {
        (self.left == (0..self.stored.body_len)).then_some(&self.stored.chunks)
    }

    /// Bytes that are still to come.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.left.end.saturating_sub(self.left.start)
    }

    /// Gives the bytes of `range` from now on, cut at the body's end; an
    /// empty or inverted range gives nothing.
    pub fn seek(&mut self, range: Range<u64>) {
        let end = range.end.min(self.stored.body_len);
        self.left = range.start.min(end)..end;
        self.chunk = 0;
        self.chunk_start = 0;
    }

    /// The next piece, never empty; `None` at the end. Nothing is copied.
    ///
    /// # Errors
    /// When a fragment is gone, damaged, or the device fails: then the rest
    /// can't be had, and the response must be cut visibly.
    pub async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        Ok(self.next_in_memory())
    }

    fn next_in_memory(&mut self) -> Option<Bytes> {
        while !self.left.is_empty() {
            let chunk = self.stored.chunks.get(self.chunk)?;
            let start = self.chunk_start;
            self.chunk += 1;
            self.chunk_start += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
            if self.chunk_start > self.left.start {
                let end = self.left.end.min(self.chunk_start);
                let piece = cut(chunk, self.left.start - start..end - start);
                self.left.start = end;
                return Some(piece);
            }
        }
        None
    }
}

/// The bytes of `range` of `chunk`, shared.
fn cut(chunk: &Bytes, range: Range<u64>) -> Bytes {
    let bound = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(chunk.len());
    chunk.slice(bound(range.start)..bound(range.end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{CacheKey, ObjectKind};

    fn reader(chunks: &[&'static [u8]]) -> BodyReader {
        let chunks: Box<[Bytes]> = chunks.iter().map(|c| Bytes::from_static(c)).collect();
        BodyReader::new(Arc::new(Stored {
            key: CacheKey::of_url("http://a/"),
            kind: ObjectKind::Object,
            meta: Bytes::new(),
            epoch: 0,
            body_len: chunks.iter().map(|c| u64::try_from(c.len()).unwrap()).sum(),
            chunks,
        }))
    }

    fn text(reader: &mut BodyReader) -> Vec<u8> {
        let mut text = Vec::new();
        while let Some(piece) = reader.next_in_memory() {
            assert!(!piece.is_empty());
            text.extend_from_slice(&piece);
        }
        text
    }

    #[test]
    fn every_range_of_a_body_in_pieces_is_what_it_says() {
        let body = b"abcdefghij";
        let mut reader = reader(&[b"abc", b"", b"defg", b"hij"]);
        for start in 0..12_u64 {
            for end in 0..12_u64 {
                reader.seek(start..end);
                let bound = |at: u64| usize::try_from(at).unwrap().min(body.len());
                let expected = body.get(bound(start)..bound(end)).unwrap_or_default();
                assert_eq!(text(&mut reader), expected, "{start}..{end}");
                assert_eq!(reader.remaining(), 0);
            }
        }
    }

    #[test]
    fn the_whole_is_given_only_where_nothing_was_left_out() {
        let mut reader = reader(&[b"abc", b"def"]);
        assert_eq!(reader.whole().unwrap().concat(), b"abcdef");
        reader.seek(1..6);
        assert_eq!(reader.whole(), None);
        reader.seek(0..u64::MAX);
        assert!(reader.whole().is_some());
        assert_eq!(reader.remaining(), 6);
    }
}
