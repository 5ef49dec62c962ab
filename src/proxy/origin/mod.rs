//! Requests to origins: pooled HTTP/1 connections, one pool a thread.
//!
//! hyper carries the messages; what it lets pass and RFC 9112 does not is
//! refused by `http::framing` (see docs/decisions/0010).

mod connect;
mod error;
mod exchange;
mod pool;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub use error::OriginError;
pub use pool::ServerCounts;
pub use request::{
    AddressGuard, BodySender, BrokenBody, Interim, OriginRequest, Place, RequestBody, Upstream,
};
pub use response::{NetworkBody, OriginBody, OriginResponse};

use super::generator;
use super::resolve::Resolver;
use crate::base::clock::Clock;
use crate::metrics::{Cells, Metric};
use exchange::Exchange;
use pool::{PoolState, ServerKey};
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

/// How often idle connections are looked through.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// The records that bear on origins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginOptions {
    /// Wait for one TCP connection (`http.connect_attempts_timeout`).
    pub connect_timeout: Duration,
    /// Connections tried beyond the first (`http.connect_attempts_max_retries`).
    pub connect_retries: usize,
    /// Longest silence (`http.transaction_no_activity_timeout_out`).
    pub no_activity: Duration,
    /// Keep connections (`http.keep_alive_enabled_out`).
    pub keep_alive: bool,
    /// Keep and reuse those of requests with bodies (`http.keep_alive_post_out`).
    pub keep_alive_post: bool,
    /// How long one may be idle (`http.keep_alive_no_activity_timeout_out`).
    pub idle_timeout: Duration,
    /// Connections to one server over all threads, 0 for any number
    /// (`http.per_server.connection.max`).
    pub per_server_max: usize,
}

impl Default for OriginOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(30),
            connect_retries: 3,
            no_activity: Duration::from_secs(30),
            keep_alive: true,
            keep_alive_post: true,
            idle_timeout: Duration::from_secs(120),
            per_server_max: 0,
        }
    }
}

/// One thread's way to the origins. Cloning it shares it.
#[derive(Clone, Debug)]
pub struct OriginPool {
    state: Rc<PoolState>,
    resolver: Rc<Resolver>,
    options: Rc<RefCell<Rc<OriginOptions>>>,
}

/// What a thread's pool shares with the rest of the program.
pub struct PoolParts {
    /// Connections over all threads.
    pub counts: Arc<ServerCounts>,
    /// The thread's counters.
    pub cells: Arc<Cells>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl OriginPool {
    /// A pool without connections. Its idle ones are looked through by a local
    /// task, so it must be made inside a `LocalSet`.
    #[must_use]
    pub fn new(options: OriginOptions, resolver: Resolver, parts: PoolParts) -> Self {
        let state = PoolState::new(parts.counts, parts.cells, parts.clock);
        let pool = Self {
            state: Rc::new(state),
            resolver: Rc::new(resolver),
            options: Rc::new(RefCell::new(Rc::new(options))),
        };
        let sweeper = sweep(Rc::downgrade(&pool.state), Rc::clone(&pool.options));
        tokio::task::spawn_local(sweeper);
        pool
    }

    /// Options for the requests from now on.
    pub fn configure(&self, options: OriginOptions) {
        if **self.options.borrow() != options {
            *self.options.borrow_mut() = Rc::new(options);
        }
    }

    /// Sends a request and waits for the head of its final response.
    ///
    /// A request without a body is sent again on a new connection when a kept
    /// one turns out to be closed: always if nothing of it was sent, else only
    /// with an idempotent method (RFC 9110 9.2.2).
    ///
    /// # Errors
    /// [`OriginError`]; nothing of a response has come then.
    pub async fn send(&self, request: OriginRequest) -> Result<OriginResponse, OriginError> {
        self.state.cells.add(Metric::OutgoingRequests, 1);
        match &request.upstream.place {
            Place::Generator => Ok(generator::answer(&request, self.state.clock.wall()).await),
            Place::Server { scheme, host, port } if *scheme == "http" => {
                let server = (host.clone(), *port);
                self.send_to(server, request).await
            }
            Place::Server { scheme, .. } => Err(OriginError::Scheme((*scheme).to_owned())),
        }
    }

    async fn send_to(
        &self,
        server: ServerKey,
        request: OriginRequest,
    ) -> Result<OriginResponse, OriginError> {
        let options = Rc::clone(&self.options.borrow());
        let reuse = options.keep_alive && (request.body.is_empty() || options.keep_alive_post);
        let exchange = Exchange {
            pool: self,
            options: &options,
            server,
            reuse,
        };
        exchange.run(request).await
    }
}

async fn sweep(pool: Weak<PoolState>, options: Rc<RefCell<Rc<OriginOptions>>>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        let Some(pool) = pool.upgrade() else { return };
        let options = Rc::clone(&options.borrow());
        pool.sweep(&options);
    }
}
