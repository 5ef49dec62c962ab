//! Every backend under the same promises, on files and on loop devices.

use crate::loop_device::LoopDevice;
use bytes::Bytes;
use nix::errno::Errno;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ThreadId;
use std::time::Duration;
use strata::base::aligned::AlignedBuf;
use strata::base::prng::Prng;
use strata::device::{
    Backend, Device, DeviceError, OpenRequest, Request, drive_reads, flush_blocking, open,
    read_blocking, write_blocking,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{LocalSet, spawn_local, yield_now};

const BACKENDS: [Backend; 2] = [Backend::Threads, Backend::Rings];
/// Bytes of a device.
const SIZE: u64 = 16 << 20;
const BLOCK: usize = 4096;

/// Runs `test` over each backend, as an event thread would.
fn over_backends<F: Future<Output = ()>>(path: &Path, test: impl Fn(OpenRequest) -> F) {
    for backend in BACKENDS {
        let request = OpenRequest {
            size: Some(SIZE),
            backend,
            // All at once: what ends together must be taken together.
            read_depth: 256,
            ..OpenRequest::at(path)
        };
        on_event_thread(backend, test(request));
    }
}

fn on_event_thread<T>(backend: Backend, test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        if backend == Backend::Rings {
            spawn_local(async { drive_reads().await.unwrap() });
            yield_now().await;
        }
        test.await
    })
}

/// A temporary file for a span, and its directory.
fn file() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("span");
    (dir, path)
}

fn read_request(offset: u64, len: usize) -> (Request, oneshot::Receiver<Answer>) {
    let (send, receive) = oneshot::channel();
    let request = Request::Read {
        offset,
        buf: AlignedBuf::zeroed(len),
        done: Box::new(move |outcome| {
            let thread = std::thread::current().id();
            // A test may have stopped waiting.
            drop(send.send((outcome, thread)));
        }),
    };
    (request, receive)
}

type Answer = (Result<AlignedBuf, DeviceError>, ThreadId);

async fn read(device: &dyn Device, offset: u64, len: usize) -> Result<AlignedBuf, DeviceError> {
    let (request, receive) = read_request(offset, len);
    device.submit(request);
    receive.await.unwrap().0
}

/// What block `n` holds.
fn block(n: u64) -> Bytes {
    let text = format!("block {n} ");
    let text: Vec<u8> = text.bytes().cycle().take(BLOCK).collect();
    AlignedBuf::padded(&text, BLOCK).into_bytes()
}

fn at(n: u64) -> u64 {
    n * u64::try_from(BLOCK).unwrap()
}

fn fill(device: &dyn Device, blocks: u64) {
    for n in 0..blocks {
        write_blocking(device, at(n), block(n)).unwrap();
    }
    flush_blocking(device).unwrap();
}

async fn reads_come_from_their_own_offsets(request: OpenRequest) {
    let device = open(&request).unwrap().device;
    fill(&*device, 200);
    let mut waits = Vec::new();
    for n in (0..200).rev() {
        let (request, receive) = read_request(at(n), BLOCK);
        device.submit(request);
        waits.push((n, receive));
    }
    let own = std::thread::current().id();
    for (n, receive) in waits {
        let (outcome, thread) = receive.await.unwrap();
        assert!(*outcome.unwrap() == *block(n), "{n}");
        assert_eq!(thread == own, request.backend == Backend::Rings, "{n}");
    }
    let (two, one) = (read(&*device, at(3), 2 * BLOCK).await, block(4));
    assert!(two.unwrap().ends_with(&one));
}

async fn reads_past_the_end_are_errors(request: OpenRequest) {
    let device = open(&request).unwrap().device;
    let end = device.geometry().bytes;
    let short = read(&*device, end - 4096, 2 * BLOCK).await.unwrap_err();
    let [done, asked] = [BLOCK, 2 * BLOCK];
    assert_eq!(short, DeviceError::Short { done, asked });
    let nothing = read(&*device, end + (1 << 20), BLOCK).await.unwrap_err();
    let [done, asked] = [0, BLOCK];
    assert_eq!(nothing, DeviceError::Short { done, asked });
    for wild in [u64::MAX, u64::MAX - 4095, 1 << 63] {
        let error = read(&*device, wild, BLOCK).await.unwrap_err();
        assert!(matches!(error, DeviceError::System { .. }), "{error}");
    }
}

/// Many readers side by side, of all sizes, each going on as soon as it has
/// its answer: an answer that is made known to nobody stops one for ever.
async fn readers_side_by_side_all_get_on(request: OpenRequest) {
    const BLOCKS: u64 = 1000;
    let device = open(&request).unwrap().device;
    fill(&*device, BLOCKS);
    let readers = (0..100).map(|seed| {
        let device = Arc::clone(&device);
        spawn_local(async move {
            let mut random = Prng::seeded(seed);
            for _ in 0..30 {
                let n = random.below(BLOCKS);
                let count = 1 + random.below(8).min(BLOCKS - 1 - n);
                let len = usize::try_from(at(count)).unwrap();
                let bytes = read(&*device, at(n), len).await.unwrap();
                for (bytes, n) in bytes.chunks(BLOCK).zip(n..) {
                    assert!(*bytes == *block(n), "{n}");
                }
            }
        })
    });
    for reader in readers.collect::<Vec<_>>() {
        let read = tokio::time::timeout(Duration::from_secs(60), reader).await;
        read.expect("an answer never came").unwrap();
    }
}

/// Reads that nobody waits for, a ring that goes while they are under way, a
/// device that goes: each is answered, once, and the path can be opened again.
async fn nothing_is_lost_at_the_end(request: OpenRequest) {
    let opened = open(&request).unwrap();
    fill(&*opened.device, 200);
    let answers = Arc::new(AtomicUsize::new(0));
    for n in 0..200 {
        let answers = Arc::clone(&answers);
        opened.device.submit(Request::Read {
            offset: at(n),
            buf: AlignedBuf::zeroed(BLOCK),
            done: Box::new(move |outcome| {
                assert!(*outcome.unwrap() == *block(n));
                answers.fetch_add(1, Ordering::SeqCst);
            }),
        });
        if n == 100 {
            // Part of them has gone to the kernel, part has not.
            yield_now().await;
        }
    }
    drop(opened);
    assert_eq!(answers.load(Ordering::SeqCst), 200);
    open(&request).unwrap();
}

async fn writes_before_the_end_are_written(request: OpenRequest) {
    let opened = open(&request).unwrap();
    let (send, mut receive) = mpsc::unbounded_channel();
    for n in 0..200 {
        let send = send.clone();
        opened.device.submit(Request::Write {
            offset: at(n),
            bytes: block(n + 7),
            done: Box::new(move |outcome| send.send(outcome).unwrap()),
        });
    }
    drop((opened, send));
    while let Some(outcome) = receive.recv().await {
        outcome.unwrap();
    }
    let again = open(&request).unwrap().device;
    for n in 0..200 {
        assert!(*read_blocking(&*again, at(n), BLOCK).unwrap() == *block(n + 7));
    }
}

/// More than a piece, so that it takes several writes.
async fn a_large_write_arrives_whole(request: OpenRequest) {
    let device = open(&request).unwrap().device;
    let bytes: Vec<u8> = (0..1024).flat_map(|n| block(n).to_vec()).collect();
    let bytes = AlignedBuf::padded(&bytes, bytes.len()).into_bytes();
    write_blocking(&*device, at(1), bytes.clone()).unwrap();
    assert!(*read(&*device, at(1), bytes.len()).await.unwrap() == *bytes);
}

#[test]
fn a_file_keeps_a_device_s_promises_over_each_backend() {
    let (_dir, path) = file();
    over_backends(&path, reads_come_from_their_own_offsets);
    over_backends(&path, reads_past_the_end_are_errors);
    over_backends(&path, readers_side_by_side_all_get_on);
    over_backends(&path, nothing_is_lost_at_the_end);
    over_backends(&path, writes_before_the_end_are_written);
    over_backends(&path, a_large_write_arrives_whole);
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn a_loop_device_keeps_a_device_s_promises_over_each_backend() {
    let device = LoopDevice::zeroed(SIZE);
    over_backends(device.path(), reads_come_from_their_own_offsets);
    over_backends(device.path(), reads_past_the_end_are_errors);
    over_backends(device.path(), readers_side_by_side_all_get_on);
    over_backends(device.path(), nothing_is_lost_at_the_end);
    over_backends(device.path(), writes_before_the_end_are_written);
    over_backends(device.path(), a_large_write_arrives_whole);
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn a_device_that_lost_its_medium_fails_reads_and_goes_on() {
    let device = LoopDevice::zeroed(SIZE);
    over_backends(device.path(), |request| {
        let backing = std::fs::File::options().write(true).open(device.backing());
        let backing = backing.unwrap();
        async move {
            backing.set_len(SIZE).unwrap();
            let device = open(&request).unwrap().device;
            fill(&*device, 16);
            backing.set_len(at(8)).unwrap();
            let lost = read(&*device, at(9), BLOCK).await.unwrap_err();
            assert_eq!(lost, Errno::EIO.into());
            assert!(*read(&*device, at(1), BLOCK).await.unwrap() == *block(1));
        }
    });
}

/// A thread whose ring goes away still reads, as one that never had any.
#[test]
fn reads_of_a_thread_without_a_ring_go_by_the_pool() {
    let (_dir, path) = file();
    let request = OpenRequest {
        size: Some(SIZE),
        backend: Backend::Rings,
        ..OpenRequest::at(&path)
    };
    let device = open(&request).unwrap().device;
    fill(&*device, 4);
    on_event_thread(Backend::Rings, async {
        let (request, _) = read_request(0, BLOCK);
        device.submit(request);
    });
    let bytes = on_event_thread(Backend::Threads, read(&*device, at(3), BLOCK));
    assert!(*bytes.unwrap() == *block(3));
}

#[test]
fn reads_beyond_the_queue_are_refused_and_the_others_served() {
    let (_dir, path) = file();
    for backend in BACKENDS {
        let request = OpenRequest {
            size: Some(SIZE),
            backend,
            threads: 3,
            read_depth: 3,
            read_queue: 5,
            ..OpenRequest::at(&path)
        };
        on_event_thread(backend, async {
            let device = open(&request).unwrap().device;
            fill(&*device, 100);
            let held = hold_threads(&*device, backend).await;
            let waits = (0..100).map(|n| {
                let (request, receive) = read_request(at(n), BLOCK);
                device.submit(request);
                receive
            });
            let waits: Vec<_> = waits.collect();
            drop(held);
            let mut served = 0;
            for (n, wait) in (0..).zip(waits) {
                match wait.await.unwrap().0 {
                    Ok(bytes) => {
                        assert!(*bytes == *block(n), "{n}");
                        served += 1;
                    }
                    Err(error) => assert_eq!(error, DeviceError::Busy),
                }
            }
            let room = if backend == Backend::Rings { 3 + 5 } else { 5 };
            assert_eq!(served, room, "{backend:?}");
            assert!(read(&*device, 0, BLOCK).await.is_ok());
        });
    }
}

/// Keeps the pool's three threads from reading until the answer is dropped.
async fn hold_threads(device: &dyn Device, backend: Backend) -> Vec<std::sync::mpsc::Sender<()>> {
    let mut held = Vec::new();
    while backend == Backend::Threads && held.len() < 3 {
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let (send, started) = oneshot::channel();
        device.submit(Request::Read {
            offset: 0,
            buf: AlignedBuf::zeroed(BLOCK),
            done: Box::new(move |_| {
                send.send(()).unwrap();
                // Ends by an error, when the sender goes.
                wait.recv().unwrap_err();
            }),
        });
        started.await.unwrap();
        held.push(release);
    }
    held
}
