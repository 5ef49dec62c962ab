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

    /// Adds `bytes`; hands each piece over as soon as a byte comes after it,
    /// so that the last one stays.
    pub(super) fn push<E>(
        &mut self,
        mut bytes: &[u8],
        mut complete: impl FnMut(Bytes) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            if self.tail.len() == self.piece {
                complete(std::mem::take(&mut self.tail).into())?;
            }
            let room = self.piece - self.tail.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.tail.extend_from_slice(now);
            bytes = later;
        }
        Ok(())
    }

    /// The last piece; empty only when nothing was pushed.
    pub(super) fn finish(mut self) -> Bytes {
        self.tail.shrink_to_fit();
        self.tail.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(pushes: &[usize]) -> Vec<usize> {
        let mut gather = Gather::new(10, None);
        let mut sizes = Vec::new();
        for push in pushes {
            let keep = |piece: Bytes| {
                sizes.push(piece.len());
                Ok::<(), ()>(())
            };
            gather.push(&vec![7; *push], keep).unwrap();
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
