//! The RAM cache over a restart.

use super::machine::{Machine, Running, all, text};
use super::*;
use crate::cache::tier::SpanTier;
use std::fs;
use std::time::Duration;

const OBJECTS: u32 = 50;

/// A machine whose RAM cache takes all.
fn machine() -> Machine {
    let mut machine = Machine::with(&[SpanTier::Capacity]);
    machine.ram = RamOptions::default();
    machine
}

fn fill(cache: &Arc<Cache>) {
    for n in 0..OBJECTS {
        store(cache, &key(n), &text(n, 5000)).unwrap();
        heat(cache, n);
    }
}

/// What makes an object hot enough to be remembered.
fn heat(cache: &Arc<Cache>, n: u32) {
    for _ in 0..2 {
        assert!(cache.read_ram(&key(n)).is_some());
    }
}

async fn warmed(machine: &Machine) -> Running {
    let running = machine.start().await;
    running.cache.warmed().await;
    running
}

/// How many of the objects RAM holds; each as it was stored.
fn in_ram(running: &Running) -> u32 {
    let held = (0..OBJECTS).filter_map(|n| Some((n, running.cache.read_ram(&key(n))?)));
    let right = held.inspect(|(n, hit)| assert_eq!(body(hit), text(*n, 5000)));
    u32::try_from(right.count()).unwrap()
}

async fn stop(running: Running) {
    running.cache.shutdown().await;
    running.kill();
}

#[tokio::test]
async fn what_was_hot_is_in_ram_after_a_restart_without_being_asked_for() {
    let machine = machine();
    let first = machine.start().await;
    fill(&first.cache);
    let long = vec![9; 3 << 20];
    store(&first.cache, &key(1000), &long).unwrap();
    heat(&first.cache, 1000);
    // One that nobody came back for is not hot.
    store(&first.cache, &key(1001), b"once").unwrap();
    assert!(first.cache.read_ram(&key(1001)).is_some());
    stop(first).await;
    let second = warmed(&machine).await;
    assert_eq!(in_ram(&second), OBJECTS);
    let mut hit = second.cache.read_ram(&key(1000)).unwrap();
    assert!(all(&mut hit).await == long);
    let count = |metric| second.registry.get(metric);
    assert_eq!(count(Metric::CacheRamCacheWarmed), u64::from(OBJECTS) + 1);
    assert!(second.cache.read_ram(&key(1001)).is_none());
    stop(second).await;
    let second = warmed(&machine).await;
    assert_eq!(in_ram(&second), OBJECTS);
    let mut hit = second.cache.read_ram(&key(1000)).unwrap();
    assert!(all(&mut hit).await == long);
    // None of it counts as a read of anyone's.
    assert_eq!(second.counts(), [51, 51, 0, 0]);
}

#[tokio::test]
async fn a_purge_or_an_update_wins_over_what_is_read_ahead() {
    let machine = machine();
    let first = machine.start().await;
    fill(&first.cache);
    stop(first).await;
    let second = machine.start().await;
    let cache = &second.cache;
    cache.purge(&key(1)).await.unwrap();
    store(cache, &key(2), b"newer").unwrap();
    cache.warmed().await;
    assert!(cache.read_ram(&key(1)).is_none());
    assert_eq!(body(&cache.read_ram(&key(2)).unwrap()), b"newer");
    assert!(cache.read_ram(&key(3)).is_some());
}

#[tokio::test]
async fn a_damaged_or_missing_file_is_a_cold_ram_and_no_more() {
    let machine = machine();
    let first = machine.start().await;
    fill(&first.cache);
    stop(first).await;
    let file = machine.state.path().join("ram.keys");
    let mut bytes = fs::read(&file).unwrap();
    bytes[40] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let second = warmed(&machine).await;
    assert_eq!(in_ram(&second), 0);
    for n in 0..OBJECTS {
        assert!(second.cache.read(&key(n)).await.is_ok());
    }
    stop(second).await;
    fs::remove_file(&file).unwrap();
    let third = warmed(&machine).await;
    assert_eq!(in_ram(&third), 0);
}

#[tokio::test]
async fn a_stop_before_all_was_read_ahead_forgets_none_of_it() {
    let mut machine = machine();
    let first = machine.start().await;
    fill(&first.cache);
    stop(first).await;
    // One object, and then a long pause.
    machine.warm_rate = 1;
    let second = machine.start().await;
    stop(second).await;
    machine.warm_rate = 1 << 30;
    let third = warmed(&machine).await;
    assert_eq!(in_ram(&third), OBJECTS);
}

#[tokio::test]
async fn what_is_read_ahead_takes_no_more_than_the_room_that_there_is() {
    let mut machine = machine();
    let first = machine.start().await;
    fill(&first.cache);
    stop(first).await;
    machine.ram.size = Some(100_000);
    let second = warmed(&machine).await;
    let held = in_ram(&second);
    assert!((10..20).contains(&held), "{held}");
}

#[tokio::test]
async fn nothing_is_saved_where_the_record_says_never() {
    for save_every in [Duration::ZERO, Duration::from_secs(300)] {
        let machine = machine();
        let first = machine.start().await;
        fill(&first.cache);
        first.cache.configure(LiveOptions {
            save_every,
            ..**first.cache.live.load()
        });
        stop(first).await;
        let file = machine.state.path().join("ram.keys");
        assert_eq!(file.exists(), !save_every.is_zero());
    }
}
