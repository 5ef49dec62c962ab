//! A start whose directory pages have not been read yet.

use super::machine::{Machine, Running, all, text};
use super::*;
use crate::cache::format::directory_page::DISK_PAGE_BYTES;
use crate::cache::inspect::{Readiness, SpanState};
use crate::cache::tier::SpanTier;
use std::time::Duration;

const OBJECTS: u32 = 800;

/// A machine that holds objects and a copy of the directory, started again; the
/// directory's page is not read before the disk lets it go.
async fn held() -> (Machine, Running) {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    for n in 0..OBJECTS {
        store(&running.cache, &key(n), &text(n, 6000)).unwrap();
        if n % 200 == 0 {
            running.cache.sync().await;
        }
    }
    running.clock.advance(Duration::from_secs(100));
    store(&running.cache, &key(0), &text(0, 6000)).unwrap();
    // The cache's own thread may be amid the directory's sync.
    while running.registry.get(Metric::CacheSyncCount) == 0 {
        running.cache.sync().await;
        tokio::task::yield_now().await;
    }
    running.cache.shutdown().await;
    running.kill();
    let running = start_held(&machine).await;
    (machine, running)
}

async fn start_held(machine: &Machine) -> Running {
    machine.disks[0].1.hold(DISK_PAGE_BYTES);
    let running = machine.start_now();
    running.cache.judged().await;
    running
}

fn set_load_wait(cache: &Cache, millis: u64) {
    cache.configure(LiveOptions {
        load_wait: Duration::from_millis(millis),
        ..**cache.live.load()
    });
}

async fn assert_all_there(cache: &Cache) {
    for n in 0..OBJECTS {
        let mut hit = cache.read(&key(n)).await.unwrap();
        assert_eq!(all(&mut hit).await, text(n, 6000), "{n}");
    }
}

#[tokio::test]
async fn a_read_waits_for_its_page_or_is_a_miss_as_the_record_says() {
    let (machine, running) = held().await;
    let cache = &running.cache;
    for millis in [0, 1] {
        set_load_wait(cache, millis);
        assert_eq!(cache.read(&key(7)).await.unwrap_err(), Miss::NotReady);
    }
    let count = |metric| running.registry.get(metric);
    let waits = [Metric::CacheReadWaited, Metric::CacheReadNotLoaded];
    assert_eq!(waits.map(count), [2, 2]);
    set_load_wait(cache, 60_000);
    let key = key(7);
    let letting_go = async { machine.disks[0].1.let_go() };
    let (hit, ()) = tokio::join!(cache.read(&key), letting_go);
    assert_eq!(all(&mut hit.unwrap()).await, text(7, 6000));
    assert_eq!(waits.map(count), [3, 2]);
    assert_all_there(cache).await;
}

#[tokio::test]
async fn a_start_is_ready_before_its_pages_are_read_and_says_how_many_are_not() {
    let (machine, running) = held().await;
    let cache = &running.cache;
    assert_eq!(cache.readiness(), Readiness::Ready);
    assert_eq!(cache.loading().len(), 0);
    let span = cache.status().spans.remove(0);
    assert_eq!(span.state, SpanState::Online);
    assert_eq!((span.pages_unread, span.entries_used), (1, 0));
    cache.publish();
    assert_eq!(running.registry.get(Metric::CachePagesUnread), 1);
    machine.disks[0].1.let_go();
    cache.loaded().await;
    let span = cache.status().spans.remove(0);
    let objects = u64::from(OBJECTS);
    assert_eq!((span.pages_unread, span.entries_used), (0, objects));
    cache.publish();
    assert_eq!(running.registry.get(Metric::CachePagesUnread), 0);
}

#[tokio::test]
async fn a_purge_of_what_is_not_known_yet_holds_over_the_next_start() {
    let (machine, running) = held().await;
    let cache = &running.cache;
    cache.purge(&key(3)).await.unwrap();
    cache.remove(&key(4));
    machine.disks[0].1.let_go();
    for gone in [key(3), key(4)] {
        assert!(cache.read(&gone).await.is_err());
    }
    cache.loaded().await;
    cache.shutdown().await;
    running.kill();
    let again = machine.start().await;
    for gone in [key(3), key(4)] {
        assert!(again.cache.read(&gone).await.is_err());
    }
    assert!(again.cache.read(&key(5)).await.is_ok());
}

#[tokio::test]
async fn a_purge_that_a_kill_left_unfinished_holds_however_many_others_follow() {
    let (machine, running) = held().await;
    running.cache.purge(&key(3)).await.unwrap();
    running.kill();
    let running = start_held(&machine).await;
    (0..70_000).for_each(|other| assert!(running.cache.rules.add(other) > 0));
    machine.disks[0].1.let_go();
    assert!(running.cache.read(&key(3)).await.is_err());
    assert!(running.cache.read(&key(5)).await.is_ok());
}

#[tokio::test]
async fn a_walk_waits_for_the_pages_that_it_comes_to() {
    let (machine, running) = held().await;
    let cache = &running.cache;
    let letting_go = async { machine.disks[0].1.let_go() };
    let (mut part, ()) = tokio::join!(cache.list(b"", None, None), letting_go);
    let mut listed = part.objects.len();
    while let Some(next) = part.next {
        part = cache.list(b"", None, Some(next)).await;
        listed += part.objects.len();
    }
    assert_eq!(listed, usize::try_from(OBJECTS).unwrap());
}

#[tokio::test]
async fn a_plan_tells_of_pages_that_it_could_not_wait_for_and_counts_them_once_read() {
    let (machine, running) = held().await;
    let cache = &running.cache;
    // No span is configured any more: all that there is would be dropped.
    let options = CacheOptions::default();
    let dropped = || cache.plan(&options)[0].sums().1;
    cache.loaded_within(Duration::from_millis(1)).await;
    let held = dropped();
    assert_eq!((held.objects, held.is_partial), (0, true));
    let letting_go = async { machine.disks[0].1.let_go() };
    tokio::join!(cache.loaded_within(Duration::from_secs(60)), letting_go);
    let all = dropped();
    assert_eq!((all.objects, all.is_partial), (u64::from(OBJECTS), false));
}

#[tokio::test]
async fn a_stop_does_not_wait_for_pages_and_loses_nothing() {
    let (machine, running) = held().await;
    running.cache.shutdown().await;
    machine.disks[0].1.let_go();
    running.kill();
    let running = start_held(&machine).await;
    running.kill();
    machine.disks[0].1.let_go();
    let running = machine.start().await;
    assert_all_there(&running.cache).await;
}

#[tokio::test]
async fn a_body_in_fragments_is_found_while_pages_are_read() {
    let (machine, running) = held().await;
    let cache = &running.cache;
    machine.disks[0].1.let_go();
    cache.loaded().await;
    let long = vec![7; 3 << 20];
    store(cache, &key(9), &long).unwrap();
    cache.shutdown().await;
    running.kill();
    let running = start_held(&machine).await;
    let (key, letting_go) = (key(9), async { machine.disks[0].1.let_go() });
    let (hit, ()) = tokio::join!(running.cache.read(&key), letting_go);
    assert!(all(&mut hit.unwrap()).await == long);
}

/// Stores newer versions of three objects, which are refused, and a fourth whose
/// marker is.
fn refused(cache: &Arc<Cache>) {
    for n in 1..4 {
        let stored = store(cache, &key(n), b"newer");
        assert_eq!(stored, Err(NotStored::NotReady));
    }
    let marker = NewObject {
        kind: ObjectKind::Marker,
        ..object(&key(4), cache.epoch())
    };
    assert_eq!(cache.writer(marker).unwrap_err(), NotStored::NotReady);
}

async fn assert_replaced_are_gone(cache: &Arc<Cache>) {
    for n in 1..4 {
        assert_eq!(cache.read(&key(n)).await.unwrap_err(), Miss::Absent, "{n}");
    }
    for n in [0, 4, 5] {
        let mut hit = cache.read(&key(n)).await.unwrap();
        assert_eq!(all(&mut hit).await, text(n, 6000), "{n}");
    }
}

#[tokio::test]
async fn what_a_store_was_to_replace_that_was_refused_for_its_page_is_never_served() {
    let (machine, running) = held().await;
    refused(&running.cache);
    machine.disks[0].1.let_go();
    running.cache.loaded().await;
    assert_replaced_are_gone(&running.cache).await;
    store(&running.cache, &key(1), b"newest").unwrap();
    running.cache.sync().await;
    running.kill();
    let again = machine.start().await;
    assert_eq!(body(&again.cache.read(&key(1)).await.unwrap()), b"newest");
    assert_eq!(again.cache.read(&key(2)).await.unwrap_err(), Miss::Absent);
    assert!(again.cache.read(&key(5)).await.is_ok());
}

#[tokio::test]
async fn what_a_store_was_to_replace_that_was_refused_for_its_stripe_is_never_served() {
    let (machine, running) = held().await;
    running.kill();
    machine.disks[0].1.let_go();
    // A piece of its redo ring, without which nothing of it is used.
    machine.disks[0].1.hold((1 << 20) - 4096);
    let running = machine.start_now();
    assert_eq!(running.cache.readiness(), Readiness::Loading);
    refused(&running.cache);
    machine.disks[0].1.let_go();
    running.cache.loaded().await;
    assert_replaced_are_gone(&running.cache).await;
}
