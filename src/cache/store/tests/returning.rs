//! Spans that are taken back into use.

use super::machine::{Machine, Running, all, path};
use super::*;
use crate::cache::inspect::SpanState;
use crate::cache::invalidation::{Presence, StateError};
use crate::cache::options::RamOptions;
use crate::cache::tier::SpanTier;
use crate::device::{DeviceKind, OpenedDevice};
use std::task::{Context, Waker};

#[tokio::test]
async fn a_span_that_was_killed_while_it_returned_is_in_doubt_at_the_next_start() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let first = machine.start().await;
    store(&first.cache, &key(1), b"body").unwrap();
    let span = first.cache.status().spans[0].uuid.unwrap();
    first.cache.shutdown().await;
    // As `online` leaves it, before the stripes say so themselves.
    let returning = first.cache.state.set_presence(span, Presence::Returning);
    returning.unwrap();
    first.kill();
    let second = machine.start().await;
    assert!(second.cache.read(&key(1)).await.unwrap().suspect);
    second.cache.sync().await;
    second.cache.note_returned();
    let presence = second.cache.state.presence(span).unwrap();
    assert_eq!(presence, Presence::Here);
    second.kill();
    let third = machine.start().await;
    assert!(third.cache.read(&key(1)).await.unwrap().suspect);
}

/// What readers hold from a span that has gone out of use since, and whose keys
/// were stored anew.
async fn read_and_left(machine: &Machine) -> (Running, Vec<(CacheKey, CopyRef)>) {
    let running = machine.start().await;
    for n in 0..20 {
        store(&running.cache, &key(n), b"old").unwrap();
    }
    running.cache.sync().await;
    let mut held = Vec::new();
    for n in 0..20 {
        held.push((key(n), running.cache.read(&key(n)).await.unwrap().copy));
    }
    running.cache.offline(&path(0)).await.unwrap();
    let left = |copy: &CopyRef| !copy.0.home.as_ref().unwrap().stripe.is_online();
    held.retain(|(_, copy)| left(copy));
    assert!(held.len() > 1, "nothing was on the span that left");
    for (key, _) in &held {
        store(&running.cache, key, b"new").unwrap();
    }
    running.cache.sync().await;
    (running, held)
}

#[tokio::test]
async fn what_was_read_from_a_span_that_left_takes_the_place_of_nothing_newer() {
    let machine = Machine::with(&[SpanTier::Capacity; 2]);
    let (running, held) = read_and_left(&machine).await;
    for (n, (key, copy)) in held.iter().enumerate() {
        if n.is_multiple_of(2) {
            let refreshed = running
                .cache
                .refresh(copy, key, Bytes::from_static(b"head"));
            assert_eq!(refreshed, Err(NotStored::Replaced));
        } else {
            running.cache.carry(&copy.0).await;
        }
    }
    for (key, _) in &held {
        let mut hit = running.cache.read(key).await.unwrap();
        assert_eq!(all(&mut hit).await, b"new");
    }
}

/// A machine whose RAM holds objects of a span that has gone out of use since.
async fn left_in_ram(body: &[u8]) -> (Machine, Running, Vec<CacheKey>) {
    let mut machine = Machine::with(&[SpanTier::Capacity; 2]);
    machine.ram = RamOptions::default();
    machine.fragment_bytes = 64 << 10;
    let running = machine.start().await;
    for n in 0..20 {
        store(&running.cache, &key(n), body).unwrap();
    }
    running.cache.sync().await;
    running.cache.offline(&path(0)).await.unwrap();
    let left = |key: &CacheKey| {
        let held = running.cache.read_ram(key).unwrap().copy.0;
        !held.home.as_ref().unwrap().stripe.is_online()
    };
    let keys: Vec<CacheKey> = (0..20).map(key).filter(left).collect();
    assert!(!keys.is_empty(), "nothing was on the span that left");
    (machine, running, keys)
}

fn refresh(cache: &Cache, key: &CacheKey) -> Result<(), NotStored> {
    let held = cache.read_ram(key).unwrap().copy;
    cache.refresh(&held, key, Bytes::from_static(b"newer head"))
}

#[tokio::test]
async fn what_ram_alone_has_left_of_a_span_is_refreshed_and_lies_elsewhere_then() {
    let (machine, running, keys) = left_in_ram(b"body").await;
    for key in &keys {
        assert_eq!(refresh(&running.cache, key), Ok(()));
        let hit = running.cache.read_ram(key).unwrap();
        assert_eq!(&*hit.meta, b"newer head");
        assert_eq!(refresh(&running.cache, key), Ok(()), "once more");
    }
    running.cache.shutdown().await;
    running.kill();
    let again = machine.start().await;
    for key in &keys {
        let hit = again.cache.read(key).await.unwrap();
        assert_eq!((&*hit.meta, hit.suspect), (&b"newer head"[..], false));
    }
}

#[tokio::test]
async fn what_lay_in_fragments_on_a_span_that_left_is_fetched_anew_instead_of_validated() {
    let (_machine, running, keys) = left_in_ram(&[7; 100_000]).await;
    for key in &keys {
        assert!(refresh(&running.cache, key).is_err());
        assert!(running.cache.read_ram(key).is_none());
    }
}

#[tokio::test]
async fn a_span_whose_return_can_t_be_written_down_says_so_and_may_be_tried_again() {
    let machine = Machine::with(&[SpanTier::Capacity; 2]);
    let running = machine.start().await;
    let cache = &running.cache;
    cache.offline(&path(0)).await.unwrap();
    let open = || OpenedDevice {
        device: Arc::new(machine.disks[0].1.device()),
        kind: DeviceKind::Block,
        path: path(0),
        rotational: None,
    };
    let full = |_| Err(StateError::Copy(std::io::ErrorKind::StorageFull.into()));
    let refused = cache.online_over(&path(0), |_| Ok(open()), full);
    let Err(SpanCommandError::State(why)) = refused else {
        panic!("{refused:?}");
    };
    let state = cache.status().spans.remove(0).state;
    assert_eq!(state, SpanState::Refused(why));
    let note = |uuid| cache.state.set_presence(uuid, Presence::Returning);
    assert!(cache.online_over(&path(0), |_| Ok(open()), note).is_ok());
}

#[tokio::test]
async fn a_read_that_is_given_up_is_counted_as_active_no_more() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    store(&running.cache, &key(1), &[1; 6000]).unwrap();
    running.cache.sync().await;
    machine.disks[0].1.hang(true);
    let active = || running.registry.get(Metric::CacheReadActive);
    let key = key(1);
    let mut reading = Box::pin(running.cache.read(&key));
    let mut context = Context::from_waker(Waker::noop());
    assert!(reading.as_mut().poll(&mut context).is_pending());
    assert_eq!(active(), 1);
    drop(reading);
    assert_eq!(active(), 0);
}
