//! What a hit in the RAM cache allocates, counted on its own thread: nothing,
//! however long the object is and wherever else it lies.
#![expect(
    unsafe_code,
    reason = "the trait of an allocator is unsafe; this one counts, and hands on to the system's"
)]

use bytes::Bytes;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use strata::base::clock::ManualClock;
use strata::cache::{
    Cache, CacheKey, CacheOptions, NewObject, ObjectKind, SpanOptions, SpanTier, Tier,
};
use strata::metrics::Registry;

/// Bytes of the bodies: none, the smallest workload's, a usual one's, and one in
/// several fragments.
const LENGTHS: [usize; 4] = [0, 12, 15_000, 3 << 20];

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, and a count of what each thread asks it for.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count() {
    // A thread that ends has no count any more.
    ALLOCATIONS.try_with(|n| n.set(n.get() + 1)).ok();
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the trait's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the trait's contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the trait's contract.
        unsafe { System.realloc(block, layout, bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the trait's contract.
        unsafe { System.dealloc(block, layout) }
    }
}

/// How often this thread allocates while `work` runs.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

fn key(length: usize) -> CacheKey {
    CacheKey::of_url(format!("http://a.example/{length}"))
}

fn store(cache: &Arc<Cache>, length: usize) {
    let object = NewObject {
        key: key(length),
        kind: ObjectKind::Object,
        meta: Bytes::from_static(b"a head"),
        body_len: None,
        epoch: cache.epoch(),
    };
    let mut writer = cache.writer(object).expect("nothing stands against it");
    writer
        .push(&Bytes::from(vec![7; length]))
        .expect("there is room");
    writer.commit().expect("nothing came between");
}

fn open(dir: Option<&Path>) -> Arc<Cache> {
    let span = |dir: &Path| SpanOptions {
        size: Some(64 << 20),
        tier: Some(SpanTier::Capacity),
        ..SpanOptions::at(dir.join("span"))
    };
    let options = CacheOptions {
        spans: dir.map(span).into_iter().collect(),
        state_dir: dir.map(Path::to_owned),
        ..CacheOptions::default()
    };
    Cache::open(options, Arc::new(ManualClock::default()), &Registry::new()).0
}

/// Reads an object from RAM, its body too.
fn hit(cache: &Cache, key: &CacheKey, length: usize) {
    let hit = cache.read_ram(key).expect("it is held");
    let pieces = hit.body.whole().expect("all of it is in memory");
    assert_eq!(pieces.iter().map(Bytes::len).sum::<usize>(), length);
    assert_eq!(hit.tier, Tier::Ram);
}

fn assert_no_allocation(cache: &Arc<Cache>) {
    // A thread's counters are made at its first count.
    store(cache, 1);
    hit(cache, &key(1), 1);
    for length in LENGTHS {
        store(cache, length);
        let key = key(length);
        let each = [(); 4].map(|()| allocations(|| hit(cache, &key, length)));
        assert_eq!(
            each, [0; 4],
            "allocations of the first hits on {length} bytes"
        );
    }
}

#[test]
fn a_hit_on_what_is_in_ram_alone_allocates_nothing() {
    assert_no_allocation(&open(None));
}

#[test]
fn a_hit_on_what_lies_on_a_span_too_allocates_nothing() {
    let dir = tempfile::tempdir().expect("a folder for the span");
    assert_no_allocation(&open(Some(dir.path())));
}

#[test]
fn what_allocates_is_counted() {
    let key = key(12);
    assert!(allocations(|| drop(std::hint::black_box(format!("{key:?}")))) > 0);
}
