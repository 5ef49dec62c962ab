//! What a hit may cost.

use super::machine::{Machine, all, text};
use super::*;
use crate::cache::tier::SpanTier;

/// Stores a marker, whose text leads on to an alternate.
fn store_marker(cache: &Arc<Cache>, key: &CacheKey) {
    let marker = NewObject {
        kind: ObjectKind::Marker,
        ..object(key, cache.epoch())
    };
    cache.writer(marker).unwrap().commit().unwrap();
}

#[tokio::test]
async fn a_hit_of_one_fragment_is_one_read_and_two_behind_a_marker_that_ram_does_not_have() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let first = machine.start().await;
    let fragment = usize::try_from(machine.fragment_bytes).unwrap();
    let lengths = [100, 4096, 15_000, 200_000, fragment];
    for (n, length) in (0..).zip(lengths) {
        store(&first.cache, &key(n), &text(n, length)).unwrap();
    }
    store_marker(&first.cache, &key(100));
    first.cache.shutdown().await;
    first.kill();

    let second = machine.start().await;
    let reads = || machine.disks[0].1.reads();
    for (n, length) in (0..).zip(lengths) {
        let before = reads();
        let mut hit = second.cache.read(&key(n)).await.unwrap();
        assert_eq!(all(&mut hit).await, text(n, length));
        assert_eq!(reads() - before, 1, "{length} bytes");
    }
    // Its alternate is one of the objects above.
    for marker_reads in [1, 0] {
        let before = reads();
        let marker = second.cache.read(&key(100)).await.unwrap();
        assert_eq!(marker.kind, ObjectKind::Marker);
        assert_eq!(reads() - before, marker_reads);
    }
}
