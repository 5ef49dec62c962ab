//! The stretch of a fill's body that is in memory.

use super::bytes;
use bytes::Bytes;
use std::collections::VecDeque;

/// Chunks that fit together into this part of the window are copied into one:
/// each that is held costs memory of its own, and keeps the whole buffer that it
/// came in.
const GATHERED_PART: u64 = 1024;

/// The last bytes of a body that have come.
#[derive(Debug, Default)]
pub(super) struct Window {
    chunks: VecDeque<Chunk>,
    /// Where the first chunk held begins, in bytes of the body.
    base: u64,
    /// Bytes of the body that have come.
    total: u64,
}

#[derive(Debug)]
struct Chunk {
    /// Where it begins, in bytes of the body.
    start: u64,
    data: Bytes,
}

impl Window {
    /// Where it begins, in bytes of the body.
    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    /// Bytes of the body that have come.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// The chunk that begins at byte `at` of the body, or the rest of the one
    /// that holds it.
    pub(super) fn chunk_at(&self, at: u64) -> Option<Bytes> {
        let next = self.chunks.partition_point(|chunk| chunk.start <= at);
        let chunk = self.chunks.get(next.checked_sub(1)?)?;
        let skip = usize::try_from(at - chunk.start).ok()?;
        (skip < chunk.data.len()).then(|| chunk.data.slice(skip..))
    }

    /// Appends what has come; the window is to hold `most` bytes. What is small
    /// is joined to what is no larger before it: so no byte is copied more often
    /// than its piece doubles.
    pub(super) fn push(&mut self, data: Bytes, most: u64) {
        let gathered = most / GATHERED_PART;
        let mut chunk = Chunk {
            start: self.total,
            data,
        };
        self.total += bytes(&chunk.data);
        while let Some(last) = self
            .chunks
            .pop_back_if(|last| last.is_joined_by(&chunk, gathered))
        {
            chunk = last.joined(&chunk);
        }
        self.chunks.push_back(chunk);
    }

    /// Lets go of what lies before `needed` and is more than `most` bytes old.
    pub(super) fn trim(&mut self, most: u64, needed: u64) {
        while self.total - self.base > most {
            let end = |chunk: &mut Chunk| chunk.start + bytes(&chunk.data);
            let Some(mut first) = self.chunks.pop_front_if(|first| end(first) <= needed) else {
                return;
            };
            self.base = end(&mut first);
        }
    }

    #[cfg(test)]
    pub(super) fn pieces(&self) -> usize {
        self.chunks.len()
    }
}

impl Chunk {
    fn is_joined_by(&self, next: &Self, gathered: u64) -> bool {
        let (len, more) = (bytes(&self.data), bytes(&next.data));
        len <= more && len + more <= gathered
    }

    fn joined(&self, next: &Self) -> Self {
        Self {
            start: self.start,
            data: [&*self.data, &*next.data].concat().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u64 = 4 << 20;

    fn read(window: &Window, mut at: u64) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some(chunk) = window.chunk_at(at) {
            at += bytes(&chunk);
            all.extend_from_slice(&chunk);
        }
        all
    }

    #[test]
    fn a_body_in_single_bytes_is_held_in_few_pieces() {
        let mut window = Window::default();
        let body: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        for byte in body.chunks(1) {
            window.push(Bytes::copy_from_slice(byte), MOST);
        }
        assert!(
            window.pieces() <= 100_000 / 4096 + 13,
            "{}",
            window.pieces()
        );
        for at in [0, 1, 4095, 4096, 4097, 99_999] {
            let from = usize::try_from(at).unwrap();
            assert!(read(&window, at) == body[from..], "{at}");
        }
        assert_eq!(window.chunk_at(100_000), None);
    }

    #[test]
    fn pieces_of_any_size_are_read_from_any_place_and_trimmed_to_what_is_needed() {
        let sizes = [3000, 10, 3000, 1, 4096, 1, 60, 59, 58, 57, 9000, 2];
        let body: Vec<u8> = (0..=250).cycle().take(sizes.iter().sum()).collect();
        let mut window = Window::default();
        let mut rest = &body[..];
        for size in sizes {
            let (now, later) = rest.split_at(size);
            window.push(Bytes::copy_from_slice(now), MOST);
            rest = later;
        }
        for at in (0..body.len()).step_by(7) {
            assert!(
                read(&window, u64::try_from(at).unwrap()) == body[at..],
                "{at}"
            );
        }
        window.trim(0, 6500);
        assert!(window.base() > 0 && window.base() <= 6500);
        let base = usize::try_from(window.base()).unwrap();
        assert!(read(&window, window.base()) == body[base..]);
        window.trim(0, window.total());
        assert_eq!((window.base(), window.pieces()), (window.total(), 0));
    }

    #[test]
    fn large_chunks_are_never_copied() {
        let mut window = Window::default();
        let chunk = Bytes::from(vec![7; 4096]);
        window.push(chunk.clone(), MOST);
        window.push(chunk.clone(), MOST);
        assert_eq!(window.chunk_at(0).unwrap().as_ptr(), chunk.as_ptr());
        assert_eq!(window.chunk_at(4096).unwrap().as_ptr(), chunk.as_ptr());
    }
}
