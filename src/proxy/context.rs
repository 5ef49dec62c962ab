//! What a transaction can reach: the thread's own things and the shared ones.

use super::access_log::{AccessLog, LogSink};
use super::answer::Voice;
use super::cached::Fills;
use super::h2::UploadRoom;
use super::life::Life;
use super::origin::{OriginOptions, OriginPool, PoolParts, ServerCounts};
use super::resolve::Resolver;
use super::snapshot::Snapshot;
use super::tls::TlsServer;
use crate::base::clock::{Clock, WallTime};
use crate::cache::Cache;
use crate::http::date;
use crate::http::forwarding::ViaIdentity;
use crate::metrics::{Cells, Registry};
use arc_swap::ArcSwap;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// What all threads share. Cloning it shares it.
#[derive(Clone)]
pub struct Shared {
    /// The configuration in force.
    pub snapshot: Arc<ArcSwap<Snapshot>>,
    /// Where every thread's counters are summed.
    pub registry: Arc<Registry>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Whether to go on.
    pub life: Life,
    /// The cache; none when it is off.
    pub cache: Option<Arc<Cache>>,
    /// The fetches that requests share.
    pub fills: Arc<Fills>,
    /// Who we are in Via.
    pub identity: Arc<ViaIdentity>,
    /// Every address that this server listens on, the admin's too: no request
    /// is forwarded to one of them.
    pub own: Arc<[SocketAddr]>,
    /// Connections to origins over all threads.
    pub servers: Arc<ServerCounts>,
    /// Where transactions are written down.
    pub log: Arc<AccessLog>,
    /// TLS with clients; none where no port has it.
    pub tls: Option<Arc<TlsServer>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("generation", &self.snapshot.load().generation)
            .field("life", &self.life)
            .field("own", &self.own)
            .finish_non_exhaustive()
    }
}

/// What one event thread hands to its transactions.
#[derive(Debug)]
pub struct WorkerContext {
    /// What all threads share.
    pub shared: Shared,
    /// This thread's counters.
    pub cells: Arc<Cells>,
    /// This thread's connections to origins.
    pub origins: OriginPool,
    /// This thread's end of the access log.
    pub log: LogSink,
    /// Memory for uploads over this thread's HTTP/2 connections.
    pub uploads: UploadRoom,
    /// The configuration that the thread's own parts follow.
    generation: Cell<u64>,
    /// TLS with origins is read anew between two of them.
    origin: RefCell<Arc<OriginOptions>>,
    date: DateCache,
}

impl WorkerContext {
    /// This thread's context, to be made inside its `LocalSet`.
    #[must_use]
    pub fn new(shared: Shared) -> Self {
        let cells = shared.registry.cells();
        let snapshot = shared.snapshot.load_full();
        let resolver = Resolver::new(Arc::clone(&snapshot.names), Arc::clone(&cells));
        let parts = PoolParts {
            counts: Arc::clone(&shared.servers),
            cells: Arc::clone(&cells),
            clock: Arc::clone(&shared.clock),
        };
        let origins = OriginPool::new(Arc::clone(&snapshot.origin), resolver, parts);
        Self {
            log: shared.log.sink(Arc::clone(&cells)),
            uploads: UploadRoom::default(),
            shared,
            cells,
            origins,
            generation: Cell::new(snapshot.generation),
            origin: RefCell::new(Arc::clone(&snapshot.origin)),
            date: DateCache::default(),
        }
    }

    /// The configuration in force, for a transaction that begins; the thread's
    /// own parts follow it from now on.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        let snapshot = self.shared.snapshot.load_full();
        let is_new = self.generation.replace(snapshot.generation) != snapshot.generation
            || !Arc::ptr_eq(&self.origin.borrow(), &snapshot.origin);
        if is_new {
            self.origins.configure(&snapshot.origin, &snapshot.names);
            *self.origin.borrow_mut() = Arc::clone(&snapshot.origin);
        }
        snapshot
    }

    /// What our own answers say about us and about now.
    #[must_use]
    pub fn voice(&self, snapshot: &Snapshot) -> Voice {
        let tells = snapshot.records.http_response_server_enabled != 0;
        Voice {
            server: tells.then(|| Arc::clone(&snapshot.records.http_response_server_str)),
            date: self.date(self.shared.clock.wall()),
        }
    }

    /// `now` as the value of Date (RFC 9110 5.6.7); formatted once a second.
    #[must_use]
    pub fn date(&self, now: WallTime) -> [u8; 29] {
        self.date.at(now)
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
