//! Spans that were away, and copies of spans.

use super::machine::{Machine, path};
use super::*;
use crate::cache::inspect::SpanOutcome;
use crate::cache::options::SpanOptions;
use crate::cache::span::{self, Intent};
use crate::cache::tier::SpanTier;
use crate::device::{DeviceKind, OpenedDevice};

#[tokio::test]
async fn a_copy_of_a_span_is_refused_by_both_names_at_a_start_and_when_it_is_to_come_back() {
    let machine = Machine::with(&[SpanTier::Capacity; 2]);
    let first = machine.start().await;
    store(&first.cache, &key(1), b"body").unwrap();
    first.cache.shutdown().await;
    first.kill();
    let mut copy = Vec::new();
    machine.disks[0]
        .1
        .edit(|bytes| copy.extend_from_slice(bytes));
    machine.disks[1]
        .1
        .edit(|bytes| bytes.copy_from_slice(&copy));
    let second = machine.start().await;
    let SpanOutcome::Refused(why) = &second.reports[1].outcome else {
        panic!("{:?}", second.reports);
    };
    assert!(
        why.contains("/dev/mem1 has the span UUID of /dev/mem0"),
        "{why}"
    );
    assert!(second.cache.status().spans[0].state.is_in_use());
    let opened = OpenedDevice {
        device: Arc::new(machine.disks[1].1.device()),
        kind: DeviceKind::Block,
        path: path(1),
        rotational: None,
    };
    let judged = span::judge(&opened, &SpanOptions::at(path(1)), Intent::Use).unwrap();
    let joined = second.cache.join(judged).map(drop).unwrap_err();
    assert_eq!(joined.to_string(), *why);
    machine.disks[1]
        .1
        .edit(|bytes| assert!(*bytes == copy, "the copy was written to"));
}

/// Hits among the keys that the test below stores: in no doubt, suspect.
async fn sure_and_suspect(cache: &Cache) -> (usize, usize) {
    let (mut sure, mut suspect) = (0, 0);
    for n in 0..60 {
        if let Ok(hit) = cache.read(&key(n)).await {
            *(if hit.suspect { &mut suspect } else { &mut sure }) += 1;
        }
    }
    (sure, suspect)
}

#[tokio::test]
async fn what_a_span_held_before_a_purge_that_it_missed_is_dead_and_else_suspect() {
    for misses_purge in [false, true] {
        let mut machine = Machine::with(&[SpanTier::Capacity; 2]);
        let first = machine.start().await;
        first.cache.purge(&key(100)).await.unwrap();
        for n in 0..60 {
            store(&first.cache, &key(n), b"body").unwrap();
        }
        first.cache.shutdown().await;
        first.kill();
        let away = machine.disks.pop().unwrap();
        let without = machine.start().await;
        let (left, _) = sure_and_suspect(&without.cache).await;
        if misses_purge {
            without.cache.purge(&key(100)).await.unwrap();
        }
        without.cache.shutdown().await;
        without.kill();
        machine.disks.push(away);
        let again = machine.start().await;
        let suspect = if misses_purge { 0 } else { 60 - left };
        let listed = again.cache.list(b"", None, None).await;
        assert_eq!((listed.objects.len(), listed.next), (left + suspect, None));
        let mut located = 0;
        for n in 0..60 {
            located += again.cache.locate(&key(n)).await.len();
        }
        assert_eq!(located, left + suspect);
        assert_eq!(sure_and_suspect(&again.cache).await, (left, suspect));
        assert!((10..50).contains(&left), "{left}");
    }
}

#[tokio::test]
async fn a_start_that_ends_once_its_run_is_counted_leaves_no_stripe_in_doubt() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let first = machine.start().await;
    store(&first.cache, &key(1), b"body").unwrap();
    first.cache.shutdown().await;
    first.kill();
    for _ in 0..3 {
        drop(State::open(Some(machine.state.path()), 0).unwrap());
    }
    let last = machine.start().await;
    let read = last.cache.read(&key(1)).await;
    assert!(read.is_ok_and(|hit| !hit.suspect && body(&hit) == b"body"));
}
