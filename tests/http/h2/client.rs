//! A client by the `h2` library.

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// How long a test waits before it fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a client's side of a test.
pub(super) fn run<F: Future>(side: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let side = async { tokio::time::timeout(PATIENCE, side).await };
    runtime.block_on(side).expect("done in time")
}

/// A response as it arrived.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) fields: HeaderMap,
    pub(super) body: Vec<u8>,
    pub(super) trailers: Option<HeaderMap>,
}

impl Answer {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(super) fn field(&self, name: &str) -> &str {
        let value = self.fields.get(name);
        value.map_or("", |value| value.to_str().unwrap())
    }
}

/// A connection to the proxy.
#[derive(Clone)]
pub(super) struct H2Client {
    send: SendRequest<Bytes>,
}

impl H2Client {
    pub(super) async fn connect(address: SocketAddr) -> Self {
        Self::connect_as(address, &Builder::new()).await
    }

    pub(super) async fn connect_as(address: SocketAddr, builder: &Builder) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap(), builder).await
    }

    /// A connection over a stream that speaks HTTP/2.
    pub(super) async fn over<T>(stream: T, builder: &Builder) -> Self
    where
        T: AsyncRead + AsyncWrite + Unpin + 'static + Send,
    {
        let (send, connection) = builder.handshake(stream).await.unwrap();
        // How it ends is seen by its streams.
        tokio::spawn(async move { drop(connection.await) });
        Self { send }
    }

    /// Whether the connection takes another request.
    pub(super) async fn is_open(&self) -> bool {
        self.send.clone().ready().await.is_ok()
    }

    /// Whether the proxy has said that it knows extended CONNECT.
    pub(super) fn knows_extended_connect(&self) -> bool {
        self.send.is_extended_connect_protocol_enabled()
    }

    /// Sends a head; `ends` says that no body follows.
    pub(super) async fn begin(
        &self,
        request: Request<()>,
        ends: bool,
    ) -> (ResponseFuture, SendStream<Bytes>) {
        let mut send = self.send.clone().ready().await.unwrap();
        send.send_request(request, ends).unwrap()
    }

    /// Sends a request and reads its response to the end.
    pub(super) async fn ask(&self, request: Request<()>) -> Result<Answer, h2::Error> {
        whole(self.begin(request, true).await.0.await?).await
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.ask(request("GET", path)).await.unwrap()
    }
}

/// A request for a path of the host `h`.
pub(super) fn request(method: &str, path: &str) -> Request<()> {
    let request = Request::builder().method(method);
    let request = request
        .uri(format!("http://h{path}"))
        .version(http::Version::HTTP_2);
    request.body(()).unwrap()
}

/// A response to its end.
pub(super) async fn whole(response: Response<RecvStream>) -> Result<Answer, h2::Error> {
    let (head, mut recv) = response.into_parts();
    let mut body = Vec::new();
    while let Some(part) = recv.data().await {
        let part = part?;
        recv.flow_control().release_capacity(part.len())?;
        body.extend_from_slice(&part);
    }
    Ok(Answer {
        status: head.status.as_u16(),
        fields: head.headers,
        body,
        trailers: recv.trailers().await?,
    })
}
