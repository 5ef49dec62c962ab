//! Spans that come and go: what they moved is still found, and no older copy is.

use super::machine::{DISK, Machine, Running, all, text};
use super::*;
use crate::cache::tier::SpanTier;
use crate::device::MemDisk;
use std::collections::BTreeMap;

const OBJECTS: u32 = 400;
/// Bytes of an object that pushes the cursors on.
const COLD_BYTES: usize = 100_000;

fn add_disk(machine: &mut Machine) {
    machine
        .disks
        .push((SpanTier::Capacity, MemDisk::blank(DISK)));
}

impl Running {
    fn fill(&self, len: usize) {
        for n in 0..OBJECTS {
            store(&self.cache, &key(n), &text(n, len)).unwrap();
        }
    }

    /// How many objects are found, by the length of what is found in no doubt.
    async fn found(&self) -> BTreeMap<usize, u32> {
        let mut found = BTreeMap::new();
        for n in 0..OBJECTS {
            let Ok(mut hit) = self.cache.read(&key(n)).await else {
                continue;
            };
            let body = all(&mut hit).await;
            assert!(body == text(n, body.len()) && !hit.suspect, "{n}");
            *found.entry(body.len()).or_default() += 1;
        }
        found
    }

    fn settled(&self) -> usize {
        let stripes = self.cache.volume.stripes();
        stripes.iter().filter(|stripe| stripe.is_settled()).count()
    }

    /// Stores what nobody asks for until every cursor has gone round.
    async fn go_round(&self) {
        let stripes = self.cache.volume.stripes().len();
        let mut n = 1_000_000;
        while self.settled() < stripes {
            assert!(n < 1_010_000, "{} of {stripes}", self.settled());
            for _ in 0..20 {
                // What finds no room in the backlog comes again.
                store(&self.cache, &key(n), &text(n, COLD_BYTES)).ok();
                n += 1;
            }
            self.cache.sync().await;
            self.cache.mover.wake();
            self.cache.mover.settled().await;
        }
    }

    async fn stop(self) {
        self.cache.shutdown().await;
        self.kill();
    }
}

#[tokio::test]
async fn a_disk_that_is_added_and_disks_in_another_order_leave_all_found() {
    let mut machine = Machine::with(&[SpanTier::Capacity; 3]);
    let running = machine.start().await;
    running.fill(2000);
    assert_eq!(running.settled(), 3);
    running.stop().await;
    add_disk(&mut machine);
    let running = machine.start().await;
    assert_eq!(running.settled(), 1, "the new one holds nothing old");
    assert_eq!(running.found().await, [(2000, OBJECTS)].into());
    running.stop().await;
    machine.disks.rotate_left(1);
    machine.disks.swap(0, 1);
    let running = machine.start().await;
    assert_eq!(running.found().await, [(2000, OBJECTS)].into());
    running.stop().await;
}

#[tokio::test]
async fn no_former_owner_s_copy_is_found_after_an_update_whatever_comes_and_goes() {
    let mut machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    running.fill(1000);
    running.stop().await;
    // More disks than are asked for a key.
    for _ in 0..5 {
        add_disk(&mut machine);
        machine.start().await.stop().await;
    }
    let running = machine.start().await;
    running.fill(2000);
    running.cache.sync().await;
    assert_eq!(running.found().await, [(2000, OBJECTS)].into());
    running.stop().await;
    for disks in (1..6).rev() {
        machine.disks.truncate(disks);
        let running = machine.start().await;
        let found = running.found().await;
        assert!(!found.contains_key(&1000), "{disks}: {found:?}");
        running.kill();
    }
}

#[tokio::test]
async fn a_removal_and_a_purge_reach_every_former_owner() {
    let mut machine = Machine::with(&[SpanTier::Capacity]);
    machine.start().await.stop().await;
    let running = machine.start().await;
    running.fill(1000);
    running.stop().await;
    for _ in 0..5 {
        add_disk(&mut machine);
        machine.start().await.stop().await;
    }
    let running = machine.start().await;
    for n in 0..OBJECTS / 2 {
        running.cache.remove(&key(2 * n));
        assert!(running.cache.purge(&key(2 * n + 1)).await.unwrap());
    }
    running.cache.sync().await;
    running.stop().await;
    machine.disks.truncate(1);
    assert_eq!(machine.start().await.found().await, [].into());
}

#[tokio::test]
async fn a_disk_that_has_gone_round_is_asked_for_its_own_keys_only_after_a_restart_too() {
    let mut machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    running.fill(1000);
    running.stop().await;
    add_disk(&mut machine);
    let running = machine.start().await;
    let asked = |running: &Running| running.cache.volume.claimants(&key(1)).len();
    assert!(asked(&running) >= 1);
    running.go_round().await;
    assert_eq!(asked(&running), 1);
    // What was noted last is written by the cache's thread.
    running.cache.settle();
    running.stop().await;
    let running = machine.start_now();
    assert_eq!(asked(&running), 1);
    running.cache.loaded().await;
    running.stop().await;
}

#[tokio::test]
async fn a_change_is_remembered_by_a_start_that_finds_no_other() {
    let mut machine = Machine::with(&[SpanTier::Capacity; 2]);
    let running = machine.start().await;
    running.fill(1000);
    running.stop().await;
    add_disk(&mut machine);
    machine.start().await.kill();
    machine.start().await.stop().await;
    let running = machine.start().await;
    assert_eq!(running.settled(), 1);
    assert_eq!(running.found().await, [(1000, OBJECTS)].into());
    running.stop().await;
}

#[tokio::test]
async fn what_is_asked_for_moves_to_its_owner_before_the_cursor_comes() {
    let mut machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    running.fill(1000);
    running.stop().await;
    add_disk(&mut machine);
    let running = machine.start().await;
    assert_eq!(running.found().await, [(1000, OBJECTS)].into());
    let (mut moved, mut n) = (0, 1_000_000);
    while running.settled() < 2 && n < 1_010_000 {
        for _ in 0..10 {
            store(&running.cache, &key(n), &text(n, COLD_BYTES)).ok();
            n += 1;
        }
        running.cache.sync().await;
        running.cache.evacuate().await;
    }
    for n in 0..OBJECTS {
        let holders = running.cache.volume.holders(&key(n));
        moved += u32::from(holders.iter().any(|stripe| stripe.may_hold(key(n).hash())));
    }
    assert!(moved > OBJECTS * 9 / 10, "{moved}");
    running.stop().await;
}

#[tokio::test]
async fn a_refresh_of_a_former_owner_s_copy_moves_it_to_the_owner() {
    let mut machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    running.fill(1000);
    running.stop().await;
    add_disk(&mut machine);
    let running = machine.start().await;
    for n in 0..OBJECTS {
        let old = running.cache.read(&key(n)).await.unwrap();
        let newer = Bytes::from_static(b"newer");
        running.cache.refresh(&old.copy, &key(n), newer).unwrap();
    }
    running.cache.sync().await;
    for n in 0..OBJECTS {
        let owner = running.cache.volume.owner(SpanTier::Capacity, &key(n));
        assert!(owner.unwrap().may_hold(key(n).hash()), "{n}");
        assert_eq!(&*running.cache.read(&key(n)).await.unwrap().meta, b"newer");
    }
    assert_eq!(running.found().await, [(1000, OBJECTS)].into());
    running.stop().await;
}
