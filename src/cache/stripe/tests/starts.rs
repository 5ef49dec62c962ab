//! Starts that the simulation found wrong: each with what it did wrong.

use super::*;

/// A stripe whose ring holds sixteen blocks.
fn tiny() -> Rig {
    Rig::over(Geometry::from_parts(1 << 20, 1, 4096).unwrap())
}

/// Kills the process after the first write of each start, until there is no
/// room for the ring block that this should be, and a header is written.
fn kill_until_the_ring_is_full(rig: &mut Rig) {
    let mut first = Cause::Ring;
    while first == Cause::Ring {
        rig.kill();
        first = do_one(rig);
    }
    assert_eq!(first, Cause::Header);
}

/// Does the next plan.
fn do_one(rig: &mut Rig) -> Cause {
    let plan = rig.stripe.poll(rig.now).unwrap();
    let outcome = rig.disk.run(&plan);
    rig.stripe.complete(rig.now, plan.id, outcome);
    plan.cause
}

#[test]
fn a_stripe_killed_until_its_ring_is_full_makes_room_by_a_sync() {
    let mut rig = tiny();
    kill_until_the_ring_is_full(&mut rig);
    rig.work();
    rig.put(key(1), b"one");
    rig.flush();
    rig.kill();
    assert_eq!(rig.get(key(1)).unwrap(), "one");
}

#[test]
fn a_stop_ends_though_the_ring_has_no_room_for_its_block() {
    let mut rig = tiny();
    kill_until_the_ring_is_full(&mut rig);
    rig.stripe.close();
    rig.work();
    assert!(rig.stripe.is_closed());
    assert!(rig.kill().clean);
}

/// Three batches: a version, another key, and a newer version.
fn three_batches() -> Rig {
    let mut rig = Rig::new();
    for (name, text) in [(1, "old"), (2, "lost"), (1, "new")] {
        rig.put(key(name), text.as_bytes());
        rig.flush();
    }
    rig
}

#[test]
fn an_older_version_is_suspect_if_a_batch_is_lost_and_a_later_one_is_not() {
    let mut rig = three_batches();
    let second = to_usize(rig.stripe.geometry().log_offset()) + 4096;
    rig.disk.bytes[second..second + 4096].fill(0);
    assert!(rig.kill().suspect);
    let old = rig.directory.lookup(key(1)).next().unwrap();
    assert_eq!(rig.read(key(1), &old).unwrap().body, "old");
    assert!(old.suspect);
}

#[test]
fn an_older_version_is_suspect_if_the_ring_block_of_a_start_is_lost() {
    let mut rig = three_batches();
    rig.kill();
    rig.work();
    rig.put(key(1), b"newest");
    rig.flush();
    let ring = to_usize(rig.stripe.geometry().ring_offset());
    rig.disk.bytes[ring..ring + 4096].fill(0);
    assert!(rig.kill().suspect);
    assert!(rig.directory.lookup(key(1)).all(|place| place.suspect));
}

/// Stops cleanly and starts again.
fn restart(rig: &mut Rig) -> RecoveryReport {
    rig.stripe.close();
    rig.work();
    rig.kill()
}

#[test]
fn what_a_start_may_have_dropped_is_suspect_if_its_ring_block_is_lost() {
    for is_stopped in [false, true] {
        let mut rig = three_batches();
        restart(&mut rig);
        rig.work();
        rig.put(key(2), b"newest");
        rig.flush();
        // Behind the block of the clean stop. The log leads over it, by batches
        // or by the ring block of the next stop.
        let block = to_usize(rig.stripe.geometry().ring_offset()) + 4096;
        rig.disk.bytes[block..block + 4096].fill(0);
        let report = if is_stopped {
            restart(&mut rig)
        } else {
            rig.kill()
        };
        assert!(report.suspect, "{is_stopped}");
        assert!(rig.directory.lookup(key(1)).all(|place| place.suspect));
        assert!(rig.directory.lookup(key(2)).all(|place| !place.suspect));
        assert_eq!(rig.get(key(2)).unwrap(), "newest");
    }
}

/// A start whose `failing`th read fails.
fn start_with_a_bad_read(rig: &mut Rig, failing: usize) -> RecoveryReport {
    rig.run += 1;
    let mut recovery = Recovery::new(start(rig.run));
    let mut reads = 0;
    while let RecoveryStep::Read { offset, length } = recovery.step() {
        let bytes = rig.disk.read(offset, length);
        recovery.complete(if reads == failing { &[] } else { bytes });
        reads += 1;
    }
    let (stripe, report) = recovery.finish().unwrap();
    rig.directory = stripe.directory();
    rig.stripe = stripe;
    report
}

#[test]
fn what_a_start_could_not_read_makes_what_is_older_suspect() {
    // The headers are there twice.
    for failing in 2..8 {
        let mut rig = three_batches();
        let report = start_with_a_bad_read(&mut rig, failing);
        assert!(report.suspect, "read {failing}");
        for place in rig.directory.lookup(key(1)) {
            assert!(place.suspect, "read {failing}");
        }
    }
}

#[test]
fn ring_blocks_that_a_start_could_not_read_do_not_come_back_after_its_own() {
    let mut rig = Rig::new();
    for n in 0..200 {
        rig.put(key(n), &body(n, 60_000));
        rig.work();
    }
    rig.flush();
    // Two headers, then the ring, of which nothing is read.
    assert!(start_with_a_bad_read(&mut rig, 2).suspect);
    rig.work();
    rig.put(key(1), b"newest");
    rig.flush();
    rig.kill();
    assert_eq!(rig.get(key(1)).unwrap(), "newest");
    let later = rig.directory.lookup(key(199)).next();
    assert!(later.is_none_or(|place| place.suspect));
}

#[test]
fn ring_blocks_of_an_unknown_past_make_what_is_older_suspect() {
    let mut rig = tiny();
    kill_until_the_ring_is_full(&mut rig);
    // The run that wrote a header had no room for a block.
    let ring = to_usize(rig.stripe.geometry().ring_offset());
    rig.disk.bytes[ring + 20_480..ring + 24_576].fill(0);
    assert!(rig.kill().suspect);
}

/// A stripe whose ring is much longer than what a start reads behind its end,
/// and holds a block for each of `blocks` stretches of sixty-four batches.
fn long_ring(blocks: u64) -> Rig {
    let geometry = Geometry::from_parts(320 << 20, 1600, 4096).unwrap();
    assert!(geometry.ring_bytes() > 24 * MIB);
    let mut rig = Rig::over(geometry);
    for n in 0..u128::from(blocks) * 64 {
        rig.put(key(n), b"text");
        rig.flush();
    }
    rig
}

fn assert_all_found(rig: &Rig, blocks: u64) {
    for n in 0..u128::from(blocks) * 64 {
        assert_eq!(rig.get(key(n)).unwrap(), "text", "{n}");
    }
}

#[test]
fn a_start_reads_of_the_ring_what_was_written_since_the_sync() {
    let mut rig = long_ring(3);
    let report = rig.kill();
    assert!(report.ring_blocks >= 3, "{report:?}");
    // The stretch behind the end, and what it looks at in the log.
    assert!(report.bytes_read < 16 * MIB, "{report:?}");
    assert_all_found(&rig, 3);
}

#[test]
fn a_start_finds_what_a_long_ring_holds_behind_a_damaged_block() {
    let mut rig = long_ring(6);
    let ring = to_usize(rig.stripe.geometry().ring_offset());
    for damaged in [1, 3] {
        let at = ring + damaged * 4096;
        rig.disk.bytes[at..at + 4096].fill(0xa5);
    }
    let report = rig.kill();
    assert!(report.ring_blocks > 1, "{report:?}");
    assert!(!report.suspect, "{report:?}");
    assert_all_found(&rig, 6);
}
