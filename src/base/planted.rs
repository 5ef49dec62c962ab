//! Bugs that tests plant in the storage engine, to see that the simulation
//! finds them. In the product none is, and asking costs nothing.

/// A bug, by what the engine does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planted {
    /// An entry's parity is that of the first cycle in all of them.
    ParityOfFirstCycle,
    /// The entries of a batch that failed for good stay.
    KeptAfterFailedFlush,
    /// A batch that failed for good is passed, and no ring block says so.
    FailureUntold,
    /// The rows of a batch that failed for good count as written before the ring
    /// block is that tells of them.
    LossCountsAsWritten,
    /// A page is taken that the page table does not name.
    StrangePage,
    /// The replay goes on behind missing rows.
    ReplayPastGap,
    /// Nobody looks whether the log goes on behind a lost batch.
    NoLookAhead,
    /// Nobody looks whether a batch that went astray hides the log's end.
    NoLookBack,
    /// Of what rows say of an entry the first counts, not the last.
    RowsOutOfOrder,
    /// Pages are loaded over what rows have said already.
    PageAfterRows,
    /// A page is used before its rows are applied.
    PageBeforeRows,
    /// A sync writes a page that is yet to be read, as if it were empty.
    UnreadPageSynced,
    /// What was replaced gets no free row.
    FreeRowsMissing,
    /// What finds no room at a start is not told of.
    DroppedUntold,
    /// Nobody misses the ring block that a run began with.
    OpeningUnmissed,
    /// A header that tells of a ring block is not heard.
    HeaderUnheard,
    /// After a start the log goes on at places that the copy tells of.
    ReachForgotten,
    /// A batch that went astray is no sign that there was one.
    StraysUnseen,
    /// Of one tag an older entry comes back beside a newer one.
    TwinsRestored,
    /// A header names the log's place at the sync's end, not its beginning.
    SyncPointTooLate,
    /// A sync does not wait for the batches that its pages tell of.
    SyncWaitsForNoBatch,
    /// The header of a sync goes out before the copy has been flushed.
    HeaderBeforeFlush,
    /// The ring's old blocks are free as soon as a sync begins.
    RingFreedTooEarly,
    /// A page whose write failed counts as copied.
    FailedPageForgotten,
    /// The hand clears nothing.
    HandStands,
    /// A batch follows whatever came before it.
    ChainUnchecked,
    /// After a kill the log goes on where it ended, over the batch in flight.
    NoSkipAfterKill,
    /// The cursor goes on before the walk has kept what is pinned.
    PinsUnheeded,
    /// A copy of what was replaced meanwhile is taken.
    OldCopyTaken,
    /// A stripe that was away is trusted.
    AwayTrusted,
    /// A stripe is trusted whose state folder was lost or put back.
    LostStateTrusted,
    /// A run that the state folder does not know counts as one that it knows.
    LostRunUnseen,
    /// When one stripe tells of a lost run, what others hold stays in use.
    OthersSpared,
    /// A copy gets its place though what it was made from is gone.
    CopyUnchecked,
    /// A copy gets its place before what it was made from is flushed.
    CopyBeforeFlush,
    /// A head gets its place before the free rows of other stripes are written.
    HeadUndeferred,
    /// A head waits for what it takes away itself only, not for what an earlier
    /// change took away and is yet to be flushed.
    UnwrittenFreeUnseen,
    /// Stripes that a key belonged on once are not told that it has changed.
    FormerUnclaimed,
    /// A purge counts as durable before it is written down.
    PurgeUntold,
    /// What is written counts as safe from a power cut before it is flushed.
    WrittenIsSafe,
    /// Nobody counts how long a device is silent.
    SilenceUncounted,
    /// That a span went offline by itself is not remembered.
    OfflineForgotten,
    /// A span that is taken back into use is trusted.
    ReturnTrusted,
    /// What could not be read at a start counts as never written.
    UnreadTrusted,
}

/// Whether a test has planted the bug.
#[cfg(not(test))]
pub(crate) const fn is_planted(_: Planted) -> bool {
    false
}

#[cfg(test)]
pub(crate) use garden::{is_planted, with};

#[cfg(test)]
mod garden {
    use super::Planted;
    use std::cell::Cell;

    thread_local! {
        static BUG: Cell<Option<Planted>> = const { Cell::new(None) };
    }

    pub(crate) fn is_planted(bug: Planted) -> bool {
        BUG.get() == Some(bug)
    }

    /// Does `work` with a bug planted in this thread.
    pub(crate) fn with<T>(bug: Option<Planted>, work: impl FnOnce() -> T) -> T {
        let _until_the_end = Reset(BUG.replace(bug));
        work()
    }

    /// Puts back what was planted before, even after a panic.
    struct Reset(Option<Planted>);

    impl Drop for Reset {
        fn drop(&mut self) {
            BUG.set(self.0);
        }
    }
}
