//! Whether all that a stripe holds lies where it belongs.
//!
//! When a stripe comes into use, keys move to it, and what the others held of
//! these keys stays behind. Such a stripe is settled again once its cursor has
//! gone round: then it holds only what came to it since.

use super::live::{Core, LiveStripe};
use crate::cache::invalidation::{LayoutRow, SETTLED, UNDATED};
use std::sync::atomic::{AtomicU64, Ordering};

/// From which position of the cursor on a stripe is settled, or [`SETTLED`], or
/// [`UNDATED`].
#[derive(Debug)]
pub(super) struct Settling {
    at: AtomicU64,
    /// What the durable state has.
    written: AtomicU64,
}

impl Default for Settling {
    fn default() -> Self {
        Self {
            at: AtomicU64::new(UNDATED),
            written: AtomicU64::new(UNDATED),
        }
    }
}

impl LiveStripe {
    /// Whether it holds only keys that belong on it. While it is being read,
    /// that is known only if it was so before.
    pub(in crate::cache) fn is_settled(&self) -> bool {
        let at = self.settling.at.load(Ordering::Acquire);
        at == SETTLED
            || self
                .core
                .get()
                .is_some_and(|core| core.directory.cursor() >= at)
    }

    /// Whether it is seen to be open for the first time in this run: its
    /// headers say that it takes part.
    pub(in crate::cache) fn opens_now(&self) -> bool {
        !self.was_opened() && self.has_opened() && !self.opened.swap(true, Ordering::AcqRel)
    }

    /// Whether it may miss a removal for the first time, since it was not seen
    /// to be open.
    pub(in crate::cache) fn misses_now(&self) -> bool {
        !self.was_opened() && !self.missed.swap(true, Ordering::AcqRel)
    }

    /// Whether it was seen to be open in this run.
    pub(in crate::cache) fn was_opened(&self) -> bool {
        self.opened.load(Ordering::Acquire)
    }

    /// Notes that it has never held anything.
    pub(super) fn begin_settled(&self) {
        self.settling.at.store(SETTLED, Ordering::Release);
    }

    /// Whether it takes part for the first time, and has never held anything.
    pub(in crate::cache) fn is_new(&self) -> bool {
        self.settling.at.load(Ordering::Acquire) == SETTLED
    }

    /// Takes over what the durable state has of it.
    pub(in crate::cache) fn set_settling(&self, row: LayoutRow) {
        self.settling.at.store(row.settles_at, Ordering::Release);
        self.settling
            .written
            .store(row.settles_at, Ordering::Release);
    }

    /// Dates the last change of the placement: what it holds by now may belong
    /// elsewhere. While it is being read, [`LiveStripe::date_if_undated`] is to
    /// follow.
    pub(in crate::cache) fn date_change(&self) {
        if let Some(core) = self.core.get() {
            self.settling.at.store(core.next_turn(), Ordering::Release);
        }
    }

    /// As [`LiveStripe::date_change`], once it has been read.
    pub(super) fn date_if_undated(&self) {
        if let Some(core) = self.core.get() {
            self.settling.change(UNDATED, core.next_turn());
        }
    }

    /// What the durable state has of it and what it is to have, if that has
    /// changed; then it is taken to be written.
    pub(in crate::cache) fn settling_to_write(&self) -> Option<(LayoutRow, LayoutRow)> {
        let at = self.settling.at.load(Ordering::Acquire);
        if at != UNDATED && self.is_settled() {
            self.settling.change(at, SETTLED);
        }
        let now = self.settling.at.load(Ordering::Acquire);
        let before = self.settling.written.swap(now, Ordering::AcqRel);
        (before != now).then(|| (self.layout_row(before), self.layout_row(now)))
    }

    /// Its row of the layout.
    pub(in crate::cache) fn layout_row(&self, settles_at: u64) -> LayoutRow {
        LayoutRow {
            volume: self.volume,
            fast: self.is_fast(),
            settles_at,
        }
    }
}

impl Settling {
    /// Changes the position unless it has become another one meanwhile.
    fn change(&self, from: u64, to: u64) {
        let orderings = (Ordering::AcqRel, Ordering::Acquire);
        let changed = self.at.compare_exchange(from, to, orderings.0, orderings.1);
        // A newer change of the placement has the last word.
        changed.ok();
    }
}

impl Core {
    /// The cursor's position after a turn from now.
    fn next_turn(&self) -> u64 {
        self.directory.cursor().saturating_add(self.log_bytes)
    }
}
