//! Devices, and the cache on raw loop devices; those need root and losetup.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod backends;
#[expect(
    dead_code,
    reason = "the tests of the whole product use the rest of it"
)]
#[path = "../support/loop_device.rs"]
mod loop_device;

use bytes::Bytes;
use loop_device::LoopDevice;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use strata::base::clock::SystemClock;
use strata::cache::{
    Cache, CacheKey, CacheOptions, NewObject, NotStored, ObjectKind, RamOptions, Readiness,
    SpanOptions, SpanOutcome, SpanReport, SpanState, SpanTier, Tier,
};
use strata::metrics::{Metric, Registry};

/// Bytes of a device.
const SIZE: u64 = 128 << 20;

struct Running {
    cache: Arc<Cache>,
    registry: Arc<Registry>,
    reports: Vec<SpanReport>,
}

/// A cache on a device, fast tier, whose RAM cache takes nothing.
async fn start(device: &Path, state: &Path) -> Running {
    let options = CacheOptions {
        spans: vec![SpanOptions {
            tier: Some(SpanTier::Fast),
            ..SpanOptions::at(device)
        }],
        state_dir: Some(state.to_owned()),
        ram: RamOptions {
            cutoff: 1,
            ..RamOptions::default()
        },
        ..CacheOptions::default()
    };
    let registry = Registry::new();
    let (cache, reports) = Cache::open(options, Arc::new(SystemClock::new()), &registry);
    cache.loaded().await;
    Running {
        cache,
        registry,
        reports,
    }
}

fn key(n: usize) -> CacheKey {
    CacheKey::of_url(format!("http://device/{n}"))
}

fn body(n: usize) -> Bytes {
    let word = format!("{n} ");
    word.bytes()
        .cycle()
        .take(1000 + n * 37)
        .collect::<Vec<u8>>()
        .into()
}

fn store(cache: &Arc<Cache>, n: usize) -> Result<(), NotStored> {
    let mut writer = cache.writer(NewObject {
        key: key(n),
        kind: ObjectKind::Object,
        meta: Bytes::from_static(b"head"),
        body_len: None,
        epoch: cache.epoch(),
    })?;
    writer.push(&body(n))?;
    writer.commit()
}

async fn holds(cache: &Cache, n: usize) -> bool {
    let Ok(hit) = cache.read(&key(n)).await else {
        return false;
    };
    assert_eq!(hit.tier, Tier::Fast);
    hit.body.whole().unwrap().concat() == body(n)
}

#[tokio::test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
async fn a_raw_device_keeps_its_objects_under_another_loop_number() {
    let dir = tempfile::tempdir().unwrap();
    let device = LoopDevice::zeroed(SIZE);
    let running = start(device.path(), dir.path()).await;
    assert!(matches!(
        running.reports[0].outcome,
        SpanOutcome::Used {
            formatted: true,
            ..
        }
    ));
    for n in 0..300 {
        store(&running.cache, n).unwrap();
    }
    running.cache.shutdown().await;
    drop(running);
    let device = device.renumbered();
    let again = start(device.path(), dir.path()).await;
    for n in 0..300 {
        assert!(holds(&again.cache, n).await, "{n}");
    }
    assert_eq!(again.registry.get(Metric::CacheSsdReadSuccess), 300);
    assert_eq!(again.registry.get(Metric::CacheReadSuccess), 300);
    again.cache.shutdown().await;
}

#[tokio::test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
async fn a_device_with_swap_is_refused_by_name_and_its_hash_stays() {
    refused_untouched(LoopDevice::make_swap, "swap").await;
}

#[tokio::test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
async fn a_device_with_ext4_is_refused_by_name_and_its_hash_stays() {
    refused_untouched(LoopDevice::make_ext4, "ext4").await;
}

async fn refused_untouched(make: fn(&LoopDevice), name: &str) {
    let dir = tempfile::tempdir().unwrap();
    let device = LoopDevice::zeroed(SIZE);
    make(&device);
    let before = hash(&device.backing());
    let running = start(device.path(), dir.path()).await;
    let SpanOutcome::Refused(why) = &running.reports[0].outcome else {
        panic!("the device was taken");
    };
    let cure = format!(
        "traffic_ctl storage init {} --force",
        device.path().display()
    );
    assert!(why.contains(name) && why.contains(&cure), "{why}");
    assert_eq!(running.cache.readiness(), Readiness::NoSpan);
    assert_eq!(store(&running.cache, 1), Err(NotStored::NoSpan));
    running.cache.shutdown().await;
    drop(running);
    assert_eq!(hash(&device.backing()), before);
}

#[tokio::test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
async fn a_device_in_use_is_refused_though_it_were_ours_to_take() {
    let dir = tempfile::tempdir().unwrap();
    let device = LoopDevice::zeroed(SIZE);
    let first = start(device.path(), dir.path()).await;
    let state = tempfile::tempdir().unwrap();
    let second = start(device.path(), state.path()).await;
    let SpanOutcome::Refused(why) = &second.reports[0].outcome else {
        panic!("the device was taken twice");
    };
    assert!(why.contains("EBUSY") && why.contains("unmount"), "{why}");
    second.cache.shutdown().await;
    first.cache.shutdown().await;
}

#[tokio::test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
async fn a_device_is_taken_over_by_force_and_then_taken_into_use() {
    let dir = tempfile::tempdir().unwrap();
    let device = LoopDevice::zeroed(SIZE);
    device.make_ext4();
    let running = start(device.path(), dir.path()).await;
    assert!(running.cache.init(device.path(), false).is_err());
    running.cache.init(device.path(), true).unwrap();
    running.cache.online(device.path()).unwrap();
    running.cache.loaded().await;
    store(&running.cache, 1).unwrap();
    assert!(holds(&running.cache, 1).await);
    running.cache.offline(device.path()).await.unwrap();
    assert!(!holds(&running.cache, 1).await);
    running.cache.shutdown().await;
}

#[tokio::test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
async fn a_device_cut_short_under_the_cache_is_read_errors_until_it_is_taken_out() {
    let dir = tempfile::tempdir().unwrap();
    let device = LoopDevice::zeroed(SIZE);
    let running = start(device.path(), dir.path()).await;
    for n in 0..50 {
        store(&running.cache, n).unwrap();
    }
    running.cache.sync().await;
    let backing = File::options().write(true).open(device.backing()).unwrap();
    backing.set_len(1 << 20).unwrap();
    for n in 0..50 {
        assert!(!holds(&running.cache, n).await, "{n}");
    }
    let span = running.cache.status().spans.remove(0);
    assert_eq!(span.state, SpanState::Offline { errors: 5 });
    assert_eq!(running.registry.get(Metric::CacheSpanErrorsRead), 5);
    // The device as it was, but for what was lost: blank where it was cut.
    backing.set_len(SIZE).unwrap();
    running.cache.online(device.path()).unwrap();
    running.cache.loaded().await;
    store(&running.cache, 50).unwrap();
    assert!(holds(&running.cache, 50).await);
    running.cache.shutdown().await;
}

#[tokio::test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
async fn a_blank_device_in_the_place_of_one_that_is_offline_is_taken_in_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("disk");
    let first = LoopDevice::zeroed(SIZE);
    std::os::unix::fs::symlink(first.path(), &place).unwrap();
    let running = start(&place, dir.path()).await;
    store(&running.cache, 1).unwrap();
    running.cache.offline(&place).await.unwrap();
    let second = LoopDevice::zeroed(SIZE);
    std::fs::remove_file(&place).unwrap();
    std::os::unix::fs::symlink(second.path(), &place).unwrap();
    running.cache.online(&place).unwrap();
    running.cache.loaded().await;
    assert!(!holds(&running.cache, 1).await);
    store(&running.cache, 1).unwrap();
    assert!(holds(&running.cache, 1).await);
    assert_eq!(running.cache.status().spans[0].state, SpanState::Online);
    running.cache.shutdown().await;
}

#[tokio::test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
async fn a_mounted_device_is_refused_and_a_span_too_large_for_its_file_system_too() {
    let dir = tempfile::tempdir().unwrap();
    let device = LoopDevice::zeroed(SIZE);
    device.make_ext4();
    let mount = device.mounted();
    let running = start(device.path(), dir.path()).await;
    assert!(running.cache.init(device.path(), true).is_err());
    let SpanOutcome::Refused(why) = &running.reports[0].outcome else {
        panic!("the device was taken");
    };
    assert!(why.contains("EBUSY") && why.contains("unmount"), "{why}");
    running.cache.shutdown().await;
    let options = CacheOptions {
        spans: vec![SpanOptions {
            size: Some(SIZE),
            ..SpanOptions::at(mount.path("span"))
        }],
        ..CacheOptions::default()
    };
    let clock = Arc::new(SystemClock::new());
    let (cache, reports) = Cache::open(options, clock, &Registry::new());
    let SpanOutcome::Refused(why) = &reports[0].outcome else {
        panic!("there is no room for the file");
    };
    assert!(
        why.contains("ENOSPC") && why.contains("lower SIZE"),
        "{why}"
    );
    assert!(!mount.path("span").exists());
    cache.shutdown().await;
}

/// A hash of all of a file.
fn hash(path: &Path) -> u128 {
    let mut bytes = Vec::new();
    File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
    xxhash_rust::xxh3::xxh3_128(&bytes)
}

/// Leaves no room on the file system that `path` is to lie on.
fn fill_up(path: &Path) {
    let mut file = File::create(path).unwrap();
    let mut piece = vec![1; 64 << 10];
    while !piece.is_empty() {
        if file.write_all(&piece).is_err() {
            piece.truncate(piece.len() / 2);
        }
    }
    file.sync_all().unwrap();
}

#[tokio::test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
async fn starts_on_a_full_disk_keep_what_the_spans_hold() {
    let system = LoopDevice::zeroed(SIZE);
    system.make_ext4();
    let mount = system.mounted();
    let state = mount.path("state");
    let device = LoopDevice::zeroed(SIZE);
    let running = start(device.path(), &state).await;
    store(&running.cache, 1).unwrap();
    running.cache.shutdown().await;
    drop(running);
    fill_up(&mount.path("logs"));
    for turn in 0..3 {
        let again = start(device.path(), &state).await;
        assert!(holds(&again.cache, 1).await, "start {turn} on a full disk");
        again.cache.shutdown().await;
    }
}
