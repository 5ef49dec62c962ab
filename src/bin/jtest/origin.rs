//! The origin: serves every document from its path alone.

use crate::Shared;
use crate::document::Document;
use crate::report::add;
use anyhow::{Context, Result};
use bytes::{Buf, BytesMut};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use strata::base::prng::Prng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4096;
/// The largest request head taken, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Begins to listen, and serves as tasks of this thread.
pub(crate) async fn listen(shared: &Rc<Shared>) -> Result<()> {
    let listener = bind(shared).with_context(|| format!("can't listen on {}", shared.origin))?;
    let shared = Rc::clone(shared);
    tokio::task::spawn_local(accept(listener, shared));
    Ok(())
}

fn bind(shared: &Shared) -> io::Result<TcpListener> {
    let socket = match shared.origin {
        std::net::SocketAddr::V4(_) => TcpSocket::new_v4()?,
        std::net::SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(shared.origin)?;
    socket.listen(BACKLOG)
}

async fn accept(listener: TcpListener, shared: Rc<Shared>) {
    let prng = Rc::new(RefCell::new(Prng::seeded(shared.args.drand_seed)));
    while let Ok((stream, _)) = listener.accept().await {
        let (shared, prng) = (shared.clone(), prng.clone());
        tokio::task::spawn_local(async move {
            add(&shared.totals.servers_new, 1);
            add(&shared.totals.servers_open, 1);
            // A proxy may hang up whenever it likes; its client tells of faults.
            drop(serve(&shared, &prng, stream).await);
            add(&shared.totals.servers_open, u64::MAX);
        });
    }
}

async fn serve(shared: &Shared, prng: &RefCell<Prng>, mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let limit = match shared.args.server_keepalive {
        0 => u32::MAX,
        limit => limit,
    };
    let mut buffer = BytesMut::with_capacity(4096);
    for left in (0..limit).rev() {
        let Some(request) = request(&mut stream, &mut buffer).await? else {
            return Ok(());
        };
        let keep_alive = request.keep_alive && left > 0;
        let unchanged = request.conditional && prng.borrow_mut().fraction() < shared.args.ims_rate;
        let sent = respond(&mut stream, &request, keep_alive, unchanged).await?;
        add(&shared.totals.server_ops, 1);
        add(&shared.totals.server_bytes, sent);
        if !keep_alive {
            return stream.shutdown().await;
        }
    }
    Ok(())
}

/// What matters of a request.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    document: Option<Document>,
    keep_alive: bool,
    conditional: bool,
}

async fn request(stream: &mut TcpStream, buffer: &mut BytesMut) -> io::Result<Option<Request>> {
    loop {
        let end = buffer.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            buffer.advance(end + 4);
            return Ok(Some(parse_request(&head)));
        }
        if buffer.len() > HEAD_BYTES_MAX || stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

fn parse_request(head: &str) -> Request {
    let lower = head.to_ascii_lowercase();
    let target = head.split(' ').nth(1).unwrap_or("");
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.split_once('/').map_or("", |(_, path)| path),
        None => target.trim_start_matches('/'),
    };
    let has = |field: &str| lower.contains(&format!("\r\n{field}"));
    let is_1_1 = lower.lines().next().unwrap_or("").ends_with("http/1.1");
    Request {
        document: Document::of_path(&format!("/{path}")),
        keep_alive: has("connection: keep-alive") || (is_1_1 && !has("connection: close")),
        conditional: has("if-modified-since:"),
    }
}

async fn respond(
    stream: &mut TcpStream,
    request: &Request,
    keep_alive: bool,
    unchanged: bool,
) -> io::Result<u64> {
    let connection = if keep_alive { "Keep-Alive" } else { "close" };
    let Some(document) = &request.document else {
        let head = format!(
            "HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\nConnection: {connection}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        return Ok(head.len() as u64);
    };
    let status = if unchanged {
        "304 Not Modified"
    } else {
        "200 OK"
    };
    let len = document.len;
    let head = format!(
        "HTTP/1.0 {status}\r\nContent-Type: text/html\r\nCache-Control: max-age=630720000\r\n\
         Last-Modified: Tue, 05 Oct 2010 01:00:00 GMT\r\nContent-Length: {len}\r\n\
         Connection: {connection}\r\n\r\n"
    );
    let mut sent = head.len() as u64;
    let mut first = head.into_bytes();
    if unchanged {
        stream.write_all(&first).await?;
        return Ok(sent);
    }
    first.extend_from_slice(document.piece(0));
    stream.write_all(&first).await?;
    let mut offset = document.piece(0).len() as u64;
    while offset < len {
        let piece = document.piece(offset);
        stream.write_all(piece).await?;
        offset += piece.len() as u64;
    }
    sent += len;
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_target_name_the_same_document() {
        let origin_form = parse_request("GET /1.5000000000/300 HTTP/1.1\r\nHost: a");
        let absolute = parse_request("GET http://a:9080/1.5000000000/300 HTTP/1.1\r\nHost: a");
        assert_eq!(origin_form, absolute);
        assert_eq!(origin_form.document.unwrap().len, 300);
        assert!(origin_form.keep_alive);
    }

    #[test]
    fn a_1_0_connection_is_kept_only_when_asked() {
        assert!(!parse_request("GET /1.0/3 HTTP/1.0").keep_alive);
        assert!(parse_request("GET /1.0/3 HTTP/1.0\r\nConnection: Keep-Alive").keep_alive);
    }
}
