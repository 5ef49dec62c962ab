//! Reading a body: what is in memory at once, fragments as they are read.

use super::answer::{BodyError, Miss};
use super::hit::CopyRef;
use super::parts::Parts;
use super::stored::{Fragments, Stored};
use crate::cache::store::Cache;
use crate::cache::volume::{Blocks, Share};
use bytes::Bytes;
use std::ops::Range;
use std::sync::{Arc, Weak};

/// The body of a hit, or a range of it.
#[derive(Debug)]
pub struct BodyReader {
    stored: Arc<Stored>,
    /// The next chunk in memory, and the body offset at which it begins.
    chunk: usize,
    chunk_start: u64,
    /// What is left to give.
    left: Range<u64>,
    /// In the fragment that was given last.
    share: Option<Share>,
    collector: Option<Collector>,
}

/// Gathers the fragments of a body that is to enter the RAM cache when all of
/// it has been read.
#[derive(Debug)]
struct Collector {
    cache: Weak<Cache>,
    chunks: Vec<Bytes>,
}

impl BodyReader {
    /// A reader of the whole body.
    pub(in crate::cache) fn new(stored: Arc<Stored>) -> Self {
        let left = 0..stored.body_len;
        Self {
            stored,
            chunk: 0,
            chunk_start: 0,
            left,
            share: None,
            collector: None,
        }
    }

    /// A reader that offers the body to the RAM cache of `cache` once it has
    /// been read from end to end.
    pub(in crate::cache) fn collecting(stored: Arc<Stored>, cache: Weak<Cache>) -> Self {
        let mut reader = Self::new(stored);
        reader.collector = Some(Collector {
            cache,
            chunks: Vec::new(),
        });
        reader
    }

    /// Names the copy that it reads.
    #[must_use]
    pub fn copy(&self) -> CopyRef {
        CopyRef(Arc::clone(&self.stored))
    }

    /// The fragments of an object that was stored in part, whether any is
    /// missing now or not.
    #[must_use]
    pub fn parts(&self) -> Option<Parts> {
        Parts::of(&self.stored)
    }

    /// The whole body when all of it is in memory and no range was chosen;
    /// the pieces in order. Nothing is copied.
    #[must_use]
    pub fn whole(&self) -> Option<&[Bytes]> {
        let chunks = self.stored.chunks.as_ref()?;
        (self.left == (0..self.stored.body_len)).then_some(chunks)
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
        self.collector = None;
    }

    /// The next piece, never empty; `None` at the end. Of a body in fragments
    /// each piece is a fragment, or a few blocks of it if no more is wanted, read
    /// from the device and verified, once for all who are given it at the time;
    /// nothing is copied.
    ///
    /// # Errors
    /// When a fragment is gone, damaged, or the device fails: then the rest
    /// can't be had, and the response must be cut visibly.
    pub async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        if self.stored.chunks.is_some() || self.left.is_empty() {
            return Ok(self.next_in_memory());
        }
        let stored = Arc::clone(&self.stored);
        match &stored.fragments {
            Some(fragments) => self.next_fragment(fragments).await.map(Some),
            None => Ok(None),
        }
    }

    fn next_in_memory(&mut self) -> Option<Bytes> {
        let chunks = self.stored.chunks.as_ref()?;
        while !self.left.is_empty() {
            let chunk = chunks.get(self.chunk)?;
            let start = self.chunk_start;
            self.chunk += 1;
            self.chunk_start += len(chunk);
            if self.chunk_start > self.left.start {
                let end = self.left.end.min(self.chunk_start);
                let piece = cut(chunk, self.left.start - start..end - start);
                self.left.start = end;
                return Some(piece);
            }
        }
        None
    }

    async fn next_fragment(&mut self, fragments: &Fragments) -> Result<Bytes, BodyError> {
        let size = u64::from(fragments.bytes).max(1);
        let index = self.left.start / size;
        let offset = index * size;
        let whole = size.min(self.stored.body_len - offset);
        let wanted = self.left.start - offset..whole.min(self.left.end - offset);
        self.share = None;
        let read = match Blocks::of(&wanted, whole) {
            Some(blocks) if !fragments.is_shared(index) => {
                self.read_blocks(fragments, index, &blocks).await
            }
            _ => self.read_whole(fragments, index, whole).await,
        };
        let (bytes, start) = read.map_err(|miss| BodyError::at(offset, miss))?;
        let piece = cut(&bytes, wanted.start - start..wanted.end - start);
        if piece.is_empty() {
            return Err(BodyError::Missing { offset });
        }
        self.left.start += len(&piece);
        Ok(piece)
    }

    /// Blocks of a fragment, and where in it they begin.
    async fn read_blocks(
        &mut self,
        fragments: &Fragments,
        index: u64,
        blocks: &Blocks,
    ) -> Result<(Bytes, u64), Miss> {
        let (bytes, share) = fragments.shared_blocks(index, blocks).await?;
        self.share = Some(share);
        Ok((bytes, blocks.start()))
    }

    /// All of a fragment, which must have `length` bytes.
    async fn read_whole(
        &mut self,
        fragments: &Fragments,
        index: u64,
        length: u64,
    ) -> Result<(Bytes, u64), Miss> {
        let (bytes, share) = fragments.shared(index).await?;
        self.share = Some(share);
        if len(&bytes) != length {
            return Err(Miss::Absent);
        }
        self.collect(&bytes);
        Ok((bytes, 0))
    }

    /// Keeps a fragment for the RAM cache, and gives it all of them when this
    /// was the last.
    fn collect(&mut self, bytes: &Bytes) {
        let Some(collector) = &mut self.collector else {
            return;
        };
        collector.chunks.push(bytes.clone());
        let have: u64 = collector.chunks.iter().map(len).sum();
        if have == self.stored.body_len
            && let Some(collector) = self.collector.take()
            && let Some(cache) = collector.cache.upgrade()
        {
            cache.admit_read(&self.stored, &collector.chunks);
        }
    }
}

fn len(bytes: &Bytes) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
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
            body_len: chunks.iter().map(len).sum(),
            chunks: Some(chunks),
            in_part: false,
            pinned_until: None,
            fragments: None,
            home: None,
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
