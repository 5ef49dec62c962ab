//! The façade's promises, in RAM alone.

mod away;
mod budgets;
mod clear;
mod disk;
mod evacuation;
mod faults;
mod files;
mod image;
mod loading;
mod long;
mod machine;
mod pinning;
mod placement;
mod ranges;
mod returning;
mod sectors;
mod simulation;
mod tags;
mod tiers;
mod volumes;
mod warm;

use super::*;
use crate::base::clock::ManualClock;
use crate::cache::object::ObjectKind;
use crate::cache::options::RamOptions;

struct Bench {
    cache: Arc<Cache>,
    registry: Arc<Registry>,
}

fn bench(ram: RamOptions) -> Bench {
    let registry = Registry::new();
    let options = CacheOptions {
        ram,
        ..CacheOptions::default()
    };
    let (cache, reports) = Cache::open(options, Arc::new(ManualClock::default()), &registry);
    assert_eq!(reports, []);
    Bench { cache, registry }
}

fn plain() -> Bench {
    bench(RamOptions::default())
}

fn key(n: u32) -> CacheKey {
    CacheKey::of_url(format!("http://a/{n}"))
}

fn object(key: &CacheKey, epoch: u64) -> NewObject {
    NewObject {
        key: key.clone(),
        kind: ObjectKind::Object,
        meta: Bytes::from_static(b"head"),
        body_len: None,
        epoch,
    }
}

fn store(cache: &Arc<Cache>, key: &CacheKey, body: &[u8]) -> Result<(), NotStored> {
    let mut writer = cache.writer(object(key, cache.epoch()))?;
    writer.push(&Bytes::copy_from_slice(body))?;
    writer.commit()
}

fn body(hit: &Hit) -> Vec<u8> {
    hit.body.whole().unwrap().concat()
}

#[test]
fn a_store_that_is_lost_while_its_body_comes_counts_as_one_failure() {
    let bench = plain();
    let short = NewObject {
        body_len: Some(1),
        ..object(&key(1), bench.cache.epoch())
    };
    let mut writer = bench.cache.writer(short).unwrap();
    let data = Bytes::from_static(b"too long");
    assert_eq!(writer.push(&data), Err(NotStored::WrongLength));
    assert_eq!(bench.registry.get(Metric::CacheWriteFailure), 1);
    assert_eq!(writer.push(&data), Err(NotStored::Aborted));
    assert_eq!(writer.commit(), Err(NotStored::Aborted));
    assert_eq!(bench.registry.get(Metric::CacheWriteFailure), 1);
    assert_eq!(bench.registry.get(Metric::CacheWriteActive), 0);
}

#[tokio::test]
async fn a_stored_object_is_a_ram_hit_counted_once() {
    let bench = plain();
    store(&bench.cache, &key(1), b"hello").unwrap();
    let hit = bench.cache.read(&key(1)).await.unwrap();
    assert_eq!(
        (hit.tier, &*hit.meta, hit.body_len),
        (Tier::Ram, &b"head"[..], 5)
    );
    assert_eq!(body(&hit), b"hello");
    assert_eq!(bench.cache.read(&key(2)).await.unwrap_err(), Miss::Absent);
    assert_eq!(bench.registry.get(Metric::CacheReadSuccess), 1);
    assert_eq!(bench.registry.get(Metric::CacheRamReadSuccess), 1);
    assert_eq!(bench.registry.get(Metric::CacheWriteSuccess), 1);
    assert_eq!(bench.registry.get(Metric::CacheWriteActive), 0);
}

#[tokio::test]
async fn what_a_refused_store_was_to_replace_is_gone_but_for_a_marker() {
    let bench = plain();
    for n in 1..4 {
        store(&bench.cache, &key(n), b"old").unwrap();
    }
    let marker = NewObject {
        kind: ObjectKind::Marker,
        ..object(&key(4), bench.cache.epoch())
    };
    bench
        .cache
        .writer(marker.clone())
        .unwrap()
        .commit()
        .unwrap();
    let mut live = **bench.cache.live.load();
    live.max_doc_size = 5;
    bench.cache.configure(live);
    let refused = store(&bench.cache, &key(1), b"too long");
    assert_eq!(refused, Err(NotStored::TooLarge));
    let announced = NewObject {
        body_len: Some(6),
        ..object(&key(2), bench.cache.epoch())
    };
    let refused = bench.cache.writer(announced).unwrap_err();
    assert_eq!(refused, NotStored::TooLarge);
    bench.cache.writer(object(&key(3), 0)).unwrap().give_up();
    for n in 1..4 {
        assert_eq!(bench.cache.read(&key(n)).await.unwrap_err(), Miss::Absent);
    }
    let long = NewObject {
        meta: Bytes::from(vec![0; 300 << 10]),
        ..marker
    };
    let refused = bench.cache.writer(long).unwrap_err();
    assert_eq!(refused, NotStored::MetaTooLong);
    assert!(bench.cache.read(&key(4)).await.is_ok());
}

#[tokio::test]
async fn a_marker_is_found_and_counted_nowhere() {
    let bench = plain();
    let marker = NewObject {
        kind: ObjectKind::Marker,
        ..object(&key(1), bench.cache.epoch())
    };
    bench.cache.writer(marker).unwrap().commit().unwrap();
    assert_eq!(
        bench.cache.read(&key(1)).await.unwrap().kind,
        ObjectKind::Marker
    );
    assert_eq!(bench.registry.get(Metric::CacheReadSuccess), 0);
}

#[tokio::test]
async fn an_abandoned_or_wrong_store_leaves_what_was_there() {
    let bench = plain();
    store(&bench.cache, &key(1), b"old").unwrap();
    let mut writer = bench
        .cache
        .writer(object(&key(1), bench.cache.epoch()))
        .unwrap();
    writer.push(&Bytes::from_static(b"new")).unwrap();
    drop(writer);
    let known = NewObject {
        body_len: Some(2),
        ..object(&key(1), bench.cache.epoch())
    };
    let mut long = bench.cache.writer(known.clone()).unwrap();
    assert_eq!(
        long.push(&Bytes::from_static(b"new")),
        Err(NotStored::WrongLength)
    );
    assert_eq!(long.commit(), Err(NotStored::Aborted));
    let mut short = bench.cache.writer(known).unwrap();
    short.push(&Bytes::from_static(b"n")).unwrap();
    assert_eq!(short.commit(), Err(NotStored::WrongLength));
    assert_eq!(body(&bench.cache.read_ram(&key(1)).unwrap()), b"old");
    assert_eq!(bench.registry.get(Metric::CacheWriteActive), 0);
}

#[tokio::test]
async fn a_purge_or_removal_during_a_fill_keeps_its_object_out() {
    let bench = plain();
    let (before, other) = (bench.cache.epoch(), key(2));
    assert!(!bench.cache.purge(&key(1)).await.unwrap());
    bench.cache.remove(&key(3));
    for dead in [key(1), key(3)] {
        let writer = bench.cache.writer(object(&dead, before)).unwrap();
        assert_eq!(writer.commit(), Err(NotStored::Invalidated));
    }
    bench
        .cache
        .writer(object(&other, before))
        .unwrap()
        .commit()
        .unwrap();
    store(&bench.cache, &key(1), b"after").unwrap();
    assert!(bench.cache.purge(&key(1)).await.unwrap());
    assert!(bench.cache.read_ram(&key(1)).is_none());
}

#[tokio::test]
async fn a_refresh_changes_the_head_of_the_newest_copy_only() {
    let bench = plain();
    store(&bench.cache, &key(1), b"body").unwrap();
    let old = bench.cache.read_ram(&key(1)).unwrap();
    let newer = Bytes::from_static(b"newer head");
    bench.cache.refresh(&old.copy, &key(1), newer).unwrap();
    let hit = bench.cache.read_ram(&key(1)).unwrap();
    assert_eq!(
        (&*hit.meta, body(&hit)),
        (&b"newer head"[..], b"body".to_vec())
    );
    let again = bench.cache.refresh(&old.copy, &key(1), Bytes::new());
    assert_eq!(again, Err(NotStored::Replaced));
    bench.cache.remove(&key(1));
    let gone = bench.cache.refresh(&hit.copy, &key(1), Bytes::new());
    assert_eq!(gone, Err(NotStored::Replaced));
    assert_eq!(bench.registry.get(Metric::CacheUpdateSuccess), 1);
    assert_eq!(bench.registry.get(Metric::CacheUpdateFailure), 2);
}

#[tokio::test]
async fn a_follower_that_lags_reads_back_what_is_complete() {
    let bench = bench(RamOptions {
        cutoff: 0,
        ..RamOptions::default()
    });
    let fragment = usize::try_from(bench.cache.fragment_bytes()).unwrap();
    let mut writer = bench
        .cache
        .writer(object(&key(1), bench.cache.epoch()))
        .unwrap();
    writer.push(&Bytes::from(vec![1; fragment])).unwrap();
    assert!(writer.readback(0).is_none());
    writer.push(&Bytes::from_static(b"tail")).unwrap();
    let from = writer.readable() - 3;
    let mut reader = writer.readback(from).unwrap();
    assert_eq!(reader.next().await.unwrap().unwrap(), vec![1; 3]);
    assert_eq!(reader.next().await.unwrap(), None);
    writer.commit().unwrap();
    let hit = bench.cache.read(&key(1)).await.unwrap();
    assert_eq!(hit.body_len, u64::try_from(fragment).unwrap() + 4);
}

#[tokio::test]
async fn bodies_at_the_cutoff_are_refused_where_there_is_only_ram() {
    let bench = bench(RamOptions {
        cutoff: 40,
        ..RamOptions::default()
    });
    assert_eq!(
        store(&bench.cache, &key(1), &[0; 40]),
        Err(NotStored::TooLarge)
    );
    store(&bench.cache, &key(2), &[0; 39]).unwrap();
    bench.cache.set_ram_cutoff(0);
    store(&bench.cache, &key(1), &[0; 40]).unwrap();
}

#[tokio::test]
async fn nothing_is_purged_after_a_shutdown() {
    let bench = plain();
    bench.cache.shutdown().await;
    let error = bench.cache.purge(&key(1)).await.unwrap_err();
    assert!(matches!(error, PurgeError::Closed));
}
