//! The clients: each asks, checks every byte of the answer, and asks again.

use crate::Shared;
use crate::document::Document;
use crate::report::add;
use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf, BytesMut};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use strata::base::clock::{Clock, MonoTime};
use strata::base::prng::Prng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes read at a time.
const READ_BYTES: usize = 64 * 1024;
/// The largest head taken from a proxy, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// What a client waits after a failed connection, so that a proxy that is
/// down is not hammered.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// The longest a client waits for progress.
const PATIENCE: Duration = Duration::from_secs(60);

/// The documents that the clients ask for, one after another.
struct Wishes {
    prng: RefCell<Prng>,
    next: Cell<u32>,
}

/// Starts every client as a task of this thread.
pub(crate) fn spawn_all(shared: &Rc<Shared>) {
    let wishes = Rc::new(Wishes {
        prng: RefCell::new(Prng::seeded(shared.args.drand_seed)),
        next: Cell::new(0),
    });
    let running = Rc::new(Cell::new(shared.args.clients));
    for _ in 0..shared.args.clients {
        let (shared, wishes, running) = (shared.clone(), wishes.clone(), running.clone());
        tokio::task::spawn_local(async move {
            client(&shared, &wishes).await;
            running.set(running.get() - 1);
            if running.get() == 0 {
                shared.totals.finished.notify_one();
            }
        });
    }
}

/// One client, until the requests are used up.
async fn client(shared: &Shared, wishes: &Wishes) {
    while may_begin(shared) {
        if let Err(error) = connection(shared, wishes).await {
            add(&shared.totals.errors, 1);
            complain(shared, &error);
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }
}

/// Hundreds of clients fail at once where one does.
#[expect(clippy::print_stderr, reason = "a command prints")]
fn complain(shared: &Shared, error: &anyhow::Error) {
    match shared.complaints.due(shared.clock.mono()) {
        None => {}
        Some(0) => eprintln!("jtest: {error:#}"),
        Some(untold) => {
            eprintln!("jtest: {error:#} (errors since the last line: {untold} more)");
        }
    }
}

fn may_begin(shared: &Shared) -> bool {
    let limit = shared.args.request_limit();
    limit == 0 || shared.totals.begun.get() < limit
}

/// One connection and its requests.
async fn connection(shared: &Shared, wishes: &Wishes) -> Result<()> {
    let mut stream = TcpStream::connect(shared.proxy)
        .await
        .with_context(|| format!("can't connect to {}", shared.proxy))?;
    stream.set_nodelay(true).context("can't set TCP_NODELAY")?;
    add(&shared.totals.clients_new, 1);
    add(&shared.totals.clients_open, 1);
    let done = requests(shared, wishes, &mut stream).await;
    add(&shared.totals.clients_open, u64::MAX);
    done
}

async fn requests(shared: &Shared, wishes: &Wishes, stream: &mut TcpStream) -> Result<()> {
    let mut buffer = BytesMut::with_capacity(READ_BYTES);
    for left in (0..=shared.args.keepalive).rev() {
        if !may_begin(shared) {
            return Ok(());
        }
        add(&shared.totals.begun, 1);
        let document = wishes.next(shared);
        let head = request_head(shared, &document, left > 0);
        stream
            .write_all(head.as_bytes())
            .await
            .context("can't send")?;
        let answer = answer(shared, stream, &mut buffer, &document);
        let keep = tokio::time::timeout(PATIENCE, answer)
            .await
            .with_context(|| format!("{}: no answer for a minute", document.path))?
            .with_context(|| document.path.clone())?;
        if !keep {
            return Ok(());
        }
    }
    Ok(())
}

impl Wishes {
    fn next(&self, shared: &Shared) -> Document {
        let args = &shared.args;
        if args.sweep {
            let index = self.next.replace(self.next.get() + 1);
            return Document::hot(index, args.hotset, args.docsize);
        }
        let mut prng = self.prng.borrow_mut();
        if prng.fraction() >= args.hitrate {
            return Document::cold(&mut prng, args.docsize);
        }
        let index = prng.below(u64::from(args.hotset));
        Document::hot(u32::try_from(index).unwrap_or(0), args.hotset, args.docsize)
    }
}

fn request_head(shared: &Shared, document: &Document, keep_alive: bool) -> String {
    let path = &document.path;
    let host = format!("{}:{}", shared.args.server_host, shared.origin.port());
    let keep = if keep_alive {
        "Proxy-Connection: Keep-Alive\r\n"
    } else {
        ""
    };
    match shared.args.host_request {
        0 => format!("GET http://{host}{path} HTTP/1.0\r\n{keep}\r\n"),
        _ => format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n{keep}\r\n"),
    }
}

/// Reads and checks one answer; whether the connection stays open after it.
async fn answer(
    shared: &Shared,
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    document: &Document,
) -> Result<bool> {
    let begun = shared.clock.mono();
    let head = head(stream, buffer, shared, begun).await?;
    ensure!(
        head.len == document.len,
        "Content-Length {} for {} bytes",
        head.len,
        document.len
    );
    body(stream, buffer, document).await?;
    let totals = &shared.totals;
    add(&totals.last_byte_ns, nanos_since(shared, begun));
    add(&totals.client_bytes, head.head_len + document.len);
    add(&totals.client_ops, 1);
    Ok(head.keep_alive)
}

fn nanos_since(shared: &Shared, begun: MonoTime) -> u64 {
    shared.clock.mono().as_nanos() - begun.as_nanos()
}

/// What matters of an answer's head.
#[derive(Debug, PartialEq, Eq)]
struct AnswerHead {
    head_len: u64,
    len: u64,
    keep_alive: bool,
}

async fn head(
    stream: &mut TcpStream,
    buffer: &mut BytesMut,
    shared: &Shared,
    begun: MonoTime,
) -> Result<AnswerHead> {
    let mut first = buffer.is_empty();
    loop {
        if let Some(end) = find_end(buffer) {
            let head = buffer.split_to(end);
            return parse_head(&String::from_utf8_lossy(&head));
        }
        ensure!(
            buffer.len() < HEAD_BYTES_MAX,
            "a head of more than {HEAD_BYTES_MAX} bytes"
        );
        fill(stream, buffer, "in the head").await?;
        if std::mem::take(&mut first) {
            add(&shared.totals.first_byte_ns, nanos_since(shared, begun));
        }
    }
}

fn find_end(buffer: &[u8]) -> Option<usize> {
    let at = buffer.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(at + 4)
}

fn parse_head(head: &str) -> Result<AnswerHead> {
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or("");
    let code = status.split(' ').nth(1).unwrap_or("");
    ensure!(code.starts_with('2'), "answered {status:?}");
    let (mut len, mut keep_alive) = (None, false);
    for line in lines {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => len = value.parse().ok(),
            "connection" | "proxy-connection" => {
                keep_alive = value.eq_ignore_ascii_case("keep-alive");
            }
            _ => {}
        }
    }
    let Some(len) = len else {
        bail!("no Content-Length in {head:?}");
    };
    Ok(AnswerHead {
        head_len: head.len() as u64,
        len,
        keep_alive,
    })
}

async fn body(stream: &mut TcpStream, buffer: &mut BytesMut, document: &Document) -> Result<()> {
    let mut offset = 0;
    while offset < document.len {
        if buffer.is_empty() {
            fill(stream, buffer, "in the body").await?;
        }
        let left = usize::try_from(document.len - offset).unwrap_or(usize::MAX);
        let now = buffer.len().min(left);
        ensure!(
            document.holds(offset, &buffer[..now]),
            "wrong bytes in the {now} at {offset}"
        );
        buffer.advance(now);
        offset += now as u64;
    }
    Ok(())
}

async fn fill(stream: &mut TcpStream, buffer: &mut BytesMut, place: &str) -> Result<()> {
    buffer.reserve(READ_BYTES);
    let read = stream
        .read_buf(buffer)
        .await
        .with_context(|| format!("can't read {place}"))?;
    ensure!(read > 0, "the connection ended {place}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_may_keep_a_connection_by_either_field() {
        for field in ["Connection: keep-alive", "Proxy-Connection: Keep-Alive"] {
            let head = format!("HTTP/1.0 200 OK\r\nContent-Length: 7\r\n{field}\r\n\r\n");
            let parsed = parse_head(&head).unwrap();
            assert!(parsed.keep_alive, "{field}");
            assert_eq!(parsed.len, 7);
        }
        let closed = parse_head("HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\n").unwrap();
        assert!(!closed.keep_alive);
    }

    #[test]
    fn an_answer_that_is_no_success_or_has_no_length_is_an_error() {
        assert!(parse_head("HTTP/1.0 404 Not Found\r\nContent-Length: 7\r\n\r\n").is_err());
        assert!(parse_head("HTTP/1.0 200 OK\r\n\r\n").is_err());
    }
}
