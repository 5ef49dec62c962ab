//! The cache's own thread: batches that wait for their second, durable state,
//! and what has to wait for batches.

use super::Cache;
use super::keep::Gone;
use crate::base::simulated::is_simulated;
use crate::cache::invalidation::{State, StateError};
use crate::cache::object::PurgeError;
use crate::cache::volume::{LiveStripe, Written};
use parking_lot::Mutex;
use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// Time between two looks at the stripes.
const TICK: Duration = Duration::from_millis(100);

/// Looks until it is written down what the spans were written to.
const LOOKS_A_LIFE: u64 = 300;
/// Jobs that are done together, at most.
const JOBS_MAX: usize = 1024;
/// Searches for what is dead that wait for their devices at a time.
const SEARCHES_MAX: usize = 16;

/// Who waits for a purge to be durable.
type PurgeDone = oneshot::Sender<Result<(), PurgeError>>;

enum Job {
    Purge {
        key: u128,
        gone: Gone,
        done: PurgeDone,
    },
    Clear {
        volume: Option<u32>,
        epoch: u64,
        done: PurgeDone,
    },
    FreeLater {
        key: u128,
        epoch: u64,
    },
    NoteMissed,
    /// Says that it is done.
    PlaceAnew(Box<dyn FnOnce() + Send>),
    Stop(oneshot::Sender<()>),
}

/// An invalidation that is not written everywhere yet.
#[derive(Debug)]
struct Unfinished {
    key: u128,
    /// What began before is dead.
    epoch: u64,
    /// Whether the state directory holds it, until it is finished.
    durable: bool,
    step: Step,
}

/// What an invalidation that is not written everywhere waits for.
enum Step {
    /// Every stripe knows what it holds of the key.
    Known,
    /// All have been searched for what is dead.
    Searched(Pin<Box<dyn Future<Output = Vec<Written>> + Send>>),
    /// These batches are flushed.
    Written(Vec<Written>),
}

impl Step {
    fn written(waits: Vec<Written>) -> Self {
        waits.iter().for_each(Written::want_safe);
        Self::Written(waits)
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Known => "Known",
            Self::Searched(_) => "Searched",
            Self::Written(_) => "Written",
        })
    }
}

impl Unfinished {
    /// Goes on as far as that takes no waiting: a search waits for devices, and
    /// this thread is the one that counts how long they are silent.
    fn go_on(&mut self, cache: &Cache, searches: &mut usize) {
        if matches!(self.step, Step::Known)
            && *searches < SEARCHES_MAX
            && cache.is_known_everywhere(self.key)
        {
            let search = cache.free_dead(self.key, self.epoch);
            self.step = Step::Searched(Box::pin(search));
        }
        if let Step::Searched(search) = &mut self.step {
            match search
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                Poll::Ready(waits) => {
                    cache.rules.end(self.key, self.epoch);
                    self.step = Step::written(waits);
                }
                Poll::Pending => *searches += 1,
            }
        }
    }

    fn is_done(&self) -> bool {
        matches!(&self.step, Step::Written(waits) if waits.iter().all(Written::is_safe))
    }
}

/// The way to the thread; it ends when this goes.
#[derive(Debug)]
pub(super) struct CacheThread {
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Option<JoinHandle<()>>,
    /// What the thread would do, where a simulation does it by hand.
    by_hand: Mutex<Option<(Work, Receiver<Job>)>>,
}

impl Drop for CacheThread {
    fn drop(&mut self) {
        self.jobs.lock().take();
        // The thread itself may be the one that held the cache last: it can't
        // wait for itself, and ends by itself. A panic was reported already.
        let own = std::thread::current().id();
        if let Some(thread) = self.thread.take().filter(|t| t.thread().id() != own) {
            drop(thread.join());
        }
    }
}

impl CacheThread {
    /// Starts the thread, with the purges that an earlier run left unfinished.
    /// If the system gives none, every job is refused.
    pub(super) fn start(cache: Weak<Cache>, state: State, unfinished: &[(u128, u64)]) -> Self {
        let (send, jobs) = channel();
        let unfinished = unfinished.iter().map(|(key, epoch)| Unfinished {
            key: *key,
            epoch: *epoch,
            durable: true,
            step: Step::Known,
        });
        let unfinished = unfinished.collect();
        let thread = std::thread::Builder::new().name("strata-cache".into());
        let mut by_hand = None;
        let mut work = Work {
            cache,
            state,
            unfinished,
            unnoted: Vec::new(),
            looks: 0,
        };
        let started = if is_simulated() {
            by_hand = Some((work, jobs));
            Ok(None)
        } else {
            thread.spawn(move || work.run(&jobs)).map(Some)
        };
        if let Err(error) = &started {
            tracing::error!(%error, "the cache's thread can't be started: no purge is durable");
        }
        Self {
            jobs: Mutex::new(started.is_ok().then_some(send)),
            thread: started.ok().flatten(),
            by_hand: Mutex::new(by_hand),
        }
    }

    /// Does in a simulation what the thread would do.
    fn work_off(&self) {
        if let Some((work, jobs)) = &mut *self.by_hand.lock() {
            let end = work.work_off(jobs.try_iter().collect());
            if end.is_some() {
                work.look();
            }
        }
    }

    /// What the thread does from time to time.
    #[cfg(test)]
    pub(super) fn tick(&self) {
        if let Some((work, _)) = &mut *self.by_hand.lock() {
            work.look();
        }
    }

    /// Makes a purge durable.
    pub(super) async fn begin_purge(&self, key: u128, gone: Gone) -> Result<(), PurgeError> {
        let (done, wait) = oneshot::channel();
        self.send(Job::Purge { key, gone, done });
        wait.await.unwrap_or(Err(PurgeError::Closed))
    }

    /// Makes a clear durable.
    pub(super) async fn begin_clear(
        &self,
        volume: Option<u32>,
        epoch: u64,
    ) -> Result<(), PurgeError> {
        let (done, wait) = oneshot::channel();
        self.send(Job::Clear {
            volume,
            epoch,
            done,
        });
        wait.await.unwrap_or(Err(PurgeError::Closed))
    }

    /// Frees what a key had before `epoch`, once every stripe knows what it holds of it.
    pub(super) fn free_later(&self, key: u128, epoch: u64) {
        self.send(Job::FreeLater { key, epoch });
    }

    /// Writes down that stripes which are not open yet may miss a removal.
    pub(super) fn note_missed(&self) {
        self.send(Job::NoteMissed);
    }

    /// Places keys anew over the spans that are online.
    pub(super) async fn place_anew(&self) {
        let (send, done) = oneshot::channel();
        // Who no longer waits for it has no need of the answer.
        self.send(Job::PlaceAnew(Box::new(move || {
            send.send(()).ok();
        })));
        // Without the thread nothing is placed any more.
        done.await.ok();
    }

    /// As [`CacheThread::place_anew`]; blocks until it is done.
    pub(super) fn place_anew_and_wait(&self) {
        let (send, done) = channel();
        self.send(Job::PlaceAnew(Box::new(move || {
            send.send(()).ok();
        })));
        done.recv().ok();
    }

    /// Ends the thread, after the jobs that were given to it before.
    pub(super) async fn stop(&self) {
        let (done, wait) = oneshot::channel();
        self.send(Job::Stop(done));
        // An answer is never sent: the end of the channel is the answer.
        drop(wait.await);
        self.jobs.lock().take();
    }

    /// Hands a job over; when the thread is gone, so is the job, and whoever
    /// waits for it is told by its channel's end.
    fn send(&self, job: Job) {
        if let Some(jobs) = &*self.jobs.lock() {
            drop(jobs.send(job));
        }
        if is_simulated() {
            self.work_off();
        }
    }
}

/// What the thread works on.
#[derive(Debug)]
struct Work {
    cache: Weak<Cache>,
    state: State,
    unfinished: Vec<Unfinished>,
    /// Stripes that may have missed a removal, which is not written down yet.
    unnoted: Vec<Arc<LiveStripe>>,
    /// How often it has looked.
    looks: u64,
}

impl Work {
    /// Jobs that came together are done together, and then it looks: what is
    /// due is done in time however many jobs come.
    fn run(&mut self, jobs: &Receiver<Job>) {
        loop {
            let first = match jobs.recv_timeout(TICK) {
                Ok(job) => Some(job),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let jobs = first.into_iter().chain(jobs.try_iter().take(JOBS_MAX));
            let end = self.work_off(jobs.collect());
            self.look();
            if end.is_some() {
                return self.remember();
            }
        }
    }

    fn remember(&self) {
        let remembered = self.cache.upgrade().map(|cache| cache.remember_lives());
        if let Some(Err(error)) = remembered {
            tracing::error!(%error, "the cache's state can't be written");
        }
    }

    /// Does the jobs; gives the one that ends the thread, if it is among them,
    /// to be let go when all is done.
    fn work_off(&mut self, jobs: Vec<Job>) -> Option<oneshot::Sender<()>> {
        let (mut purges, mut end) = (Vec::new(), None);
        for job in jobs {
            match job {
                Job::Purge { key, gone, done } => purges.push((key, gone, done)),
                Job::Clear {
                    volume,
                    epoch,
                    done,
                } => {
                    let cleared = self.state.clear(volume, epoch);
                    drop(done.send(cleared.map_err(|e| PurgeError::State(e.to_string()))));
                }
                Job::PlaceAnew(done) => {
                    self.cache.upgrade().inspect(|cache| cache.place_anew());
                    done();
                }
                Job::FreeLater { key, epoch } => self.unfinished.push(Unfinished {
                    key,
                    epoch,
                    durable: false,
                    step: Step::Known,
                }),
                Job::NoteMissed => self.note_missed(),
                Job::Stop(done) => end = Some(done),
            }
        }
        self.purge(purges);
        end
    }

    /// Writes down once which stripes are open: before a purge that they have
    /// written is forgotten.
    fn note_opened(&self, cache: &Cache) -> Result<(), StateError> {
        let mut opened = cache.volume.stripes();
        opened.retain(|stripe| stripe.opens_now());
        let mut each = opened.iter();
        each.try_for_each(|stripe| self.state.note_opened(stripe.uuid))
    }

    /// Writes down that stripes which are not open yet may miss a removal: it
    /// is remembered nowhere else. What can't be written is tried again at the
    /// next look.
    fn note_missed(&mut self) {
        let stripes = self.cache.upgrade().map(|cache| cache.volume.stripes());
        let mut missed = stripes.unwrap_or_default();
        missed.retain(|stripe| stripe.misses_now());
        self.unnoted.extend(missed);
        let state = &self.state;
        self.unnoted.retain(|stripe| {
            if stripe.was_opened() {
                return false;
            }
            let noted = state.note_missed(stripe.uuid);
            if let Err(error) = &noted {
                tracing::error!(%error, "what a stripe may have missed could not be written down");
            }
            noted.is_err()
        });
    }

    /// Makes purges durable, all of them by one flush.
    fn purge(&mut self, purges: Vec<(u128, Gone, PurgeDone)>) {
        if purges.is_empty() {
            return;
        }
        let rules: Vec<(u128, u64)> = purges.iter().map(|(key, g, _)| (*key, g.epoch)).collect();
        let durable = self.state.begin_purges(&rules);
        let durable = durable.map_err(|error| error.to_string());
        for (key, gone, done) in purges {
            self.unfinished.push(Unfinished {
                key,
                epoch: gone.epoch,
                durable: true,
                step: match gone.known_everywhere {
                    true => Step::written(gone.waits),
                    false => Step::Known,
                },
            });
            // Nobody may be waiting any more; the purge holds anyway.
            drop(done.send(durable.clone().map_err(PurgeError::State)));
        }
    }

    /// Does what is due. Without a cache there is nothing: it is not made yet,
    /// or gone, which the end of the jobs tells.
    fn look(&mut self) {
        let Some(cache) = self.cache.upgrade() else {
            return;
        };
        for stripe in cache.volume.stripes() {
            stripe.set_epoch(cache.rules.epoch());
            stripe.drive();
            stripe.flush_wanted();
        }
        cache.judge_silence();
        cache.place_deferred();
        cache.mover.wake();
        cache.retire_spans();
        cache.note_returned();
        cache.settle();
        cache.publish();
        let noted = self.note_opened(&cache);
        if !self.unnoted.is_empty() {
            self.note_missed();
        }
        self.finish(&cache);
        self.looks += 1;
        let remembered = match self.looks % LOOKS_A_LIFE {
            0 => cache.remember_lives(),
            _ => Ok(()),
        };
        let reserved = self.state.reserve_epochs(cache.rules.epoch());
        if let Err(error) = remembered.and(reserved).and(noted) {
            tracing::error!(%error, "the cache's state can't be written");
        }
    }

    /// Forgets the rules whose free rows no power cut takes any more.
    fn finish(&mut self, cache: &Cache) {
        let mut searches = 0;
        for unfinished in &mut self.unfinished {
            unfinished.go_on(cache, &mut searches);
        }
        let state = &self.state;
        self.unfinished.retain(|unfinished| {
            let done = unfinished.is_done();
            if done && unfinished.durable {
                cache.rules.retire(unfinished.epoch);
                let forgotten = state.end_purge(unfinished.key, unfinished.epoch);
                if let Err(error) = forgotten {
                    tracing::error!(%error, "a finished purge could not be forgotten");
                }
            }
            !done
        });
    }
}

/// The durable state in `dir`. When it can't be opened the cache runs on one
/// that is forgotten at the end: what lies on the spans is dead then. `seconds`
/// is the time of day.
pub(super) fn open_state(dir: Option<&Path>, seconds: u64) -> State {
    match State::open(dir, seconds) {
        Ok(state) => {
            let (instance, run) = (state.instance, state.run);
            tracing::info!(%run, instance = %format_args!("{instance:032x}"), "cache state");
            state
        }
        Err(error) => {
            tracing::error!(%error, "the cache's state can't be opened: \
                purges are not durable, and nothing that the spans hold is used");
            let temporary = State::open(None, seconds);
            temporary.expect("sled needs only a temporary directory here")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_before_the_cache_is_made_does_not_end_the_thread() {
        let state = State::open(None, 1).unwrap();
        let thread = CacheThread::start(Weak::new(), state, &[]);
        // Has the thread look, as a tick does.
        thread.free_later(1, 1);
        let gone = Gone {
            epoch: 2,
            found: false,
            waits: Vec::new(),
            known_everywhere: true,
            open_everywhere: true,
        };
        let mut waiting = tokio::runtime::Builder::new_current_thread();
        let waiting = waiting.build().unwrap();
        let purged = waiting.block_on(thread.begin_purge(2, gone));
        assert!(purged.is_ok(), "{purged:?}");
    }
}
