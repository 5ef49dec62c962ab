//! Keys whose entries can't be told apart without reading: one page, one pair
//! of buckets, one tag.

use super::machine::{Machine, Running, all, text};
use super::*;
use crate::cache::directory::Home;
use crate::cache::tier::SpanTier;
use std::collections::HashMap;

/// Two numbers whose keys have one home, in a directory of one page.
fn twins() -> (u32, u32) {
    let mut homes = HashMap::new();
    let found = (0..100_000).find_map(|n| {
        let Home { buckets, tag, .. } = Home::of(key(n).hash(), 1);
        let home = (buckets[0].min(buckets[1]), tag);
        homes.insert(home, n).map(|earlier| (earlier, n))
    });
    found.unwrap()
}

async fn is_hit(running: &Running, n: u32) -> bool {
    match running.cache.read(&key(n)).await {
        Ok(mut hit) => {
            assert!(all(&mut hit).await == text(n, 5000), "{n}");
            true
        }
        Err(miss) => {
            assert_eq!(miss, Miss::Absent);
            false
        }
    }
}

fn put(running: &Running, n: u32) {
    store(&running.cache, &key(n), &text(n, 5000)).unwrap();
}

#[tokio::test]
async fn a_store_and_a_purge_spare_the_other_key_of_their_tag_that_was_read() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    assert_eq!(running.cache.volume.stripes().len(), 1);
    let (one, other) = twins();
    put(&running, one);
    running.cache.sync().await;
    // As a request does, before it fetches and stores.
    assert!(!is_hit(&running, other).await);
    put(&running, other);
    running.cache.sync().await;
    assert!(is_hit(&running, one).await && is_hit(&running, other).await);

    assert!(is_hit(&running, one).await);
    running.cache.purge(&key(other)).await.unwrap();
    assert!(is_hit(&running, one).await && !is_hit(&running, other).await);
    running.cache.purge(&key(one)).await.unwrap();
    assert!(!is_hit(&running, one).await);
}

#[tokio::test]
async fn a_store_spares_the_other_key_of_its_tag_that_still_waits_to_be_written() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let (one, other) = twins();
    assert!(!is_hit(&running, other).await);
    put(&running, one);
    put(&running, other);
    assert!(is_hit(&running, one).await && is_hit(&running, other).await);
}
