//! A server that runs, and the order in which it stops.

use super::management::ManagementThread;
use super::state::StateDir;
use crate::cache::Cache;
use crate::mgmt::life::{Life, Phase};
use crate::mgmt::socket::SOCKET_NAME;
use crate::proxy::Snapshot;
use crate::proxy::life::{LifeControl, Stage};
use arc_swap::ArcSwap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// How long threads may take once they are told to cut connections off.
const CUT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the stripes may take to be flushed and synced.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a server did not stop as it should.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// There was no runtime to wait in.
    #[error("cannot wait: {0}")]
    Wait(#[from] io::Error),
    /// An event thread failed, or would not end.
    #[error("event threads: {0}")]
    Worker(String),
    /// Stored objects may not all be on the devices.
    #[error("the cache was not flushed within {} s", FLUSH_TIMEOUT.as_secs())]
    Flush,
}

/// The event threads.
#[derive(Debug)]
pub(super) struct Workers {
    pub(super) threads: Vec<JoinHandle<io::Result<()>>>,
    /// Closed when the last of them has ended.
    pub(super) gone: mpsc::Receiver<()>,
}

/// A server that runs. Dropping it stops nothing in order: call
/// [`Running::stop`] or [`Running::wait`].
pub struct Running {
    /// Where clients connect, with the ports that the system chose.
    pub ports: Vec<SocketAddr>,
    /// Where the admin listener is.
    pub admin: Option<SocketAddr>,
    pub(super) state: StateDir,
    pub(super) life: Arc<Life>,
    pub(super) proxy: Arc<LifeControl>,
    pub(super) workers: Workers,
    pub(super) management: ManagementThread,
    pub(super) cache: Arc<Cache>,
    pub(super) snapshot: Arc<ArcSwap<Snapshot>>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running")
            .field("ports", &self.ports)
            .field("admin", &self.admin)
            .finish_non_exhaustive()
    }
}

impl Running {
    /// Stops now: see [`Running::wait`].
    ///
    /// # Errors
    ///
    /// As [`Running::wait`].
    pub fn stop(self) -> Result<(), StopError> {
        self.life.stop();
        self.wait()
    }

    /// Serves until asked to stop, by a signal or a command; then accepts
    /// nothing more, lets requests end for at most `stop.shutdown_timeout`,
    /// cuts off what is left, flushes and syncs the stripes.
    ///
    /// # Errors
    ///
    /// What went wrong first; the server has stopped all the same.
    pub fn wait(mut self) -> Result<(), StopError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let ended = runtime.block_on(self.end_workers());
        let workers = match ended {
            true => self
                .workers
                .threads
                .drain(..)
                .map(join)
                .fold(Ok(()), Result::and),
            false => Err(StopError::Worker("they do not end".into())),
        };
        let flushed = runtime.block_on(self.flush());
        self.management.stop();
        // Gone already if somebody tidied up; nobody can be reached by it.
        drop(std::fs::remove_file(self.state.path().join(SOCKET_NAME)));
        tracing::info!("stopped");
        workers.and(flushed)
    }

    /// Waits for the end to be asked for, and brings the event threads there;
    /// false if they do not end.
    async fn end_workers(&mut self) -> bool {
        let mut phases = self.life.watch();
        // An error would mean that nobody can ask any more: stop as well.
        drop(phases.wait_for(|phase| *phase == Phase::Stopping).await);
        self.proxy.advance(Stage::Draining);
        let drain = self.shutdown_timeout();
        tracing::info!(seconds = drain.as_secs(), "draining");
        if self.workers.end_within(drain).await {
            return true;
        }
        tracing::warn!("cutting off what is left");
        self.proxy.advance(Stage::Stopped);
        self.workers.end_within(CUT_TIMEOUT).await
    }

    async fn flush(&self) -> Result<(), StopError> {
        let flushed = timeout(FLUSH_TIMEOUT, self.cache.shutdown()).await;
        flushed.map_err(|_| StopError::Flush)
    }

    fn shutdown_timeout(&self) -> Duration {
        let seconds = self.snapshot.load().records.stop_shutdown_timeout;
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }
}

impl Workers {
    async fn end_within(&mut self, limit: Duration) -> bool {
        timeout(limit, self.gone.recv()).await.is_ok()
    }
}

fn join(worker: JoinHandle<io::Result<()>>) -> Result<(), StopError> {
    let name = worker.thread().name().unwrap_or("").to_owned();
    match worker.join() {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(StopError::Worker(format!("{name}: {error}"))),
        Err(_) => Err(StopError::Worker(format!("{name}: panicked"))),
    }
}
