//! Requests to origins: pooled connections of HTTP/1, and of HTTP/2 that
//! requests share, one pool a thread.
//!
//! hyper carries the messages of HTTP/1, h2 those of HTTP/2; what it lets pass and RFC 9112 does not is
//! refused beneath it by `judged`, and above it by `http::framing` (see
//! docs/decisions/0010 and 0017).

mod connect;
mod down;
mod error;
mod exchange;
mod judged;
mod options;
mod pool;
mod request;
mod response;
mod shared;
mod stream;
mod streams;
#[cfg(test)]
mod tests;

pub(in crate::proxy) use connect::introduce;
pub use error::OriginError;
pub use options::OriginOptions;
pub use pool::ServerCounts;
pub use request::{
    AddressGuard, BodySender, BrokenBody, Interim, OriginRequest, Place, RequestBody, Upstream,
};
pub use response::{NetworkBody, OriginBody, OriginResponse, Switched};
pub use stream::OriginStream;
pub use streams::StreamBody;

use super::generator;
use super::resolve::{NameSources, ResolveError, Resolver};
use crate::base::clock::Clock;
use crate::metrics::{Cells, Metric};
use connect::Dial;
use exchange::{Exchange, request_bytes, response_bytes};
use pool::{PoolState, ServerKey};
use response::Limits;
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// How often idle connections are looked through.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// Names whose addresses are remembered; one more, and all are forgotten.
const JUDGED_MAX: usize = 4096;

/// One thread's way to the origins. Cloning it shares it.
#[derive(Clone, Debug)]
pub struct OriginPool {
    state: Rc<PoolState>,
    resolver: Rc<RefCell<Rc<Resolver>>>,
    options: Rc<RefCell<Arc<OriginOptions>>>,
    /// Addresses that servers of forwarded requests had last, by name.
    judged: Rc<RefCell<HashMap<Arc<str>, Vec<IpAddr>>>>,
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
    pub fn new(options: Arc<OriginOptions>, resolver: Resolver, parts: PoolParts) -> Self {
        let state = PoolState::new(parts.counts, parts.cells, parts.clock);
        let pool = Self {
            state: Rc::new(state),
            resolver: Rc::new(RefCell::new(Rc::new(resolver))),
            options: Rc::new(RefCell::new(options)),
            judged: Rc::default(),
        };
        let sweeper = sweep(Rc::downgrade(&pool.state), Rc::clone(&pool.options));
        tokio::task::spawn_local(sweeper);
        pool
    }

    /// Options and name sources for the requests from now on.
    pub fn configure(&self, options: &Arc<OriginOptions>, names: &Arc<NameSources>) {
        *self.options.borrow_mut() = Arc::clone(options);
        let resolver = self.resolver();
        if resolver.sources() != names {
            *self.resolver.borrow_mut() = Rc::new(resolver.by(Arc::clone(names)));
        }
    }

    fn resolver(&self) -> Rc<Resolver> {
        Rc::clone(&self.resolver.borrow())
    }

    /// A connection of one's own, for a tunnel: never pooled, its address
    /// judged by `guard`.
    ///
    /// # Errors
    /// [`OriginError`] when there is none.
    pub async fn connect(
        &self,
        host: &str,
        port: u16,
        guard: Option<&AddressGuard>,
    ) -> Result<TcpStream, OriginError> {
        let options = Arc::clone(&self.options.borrow());
        let dial = Dial {
            pool: &self.state,
            resolver: &self.resolver(),
            options: &options,
            server: &ServerKey::plain(host.into(), port),
            guard,
        };
        dial.stream().await
    }

    /// Judges the server of a forwarded request by its addresses, as a
    /// connection to it would: to be asked before anything stored answers.
    ///
    /// # Errors
    /// [`OriginError::Refused`] when the policy lets none through, and
    /// [`OriginError::Dns`] when there is none to judge: DNS has no answer, and
    /// had none before.
    pub async fn judge(&self, upstream: &Upstream) -> Result<(), OriginError> {
        let (Some(guard), Place::Server { host, port, .. }) = (&upstream.guard, &upstream.place)
        else {
            return Ok(());
        };
        let options = Arc::clone(&self.options.borrow());
        let dial = Dial {
            pool: &self.state,
            resolver: &self.resolver(),
            options: &options,
            server: &ServerKey::plain(Arc::clone(host), *port),
            guard: Some(guard),
        };
        let found = dial.resolver.addresses(host).await;
        let addresses = self.last_known(host, found)?;
        dial.allowed(&addresses).map(drop)
    }

    /// What DNS says, or said when it last had an answer.
    fn last_known(
        &self,
        host: &Arc<str>,
        found: Result<Vec<IpAddr>, ResolveError>,
    ) -> Result<Vec<IpAddr>, ResolveError> {
        let mut judged = self.judged.borrow_mut();
        let addresses = match found {
            Ok(addresses) => addresses,
            Err(error) => return judged.get(host).cloned().ok_or(error),
        };
        if judged.len() >= JUDGED_MAX && !judged.contains_key(host) {
            judged.clear();
        }
        judged.insert(Arc::clone(host), addresses.clone());
        Ok(addresses)
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
            Place::Generator => Ok(self.generate(&request).await),
            Place::Server { scheme, host, port } => {
                let ruled = request.upstream.options.clone();
                let options = ruled.unwrap_or_else(|| Arc::clone(&self.options.borrow()));
                let server = ServerKey {
                    knows_h2: options.prior_knowledge && *scheme == "http",
                    tls: security((scheme, host), &options)?,
                    ..ServerKey::plain(host.clone(), *port)
                };
                self.send_to(server, request, &options).await
            }
        }
    }

    /// The generator's answer, counted as any origin's.
    async fn generate(&self, request: &OriginRequest) -> OriginResponse {
        let cells = &self.state.cells;
        let asked = request_bytes(&request.method, &request.upstream, &request.headers);
        cells.add(Metric::OriginRequestHeadBytes, asked);
        let response = generator::answer(request, self.state.clock.wall(), cells).await;
        cells.add(Metric::IncomingResponses, 1);
        let bytes = response_bytes(response.status, None, &response.headers);
        cells.add(Metric::OriginResponseHeadBytes, bytes);
        if let OriginBody::Whole(body) = &response.body {
            let bytes = u64::try_from(body.len()).unwrap_or(u64::MAX);
            cells.add(Metric::OriginResponseBodyBytes, bytes);
        }
        response
    }

    async fn send_to(
        &self,
        server: ServerKey,
        request: OriginRequest,
        options: &OriginOptions,
    ) -> Result<OriginResponse, OriginError> {
        let reuse = options.keep_alive
            && request.upgrade.is_none()
            && request.upstream.introduction.is_none()
            && (request.body.is_empty() || options.keep_alive_post);
        let exchange = Exchange {
            pool: self,
            options,
            server,
            reuse,
            limits: limits(options),
        };
        // Boxed: a transaction is deep enough without what a connection takes.
        Box::pin(exchange.run(request)).await
    }
}

/// What a connection of the scheme to that host is secured by.
fn security(
    (scheme, host): (&str, &str),
    options: &OriginOptions,
) -> Result<Option<u64>, OriginError> {
    let refused = || OriginError::Scheme(scheme.to_owned());
    match scheme {
        "http" => Ok(None),
        "https" => {
            let tls = options.tls.as_ref().ok_or_else(refused)?;
            Ok(Some(tls.identity(host)))
        }
        _ => Err(refused()),
    }
}

/// The bounds of an exchange that begins now.
fn limits(options: &OriginOptions) -> Limits {
    let deadline = |given| (Instant::now() + given, given);
    Limits {
        no_activity: options.no_activity,
        deadline: options.active.map(deadline),
    }
}

async fn sweep(pool: Weak<PoolState>, options: Rc<RefCell<Arc<OriginOptions>>>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        let Some(pool) = pool.upgrade() else { return };
        let options = Arc::clone(&options.borrow());
        pool.sweep(&options);
    }
}
