//! Requests that no cache may answer, passed on as they are.

use super::cache_status::{CacheStatus, Forwarded};
use super::client::{BodyError, ClientRead, ClientWrite};
use super::context::WorkerContext;
use super::key::{key_by, keyed_url};
use super::origin::{
    self, BodySender, BrokenBody, Interim, OriginBody, OriginError, OriginRequest, OriginResponse,
};
use super::outcome::{Ended, Outcome};
use super::relay::{self, Account, Framed};
use super::routed::Routed;
use super::tunnel;
use super::via::Told;
use crate::cache::CacheKey;
use crate::http::forwarding;
use crate::http::framing::BodyFraming;
use crate::http::invalidate;
use crate::http::vary::normalize_accept_encoding;
use crate::metrics::{Cells, Metric};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, Method};
use tokio::sync::mpsc;

/// Interim responses that may wait for the client.
pub(super) const INTERIM_QUEUE: usize = 8;

/// Why a request is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passing {
    /// What the transaction ends in if all goes well.
    pub outcome: Outcome,
    /// What Cache-Status says.
    pub why: Forwarded,
}

impl Passing {
    /// The cache is off, or not for such requests.
    pub const OFF: Self = Self {
        outcome: Outcome::MissCacheOff,
        why: Forwarded::Bypass,
    };
    /// The connection may be switched to another protocol.
    pub const SWITCH: Self = Self {
        outcome: Outcome::MissMethod,
        why: Forwarded::Bypass,
    };
    /// A condition of the request does not hold for what is stored.
    pub const CONDITION: Self = Self {
        outcome: Outcome::MissNoCache,
        why: Forwarded::Request,
    };
    /// The method is not answered from a cache.
    const METHOD: Self = Self {
        outcome: Outcome::MissMethod,
        why: Forwarded::Method,
    };

    /// Whether a fill that is under way would do as well.
    #[must_use]
    pub fn may_follow(&self) -> bool {
        self.outcome != Outcome::MissNoStore
    }
}

/// Passes a request on and its response back; nothing is stored. A response to
/// an unsafe method invalidates what is stored (RFC 9111 4.4).
///
/// If the reply was not started, nothing was sent: the caller answers with the
/// status it ended in.
pub async fn pass<R: ClientRead, W: ClientWrite>(
    ctx: &WorkerContext,
    routed: &Routed,
    body: R,
    reply: &mut W,
) -> Ended {
    pass_as(ctx, routed, body, reply, &Passing::METHOD).await
}

/// As [`pass`], for a reason of the caller's.
pub(super) async fn pass_as<R: ClientRead, W: ClientWrite>(
    ctx: &WorkerContext,
    routed: &Routed,
    mut body: R,
    reply: &mut W,
    passing: &Passing,
) -> Ended {
    let account = Account::new(passing.outcome, relay::route(routed));
    if let Err(error) = body.invite(reply).await {
        return account.client_gone(reply, &error);
    }
    let (request, sender) = request(ctx, routed, passing);
    let mut upload = Box::pin(upload(ctx, routed, &mut body, sender));
    let mut response = match answered(ctx, request, &mut upload, reply).await {
        Some(Ok(response)) => response,
        Some(Err(error)) => return account.origin_failed(reply, &error),
        None => return account.reset(reply),
    };
    invalidate(ctx, routed, &response);
    let status = CacheStatus {
        forwarded: Some(passing.why),
        ..CacheStatus::default()
    };
    let framed = Framed::of(ctx, routed, &mut response, (passing.outcome, status));
    if let OriginBody::Switched(origin) = response.body {
        drop(upload);
        let ends = (body, reply);
        return tunnel::switched((&ctx.cells, routed), &framed, *origin, ends).await;
    }
    let down = relay::relay(reply, &framed, &mut response.body, account);
    let ended = tokio::select! {
        biased;
        // What is left of the request when the response is whole, nobody wants.
        ended = down => Some(ended),
        () = upload => None,
    };
    ended.unwrap_or_else(|| Account::new(passing.outcome, relay::route(routed)).reset(reply))
}

/// A response to an unsafe method makes what is stored of the URL, and of
/// those it names, invalid (RFC 9111 4.4). URLs are compared as keys are made:
/// by the client's Host or by the origin's.
fn invalidate(ctx: &WorkerContext, routed: &Routed, response: &OriginResponse) {
    let Some(cache) = &ctx.shared.cache else {
        return;
    };
    if routed.content.is_some() {
        // By the record that let the cache read it, it changes nothing.
        return;
    }
    let keyed = keyed_url(&routed.key);
    let url = keyed.as_ref().unwrap_or(&routed.url);
    let (method, status) = (&routed.head.method, response.status);
    let urls = invalidate::invalidated(method, url, status, &response.headers);
    // Nor is a fetch that began before good for those who come now.
    let invalidate = |key: &CacheKey| {
        cache.remove(key);
        ctx.shared.fills.detach(key);
    };
    if !urls.is_empty() {
        invalidate(&routed.key);
        ctx.cells.add(Metric::CacheDeletes, 1);
    }
    for named in urls.iter().filter(|named| *named != url) {
        invalidate(&key_by(&routed.snapshot.records, named.as_str()));
    }
}

/// The request as the origin gets it, and the end its body goes into.
fn request(
    ctx: &WorkerContext,
    routed: &Routed,
    passing: &Passing,
) -> (OriginRequest, Option<BodySender>) {
    let told = Told::asking(passing.outcome, passing.why);
    let mut fields = routed.origin_fields(&ctx.shared.identity, told);
    let method = routed.head.method.clone();
    if matches!(method, Method::GET | Method::HEAD) {
        // As a fill asks, so that both get the same representation.
        let rule = routed.policy.normalize_accept_encoding;
        normalize_accept_encoding(&mut fields, rule);
    }
    let mut request = OriginRequest::new(routed.upstream.clone(), method, fields);
    request.upgrade.clone_from(&routed.upgrade);
    if let Some(content) = &routed.content {
        request.body = origin::RequestBody::whole(content.clone());
        return (request, None);
    }
    let length = match routed.head.framing {
        BodyFraming::None => return (request, None),
        BodyFraming::Length(bytes) => Some(bytes),
        BodyFraming::Chunked | BodyFraming::UntilClose => None,
    };
    let (sender, body) = origin::RequestBody::streamed(length);
    request.body = body;
    (request, Some(sender))
}

/// Hands the client's body over, part by part, at the origin's pace. Ends only
/// when the client is gone.
async fn upload<R: ClientRead>(
    ctx: &WorkerContext,
    routed: &Routed,
    body: &mut R,
    sender: Option<BodySender>,
) {
    if let Some(sender) = sender {
        let nominated = forwarding::nominated(&routed.head.headers);
        hand_over(&ctx.cells, body, sender, &nominated).await;
    }
    body.reset().await;
}

/// A body that breaks off, or that the origin wants no more of, is the origin's
/// error to tell.
async fn hand_over<R: ClientRead>(
    cells: &Cells,
    body: &mut R,
    sender: BodySender,
    nominated: &[HeaderName],
) {
    loop {
        match body.next().await {
            Ok(Some(data)) => {
                let bytes = u64::try_from(data.len()).unwrap_or(u64::MAX);
                cells.add(Metric::ClientRequestBodyBytes, bytes);
                let taken = tokio::select! {
                    biased;
                    taken = sender.send(data) => taken,
                    // Nobody wants the answer: the origin is let go.
                    () = body.reset() => false,
                };
                if !taken {
                    return;
                }
            }
            Ok(None) => {
                let trailers = body.trailers();
                return sender
                    .finish(trailers.map(|all| without(all, nominated)))
                    .await;
            }
            Err(error) => return sender.fail(broken(&error)).await,
        }
    }
}

/// Trailers that a Connection of the head does not nominate (RFC 9110 7.6.1).
fn without(mut trailers: HeaderMap, nominated: &[HeaderName]) -> HeaderMap {
    for name in nominated {
        trailers.remove(name);
    }
    trailers
}

pub(super) fn broken(error: &BodyError) -> BrokenBody {
    match error {
        BodyError::Stalled(after) => BrokenBody::Stalled(*after),
        BodyError::Chunk(_) | BodyError::Truncated | BodyError::Io(_) => {
            BrokenBody::Broken(error.to_string())
        }
    }
}

/// Sends an interim response of the origin's to the client.
pub(super) async fn pass_interim<W: ClientWrite>((status, mut fields): Interim, reply: &mut W) {
    forwarding::remove_hop_by_hop(&mut fields);
    // It has no content to tell the length of (RFC 9110 8.6).
    fields.remove(CONTENT_LENGTH);
    // A client that is gone is noticed by the final response.
    drop(reply.interim(status, &fields).await);
}

/// Waits for the answer; interim responses go to the client meanwhile.
pub(super) async fn meanwhile<W: ClientWrite, F: Future>(
    mut interim: mpsc::Receiver<Interim>,
    reply: &mut W,
    answer: F,
) -> F::Output {
    let mut answer = std::pin::pin!(answer);
    loop {
        tokio::select! {
            biased;
            Some(one) = interim.recv() => pass_interim(one, reply).await,
            answer = &mut answer => {
                pass_rest(interim, reply).await;
                return answer;
            }
        }
    }
}

/// What came together with the final response.
async fn pass_rest<W: ClientWrite>(mut interim: mpsc::Receiver<Interim>, reply: &mut W) {
    while let Ok(one) = interim.try_recv() {
        pass_interim(one, reply).await;
    }
}

/// Waits for the head of the final response; interim ones go out meanwhile.
/// `None` when the client is gone before.
async fn answered<W: ClientWrite>(
    ctx: &WorkerContext,
    mut request: OriginRequest,
    upload: &mut (impl Future<Output = ()> + Unpin),
    reply: &mut W,
) -> Option<Result<OriginResponse, OriginError>> {
    let (to, mut interim) = mpsc::channel::<Interim>(INTERIM_QUEUE);
    request.interim = Some(to);
    let mut sent = Box::pin(ctx.origins.send(request));
    loop {
        tokio::select! {
            biased;
            Some(one) = interim.recv() => pass_interim(one, reply).await,
            response = &mut sent => {
                pass_rest(interim, reply).await;
                return Some(response);
            }
            () = &mut *upload => return None,
        }
    }
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
