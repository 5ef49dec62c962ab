//! Writing the response to one request.

use super::error::ReplyError;
use super::write::{Asker, Coding, Phase, Sent, WriteSide};
use crate::http::chunked::is_trailer_field;
use crate::http::wire;
use bytes::{BufMut, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::fmt::Write;
use tokio::io::AsyncWrite;

/// What is known of a body's length before it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// This many bytes.
    Known(u64),
    /// To be seen: chunked to a 1.1 client, ended by close to a 1.0 one.
    Unknown,
}

/// The response to one request.
///
/// ```text
/// interim* → begin → field* → send                       (whole at once)
///                           → start → chunk* → finish    (streamed)
/// ```
///
/// The codec alone writes `Content-Length`, `Transfer-Encoding`, `Connection`
/// and `Proxy-Connection`; the caller's fields must hold none of them. A reply
/// dropped before it is whole aborts the connection: no client can take a part
/// for the whole.
#[derive(Debug)]
pub struct Reply<'c, W> {
    out: &'c mut WriteSide<W>,
}

impl<'c, W: AsyncWrite + Unpin> Reply<'c, W> {
    pub(super) fn new(out: &'c mut WriteSide<W>) -> Self {
        Self { out }
    }

    /// Whether content is sent at all: not to HEAD (RFC 9110 9.3.2).
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.out.asker.is_head
    }

    /// Whether the client speaks HTTP/1.1, and so takes interim responses.
    #[must_use]
    pub fn is_http11(&self) -> bool {
        self.out.asker.minor >= 1
    }

    /// Whether the final head has left: too late for another answer.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.out.phase != Phase::Waiting
    }

    /// Whether the response is whole.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.out.phase == Phase::Whole
    }

    /// Bytes written so far.
    #[must_use]
    pub fn sent(&self) -> Sent {
        self.out.sent
    }

    /// Makes this the last response of the connection.
    pub fn close_after(&mut self) {
        self.out.asker.keep_alive = false;
    }

    /// Sends an interim response (1xx, RFC 9110 15.2), except to a 1.0 client,
    /// for whom there are none.
    ///
    /// # Errors
    /// [`ReplyError`] if the client is gone or stalls.
    pub async fn interim(
        &mut self,
        status: StatusCode,
        fields: &HeaderMap,
    ) -> Result<(), ReplyError> {
        if !self.is_http11() || self.is_started() {
            return Ok(());
        }
        self.begin(status);
        self.fields(fields);
        self.put(b"\r\n");
        let bytes = count(self.out.scratch.len());
        self.out.write([b"", b""], &[]).await?;
        self.out.scratch.clear();
        self.out.sent.head += bytes;
        Ok(())
    }

    pub(super) async fn send_continue(&mut self, keep_alive: bool) -> Result<(), ReplyError> {
        if !self.is_started() {
            self.out.asker.keep_alive = keep_alive;
        }
        self.interim(StatusCode::CONTINUE, &HeaderMap::new()).await
    }

    /// Begins the final head: the status line; fields follow by [`Self::field`].
    pub fn begin(&mut self, status: StatusCode) {
        self.out.status = status;
        let version = if self.is_http11() {
            "HTTP/1.1 "
        } else {
            "HTTP/1.0 "
        };
        let reason = status.canonical_reason().unwrap_or("");
        self.out.scratch.clear();
        for part in [version, status.as_str(), " ", reason, "\r\n"] {
            self.put(part.as_bytes());
        }
    }

    /// Adds a field line to the head.
    pub fn field(&mut self, name: &str, value: &[u8]) {
        let out = &mut self.out.scratch;
        out.put_slice(name.as_bytes());
        out.put_slice(b": ");
        out.put_slice(value);
        out.put_slice(b"\r\n");
    }

    /// Adds a field line whose value is formatted into the scratch buffer.
    pub fn field_fmt(&mut self, name: &str, value: std::fmt::Arguments<'_>) {
        self.put(name.as_bytes());
        self.put(b": ");
        self.put_fmt(value);
        self.put(b"\r\n");
    }

    /// Adds a field line, its name in the customary capitals.
    pub fn header(&mut self, name: &HeaderName, value: &HeaderValue) {
        wire::put_field(&mut self.out.scratch, name, value.as_bytes());
    }

    /// Adds every line of `map`.
    pub fn fields(&mut self, map: &HeaderMap) {
        for (name, value) in map {
            self.header(name, value);
        }
    }

    /// Sends the head begun, the `stored` field lines (each ends in CRLF) and
    /// the whole `body`, by one vectored write if the socket takes it.
    ///
    /// # Errors
    /// [`ReplyError`] if the client is gone or stalls.
    pub async fn send(&mut self, stored: &[u8], body: &[Bytes]) -> Result<(), ReplyError> {
        let length = body.iter().map(|chunk| count(chunk.len())).sum();
        let coding = self.close_head(BodyLength::Known(length));
        let body = if coding == Coding::Bodiless {
            &[]
        } else {
            body
        };
        self.send_head(stored, body).await?;
        self.out.phase = Phase::Whole;
        Ok(())
    }

    /// Sends the head begun and the `stored` field lines; [`Self::chunk`] and
    /// [`Self::finish`] send the body.
    ///
    /// # Errors
    /// [`ReplyError`] if the client is gone or stalls.
    pub async fn start(&mut self, stored: &[u8], length: BodyLength) -> Result<(), ReplyError> {
        let coding = self.close_head(length);
        self.send_head(stored, &[]).await?;
        self.out.phase = Phase::Streaming(coding);
        Ok(())
    }

    /// Whether the connection is no HTTP any more: its head was a 101.
    #[must_use]
    pub fn is_switched(&self) -> bool {
        self.is_started() && self.out.status == StatusCode::SWITCHING_PROTOCOLS
    }

    /// Sends the head begun as the start of a tunnel (a 2xx to CONNECT or a
    /// 101): no length, no coding; every [`Self::chunk`] goes out as it is.
    ///
    /// # Errors
    /// [`ReplyError`] if the client is gone or stalls.
    pub async fn start_tunnel(&mut self) -> Result<(), ReplyError> {
        self.out.asker.keep_alive = false;
        self.send_head(b"", &[]).await?;
        self.out.phase = Phase::Streaming(Coding::UntilClose);
        Ok(())
    }

    /// Tells the client that the other end of the tunnel sends no more.
    pub async fn end_tunnel(&mut self) {
        self.out.shutdown().await;
        self.out.phase = Phase::Whole;
    }

    /// Sends more of the body; nothing where the response has no content.
    ///
    /// # Errors
    /// [`ReplyError::Length`] if the body grows past what was announced; the
    /// others if the client is gone or stalls.
    pub async fn chunk(&mut self, data: Bytes) -> Result<(), ReplyError> {
        let Phase::Streaming(coding) = self.out.phase else {
            return Ok(());
        };
        if data.is_empty() {
            return Ok(());
        }
        match coding {
            Coding::Bodiless => Ok(()),
            Coding::Left(left) => self.send_counted(left, data).await,
            Coding::UntilClose => self.send_part(data, b"").await,
            Coding::Chunked => self.send_chunk(data).await,
        }
    }

    /// Ends the body. Trailers go to a client that asked for them and gets
    /// chunks; to others they are dropped (RFC 9110 6.5.1).
    ///
    /// # Errors
    /// [`ReplyError::Length`] if less was sent than announced; the others if
    /// the client is gone or stalls.
    pub async fn finish(&mut self, trailers: Option<&HeaderMap>) -> Result<(), ReplyError> {
        match self.out.phase {
            Phase::Streaming(Coding::Left(left)) if left > 0 => {
                self.out.phase = Phase::Broken;
                return Err(ReplyError::Length(left));
            }
            Phase::Streaming(Coding::Chunked) => self.send_last_chunk(trailers).await?,
            Phase::Streaming(_) | Phase::Waiting | Phase::Whole | Phase::Broken => {}
        }
        if matches!(self.out.phase, Phase::Streaming(_)) {
            self.out.phase = Phase::Whole;
        }
        Ok(())
    }

    /// Writes the fields that frame the body and govern the connection.
    fn close_head(&mut self, length: BodyLength) -> Coding {
        let coding = coding(self.out.status, length, self.out.asker);
        match length {
            _ if forbids_content(self.out.status) => {}
            BodyLength::Known(bytes) => {
                self.put_fmt(format_args!("Content-Length: {bytes}\r\n"));
            }
            BodyLength::Unknown if coding == Coding::Chunked => {
                self.put(b"Transfer-Encoding: chunked\r\n");
            }
            BodyLength::Unknown => {}
        }
        if coding == Coding::UntilClose {
            self.out.asker.keep_alive = false;
        }
        let line = connection_line(self.out.asker);
        self.put(line.as_bytes());
        coding
    }

    async fn send_head(&mut self, stored: &[u8], body: &[Bytes]) -> Result<(), ReplyError> {
        let head = count(self.out.scratch.len() + stored.len() + 2);
        self.out.write([stored, b"\r\n"], body).await?;
        self.out.scratch.clear();
        self.out.sent.head += head;
        self.out.sent.body += body.iter().map(|part| count(part.len())).sum::<u64>();
        Ok(())
    }

    async fn send_counted(&mut self, left: u64, data: Bytes) -> Result<(), ReplyError> {
        let bytes = count(data.len());
        if bytes > left {
            self.out.phase = Phase::Broken;
            return Err(ReplyError::Length(bytes - left));
        }
        self.send_part(data, b"").await?;
        self.out.phase = Phase::Streaming(Coding::Left(left - bytes));
        Ok(())
    }

    async fn send_chunk(&mut self, data: Bytes) -> Result<(), ReplyError> {
        self.put_fmt(format_args!("{:x}\r\n", data.len()));
        self.send_part(data, b"\r\n").await
    }

    /// Writes the scratch buffer, `data` uncopied, and `after`.
    async fn send_part(&mut self, data: Bytes, after: &'static [u8]) -> Result<(), ReplyError> {
        let framing = count(self.out.scratch.len() + after.len());
        let bytes = count(data.len());
        let body = [data, Bytes::from_static(after)];
        self.out.write([b"", b""], &body).await?;
        self.out.scratch.clear();
        self.out.sent.head += framing;
        self.out.sent.body += bytes;
        Ok(())
    }

    async fn send_last_chunk(&mut self, trailers: Option<&HeaderMap>) -> Result<(), ReplyError> {
        self.put(b"0\r\n");
        if let Some(map) = trailers.filter(|_| self.out.asker.takes_trailers) {
            for (name, value) in map.iter().filter(|(name, _)| is_trailer_field(name)) {
                self.header(name, value);
            }
        }
        self.put(b"\r\n");
        self.send_part(Bytes::new(), b"").await
    }

    fn put(&mut self, bytes: &[u8]) {
        self.out.scratch.put_slice(bytes);
    }

    fn put_fmt(&mut self, text: std::fmt::Arguments<'_>) {
        let written = Text(&mut self.out.scratch).write_fmt(text);
        written.expect("writing to a Vec can't fail");
    }
}

/// Text formatted into bytes. `io::Write` does the same, at twice the cost: it
/// carries an error along.
struct Text<'a>(&'a mut Vec<u8>);

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.put_slice(text.as_bytes());
        Ok(())
    }
}

/// RFC 9112 6.3: what ends the body of a response.
fn coding(status: StatusCode, length: BodyLength, asker: Asker) -> Coding {
    if asker.is_head || forbids_content(status) {
        return Coding::Bodiless;
    }
    match length {
        BodyLength::Known(bytes) => Coding::Left(bytes),
        BodyLength::Unknown if asker.minor >= 1 => Coding::Chunked,
        BodyLength::Unknown => Coding::UntilClose,
    }
}

/// RFC 9110 6.4.1. Nor do these carry a Content-Length: 1xx and 204 must not
/// (8.6), and in a 304 it would be the length of the 200, which the empty body
/// at hand doesn't tell.
fn forbids_content(status: StatusCode) -> bool {
    status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED
}

/// The line that tells whether the connection goes on. 1.1 goes on unless told
/// otherwise, 1.0 ends unless told otherwise (RFC 9112 9.3).
fn connection_line(asker: Asker) -> &'static str {
    match (asker.keep_alive, asker.minor, asker.proxy_connection) {
        (true, 0, true) => "Proxy-Connection: keep-alive\r\n",
        (true, 0, false) => "Connection: keep-alive\r\n",
        (true, _, _) => "",
        (false, _, _) => "Connection: close\r\n",
    }
}

/// Bytes as the counters have them.
fn count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
