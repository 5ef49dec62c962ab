//! Bodies of every length, those that are held in part, and readers that are
//! slower than the cursor.

use super::machine::{Machine, Running, all, text};
use super::*;
use crate::cache::object::{BodyError, Parts};
use crate::cache::tier::SpanTier;

const FRAGMENT: usize = 1 << 20;

/// Objects that no test reads again have numbers from here on.
const COLD: u32 = 1000;

fn put(cache: &Arc<Cache>, n: u32, len: usize) -> Result<(), NotStored> {
    let mut writer = cache.writer(object(&key(n), cache.epoch()))?;
    for piece in text(n, len).chunks(100_000) {
        writer.push(&Bytes::copy_from_slice(piece))?;
    }
    writer.commit()
}

impl Running {
    async fn put(&self, n: u32, len: usize) {
        while put(&self.cache, n, len) == Err(NotStored::Backlog) {
            self.cache.sync().await;
        }
    }

    /// Stores so many megabytes.
    async fn pour(&self, first: u32, megabytes: u32) {
        for n in first..first + megabytes {
            self.put(n, FRAGMENT).await;
        }
        self.cache.sync().await;
    }

    async fn begin(&self, n: u32, len: usize) -> Parts {
        let len = u64::try_from(len).unwrap();
        let object = NewObject {
            body_len: Some(len),
            ..object(&key(n), self.cache.epoch())
        };
        let hit = self.cache.begin_parts(object, None).unwrap().await.unwrap();
        hit.parts().unwrap()
    }

    async fn parts(&self, n: u32) -> Parts {
        self.cache.read(&key(n)).await.unwrap().parts().unwrap()
    }
}

fn piece(n: u32, len: usize, index: u64) -> Bytes {
    let from = usize::try_from(index).unwrap() * FRAGMENT;
    let whole = text(n, len);
    Bytes::copy_from_slice(&whole[from..len.min(from + FRAGMENT)])
}

fn held(parts: &Parts) -> Vec<u64> {
    (0..parts.count()).filter(|n| parts.has(*n)).collect()
}

#[tokio::test]
async fn bodies_of_every_length_come_back_before_and_after_a_kill() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let lengths = [
        0,
        1,
        FRAGMENT - 1,
        FRAGMENT,
        FRAGMENT + 1,
        3 * FRAGMENT,
        3 * FRAGMENT + 7,
    ];
    for (n, len) in (1..).zip(lengths) {
        running.put(n, len).await;
    }
    running.cache.sync().await;
    let running = {
        running.kill();
        machine.start().await
    };
    for (n, len) in (1..).zip(lengths) {
        let mut hit = running.cache.read(&key(n)).await.unwrap();
        assert_eq!(hit.body_len, u64::try_from(len).unwrap());
        assert!(all(&mut hit).await == text(n, len), "{len}");
    }
}

#[tokio::test]
async fn a_slow_reader_that_the_cursor_overtakes_is_cut_and_what_it_has_stays_right() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let len = 8 * FRAGMENT;
    running.put(1, len).await;
    running.cache.sync().await;
    let mut readers = Vec::new();
    for _ in 0..20 {
        let mut hit = running.cache.read(&key(1)).await.unwrap();
        let first = hit.body.next().await.unwrap().unwrap();
        readers.push((hit, first));
    }
    // Two turns of the log while they hold what they have read.
    running.pour(COLD, 80).await;
    for (mut hit, first) in readers {
        assert!(first == text(1, len)[..FRAGMENT], "held bytes changed");
        let cut = loop {
            match hit.body.next().await {
                Ok(Some(more)) => assert!(more == piece(1, len, 1)),
                Ok(None) => panic!("a clean end of what is gone"),
                Err(error) => break error,
            }
        };
        assert!(matches!(cut, BodyError::Missing { .. }), "{cut}");
    }
    assert!(running.cache.read(&key(1)).await.is_err());
}

#[tokio::test]
async fn parts_come_in_any_order_and_make_the_whole_over_a_kill_too() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let len = 3 * FRAGMENT + 5;
    let parts = running.begin(1, len).await;
    assert_eq!((parts.count(), parts.is_whole()), (4, false));
    for index in [3, 0, 2] {
        parts.store(index, &piece(1, len, index)).unwrap();
    }
    let short = parts.store(1, &piece(1, len, 3));
    assert_eq!(short, Err(NotStored::WrongLength));
    running.cache.renew(&parts).await;
    running.cache.sync().await;
    let id = parts.id();
    drop(parts);
    running.kill();
    let running = machine.start().await;
    let parts = running.parts(1).await;
    assert_eq!((parts.id(), held(&parts)), (id, vec![0, 2, 3]));
    assert!(parts.read(2).await.unwrap() == piece(1, len, 2));
    assert!(parts.read(1).await.is_err());
    parts.store(1, &piece(1, len, 1)).unwrap();
    assert!(parts.is_whole());
    let mut hit = running.cache.read(&key(1)).await.unwrap();
    assert!(all(&mut hit).await == text(1, len));
}

#[tokio::test]
async fn a_copy_that_lost_a_part_goes_alone() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let remove = |hit: &Hit| running.cache.remove_copy(&hit.body.copy(), &key(1));
    running.put(1, 2 * FRAGMENT).await;
    let old = running.cache.read(&key(1)).await.unwrap();
    running.put(1, 3 * FRAGMENT).await;
    remove(&old);
    let new = running.cache.read(&key(1)).await.unwrap();
    assert_eq!(new.body_len, 3 << 20);
    remove(&new);
    assert!(running.cache.read(&key(1)).await.is_err());
}

#[tokio::test]
async fn parts_in_doubt_stay_so_however_far_the_cursor_is() {
    let mut machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let len = 2 * FRAGMENT;
    let parts = running.begin(1, len).await;
    parts.store(0, &piece(1, len, 0)).unwrap();
    running.pour(COLD, 20).await;
    running.cache.shutdown().await;
    drop(parts);
    running.kill();
    let disks = std::mem::take(&mut machine.disks);
    machine.start().await.kill();
    machine.disks = disks;
    let running = machine.start().await;
    for _ in 0..2 {
        let hit = running.cache.read(&key(1)).await.unwrap();
        assert!(hit.suspect);
        running.cache.renew(&hit.parts().unwrap()).await;
    }
}

#[tokio::test]
async fn nothing_is_added_to_parts_that_were_purged_or_replaced() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let len = 2 * FRAGMENT;
    let old = running.begin(1, len).await;
    old.store(0, &piece(1, len, 0)).unwrap();
    running.cache.purge(&key(1)).await.unwrap();
    let refused = old.store(1, &piece(1, len, 1));
    assert_eq!(refused, Err(NotStored::Replaced));
    assert!(running.cache.read(&key(1)).await.is_err());
    let new = running.begin(1, len).await;
    assert_ne!(new.id(), old.id());
    assert_eq!(held(&running.parts(1).await), [0; 0]);
    // An old one's late renewal changes nothing.
    running.cache.renew(&old).await;
    assert_eq!(running.parts(1).await.id(), new.id());
}

#[tokio::test]
async fn an_object_longer_than_the_log_is_held_in_part_and_its_head_stays_while_it_is_read() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let log = running.cache.volume.stripes()[0].log_bytes();
    let object = NewObject {
        body_len: Some(50_000_000_000),
        ..object(&key(1), running.cache.epoch())
    };
    let hit = running
        .cache
        .begin_parts(object, None)
        .unwrap()
        .await
        .unwrap();
    let id = hit.parts().unwrap().id();
    assert!(log < 50_000_000_000);
    for round in 0..10 {
        running.pour(COLD + round * 10, 10).await;
        let parts = running.parts(1).await;
        assert_eq!(parts.id(), id);
        let last = u64::from(round) * 4000;
        let bytes = Bytes::from(vec![1; FRAGMENT]);
        parts.store(last, &bytes).unwrap();
        assert!(parts.has(last));
    }
    // What was stored first was passed by the cursor since.
    assert!(!running.parts(1).await.has(0));
}
