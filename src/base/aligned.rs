//! Buffers at addresses that direct I/O accepts.

use bytes::Bytes;
use std::ops::{Deref, DerefMut};

/// The alignment of every buffer, in bytes: the largest sector in use.
pub const ALIGNMENT: usize = 4096;

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
        let storage = vec![0; len + ALIGNMENT];
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
    fn padding_follows_the_copied_bytes() {
        let buf = AlignedBuf::padded(b"abc", 5);
        assert_eq!(&*buf, b"abc\0\0");
    }
}
