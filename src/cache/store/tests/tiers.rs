//! Two tiers: what is promoted, and that no copy outlives what it is of.

use super::machine::{Machine, Running, all, text};
use super::*;
use crate::cache::options::TierOptions;
use crate::cache::tier::SpanTier;
use std::time::Duration;

const FAST_FIRST: [SpanTier; 2] = [SpanTier::Fast, SpanTier::Capacity];

impl Running {
    /// A read, which must give `body`; where it came from.
    async fn read(&self, n: u32, body: &[u8]) -> Tier {
        let mut hit = self.cache.read(&key(n)).await.unwrap();
        assert!(all(&mut hit).await == body, "{n}");
        hit.tier
    }

    /// Stores an object and brings it to the fast tier.
    async fn promoted(&self, n: u32, body: &[u8]) {
        store(&self.cache, &key(n), body).unwrap();
        self.cache.sync().await;
        for _ in 0..2 {
            assert_eq!(self.read(n, body).await, Tier::Capacity);
        }
        self.cache.mover.settled().await;
        assert_eq!(self.read(n, body).await, Tier::Fast);
    }

    fn count(&self, metric: Metric) -> u64 {
        self.registry.get(metric)
    }

    fn set_tier(&self, tier: TierOptions) {
        let live = **self.cache.live.load();
        self.cache.configure(LiveOptions { tier, ..live });
    }
}

#[tokio::test]
async fn an_object_read_often_enough_is_promoted_once_it_is_written() {
    let machine = Machine::with(&FAST_FIRST);
    let running = machine.start().await;
    let body = text(1, 5000);
    store(&running.cache, &key(1), &body).unwrap();
    for _ in 0..5 {
        assert_eq!(running.read(1, &body).await, Tier::Capacity);
    }
    running.cache.mover.settled().await;
    assert_eq!(
        running.count(Metric::TierPromotions),
        0,
        "it is in the buffer"
    );
    running.cache.sync().await;
    assert_eq!(running.read(1, &body).await, Tier::Capacity);
    running.cache.mover.settled().await;
    assert_eq!(running.read(1, &body).await, Tier::Fast);
    assert_eq!(running.count(Metric::TierPromotions), 1);
    assert_eq!(running.counts(), [7, 0, 1, 6]);
    let bytes = [Metric::TierFastBytes, Metric::TierCapacityBytes];
    assert_eq!(bytes.map(|metric| running.count(metric)), [5004, 6 * 5004]);
}

#[tokio::test]
async fn the_threshold_says_how_many_reads_it_takes() {
    let machine = Machine::with(&FAST_FIRST);
    let running = machine.start().await;
    running.set_tier(TierOptions {
        promote_after: 4,
        ..TierOptions::default()
    });
    store(&running.cache, &key(1), b"body").unwrap();
    running.cache.sync().await;
    for _ in 0..4 {
        running.cache.mover.settled().await;
        assert_eq!(running.read(1, b"body").await, Tier::Capacity);
    }
    running.cache.mover.settled().await;
    assert_eq!(running.read(1, b"body").await, Tier::Fast);
}

#[tokio::test]
async fn promoted_objects_are_there_after_a_kill_and_without_the_fast_tier() {
    let mut machine = Machine::with(&FAST_FIRST);
    let first = machine.start().await;
    for n in 0..50 {
        first.promoted(n, &text(n, 4000)).await;
    }
    first.cache.sync().await;
    first.kill();
    let second = machine.start().await;
    for n in 0..50 {
        assert_eq!(second.read(n, &text(n, 4000)).await, Tier::Fast);
    }
    second.kill();
    machine.disks.remove(0);
    let third = machine.start().await;
    for n in 0..50 {
        assert_eq!(third.read(n, &text(n, 4000)).await, Tier::Capacity);
    }
}

#[tokio::test]
async fn a_long_body_is_promoted_fragment_by_fragment_and_read_on_from_capacity() {
    let machine = Machine::with(&FAST_FIRST);
    let running = machine.start().await;
    let body = text(9, (3 << 20) + 77);
    running.promoted(9, &body).await;
    assert_eq!(running.count(Metric::TierPromotions), 1);
    running.cache.sync().await;
    let mut hit = running.cache.read(&key(9)).await.unwrap();
    let first = hit.body.next().await.unwrap().unwrap();
    running
        .cache
        .offline(&super::machine::path(0))
        .await
        .unwrap();
    let rest = all(&mut hit).await;
    assert!([&first[..], &rest].concat() == body);
}

#[tokio::test]
async fn an_update_is_never_followed_by_the_promoted_copy_it_replaced() {
    for kill in [false, true] {
        let machine = Machine::with(&FAST_FIRST);
        let first = machine.start().await;
        for n in 0..30 {
            first.promoted(n, b"old").await;
            store(&first.cache, &key(n), b"new").unwrap();
            // Its head waits for the fast tier's free rows; it is read at once.
            assert_eq!(first.read(n, b"new").await, Tier::Capacity);
        }
        first.cache.sync().await;
        if !kill {
            first.cache.shutdown().await;
        }
        first.kill();
        let second = machine.start().await;
        for n in 0..30 {
            assert_eq!(second.read(n, b"new").await, Tier::Capacity);
        }
    }
}

#[tokio::test]
async fn an_update_lost_in_a_kill_leaves_no_older_copy_behind_a_newer_one() {
    for flush in [false, true] {
        let machine = Machine::with(&FAST_FIRST);
        let first = machine.start().await;
        first.promoted(1, b"old").await;
        first.cache.sync().await;
        store(&first.cache, &key(1), b"new").unwrap();
        if flush {
            first.cache.flush().await;
        }
        first.kill();
        let second = machine.start().await;
        if let Ok(mut hit) = second.cache.read(&key(1)).await {
            assert_eq!(all(&mut hit).await, b"old");
        }
        store(&second.cache, &key(1), b"newer").unwrap();
        second.cache.sync().await;
        second.kill();
        let third = machine.start().await;
        third.read(1, b"newer").await;
    }
}

#[tokio::test]
async fn a_copy_made_from_what_was_replaced_or_purged_gets_no_place() {
    let machine = Machine::with(&FAST_FIRST);
    let running = machine.start().await;
    for n in 0..3 {
        store(&running.cache, &key(n), b"old").unwrap();
    }
    running.cache.sync().await;
    let hits = [0, 1, 2].map(key);
    let mut copies = Vec::new();
    for key in &hits {
        copies.push(running.cache.read(key).await.unwrap().copy.0);
    }
    store(&running.cache, &key(0), b"new").unwrap();
    running.cache.purge(&key(1)).await.unwrap();
    running
        .cache
        .refresh(
            &CopyRef(Arc::clone(&copies[2])),
            &key(2),
            Bytes::from_static(b"fresh"),
        )
        .unwrap();
    for copy in &copies {
        running.cache.carry(copy).await;
    }
    assert_eq!(running.count(Metric::TierPromotions), 0);
    assert_eq!(running.count(Metric::TierRefusedGone), 3);
    assert_eq!(running.read(0, b"new").await, Tier::Capacity);
    assert_eq!(running.cache.read(&key(1)).await.unwrap_err(), Miss::Absent);
    assert_eq!(&*running.cache.read(&key(2)).await.unwrap().meta, b"fresh");
}

#[tokio::test]
async fn a_purge_takes_both_copies_and_neither_comes_back() {
    let machine = Machine::with(&FAST_FIRST);
    let first = machine.start().await;
    for n in 0..20 {
        first.promoted(n, b"old").await;
    }
    first.cache.sync().await;
    for n in 0..20 {
        assert!(first.cache.purge(&key(n)).await.unwrap());
        assert_eq!(first.cache.read(&key(n)).await.unwrap_err(), Miss::Absent);
    }
    first.kill();
    let second = machine.start().await;
    for n in 0..20 {
        assert!(second.cache.read(&key(n)).await.is_err(), "{n}");
    }
}

/// What may go before a purge, within the second in which it is not written.
#[derive(Clone, Copy, Debug)]
enum Before {
    Purge,
    Remove,
    Store,
}

#[tokio::test]
async fn a_purge_holds_though_what_went_before_it_is_not_written_yet() {
    for before in [Before::Purge, Before::Remove, Before::Store] {
        let machine = Machine::with(&FAST_FIRST);
        let running = machine.start().await;
        running.promoted(1, b"old").await;
        running.cache.sync().await;
        match before {
            Before::Purge => drop(running.cache.purge(&key(1)).await),
            Before::Remove => running.cache.remove(&key(1)),
            Before::Store => store(&running.cache, &key(1), b"new").unwrap(),
        }
        // The thread looks after each: what it takes for finished it forgets.
        for n in [1, 2, 3] {
            running.cache.purge(&key(n)).await.unwrap();
        }
        running.kill();
        let again = machine.start().await;
        let found = again.cache.read(&key(1)).await;
        assert!(found.is_err(), "{before:?}: {found:?}");
    }
}

#[tokio::test]
async fn a_refresh_of_a_promoted_object_reaches_the_capacity_tier() {
    let mut machine = Machine::with(&FAST_FIRST);
    let first = machine.start().await;
    let long = text(2, (2 << 20) + 5);
    let bodies: [&[u8]; 2] = [b"short", &long];
    for (n, body) in (0..).zip(bodies) {
        first.promoted(n, body).await;
        let hit = first.cache.read(&key(n)).await.unwrap();
        let fresh = Bytes::from_static(b"fresh");
        first.cache.refresh(&hit.copy, &key(n), fresh).unwrap();
        assert_eq!(&*first.cache.read(&key(n)).await.unwrap().meta, b"fresh");
    }
    first.cache.sync().await;
    first.kill();
    machine.disks.remove(0);
    let second = machine.start().await;
    for (n, body) in (0..).zip(bodies) {
        let mut hit = second.cache.read(&key(n)).await.unwrap();
        assert_eq!((&*hit.meta, hit.tier), (&b"fresh"[..], Tier::Capacity));
        assert!(all(&mut hit).await == body);
    }
}

#[tokio::test]
async fn the_fast_span_may_go_and_return_without_an_error_or_an_old_copy() {
    let machine = Machine::with(&FAST_FIRST);
    let running = machine.start().await;
    for n in 0..20 {
        running.promoted(n, b"old").await;
    }
    running.cache.sync().await;
    machine.disks[0].1.fail(true, true);
    for n in 0..20 {
        assert_eq!(running.read(n, b"old").await, Tier::Capacity);
    }
    running.cache.retire_spans();
    for n in 0..10 {
        store(&running.cache, &key(n), b"new").unwrap();
    }
    running.cache.sync().await;
    machine.disks[0].1.fail(false, false);
    running.kill();
    let again = machine.start().await;
    for n in 0..20 {
        let body: &[u8] = if n < 10 { b"new" } else { b"old" };
        assert_eq!(again.read(n, body).await, Tier::Capacity);
    }
}

#[tokio::test]
async fn promotions_end_with_the_write_budget_and_each_refusal_is_counted() {
    let machine = Machine::with(&FAST_FIRST);
    let running = machine.start().await;
    let budget = 100_000;
    running.set_tier(TierOptions {
        fast_write_budget: budget,
        fast_write_burst: budget,
        promote_after: 0,
        ..TierOptions::default()
    });
    for n in 0..40 {
        store(&running.cache, &key(n), &text(n, 9000)).unwrap();
    }
    running.cache.sync().await;
    for n in 0..40 {
        running.read(n, &text(n, 9000)).await;
    }
    running.cache.mover.settled().await;
    let promoted = running.count(Metric::TierPromotions);
    assert!((5..=10).contains(&promoted), "{promoted}");
    assert_eq!(running.count(Metric::TierRefusedBudget), 40 - promoted);
    assert!(running.count(Metric::TierFastWrittenPromotion) <= budget);
    running.cache.publish();
    assert!(running.count(Metric::TierFastBudgetLeft) < 10_000);
}

#[tokio::test]
async fn a_start_gives_a_span_no_more_to_write_than_was_left_and_came_since() {
    let mut machine = Machine::with(&FAST_FIRST);
    machine.tier = TierOptions {
        fast_write_budget: 2_400_000,
        fast_write_burst: 200_000,
        promote_after: 0,
        ..TierOptions::default()
    };
    let left = |running: &Running| {
        running.cache.publish();
        running.count(Metric::TierFastBudgetLeft)
    };
    let first = machine.start().await;
    for n in 0..40 {
        store(&first.cache, &key(n), &text(n, 9000)).unwrap();
    }
    first.cache.sync().await;
    for n in 0..40 {
        first.read(n, &text(n, 9000)).await;
    }
    first.cache.mover.settled().await;
    assert!(left(&first) < 10_000);
    first.cache.shutdown().await;
    first.kill();
    let second = machine.start().await;
    assert!(left(&second) < 10_000, "{}", left(&second));
    second.clock.advance(Duration::from_secs(3600));
    assert!(left(&second) > 50_000);
    assert!(left(&second) <= 110_000, "{}", left(&second));
}

#[tokio::test]
async fn by_record_fills_go_to_the_fast_tier_while_its_budget_lasts() {
    let machine = Machine::with(&FAST_FIRST);
    let running = machine.start().await;
    running.set_tier(TierOptions {
        fills: SpanTier::Fast,
        fast_write_budget: 1_000_000,
        fast_write_burst: 50_000,
        ..TierOptions::default()
    });
    let mut fast = 0;
    for n in 0..20 {
        store(&running.cache, &key(n), &text(n, 9000)).unwrap();
        fast += u32::from(running.read(n, &text(n, 9000)).await == Tier::Fast);
    }
    assert!((4..=6).contains(&fast), "{fast}");
    assert!(running.count(Metric::TierFastWrittenFill) > 36_000);
}

#[tokio::test]
async fn every_byte_that_the_fast_span_takes_is_counted_by_its_cause() {
    let machine = Machine::with(&FAST_FIRST);
    let running = machine.start().await;
    for n in 0..10 {
        running.promoted(n, &text(n, 3000)).await;
    }
    running.cache.sync().await;
    let promotion = running.count(Metric::TierFastWrittenPromotion);
    assert!((30_000..40_000).contains(&promotion), "{promotion}");
    let log = running.count(Metric::TierFastWrittenLog);
    assert!((4096..100_000).contains(&log), "{log}");
    assert!(running.count(Metric::TierFastWrittenSync) > 0);
    let fill = Metric::TierFastWrittenFill;
    assert_eq!(running.count(fill), 0);
}

#[tokio::test]
async fn the_days_to_the_endurance_follow_from_the_life_that_is_remembered() {
    const DAY: Duration = Duration::from_secs(86_400);
    let machine = Machine::with(&[SpanTier::Fast]);
    let endurance = 1 << 30;
    let tier = TierOptions {
        fast_endurance: endurance,
        ..TierOptions::default()
    };
    let days = |running: &Running| {
        running.set_tier(tier);
        running.cache.publish();
        running.count(Metric::TierFastEnduranceDays)
    };
    let first = machine.start().await;
    first.clock.advance(DAY * 10);
    for n in 0..100 {
        store(&first.cache, &key(n), &text(n, 100_000)).unwrap();
        first.cache.sync().await;
    }
    let after_ten = days(&first);
    assert!((500..1100).contains(&after_ten), "{after_ten}");
    first.cache.shutdown().await;
    first.kill();
    let second = machine.start().await;
    let again = days(&second);
    // The start has written a little.
    assert!(
        (after_ten * 9 / 10..=after_ten).contains(&again),
        "{again} after {after_ten}"
    );
}
