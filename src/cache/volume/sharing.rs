//! One read, and one copy in memory, for all who want a fragment at a time.

use super::part::Blocks;
use crate::cache::object::Miss;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::OnceCell;

/// The fragments, and blocks of them, that are being read or on their way to
/// clients.
#[derive(Debug, Default)]
pub(in crate::cache) struct Sharing {
    held: Arc<Mutex<Held>>,
}

/// A fragment's key, and which blocks of it: all, if none are named.
type Piece = (u128, Option<Blocks>);
type Held = HashMap<Piece, Weak<OnceCell<Bytes>>>;

impl Sharing {
    /// A share in the fragment of `key`; the first one who wants its bytes reads
    /// them for all.
    pub(in crate::cache) fn of(&self, key: u128) -> Share {
        self.of_piece((key, None))
    }

    /// The same for blocks of the fragment.
    pub(in crate::cache) fn of_blocks(&self, key: u128, blocks: Blocks) -> Share {
        self.of_piece((key, Some(blocks)))
    }

    /// Whether somebody has a share in the whole fragment.
    pub(in crate::cache) fn has(&self, key: u128) -> bool {
        let held = self.held.lock();
        held.get(&(key, None))
            .is_some_and(|cell| cell.strong_count() > 0)
    }

    fn of_piece(&self, piece: Piece) -> Share {
        let mut held = self.held.lock();
        let cell = held.get(&piece).and_then(Weak::upgrade).unwrap_or_else(|| {
            let cell = Arc::default();
            held.insert(piece.clone(), Arc::downgrade(&cell));
            cell
        });
        drop(held);
        Share {
            held: Arc::clone(&self.held),
            piece,
            cell,
        }
    }
}

/// A share in a fragment: as long as one is held, nobody need read it.
#[derive(Debug)]
pub(in crate::cache) struct Share {
    held: Arc<Mutex<Held>>,
    piece: Piece,
    cell: Arc<OnceCell<Bytes>>,
}

impl Share {
    /// The bytes, by `read` unless another has read them or does so now.
    ///
    /// # Errors
    /// What `read` says; the next one who asks reads again.
    pub(in crate::cache) async fn bytes<F>(&self, read: F) -> Result<Bytes, Miss>
    where
        F: Future<Output = Result<Bytes, Miss>>,
    {
        self.cell.get_or_try_init(|| read).await.cloned()
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        // Nobody takes another one while the lock is held.
        if Arc::strong_count(&self.cell) == 1 {
            held.remove(&self.piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use tokio::sync::Notify;

    #[tokio::test]
    async fn all_who_want_a_fragment_at_a_time_get_one_copy_of_one_read() {
        let (sharing, reads, gate) = (Sharing::default(), Cell::new(0), Notify::new());
        let read = async || {
            reads.set(reads.get() + 1);
            gate.notified().await;
            Ok(Bytes::from(vec![7; 3]))
        };
        let (first, second) = (sharing.of(1), sharing.of(1));
        let opened = async {
            gate.notify_one();
            Ok::<_, Miss>(())
        };
        let (one, two, _) =
            tokio::try_join!(first.bytes(read()), second.bytes(read()), opened).unwrap();
        assert_eq!((one.as_ptr(), reads.get()), (two.as_ptr(), 1));
        drop(first);
        let late = sharing.of(1).bytes(read()).await.unwrap();
        assert_eq!((late.as_ptr(), reads.get()), (one.as_ptr(), 1));
        drop(second);
        assert!(sharing.held.lock().is_empty());
        gate.notify_one();
        sharing.of(1).bytes(read()).await.unwrap();
        assert_eq!(reads.get(), 2, "nobody held it any more");
    }

    #[tokio::test]
    async fn a_read_that_fails_or_is_given_up_is_done_by_the_next_one() {
        let sharing = Sharing::default();
        let (first, second) = (sharing.of(1), sharing.of(1));
        let failed = first.bytes(async { Err(Miss::ReadError) }).await;
        assert_eq!(failed, Err(Miss::ReadError));
        let given_up = tokio::time::timeout(
            std::time::Duration::from_millis(1),
            first.bytes(std::future::pending()),
        );
        assert!(given_up.await.is_err());
        let read = second.bytes(async { Ok(Bytes::from_static(b"abc")) }).await;
        assert_eq!(read.unwrap(), "abc");
    }
}
