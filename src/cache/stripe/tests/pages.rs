//! Pages after a start: read when asked for, used when all is known of them.

use super::*;
use crate::cache::directory::Home;

const BYTES: u64 = 48 * MIB;
const PAGES: u32 = 40;
const KEYS: u128 = 400;

/// A stripe that holds a version of each key, partly by its copy and partly by
/// rows, and has just been started: no page is read.
fn started() -> Rig {
    let mut rig = Rig::over(Geometry::from_parts(BYTES, PAGES, 4096).unwrap());
    for n in 0..KEYS {
        rig.put(key(n), b"old");
    }
    rig.stripe.sync();
    rig.work();
    for n in (0..KEYS).step_by(2) {
        rig.put(key(n), b"new");
    }
    rig.flush();
    start_unread(&mut rig);
    rig
}

fn start_unread(rig: &mut Rig) {
    rig.run += 1;
    let start = RecoveryStart {
        length: BYTES,
        ..start(rig.run)
    };
    let mut recovery = Recovery::new(start);
    while let RecoveryStep::Read { offset, length } = recovery.step() {
        recovery.complete(rig.disk.read(offset, length));
    }
    let (stripe, report) = recovery.finish().unwrap();
    assert!(!report.suspect);
    rig.directory = stripe.directory();
    rig.stripe = stripe;
}

/// Reads the pages that the stripe wants next; how many.
fn read_next(rig: &mut Rig) -> u32 {
    let Some(pages) = rig.stripe.next_pages() else {
        return 0;
    };
    for (page, offset) in pages.each() {
        let bytes = rig.disk.read(offset, pages.page_bytes);
        rig.stripe.take_page(rig.now, page, bytes);
    }
    pages.count
}

fn newest(n: u128) -> &'static str {
    if n.is_multiple_of(2) { "new" } else { "old" }
}

fn assert_all_there(rig: &Rig) {
    for n in 0..KEYS {
        assert_eq!(rig.get(key(n)).unwrap(), newest(n), "{n}");
    }
}

#[test]
fn a_page_that_is_asked_for_is_read_first_and_alone() {
    let mut rig = started();
    let wanted = key(KEYS - 2);
    assert_eq!(
        (rig.directory.knows(wanted), rig.get(wanted)),
        (false, None)
    );
    rig.stripe.ask_for_key(wanted);
    rig.stripe.ask_for_key(wanted);
    assert_eq!(read_next(&mut rig), 1);
    assert_eq!(rig.get(wanted).unwrap(), "new");
    assert_eq!(rig.stripe.page_count().left, PAGES - 1);
    while read_next(&mut rig) > 0 {}
    assert_all_there(&rig);
    let count = rig.stripe.page_count();
    assert_eq!((count.read, count.bad, count.left), (PAGES, 0, 0));
}

#[test]
fn nothing_is_stored_or_freed_on_a_page_that_is_not_read() {
    let mut rig = started();
    let new = NewFragment {
        key_hash: key(1),
        kind: FragmentKind::Head,
        meta: &[],
        body: &[],
        keep: &[],
        copy_of: None,
        pinned: false,
    };
    let stored = rig.stripe.append(rig.now, &new);
    assert_eq!(stored.unwrap_err(), Refused::Unread);
    let freed = rig.stripe.free(rig.now, key(1), &[]);
    assert_eq!(freed.unwrap_err(), Refused::Unread);
    rig.stripe.ask_for_key(key(1));
    read_next(&mut rig);
    assert!(rig.stripe.append(rig.now, &new).is_ok());
    let freed = rig.stripe.free(rig.now, key(1), &[]);
    assert_eq!(freed.unwrap().entries, 1);
}

#[test]
fn a_start_whose_pages_were_not_all_read_may_stop_or_be_killed() {
    for is_stopped in [false, true] {
        let mut rig = started();
        rig.stripe.ask_for_key(key(1));
        read_next(&mut rig);
        rig.work();
        if is_stopped {
            rig.stripe.close();
            rig.work();
            assert!(rig.stripe.is_closed());
        }
        assert!(!rig.stripe.is_read());
        let report = rig.kill();
        assert_eq!((report.clean, report.suspect), (is_stopped, false));
        assert_all_there(&rig);
    }
}

#[test]
fn a_sync_waits_for_the_pages_that_are_not_read_and_asks_for_them() {
    let mut rig = started();
    rig.work();
    rig.disk.done.clear();
    rig.stripe.sync();
    rig.work();
    assert_eq!(rig.disk.done, []);
    // The first page, before any other.
    assert_eq!(read_next(&mut rig), 1);
    rig.work();
    assert_eq!(rig.disk.done, [Cause::Pages]);
    while read_next(&mut rig) > 0 {
        rig.work();
    }
    assert!(rig.disk.done.contains(&Cause::Header));
    rig.kill();
    assert_all_there(&rig);
}

#[test]
fn a_page_that_can_not_be_read_is_used_once_it_is_told_that_all_is_suspect() {
    let mut rig = started();
    rig.work();
    let page = Home::of(key(2), PAGES).page;
    rig.stripe.ask_for(page);
    let wanted = rig.stripe.next_pages().unwrap();
    assert_eq!((wanted.first, wanted.count), (page, 1));
    rig.stripe.take_page(rig.now, page, &[]);
    assert!(!rig.directory.knows(key(2)), "nothing says so yet");
    rig.work();
    let place = rig.directory.lookup(key(2)).next().unwrap();
    assert!(place.suspect);
    assert_eq!(rig.get(key(2)).unwrap(), "new");
    assert_eq!(rig.stripe.page_count().bad, 1);
    rig.kill();
    let mut places = (0..KEYS).flat_map(|n| rig.directory.lookup(key(n)));
    assert!(places.all(|place| place.suspect));
}
