//! The thread that operators talk to: control socket, admin pages, signals,
//! the tick of the metrics.

use super::announce::Announcement;
use super::certificates::Watched;
use crate::base::clock::Clock;
use crate::cache::Cache;
use crate::metrics::Collector;
use crate::mgmt::admin::{self, Pages};
use crate::mgmt::control::Control;
use crate::mgmt::life::{Life, Phase};
use crate::mgmt::socket;
use crate::proxy::access_log::AccessLog;
use crate::proxy::life::{LifeControl, Stage};
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local};

/// How often the windows of the metrics get a sample.
const TICK: Duration = Duration::from_secs(1);

/// Between two counts of directory entries, at least.
const COUNT_EVERY: Duration = Duration::from_secs(10);
/// And so many times as long as the last one took.
const COUNT_SHARE: u32 = 100;

/// Everything the thread serves.
pub(super) struct Management {
    pub(super) control: Control,
    pub(super) pages: Pages,
    pub(super) socket: UnixListener,
    pub(super) admin: Option<TcpListener>,
    pub(super) proxy: Arc<LifeControl>,
    /// Reopened at SIGUSR2.
    pub(super) log: Arc<AccessLog>,
    pub(super) certificates: Watched,
    pub(super) signals: bool,
    pub(super) announcement: Announcement,
}

/// The running thread.
#[derive(Debug)]
pub(super) struct ManagementThread {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl ManagementThread {
    /// Starts the thread, and waits until it serves and would hear a signal:
    /// a SIGTERM sent on the word "ready" is a stop, neither lost nor a death.
    pub(super) fn start(management: Management) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (serves, served) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("management".into())
            .spawn(move || run(management, &serves, stopped))?;
        match served.recv() {
            Ok(()) => Ok(Self { stop, thread }),
            Err(mpsc::RecvError) => Err(why_it_ended(thread)),
        }
    }

    /// Ends the thread, and with it the socket and the pages.
    pub(super) fn stop(self) {
        if self.stop.send(()).is_err() {
            tracing::debug!("the management thread had ended by itself");
        }
        match self.thread.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "management thread failed"),
            Err(_) => tracing::error!("management thread panicked"),
        }
    }
}

/// Why a thread ended that should have gone on.
fn why_it_ended(thread: JoinHandle<io::Result<()>>) -> io::Error {
    match thread.join() {
        Ok(Err(error)) => error,
        Ok(Ok(())) | Err(_) => io::Error::other("the management thread ended at its start"),
    }
}

fn run(
    management: Management,
    serves: &mpsc::SyncSender<()>,
    stopped: oneshot::Receiver<()>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, async {
        serve(management)?;
        serves.send(()).map_err(io::Error::other)?;
        // A dropped sender means that the server is gone: stop as well.
        drop(stopped.await);
        Ok(())
    })
}

fn serve(management: Management) -> io::Result<()> {
    let Management {
        control,
        pages,
        socket,
        admin,
        proxy,
        log,
        certificates,
        signals,
        announcement,
    } = management;
    let life = Arc::clone(&control.life);
    spawn_local(tick(
        Arc::clone(&control.collector),
        Arc::clone(&control.clock),
    ));
    spawn_local(count_entries(
        Arc::clone(&control.cache),
        Arc::clone(&control.clock),
    ));
    spawn_local(certificates.watch());
    spawn_local(announcement.make());
    spawn_local(drain_proxy(Arc::clone(&life), proxy));
    if signals {
        heed_signals(&life, log)?;
    }
    let socket = tokio::net::UnixListener::from_std(socket)?;
    spawn_local(socket::serve(socket, Rc::new(control)));
    if let Some(admin) = admin {
        let admin = tokio::net::TcpListener::from_std(admin)?;
        spawn_local(admin::serve(admin, Rc::new(pages)));
    }
    Ok(())
}

async fn tick(collector: Arc<Collector>, clock: Arc<dyn Clock>) {
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        collector.tick(clock.mono());
    }
}

/// Keeps the gauges of directory entries: they take a read of every directory,
/// which is too much for each scrape, and for a start that still fills them.
async fn count_entries(cache: Arc<Cache>, clock: Arc<dyn Clock>) {
    cache.loaded().await;
    loop {
        let (counting, begun) = (Arc::clone(&cache), clock.mono());
        let counted = tokio::task::spawn_blocking(move || drop(counting.status())).await;
        if let Err(error) = counted {
            tracing::error!(%error, "counting directory entries failed");
        }
        tokio::time::sleep(rest_after(clock.mono().since(begun))).await;
    }
}

/// How long no entries are counted after a count that took so long.
fn rest_after(count: Duration) -> Duration {
    COUNT_EVERY.max(count.saturating_mul(COUNT_SHARE))
}

/// SIGTERM and SIGINT stop, SIGUSR2 reopens the logs; SIGHUP and SIGUSR1 do
/// nothing, as in ATS, where they would end the process otherwise.
fn heed_signals(life: &Arc<Life>, log: Arc<AccessLog>) -> io::Result<()> {
    for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
        spawn_local(stop_at(signal(kind)?, Arc::clone(life)));
    }
    spawn_local(reopen_at(signal(SignalKind::user_defined2())?, log));
    for kind in [SignalKind::hangup(), SignalKind::user_defined1()] {
        // Once caught, it stays so.
        drop(signal(kind)?);
    }
    Ok(())
}

async fn reopen_at(mut signal: Signal, log: Arc<AccessLog>) {
    while signal.recv().await.is_some() {
        tracing::info!("reopening the access log");
        log.reopen();
    }
}

async fn stop_at(mut signal: Signal, life: Arc<Life>) {
    if signal.recv().await.is_some() {
        life.stop();
        tracing::info!("asked to stop by a signal");
    }
}

/// `server drain`, and the first step of every stop.
async fn drain_proxy(life: Arc<Life>, proxy: Arc<LifeControl>) {
    let mut phases = life.watch();
    let drained = phases.wait_for(|phase| *phase >= Phase::Draining).await;
    if drained.is_ok() {
        proxy.advance(Stage::Draining);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_entries_takes_a_hundredth_of_the_time_at_most() {
        let rests = [0, 100, 150, 4000]
            .map(Duration::from_millis)
            .map(rest_after);
        assert_eq!(rests, [10, 10, 15, 400].map(Duration::from_secs));
    }
}
