//! A sync leaves most of the device's time to others, unless it must be done.

use super::*;

/// More pages than one write of a sync takes.
const PAGES: u32 = 16;

/// A stripe of which all pages are to be copied by the next sync.
fn unsynced() -> Rig {
    Rig::over(Geometry::from_parts(8 * MIB, PAGES, 4096).unwrap())
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Begins a sync whose first write takes so long.
fn copy_first_pages(rig: &mut Rig, taking: Duration) {
    rig.stripe.sync();
    let plan = rig.stripe.poll(rig.now).unwrap();
    assert_eq!(plan.cause, Cause::Pages);
    assert_eq!(rig.stripe.poll(rig.now), None, "one write is out");
    rig.now = rig.now.plus(taking);
    let outcome = rig.disk.run(&plan);
    rig.stripe.complete(rig.now, plan.id, outcome);
}

#[test]
fn a_sync_rests_behind_each_write_three_times_as_long_as_that_took() {
    for (took, rest) in [(0, 0), (10, 30), (80, 240), (5000, 250)] {
        let mut rig = unsynced();
        copy_first_pages(&mut rig, millis(took));
        if rest > 0 {
            rig.now = rig.now.plus(millis(rest - 1));
            assert_eq!(rig.stripe.poll(rig.now), None, "{took} ms");
            rig.now = rig.now.plus(millis(1));
        }
        let next = rig.stripe.poll(rig.now).unwrap();
        assert_eq!(next.cause, Cause::Pages, "{took} ms");
    }
}

#[test]
fn batches_and_a_stop_do_not_wait_for_a_sync_that_rests() {
    let mut rig = unsynced();
    copy_first_pages(&mut rig, millis(10));
    let appended = rig.put(key(1), b"one");
    rig.flush();
    assert_eq!(rig.directory.written_sequence(), appended.sequence);
    rig.stripe.close();
    rig.work();
    assert!(rig.stripe.is_closed());
    assert!(rig.kill().clean);
    assert_eq!(rig.get(key(1)).unwrap(), "one");
}

/// Does what the stripe wants. The first write of a sync takes a second, behind
/// which no time passes: a rest does not end.
fn work_in_no_time(rig: &mut Rig) {
    while let Some(plan) = rig.stripe.poll(rig.now) {
        let is_first = plan.cause == Cause::Pages && !rig.disk.done.contains(&Cause::Pages);
        rig.now = rig.now.plus(millis(if is_first { 1000 } else { 0 }));
        let outcome = rig.disk.run(&plan);
        rig.stripe.complete(rig.now, plan.id, outcome);
    }
}

#[test]
fn a_sync_rests_no_more_when_the_ring_is_nearly_full() {
    let mut rig = unsynced();
    let mut puts = 0;
    while !rig.disk.done.contains(&Cause::PageTable) && puts < 20_000 {
        let appended = rig.put(key(puts), b"");
        rig.stripe.flush();
        work_in_no_time(&mut rig);
        assert_eq!(rig.directory.written_sequence(), appended.sequence);
        puts += 1;
    }
    let mut writes = rig.disk.done.split(|cause| *cause == Cause::Pages);
    let rested = writes.nth(1).expect("a sync has begun");
    assert!(rested.contains(&Cause::Ring), "it rested for a while");
    assert!(writes.next().is_some(), "and went on");
}
