//! Ranges of long bodies: what they read, and that it is right.

use super::machine::{Machine, Running};
use super::*;
use crate::base::prng::Prng;
use crate::cache::object::BodyError;
use crate::cache::tier::SpanTier;
use std::ops::Range;

const FRAGMENT: u64 = 1 << 20;
const BLOCK: u64 = 64 << 10;
/// Header and checksums, and what the device's sectors add at both ends.
const FRONT: u64 = 4096 + 2 * 4096;
const BODY: u64 = 3 * FRAGMENT + 7;

/// A body no part of which is like another.
fn long_body() -> Vec<u8> {
    let words = (0..BODY.div_ceil(8)).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut body: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    body.truncate(bound(BODY));
    body
}

fn bound(at: u64) -> usize {
    usize::try_from(at).unwrap()
}

async fn part(hit: &mut Hit, range: Range<u64>) -> Result<Vec<u8>, BodyError> {
    hit.body.seek(range);
    let mut part = Vec::new();
    while let Some(piece) = hit.body.next().await? {
        part.extend_from_slice(&piece);
    }
    Ok(part)
}

async fn stored() -> (Machine, Running) {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    store(&running.cache, &key(1), &long_body()).unwrap();
    (machine, running)
}

#[tokio::test]
async fn a_small_range_of_a_long_body_reads_its_blocks_and_the_fragment_s_front_only() {
    let (machine, running) = stored().await;
    running.cache.sync().await;
    let disk = &machine.disks[0].1;
    let mut hit = running.cache.read(&key(1)).await.unwrap();
    for (range, reads, blocks) in [
        (100..200, 1, 1),
        (0..8 * BLOCK, 1, 8),
        (BLOCK - 1..BLOCK + 1, 1, 2),
        (FRAGMENT + 5 * BLOCK..FRAGMENT + 5 * BLOCK + 1, 2, 1),
        (2 * FRAGMENT - 1..2 * FRAGMENT, 2, 1),
        (2 * FRAGMENT - 1..2 * FRAGMENT + 1, 3, 2),
        (0..8 * BLOCK + 1, 1, 16),
        (3 * FRAGMENT..BODY, 1, 0),
    ] {
        let before = (disk.reads(), disk.read_bytes());
        let bytes = part(&mut hit, range.clone()).await.unwrap();
        let body = &long_body()[bound(range.start)..bound(range.end)];
        assert!(bytes == body, "{range:?}");
        let after = (disk.reads() - before.0, disk.read_bytes() - before.1);
        assert_eq!(after.0, reads, "{range:?}");
        let most = blocks * BLOCK + reads * FRONT;
        assert!(after.1 <= most, "{range:?}: {} of {most}", after.1);
    }
}

#[tokio::test]
async fn any_range_of_a_long_body_is_right_in_the_buffer_and_on_the_device() {
    let (_machine, running) = stored().await;
    let body = long_body();
    let mut prng = Prng::seeded(7);
    for round in 0..200 {
        if round == 50 {
            running.cache.sync().await;
        }
        let start = prng.below(BODY);
        let end = start + 1 + prng.below((BODY - start).min(4 * BLOCK));
        let mut hit = running.cache.read(&key(1)).await.unwrap();
        let bytes = part(&mut hit, start..end).await.unwrap();
        let end = end.min(BODY);
        assert!(bytes == body[bound(start)..bound(end)], "{start}..{end}");
    }
}

#[tokio::test]
async fn a_range_beside_a_damaged_block_is_right_and_one_of_it_is_cut_and_frees_it() {
    let (machine, running) = stored().await;
    running.cache.sync().await;
    let needle = long_body()[bound(5 * BLOCK)..bound(5 * BLOCK) + 64].to_vec();
    machine.disks[0].1.edit(|bytes| {
        let at = bytes.windows(64).position(|window| window == needle);
        bytes[at.unwrap() + 9] ^= 1;
    });
    let mut hit = running.cache.read(&key(1)).await.unwrap();
    let beside = [4 * BLOCK..5 * BLOCK, 6 * BLOCK..7 * BLOCK];
    for range in beside.clone() {
        assert!(part(&mut hit, range).await.is_ok());
    }
    let damaged = part(&mut hit, 5 * BLOCK + 100..5 * BLOCK + 200).await;
    assert!(matches!(damaged, Err(BodyError::Device { offset: 0 })));
    assert_eq!(running.registry.get(Metric::CacheReadInvalid), 1);
    for range in beside {
        let gone = part(&mut hit, range).await;
        assert!(matches!(gone, Err(BodyError::Missing { offset: 0 })));
    }
}

#[tokio::test]
async fn who_wants_a_range_of_what_is_in_memory_for_others_reads_nothing() {
    let (machine, running) = stored().await;
    running.cache.sync().await;
    let mut whole = running.cache.read(&key(1)).await.unwrap();
    whole.body.next().await.unwrap().unwrap();
    let mut hit = running.cache.read(&key(1)).await.unwrap();
    let before = machine.disks[0].1.reads();
    part(&mut hit, 100..200).await.unwrap();
    assert_eq!(machine.disks[0].1.reads(), before);
}

#[tokio::test]
async fn a_long_body_is_read_without_what_entries_say_too_much_pinned_or_not() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    let body = long_body();
    for (n, until) in [(1, None), (2, Some(u64::MAX))] {
        let writer = running.cache.writer(object(&key(n), running.cache.epoch()));
        let mut writer = match until {
            Some(until) => writer.unwrap().pinned_until(until),
            None => writer.unwrap(),
        };
        writer.push(&Bytes::from(body.clone())).unwrap();
        writer.commit().unwrap();
        running.cache.sync().await;
        let mut hit = running.cache.read(&key(n)).await.unwrap();
        let disk = &machine.disks[0].1;
        let before = (disk.reads(), disk.read_bytes());
        assert!(part(&mut hit, 0..BODY).await.unwrap() == body);
        let (reads, bytes) = (disk.reads() - before.0, disk.read_bytes() - before.1);
        // Header, checksums and pin, and what is more to sectors of 512 bytes.
        let most = BODY + reads * (72 + 64 + 48 + 512);
        assert_eq!(reads, 4);
        assert!(bytes <= most, "{bytes} of {most}");
    }
}
