//! Random reads through a backend, as an event thread has them.

use crate::{BATCH, SIZE};
use bytes::Bytes;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use strata::base::aligned::AlignedBuf;
use strata::base::clock::{Clock, MonoTime, SystemClock};
use strata::base::prng::Prng;
use strata::device::{Backend, Device, Request, drive_reads, write_blocking};
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local, yield_now};

/// What is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) bytes: usize,
    /// Reads under way at once.
    pub(super) depth: usize,
    pub(super) time: Duration,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Reads {
    pub(super) each_second: f64,
    /// Of the whole process, a read.
    pub(super) cpu_micros: f64,
    /// In microseconds, least first; or just the median and the 99th.
    pub(super) latencies: Vec<f64>,
}

impl Reads {
    /// A percentile of the latencies.
    pub(super) fn at(&self, percent: usize) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        // fio's two are the median and the rest.
        let at = if last == 1 {
            usize::from(percent > 50)
        } else {
            last * percent / 100
        };
        self.latencies.get(at).copied().unwrap_or(f64::NAN)
    }
}

/// Batches that were written meanwhile.
pub(super) struct Batches {
    pub(super) each_second: f64,
    /// The median time of one.
    pub(super) millis: f64,
}

/// Bytes of which no two stretches are alike.
pub(super) fn noise(len: usize) -> Bytes {
    let mut prng = Prng::seeded(7);
    let words = (0..len / 8).flat_map(|_| prng.next_u64().to_le_bytes());
    AlignedBuf::padded(&words.collect::<Vec<u8>>(), 4096).into_bytes()
}

pub(super) fn run(device: &Arc<dyn Device>, backend: Backend, load: Load) -> Reads {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let local = LocalSet::new();
    let before = cpu();
    let mut reads = local.block_on(&runtime.unwrap(), read_for(device, backend, load));
    let count = reads.latencies.len() as f64;
    reads.cpu_micros = (cpu() - before).as_secs_f64() * 1e6 / count;
    reads
}

/// The same while a thread writes batch after batch.
pub(super) fn run_beside_batches(
    device: &Arc<dyn Device>,
    backend: Backend,
    load: Load,
) -> (Reads, Batches) {
    let (ended, clock) = (AtomicBool::new(false), SystemClock::new());
    std::thread::scope(|scope| {
        let batches = scope.spawn(|| write_until(&**device, &ended, &clock));
        let reads = run(device, backend, load);
        ended.store(true, Ordering::Relaxed);
        (reads, batches.join().unwrap())
    })
}

fn write_until(device: &dyn Device, ended: &AtomicBool, clock: &SystemClock) -> Batches {
    let (begin, batch) = (clock.mono(), noise(BATCH));
    let offsets = (0..SIZE).step_by(BATCH).cycle();
    let mut times = Vec::new();
    for offset in offsets.take_while(|_| !ended.load(Ordering::Relaxed)) {
        let start = clock.mono();
        write_blocking(device, offset, batch.clone()).unwrap();
        times.push(clock.mono().since(start).as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Batches {
        each_second: times.len() as f64 / clock.mono().since(begin).as_secs_f64(),
        millis: times.get(times.len() / 2).copied().unwrap_or(f64::NAN),
    }
}

async fn read_for(device: &Arc<dyn Device>, backend: Backend, load: Load) -> Reads {
    if backend == Backend::Rings {
        spawn_local(async { drive_reads().await.unwrap() });
        yield_now().await;
    }
    let clock = Rc::new(SystemClock::new());
    let begin = clock.mono();
    let stop = Rc::new(Cell::new(false));
    let readers: Vec<_> = (0..load.depth)
        .map(|seed| {
            let reader = Reader {
                device: Arc::clone(device),
                bytes: load.bytes,
                end: begin.plus(load.time),
                clock: Rc::clone(&clock),
                stop: Rc::clone(&stop),
            };
            spawn_local(reader.run(Prng::seeded(u64::try_from(seed).unwrap())))
        })
        .collect();
    let mut latencies = Vec::new();
    for reader in readers {
        latencies.extend(reader.await.unwrap());
    }
    let seconds = clock.mono().since(begin).as_secs_f64();
    latencies.sort_by(f64::total_cmp);
    Reads {
        each_second: latencies.len() as f64 / seconds,
        cpu_micros: f64::NAN,
        latencies,
    }
}

/// One read after the other.
struct Reader {
    device: Arc<dyn Device>,
    bytes: usize,
    end: MonoTime,
    clock: Rc<SystemClock>,
    stop: Rc<Cell<bool>>,
}

impl Reader {
    async fn run(self, mut prng: Prng) -> Vec<f64> {
        let mut latencies = Vec::new();
        let bytes = u64::try_from(self.bytes).unwrap();
        while !self.stop.get() {
            let start = self.clock.mono();
            self.read(prng.below(SIZE / bytes) * bytes).await;
            let now = self.clock.mono();
            latencies.push(now.since(start).as_secs_f64() * 1e6);
            self.stop.set(now >= self.end);
        }
        latencies
    }

    async fn read(&self, offset: u64) {
        let (send, receive) = oneshot::channel();
        self.device.submit(Request::Read {
            offset,
            buf: AlignedBuf::recycled(self.bytes),
            done: Box::new(move |outcome| drop(send.send(outcome))),
        });
        receive.await.unwrap().unwrap();
    }
}

/// Processor time of this process so far.
fn cpu() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(u64::try_from(micros).unwrap())
}
