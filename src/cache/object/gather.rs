//! Gathers pushed bytes into pieces of one fragment each.

use bytes::Bytes;

/// Complete pieces, and the one that is growing. Pieces hold exactly their
/// bytes: a small body does not keep a large receive buffer alive.
#[derive(Debug)]
pub(super) struct Gather {
    piece: usize,
    tail: Vec<u8>,
}

impl Gather {
    /// Pieces of `piece` bytes (at least one); the first has room for
    /// `expected` bytes at once.
    pub(super) fn new(piece: usize, expected: Option<u64>) -> Self {
        let piece = piece.max(1);
        let room = expected.map_or(0, |len| usize::try_from(len).unwrap_or(piece));
        Self {
            piece,
            tail: Vec::with_capacity(room.min(piece)),
        }
    }

    /// Adds `bytes`; gives the pieces that are complete. A piece is complete
    /// when a byte comes after it, so that the last one stays.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Vec<Bytes> {
        let mut complete = Vec::new();
        while !bytes.is_empty() {
            if self.tail.len() == self.piece {
                complete.push(std::mem::take(&mut self.tail).into());
            }
            let room = self.piece - self.tail.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.tail.extend_from_slice(now);
            bytes = later;
        }
        complete
    }

    /// Bytes of the piece that grows.
    pub(super) const fn len(&self) -> usize {
        self.tail.len()
    }

    /// The last piece, taken out; empty only when nothing was pushed.
    pub(super) fn finish(&mut self) -> Bytes {
        let mut tail = std::mem::take(&mut self.tail);
        tail.shrink_to_fit();
        tail.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(pushes: &[usize]) -> Vec<usize> {
        let mut gather = Gather::new(10, None);
        let mut sizes = Vec::new();
        for push in pushes {
            let complete = gather.push(&vec![7; *push]);
            sizes.extend(complete.iter().map(Bytes::len));
        }
        sizes.push(gather.finish().len());
        sizes
    }

    #[test]
    fn pieces_are_full_but_the_last_and_only_nothing_gives_an_empty_one() {
        assert_eq!(pieces(&[]), [0]);
        assert_eq!(pieces(&[3, 4]), [7]);
        assert_eq!(pieces(&[3, 7]), [10]);
        assert_eq!(pieces(&[3, 8]), [10, 1]);
        assert_eq!(pieces(&[35]), [10, 10, 10, 5]);
        assert_eq!(pieces(&[0, 20, 0]), [10, 10]);
    }
}
