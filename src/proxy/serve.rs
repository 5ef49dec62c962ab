//! Serving a stored response, or one that is being filled, to one client.

use super::cache_status::CacheStatus;
use super::client::{BodyLength, ClientWrite, ReplyError};
use super::context::WorkerContext;
use super::outcome::{Ended, Outcome, Route};
use super::relay::{self, Account};
use super::resume::{Resume, Tail, Wanted};
use super::routed::Routed;
use super::source::{Source, SourceError};
use super::via::{Detail, Told};
use crate::base::prng::system_u128;
use crate::http::cache_control::RequestDirectives;
use crate::http::conditional::{self, NOT_MODIFIED_FIELDS, Precondition};
use crate::http::multipart::Multipart;
use crate::http::range::{self, Part, Representation};
use crate::http::stored::StoredHead;
use crate::http::vary::normalize_accept_encoding;
use crate::http::wire;
use crate::metrics::Metric;
use bytes::Bytes;
use http::header::SERVER;
use http::{HeaderMap, StatusCode};
use memchr::memchr;
use std::time::Duration;

/// How long a head waits for the first piece of a body under way, so that both
/// go out at once.
const FIRST_WAIT: Duration = Duration::from_millis(2);

/// What is served.
pub(super) struct Serving<'a> {
    /// The head.
    pub(super) head: &'a StoredHead,
    /// Fields that are not stored, for this client only.
    pub(super) own: HeaderMap,
    /// The body.
    pub(super) source: Source,
    /// The body's length in bytes, when it is known yet.
    pub(super) length: Option<u64>,
    /// What the transaction ends in if all goes well.
    pub(super) outcome: Outcome,
    /// Whom it was asked of.
    pub(super) route: Route,
    /// How the cache came to it.
    pub(super) status: CacheStatus,
}

impl Serving<'_> {
    /// What Via tells of it, once the client is `answered`.
    const fn told(&self, answered: Option<StatusCode>) -> Told {
        Told {
            outcome: self.outcome,
            status: self.status,
            answered,
        }
    }

    /// Whether this request fetched it, all of it, just now.
    fn is_own_fetch(&self) -> bool {
        self.route != Route::None && self.status.forwarded_status.is_none()
    }
}

/// One client to serve.
pub(super) struct Server<'a, W> {
    pub(super) ctx: &'a WorkerContext,
    pub(super) routed: &'a Routed,
    pub(super) reply: &'a mut W,
    /// A part of what was served is not in the cache any more.
    pub(super) gone: bool,
}

impl<W: ClientWrite> Server<'_, W> {
    /// Serves: the client's preconditions and range are answered from what is
    /// held (RFC 9110 13.2 and 14.2).
    ///
    /// # Errors
    /// The body can't be read, and nothing was sent: a miss.
    pub(super) async fn serve(&mut self, serving: Serving<'_>) -> Result<Ended, SourceError> {
        let mut account = Account::new(serving.outcome, serving.route.clone());
        let lines = self.lines(serving.head);
        account.stored_head(serving.head.status(), content_type(&lines));
        match precondition(self.routed, serving.head) {
            Precondition::Pass => self.content(serving, lines, account).await,
            Precondition::NotModified => Ok(self.not_modified(&serving, account).await),
            Precondition::Failed => Ok(account.precondition_failed(self.reply)),
        }
    }

    /// The stored field lines, less a Server that ours takes the place of, and
    /// with the client's names for the origin's URLs (reverse_map).
    fn lines(&self, head: &StoredHead) -> Bytes {
        let is_named = self.is_named(head);
        if !self.routed.has_urls(&head.field_lines()) {
            return if is_named {
                head.field_lines_but_server()
            } else {
                head.field_lines()
            };
        }
        let mut fields = head.header_map();
        self.routed.rewrite_urls(&mut fields);
        if is_named {
            fields.remove(SERVER);
        }
        let mut lines = Vec::new();
        for (name, value) in &fields {
            wire::put_field(&mut lines, name, value.as_bytes());
        }
        lines.into()
    }

    /// Whether the response names us as its Server.
    fn is_named(&self, head: &StoredHead) -> bool {
        relay::names_us(&self.routed.snapshot.records, || head.has_server())
    }

    async fn content(
        &mut self,
        serving: Serving<'_>,
        lines: Bytes,
        account: Account,
    ) -> Result<Ended, SourceError> {
        match self.range(&serving) {
            range::Answer::Whole => self.whole(serving, lines, account).await,
            range::Answer::Part(part) => self.part(serving, lines, part, account).await,
            range::Answer::Parts(parts) => self.parts(serving, lines, parts, account).await,
            range::Answer::NotSatisfiable => Ok(self.unsatisfiable(&serving, account).await),
        }
    }

    /// A range counts when the length is known.
    fn range(&self, serving: &Serving<'_>) -> range::Answer {
        match serving.length {
            Some(length) => range_of(self.routed, serving.head, length),
            None => range::Answer::Whole,
        }
    }

    async fn whole(
        &mut self,
        mut serving: Serving<'_>,
        lines: Bytes,
        account: Account,
    ) -> Result<Ended, SourceError> {
        if let Some(chunks) = serving.source.whole() {
            self.begin(serving.head.status(), &serving);
            let sent = self.reply.send(&lines, chunks).await;
            return Ok(self.ended(sent, account));
        }
        let first = self.first(&mut serving.source).await?;
        self.begin(serving.head.status(), &serving);
        let length = serving
            .length
            .map_or(BodyLength::Unknown, BodyLength::Known);
        Ok(self.stream(serving, first, (&lines, length), account).await)
    }

    async fn part(
        &mut self,
        mut serving: Serving<'_>,
        lines: Bytes,
        part: Part,
        mut account: Account,
    ) -> Result<Ended, SourceError> {
        serving.source.seek(part.first..part.last + 1);
        let first = self.first(&mut serving.source).await?;
        account.status(StatusCode::PARTIAL_CONTENT);
        self.begin(StatusCode::PARTIAL_CONTENT, &serving);
        let range = part.content_range();
        self.reply.field("Content-Range", range.as_bytes());
        let framing = (&*lines, BodyLength::Known(part.len()));
        Ok(self.stream(serving, first, framing, account).await)
    }

    /// Several parts in one body (RFC 9110 15.3.7.2).
    async fn parts(
        &mut self,
        mut serving: Serving<'_>,
        lines: Bytes,
        mut parts: Vec<Part>,
        mut account: Account,
    ) -> Result<Ended, SourceError> {
        if serving.source.only_goes_on() {
            parts.sort_by_key(|part| part.first);
        }
        let (lines, content_type) = without_content_type(&lines);
        let multipart = Multipart::new(boundary(), content_type, parts);
        let mut pieces = multipart.pieces().peekable();
        if let Some((_, range)) = pieces.peek() {
            serving.source.seek(range.clone());
        }
        let mut first = self.first(&mut serving.source).await?;
        account.status(StatusCode::PARTIAL_CONTENT);
        self.begin(StatusCode::PARTIAL_CONTENT, &serving);
        let media_type = multipart.media_type();
        self.reply.field("Content-Type", media_type.as_bytes());
        let length = BodyLength::Known(multipart.len());
        if let Err(error) = self.reply.start(&lines, length).await {
            return Ok(account.client_gone(self.reply, &error));
        }
        for (index, (before, range)) in pieces.enumerate() {
            if index > 0 {
                serving.source.seek(range);
            }
            let poured = match self.reply.chunk(before.into()).await {
                Ok(()) => self.pour(&mut serving, first.take()).await,
                Err(error) => Err(Broken::Client(error)),
            };
            if let Err(broken) = poured {
                return Ok(self.broken(&broken, account));
            }
        }
        let ended = self.reply.chunk(multipart.end().into()).await;
        let finished = match ended {
            Ok(()) => self.reply.finish(None).await,
            Err(error) => Err(error),
        };
        Ok(self.ended(finished, account))
    }

    /// The first piece, so that a copy that can't be read is noticed before
    /// anything is said. None for HEAD, nor of a body that is still to come:
    /// its head need not wait for it.
    async fn first(&self, source: &mut Source) -> Result<Option<Bytes>, SourceError> {
        if self.reply.is_head() {
            return Ok(None);
        }
        if !source.is_under_way() {
            return source.next().await;
        }
        let first = tokio::time::timeout(FIRST_WAIT, source.next()).await;
        first.unwrap_or(Ok(None))
    }

    async fn stream(
        &mut self,
        mut serving: Serving<'_>,
        first: Option<Bytes>,
        (lines, length): (&[u8], BodyLength),
        account: Account,
    ) -> Ended {
        if let Err(error) = self.reply.start(lines, length).await {
            return account.client_gone(self.reply, &error);
        }
        if let Err(broken) = self.pour(&mut serving, first).await {
            return self.broken(&broken, account);
        }
        let finished = self.reply.finish(None).await;
        self.ended(finished, account)
    }

    /// Sends what is wanted of the body, of which `first` is at hand.
    async fn pour(
        &mut self,
        serving: &mut Serving<'_>,
        mut first: Option<Bytes>,
    ) -> Result<(), Broken> {
        loop {
            let next = match first.take() {
                Some(data) => Some(data),
                None => self.next(serving).await.map_err(Broken::Source)?,
            };
            let Some(data) = next else {
                return Ok(());
            };
            self.reply.chunk(data).await.map_err(Broken::Client)?;
        }
    }

    fn broken(&mut self, broken: &Broken, account: Account) -> Ended {
        match broken {
            Broken::Client(error) => account.client_gone(self.reply, error),
            Broken::Source(error) => self.cut(error, account),
        }
    }

    /// Nobody may take the part for the whole.
    fn cut(&mut self, error: &SourceError, account: Account) -> Ended {
        self.ctx.cells.add(Metric::FillCut, 1);
        account.failed(self.reply, error.outcome, error.answer, &error.detail)
    }

    /// The next piece; none for HEAD. What the cache has lost, the origin is asked for.
    async fn next(&mut self, serving: &mut Serving<'_>) -> Result<Option<Bytes>, SourceError> {
        if self.reply.is_head() {
            return Ok(None);
        }
        let error = match serving.source.next().await {
            Err(error) if error.is_lost => error,
            next => return next,
        };
        self.gone |= error.is_gone;
        self.ctx.cells.add(Metric::CacheReadErrors, 1);
        let tail = self.rest(serving).await.ok_or(error)?;
        self.ctx.cells.add(Metric::FillResumed, 1);
        serving.source.go_on(tail);
        serving.source.next().await
    }

    async fn rest(&self, serving: &Serving<'_>) -> Option<Tail> {
        let asked = RequestDirectives::of(&self.routed.head.headers);
        if self.routed.content.is_some() || asked.only_if_cached {
            // Only a GET can be asked for a part.
            return None;
        }
        let identity = &self.ctx.shared.identity;
        let mut fields = self.routed.origin_fields(identity, serving.told(None));
        let rule = self.routed.policy.normalize_accept_encoding;
        normalize_accept_encoding(&mut fields, rule);
        let resume = Resume {
            origins: &self.ctx.origins,
            upstream: &self.routed.upstream,
            fields,
            policy: &self.routed.policy,
        };
        let wanted = Wanted {
            head: serving.head,
            length: serving.length,
            bytes: serving.source.left(),
        };
        resume.ask(&wanted).await.ok()
    }

    fn ended(&self, sent: Result<(), ReplyError>, account: Account) -> Ended {
        match sent {
            Ok(()) => account.whole(self.reply),
            Err(error) => account.client_gone(self.reply, &error),
        }
    }

    /// Begins a head with the fields that each answer says anew.
    fn begin(&mut self, status: StatusCode, serving: &Serving<'_>) {
        let records = &self.routed.snapshot.records;
        self.reply.begin(status);
        if self.is_named(serving.head) {
            let name = records.http_response_server_str.as_bytes();
            self.reply.field("Server", name);
        }
        // Whatever was waited for since the request came (RFC 9111 4.2.3).
        let now = self.ctx.shared.clock.wall();
        let age = serving.head.facts().age(now);
        // Age tells that the response is not first-hand (RFC 9111 5.1).
        let is_first_hand = serving.is_own_fetch() && age == 0;
        if records.http_insert_age_in_response != 0 && !is_first_hand {
            self.reply.field_fmt("Age", format_args!("{age}"));
        }
        let level = records.http_insert_response_via_str;
        if level != 0 {
            let detail = Detail::new(level, self.routed, serving.told(Some(status)));
            self.via(serving.head, detail);
        }
        self.reply.fields(&serving.own);
        if self.routed.tells_cache_status() {
            let status = format_args!("{}", serving.status);
            self.reply.field_fmt("Cache-Status", status);
        }
    }

    fn via(&mut self, head: &StoredHead, detail: Detail<'_>) {
        let identity = &self.ctx.shared.identity;
        let ours = identity.response_member(head.origin_version(), detail);
        match head.via().map(String::from_utf8_lossy) {
            Some(before) => self
                .reply
                .field_fmt("Via", format_args!("{before}, {ours}")),
            None => self.reply.field_fmt("Via", format_args!("{ours}")),
        }
    }

    /// RFC 9110 15.4.5.
    async fn not_modified(&mut self, serving: &Serving<'_>, mut account: Account) -> Ended {
        account.status(StatusCode::NOT_MODIFIED);
        account.not_modified();
        self.begin(StatusCode::NOT_MODIFIED, serving);
        let mut stored = serving.head.header_map();
        self.routed.rewrite_urls(&mut stored);
        for name in NOT_MODIFIED_FIELDS {
            for value in stored.get_all(&name) {
                self.reply.header(&name, value);
            }
        }
        let sent = self.reply.send(b"", &[]).await;
        self.ended(sent, account)
    }

    /// RFC 9110 15.5.17.
    async fn unsatisfiable(&mut self, serving: &Serving<'_>, mut account: Account) -> Ended {
        account.status(StatusCode::RANGE_NOT_SATISFIABLE);
        self.begin(StatusCode::RANGE_NOT_SATISFIABLE, serving);
        if let Some(length) = serving.length {
            let range = range::unsatisfied(length);
            self.reply.field("Content-Range", range.as_bytes());
        }
        let sent = self.reply.send(b"", &[]).await;
        self.ended(sent, account)
    }
}

/// What the client's preconditions come to for a stored response.
pub(super) fn precondition(routed: &Routed, head: &StoredHead) -> Precondition {
    let request = &routed.head;
    conditional::evaluate(
        &request.method,
        &request.headers,
        head.status(),
        &head.validators(),
    )
}

/// What of a stored response of `len` bytes the client is to get, its
/// preconditions apart.
pub(super) fn range_of(routed: &Routed, head: &StoredHead, len: u64) -> range::Answer {
    if !routed.policy.range_lookup {
        return range::Answer::Whole;
    }
    let of = Representation {
        status: head.status(),
        len,
        validators: head.validators(),
    };
    let (request, several) = (&routed.head, routed.policy.several_ranges);
    range::answer(&request.method, &request.headers, &of, several)
}

/// Why a body did not reach the client whole.
enum Broken {
    Client(ReplyError),
    Source(SourceError),
}

const CONTENT_TYPE: &[u8] = b"Content-Type: ";

/// Text that no body holds, but by a chance of one in 2^128.
fn boundary() -> String {
    format!("{:032x}", system_u128())
}

/// Field lines without Content-Type, and its value.
fn without_content_type(lines: &Bytes) -> (Vec<u8>, Option<String>) {
    let mut kept = Vec::with_capacity(lines.len());
    let all = lines.split_inclusive(|byte| *byte == b'\n');
    all.filter(|line| !line.starts_with(CONTENT_TYPE))
        .for_each(|line| kept.extend_from_slice(line));
    let value = content_type(lines);
    let text = value.map(|value| String::from_utf8_lossy(&value).into_owned());
    (kept, text)
}

/// The value of Content-Type among field lines, for the log.
fn content_type(lines: &Bytes) -> Option<Bytes> {
    let mut rest: &[u8] = lines;
    while let Some(end) = memchr(b'\n', rest) {
        let (line, after) = rest.split_at_checked(end)?;
        if let Some(value) = line.strip_prefix(CONTENT_TYPE) {
            return Some(lines.slice_ref(value.trim_ascii_end()));
        }
        rest = after.strip_prefix(b"\n")?;
    }
    None
}
