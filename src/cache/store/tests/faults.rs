//! Damage anywhere, at any time, costs hits and nothing else; threads at once.

use super::machine::{Machine, Running, all, path, text};
use super::*;
use crate::base::prng::Prng;
use crate::cache::inspect::SpanState;
use crate::cache::invalidation::Presence;
use crate::cache::options::TierOptions;
use crate::cache::store::open::live_spans;
use crate::cache::tier::SpanTier;
use crate::cache::volume::LiveSpan;
use std::time::Duration;

const OBJECTS: u32 = 150;

/// Reads every object; how many are there. A wrong byte ends the test.
async fn right_hits(cache: &Cache) -> usize {
    let mut hits = 0;
    for n in 0..OBJECTS {
        if let Ok(mut hit) = cache.read(&key(n)).await {
            assert!(all(&mut hit).await == text(n, 8000), "{n}");
            hits += 1;
        }
    }
    hits
}

fn fill(cache: &Arc<Cache>) {
    for n in 0..OBJECTS {
        store(cache, &key(n), &text(n, 8000)).unwrap();
    }
}

/// Overwrites `count` blocks of 4 KiB between the span's ends with noise.
fn damage(machine: &Machine, prng: &mut Prng, count: usize) {
    machine.disks[0].1.edit(|bytes| {
        let last = u64::try_from(bytes.len() / 4096).unwrap() - 256;
        for _ in 0..count {
            // The first MiB of headers, rings and pages as often as the rest.
            let block = if prng.below(2) == 0 {
                256 + prng.below(last - 256)
            } else {
                256 + prng.below(1600)
            };
            let at = usize::try_from(block * 4096).unwrap();
            for word in bytes[at..at + 4096].chunks_exact_mut(8) {
                word.copy_from_slice(&prng.next_u64().to_le_bytes());
            }
        }
    });
}

#[tokio::test]
async fn noise_in_any_block_while_stopped_or_running_never_gives_a_wrong_byte() {
    let mut prng = Prng::seeded(42);
    let machine = Machine::with(&[SpanTier::Capacity]);
    for round in 0..12 {
        let running = machine.start().await;
        right_hits(&running.cache).await;
        fill(&running.cache);
        running.cache.sync().await;
        assert!(right_hits(&running.cache).await > 140, "round {round}");
        damage(&machine, &mut prng, 60);
        right_hits(&running.cache).await;
        if round % 2 == 0 {
            running.cache.shutdown().await;
        }
        running.kill();
        damage(&machine, &mut prng, 60);
    }
    let running = machine.start().await;
    fill(&running.cache);
    assert_eq!(right_hits(&running.cache).await, 150);
}

/// Turns every byte behind the first header of the stripe.
fn rot(machine: &Machine) {
    machine.disks[0].1.edit(|bytes| {
        let log = (2 << 20)..bytes.len() - (2 << 20);
        bytes[log].iter_mut().for_each(|byte| *byte = !*byte);
    });
}

#[tokio::test]
async fn rot_counts_against_the_span_but_for_what_was_never_flushed() {
    for stopped in [true, false] {
        let machine = Machine::with(&[SpanTier::Capacity]);
        let running = machine.start().await;
        fill(&running.cache);
        running.cache.sync().await;
        if stopped {
            running.cache.shutdown().await;
        }
        running.kill();
        let running = machine.start().await;
        rot(&machine);
        assert_eq!(right_hits(&running.cache).await, 0);
        let damaged = running.registry.get(Metric::CacheReadInvalid);
        let counted = running.registry.get(Metric::CacheSpanErrorsChecksum);
        let span = running.cache.status().spans.remove(0);
        assert_eq!((span.errors, span.checksum_errors), (0, counted));
        // The limit, and no more; without one they are misses all the same.
        let (misses, charged) = if stopped { (100, 100) } else { (150, 0) };
        assert_eq!((damaged, counted), (misses, charged), "stopped: {stopped}");
        assert_eq!(span.state.is_in_use(), !stopped);
    }
}

/// Has eight readers want one object at once, whose bytes are then spoilt.
async fn many_want_what_is_bad(machine: &Machine, running: &Running, spoil: impl Fn()) {
    store(&running.cache, &key(1), &text(1, 8000)).unwrap();
    running.cache.sync().await;
    let stripe = running.cache.volume.stripes().remove(0);
    let mut walked = (0..stripe.bucket_count()).flat_map(|bucket| stripe.walk(bucket));
    let length = walked.next().unwrap().place.length;
    machine.disks[0].1.hold(length.next_multiple_of(512).into());
    let wanted = (0..8).map(|_| {
        let cache = Arc::clone(&running.cache);
        tokio::spawn(async move { cache.read(&key(1)).await.is_ok() })
    });
    let wanted: Vec<_> = wanted.collect();
    tokio::task::yield_now().await;
    spoil();
    machine.disks[0].1.let_go();
    for found in wanted {
        assert!(!found.await.unwrap());
    }
}

#[tokio::test]
async fn a_bad_place_is_one_fault_however_many_want_it_and_is_freed() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let disk = &machine.disks[0].1;
    many_want_what_is_bad(&machine, &running, || disk.fail(true, false)).await;
    disk.fail(false, false);
    assert_eq!(running.cache.read(&key(1)).await.unwrap_err(), Miss::Absent);
    many_want_what_is_bad(&machine, &running, || rot(&machine)).await;
    let span = running.cache.status().spans.remove(0);
    assert_eq!((span.errors, span.checksum_errors), (1, 1));
    assert!(span.state.is_in_use());
    assert_eq!(running.registry.get(Metric::CacheSpanErrorsRead), 1);
    assert_eq!(
        running.registry.get(Metric::CacheReadInvalid),
        8,
        "by reads"
    );
}

#[tokio::test]
async fn a_device_that_answers_nothing_any_more_costs_misses_and_goes_offline() {
    let machine = Machine::with(&[SpanTier::Capacity, SpanTier::Capacity]);
    let running = machine.start().await;
    fill(&running.cache);
    running.cache.sync().await;
    machine.disks[0].1.hang(true);
    let mut misses = 0;
    for n in 0..OBJECTS {
        // The time passes once the read is under way.
        let passing = async { running.clock.advance(Duration::from_secs(31)) };
        let key = key(n);
        let (found, ()) = tokio::join!(running.cache.read(&key), passing);
        misses += usize::from(found.is_err());
    }
    let spans = running.cache.status().spans;
    assert_eq!(spans[0].state, SpanState::Offline { errors: 5 });
    assert!(spans[1].state.is_in_use());
    assert!((10..OBJECTS as usize).contains(&misses), "{misses}");
    // What is written to a device that hangs keeps nobody waiting either, once
    // its keys have moved.
    running.cache.retire_spans();
    fill(&running.cache);
    running.cache.sync().await;
    assert_eq!(right_hits(&running.cache).await, 150);
    running.cache.shutdown().await;
}

#[tokio::test]
async fn a_search_of_a_silent_device_stops_neither_purges_nor_the_count_of_its_silence() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    store(&running.cache, &key(1), &text(1, 100)).unwrap();
    running.cache.sync().await;
    machine.disks[0].1.hang(true);
    let cache = &running.cache;
    cache.thread.free_later(key(1).hash(), cache.epoch() + 1);
    let hung = Duration::from_secs(20);
    // The first may be taken along with the search, the second is not.
    for n in 2..4 {
        let purged = tokio::time::timeout(hung, cache.purge(&key(n))).await;
        purged.expect("nobody answers").unwrap();
    }
    running.clock.advance(Duration::from_secs(31));
    for n in 4..1000 {
        cache.purge(&key(n)).await.unwrap();
        if cache.status().spans[0].errors > 0 {
            return;
        }
    }
    panic!("nobody counts that the device is silent");
}

/// Pushes until some of the body waits for room; bytes pushed.
fn crowd(writer: &mut ObjectWriter) -> usize {
    let piece = Bytes::from(text(1, 1 << 20));
    let mut pushed = 0;
    while writer.waiting() == 0 {
        writer.push(&piece).unwrap();
        pushed += piece.len();
    }
    pushed
}

#[tokio::test]
async fn a_large_body_is_held_back_for_a_device_that_takes_nothing_up_to_a_bound() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    machine.disks[0].1.hang(true);
    let new = |n| {
        let object = object(&key(n), running.cache.epoch());
        running.cache.writer(object)
    };
    let mut writer = new(1).unwrap();
    assert!(crowd(&mut writer) > 5 << 20);
    let room = writer.room(false).unwrap();
    tokio::select! {
        biased;
        () = room.come() => panic!("a device that hangs made room"),
        () = tokio::task::yield_now() => {}
    }
    new(2).unwrap();
    room.note_stall();
    assert_eq!(new(2).unwrap_err(), NotStored::Backlog);
    let more = Bytes::from(text(1, 1 << 20));
    let refused = std::iter::repeat_with(|| writer.push(&more)).find(Result::is_err);
    assert_eq!(refused, Some(Err(NotStored::Backlog)));
    assert_eq!(writer.waiting(), 5 << 20);
    writer.give_up();
    let lost = running.registry.get(Metric::CacheWriteBacklogFailure);
    assert_eq!(lost, 2, "each once");
}

#[tokio::test]
async fn who_waits_for_room_on_a_span_that_goes_out_of_use_is_told() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let once = LiveOptions {
        max_disk_errors: 1,
        ..CacheOptions::default().live()
    };
    running.cache.configure(once);
    machine.disks[0].1.hang(true);
    let object = object(&key(1), running.cache.epoch());
    let mut writer = running.cache.writer(object).unwrap();
    crowd(&mut writer);
    let room = writer.room(false).unwrap();
    let passing = async {
        tokio::task::yield_now().await;
        running.clock.advance(Duration::from_secs(31));
    };
    tokio::join!(room.come(), passing);
    assert_eq!(writer.push(&Bytes::new()), Err(NotStored::NotReady));
}

#[tokio::test]
async fn a_body_that_was_held_back_is_whole_once_it_is_stored() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let object = object(&key(1), running.cache.epoch());
    let body = text(1, (9 << 20) + 5);
    let mut writer = running.cache.writer(object).unwrap();
    for part in body.chunks(100_000) {
        writer.push(&Bytes::copy_from_slice(part)).unwrap();
        while let Some(room) = writer.room(false) {
            room.come().await;
            writer.push(&Bytes::new()).unwrap();
        }
    }
    writer.room(true).unwrap().come().await;
    writer.commit().unwrap();
    let mut hit = running.cache.read(&key(1)).await.unwrap();
    assert!(all(&mut hit).await == body);
}

#[tokio::test]
async fn a_write_that_is_not_answered_is_an_error_and_no_stop_waits_for_it() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let once = LiveOptions {
        max_disk_errors: 1,
        ..CacheOptions::default().live()
    };
    running.cache.configure(once);
    machine.disks[0].1.hang(true);
    store(&running.cache, &key(1), &text(1, 100)).unwrap();
    let passing = async {
        tokio::task::yield_now().await;
        running.clock.advance(Duration::from_secs(31));
    };
    tokio::join!(running.cache.sync(), passing);
    let span = running.cache.status().spans.remove(0);
    assert_eq!(span.state, SpanState::Offline { errors: 1 });
    running.cache.shutdown().await;
}

#[tokio::test]
async fn a_span_whose_two_stripe_headers_are_gone_begins_anew() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    fill(&running.cache);
    running.cache.shutdown().await;
    running.kill();
    machine.disks[0].1.edit(|bytes| {
        let end = bytes.len() - (1 << 20);
        bytes[1 << 20..(1 << 20) + 4096].fill(9);
        bytes[end - 8192..end].fill(9);
    });
    let running = machine.start().await;
    assert_eq!(right_hits(&running.cache).await, 0);
    fill(&running.cache);
    assert_eq!(right_hits(&running.cache).await, 150);
}

#[test]
fn threads_that_read_store_and_remove_at_once_see_whole_versions_only() {
    let machine = Machine::with(&[SpanTier::Fast, SpanTier::Capacity]);
    let waiting = || {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
    };
    let running = waiting().block_on(machine.start());
    running.cache.set_ram_cutoff(4000);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let cache = Arc::clone(&running.cache);
            scope.spawn(move || waiting().block_on(work(&cache, thread)));
        }
    });
    let [reads, ram, ssd, disk] = running.counts();
    assert_eq!(reads, ram + ssd + disk);
    assert!(ram > 0 && disk > 0, "{ram} {ssd} {disk}");
    assert_eq!(running.registry.get(Metric::CacheWriteActive), 0);
    assert_eq!(running.registry.get(Metric::CacheReadActive), 0);
}

/// A body says which version it is in every word.
async fn work(cache: &Arc<Cache>, thread: u64) {
    let mut prng = Prng::seeded(thread);
    for turn in 0..400 {
        let n = u32::try_from(prng.below(40)).unwrap();
        match prng.below(8) {
            0 => cache.remove(&key(n)),
            1..=3 => {
                let len = usize::try_from(8 + prng.below(1000) * 8).unwrap();
                let stored = store(cache, &key(n), &text(turn, len));
                let known = [Ok(()), Err(NotStored::Invalidated), Err(NotStored::Backlog)];
                assert!(known.contains(&stored), "{stored:?}");
            }
            _ => {
                if let Ok(mut hit) = cache.read(&key(n)).await {
                    let body = all(&mut hit).await;
                    let version = u32::from_le_bytes(body[..4].try_into().unwrap());
                    assert!(body == text(version, body.len()), "{n}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_span_that_can_t_write_down_what_it_does_goes_offline_before_its_error_limit() {
    let machine = Machine::with(&[SpanTier::Capacity, SpanTier::Capacity]);
    let running = machine.start().await;
    machine.disks[0].1.fail(false, true);
    for n in 0..20 {
        store(&running.cache, &key(n), &text(n, 5000)).unwrap();
    }
    running.cache.sync().await;
    // A batch and the ring block that tells of it, each tried twice.
    let status = running.cache.status();
    assert_eq!(status.spans[0].state, SpanState::Offline { errors: 4 });
    let lost = running.registry.get(Metric::CacheWriteLost);
    assert!((1..20).contains(&lost), "{lost}");
    running.kill();
}

#[tokio::test]
async fn what_a_lost_span_was_to_free_counts_as_freed_only_when_the_loss_is_remembered() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    store(&running.cache, &key(1), &text(1, 5000)).unwrap();
    running.cache.sync().await;
    let stripe = running.cache.volume.stripes().remove(0);
    machine.disks[0].1.fail(false, true);
    let freed = stripe.free(key(1).hash()).unwrap();
    let span = running.cache.span_at(&path(0)).unwrap();
    span.go_offline();
    // The cache's thread may be retiring it just now.
    let done = freed.is_done();
    assert!(!done || running.cache.state.presence(span.uuid).unwrap() == Presence::Offline);
    running.cache.retire_spans();
    assert!(freed.is_done());
    drop((stripe, freed, span));
    running.kill();
}

/// A machine with RAM of its own, and what both hold of one key.
async fn with_old(spans: usize) -> (Machine, Running) {
    let mut machine = Machine::with(&[SpanTier::Capacity].repeat(spans));
    machine.ram = RamOptions::default();
    let running = machine.start().await;
    store(&running.cache, &key(1), b"old").unwrap();
    running.cache.sync().await;
    (machine, running)
}

/// The span that a key lies on.
fn span_of(running: &Running, n: u32) -> Arc<LiveSpan> {
    let owner = running.cache.owner(&key(n)).unwrap().unwrap();
    let spans = live_spans(&running.cache.spans.lock());
    let mut spans = spans.into_iter();
    spans.find(|span| span.uuid == owner.span_uuid()).unwrap()
}

#[tokio::test]
async fn a_store_for_a_span_that_ended_silently_is_counted_and_leaves_nothing_older() {
    let (_machine, running) = with_old(1).await;
    let cache = &running.cache;
    let newer = cache.writer(object(&key(1), cache.epoch())).unwrap();
    span_of(&running, 1).go_offline();
    assert!(newer.commit().is_err());
    assert!(cache.read(&key(1)).await.is_err());
    assert_eq!(running.registry.get(Metric::CacheWriteFailure), 1);
}

#[tokio::test]
async fn a_store_that_begins_after_a_silent_end_leaves_nothing_older_either() {
    let (_machine, running) = with_old(1).await;
    span_of(&running, 1).go_offline();
    assert!(store(&running.cache, &key(1), b"newer").is_err());
    assert!(running.cache.read(&key(1)).await.is_err());
    assert_eq!(running.registry.get(Metric::CacheWriteFailure), 1);
}

#[tokio::test]
async fn a_body_on_a_span_that_ended_silently_leaves_nothing_older() {
    let (_machine, running) = with_old(2).await;
    let cache = &running.cache;
    let mut newer = cache.writer(object(&key(1), cache.epoch())).unwrap();
    newer.push(&Bytes::from(text(1, 3 << 20))).unwrap();
    span_of(&running, 1).go_offline();
    assert!(newer.commit().is_err());
    assert!(cache.read(&key(1)).await.is_err());
}

#[tokio::test]
async fn nobody_takes_a_span_s_place_before_its_end_is_remembered() {
    let (_machine, running) = with_old(2).await;
    let cache = &running.cache;
    let span = span_of(&running, 1);
    span.go_offline();
    // Another span comes, or hosts get other volumes, before the next look.
    cache.place_anew();
    let presence = cache.state.presence(span.uuid).unwrap();
    assert_eq!(presence, Presence::Offline);
    store(cache, &key(1), b"newer").unwrap();
    assert_eq!(body(&cache.read(&key(1)).await.unwrap()), b"newer");
}

#[tokio::test]
async fn a_head_whose_span_ends_while_it_waits_is_counted_as_lost() {
    let machine = Machine::with(&[SpanTier::Fast, SpanTier::Capacity]);
    let running = machine.start().await;
    let cache = &running.cache;
    // Its older copy is on the fast tier: the newer head waits for its end.
    cache.configure(LiveOptions {
        tier: TierOptions {
            fills: SpanTier::Fast,
            ..TierOptions::default()
        },
        ..CacheOptions::default().live()
    });
    store(cache, &key(1), b"old").unwrap();
    cache.configure(CacheOptions::default().live());
    cache.sync().await;
    machine.disks[0].1.hang(true);
    store(cache, &key(1), b"newer").unwrap();
    assert_eq!(cache.deferred.keys().len(), 1);
    span_of(&running, 1).go_offline();
    // What it waits for comes to nothing.
    for span in live_spans(&cache.spans.lock()) {
        span.retire();
    }
    cache.place_deferred();
    assert_eq!(cache.deferred.keys().len(), 0);
    assert_eq!(running.registry.get(Metric::CacheWriteLost), 1);
    machine.disks[0].1.hang(false);
}
