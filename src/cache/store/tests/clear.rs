//! Clearing: at once, for good, and of what is away too.

use super::machine::{Machine, text};
use super::*;
use crate::cache::tier::SpanTier;

const OBJECTS: u32 = 60;

async fn hits(cache: &Cache) -> usize {
    let mut hits = 0;
    for n in 0..OBJECTS {
        hits += usize::from(cache.read(&key(n)).await.is_ok());
    }
    hits
}

fn fill(cache: &Arc<Cache>) {
    for n in 0..OBJECTS {
        store(cache, &key(n), &text(n, 2000)).unwrap();
    }
}

/// Two disks, a quarter of the objects in RAM too.
fn machine() -> Machine {
    let mut machine = Machine::with(&[SpanTier::Capacity, SpanTier::Capacity]);
    machine.ram.cutoff = 0;
    machine
}

#[tokio::test]
async fn a_clear_takes_all_from_ram_and_spans_at_once_and_for_good() {
    let machine = machine();
    let running = machine.start().await;
    fill(&running.cache);
    let old = running.cache.read(&key(1)).await.unwrap();
    let late = object(&key(100), running.cache.epoch());
    let late = running.cache.writer(late).unwrap();
    running.cache.clear(None).await.unwrap();
    assert_eq!(hits(&running.cache).await, 0);
    assert_eq!(late.commit(), Err(NotStored::Invalidated));
    let refreshed = running.cache.refresh(&old.copy, &key(1), Bytes::new());
    assert_eq!(refreshed, Err(NotStored::Replaced));
    store(&running.cache, &key(7), b"after").unwrap();
    assert_eq!(hits(&running.cache).await, 1);
    running.cache.sync().await;
    running.kill();
    let again = machine.start().await;
    assert_eq!(hits(&again.cache).await, 1);
    assert_eq!(body(&again.cache.read(&key(7)).await.unwrap()), b"after");
}

#[tokio::test]
async fn what_lay_on_a_span_unread_is_dead_after_a_restart() {
    let machine = machine();
    let running = machine.start().await;
    fill(&running.cache);
    running.cache.sync().await;
    running.cache.clear(None).await.unwrap();
    running.kill();
    let again = machine.start().await;
    assert_eq!(hits(&again.cache).await, 0);
    fill(&again.cache);
    assert_eq!(hits(&again.cache).await, 60);
}

#[tokio::test]
async fn a_span_that_is_away_is_cleared_too() {
    let mut machine = machine();
    let running = machine.start().await;
    fill(&running.cache);
    running.cache.shutdown().await;
    running.kill();
    let away = machine.disks.pop().unwrap();
    let without = machine.start().await;
    let left = hits(&without.cache).await;
    without.cache.clear(None).await.unwrap();
    without.kill();
    machine.disks.push(away);
    let again = machine.start().await;
    assert!((10..50).contains(&left), "{left}");
    assert_eq!(hits(&again.cache).await, 0);
}

#[tokio::test]
async fn a_clear_of_one_volume_leaves_the_others() {
    let mut machine = machine();
    machine.volumes = vec![1, 2];
    let running = machine.start().await;
    assert_eq!(running.cache.volumes(), [1, 2].into());
    fill(&running.cache);
    running.cache.sync().await;
    assert_eq!(hits(&running.cache).await, 60);
    running.cache.clear(Some(2)).await.unwrap();
    let left = hits(&running.cache).await;
    assert!((10..50).contains(&left), "{left}");
    running.kill();
    let again = machine.start().await;
    assert_eq!(hits(&again.cache).await, left);
    again.cache.clear(Some(1)).await.unwrap();
    assert_eq!(hits(&again.cache).await, 0);
}
