//! The process that is killed: stores, updates, removals, purges, refreshes.

use crate::history::{Op, op};
use bytes::Bytes;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use strata::base::clock::SystemClock;
use strata::base::prng::Prng;
use strata::cache::{
    Cache, CacheKey, CacheOptions, Miss, NewObject, NotStored, ObjectKind, RamOptions, SpanOptions,
    SpanReport, SpanTier,
};
use strata::metrics::Registry;

/// Operations between two waits for the devices.
const BETWEEN_SYNCS: u64 = 16;
/// The files of the spans.
pub(crate) const SPANS: [&str; 2] = ["one", "other"];
/// Bytes of a span.
const SPAN: u64 = 128 << 20;

/// The cache in `dir`: two file spans, and a RAM cache that takes
/// nothing, so that every read comes from a device.
pub(crate) fn open(dir: &Path, turn: u64) -> Arc<Cache> {
    let (cache, reports) = open_with_reports(dir, turn, &Registry::new());
    for report in reports {
        assert!(
            matches!(report.outcome, strata::cache::SpanOutcome::Used { .. }),
            "{report:?}"
        );
    }
    cache
}

/// The same, whatever became of the spans.
pub(crate) fn open_any(dir: &Path, turn: u64, registry: &Registry) -> Arc<Cache> {
    open_with_reports(dir, turn, registry).0
}

/// In turns, both spans are of the capacity tier, or one or the other is of
/// the fast tier and keeps what it has, while its keys are stored anew in the
/// other.
fn tier(span: u64, turn: u64) -> SpanTier {
    if turn % 3 == span {
        SpanTier::Fast
    } else {
        SpanTier::Capacity
    }
}

fn open_with_reports(dir: &Path, turn: u64, registry: &Registry) -> (Arc<Cache>, Vec<SpanReport>) {
    let span = |(at, name): (u64, &str)| SpanOptions {
        size: Some(SPAN),
        tier: Some(tier(at, turn)),
        ..SpanOptions::at(dir.join(name))
    };
    let options = CacheOptions {
        spans: (0..).zip(SPANS).map(span).collect(),
        state_dir: Some(dir.to_owned()),
        ram: RamOptions {
            cutoff: 1,
            ..RamOptions::default()
        },
        threads_per_disk: 2,
        ..CacheOptions::default()
    };
    Cache::open(options, Arc::new(SystemClock::new()), registry)
}

/// Works until it is killed, and says how far it is.
pub(crate) async fn work(cache: &Arc<Cache>, seed: u64, from: u64) {
    cache.loaded().await;
    for number in from.. {
        let (key, op) = op(seed, number);
        run(cache, number, key, op).await;
        if number % BETWEEN_SYNCS == 0 {
            cache.sync().await;
            say(&format!("written at {}", number + 1));
        }
    }
}

async fn run(cache: &Arc<Cache>, number: u64, key: u64, op: Op) {
    match op {
        Op::Store => {
            while store(cache, number, key) == Err(NotStored::Backlog) {
                cache.sync().await;
            }
        }
        Op::Remove => cache.remove(&url(key)),
        Op::Purge => {
            cache.purge(&url(key)).await.unwrap();
            say(&format!("purged at {number}"));
        }
        Op::Refresh => {
            if let Ok(hit) = cache.read(&url(key)).await {
                let refreshed = cache.refresh(&hit.copy, &url(key), hit.meta.clone());
                // It may have moved to another span meanwhile.
                let known = [Ok(()), Err(NotStored::Backlog), Err(NotStored::Replaced)];
                assert!(known.contains(&refreshed), "{refreshed:?}");
            }
        }
    }
}

fn store(cache: &Arc<Cache>, number: u64, key: u64) -> Result<(), NotStored> {
    let object = NewObject {
        key: url(key),
        kind: ObjectKind::Object,
        meta: Bytes::copy_from_slice(&number.to_le_bytes()),
        body_len: None,
        epoch: cache.epoch(),
    };
    let mut writer = cache.writer(object).unwrap();
    let stored = writer
        .push(&body(key, number))
        .and_then(|()| writer.commit());
    assert!(
        matches!(stored, Ok(()) | Err(NotStored::Backlog)),
        "{stored:?}"
    );
    stored
}

pub(crate) fn url(key: u64) -> CacheKey {
    CacheKey::of_url(format!("http://crash/{key}"))
}

/// The body of a version: its length and every byte follow from its number;
/// some are longer than a fragment.
pub(crate) fn body(key: u64, number: u64) -> Bytes {
    let mut prng = Prng::seeded(key << 32 ^ number);
    let long = prng.below(64) == 0;
    let len = if long { 2_500_000 } else { prng.below(30_000) };
    let words = (0..len / 8).flat_map(|_| prng.next_u64().to_le_bytes());
    words.collect::<Vec<u8>>().into()
}

/// The version that a key has, if any.
pub(crate) async fn version_of(cache: &Cache, key: u64) -> Result<Option<u64>, String> {
    let mut hit = match cache.read(&url(key)).await {
        Ok(hit) => hit,
        // What a batch in flight at the kill has overwritten is gone, but its
        // entry is there until somebody comes to read it.
        Err(Miss::Absent | Miss::Invalidated | Miss::Overtaken) => return Ok(None),
        Err(other) => return Err(format!("key {key}: {other}")),
    };
    if hit.suspect {
        return Err(format!("key {key} is suspect"));
    }
    let number = u64::from_le_bytes(hit.meta.as_ref().try_into().unwrap());
    let mut found = Vec::new();
    while let Some(piece) = hit.body.next().await.map_err(|error| error.to_string())? {
        found.extend_from_slice(&piece);
    }
    if found == body(key, number) {
        Ok(Some(number))
    } else {
        Err(format!("key {key}, version {number}: wrong bytes"))
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}
