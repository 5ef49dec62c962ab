//! A proxy, scripted origins and clients in one thread, for the tests of what
//! lies behind a routed request.

use super::access_log::AccessLog;
use super::client::{ClientRead, ClientWrite};
use super::context::{Shared, WorkerContext};
use super::fill::{FillLimits, FillTable};
use super::h1::recorder::{Recorder, Writes};
use super::h1::{ClientConn, ConnOptions, Exchange};
use super::life::LifeControl;
use super::origin::{Place, Upstream};
use super::outcome::{Ended, Outcome};
use super::peer::Peer;
use super::routed::{Mode, Routed};
use super::snapshot::{Snapshot, SnapshotParts};
use crate::base::clock::{Clock, ManualClock, WallTime};
use crate::cache::options::CacheOptions;
use crate::cache::{Cache, CacheKey};
use crate::config::records::Records;
use crate::http::forwarding::ViaIdentity;
use crate::http::target::RequestUrl;
use crate::metrics::{Metric, Registry};
use arc_swap::ArcSwap;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};

/// When the tests' clock starts: 2026-01-01 00:00:00 UTC.
pub(super) const START: WallTime = WallTime::from_secs(1_767_225_600);

/// Runs a test where local tasks can be spawned.
pub(super) fn local<F: Future>(test: F) -> impl Future<Output = F::Output> {
    // A test holds whole configurations, which grow with the records.
    let test = Box::pin(test);
    async move { LocalSet::new().run_until(test).await }
}

/// What all threads of one proxy share, with the hand on its clock.
#[derive(Clone)]
pub(super) struct World {
    pub(super) shared: Shared,
    pub(super) clock: Arc<ManualClock>,
    pub(super) registry: Arc<Registry>,
    /// Keeps the stage of life from ending.
    _life: Arc<LifeControl>,
}

impl World {
    pub(super) fn new(records: Records) -> Self {
        let registry = Registry::new();
        let clock = Arc::new(ManualClock::at(START));
        let (control, life) = LifeControl::new();
        let as_clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let (cache, _) = Cache::open(CacheOptions::default(), Arc::clone(&as_clock), &registry);
        let identity = ViaIdentity {
            alias: "edge".to_owned(),
            uuid: "0000".to_owned(),
            product: "Strata".to_owned(),
        };
        let snapshot = Snapshot::new(1, SnapshotParts::of(records));
        let shared = Shared {
            tls: None,
            snapshot: Arc::new(ArcSwap::from_pointee(snapshot)),
            registry: Arc::clone(&registry),
            clock: as_clock,
            life,
            cache: Some(cache),
            fills: FillTable::new(FillLimits::default()),
            identity: Arc::new(identity),
            own: Arc::new([]),
            servers: Arc::default(),
            log: Arc::new(AccessLog::off()),
        };
        Self {
            shared,
            clock,
            registry,
            _life: Arc::new(control),
        }
    }

    pub(super) fn advance(&self, secs: u64) {
        self.clock.advance(Duration::from_secs(secs));
    }

    pub(super) fn count(&self, metric: Metric) -> u64 {
        self.registry.get(metric)
    }
}

/// One thread of a proxy in front of one origin.
#[derive(Clone)]
pub(super) struct Proxy {
    pub(super) world: World,
    ctx: Rc<WorkerContext>,
    origin: u16,
    ended: Rc<RefCell<Vec<Ended>>>,
}

impl Proxy {
    pub(super) fn new(world: &World, origin: u16) -> Self {
        Self {
            world: world.clone(),
            ctx: Rc::new(WorkerContext::new(world.shared.clone())),
            origin,
            ended: Rc::default(),
        }
    }

    /// What the transactions so far ended in.
    pub(super) fn outcomes(&self) -> Vec<&'static str> {
        let ended = self.ended.borrow();
        ended.iter().map(|ended| ended.outcome.label()).collect()
    }

    /// A new client connection.
    pub(super) fn client(&self) -> Client {
        let (near, far) = duplex(256 * 1024);
        let proxy = self.clone();
        let (read, write) = split(far);
        spawn_local(async move { proxy.serve(read, write).await });
        Client { stream: near }
    }

    /// A new client connection, what is written to which goes to `writes` too.
    pub(super) fn client_recorded(&self, writes: &Writes) -> Client {
        let (near, far) = duplex(256 * 1024);
        let proxy = self.clone();
        let (read, write) = split(far);
        let write = Recorder::new(write, writes);
        spawn_local(async move { proxy.serve(read, write).await });
        Client { stream: near }
    }

    /// One request on a connection of its own.
    pub(super) async fn get(&self, path: &str, fields: &str) -> Answer {
        self.ask("GET", path, fields).await
    }

    pub(super) async fn ask(&self, method: &str, path: &str, fields: &str) -> Answer {
        let mut client = self.client();
        client.send(&request(method, path, fields)).await;
        client.answer(method).await
    }

    async fn serve(&self, read: impl AsyncRead + Unpin, write: impl AsyncWrite + Unpin) {
        let mut conn = ClientConn::new(read, write, ConnOptions::default());
        while conn.ready().await {
            let Ok(exchange) = conn.request().await else {
                return;
            };
            let ended = self.exchange(exchange).await;
            ended.outcome.count(&self.ctx.cells, false);
            self.ended.borrow_mut().push(ended);
        }
        conn.close().await;
    }

    async fn exchange<R, W>(&self, exchange: Exchange<'_, R, W>) -> Ended
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let Exchange {
            head,
            body,
            mut reply,
        } = exchange;
        let routed = self.route(head);
        let ended = run(&self.ctx, &routed, body, &mut reply).await;
        if !reply.is_started() {
            reply.begin(StatusCode::from_u16(ended.status).unwrap());
            reply.send(b"", &[]).await.ok();
        }
        ended
    }

    fn route(&self, head: super::client::RequestHead) -> Routed {
        let url: RequestUrl = head.url().unwrap().clone();
        let upstream = Upstream {
            place: Place::http("127.0.0.1", self.origin),
            path_and_query: url.path_and_query().to_owned(),
            guard: None,
            options: None,
            introduction: None,
        };
        let at = "127.0.0.1:1".parse().unwrap();
        Routed {
            peer: Peer::new(at, at),
            policy: Arc::clone(&self.ctx.shared.snapshot.load().policy),
            snapshot: self.ctx.shared.snapshot.load_full(),
            mode: Mode::Reverse,
            upgrade: head.upgrade("websocket"),
            content: None,
            key: CacheKey::of_url(url.as_str().to_owned()),
            url,
            upstream,
            head,
            mono: self.world.clock.mono(),
        }
    }
}

async fn run<R, W>(ctx: &WorkerContext, routed: &Routed, body: R, reply: &mut W) -> Ended
where
    R: ClientRead,
    W: ClientWrite,
{
    match routed.head.method {
        Method::GET | Method::HEAD => super::cached::run(ctx, routed, body, reply).await,
        _ if routed.head.method.as_str() == "PURGE" => {
            let cache = ctx.shared.cache.as_ref().unwrap();
            let found = cache.purge(&routed.key).await.unwrap();
            Ended::new(Outcome::AnsweredPurged, if found { 200 } else { 404 })
        }
        _ => super::fetch::pass(ctx, routed, body, reply).await,
    }
}

/// The text of a request.
pub(super) fn request(method: &str, path: &str, fields: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n")
}

/// A client connection.
pub(super) struct Client {
    stream: DuplexStream,
}

/// A response as a client gets it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) fields: HeaderMap,
    pub(super) body: Vec<u8>,
    /// Whether the transfer ended as its framing said it would.
    pub(super) is_whole: bool,
}

impl Answer {
    pub(super) fn field(&self, name: &str) -> &str {
        self.fields
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub(super) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

impl Client {
    pub(super) async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// The next final response.
    pub(super) async fn answer(&mut self, method: &str) -> Answer {
        loop {
            let (status, fields) = self.head().await;
            if status >= 200 {
                return self.body(method, status, fields).await;
            }
        }
    }

    pub(super) async fn head(&mut self) -> (u16, HeaderMap) {
        let head = read_head(&mut self.stream).await;
        let mut lines = [httparse::EMPTY_HEADER; 64];
        let mut response = httparse::Response::new(&mut lines);
        response.parse(head.as_bytes()).unwrap();
        let mut fields = HeaderMap::new();
        for line in response.headers.iter() {
            let name: HeaderName = line.name.parse().unwrap();
            fields.append(name, HeaderValue::from_bytes(line.value).unwrap());
        }
        (response.code.unwrap(), fields)
    }

    async fn body(&mut self, method: &str, status: u16, fields: HeaderMap) -> Answer {
        let mut answer = Answer {
            status,
            fields,
            body: Vec::new(),
            is_whole: true,
        };
        if method == "HEAD" || status == 304 || status == 204 {
            return answer;
        }
        if answer.field("transfer-encoding") == "chunked" {
            answer.is_whole = self.chunks(&mut answer.body).await.is_some();
            return answer;
        }
        let length: usize = answer.field("content-length").parse().unwrap();
        answer.is_whole = self.bytes(length, &mut answer.body).await.is_some();
        answer
    }

    async fn bytes(&mut self, length: usize, body: &mut Vec<u8>) -> Option<()> {
        let length = u64::try_from(length).unwrap();
        let read = (&mut self.stream).take(length).read_to_end(body).await;
        let read = u64::try_from(read.ok()?).unwrap();
        (read == length).then_some(())
    }

    async fn chunks(&mut self, body: &mut Vec<u8>) -> Option<()> {
        loop {
            let mut line = Vec::new();
            while !line.ends_with(b"\r\n") {
                line.push(self.stream.read_u8().await.ok()?);
            }
            let size = usize::from_str_radix(std::str::from_utf8(&line).unwrap().trim(), 16);
            let size = size.unwrap();
            self.bytes(size, body).await?;
            self.bytes(2, &mut Vec::new()).await?;
            if size == 0 {
                return Some(());
            }
        }
    }
}

async fn read_head<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// An origin that answers every request as `script` says, and remembers them.
#[derive(Clone)]
pub(super) struct Origin {
    pub(super) port: u16,
    seen: Rc<RefCell<Vec<String>>>,
}

/// What an origin does with one request.
pub(super) struct Script {
    /// Written at once, raw.
    pub(super) text: String,
    /// Then, when this is told, `rest` is written.
    pub(super) gate: Option<Rc<tokio::sync::Notify>>,
    pub(super) rest: String,
    /// Then the connection is closed.
    pub(super) close: bool,
}

impl From<&str> for Script {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Script {
    fn from(text: String) -> Self {
        Self {
            text,
            gate: None,
            rest: String::new(),
            close: false,
        }
    }
}

impl Origin {
    /// `script` gets the request's head and how many came before it.
    pub(super) async fn start<T: Into<Script>>(
        script: impl Fn(&str, usize) -> T + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = Self {
            port: listener.local_addr().unwrap().port(),
            seen: Rc::default(),
        };
        let accept = origin.clone();
        let script = Rc::new(move |head: &str, nth| script(head, nth).into());
        spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (origin, script) = (accept.clone(), Rc::clone(&script));
                spawn_local(async move { origin.serve(stream, &*script).await });
            }
        });
        origin
    }

    /// The requests so far.
    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.borrow().clone()
    }

    pub(super) fn count(&self) -> usize {
        self.seen.borrow().len()
    }

    async fn serve(&self, mut stream: TcpStream, script: &dyn Fn(&str, usize) -> Script) {
        loop {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = stream.read_u8().await else {
                    return;
                };
                head.push(byte);
            }
            let head = String::from_utf8(head).unwrap();
            let nth = self.count();
            self.seen.borrow_mut().push(head.clone());
            let script = script(&head, nth);
            stream.write_all(script.text.as_bytes()).await.ok();
            if let Some(gate) = script.gate {
                gate.notified().await;
                stream.write_all(script.rest.as_bytes()).await.ok();
            }
            if script.close {
                return;
            }
        }
    }
}

/// A 200 with these fields and body.
pub(super) fn ok(fields: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n{body}",
        body.len()
    )
}
