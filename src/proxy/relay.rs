//! An origin's response on its way to one client, stored or not.

use super::answer::Answer;
use super::cache_status::CacheStatus;
use super::client::{BodyLength, ClientWrite, ReplyError};
use super::context::WorkerContext;
use super::origin::{OriginBody, OriginError, OriginResponse};
use super::outcome::{Ended, Finish, Outcome, Route};
use super::routed::Routed;
use super::via::{Detail, Told};
use crate::config::records::Records;
use crate::http::conditional::{self, Precondition, Validators};
use crate::http::date;
use crate::http::forwarding;
use crate::http::framing::BodyFraming;
use bytes::Bytes;
use http::header::{
    CONTENT_LENGTH, CONTENT_TYPE, DATE, ETAG, HeaderName, HeaderValue, LAST_MODIFIED, SERVER,
    UPGRADE, VIA,
};
use http::{HeaderMap, StatusCode, Version};

/// The field of RFC 9211.
pub(super) const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// What was learnt from a response's head, before its fields were changed.
#[derive(Debug)]
pub(super) struct Framed {
    /// The status.
    pub(super) status: StatusCode,
    /// What a 101 switches to.
    pub(super) protocol: Option<HeaderValue>,
    /// The fields that go to the client.
    pub(super) fields: HeaderMap,
    /// The body's length, as the client is told.
    pub(super) length: BodyLength,
}

impl Framed {
    /// Makes a response's head fit to be passed on: fields of the connection
    /// off, Date, Via and Cache-Status on (RFC 9110 6.6.1 and 7.6, RFC 9211).
    pub(super) fn of(
        ctx: &WorkerContext,
        routed: &Routed,
        response: &mut OriginResponse,
        (outcome, status): (Outcome, CacheStatus),
    ) -> Self {
        let mut fields = std::mem::take(&mut response.headers);
        let length = client_length(response.framing, &fields);
        let protocol = fields.get(UPGRADE).cloned();
        forwarding::remove_hop_by_hop(&mut fields);
        fields.remove(CONTENT_LENGTH);
        routed.rewrite_urls(&mut fields);
        add_server(&routed.snapshot.records, &mut fields);
        forwarding::ensure_date(&mut fields, response.response_time);
        let told = Told {
            outcome,
            status,
            answered: Some(response.status),
        };
        add_via(ctx, routed, (response.version, told), &mut fields);
        add_cache_status(routed, &status, &mut fields);
        Self {
            status: response.status,
            protocol: protocol.filter(|_| response.status == StatusCode::SWITCHING_PROTOCOLS),
            fields,
            length,
        }
    }
}

/// How the cache came to this response, if records allow it.
fn add_cache_status(routed: &Routed, status: &CacheStatus, fields: &mut HeaderMap) {
    if !routed.tells_cache_status() {
        return;
    }
    if let Ok(value) = HeaderValue::from_str(&status.to_string()) {
        fields.append(CACHE_STATUS, value);
    }
}

/// Whether a response names us as its Server (`http.response_server_enabled`):
/// 1 in place of the origin, 2 where the origin has not named itself.
pub(super) fn names_us(records: &Records, has_server: impl FnOnce() -> bool) -> bool {
    match records.http_response_server_enabled {
        0 => false,
        2 => !has_server(),
        _ => true,
    }
}

fn add_server(records: &Records, fields: &mut HeaderMap) {
    if !names_us(records, || fields.contains_key(SERVER)) {
        return;
    }
    if let Ok(name) = HeaderValue::from_str(&records.http_response_server_str) {
        fields.insert(SERVER, name);
    }
}

/// Our member of Via, unless `insert_response_via_str` is 0.
fn add_via(
    ctx: &WorkerContext,
    routed: &Routed,
    (version, told): (Version, Told),
    fields: &mut HeaderMap,
) {
    let level = routed.snapshot.records.http_insert_response_via_str;
    if level != 0 {
        let detail = Detail::new(level, routed, told);
        let member = ctx.shared.identity.response_member(version, detail);
        forwarding::append_member(fields, &VIA, &member.to_string());
    }
}

/// A response without a body may still tell the length of the one that a GET
/// would have had (RFC 9110 9.3.2).
fn client_length(framing: BodyFraming, fields: &HeaderMap) -> BodyLength {
    let told = || {
        let text = fields.get(CONTENT_LENGTH)?.to_str().ok()?;
        text.trim().parse().ok()
    };
    match framing {
        BodyFraming::Length(bytes) => BodyLength::Known(bytes),
        BodyFraming::Chunked | BodyFraming::UntilClose => BodyLength::Unknown,
        BodyFraming::None => told().map_or(BodyLength::Unknown, BodyLength::Known),
    }
}

/// What a transaction comes to, as it is learnt while it runs.
#[derive(Debug)]
pub(super) struct Account {
    ended: Ended,
}

impl Account {
    /// A transaction that will end in `outcome` if nothing goes wrong.
    pub(super) fn new(outcome: Outcome, route: Route) -> Self {
        let mut ended = Ended::new(outcome, 0);
        ended.route = route;
        Self { ended }
    }

    /// A head goes out.
    pub(super) fn head(&mut self, status: StatusCode, fields: &HeaderMap) {
        self.ended.status = status.as_u16();
        let kind = fields.get(CONTENT_TYPE);
        self.ended.content_type = kind.map(|value| Bytes::copy_from_slice(value.as_bytes()));
    }

    /// A stored head goes out.
    pub(super) fn stored_head(&mut self, status: StatusCode, content_type: Option<Bytes>) {
        self.ended.status = status.as_u16();
        self.ended.content_type = content_type;
    }

    /// Another status than the stored one.
    pub(super) fn status(&mut self, status: StatusCode) {
        self.ended.status = status.as_u16();
    }

    /// The client's own copy is current: a fresh hit is told apart.
    pub(super) fn not_modified(&mut self) {
        let fresh = matches!(
            self.ended.outcome,
            Outcome::HitRam | Outcome::HitFast | Outcome::HitCapacity
        );
        if fresh {
            self.ended.outcome = Outcome::HitNotModified;
        }
    }

    /// The response is whole.
    pub(super) fn whole<W: ClientWrite>(mut self, reply: &W) -> Ended {
        self.measure(reply);
        self.ended
    }

    /// The client went away, or stalls.
    pub(super) fn client_gone<W: ClientWrite>(mut self, reply: &W, error: &ReplyError) -> Ended {
        self.ended.outcome = Outcome::ClientAbort;
        self.ended.finish = Finish::Cut;
        self.ended.has_stalled = matches!(error, ReplyError::Stalled(_));
        self.ended.detail = Some(error.to_string().into());
        self.measure(reply);
        self.ended
    }

    /// The client's connection was reset while its response was being had.
    pub(super) fn reset<W: ClientWrite>(self, reply: &W) -> Ended {
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        self.client_gone(reply, &ReplyError::Io(reset))
    }

    /// A precondition of the request does not hold (RFC 9110 13.2.2).
    pub(super) fn precondition_failed<W: ClientWrite>(self, reply: &W) -> Ended {
        let outcome = self.ended.outcome;
        let detail = "a precondition of the request does not hold";
        self.failed(reply, outcome, Answer::PreconditionFailed, detail)
    }

    /// The origin failed: answered by the caller while nothing was sent, else
    /// cut off.
    pub(super) fn origin_failed<W: ClientWrite>(self, reply: &W, error: &OriginError) -> Ended {
        self.failed(reply, error.outcome(), error.answer(), &error.to_string())
    }

    /// The response can't be had, or not to its end: `answer` is the caller's to
    /// send while nothing was sent.
    pub(super) fn failed<W: ClientWrite>(
        mut self,
        reply: &W,
        outcome: Outcome,
        answer: Answer,
        detail: &str,
    ) -> Ended {
        self.ended.outcome = outcome;
        self.ended.detail = Some(detail.into());
        if reply.is_started() {
            self.ended.finish = Finish::Cut;
        } else {
            self.ended.status = answer.code();
            self.ended.unsent = Some(answer);
        }
        self.measure(reply);
        self.ended
    }

    fn measure<W: ClientWrite>(&mut self, reply: &W) {
        let sent = reply.sent();
        self.ended.head_bytes = sent.head;
        self.ended.body_bytes = sent.body;
    }
}

/// Sends a response to the client as it comes: unshared, unstored.
pub(super) async fn relay<W: ClientWrite>(
    reply: &mut W,
    framed: &Framed,
    body: &mut OriginBody,
    mut account: Account,
) -> Ended {
    account.head(framed.status, &framed.fields);
    reply.begin(framed.status);
    reply.fields(&framed.fields);
    if let Err(error) = reply.start(b"", framed.length).await {
        return account.client_gone(reply, &error);
    }
    loop {
        match body.next().await {
            // The body of a GET that was asked in a HEAD's place is nobody's.
            Ok(Some(_)) if reply.is_head() => break,
            Ok(Some(data)) => {
                if let Err(error) = reply.chunk(data).await {
                    return account.client_gone(reply, &error);
                }
            }
            Ok(None) => break,
            Err(error) => return account.origin_failed(reply, &error),
        }
    }
    match reply.finish(body.trailers().as_ref()).await {
        Ok(()) => account.whole(reply),
        Err(error) => account.client_gone(reply, &error),
    }
}

/// Whom a request is asked of, for the log.
pub(super) fn route(routed: &Routed) -> Route {
    Route::Direct(routed.upstream.place.name().to_owned())
}

/// What the client's preconditions come to for a response that is only passed
/// on (RFC 9110 13.2).
pub(super) fn precondition(routed: &Routed, response: &OriginResponse) -> Precondition {
    let request = &routed.head;
    let received = response.response_time;
    let of = |name| date::field(&response.headers, name, received);
    let validators = Validators {
        etag: response.headers.get(ETAG).map(|tag| tag.as_bytes()),
        last_modified: of(&LAST_MODIFIED),
        date: of(&DATE).unwrap_or(received),
    };
    let (method, fields) = (&request.method, &request.headers);
    conditional::evaluate(method, fields, response.status, &validators)
}
