//! What is pinned outlives the cursor until its time is over, within a tenth
//! of its stripe.

use super::machine::{Machine, Running, all, text};
use super::*;
use crate::cache::tier::SpanTier;

/// Objects that no test reads again have numbers from here on.
const COLD: u32 = 1000;
/// Bytes of a cold object.
const COLD_BYTES: usize = 50_000;
/// Until when, in seconds; the clock of the tests stands long before.
const LATER: u64 = u64::MAX;

impl Running {
    fn pin(&self, n: u32, len: usize, until: u64) -> Result<(), NotStored> {
        let writer = self.cache.writer(object(&key(n), self.cache.epoch()))?;
        let mut writer = writer.pinned_until(until);
        for piece in text(n, len).chunks(1 << 20) {
            writer.push(&Bytes::copy_from_slice(piece))?;
        }
        writer.commit()
    }

    /// Stores `megabytes` of cold objects from number `first` on, as fast as
    /// the stripe takes them; the next number.
    async fn go_on(&self, first: u32, megabytes: usize) -> u32 {
        let count = u32::try_from((megabytes << 20) / COLD_BYTES).unwrap();
        for n in first..first + count {
            while store(&self.cache, &key(n), &text(n, COLD_BYTES)) == Err(NotStored::Backlog) {
                self.cache.sync().await;
                self.cache.evacuate().await;
            }
        }
        self.cache.sync().await;
        first + count
    }

    async fn has(&self, n: u32, len: usize) -> bool {
        let Ok(mut hit) = self.cache.read(&key(n)).await else {
            return false;
        };
        let whole = all(&mut hit).await;
        assert!(whole == text(n, len), "{n}");
        true
    }
}

#[tokio::test]
async fn what_is_pinned_outlives_the_cursor_though_nobody_reads_it() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    running.pin(1, 9000, LATER).unwrap();
    running.pin(2, (2 << 20) + 7, LATER).unwrap();
    store(&running.cache, &key(3), &text(3, 9000)).unwrap();
    running.cache.sync().await;
    // Four turns of the log.
    running.go_on(COLD, 160).await;
    assert!(running.has(1, 9000).await);
    assert!(running.has(2, (2 << 20) + 7).await);
    assert!(!running.has(3, 9000).await);
    running.kill();
    // And it stays pinned over a crash.
    let running = machine.start().await;
    running.go_on(COLD, 80).await;
    assert!(running.has(1, 9000).await);
    assert!(running.has(2, (2 << 20) + 7).await);
}

#[tokio::test]
async fn a_pin_ends_with_its_time_its_object_or_a_purge() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let now = running.clock.wall().as_secs();
    running.pin(1, 3 << 20, now + 10).unwrap();
    running.pin(2, 1 << 20, LATER).unwrap();
    running.cache.purge(&key(2)).await.unwrap();
    running.cache.sync().await;
    let next = running.go_on(COLD, 80).await;
    assert!(running.has(1, 3 << 20).await);
    running.clock.advance(std::time::Duration::from_secs(11));
    running.go_on(next, 120).await;
    assert!(!running.has(1, 3 << 20).await);
    running.cache.publish();
    // Nothing of what was purged or has expired is carried along.
    assert_eq!(running.registry.get(Metric::CachePinnedBytes), 0);
}

#[tokio::test]
async fn a_tenth_of_a_stripe_may_be_pinned_and_more_is_refused_and_counted() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let tenth = running.cache.volume.stripes()[0].log_bytes() / 10;
    let mut stored = 0;
    while running.registry.get(Metric::CachePinsRefused) == 0 {
        stored += 1;
        while running.pin(stored, 400_000, LATER) == Err(NotStored::Backlog) {
            running.cache.sync().await;
        }
        assert!(u64::from(stored) * 400_000 < tenth + 400_000, "{stored}");
    }
    running.cache.publish();
    let pinned = running.registry.get(Metric::CachePinnedBytes);
    assert!(
        pinned <= tenth && pinned + 430_000 > tenth,
        "{pinned} of {tenth}"
    );
    // What is refused is stored all the same.
    assert!(running.has(stored, 400_000).await);
    running.go_on(COLD, 120).await;
    for n in 1..stored {
        assert!(running.has(n, 400_000).await, "{n}");
    }
    assert!(!running.has(stored, 400_000).await);
    assert_eq!(running.registry.get(Metric::CachePinsRefused), 1);
}

#[tokio::test]
async fn each_part_that_finds_no_room_for_its_pin_is_counted() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let object = NewObject {
        body_len: Some(5 << 20),
        ..object(&key(1), running.cache.epoch())
    };
    let begun = running.cache.begin_parts(object, Some(LATER));
    let parts = begun.unwrap().await.unwrap().parts().unwrap();
    let part = Bytes::from(vec![0; 1 << 20]);
    (0..5).for_each(|index| parts.store(index, &part).unwrap());
    running.cache.publish();
    let pinned = running.registry.get(Metric::CachePinnedBytes) >> 20;
    assert!((1..5).contains(&pinned), "{pinned}");
    assert_eq!(running.registry.get(Metric::CachePinsRefused), 5 - pinned);
}

#[tokio::test]
async fn a_refresh_keeps_the_pin() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    running.pin(1, 9000, LATER).unwrap();
    running.cache.sync().await;
    let hit = running.cache.read(&key(1)).await.unwrap();
    let fresh = Bytes::from_static(b"fresh");
    running.cache.refresh(&hit.copy, &key(1), fresh).unwrap();
    running.go_on(COLD, 120).await;
    let hit = running.cache.read(&key(1)).await.unwrap();
    assert_eq!(&*hit.meta, b"fresh");
}
