//! Failed writes, damage, absence: what each costs.

use super::*;
use crate::base::planted::{Planted, with};
use crate::cache::directory::Removed;

#[test]
fn a_batch_that_fails_once_is_written_again_in_the_same_place() {
    let mut rig = Rig::new();
    rig.disk.failing = Some((Cause::Batch, 1));
    rig.put(key(1), b"one");
    rig.flush();
    assert_eq!(rig.get(key(1)).unwrap(), "one");
    rig.kill();
    assert_eq!(rig.get(key(1)).unwrap(), "one");
}

#[test]
fn a_batch_that_fails_twice_is_lost_and_passed_and_what_follows_is_kept() {
    let mut rig = Rig::new();
    rig.put(key(1), b"one");
    rig.flush();
    rig.disk.failing = Some((Cause::Batch, 2));
    rig.put(key(2), b"two");
    rig.put(key(1), b"newer one");
    rig.flush();
    assert_eq!(rig.get(key(2)), None);
    assert_eq!(rig.get(key(1)), None, "the older one was replaced");
    assert_eq!(rig.disk.done.last(), Some(&Cause::Ring), "said so at once");
    rig.put(key(3), b"three");
    rig.flush();
    rig.kill();
    assert_eq!(rig.get(key(1)), None);
    assert_eq!(rig.get(key(2)), None);
    assert_eq!(rig.get(key(3)).unwrap(), "three");
}

#[test]
fn a_batch_that_is_lost_tells_how_many_bytes_of_fragments_go_with_it() {
    let mut rig = Rig::new();
    rig.put(key(1), &body(1, 900));
    rig.stripe.free(rig.now, key(1), &[]).unwrap();
    rig.put(key(2), &body(2, 100));
    rig.stripe.flush();
    let mut fail = || {
        let plan = rig.stripe.poll(rig.now).unwrap();
        rig.stripe.complete(rig.now, plan.id, Outcome::Failed)
    };
    assert_eq!(fail(), Completion::default());
    let lost = fail();
    assert_eq!((lost.lost, lost.lost_bytes), (1, 1024 + 512));
}

/// A start behind a sync whose copy tells of 6 MiB of log that are lost, with the
/// ring: what it says, and whether it goes on behind them.
fn start_without_what_the_copy_tells_of() -> (RecoveryReport, bool) {
    let mut rig = Rig::new();
    rig.put(key(1), b"one");
    rig.flush();
    rig.stripe.sync();
    let begun = rig.stripe.poll(rig.now).unwrap();
    for n in 100..160 {
        rig.put(key(n), &body(n, 100_000));
        rig.work();
    }
    let last = rig.directory.cursor();
    let outcome = rig.disk.run(&begun);
    rig.stripe.complete(rig.now, begun.id, outcome);
    rig.work();
    let geometry = *rig.stripe.geometry();
    let lost = [
        (geometry.ring_offset(), geometry.ring_bytes()),
        (geometry.log_offset() + 8192, geometry.log_bytes() - 8192),
    ];
    for (from, length) in lost.map(|(from, length)| (to_usize(from), to_usize(length))) {
        rig.disk.bytes[from..from + length].fill(0);
    }
    let report = rig.kill();
    let goes_on = rig.put(key(3), b"new").place.position >= last;
    (report, goes_on)
}

#[test]
fn a_start_doubts_and_goes_on_behind_what_only_the_copy_tells_of() {
    let (report, goes_on) = start_without_what_the_copy_tells_of();
    assert!(report.suspect && goes_on);
    let bug = Some(Planted::ReachForgotten);
    let (_, goes_on) = with(bug, start_without_what_the_copy_tells_of);
    assert!(!goes_on, "the bug is found by nobody else");
}

#[test]
fn pages_of_a_sync_whose_flush_failed_are_copied_again() {
    let mut rig = Rig::new();
    rig.put(key(1), b"one");
    rig.flush();
    rig.stripe.sync();
    let flushed = rig.disk.bytes.clone();
    rig.disk.failing = Some((Cause::Flush, 1));
    rig.work();
    // What the failed flush was for is lost, and no later one says so.
    rig.disk.bytes = flushed;
    rig.stripe.sync();
    rig.work();
    rig.kill();
    assert_eq!(rig.stripe.page_count().bad, 0);
    assert_eq!(rig.get(key(1)).unwrap(), "one");
}

#[test]
fn the_rows_of_a_failed_batch_count_as_written_when_the_ring_tells_of_them() {
    let mut rig = Rig::new();
    let old = rig.put(key(1), b"one");
    rig.flush();
    rig.disk.failing = Some((Cause::Batch, 2));
    let freed = rig.stripe.free(rig.now, key(1), &[]).unwrap();
    rig.stripe.flush();
    while rig.directory.written_sequence() < freed.sequence {
        // A kill here brings the entry back.
        let (stripe, _) = recover_with(&rig.disk, start(2)).unwrap();
        assert!(stripe.directory().holds(key(1), old.place.entry));
        let plan = rig.stripe.poll(rig.now).unwrap();
        let outcome = rig.disk.run(&plan);
        rig.stripe.complete(rig.now, plan.id, outcome);
    }
    rig.kill();
    assert_eq!(rig.get(key(1)), None);
}

#[test]
fn a_backlog_is_refused_and_an_oversized_fragment_too() {
    let mut rig = Rig::new();
    let large = [Bytes::from(vec![1; 128 << 10])];
    let mut new = NewFragment {
        key_hash: key(1),
        kind: FragmentKind::Body,
        meta: b"",
        body: &large,
        keep: &[],
        copy_of: None,
        pinned: false,
    };
    let mut taken = 0;
    let refused = loop {
        new.key_hash = key(taken);
        match rig.stripe.append(rig.now, &new) {
            Ok(_) => taken += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused, Refused::Backlog);
    assert!((14..=24).contains(&taken), "{taken}");
    let huge = [Bytes::from(vec![1; 1 << 20])];
    new.body = &huge;
    assert_eq!(rig.stripe.append(rig.now, &new), Err(Refused::TooLarge));
    rig.work();
    new.body = &large;
    assert!(rig.stripe.append(rig.now, &new).is_ok());
}

#[test]
fn a_stripe_that_missed_a_run_is_suspect() {
    let mut rig = Rig::new();
    rig.put(key(1), b"one");
    rig.flush();
    let mut missed = start(3);
    missed.last_run = 2;
    let mut back = start(1);
    back.last_run = u64::MAX;
    for (start, suspect) in [(start(2), false), (missed, true), (back, true)] {
        let (stripe, report) = recover_with(&rig.disk, start).unwrap();
        assert_eq!((report.suspect, report.dead), (suspect, false));
        let place = stripe.directory().lookup(key(1)).next().unwrap();
        assert_eq!(place.suspect, suspect);
    }
}

/// A start with a state that does not know what the stripe took part in.
fn start_of_lost_state(what: &str) -> RecoveryStart {
    let mut start = start(2);
    match what {
        "another instance" => start.known_instance = None,
        "an earlier epoch" => start.identity.epoch = 2,
        "the same run" => start.identity.run = 1,
        _ => unreachable!("{what}"),
    }
    start
}

#[test]
fn what_a_stripe_holds_is_dead_for_good_if_the_state_beside_it_was_lost() {
    for what in ["another instance", "an earlier epoch", "the same run"] {
        let mut rig = Rig::new();
        rig.put(key(1), b"one");
        rig.flush();
        rig.stripe.sync();
        rig.work();
        rig.put(key(2), b"two");
        rig.flush();
        let lost = start_of_lost_state(what);
        let (stripe, report) = recover_with(&rig.disk, lost).unwrap();
        assert!(report.dead, "{what}");
        rig.directory = stripe.directory();
        rig.stripe = stripe;
        assert_eq!((rig.get(key(1)), rig.get(key(2))), (None, None), "{what}");
        rig.work();
        rig.put(key(2), b"new");
        rig.flush();
        let mut next = lost;
        next.known_instance = Some(lost.identity.instance);
        next.identity.run += 1;
        next.last_run = lost.identity.run;
        let (stripe, report) = recover_with(&rig.disk, next).unwrap();
        assert_eq!((report.dead, report.suspect), (false, false), "{what}");
        rig.directory = stripe.directory();
        rig.stripe = stripe;
        assert_eq!(rig.get(key(1)), None, "{what}");
        assert_eq!(rig.get(key(2)).unwrap(), "new", "{what}");
    }
}

#[test]
fn a_start_with_a_lost_state_that_is_killed_before_its_header_forgets_all_again() {
    let mut rig = Rig::new();
    rig.put(key(1), b"one");
    rig.flush();
    let lost = start_of_lost_state("another instance");
    for _ in 0..3 {
        let (mut stripe, report) = recover_with(&rig.disk, lost).unwrap();
        assert!(report.dead);
        assert!(stripe.directory().lookup(key(1)).is_empty());
        let plan = stripe.poll(rig.now).unwrap();
        assert_eq!(plan.cause, Cause::Ring);
        rig.disk.run(&plan);
    }
}

#[test]
fn a_suspect_stripe_stays_so_over_the_next_start_but_new_entries_are_not() {
    let mut rig = Rig::new();
    rig.put(key(1), b"one");
    rig.flush();
    let mut away = start(3);
    away.last_run = 2;
    rig.stripe = recover_with(&rig.disk, away).unwrap().0;
    rig.directory = rig.stripe.directory();
    rig.work();
    rig.put(key(2), b"two");
    rig.flush();
    rig.run = 3;
    assert!(!rig.kill().suspect);
    assert!(rig.directory.lookup(key(1)).next().unwrap().suspect);
    assert!(!rig.directory.lookup(key(2)).next().unwrap().suspect);
}

#[test]
fn a_damaged_fragment_is_told_from_one_of_another_key() {
    let mut rig = Rig::new();
    let place = rig.put(key(1), &body(1, 9000)).place;
    rig.flush();
    assert_eq!(rig.read(key(2), &place), Err(FragmentError::OtherKey));
    rig.disk.bytes[to_usize(place.offset) + 4000] ^= 1;
    let error = rig.read(key(1), &place).unwrap_err();
    assert!(matches!(error, FragmentError::Damaged(_)));
    rig.stripe.free_entry(rig.now, key(1), place.entry);
    assert!(rig.directory.lookup(key(1)).is_empty());
}

#[test]
fn one_damaged_header_is_made_good_by_the_other_and_two_are_named() {
    let mut rig = Rig::new();
    rig.put(key(1), b"one");
    rig.stripe.sync();
    rig.flush();
    let offsets = rig.stripe.geometry().header_offsets();
    for broken in offsets {
        let mut disk = Disk::new(LENGTH);
        disk.bytes.copy_from_slice(&rig.disk.bytes);
        disk.bytes[to_usize(broken) + 60] ^= 1;
        let (stripe, _) = recover_with(&disk, start(2)).unwrap();
        assert!(!stripe.directory().lookup(key(1)).is_empty());
    }
    for broken in offsets {
        rig.disk.bytes[to_usize(broken) + 60] ^= 1;
    }
    let error = recover_with(&rig.disk, start(2)).unwrap_err();
    assert_eq!(error, NotRecovered::NoHeader);
}

#[test]
fn a_bad_page_costs_its_entries_and_no_more() {
    let mut rig = Rig::new();
    rig.put(key(1), b"one");
    for n in 0..64 {
        // Then a ring block tells of these batches, and the sync is behind it.
        rig.put(key(100 + n), b"more");
        rig.flush();
    }
    rig.stripe.sync();
    rig.work();
    rig.put(key(2), b"two");
    rig.flush();
    let page = to_usize(rig.stripe.geometry().page_offset(0, 0));
    rig.disk.bytes[page + 5000] ^= 1;
    rig.kill();
    let pages = rig.stripe.page_count();
    assert_eq!((pages.read, pages.bad), (1, 1));
    assert_eq!(rig.get(key(1)), None);
    assert_eq!(rig.get(key(2)).unwrap(), "two");
}

#[test]
fn a_bad_ring_block_is_made_good_by_its_batches() {
    let mut rig = Rig::new();
    for n in 0..200 {
        rig.put(key(n), &body(n, 60_000));
        rig.work();
    }
    rig.flush();
    let ring = to_usize(rig.stripe.geometry().ring_offset());
    rig.disk.bytes[ring + 200] ^= 1;
    let report = rig.kill();
    assert!(report.ring_blocks > 0, "blocks behind the bad one are used");
    assert!(!report.suspect);
    for n in 0..200 {
        assert_eq!(rig.get(key(n)).unwrap(), body(n, 60_000), "{n}");
    }
}

#[test]
fn rows_that_are_lost_make_what_is_older_suspect() {
    let mut rig = Rig::new();
    for n in 0..200 {
        rig.put(key(n), &body(n, 60_000));
        rig.work();
    }
    rig.flush();
    let geometry = *rig.stripe.geometry();
    rig.disk.bytes[to_usize(geometry.ring_offset()) + 200] ^= 1;
    rig.disk.bytes[to_usize(geometry.log_offset()) + 20] ^= 1;
    let report = rig.kill();
    assert!(report.suspect);
    assert!(rig.directory.suspect_below() > geometry.log_bytes());
    assert_eq!(rig.get(key(199)).unwrap(), body(199, 60_000));
}

#[test]
fn no_bytes_make_a_start_fail_but_those_of_the_headers() {
    let mut rig = Rig::new();
    for n in 0..100 {
        rig.put(key(n), &body(n, 9000));
        rig.work();
    }
    rig.stripe.sync();
    rig.flush();
    let end = to_usize(rig.stripe.geometry().header_offsets()[1]);
    let mut prng = crate::base::prng::Prng::seeded(1);
    for byte in &mut rig.disk.bytes[4096..end] {
        *byte = prng.next_u64().to_le_bytes()[0];
    }
    rig.kill();
    for n in 0..100 {
        assert_eq!(rig.get(key(n)), None);
    }
}

#[test]
fn frees_beyond_the_room_of_a_batch_go_on_in_the_next_and_the_log_with_them() {
    let mut rig = Rig::new();
    let room = |rig: &Rig, rows: u64| {
        let filling = rig.stripe.filling.as_ref();
        filling.is_some_and(|filling| filling.fits(rows * 40))
    };
    let mut kept = 0;
    while room(&rig, 60) || kept == 0 {
        rig.put(key(kept), &[]);
        kept += 1;
    }
    let gone = rig.put(key(kept), &[]).place.entry;
    let removed = Removed {
        page: 0,
        bucket: 0,
        entry: gone,
        for_room: true,
    };
    let first = rig.stripe.last_sequence();
    let freed = rig.stripe.log_frees(rig.now, 0, &vec![removed; 100]);
    assert!(freed.sequence > first);
    rig.flush();
    rig.put(key(9_999_999), b"behind it");
    rig.flush();
    rig.kill();
    assert_eq!(rig.get(key(9_999_999)).unwrap(), "behind it");
    assert_eq!(rig.get(key(kept - 1)).unwrap(), "");
}
