//! What a transaction can reach: the thread's own things and the shared ones.

use super::answer::Voice;
use super::life::Life;
use super::snapshot::Snapshot;
use crate::base::clock::{Clock, WallTime};
use crate::http::date;
use crate::metrics::Cells;
use arc_swap::ArcSwap;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

/// What one event thread hands to its transactions.
pub struct WorkerContext {
    /// The configuration in force.
    pub snapshot: Arc<ArcSwap<Snapshot>>,
    /// This thread's counters.
    pub cells: Arc<Cells>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Whether to go on.
    pub life: Life,
    date: DateCache,
}

impl WorkerContext {
    /// A thread's context.
    #[must_use]
    pub fn new(
        snapshot: Arc<ArcSwap<Snapshot>>,
        cells: Arc<Cells>,
        clock: Arc<dyn Clock>,
        life: Life,
    ) -> Self {
        Self {
            snapshot,
            cells,
            clock,
            life,
            date: DateCache::default(),
        }
    }

    /// What our own answers say about us and about now.
    #[must_use]
    pub fn voice(&self, snapshot: &Snapshot) -> Voice {
        let tells = snapshot.records.http_response_server_enabled != 0;
        Voice {
            server: tells.then(|| Arc::clone(&snapshot.records.http_response_server_str)),
            date: self.date(self.clock.wall()),
        }
    }

    /// `now` as the value of Date (RFC 9110 5.6.7); formatted once a second.
    #[must_use]
    pub fn date(&self, now: WallTime) -> [u8; 29] {
        self.date.at(now)
    }
}

impl fmt::Debug for WorkerContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let generation = self.snapshot.load().generation;
        f.debug_struct("WorkerContext")
            .field("generation", &generation)
            .field("life", &self.life)
            .finish_non_exhaustive()
    }
}

/// The text of the current second.
#[derive(Debug, Default)]
struct DateCache(Cell<Option<(u64, [u8; 29])>>);

impl DateCache {
    fn at(&self, now: WallTime) -> [u8; 29] {
        let second = now.as_secs();
        if let Some((known, text)) = self.0.get()
            && known == second
        {
            return text;
        }
        let text = format_date(second);
        self.0.set(Some((second, text)));
        text
    }
}

/// Years past 9999 have no such date; the clock of a machine isn't there.
fn format_date(second: u64) -> [u8; 29] {
    const LAST: u64 = 253_402_300_799;
    let text = date::format(WallTime::from_secs(second.min(LAST)));
    <[u8; 29]>::try_from(text.as_bytes()).unwrap_or(*b"Thu, 01 Jan 1970 00:00:00 GMT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_follows_the_second() {
        let cache = DateCache::default();
        let at = |secs| String::from_utf8(cache.at(WallTime::from_secs(secs)).to_vec()).unwrap();
        assert_eq!(at(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(at(784_111_778), "Sun, 06 Nov 1994 08:49:38 GMT");
        assert_eq!(at(u64::MAX / 1000), "Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
