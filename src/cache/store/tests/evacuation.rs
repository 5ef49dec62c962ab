//! What was read outlives the cursor; what only the fast tier has goes down.

use super::machine::{Machine, Running, all, text};
use super::*;
use crate::cache::options::TierOptions;
use crate::cache::tier::{SpanTier, WriteCause};

const HOT: u32 = 10;
/// Objects that no test reads again have numbers from here on.
const COLD: u32 = 1000;
/// Bytes of a cold object.
const LEN: usize = 50_000;

impl Running {
    /// Stores cold objects from `first` on, `megabytes` in all; the next free
    /// number.
    async fn pass(&self, first: u32, megabytes: usize) -> u32 {
        let count = u32::try_from((megabytes << 20) / LEN).unwrap();
        for n in first..first + count {
            while store(&self.cache, &key(n), &text(n, LEN)) == Err(NotStored::Backlog) {
                self.cache.sync().await;
            }
            if n % 20 == 0 {
                self.cache.sync().await;
                self.cache.evacuate().await;
            }
        }
        first + count
    }

    async fn hot(&self) -> Vec<Tier> {
        let mut tiers = Vec::new();
        for n in 0..HOT {
            if let Ok(mut hit) = self.cache.read(&key(n)).await {
                assert!(all(&mut hit).await == text(n, 9000), "{n}");
                tiers.push(hit.tier);
            }
        }
        tiers
    }

    fn set_promote_after(&self, promote_after: u32) {
        let mut live = **self.cache.live.load();
        live.tier = TierOptions {
            promote_after,
            ..live.tier
        };
        self.cache.configure(live);
    }

    fn store_hot(&self) {
        for n in 0..HOT {
            store(&self.cache, &key(n), &text(n, 9000)).unwrap();
        }
    }
}

#[tokio::test]
async fn what_only_ram_served_outlives_the_cursor_too() {
    let mut machine = Machine::with(&[SpanTier::Capacity]);
    machine.ram = RamOptions::default();
    let running = machine.start().await;
    running.store_hot();
    running.cache.sync().await;
    for n in 0..HOT {
        assert_eq!(running.cache.read(&key(n)).await.unwrap().tier, Tier::Ram);
    }
    running.pass(COLD, 45).await;
    running.cache.shutdown().await;
    running.kill();
    machine.ram.cutoff = 1;
    let again = machine.start().await;
    assert_eq!(again.hot().await.len(), usize::try_from(HOT).unwrap());
}

#[tokio::test]
async fn what_is_noted_as_used_is_looked_up_no_more_until_it_lies_elsewhere() {
    let mut machine = Machine::with(&[SpanTier::Capacity]);
    machine.ram = RamOptions::default();
    let running = machine.start().await;
    running.store_hot();
    running.cache.sync().await;
    let held = || running.cache.read_ram(&key(3)).unwrap().copy.0;
    let noted = || held().home.as_ref().unwrap().is_noted();
    let entry = || held().home.as_ref().unwrap().entry;
    let first = held();
    assert!(!first.home.as_ref().unwrap().is_noted());
    assert!(noted() && noted());
    let before = entry();
    running.pass(COLD, 38).await;
    assert!(!before.same_place(entry()), "it was evacuated");
    assert!(noted());
    // The second turn keeps it too: its new place was noted anew.
    running.pass(COLD, 38).await;
    running.cache.shutdown().await;
    running.kill();
    machine.ram.cutoff = 1;
    assert!(machine.start().await.cache.read(&key(3)).await.is_ok());
}

#[tokio::test]
async fn what_was_read_outlives_the_cursor_and_what_was_not_does_not() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    running.store_hot();
    for n in 100..110 {
        store(&running.cache, &key(n), &text(n, 9000)).unwrap();
    }
    running.cache.sync().await;
    assert_eq!(running.hot().await.len(), 10);
    running.pass(COLD, 45).await;
    assert_eq!(running.hot().await.len(), 10);
    for n in 100..110 {
        assert!(running.cache.read(&key(n)).await.is_err(), "{n}");
    }
    let fragments = running.registry.get(Metric::CacheEvacuatedFragments);
    assert_eq!(fragments, 10);
    running.cache.shutdown().await;
    running.kill();
    assert_eq!(machine.start().await.hot().await.len(), 10);
}

#[tokio::test]
async fn a_marker_that_was_read_outlives_the_cursor_whatever_else_was() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    for n in 0..2000 {
        store(&running.cache, &key(n), &text(n, 2500)).unwrap();
        if n % 200 == 0 {
            running.cache.sync().await;
        }
    }
    let marker = NewObject {
        kind: ObjectKind::Marker,
        meta: Bytes::from(vec![5; 4000]),
        ..object(&key(2000), running.cache.epoch())
    };
    running.cache.writer(marker).unwrap().commit().unwrap();
    running.cache.sync().await;
    for n in 0..=2000 {
        assert!(running.cache.read(&key(n)).await.is_ok(), "{n}");
    }
    running.pass(3000, 40).await;
    assert!(running.registry.get(Metric::CacheEvacuationsRefused) > 100);
    running.cache.shutdown().await;
    running.kill();
    let again = machine.start().await;
    assert!(again.cache.read(&key(2000)).await.is_ok());
}

#[tokio::test]
async fn a_disk_that_is_silent_holds_up_no_other_disk_s_walk() {
    let machine = Machine::with(&[SpanTier::Capacity; 2]);
    let running = machine.start().await;
    for n in 0..30 {
        store(&running.cache, &key(n), &text(n, 9000)).unwrap();
    }
    running.cache.sync().await;
    for n in 0..30 {
        running.cache.read(&key(n)).await.unwrap();
    }
    // The walk's own reads.
    machine.disks[0].1.hold(64 << 10);
    let stripes = running.cache.volume.stripes();
    let near = |stripe: &Arc<LiveStripe>| stripe.log_used() >= stripe.log_bytes() / 5 * 4;
    let mut next = COLD;
    while !stripes.iter().all(near) {
        // A store that the backlog refuses is as good as none.
        store(&running.cache, &key(next), &text(next, LEN)).ok();
        running.cache.sync().await;
        next += 1;
    }
    let evacuated = || running.registry.get(Metric::CacheEvacuatedFragments);
    for n in 0..3000 {
        if evacuated() > 0 {
            break;
        }
        // Each has the cache's thread look, which wakes the walk.
        running.cache.purge(&key(next + n)).await.unwrap();
    }
    assert!(evacuated() > 0);
    machine.disks[0].1.let_go();
}

#[tokio::test]
async fn the_walk_charges_a_span_for_its_faults_and_not_for_being_busy() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let next = running.pass(COLD, 28).await;
    let counts = || {
        let read = running.registry.get(Metric::CacheSpanErrorsRead);
        (running.cache.status().spans[0].errors, read)
    };
    machine.disks[0].1.crowd();
    let next = running.pass(next, 6).await;
    assert!(running.registry.get(Metric::CacheReadBusy) > 5);
    assert_eq!(counts(), (0, 0));
    machine.disks[0].1.fail(true, false);
    running.pass(next, 6).await;
    assert_eq!(counts(), (5, 5));
}

#[tokio::test]
async fn evacuated_bytes_are_a_tenth_of_the_appended_ones_at_most() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let next = running.pass(COLD, 24).await;
    for n in COLD..next {
        running.cache.read(&key(n)).await.unwrap();
    }
    running.pass(next, 30).await;
    let evacuated = running.registry.get(Metric::CacheEvacuatedBytes);
    let appended = running.registry.get(Metric::CacheWriteBytes);
    assert!(evacuated > 1 << 20, "{evacuated}");
    let refused = running.registry.get(Metric::CacheEvacuationsRefused);
    assert!(refused > 10, "{refused}");
    assert!(evacuated <= appended / 10, "{evacuated} of {appended}");
}

#[tokio::test]
async fn an_object_in_ram_can_be_refreshed_though_it_was_evacuated() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    running.cache.set_ram_cutoff(10_000);
    running.store_hot();
    running.cache.sync().await;
    running.cache.set_ram_cutoff(1);
    running.hot().await;
    running.cache.set_ram_cutoff(10_000);
    assert_eq!(running.hot().await.len(), 10);
    running.pass(COLD, 45).await;
    let hit = running.cache.read_ram(&key(3)).unwrap();
    let fresh = Bytes::from_static(b"fresh");
    running.cache.refresh(&hit.copy, &key(3), fresh).unwrap();
    assert_eq!(&*running.cache.read(&key(3)).await.unwrap().meta, b"fresh");
}

#[tokio::test]
async fn an_update_is_not_undone_by_the_evacuation_of_what_it_replaced() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    for n in 0..HOT {
        store(&running.cache, &key(n), b"old").unwrap();
    }
    running.cache.sync().await;
    for n in 0..HOT {
        running.cache.read(&key(n)).await.unwrap();
    }
    let next = running.pass(COLD, 20).await;
    running.store_hot();
    running.cache.purge(&key(0)).await.unwrap();
    running.pass(next, 20).await;
    assert_eq!(running.hot().await.len(), 9);
    running.kill();
    assert_eq!(machine.start().await.hot().await.len(), 9);
}

#[tokio::test]
async fn what_only_the_fast_tier_has_left_and_was_read_goes_to_the_capacity_tier() {
    let mut machine = Machine::with(&[SpanTier::Fast, SpanTier::Capacity]);
    let running = machine.start().await;
    running.store_hot();
    running.cache.sync().await;
    for _ in 0..2 {
        running.hot().await;
    }
    running.cache.mover.settled().await;
    running.set_promote_after(255);
    // The first turn keeps what was read there before it was promoted.
    let mut next = running.pass(COLD, 80).await;
    assert_eq!(running.hot().await, [Tier::Fast; 10]);
    let holders = |n: u32| running.cache.volume.capacity_may_hold(&key(n));
    assert!((0..HOT).all(|n| !holders(n)));

    running.set_promote_after(0);
    while running.registry.get(Metric::TierDemotions) < 10 && next < 4000 {
        let first = next;
        next = running.pass(first, 1).await;
        running.cache.sync().await;
        for n in first..next {
            running.cache.read(&key(n)).await.unwrap();
        }
        running.cache.mover.settled().await;
    }
    assert_eq!(running.registry.get(Metric::TierDemotions), 10);
    running.cache.shutdown().await;
    running.kill();
    machine.disks.remove(0);
    assert_eq!(machine.start().await.hot().await, [Tier::Capacity; 10]);
}

#[tokio::test]
async fn an_evacuation_that_fails_leaves_its_bytes_in_the_budget() {
    let mut machine = Machine::with(&[SpanTier::Fast]);
    machine.ram.cutoff = 1;
    let running = machine.start().await;
    let budget = 1 << 40;
    let mut live = **running.cache.live.load();
    live.tier.fast_write_budget = budget;
    live.max_checksum_errors = 0;
    running.cache.configure(live);
    let next = running.pass(COLD, 24).await;
    for n in COLD..next {
        running.cache.read(&key(n)).await.unwrap();
    }
    running.cache.sync().await;
    let stripe = running.cache.volume.stripes().remove(0);
    let charged = || live_budget(&running) + written(&running);
    let before = charged();
    // What is to be kept is damaged: each costs a read, and nothing written.
    machine.disks[0].1.edit(|bytes| {
        for walked in (0..stripe.bucket_count()).flat_map(|bucket| stripe.walk(bucket)) {
            let at = usize::try_from(stripe.on_span(&walked.place)).unwrap();
            bytes[at + 40_000] ^= 1;
        }
    });
    running.pass(next, 20).await;
    assert!(running.registry.get(Metric::CacheReadInvalid) > 20);
    assert_eq!(charged(), before);
}

/// Bytes left of what may be written to the fast tier.
fn live_budget(running: &Running) -> u64 {
    running.cache.publish();
    running.registry.get(Metric::TierFastBudgetLeft)
}

/// Bytes written to the fast tier so far, by all causes.
fn written(running: &Running) -> u64 {
    let causes = [
        WriteCause::Fill,
        WriteCause::Refresh,
        WriteCause::Evacuation,
    ];
    let fragments = causes.map(WriteCause::fast_bytes);
    let beside = [Metric::TierFastWrittenLog, Metric::TierFastWrittenSync];
    let all = fragments.into_iter().chain(beside);
    all.map(|metric| running.registry.get(metric)).sum()
}
