//! The cache's own thread: durable state, and later whatever has a deadline.

use super::Cache;
use crate::cache::invalidation::State;
use crate::cache::object::PurgeError;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Weak;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use tokio::sync::oneshot;

/// The longest time between two looks at the gauges.
const TICK: Duration = Duration::from_secs(1);

enum Job {
    Purge {
        key: u128,
        epoch: u64,
        done: oneshot::Sender<Result<(), PurgeError>>,
    },
    Stop(oneshot::Sender<()>),
}

/// The way to the thread; it ends when this goes.
#[derive(Debug)]
pub(super) struct CacheThread {
    jobs: Mutex<Option<Sender<Job>>>,
}

impl CacheThread {
    /// Starts the thread. If the system gives none, every job is refused.
    pub(super) fn start(cache: Weak<Cache>, state: State) -> Self {
        let (send, receive) = channel();
        let thread = std::thread::Builder::new().name("strata-cache".into());
        let started = thread.spawn(move || run(&cache, &state, &receive));
        if let Err(error) = &started {
            tracing::error!(%error, "the cache's thread can't be started: no purge is durable");
        }
        Self {
            jobs: Mutex::new(started.ok().map(|_| send)),
        }
    }

    /// Makes a purge durable.
    pub(super) async fn begin_purge(&self, key: u128, epoch: u64) -> Result<(), PurgeError> {
        let (done, wait) = oneshot::channel();
        self.send(Job::Purge { key, epoch, done });
        wait.await.unwrap_or(Err(PurgeError::Closed))
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
    }
}

fn run(cache: &Weak<Cache>, state: &State, jobs: &Receiver<Job>) {
    loop {
        match jobs.recv_timeout(TICK) {
            Ok(Job::Purge { key, epoch, done }) => {
                let purged = state.begin_purge(key, epoch);
                let purged = purged.and_then(|()| state.end_purge(key, epoch));
                let purged = purged.map_err(|error| PurgeError::State(error.to_string()));
                // Nobody may be waiting any more; the purge holds all the same.
                drop(done.send(purged));
            }
            Ok(Job::Stop(done)) => {
                drop(done);
                return;
            }
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let Some(cache) = cache.upgrade() else {
            return;
        };
        cache.publish();
    }
}

/// The durable state in `dir`. When it can't be opened the cache runs on one
/// that is forgotten at the end: what lies on the spans is suspect then.
pub(super) fn open_state(dir: Option<&Path>) -> State {
    match State::open(dir) {
        Ok(state) => {
            let (instance, run) = (state.instance, state.run);
            tracing::info!(%run, instance = %format_args!("{instance:032x}"), "cache state");
            state
        }
        Err(error) => {
            tracing::error!(%error, "the cache's state can't be opened: \
                purges are not durable, and what the spans hold is revalidated");
            State::open(None).expect("sled needs only a temporary directory here")
        }
    }
}
