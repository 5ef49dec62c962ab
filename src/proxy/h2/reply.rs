//! Writing the response to one request.

use super::head::Ask;
use super::stream::Stream;
use crate::http::chunked::is_trailer_field;
use crate::proxy::client::{BodyLength, ClientWrite, ReplyError, Sent, forbids_content};
use crate::proxy::patience::Patience;
use bytes::Bytes;
use h2::Reason;
use http::header::{CONNECTION, CONTENT_LENGTH, SEC_WEBSOCKET_ACCEPT, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use std::fmt::Arguments;
use std::future::poll_fn;
use std::time::Duration;

/// Fields for which there is room at once.
const FIELDS: usize = 16;

/// Bytes of interim heads that a response may have before it, as HTTP/1 would
/// write their fields. What the client does not read of them is held here: more
/// are left out.
const INTERIM_MAX: u64 = 16_384;

/// What an interim head costs without fields.
const INTERIM_OVERHEAD: u64 = 128;

/// Fields that HTTP/2 has no place for (RFC 9113 8.2.2), and what answers a key
/// that the client did not choose (RFC 8441 5).
const FORBIDDEN: [HeaderName; 6] = [
    CONNECTION,
    TRANSFER_ENCODING,
    UPGRADE,
    SEC_WEBSOCKET_ACCEPT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// How the end of the body under way is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    /// The end of the stream goes with the last of so many bytes.
    Left(u64),
    /// The end of the stream is told by itself.
    Open,
    /// The stream has ended with the head, or with the last byte.
    Ended,
}

/// Where the response stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The final head has not been sent.
    Waiting,
    /// The head is out, the body is not whole.
    Streaming(Coding),
    /// The response is whole.
    Whole,
}

/// The response to one request of an HTTP/2 connection.
///
/// A reply dropped before it is whole resets its stream, and no other.
#[derive(Debug)]
pub(super) struct Reply {
    stream: Stream,
    ask: Ask,
    /// Wait for the client to take any byte at all.
    stall: Duration,
    patience: Patience,
    phase: Phase,
    /// Bytes of the interim heads that there were.
    interim: u64,
    /// Whether the stream is a tunnel.
    is_tunnel: bool,
    /// Of the head last begun, as the origin would say it.
    status: StatusCode,
    fields: HeaderMap,
    sent: Sent,
}

impl Drop for Reply {
    fn drop(&mut self) {
        let reason = match self.is_tunnel {
            true => Reason::CONNECT_ERROR,
            false => Reason::INTERNAL_ERROR,
        };
        if self.phase != Phase::Whole {
            self.stream.reset(reason);
        }
    }
}

impl Reply {
    pub(super) fn new(stream: Stream, ask: Ask, stall: Duration) -> Self {
        Self {
            stream,
            ask,
            stall,
            patience: Patience::default(),
            phase: Phase::Waiting,
            interim: 0,
            is_tunnel: false,
            status: StatusCode::OK,
            fields: HeaderMap::new(),
            sent: Sent::default(),
        }
    }

    /// The head begun, as the client is told it.
    fn take_head(&mut self) -> Response<()> {
        let mut fields = std::mem::take(&mut self.fields);
        for name in &FORBIDDEN {
            fields.remove(name);
        }
        self.sent.head += bytes_of(&fields);
        let mut head = Response::new(());
        *head.status_mut() = self.ask.told(self.status);
        *head.headers_mut() = fields;
        head
    }

    /// Adds the field that tells the length, and says how the body goes out.
    fn close_head(&mut self, length: BodyLength) -> Coding {
        if forbids_content(self.status) {
            return Coding::Ended;
        }
        if let BodyLength::Known(bytes) = length {
            self.fields.insert(CONTENT_LENGTH, bytes.into());
        }
        match length {
            BodyLength::Known(0) => Coding::Ended,
            _ if self.is_head() => Coding::Ended,
            BodyLength::Known(bytes) => Coding::Left(bytes),
            BodyLength::Unknown => Coding::Open,
        }
    }

    fn send_head(&mut self, stored: &[u8], coding: Coding) -> Result<(), ReplyError> {
        self.stored(stored);
        let head = self.take_head();
        let ends = coding == Coding::Ended;
        self.stream.head(head, ends).map_err(gone)?;
        self.phase = Phase::Streaming(coding);
        Ok(())
    }

    /// Adds field lines as HTTP/1 has them.
    fn stored(&mut self, mut lines: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', lines) {
            let (line, rest) = lines.split_at(end);
            lines = rest.get(1..).unwrap_or_default();
            if let Some(colon) = memchr::memchr(b':', line) {
                let (name, value) = line.split_at(colon);
                let value = value.get(1..).unwrap_or_default();
                self.add(name, HeaderValue::from_bytes(value.trim_ascii()));
            }
        }
    }

    /// Every field was checked when it came in: there is nothing to refuse here.
    fn add<E>(&mut self, name: &[u8], value: Result<HeaderValue, E>) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), value) {
            self.fields.append(name, value);
        }
    }

    /// Sends content at the client's pace; the stream `ends` with the last byte.
    async fn pour(&mut self, mut data: Bytes, ends: bool) -> Result<(), ReplyError> {
        while !data.is_empty() {
            let stream = &self.stream;
            let room = poll_fn(|cx| stream.poll_room(data.len(), cx));
            let room = self.patience.wait(self.stall, room).await;
            let room = room.ok_or(ReplyError::Stalled(self.stall))?;
            let room = room.ok_or_else(reset)?.min(data.len());
            let now = data.split_to(room);
            let last = ends && data.is_empty();
            self.stream.data(now, last).map_err(gone)?;
            self.sent.body += count(room);
        }
        Ok(())
    }

    async fn pour_counted(&mut self, left: u64, data: Bytes) -> Result<(), ReplyError> {
        let bytes = count(data.len());
        let Some(after) = left.checked_sub(bytes) else {
            return Err(ReplyError::Length(bytes - left));
        };
        self.pour(data, after == 0).await?;
        self.phase = Phase::Streaming(match after {
            0 => Coding::Ended,
            _ => Coding::Left(after),
        });
        Ok(())
    }

    /// Ends a stream whose end goes by itself, with trailers if there are any.
    fn end(&mut self, trailers: Option<&HeaderMap>) -> Result<(), h2::Error> {
        let asked = trailers.filter(|_| self.ask.takes_trailers);
        let fields: HeaderMap = asked
            .into_iter()
            .flatten()
            .filter(|(name, _)| is_trailer_field(name) && !FORBIDDEN.contains(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if fields.is_empty() {
            return self.stream.data(Bytes::new(), true);
        }
        self.sent.head += bytes_of(&fields);
        self.stream.trailers(fields)
    }
}

impl ClientWrite for Reply {
    fn is_head(&self) -> bool {
        self.ask.is_head()
    }

    fn is_started(&self) -> bool {
        self.phase != Phase::Waiting
    }

    fn is_switched(&self) -> bool {
        self.is_started() && self.status == StatusCode::SWITCHING_PROTOCOLS
    }

    fn sent(&self) -> Sent {
        self.sent
    }

    fn close_after(&mut self) {
        // The connection is for the other streams too.
    }

    async fn interim(&mut self, status: StatusCode, fields: &HeaderMap) -> Result<(), ReplyError> {
        if self.is_started() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(());
        }
        self.interim += INTERIM_OVERHEAD + bytes_of(fields);
        if self.interim > INTERIM_MAX {
            return Ok(());
        }
        self.begin(status);
        self.fields(fields);
        let head = self.take_head();
        self.stream.interim(head).map_err(gone)
    }

    async fn send_continue(&mut self, _keep_alive: bool) -> Result<(), ReplyError> {
        self.interim(StatusCode::CONTINUE, &HeaderMap::new()).await
    }

    fn begin(&mut self, status: StatusCode) {
        self.status = status;
        self.fields = HeaderMap::with_capacity(FIELDS);
    }

    fn field(&mut self, name: &str, value: &[u8]) {
        self.add(name.as_bytes(), HeaderValue::from_bytes(value));
    }

    fn field_fmt(&mut self, name: &str, value: Arguments<'_>) {
        self.add(name.as_bytes(), HeaderValue::try_from(value.to_string()));
    }

    fn header(&mut self, name: &HeaderName, value: &HeaderValue) {
        self.fields.append(name.clone(), value.clone());
    }

    async fn send(&mut self, stored: &[u8], body: &[Bytes]) -> Result<(), ReplyError> {
        let length = body.iter().map(|part| count(part.len())).sum();
        self.start(stored, BodyLength::Known(length)).await?;
        for part in body {
            self.chunk(part.clone()).await?;
        }
        self.finish(None).await
    }

    async fn start(&mut self, stored: &[u8], length: BodyLength) -> Result<(), ReplyError> {
        let coding = self.close_head(length);
        self.send_head(stored, coding)
    }

    async fn start_tunnel(&mut self) -> Result<(), ReplyError> {
        self.is_tunnel = true;
        self.send_head(b"", Coding::Open)
    }

    async fn end_tunnel(&mut self) {
        // A client that is gone needs no farewell.
        drop(self.finish(None).await);
    }

    async fn chunk(&mut self, data: Bytes) -> Result<(), ReplyError> {
        match self.phase {
            Phase::Streaming(Coding::Left(left)) => self.pour_counted(left, data).await,
            Phase::Streaming(Coding::Open) => self.pour(data, false).await,
            Phase::Streaming(Coding::Ended) if !self.is_head() && !data.is_empty() => {
                Err(ReplyError::Length(count(data.len())))
            }
            Phase::Waiting | Phase::Streaming(Coding::Ended) | Phase::Whole => Ok(()),
        }
    }

    async fn finish(&mut self, trailers: Option<&HeaderMap>) -> Result<(), ReplyError> {
        match self.phase {
            Phase::Streaming(Coding::Left(left)) => return Err(ReplyError::Length(left)),
            Phase::Streaming(Coding::Open) => self.end(trailers).map_err(gone)?,
            Phase::Streaming(Coding::Ended) => {}
            Phase::Waiting | Phase::Whole => return Ok(()),
        }
        self.phase = Phase::Whole;
        Ok(())
    }
}

/// The stream was reset, or its connection is gone.
fn gone(error: h2::Error) -> ReplyError {
    ReplyError::Io(std::io::Error::other(error))
}

fn reset() -> ReplyError {
    ReplyError::Io(std::io::ErrorKind::ConnectionReset.into())
}

/// What fields would take in HTTP/1: the same measure for every client.
fn bytes_of(fields: &HeaderMap) -> u64 {
    let lines = fields.iter();
    lines
        .map(|(name, value)| count(name.as_str().len() + value.len() + 4))
        .sum()
}

/// Bytes as the counters have them.
fn count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use h2::{client, server};
    use http::Request;

    /// A reply to a client that does not read.
    async fn unread() -> (Reply, impl Sized) {
        let (near, far) = tokio::io::duplex(64);
        let asked = tokio::spawn(async {
            let (mut send, connection) = client::handshake(near).await.unwrap();
            let ask = Request::get("http://h/").body(()).unwrap();
            let response = send.send_request(ask, true).unwrap();
            let connection = tokio::spawn(connection);
            tokio::task::yield_now().await;
            (response, connection)
        });
        let mut connection = server::handshake(far).await.unwrap();
        let (_, respond) = connection.accept().await.unwrap().unwrap();
        let stall = Duration::from_secs(1);
        let reply = Reply::new(Stream::new(respond), Ask::UNKNOWN, stall);
        (reply, (connection, asked))
    }

    #[tokio::test]
    async fn interim_heads_that_nobody_reads_are_bounded() {
        let (mut reply, _held) = unread().await;
        let mut fields = HeaderMap::new();
        fields.insert("link", HeaderValue::from_bytes(&[b'x'; 1000]).unwrap());
        for _ in 0..100 {
            let status = StatusCode::EARLY_HINTS;
            reply.interim(status, &fields).await.unwrap();
        }
        let sent = reply.sent().head;
        assert!((10_000..=INTERIM_MAX).contains(&sent), "{sent}");
        for _ in 0..1000 {
            let none = HeaderMap::new();
            reply.interim(StatusCode::PROCESSING, &none).await.unwrap();
        }
        assert_eq!(reply.sent().head, sent, "the bound holds");
        reply.begin(StatusCode::OK);
        reply.send(b"", &[]).await.unwrap();
    }
}
