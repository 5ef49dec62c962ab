//! The event threads: how many, and each with its sockets.

use super::ports::Client;
use super::running::Workers;
use crate::config::records::Records;
use crate::mgmt::life::{Life, Phase};
use crate::proxy::listener::Door;
use crate::proxy::worker;
use crate::proxy::{Shared, WorkerContext};
use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;
use tokio::sync::{Semaphore, mpsc};

/// How many event threads the records ask for: one a core by default.
pub(super) fn count(records: &Records) -> usize {
    let limit = usize::try_from(records.exec_thread_limit)
        .unwrap_or(1)
        .max(1);
    if records.exec_thread_autoconfig == 0 {
        return limit;
    }
    let cores = available_parallelism().map_or(1, NonZero::get);
    scaled(cores, records.exec_thread_autoconfig_scale)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a count of cores, clamped to what a server can have"
)]
fn scaled(cores: usize, scale: f64) -> usize {
    (cores as f64 * scale).round().clamp(1.0, 4096.0) as usize
}

/// Client connections that all threads together may hold.
fn slots(records: &Records) -> Arc<Semaphore> {
    let limit = records
        .net_max_connections_in
        .min(records.net_connections_throttle);
    let limit = usize::try_from(limit).unwrap_or(0).max(1);
    Arc::new(Semaphore::new(limit.min(Semaphore::MAX_PERMITS)))
}

/// Starts a thread for each share of the sockets.
pub(super) fn start(
    clients: Vec<Client>,
    shared: &Shared,
    life: &Arc<Life>,
) -> io::Result<Workers> {
    let slots = slots(&shared.snapshot.load().records);
    let (alive, gone) = mpsc::channel(1);
    let mut threads = Vec::new();
    for (number, doors) in by_thread(clients).into_iter().enumerate() {
        let (shared, slots) = (shared.clone(), Arc::clone(&slots));
        let watched = Watched {
            life: Arc::clone(life),
            _alive: alive.clone(),
        };
        let thread = std::thread::Builder::new()
            .name(format!("net-{number}"))
            .spawn(move || {
                let _watched = watched;
                worker::run(doors, slots, || WorkerContext::new(shared))
            })?;
        threads.push(thread);
    }
    Ok(Workers { threads, gone })
}

/// The sockets of each thread, one of every port.
fn by_thread(clients: Vec<Client>) -> Vec<Vec<Door>> {
    let mut threads: Vec<Vec<_>> = Vec::new();
    for Client { listeners, dialect } in clients {
        let sockets = listeners.sockets;
        threads.resize_with(threads.len().max(sockets.len()), Vec::new);
        for (thread, socket) in threads.iter_mut().zip(sockets) {
            thread.push(Door { socket, dialect });
        }
    }
    threads
}

/// Stops the server when its thread ends, by an error or a panic, while
/// clients are still to be served.
struct Watched {
    life: Arc<Life>,
    _alive: mpsc::Sender<()>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        if self.life.phase() < Phase::Draining {
            tracing::error!("an event thread ended; stopping");
            self.life.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_follow_cores_or_the_limit() {
        let records = Records {
            exec_thread_autoconfig: 0,
            exec_thread_limit: 3,
            ..Records::default()
        };
        assert_eq!(count(&records), 3);
        assert_eq!([scaled(8, 1.0), scaled(8, 0.01), scaled(2, 1.5)], [8, 1, 3]);
    }
}
