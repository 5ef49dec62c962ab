//! What a stripe asks its driver to do, and what it is told afterwards.

use crate::cache::directory::Place;
use bytes::Bytes;

/// Names a plan until it is completed; never used twice by one stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanId(pub u64);

/// What a plan is for; each is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A batch of the log: the objects themselves.
    Batch,
    /// A block of the redo ring.
    Ring,
    /// Pages of a directory copy.
    Pages,
    /// The page table of a directory copy.
    PageTable,
    /// A stripe header.
    Header,
    /// What was written must reach the medium before the next step.
    Flush,
}

/// The I/O of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write all of `bytes` at `offset` bytes from the stripe's start. Both
    /// are multiples of the stripe's block, and so is the buffer's address of
    /// 4096: direct I/O takes it as it is.
    Write {
        /// Bytes from the stripe's start.
        offset: u64,
        /// What to write; shared with readers, never changed.
        bytes: Bytes,
    },
    /// Flush the device's volatile cache.
    Flush,
}

/// One I/O to do. Plans that are out at the same time may run in any order,
/// and side by side: where order matters the stripe holds the later one back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// To complete it by.
    pub id: PlanId,
    /// What it is for.
    pub cause: Cause,
    /// What to do.
    pub action: Action,
}

/// How a plan ended. A short write is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it was done.
    Done,
    /// Some or all of it was not.
    Failed,
}

/// What a completion changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Bytes that the plan wrote, of its cause.
    pub written: u64,
    /// Entries freed because their batch could not be written, twice.
    pub lost: u64,
    /// Bytes of the fragments that it was to hold.
    pub lost_bytes: u64,
}

/// A fragment's place, and the batch that will hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Where it is; readable at once, from the buffer.
    pub place: Place,
    /// The batch; written when `Directory::written_sequence` reaches it.
    pub sequence: u64,
}

/// How many entries a free took away, and the batch that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freed {
    /// Entries that are gone.
    pub entries: usize,
    /// The batch with the free rows (the last one, if nothing was freed).
    pub sequence: u64,
}

/// Why a fragment was not taken, or a key not freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refused {
    /// More waits to be written than `backlog_bytes` allows.
    #[error("the write backlog is full")]
    Backlog,
    /// The fragment is larger than a batch holds.
    #[error("the fragment is larger than a batch")]
    TooLarge,
    /// The entry that a copy was made from is gone: something newer came.
    #[error("the copied entry is no longer there")]
    Superseded,
    /// The key's page is yet to be read.
    #[error("the directory page of the key is yet to be read")]
    Unread,
    /// The stripe is closed, or a write that it can't do without failed.
    #[error("the stripe takes no more writes")]
    Closed,
}
