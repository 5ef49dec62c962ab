//! One request, from its head to its account.

use super::access_log::Entry;
use super::answer::{self, Answer};
use super::cached;
use super::client::{ClientRead, ClientWrite, Exchange, RequestError, RequestHead};
use super::context::WorkerContext;
use super::fetch;
use super::life::Stage;
use super::outcome::{Ended, Finish, Outcome, Route};
use super::patience::Patience;
use super::peer::Peer;
use super::relay::Account;
use super::route::{self, Arrival, Step};
use super::routed::Routed;
use super::settings::limit;
use super::snapshot::Snapshot;
use super::tls::Session;
use super::tunnel;
use crate::base::clock::{MonoTime, WallTime};
use crate::http::target::{Target, TargetError};
use crate::metrics::{Cells, Metric};
use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};
use http::{Method, StatusCode, Version};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Carries out a request and accounts for it.
///
/// `patience` is the connection's, for the whole of a transaction.
pub(super) async fn run<R, W>(
    context: &WorkerContext,
    peer: &Peer,
    exchange: Exchange<R, W>,
    patience: &mut Patience,
) where
    R: ClientRead,
    W: ClientWrite,
{
    let snapshot = context.snapshot();
    let Exchange {
        head,
        body,
        mut reply,
    } = exchange;
    let asked = Asked::head(context, peer, &head);
    if context.shared.life.stage() != Stage::Serving {
        reply.close_after();
    }
    if head.method == Method::CONNECT {
        // Whatever follows was meant for the tunnel: no request of this client.
        reply.close_after();
    }
    let step = route::route(head, &snapshot, &asked.arrival(context, peer));
    let mut transaction = Transaction {
        context,
        snapshot: &snapshot,
        patience,
    };
    let ended = transaction.carry_out(step, body, &mut reply).await;
    asked.account(context, &ended);
}

/// Answers a request that could not be read, if anybody is there.
pub(super) async fn refuse<W: ClientWrite>(
    context: &WorkerContext,
    peer: &Peer,
    mut reply: W,
    error: &RequestError,
) {
    tracing::debug!(%error, "request refused");
    if matches!(error, RequestError::Target(TargetError::NoHost)) {
        context.cells.add(Metric::MissingHostHdr, 1);
    }
    let Some(status) = error.status() else { return };
    let asked = Asked::nothing(context, peer);
    let snapshot = context.snapshot();
    let answer = Answer::refusing(status);
    let ended = answer::send(answer, &mut reply, &context.voice(&snapshot), &[]).await;
    asked.account(context, &ended);
}

/// What the log tells of a request, kept while the request is carried out.
pub(super) struct Asked {
    wall: WallTime,
    mono: MonoTime,
    client: IpAddr,
    method: Option<Method>,
    url: Option<Arc<str>>,
    is_conditional: bool,
    version: Option<Version>,
    session: Option<Arc<Session>>,
    /// The name asked for over TLS that does not end here.
    name: Option<Box<str>>,
}

impl Asked {
    fn nothing(context: &WorkerContext, peer: &Peer) -> Self {
        context.cells.together(|cells| {
            cells.add(Metric::IncomingRequests, 1);
            cells.add(Metric::InvalidClientRequests, 1);
            cells.add(Metric::CurrentClientTransactions, 1);
        });
        Self {
            wall: context.shared.clock.wall(),
            mono: context.shared.clock.mono(),
            client: peer.ip(),
            method: None,
            url: None,
            is_conditional: false,
            version: None,
            session: peer.session.clone(),
            name: None,
        }
    }

    /// A tunnel that nobody asked for by a request, but by where it was led.
    pub(super) fn tunnel(context: &WorkerContext, peer: &Peer, name: &str) -> Self {
        context.cells.together(|cells| {
            cells.add(Metric::IncomingRequests, 1);
            cells.add(Metric::CurrentClientTransactions, 1);
        });
        Self {
            wall: context.shared.clock.wall(),
            mono: context.shared.clock.mono(),
            client: peer.ip(),
            method: Some(Method::CONNECT),
            url: Some(format!("{name}:{}", peer.local.port()).into()),
            is_conditional: false,
            version: None,
            session: None,
            name: Some(name.into()),
        }
    }

    fn head(context: &WorkerContext, peer: &Peer, head: &RequestHead) -> Self {
        context.cells.together(|cells| {
            cells.add(Metric::IncomingRequests, 1);
            cells.add(Metric::CurrentClientTransactions, 1);
            cells.add(Metric::ClientRequestHeadBytes, head.bytes);
            cells.add(Metric::of_method(head.method.as_str()), 1);
        });
        Self {
            wall: context.shared.clock.wall(),
            mono: context.shared.clock.mono(),
            client: peer.ip(),
            method: Some(head.method.clone()),
            url: Some(shown(&head.target)),
            is_conditional: head.is_conditional(),
            version: Some(head.version),
            session: peer.session.clone(),
            name: None,
        }
    }

    fn arrival<'a>(&self, context: &'a WorkerContext, peer: &'a Peer) -> Arrival<'a> {
        Arrival {
            peer,
            identity: &context.shared.identity,
            own: &context.shared.own,
            mono: self.mono,
        }
    }

    /// Counts what came of it, and writes it down.
    pub(super) fn account(&self, context: &WorkerContext, ended: &Ended) {
        let took = context.shared.clock.mono().since(self.mono);
        context.cells.together(|cells| {
            ended.outcome.count(cells, self.is_conditional);
            cells.add(Metric::ClientStalled, u64::from(ended.has_stalled));
            count_ended(cells, ended.status, took);
            cells.add(Metric::ClientResponseHeadBytes, ended.head_bytes);
            cells.add(Metric::ClientResponseBodyBytes, ended.body_bytes);
            cells.sub(Metric::CurrentClientTransactions, 1);
        });
        let session = self.session.as_deref();
        let agreed = session.and_then(|session| session.name.as_deref());
        context.log.write(&Entry {
            ended,
            begun: self.wall,
            took,
            client: self.client,
            method: self.method.as_ref().map_or("-", Method::as_str),
            url: self.url.as_deref().unwrap_or("-"),
            version: self.version,
            session,
            name: self.name.as_deref().or(agreed),
        });
        if let Some(reason) = ended.detail.as_deref() {
            self.tell(ended, reason, took);
        }
    }

    /// Says in the error log why a client did not get what it asked for, or not
    /// to its end: the transaction's log line has no room for it.
    fn tell(&self, ended: &Ended, reason: &str, took: Duration) {
        tracing::debug!(
            client = %self.client,
            method = self.method.as_ref().map_or("-", Method::as_str),
            url = self.url.as_deref().unwrap_or("-"),
            outcome = ended.outcome.label(),
            status = ended.status,
            is_cut = ended.finish == Finish::Cut,
            head_bytes = ended.head_bytes,
            body_bytes = ended.body_bytes,
            ?took,
            reason,
            "not served whole"
        );
    }
}

/// The URL as the log has it; `host:port` of CONNECT.
fn shown(target: &Target) -> Arc<str> {
    match target {
        Target::Authority(authority) => format!("{}:{}", authority.host, authority.port).into(),
        Target::Origin(url) | Target::Absolute(url) | Target::Asterisk(url) => url.shared_text(),
    }
}

/// What every transaction counts, whatever it came to.
fn count_ended(cells: &Cells, status: u16, took: Duration) {
    let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    cells.add(Metric::TotalTransactionsTime, nanos);
    if status == 0 {
        return;
    }
    cells.add(Metric::of_status_class(status), 1);
    if let Some(metric) = Metric::of_status(status) {
        cells.add(metric, 1);
    }
}

struct Transaction<'a> {
    context: &'a WorkerContext,
    snapshot: &'a Arc<Snapshot>,
    patience: &'a mut Patience,
}

impl Transaction<'_> {
    async fn carry_out<R: ClientRead, W: ClientWrite>(
        &mut self,
        step: Step,
        body: R,
        reply: &mut W,
    ) -> Ended {
        if !matches!(step, Step::Carry(_) | Step::Push(_)) && !body.is_short() {
            reply.close_after();
        }
        match step {
            Step::Carry(mut routed) => self.pass(&mut routed, body, reply).await,
            Step::Tunnel(upstream) => {
                Box::pin(tunnel::run(
                    self.context,
                    self.snapshot,
                    &upstream,
                    body,
                    reply,
                ))
                .await
            }
            Step::Answer(answer) => {
                if matches!(answer, Answer::HostRequired) {
                    self.context.cells.add(Metric::MissingHostHdr, 1);
                }
                self.answer(answer, reply).await
            }
            Step::Redirect(status, location) => {
                let voice = self.context.voice(self.snapshot);
                answer::redirect(status, &location, reply, &voice).await
            }
            Step::Echo(head) => {
                let voice = self.context.voice(self.snapshot);
                answer::echo(echoed(&head), reply, &voice).await
            }
            Step::Purge(routed) => {
                let answer = self.purge(&routed).await;
                self.answer(answer, reply).await
            }
            Step::Push(routed) => Box::pin(self.push(&routed, body, reply)).await,
        }
    }

    /// What ended before a head was sent is answered here, unless its client is
    /// gone.
    async fn pass<R: ClientRead, W: ClientWrite>(
        &mut self,
        routed: &mut Routed,
        body: R,
        reply: &mut W,
    ) -> Ended {
        let active = self.longest(routed);
        let in_time = {
            let fetched = pin!(fetch(self.context, routed, body, reply));
            self.patience.wait(active, fetched).await
        };
        let Some(ended) = in_time else {
            return overdue(reply, active);
        };
        let Some(answer) = ended.unsent else {
            return ended;
        };
        if routed.head.has_body() {
            // How much of it was read is not known any more.
            reply.close_after();
        }
        let told = self.answer(answer, reply).await;
        Ended {
            outcome: ended.outcome,
            route: ended.route,
            detail: ended.detail,
            ..told
        }
    }

    /// How long a transaction may take; one that may become a tunnel has the
    /// tunnel's time.
    fn longest(&self, routed: &Routed) -> Duration {
        let records = &routed.snapshot.records;
        limit(match routed.upgrade {
            None => records.http_transaction_active_timeout_in,
            Some(_) => records.websocket_active_timeout,
        })
    }

    async fn answer<W: ClientWrite>(&self, answer: Answer, reply: &mut W) -> Ended {
        let voice = self.context.voice(self.snapshot);
        let tells = matches!(answer, Answer::Options | Answer::MethodNotAllowed);
        let allow = [("Allow", ALLOW)];
        let extra: &[(&str, &str)] = if tells { &allow } else { &[] };
        answer::send(answer, reply, &voice, extra).await
    }

    /// What of the body was not wanted, is read past if it is short.
    async fn push<R: ClientRead, W: ClientWrite>(
        &mut self,
        routed: &Routed,
        mut body: R,
        reply: &mut W,
    ) -> Ended {
        if let Err(error) = body.invite(reply).await {
            return Account::new(Outcome::ClientAbort, Route::None).client_gone(reply, &error);
        }
        let active = limit(routed.snapshot.records.http_transaction_active_timeout_in);
        let pushed = {
            let pushed = pin!(cached::push(self.context, routed, &mut body));
            self.patience.wait(active, pushed).await
        };
        if !body.is_short() {
            reply.close_after();
        }
        match pushed {
            None => overdue(reply, active),
            Some(Ok(true)) => self.answer(Answer::Replaced, reply).await,
            Some(Ok(false)) => self.answer(Answer::Pushed, reply).await,
            Some(Err(error)) => {
                tracing::debug!(%error, "pushed in vain");
                let why = error.cache_status();
                let voice = self.context.voice(self.snapshot);
                answer::send(error.answer(), reply, &voice, &[("Cache-Status", &why)]).await
            }
        }
    }

    /// The answer waits until a restart can't bring the object back.
    async fn purge(&self, routed: &Routed) -> Answer {
        let Some(cache) = &self.context.shared.cache else {
            return Answer::NothingToPurge;
        };
        let purged = cache.purge(&routed.key).await;
        self.context.shared.fills.detach(&routed.key);
        match purged {
            Ok(true) => Answer::Purged,
            Ok(false) => Answer::NothingToPurge,
            Err(error) => {
                tracing::error!(%error, key = ?routed.key.text(), "purge failed");
                Answer::Internal
            }
        }
    }
}

/// GET, HEAD and by record POST through the cache, the rest straight to the
/// origin. Futures of
/// what takes long are boxed, so that one of a hit is small.
async fn fetch<R: ClientRead, W: ClientWrite>(
    context: &WorkerContext,
    routed: &mut Routed,
    body: R,
    reply: &mut W,
) -> Ended {
    if cached::is_keyed(routed) {
        return Box::pin(cached::run_with_content(context, routed, body, reply)).await;
    }
    if matches!(routed.head.method, Method::GET | Method::HEAD) {
        return cached::run(context, routed, body, reply).await;
    }
    Box::pin(fetch::pass(context, routed, body, reply)).await
}

/// A transaction that takes longer than it may is cut off, whatever was sent.
fn overdue<W: ClientWrite>(reply: &W, active: Duration) -> Ended {
    let sent = reply.sent();
    let mut ended = if reply.is_switched() {
        Ended::new(Outcome::Tunnel, StatusCode::SWITCHING_PROTOCOLS.as_u16())
    } else {
        Ended::new(Outcome::ClientAbort, 0)
    };
    ended.detail = Some(format!("not done after {active:?}").into());
    ended.finish = Finish::Cut;
    ended.head_bytes = sent.head;
    ended.body_bytes = sent.body;
    ended
}

/// The methods this proxy itself knows something about.
const ALLOW: &str = "GET, HEAD, POST, PUT, DELETE, OPTIONS, TRACE, CONNECT, PURGE, PUSH";

/// RFC 9110 9.3.8: the request as received, less what a script must not learn.
fn echoed(head: &RequestHead) -> Bytes {
    let secret = [COOKIE, AUTHORIZATION, PROXY_AUTHORIZATION];
    let url = head.url().map_or("*", |url| url.path_and_query());
    let mut text = format!("{} {url} {:?}\r\n", head.method, head.version).into_bytes();
    for (name, value) in head
        .headers
        .iter()
        .filter(|(name, _)| !secret.contains(name))
    {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.into()
}
