//! What a read of the cache allocates, counted on its own thread: nothing for a
//! hit in RAM, however long the object is and wherever else it lies, and for a
//! miss; no copy of a body that RAM does not want.
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
    Cache, CacheKey, CacheOptions, Miss, NewObject, ObjectKind, RamOptions, SpanOptions, SpanTier,
    Tier,
};
use strata::metrics::Registry;

/// Bytes of the bodies: none, the smallest workload's, a usual one's, and one in
/// several fragments.
const LENGTHS: [usize; 4] = [0, 12, 15_000, 3 << 20];

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, and a count of what each thread asks it for.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(bytes: usize) {
    // A thread that ends has no count any more.
    ALLOCATIONS.try_with(|n| n.set(n.get() + 1)).ok();
    BYTES.try_with(|n| n.set(n.get() + bytes)).ok();
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the trait's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the trait's contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes);
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
    open_with(dir, RamOptions::default())
}

fn open_with(dir: Option<&Path>, ram: RamOptions) -> Arc<Cache> {
    let span = |dir: &Path| SpanOptions {
        size: Some(64 << 20),
        tier: Some(SpanTier::Capacity),
        ..SpanOptions::at(dir.join("span"))
    };
    let options = CacheOptions {
        spans: dir.map(span).into_iter().collect(),
        state_dir: dir.map(Path::to_owned),
        ram,
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

/// Allocations and bytes of them that a read takes of this thread, and the length
/// of what it found.
async fn read(cache: &Cache, length: usize) -> (u64, usize, Result<u64, Miss>) {
    let key = key(length);
    let before = (ALLOCATIONS.get(), BYTES.get());
    let found = cache.read(&key).await.map(|hit| hit.body_len);
    let after = (ALLOCATIONS.get(), BYTES.get());
    (after.0 - before.0, after.1 - before.1, found)
}

#[test]
fn a_miss_allocates_nothing_and_a_read_of_a_device_no_copy_that_ram_does_not_want() {
    let dir = tempfile::tempdir().expect("a folder for the span");
    let picky = RamOptions {
        seen_filter: 1,
        ..RamOptions::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let first = open_with(Some(dir.path()), picky);
        first.loaded().await;
        (0..3).for_each(|n| store(&first, 200_000 + n));
        first.shutdown().await;
        drop(first);
        let cache = open_with(Some(dir.path()), picky);
        cache.loaded().await;
        // The thread's own counters and buffers are made by the first two.
        for length in [1, 200_000] {
            read(&cache, length).await.2.ok();
        }
        assert_eq!(read(&cache, 2).await, (0, 0, Err(Miss::Absent)));
        for length in [200_001, 200_002] {
            let (count, bytes, found) = read(&cache, length).await;
            assert_eq!(found, Ok(u64::try_from(length).expect("it is short")));
            assert!(count <= 9 && bytes < 4096, "{bytes} bytes in {count}");
        }
        cache.shutdown().await;
    });
}

#[test]
fn what_allocates_is_counted() {
    let key = key(12);
    assert!(allocations(|| drop(std::hint::black_box(format!("{key:?}")))) > 0);
}
