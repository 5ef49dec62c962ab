//! The façade's promises over devices in memory.

use super::machine::{DISK, Machine, Running, all, path, text};
use super::*;
use crate::cache::inspect::{Readiness, SpanOutcome, SpanState};
use crate::cache::tier::SpanTier;
use crate::device::MemDisk;
use std::time::Duration;

#[tokio::test]
async fn objects_are_found_before_they_are_written_after_it_and_after_a_restart() {
    for (tier, found) in [
        (SpanTier::Fast, Tier::Fast),
        (SpanTier::Capacity, Tier::Capacity),
    ] {
        let machine = Machine::with(&[tier]);
        let first = machine.start().await;
        assert!(matches!(
            first.reports[0].outcome,
            SpanOutcome::Used {
                formatted: true,
                ..
            }
        ));
        for n in 0..200 {
            store(&first.cache, &key(n), &text(n, 3000)).unwrap();
        }
        let mut hit = first.cache.read(&key(7)).await.unwrap();
        assert_eq!((hit.tier, all(&mut hit).await), (found, text(7, 3000)));
        first.cache.shutdown().await;
        first.kill();
        let second = machine.start().await;
        for n in 0..200 {
            let mut hit = second.cache.read(&key(n)).await.unwrap();
            assert_eq!((hit.tier, all(&mut hit).await), (found, text(n, 3000)));
            assert!(!hit.suspect);
        }
        let expected = if tier == SpanTier::Fast {
            [200, 0, 200, 0]
        } else {
            [200, 0, 0, 200]
        };
        assert_eq!(second.counts(), expected);
    }
}

#[tokio::test]
async fn what_was_written_survives_an_end_without_a_stop() {
    let machine = Machine::with(&[SpanTier::Capacity, SpanTier::Capacity]);
    let first = machine.start().await;
    for n in 0..300 {
        store(&first.cache, &key(n), &text(n, 5000)).unwrap();
    }
    first.cache.sync().await;
    store(&first.cache, &key(1000), b"not written yet").unwrap();
    first.kill();
    let second = machine.start().await;
    for n in 0..300 {
        let mut hit = second.cache.read(&key(n)).await.unwrap();
        assert_eq!(all(&mut hit).await, text(n, 5000), "{n}");
    }
    assert_eq!(
        second.cache.read(&key(1000)).await.unwrap_err(),
        Miss::Absent
    );
}

#[tokio::test]
async fn the_cutoff_decides_between_ram_and_device_and_every_read_counts_once() {
    let mut machine = Machine::with(&[SpanTier::Fast]);
    machine.ram.cutoff = 40;
    let running = machine.start().await;
    for n in 0..10 {
        store(&running.cache, &key(n), &text(n, 1000)).unwrap();
    }
    let pass = async || {
        for n in 0..10 {
            let mut hit = running.cache.read(&key(n)).await.unwrap();
            assert_eq!(all(&mut hit).await, text(n, 1000));
        }
    };
    pass().await;
    assert_eq!(running.counts(), [10, 0, 10, 0]);
    running.cache.set_ram_cutoff(40_960);
    pass().await;
    assert_eq!(running.counts(), [20, 0, 20, 0]);
    pass().await;
    assert_eq!(running.counts(), [30, 10, 20, 0]);
    running.cache.set_ram_cutoff(1000);
    pass().await;
    assert_eq!(running.counts(), [40, 10, 30, 0]);
}

#[tokio::test]
async fn a_body_of_many_fragments_comes_back_whole_and_in_every_range() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let first = machine.start().await;
    let len = (5 << 20) + 1234;
    let body: Vec<u8> = (0..len).map(|n: u32| n.to_le_bytes()[1]).collect();
    let mut writer = first.cache.writer(object(&key(1), 0)).unwrap();
    for chunk in body.chunks(100_001) {
        writer.push(&Bytes::copy_from_slice(chunk)).unwrap();
    }
    let from = 3 << 20;
    let mut behind = writer.readback(from).unwrap();
    assert!(behind.remaining() > 0);
    let piece = behind.next().await.unwrap().unwrap();
    let start = usize::try_from(from).unwrap();
    assert!(body[start..].starts_with(&piece));
    writer.commit().unwrap();
    first.cache.shutdown().await;
    first.kill();
    let second = machine.start().await;
    let mut hit = second.cache.read(&key(1)).await.unwrap();
    assert!(hit.body.whole().is_none());
    assert!(all(&mut hit).await == body);
    for (start, end) in [
        (0, 1),
        (1 << 20, (1 << 20) + 1),
        (1_048_575, 3_145_729),
        (len - 5, len),
    ] {
        hit.body.seek(u64::from(start)..u64::from(end));
        let range = usize::try_from(start).unwrap()..usize::try_from(end).unwrap();
        assert!(all(&mut hit).await == body[range]);
    }
    assert_eq!(second.counts()[0], 1);
}

#[tokio::test]
async fn a_long_body_enters_ram_once_it_has_been_read_to_its_end() {
    let mut machine = Machine::with(&[SpanTier::Fast]);
    machine.ram.cutoff = 1;
    let running = machine.start().await;
    let body = text(3, 3 << 20);
    store(&running.cache, &key(3), &body).unwrap();
    running.cache.set_ram_cutoff(0);
    let mut hit = running.cache.read(&key(3)).await.unwrap();
    hit.body.seek(0..10);
    assert_eq!(all(&mut hit).await.len(), 10);
    let mut hit = running.cache.read(&key(3)).await.unwrap();
    assert!(all(&mut hit).await == body);
    let mut hit = running.cache.read(&key(3)).await.unwrap();
    assert_eq!(hit.tier, Tier::Ram);
    assert!(all(&mut hit).await == body);
    let newer = Bytes::from_static(b"newer");
    running
        .cache
        .refresh(&hit.copy, &key(3), newer.clone())
        .unwrap();
    running.cache.set_ram_cutoff(1);
    let mut hit = running.cache.read(&key(3)).await.unwrap();
    assert_eq!((hit.tier, &hit.meta), (Tier::Fast, &newer));
    assert!(all(&mut hit).await == body);
}

#[tokio::test]
async fn an_update_a_removal_and_a_purge_hold_after_a_kill() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let first = machine.start().await;
    for n in 0..4 {
        store(&first.cache, &key(n), b"old").unwrap();
    }
    first.cache.sync().await;
    store(&first.cache, &key(0), b"new").unwrap();
    first.cache.remove(&key(1));
    first.cache.sync().await;
    assert!(first.cache.purge(&key(2)).await.unwrap());
    first.kill();
    let second = machine.start().await;
    let mut hit = second.cache.read(&key(0)).await.unwrap();
    assert_eq!(all(&mut hit).await, b"new");
    assert_eq!(second.cache.read(&key(1)).await.unwrap_err(), Miss::Absent);
    assert!(second.cache.read(&key(2)).await.is_err());
    assert!(second.cache.read(&key(3)).await.is_ok());
    store(&second.cache, &key(2), b"after").unwrap();
    let mut hit = second.cache.read(&key(2)).await.unwrap();
    assert_eq!(all(&mut hit).await, b"after");
}

#[tokio::test]
async fn a_start_that_ends_before_it_opens_a_stripe_leaves_it_in_no_doubt_unless_it_missed_a_removal()
 {
    for removed in [false, true] {
        let machine = Machine::with(&[SpanTier::Capacity]);
        let first = machine.start().await;
        store(&first.cache, &key(1), b"body").unwrap();
        first.cache.shutdown().await;
        first.kill();
        for _ in 0..2 {
            // The stripe's opening blocks are not answered while this start lasts.
            machine.disks[0].1.hang_inside(true);
            let ended = machine.start_now();
            if removed {
                ended.cache.remove(&key(2));
            }
            // The removal was taken note of before this.
            ended.cache.purge(&key(3)).await.unwrap();
            ended.kill();
            machine.disks[0].1.hang_inside(false);
        }
        let last = machine.start().await;
        let read = last.cache.read(&key(1)).await;
        let is_trusted = read.is_ok_and(|hit| !hit.suspect && body(&hit) == b"body");
        assert_eq!(is_trusted, !removed);
    }
}

#[tokio::test]
async fn what_is_due_is_written_though_purges_come_without_a_pause() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    store(&running.cache, &key(1), b"body").unwrap();
    running.clock.advance(Duration::from_secs(1));
    for n in 0..20 {
        running.cache.purge(&key(100 + n)).await.unwrap();
    }
    running.kill();
    let again = machine.start().await;
    assert_eq!(body(&again.cache.read(&key(1)).await.unwrap()), b"body");
}

#[tokio::test]
async fn purges_that_come_together_are_each_durable() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    for n in 0..50 {
        store(&running.cache, &key(n), b"body").unwrap();
    }
    running.cache.sync().await;
    let purges = (0..50).map(|n| {
        let cache = Arc::clone(&running.cache);
        tokio::spawn(async move { cache.purge(&key(n)).await })
    });
    for purge in purges.collect::<Vec<_>>() {
        assert!(purge.await.unwrap().unwrap());
    }
    running.kill();
    let again = machine.start().await;
    for n in 0..50 {
        assert!(again.cache.read(&key(n)).await.is_err(), "{n}");
    }
}

#[tokio::test]
async fn a_refresh_reaches_the_device_and_a_later_one_of_the_old_copy_does_not() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let first = machine.start().await;
    store(&first.cache, &key(1), b"body").unwrap();
    let old = first.cache.read(&key(1)).await.unwrap();
    first
        .cache
        .refresh(&old.copy, &key(1), Bytes::from_static(b"fresh"))
        .unwrap();
    let again = first.cache.refresh(&old.copy, &key(1), Bytes::new());
    assert_eq!(again, Err(NotStored::Replaced));
    first.cache.shutdown().await;
    first.kill();
    let second = machine.start().await;
    let mut hit = second.cache.read(&key(1)).await.unwrap();
    assert_eq!(&*hit.meta, b"fresh");
    assert_eq!(all(&mut hit).await, b"body");
}

#[tokio::test]
async fn the_log_wraps_under_load_and_never_gives_a_wrong_byte() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let mut hits = 0;
    for n in 0..1500 {
        while store(&running.cache, &key(n), &text(n, 50_000)) == Err(NotStored::Backlog) {
            running.cache.sync().await;
        }
        if let Ok(mut hit) = running.cache.read(&key(n / 2)).await {
            assert!(all(&mut hit).await == text(n / 2, 50_000), "{n}");
            hits += 1;
        }
    }
    assert!(hits > 150, "{hits} hits");
    running.cache.shutdown().await;
    running.kill();
    let again = machine.start().await;
    let mut held = 0;
    for n in 0..1500 {
        if let Ok(mut hit) = again.cache.read(&key(n)).await {
            assert!(all(&mut hit).await == text(n, 50_000), "{n}");
            held += 1;
        }
    }
    assert!(held > 250, "{held} objects are left");
}

#[tokio::test]
async fn a_damaged_fragment_is_a_counted_miss_and_others_stay() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    for n in 0..50 {
        store(&running.cache, &key(n), &text(n, 9000)).unwrap();
    }
    running.cache.sync().await;
    let needle = text(20, 9000);
    machine.disks[0].1.edit(|bytes| {
        let at = bytes
            .windows(needle.len())
            .position(|w| w == needle)
            .unwrap();
        bytes[at + 100] ^= 1;
    });
    assert_eq!(
        running.cache.read(&key(20)).await.unwrap_err(),
        Miss::ReadError
    );
    assert_eq!(running.registry.get(Metric::CacheReadInvalid), 1);
    assert_eq!(
        running.cache.read(&key(20)).await.unwrap_err(),
        Miss::Absent
    );
    assert!(running.cache.read(&key(21)).await.is_ok());
}

#[tokio::test]
async fn a_device_that_fails_goes_offline_and_its_keys_move() {
    let machine = Machine::with(&[SpanTier::Capacity, SpanTier::Capacity]);
    let running = machine.start().await;
    for n in 0..100 {
        store(&running.cache, &key(n), &text(n, 5000)).unwrap();
    }
    running.cache.sync().await;
    machine.disks[0].1.fail(true, true);
    let mut lost = Vec::new();
    for n in 0..100 {
        if running.cache.read(&key(n)).await.is_err() {
            lost.push(n);
        }
    }
    assert!(lost.len() > 20 && lost.len() < 80, "{}", lost.len());
    let status = running.cache.status();
    assert_eq!(status.spans[0].state, SpanState::Offline { errors: 5 });
    assert_eq!(status.readiness, Readiness::Ready);
    running.cache.retire_spans();
    for n in &lost {
        store(&running.cache, &key(*n), &text(*n, 5000)).unwrap();
        assert!(running.cache.read(&key(*n)).await.is_ok());
    }
    running.kill();
    machine.disks[0].1.fail(false, false);
    let again = machine.start().await;
    let offline = &again.cache.status().spans[0].state;
    assert!(matches!(offline, SpanState::Offline { .. }), "{offline:?}");
}

#[tokio::test]
async fn without_a_usable_span_nothing_is_stored_and_the_status_says_so() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    machine.disks[0]
        .1
        .edit(|bytes| bytes[1080..1082].copy_from_slice(b"\x53\xef"));
    let running = machine.start().await;
    let SpanOutcome::Refused(why) = &running.reports[0].outcome else {
        panic!("the span was taken");
    };
    assert!(
        why.contains("ext2") && why.contains("storage init"),
        "{why}"
    );
    assert_eq!(running.cache.status().readiness, Readiness::NoSpan);
    assert_eq!(store(&running.cache, &key(1), b"x"), Err(NotStored::NoSpan));
    assert_eq!(running.cache.read(&key(1)).await.unwrap_err(), Miss::NoSpan);
}

#[tokio::test]
async fn a_span_and_its_stripes_say_whether_they_are_believed_or_away() {
    let mut machine = Machine::with(&[SpanTier::Capacity]);
    let state = |running: &Running| {
        let span = running.cache.status().spans.remove(0);
        assert_eq!(span.stripes.len(), 1);
        assert_eq!(span.stripes[0].state, span.state);
        assert_eq!(span.stripes[0].bytes_total, span.bytes_total);
        span.state
    };
    let first = machine.start().await;
    assert_eq!(state(&first), SpanState::Online);
    store(&first.cache, &key(1), b"body").unwrap();
    first.cache.shutdown().await;
    first.kill();
    let disks = std::mem::take(&mut machine.disks);
    machine.start().await.kill();
    machine.disks = disks;
    let second = machine.start().await;
    assert_eq!(state(&second), SpanState::Suspect);
    second.cache.publish();
    assert_eq!(second.registry.get(Metric::CacheSpanSuspect), 1);
    assert!(second.registry.get(Metric::CacheDirentriesUsed) > 0);
    second.cache.offline(&path(0)).await.unwrap();
    assert_eq!(state(&second), SpanState::Offline { errors: 0 });
}

#[tokio::test]
async fn what_a_lost_state_directory_knew_is_dead_for_good() {
    let mut machine = Machine::with(&[SpanTier::Capacity]);
    let first = machine.start().await;
    store(&first.cache, &key(1), b"body").unwrap();
    first.cache.shutdown().await;
    first.kill();
    machine.state = tempfile::tempdir().unwrap();
    let second = machine.start().await;
    assert_eq!(second.cache.read(&key(1)).await.unwrap_err(), Miss::Absent);
    store(&second.cache, &key(2), b"new").unwrap();
    second.cache.sync().await;
    second.kill();
    let third = machine.start().await;
    assert_eq!(third.cache.read(&key(1)).await.unwrap_err(), Miss::Absent);
    assert!(!third.cache.read(&key(2)).await.unwrap().suspect);
}

#[tokio::test]
async fn an_older_copy_of_the_state_directory_is_a_lost_one() {
    let mut machine = Machine::with(&[SpanTier::Capacity]);
    let first = machine.start().await;
    store(&first.cache, &key(1), b"body").unwrap();
    first.cache.shutdown().await;
    first.kill();
    let older = copy_of(&machine.state);
    let second = machine.start().await;
    assert!(second.cache.purge(&key(1)).await.unwrap());
    store(&second.cache, &key(2), b"body").unwrap();
    second.cache.shutdown().await;
    second.kill();
    machine.state = older;
    let third = machine.start().await;
    for n in 1..3 {
        assert_eq!(third.cache.read(&key(n)).await.unwrap_err(), Miss::Absent);
    }
}

fn copy_of(state: &tempfile::TempDir) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let (from, to) = (state.path(), copy.path());
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .args([from.join("cache-state"), to.join("cache-state")])
        .status();
    assert!(copied.unwrap().success());
    copy
}

#[tokio::test]
async fn devices_in_another_order_lose_nothing() {
    let mut machine = Machine::with(&[SpanTier::Capacity; 3]);
    let first = machine.start().await;
    for n in 0..100 {
        store(&first.cache, &key(n), &text(n, 2000)).unwrap();
    }
    first.cache.shutdown().await;
    first.kill();
    machine.disks.rotate_left(1);
    let second = machine.start().await;
    for n in 0..100 {
        assert!(second.cache.read(&key(n)).await.is_ok(), "{n}");
    }
}

#[tokio::test]
async fn a_span_added_loses_nothing_and_an_update_then_replaces_the_former_owner_s_copy() {
    let mut machine = Machine::with(&[SpanTier::Capacity, SpanTier::Capacity]);
    let first = machine.start().await;
    for n in 0..100 {
        store(&first.cache, &key(n), b"old").unwrap();
    }
    first.cache.shutdown().await;
    first.kill();
    machine
        .disks
        .push((SpanTier::Capacity, MemDisk::blank(DISK)));
    let second = machine.start().await;
    for n in 0..100 {
        assert!(second.cache.read(&key(n)).await.is_ok(), "{n}");
        store(&second.cache, &key(n), b"new").unwrap();
    }
    second.cache.sync().await;
    second.cache.sync().await;
    second.kill();
    let third = machine.start().await;
    for n in 0..100 {
        let mut hit = third.cache.read(&key(n)).await.unwrap();
        assert_eq!(all(&mut hit).await, b"new", "{n}");
    }
}
