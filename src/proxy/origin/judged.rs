//! An origin's socket whose responses are judged, byte for byte, before hyper
//! reads them (RFC 9112 2.2, 5 and 7.1).
//!
//! hyper takes LF alone for the end of a line, and hardly looks into chunk
//! extensions and trailers. A head is handed on once it is whole and good, and a
//! chunked body as far as it is good; what comes after the first fault is an
//! error of the connection, [`std::io::ErrorKind::InvalidData`].

use crate::http::chunked::{ChunkDecoder, ChunkLimits};
use crate::http::head::{HeadError, HeadLimits, HeadScanner, read_response_head};
use bytes::{Buf, BytesMut};
use http::Method;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Tells a [`Judged`] socket what is asked over it.
#[derive(Clone, Debug, Default)]
pub(super) struct Announcer(Arc<AtomicU8>);

const NOTHING: u8 = 0;
const HEAD: u8 = 1;
const OTHER: u8 = 2;

impl Announcer {
    /// A request is about to be sent: what comes from now on is its response.
    pub(super) fn announce(&self, method: &Method) {
        let asked = if *method == Method::HEAD { HEAD } else { OTHER };
        self.0.store(asked, Ordering::Release);
    }
}

/// What the next bytes are.
#[derive(Debug)]
enum State {
    /// The head of a response, an interim one perhaps.
    Head(HeadScanner),
    /// A chunked body, and what follows it.
    Chunked(Box<ChunkDecoder>),
    /// Bytes that hyper counts, or that nobody asked for.
    Rest,
}

/// The socket.
#[derive(Debug)]
pub(super) struct Judged<S> {
    stream: S,
    announced: Announcer,
    limits: HeadLimits,
    state: State,
    /// Whether the response is to a HEAD, and so has no body.
    to_head: bool,
    /// A head that is not whole yet.
    head: BytesMut,
    /// What was judged and is to be handed on.
    good: BytesMut,
}

impl<S> Judged<S> {
    /// Judges what comes from `stream`, heads of at most `limits`.
    pub(super) fn new(stream: S, limits: HeadLimits) -> Self {
        Self {
            stream,
            announced: Announcer::default(),
            limits,
            state: State::Rest,
            to_head: false,
            head: BytesMut::new(),
            good: BytesMut::new(),
        }
    }

    /// The way to tell it of requests.
    pub(super) fn announcer(&self) -> Announcer {
        self.announced.clone()
    }

    /// The socket, and what was read from it and not handed on.
    pub(super) fn into_parts(self) -> (S, BytesMut) {
        (self.stream, self.good)
    }

    /// Turns to the response of a request that was announced. Bytes that are
    /// left of the one before were nobody's, and must not become this one's.
    fn turn(&mut self) -> io::Result<()> {
        let asked = self.announced.0.swap(NOTHING, Ordering::AcqRel);
        if asked == NOTHING {
            return Ok(());
        }
        if !self.good.is_empty() {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "bytes behind a response",
            ));
        }
        self.to_head = asked == HEAD;
        self.state = State::Head(HeadScanner::new(self.limits));
        Ok(())
    }

    /// Looks at the heads in what was read so far.
    fn judge_heads(&mut self) -> io::Result<()> {
        while let State::Head(scanner) = &mut self.state {
            let Some(span) = scanner.find_end(&self.head).map_err(invalid)? else {
                return Ok(());
            };
            let head = self.head.split_to(span.end);
            let lines = head.get(span.start..).unwrap_or_default();
            self.state = after(lines, self.to_head, self.limits).map_err(invalid)?;
            self.good.extend_from_slice(lines);
        }
        let body = std::mem::take(&mut self.head);
        self.judge_body(&body)?;
        self.good.extend_from_slice(&body);
        Ok(())
    }

    fn judge_body(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.state {
            State::Chunked(decoder) => decoder.pass_over(bytes).map_err(invalid),
            State::Head(_) | State::Rest => Ok(()),
        }
    }

    /// Hands on what was judged, as far as there is room.
    fn hand_on(&mut self, buf: &mut ReadBuf<'_>) {
        let room = buf.remaining().min(self.good.len());
        let part = self.good.get(..room).unwrap_or_default();
        buf.put_slice(part);
        self.good.advance(room);
    }
}

/// What follows a whole head.
fn after(head: &[u8], to_head: bool, limits: HeadLimits) -> Result<State, HeadError> {
    let mut is_chunked = false;
    let line = read_response_head(head, &limits, |name, value| {
        is_chunked |= name.eq_ignore_ascii_case(b"transfer-encoding")
            && value.eq_ignore_ascii_case(b"chunked");
        Ok::<_, HeadError>(())
    })?;
    Ok(match line.status {
        101 | 204 | 304 => State::Rest,
        100..=199 => State::Head(HeadScanner::new(limits)),
        _ if to_head || !is_chunked => State::Rest,
        _ => State::Chunked(Box::new(ChunkDecoder::new(ChunkLimits::default()))),
    })
}

fn invalid(fault: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, fault)
}

impl<S: AsyncRead + Unpin> AsyncRead for Judged<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.turn()?;
        while this.good.is_empty() {
            let before = buf.filled().len();
            ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
            // A request may have been announced since, and this be its response.
            this.turn()?;
            let read = buf.filled().get(before..).unwrap_or_default();
            let is_end = read.is_empty();
            if is_end || !matches!(this.state, State::Head(_)) {
                let judged = this.judge_body(read);
                if judged.is_err() {
                    buf.set_filled(before);
                }
                return Poll::Ready(judged);
            }
            this.head.extend_from_slice(read);
            buf.set_filled(before);
            this.judge_heads()?;
        }
        this.hand_on(buf);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Judged<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    /// What comes through of `parts`, after a request of this method, and
    /// whether it ended in order.
    async fn through(method: Method, parts: &[&[u8]]) -> (Vec<u8>, bool) {
        let mut builder = std::collections::VecDeque::new();
        builder.extend(parts.iter().map(|part| part.to_vec()));
        let mut judged = Judged::new(Pieces(builder), HeadLimits::default());
        judged.announcer().announce(&method);
        let mut got = Vec::new();
        let end = judged.read_to_end(&mut got).await;
        (got, end.is_ok())
    }

    /// A reader that gives one piece at a time.
    struct Pieces(std::collections::VecDeque<Vec<u8>>);

    impl AsyncRead for Pieces {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let pieces = &mut self.get_mut().0;
            if let Some(mut piece) = pieces.pop_front() {
                let rest = piece.split_off(piece.len().min(buf.remaining()));
                buf.put_slice(&piece);
                if !rest.is_empty() {
                    pieces.push_front(rest);
                }
            }
            Poll::Ready(Ok(()))
        }
    }

    const CHUNKED: &[u8] = b"HTTP/1.1 103 Early\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n\
                             Transfer-Encoding: chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n0\r\nT: t\r\n\r\n";

    #[tokio::test]
    async fn a_good_response_comes_through_as_it_is_however_it_is_cut() {
        for size in [1, 2, 7, 1000] {
            let parts: Vec<&[u8]> = CHUNKED.chunks(size).collect();
            assert_eq!(through(Method::GET, &parts).await, (CHUNKED.to_vec(), true));
        }
    }

    #[tokio::test]
    async fn of_a_head_that_is_off_the_grammar_nothing_comes_through() {
        for head in [
            "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\n",
            "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
            "HTTP/1.1 200 OK\r\nA: \0\r\n\r\n",
            "HTTP/1.1 200 O\x01K\r\n\r\n",
            "HTTP/2.0 200 OK\r\n\r\n",
            "HTTP/1.1 103 Early\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        ] {
            for size in [1, 1000] {
                let parts: Vec<&[u8]> = head.as_bytes().chunks(size).collect();
                let (got, is_good) = through(Method::GET, &parts).await;
                assert_eq!((got.len(), is_good), (0, false), "{head:?}");
            }
        }
    }

    #[tokio::test]
    async fn of_chunks_that_are_off_the_grammar_the_good_ones_come_through_at_most() {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        for chunks in [
            "5\nhello\r\n0\r\n\r\n",
            "5 \r\nhello\r\n0\r\n\r\n",
            "+5\r\nhello\r\n0\r\n\r\n",
            "5;a\nb\r\nhello\r\n0\r\n\r\n",
            "5;\x01\r\nhello\r\n0\r\n\r\n",
            "5\r\nhello!\r\n0\r\n\r\n",
            "0\r\nT: t\n\r\n",
            "0\r\nT : t\r\n\r\n",
            "0\r\n\n",
        ] {
            let (got, is_good) = through(Method::GET, &[head, chunks.as_bytes()]).await;
            assert_eq!((got.as_slice(), is_good), (&head[..], false), "{chunks:?}");
        }
    }

    #[tokio::test]
    async fn what_has_no_chunks_is_not_judged_as_if_it_had() {
        let of_head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(through(Method::HEAD, &[of_head]).await.1);
        for response in [
            &b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n"[..],
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n\r\nany\nthing",
            b"HTTP/1.0 200\r\n\r\nany\nthing",
        ] {
            let whole = (response.to_vec(), true);
            assert_eq!(through(Method::GET, &[response]).await, whole);
        }
    }

    #[tokio::test]
    async fn bytes_behind_a_response_are_not_the_next_one() {
        let one = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec();
        let pieces = Pieces([[one.clone(), one].concat()].into());
        let mut judged = Judged::new(pieces, HeadLimits::default());
        judged.announcer().announce(&Method::GET);
        let mut first = [0; 30];
        // Two times 30 bytes are read until the head of 38 is whole.
        judged.read_exact(&mut first).await.unwrap();
        judged.read_exact(&mut first[..8]).await.unwrap();
        judged.announcer().announce(&Method::GET);
        let error = judged.read(&mut first).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
}
