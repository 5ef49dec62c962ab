//! An origin of HTTP/2 by the `h2` library, which does what a path asks for.

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// A request as it came in.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    pub(super) uri: String,
    pub(super) fields: HeaderMap,
    pub(super) body: Vec<u8>,
    pub(super) trailers: Option<HeaderMap>,
    /// Whether the body came to its end.
    pub(super) is_whole: bool,
}

/// What it has seen, and what it waits for.
pub(super) struct Notes {
    asked: Mutex<Vec<Asked>>,
    connections: Mutex<usize>,
    /// Requests for `/held` wait for a permit each.
    pub(super) gate: Semaphore,
}

/// The origin.
pub(super) struct H2Origin {
    pub(super) address: SocketAddr,
    pub(super) notes: Arc<Notes>,
}

impl H2Origin {
    /// In clear, or with that way to accept TLS.
    pub(super) fn start(tls: Option<TlsAcceptor>) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let origin = Self {
            address: listener.local_addr().unwrap(),
            notes: Arc::new(Notes {
                asked: Mutex::default(),
                connections: Mutex::default(),
                gate: Semaphore::new(0),
            }),
        };
        let notes = Arc::clone(&origin.notes);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(accept(listener, tls, notes));
        });
        origin
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.notes.asked.lock().unwrap().clone()
    }

    pub(super) fn connections(&self) -> usize {
        *self.notes.connections.lock().unwrap()
    }
}

async fn accept(listener: std::net::TcpListener, tls: Option<TlsAcceptor>, notes: Arc<Notes>) {
    let listener = TcpListener::from_std(listener).unwrap();
    while let Ok((socket, _)) = listener.accept().await {
        tokio::spawn(secure(socket, tls.clone(), Arc::clone(&notes)));
    }
}

async fn secure(socket: TcpStream, tls: Option<TlsAcceptor>, notes: Arc<Notes>) {
    match tls {
        None => serve(socket, notes).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(socket).await {
                serve(stream, notes).await;
            }
        }
    }
}

async fn serve<T: AsyncRead + AsyncWrite + Unpin>(io: T, notes: Arc<Notes>) {
    let connection = {
        let mut connections = notes.connections.lock().unwrap();
        *connections += 1;
        *connections
    };
    let Ok(mut streams) = h2::server::handshake(io).await else {
        return;
    };
    while let Some(Ok((request, respond))) = streams.accept().await {
        if request.uri().path() == "/last" {
            streams.graceful_shutdown();
        }
        tokio::spawn(answer(connection, request, respond, Arc::clone(&notes)));
    }
}

async fn answer(
    connection: usize,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    notes: Arc<Notes>,
) {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let mut asked = Asked {
        uri: head.uri.to_string(),
        fields: head.headers,
        ..Asked::default()
    };
    read(body, &mut asked).await;
    let length = asked.body.len();
    let earlier = {
        let mut all = notes.asked.lock().unwrap();
        all.push(asked);
        all.iter().filter(|one| one.uri.ends_with(&path)).count() - 1
    };
    match &*path {
        "/refused" if earlier == 0 => respond.send_reset(Reason::REFUSED_STREAM),
        "/fails" => respond.send_reset(Reason::INTERNAL_ERROR),
        "/silent" => std::future::pending().await,
        "/held" => {
            let held = notes.gate.acquire().await.unwrap();
            held.forget();
            whole(&mut respond, Bytes::from_static(b"held"));
        }
        "/window" => {
            let mut body = respond.send_response(Response::new(()), false).unwrap();
            body.reserve_capacity(1 << 20);
            let room = std::future::poll_fn(|cx| body.poll_capacity(cx)).await;
            let room = room.unwrap().unwrap().to_string();
            body.send_data(Bytes::from(room), true).unwrap();
        }
        "/large" => whole(&mut respond, Bytes::from(large())),
        "/early" => {
            let early = Response::builder().status(103).header("link", "</a>");
            let early = early.body(()).unwrap();
            respond.send_informational(early).unwrap();
            whole(&mut respond, Bytes::from_static(b"late"));
        }
        "/trailers" => {
            let mut body = respond.send_response(Response::new(()), false).unwrap();
            body.send_data(Bytes::from_static(b"before"), false)
                .unwrap();
            let mut trailers = HeaderMap::new();
            trailers.insert("x-sum", "7".parse().unwrap());
            body.send_trailers(trailers).unwrap();
        }
        "/broken" => {
            let head = Response::builder().header("content-length", "10");
            let head = head.body(()).unwrap();
            let mut body = respond.send_response(head, false).unwrap();
            body.send_data(Bytes::from_static(b"part"), false).unwrap();
            // The part is to be there before the end of it all.
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            body.send_reset(Reason::INTERNAL_ERROR);
        }
        _ => whole(&mut respond, Bytes::from(format!("{connection} {length}"))),
    }
}

/// A body of 5 MiB in which no two kilobytes are the same.
pub(super) fn large() -> Vec<u8> {
    (0..5 * 1024 * 1024_u32 / 4)
        .flat_map(u32::to_le_bytes)
        .collect()
}

fn whole(respond: &mut SendResponse<Bytes>, content: Bytes) {
    let head = Response::builder().header("content-length", content.len());
    let head = head.body(()).unwrap();
    if let Ok(mut body) = respond.send_response(head, false) {
        drop(body.send_data(content, true));
    }
}

async fn read(mut body: RecvStream, asked: &mut Asked) {
    while let Some(data) = body.data().await {
        let Ok(data) = data else { return };
        body.flow_control().release_capacity(data.len()).unwrap();
        asked.body.extend_from_slice(&data);
    }
    asked.trailers = body.trailers().await.unwrap_or_default();
    asked.is_whole = true;
}
