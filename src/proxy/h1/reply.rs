//! Writing the response to one request.

use super::write::{Asker, Coding, Phase, WriteSide};
use crate::http::chunked::is_trailer_field;
use crate::http::wire;
use crate::proxy::client::{BodyLength, ClientWrite, ReplyError, Sent, forbids_content};
use bytes::{BufMut, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use std::fmt::{Arguments, Write};
use tokio::io::AsyncWrite;

/// The response to one request of an HTTP/1 connection.
///
/// The codec alone writes `Content-Length`, `Transfer-Encoding`, `Connection`
/// and `Proxy-Connection`. A reply dropped before it is whole aborts the
/// connection.
#[derive(Debug)]
pub struct Reply<'c, W> {
    out: &'c mut WriteSide<W>,
}

impl<W: AsyncWrite + Unpin> ClientWrite for Reply<'_, W> {
    fn is_head(&self) -> bool {
        self.out.asker.is_head
    }

    fn is_started(&self) -> bool {
        self.out.phase != Phase::Waiting
    }

    fn sent(&self) -> Sent {
        self.out.sent
    }

    fn close_after(&mut self) {
        self.out.asker.keep_alive = false;
    }

    async fn interim(&mut self, status: StatusCode, fields: &HeaderMap) -> Result<(), ReplyError> {
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

    async fn send_continue(&mut self, keep_alive: bool) -> Result<(), ReplyError> {
        if !self.is_started() {
            self.out.asker.keep_alive = keep_alive;
        }
        self.interim(StatusCode::CONTINUE, &HeaderMap::new()).await
    }

    fn begin(&mut self, status: StatusCode) {
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

    fn field(&mut self, name: &str, value: &[u8]) {
        let out = &mut self.out.scratch;
        out.put_slice(name.as_bytes());
        out.put_slice(b": ");
        out.put_slice(value);
        out.put_slice(b"\r\n");
    }

    fn field_fmt(&mut self, name: &str, value: Arguments<'_>) {
        self.put(name.as_bytes());
        self.put(b": ");
        self.put_fmt(value);
        self.put(b"\r\n");
    }

    fn header(&mut self, name: &HeaderName, value: &HeaderValue) {
        wire::put_field(&mut self.out.scratch, name, value.as_bytes());
    }

    async fn send(&mut self, stored: &[u8], body: &[Bytes]) -> Result<(), ReplyError> {
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

    async fn start(&mut self, stored: &[u8], length: BodyLength) -> Result<(), ReplyError> {
        let coding = self.close_head(length);
        self.send_head(stored, &[]).await?;
        self.out.phase = Phase::Streaming(coding);
        Ok(())
    }

    fn is_switched(&self) -> bool {
        self.is_started() && self.out.status == StatusCode::SWITCHING_PROTOCOLS
    }

    async fn start_tunnel(&mut self) -> Result<(), ReplyError> {
        self.out.asker.keep_alive = false;
        self.send_head(b"", &[]).await?;
        self.out.phase = Phase::Streaming(Coding::UntilClose);
        Ok(())
    }

    async fn end_tunnel(&mut self) {
        self.out.shutdown().await;
        self.out.phase = Phase::Whole;
    }

    async fn chunk(&mut self, data: Bytes) -> Result<(), ReplyError> {
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

    async fn finish(&mut self, trailers: Option<&HeaderMap>) -> Result<(), ReplyError> {
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
}

impl<'c, W: AsyncWrite + Unpin> Reply<'c, W> {
    pub(super) fn new(out: &'c mut WriteSide<W>) -> Self {
        Self { out }
    }

    /// Whether the client speaks HTTP/1.1, and so takes interim responses.
    #[must_use]
    pub fn is_http11(&self) -> bool {
        self.out.asker.minor >= 1
    }

    /// Whether the response is whole.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.out.phase == Phase::Whole
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

    fn put_fmt(&mut self, text: Arguments<'_>) {
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
