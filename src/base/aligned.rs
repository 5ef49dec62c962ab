//! Buffers at addresses that direct I/O accepts.

use bytes::Bytes;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// The alignment of every buffer, in bytes: the largest sector in use.
pub const ALIGNMENT: usize = 4096;

/// Lengths of storage that is kept for another buffer, in bytes. The last one
/// is for a full fragment of the usual size, read as a directory's entry has its
/// length, and widened to sectors.
const CLASSES: [usize; 9] = [
    8 << 10,
    16 << 10,
    32 << 10,
    64 << 10,
    128 << 10,
    256 << 10,
    512 << 10,
    1 << 20,
    1152 << 10,
];
/// Most bytes of storage that a thread keeps unused.
const KEPT_BYTES: usize = 8 << 20;

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::default();
}

/// An owned run of bytes that begins at a multiple of [`ALIGNMENT`].
#[derive(Debug)]
pub struct AlignedBuf {
    storage: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuf {
    /// `len` zero bytes.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        Self::within(vec![0; len + ALIGNMENT], len)
    }

    /// `len` bytes to be overwritten, all of them: what they hold is left from
    /// a buffer that this thread dropped. Spares the zeroing, and the allocator
    /// a large block for each read.
    #[must_use]
    pub fn recycled(len: usize) -> Self {
        let Some((class, bytes)) = class_of(len + ALIGNMENT) else {
            return Self::zeroed(len);
        };
        let kept = KEPT.with_borrow_mut(|kept| kept.take(class));
        let storage = kept.unwrap_or_else(|| vec![0; bytes]);
        Self::within(storage, len)
    }

    /// Empty, with room for `room` bytes that it may grow to. Memory is touched
    /// as it grows, so that one that is little filled costs little.
    #[must_use]
    pub fn growing(room: usize) -> Self {
        let mut storage: Vec<u8> = Vec::with_capacity(room + ALIGNMENT);
        let start = storage.as_ptr().align_offset(ALIGNMENT);
        storage.resize(start, 0);
        Self {
            storage,
            start,
            len: 0,
        }
    }

    /// As many bytes more, zero ones, as `len` in all take; no more than there
    /// is room for where it stands.
    pub fn grow(&mut self, len: usize) {
        let end = (self.start + len).min(self.storage.capacity());
        if end > self.storage.len() {
            self.storage.resize(end, 0);
            self.len = end - self.start;
        }
    }

    fn within(storage: Vec<u8>, len: usize) -> Self {
        let start = storage.as_ptr().align_offset(ALIGNMENT);
        Self {
            storage,
            start,
            len,
        }
    }

    /// A copy of `bytes`, followed by zeros up to `len`.
    #[must_use]
    pub fn padded(bytes: &[u8], len: usize) -> Self {
        let mut buf = Self::zeroed(len.max(bytes.len()));
        buf[..bytes.len()].copy_from_slice(bytes);
        buf
    }

    /// The same bytes, shareable; nothing is copied.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl Drop for AlignedBuf {
    fn drop(&mut self) {
        let storage = std::mem::take(&mut self.storage);
        // A thread that is ending keeps nothing.
        KEPT.try_with(|kept| kept.borrow_mut().put(storage)).ok();
    }
}

/// Storage that one thread keeps, by class.
#[derive(Default)]
struct Kept {
    classes: [Vec<Vec<u8>>; CLASSES.len()],
    bytes: usize,
}

impl Kept {
    fn take(&mut self, class: usize) -> Option<Vec<u8>> {
        let storage = self.classes.get_mut(class)?.pop()?;
        self.bytes -= storage.len();
        Some(storage)
    }

    /// Keeps what has the length of its class, up to the bound.
    fn put(&mut self, storage: Vec<u8>) {
        let whole = storage.len() == storage.capacity();
        let class = class_of(storage.len()).filter(|(_, bytes)| whole && *bytes == storage.len());
        let list = class.and_then(|(class, _)| self.classes.get_mut(class));
        if let Some(list) = list.filter(|_| self.bytes + storage.len() <= KEPT_BYTES) {
            self.bytes += storage.len();
            list.push(storage);
        }
    }
}

/// The smallest class with room for `bytes`, and its length.
fn class_of(bytes: usize) -> Option<(usize, usize)> {
    let mut classes = CLASSES.into_iter().enumerate();
    classes.find(|(_, length)| bytes <= *length)
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.len]
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + self.len]
    }
}

impl AsRef<[u8]> for AlignedBuf {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_begin_at_the_alignment_and_stay_there_as_bytes() {
        for len in [0, 1, 4096, 1 << 20] {
            let buf = AlignedBuf::padded(b"", len);
            assert_eq!(buf.len(), len);
            assert_eq!(buf.as_ptr().align_offset(ALIGNMENT), 0);
            let address = buf.as_ptr();
            assert_eq!(buf.into_bytes().as_ptr(), address);
        }
    }

    #[test]
    fn a_dropped_buffer_serves_again_for_a_length_of_its_class() {
        for len in [0, 4096, 4097, 100_000, 1 << 21] {
            let mut buf = AlignedBuf::recycled(len);
            assert_eq!(buf.as_ptr().align_offset(ALIGNMENT), 0);
            buf.fill(7);
            drop(buf);
            assert_eq!(AlignedBuf::recycled(len).len(), len);
            assert!(AlignedBuf::zeroed(len).iter().all(|byte| *byte == 0));
        }
        // The last one: a full fragment, of 2,049 blocks, whose entry says 2,176.
        for (len, again) in [(20_000, 17_000), (2176 * 512 + 4096, 2049 * 512)] {
            let address = AlignedBuf::recycled(len).into_bytes().as_ptr();
            assert_eq!(AlignedBuf::recycled(again).as_ptr(), address);
        }
    }

    #[test]
    fn a_thread_keeps_no_more_than_its_bound() {
        let many: Vec<_> = (0..20).map(|_| AlignedBuf::recycled(1 << 19)).collect();
        drop(many);
        KEPT.with_borrow(|kept| assert!(kept.bytes > 0 && kept.bytes <= KEPT_BYTES));
    }

    #[test]
    fn a_growing_buffer_stays_where_it_is_and_keeps_what_it_holds() {
        let mut buf = AlignedBuf::growing(10_000);
        assert!(buf.is_empty());
        let address = buf.as_ptr();
        for len in [3, 512, 500, 10_000] {
            buf.grow(len);
            buf[0] = 7;
        }
        assert_eq!(address.align_offset(ALIGNMENT), 0);
        assert_eq!((buf.as_ptr(), buf.len()), (address, 10_000));
        assert!(buf[0] == 7 && buf[1..].iter().all(|byte| *byte == 0));
        buf.grow(1 << 20);
        assert_eq!(buf.as_ptr(), address);
    }

    #[test]
    fn padding_follows_the_copied_bytes() {
        let buf = AlignedBuf::padded(b"abc", 5);
        assert_eq!(&*buf, b"abc\0\0");
    }
}
