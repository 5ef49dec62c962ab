//! What the RAM cache accounts for its objects is what they take, so that its
//! size bounds memory however small they are.
#![expect(
    unsafe_code,
    reason = "the trait of an allocator is unsafe; this one counts, and hands on to the system's"
)]

use bytes::Bytes;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use strata::base::clock::ManualClock;
use strata::cache::{Cache, CacheKey, CacheOptions, NewObject, ObjectKind, RamOptions};
use strata::metrics::Registry;

/// Bytes of the RAM cache.
const SIZE: u64 = 32 << 20;

/// Bytes that are allocated now, by all threads.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, and a count of what is out.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the trait's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the trait's contract.
        unsafe { System.dealloc(block, layout) }
    }
}

fn store(cache: &Arc<Cache>, n: usize, length: usize) {
    let object = NewObject {
        key: CacheKey::of_url(format!("http://a.example/{n}")),
        kind: ObjectKind::Object,
        meta: Bytes::from(vec![1; 100]),
        body_len: None,
        epoch: cache.epoch(),
    };
    let mut writer = cache.writer(object).expect("nothing stands against it");
    writer
        .push(&Bytes::from(vec![7; length]))
        .expect("there is room");
    writer.commit().expect("nothing came between");
}

/// The share of the RAM cache's size that is allocated when it is full of bodies
/// of `length` bytes, beside what it takes when it is empty.
fn share_held(length: usize) -> f64 {
    let options = CacheOptions {
        ram: RamOptions {
            size: Some(SIZE),
            ..RamOptions::default()
        },
        ..CacheOptions::default()
    };
    let clock = Arc::new(ManualClock::default());
    let (cache, _) = Cache::open(options, clock, &Registry::new());
    // What a thread makes at its first store is made.
    store(&cache, usize::MAX, length);
    let before = HELD.load(Ordering::Relaxed);
    let enough = usize::try_from(SIZE).expect("64 bits") * 2 / (length + 300);
    (0..enough).for_each(|n| store(&cache, n, length));
    let held = HELD.load(Ordering::Relaxed) - before;
    held as f64 / SIZE as f64
}

#[test]
fn a_full_ram_cache_takes_what_its_size_says_whatever_its_objects_are() {
    for length in [0, 12, 500, 15_000, 500_000] {
        let share = share_held(length);
        let is_right = (0.75..1.05).contains(&share);
        assert!(is_right, "{length} bytes: {share:.3} of the size");
    }
}
