//! The reasons of every "no", and what a store names.

use crate::cache::CacheKey;
use bytes::Bytes;

/// What a key leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A response: its head is `meta`, its body the body. Reads of it count.
    Object,
    /// What a URL with Vary leads to; it has no body, and reads of it count
    /// nowhere.
    Marker,
}

/// Why a read gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Miss {
    /// No tier holds the key.
    #[error("the key is in no tier")]
    Absent,
    /// A copy was found, and a purge that came after its fill had begun
    /// makes it dead.
    #[error("the copy was purged")]
    Invalidated,
    /// The device failed the read, or what it gave failed its checks; the
    /// entry is freed and counted.
    #[error("the copy could not be read, or failed its checks")]
    ReadError,
    /// The write cursor overtook the fragment while it was being read.
    #[error("the copy was overwritten while it was read")]
    Overtaken,
    /// The key's stripe is still being read after a start.
    #[error("the key's stripe is not loaded yet")]
    NotReady,
    /// Spans are configured and none is usable.
    #[error("no span is usable")]
    NoSpan,
}

/// Why something was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NotStored {
    /// More bytes wait for the stripe than `agg_write_backlog` allows.
    #[error("too many bytes wait to be written")]
    Backlog,
    /// The body is larger than `max_doc_size`, or than the log or the RAM
    /// cache can hold.
    #[error("the object is too large")]
    TooLarge,
    /// There is only RAM, and its seen filter has not met the key before.
    #[error("the RAM cache waits for the key to come by again")]
    FirstSight,
    /// The metadata is longer than one fragment.
    #[error("the metadata is too long")]
    MetaTooLong,
    /// The body pushed is longer or shorter than the length announced.
    #[error("the body's length is not the one announced")]
    WrongLength,
    /// A purge or removal that came after the fill had begun makes it dead.
    #[error("the key was invalidated during the fill")]
    Invalidated,
    /// The copy that a refresh was made from is gone or replaced.
    #[error("the copy to refresh is no longer the current one")]
    Replaced,
    /// The key's stripe is still being read after a start, or is offline.
    #[error("the key's stripe is not in use")]
    NotReady,
    /// Spans are configured and none is usable.
    #[error("no span is usable")]
    NoSpan,
    /// An earlier call of this writer failed.
    #[error("the writer has failed before")]
    Aborted,
}

/// Why a body broke off. Whoever serves it must cut the response visibly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum BodyError {
    /// The device failed the read.
    #[error("the device failed at body byte {offset}")]
    Device {
        /// Body offset of the fragment.
        offset: u64,
    },
    /// The fragment is gone, overwritten or fails its checks.
    #[error("the body is gone or damaged from byte {offset} on")]
    Missing {
        /// Body offset of the fragment.
        offset: u64,
    },
}

impl BodyError {
    /// The error of a body whose fragment at `offset` could not be had.
    pub(crate) const fn at(offset: u64, miss: Miss) -> Self {
        match miss {
            Miss::ReadError | Miss::NotReady | Miss::NoSpan => Self::Device { offset },
            Miss::Absent | Miss::Invalidated | Miss::Overtaken => Self::Missing { offset },
        }
    }
}

/// Why a purge is not acknowledged.
#[derive(Debug, thiserror::Error)]
pub enum PurgeError {
    /// The rule could not be made durable; the object may come back after a
    /// crash.
    #[error("the purge could not be written to the state directory: {0}")]
    State(String),
    /// The cache is shutting down.
    #[error("the cache is shutting down")]
    Closed,
}

/// What a store begins with.
#[derive(Clone, Debug)]
pub struct NewObject {
    /// The key; its text is stored and compared on every read.
    pub key: CacheKey,
    /// Object or marker.
    pub kind: ObjectKind,
    /// The caller's head, opaque here.
    pub meta: Bytes,
    /// The body's length in bytes, when it is known beforehand.
    pub body_len: Option<u64>,
    /// `Cache::epoch` from before the request
    /// that is being stored was sent.
    pub epoch: u64,
}
