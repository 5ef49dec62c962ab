//! Pinned fragments: how many there may be, and what holds the cursor back.

use super::*;

/// A key like those of hashes: its page, buckets and tag are its own.
const fn key(n: u128) -> u128 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

impl Rig {
    fn append(&mut self, key: u128, body: &[u8], pinned: bool) -> Result<Appended, Refused> {
        let body = [Bytes::copy_from_slice(body)];
        let new = NewFragment {
            key_hash: key,
            kind: FragmentKind::Head,
            meta: b"meta",
            body: &body,
            keep: &[],
            copy_of: None,
            pinned,
        };
        let appended = self.stripe.append(self.now, &new);
        self.work();
        appended
    }

    /// Stores until a store is refused; how many bytes the cursor went on.
    fn fill(&mut self, first: u128) -> u64 {
        let before = self.directory.cursor();
        let keys = first..first + 4000;
        let refused = keys.map(|n| self.append(key(n), &[7; 40_000], false));
        let refused = refused.take_while(Result::is_ok).count();
        assert!(refused < 4000, "nothing held it back");
        self.directory.cursor() - before
    }
}

#[test]
fn a_tenth_of_the_log_may_be_pinned_and_the_rest_is_stored_without() {
    let mut rig = Rig::new();
    let most = rig.stripe.geometry().log_bytes() / 10;
    let pins = (1..40_u128).map(|n| {
        let appended = rig.append(key(n), &[1; 100_000], true);
        u64::from(appended.unwrap().place.entry.is_pinned())
    });
    let pinned: u64 = pins.sum();
    let bytes = rig.directory.pinned_bytes();
    assert!(bytes <= most && bytes + 110_000 > most, "{bytes} of {most}");
    assert!(pinned < 39 && bytes >= pinned * 100_000);
    for n in 1..40_u128 {
        rig.stripe.free(rig.now, key(n), &[]).unwrap();
    }
    assert_eq!(rig.directory.pinned_bytes(), 0);
}

#[test]
fn what_is_pinned_is_counted_again_after_a_start() {
    let mut rig = Rig::new();
    rig.append(key(1), &[1; 100_000], true).unwrap();
    rig.flush();
    let before = rig.directory.pinned_bytes();
    rig.kill();
    assert!(before >= 100_000);
    assert_eq!(rig.directory.pinned_bytes(), before);
}

#[test]
fn no_store_runs_into_what_is_pinned_before_the_walk_has_been_there() {
    let mut rig = Rig::new();
    let log_bytes = rig.stripe.geometry().log_bytes();
    rig.append(key(1), &[1; 100_000], true).unwrap();
    // The walk has not even begun.
    let gone = rig.fill(10);
    assert!(gone < log_bytes && gone > log_bytes / 2, "{gone}");
    assert!(rig.get(key(1)).is_some());
    // It has come half way: the cursor goes on.
    rig.stripe.note_evacuation(log_bytes + log_bytes / 2);
    assert!(rig.append(key(10_000), &[7; 40_000], false).is_ok());
}

#[test]
fn nothing_is_pinned_while_pages_that_may_hold_pins_are_yet_to_be_read() {
    let mut rig = Rig::new();
    rig.append(key(1), &[1; 100_000], true).unwrap();
    rig.stripe.sync();
    rig.work();
    let length = rig.stripe.geometry().length();
    let mut recovery = Recovery::new(RecoveryStart { length, ..start(2) });
    while let RecoveryStep::Read { offset, length } = recovery.step() {
        recovery.complete(rig.disk.read(offset, length));
    }
    let (mut stripe, _) = recovery.finish().unwrap();
    assert!(!stripe.is_read() && !stripe.has_room_for_pins(1));
    stripe.read_all(|offset, length| Some(rig.disk.read(offset, length)));
    assert!(stripe.has_room_for_pins(1));
    assert!(stripe.directory().pinned_bytes() >= 100_000);
}
