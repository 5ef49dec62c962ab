//! A look around the log's end: did it go on behind a batch that is lost?
//!
//! A kill leaves nothing behind the batch that was in flight. If there is an
//! intact later one all the same, the disk lost or damaged what lies between,
//! and with it rows that say which older versions are gone. One that went
//! astray may lie before the end, over the header of the batch that came next.

use super::ring::RING_READ;
use super::{LOOK, Phase, Recovery};
use crate::base::planted::{Planted, is_planted};
use crate::cache::format::Unverified;
use crate::cache::format::batch::BatchHeader;
use crate::cache::format::{to_u64, to_usize};
use crate::cache::stripe::geometry::Geometry;

/// Bytes of one read.
const PIECE: u64 = RING_READ;

impl Recovery {
    /// Looks around the log's end, and at its start. After a clean stop there is nothing
    /// to look for.
    pub(super) fn look_ahead(&mut self, geometry: &Geometry) -> Phase {
        self.doubt |= self.lacks_opening() || self.lacks_reach(geometry);
        if self.report.clean || is_planted(Planted::NoLookAhead) {
            return Phase::Done;
        }
        Phase::Ahead(self.look_from(geometry))
    }

    /// Where the longest batch begins that reaches over the log's end, within
    /// this cycle.
    fn look_from(&self, geometry: &Geometry) -> u64 {
        let log_end = self.log.position;
        if is_planted(Planted::NoLookBack) {
            return log_end;
        }
        let room = log_end % geometry.log_bytes();
        log_end - self.longest(geometry).min(room)
    }

    /// Whether the header tells of a run's ring block, and nothing of that run
    /// was found: it may have gone on further ahead than anybody looks.
    fn lacks_opening(&self) -> bool {
        let told = self.header.filter(|header| header.is_opened);
        let is_lost = told.is_some_and(|header| self.log_run < header.run);
        is_lost && !is_planted(Planted::HeaderUnheard)
    }

    /// Whether the directory copy tells of batches that were not found: it was
    /// good only once they were written.
    fn lacks_reach(&self, geometry: &Geometry) -> bool {
        self.log_goes_on(geometry) < self.reach()
    }

    /// How far the directory copy may tell of the log.
    pub(super) fn reach(&self) -> u64 {
        let start = self.header.map_or(0, |header| header.log.position);
        if is_planted(Planted::ReachForgotten) {
            return 0;
        }
        start.saturating_add(self.table.reach)
    }

    /// As far as the longest batch reaches, or a start went on whose ring block
    /// is lost, and the first block of what comes there.
    fn ahead_end(&self, geometry: &Geometry) -> u64 {
        self.log_goes_on(geometry) + LOOK
    }

    /// What to read at `position`, and where that lies in the log.
    pub(super) fn ahead_range(&self, position: u64, geometry: &Geometry) -> (u64, u64) {
        let offset = position % geometry.log_bytes();
        let end = self.ahead_end(geometry);
        let room = geometry.log_bytes() - offset;
        let length = end.saturating_sub(position).clamp(LOOK, PIECE);
        (offset, length.min(room))
    }

    pub(super) fn take_ahead(&mut self, position: u64, bytes: &[u8]) {
        let Some((_, geometry)) = self.layout() else {
            return;
        };
        let later = |at: u64| {
            let bytes = bytes.get(to_usize(at)..).unwrap_or_default();
            self.is_later(position + at, bytes, geometry.log_bytes())
        };
        let length = to_u64(bytes.len());
        if (0..length).step_by(to_usize(LOOK)).any(later) {
            self.doubt = true;
        }
        let next = position + self.ahead_range(position, &geometry).1;
        self.phase = if self.doubt {
            Phase::Done
        } else {
            self.look_on(position, next, &geometry)
        };
    }

    fn look_on(&mut self, position: u64, next: u64, geometry: &Geometry) -> Phase {
        let log_bytes = geometry.log_bytes();
        let end = self.ahead_end(geometry);
        let cycle_start = (self.log.position / log_bytes + 1) * log_bytes;
        if position >= cycle_start {
            Phase::Done
        } else if next < end.min(cycle_start) {
            Phase::Ahead(next)
        } else {
            Phase::Ahead(cycle_start)
        }
    }

    /// Whether an intact batch of the log's last run or a later one lies here
    /// that its end does not lead to, if only because it went astray.
    fn is_later(&self, position: u64, bytes: &[u8], log_bytes: u64) -> bool {
        let claim = Unverified::<BatchHeader>::new(bytes);
        let found = claim.verify_anywhere(self.start.identity.uuid, log_bytes);
        found.is_ok_and(|batch| {
            let own = batch.position(log_bytes);
            let strays = batch.offset != position % log_bytes && !is_planted(Planted::StraysUnseen);
            // In either of its own places the next one is what was in flight.
            let cycle_start = (self.log.position / log_bytes + 1) * log_bytes;
            let in_flight = own == position && [self.log.position, cycle_start].contains(&own);
            let least = self.log.sequence + u64::from(in_flight);
            // Before the end, in its own place, it was in flight at a kill: the
            // next start went on behind it, and numbered another one like it.
            let is_ahead = own == position && own >= self.log.position;
            (is_ahead || strays) && batch.sequence >= least && batch.run >= self.log_run
        })
    }
}

/// Whether a read gave fewer bytes than it was to.
pub(super) fn is_short(bytes: &[u8], wanted: Option<(u64, u64)>) -> bool {
    wanted.is_some_and(|(_, length)| to_u64(bytes.len()) < length)
}
