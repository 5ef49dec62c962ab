//! The admin listener: metrics and health over HTTP, read-only.

use super::accept;
use super::life::Phase;
use crate::base::clock::Clock;
use crate::metrics::{Collector, export};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Connections served at once; more wait in the listen queue.
const CONNECTIONS_MAX: usize = 64;

/// How long a request head may take to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection may live, idle or not.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(120);

const TEXT: &str = "text/plain; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
const JSON: &str = "application/json";

/// Whether the server is ready, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// The stage of its life.
    pub phase: Phase,
    /// What is missing, a clause each; empty when nothing is.
    pub reasons: Vec<String>,
}

impl Readiness {
    /// Ports bound, every stripe judged, not on the way out.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.phase == Phase::Running && self.reasons.is_empty()
    }

    fn text(&self) -> String {
        if self.is_ready() {
            return "ready\n".into();
        }
        let phase = (self.phase != Phase::Running).then(|| self.phase.word());
        let reasons = self.reasons.iter().map(String::as_str);
        let missing: Vec<&str> = phase.into_iter().chain(reasons).collect();
        format!("not ready: {}\n", missing.join("\n"))
    }
}

/// What the pages are made from.
pub struct Pages {
    /// The metrics.
    pub collector: Arc<Collector>,
    /// The time of a reading.
    pub clock: Arc<dyn Clock>,
    /// Judges readiness when asked.
    pub readiness: Arc<dyn Fn() -> Readiness + Send + Sync>,
    /// The certificates that clients are given, as JSON.
    pub certificates: Box<dyn Fn() -> String + Send>,
    /// Whether a request's Host may have this name, besides 127.0.0.1, `[::1]`
    /// and localhost; it comes without port, in lower case.
    pub is_host: Box<dyn Fn(&str) -> bool + Send>,
}

type Page = Response<Full<Bytes>>;

impl Pages {
    /// Answers one request by its method, Host and path.
    #[must_use]
    pub fn answer(&self, method: &Method, host: Option<&HeaderValue>, path: &str) -> Page {
        if !self.is_ours(host) {
            let text = "this listener answers for local names only\n";
            return page(StatusCode::MISDIRECTED_REQUEST, TEXT, text);
        }
        if method != Method::GET && method != Method::HEAD {
            let mut refusal = page(StatusCode::METHOD_NOT_ALLOWED, TEXT, "read-only\n");
            let allow = HeaderValue::from_static("GET, HEAD");
            refusal.headers_mut().insert(ALLOW, allow);
            return refusal;
        }
        self.get(path)
    }

    fn get(&self, path: &str) -> Page {
        match path {
            "/metrics" => page(StatusCode::OK, PROMETHEUS, self.metrics()),
            "/_stats" => page(StatusCode::OK, JSON, self.stats()),
            "/certificates" => page(StatusCode::OK, JSON, (self.certificates)()),
            "/healthz" => page(StatusCode::OK, TEXT, "ok\n"),
            "/readyz" => self.readyz(),
            _ => page(StatusCode::NOT_FOUND, TEXT, "no such page\n"),
        }
    }

    fn metrics(&self) -> String {
        export::prometheus(&self.collector.scrape(self.clock.mono()))
    }

    fn stats(&self) -> String {
        let scrape = self.collector.scrape(self.clock.mono());
        export::stats_json(&scrape, env!("CARGO_PKG_VERSION"))
    }

    fn readyz(&self) -> Page {
        let readiness = (self.readiness)();
        let status = if readiness.is_ready() {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        page(status, TEXT, readiness.text())
    }

    /// A web page that an operator visits can make their browser ask this
    /// listener under a name that resolves to it; such a name is not ours.
    fn is_ours(&self, host: Option<&HeaderValue>) -> bool {
        let Some(host) = host.and_then(|value| value.to_str().ok()) else {
            return false;
        };
        let name = without_port(host).to_ascii_lowercase();
        let local = ["127.0.0.1", "[::1]", "localhost"];
        local.contains(&name.as_str()) || (self.is_host)(&name)
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

fn page(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Page {
    let mut page = Response::new(Full::new(text.into()));
    *page.status_mut() = status;
    let fields = page.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    page
}

/// Serves the listener until dropped; runs inside a `LocalSet`.
pub async fn serve(listener: TcpListener, pages: Rc<Pages>) {
    let accept = async || Ok(listener.accept().await?.0);
    let bounded = |stream| {
        let served = converse(stream, Rc::clone(&pages));
        async { drop(tokio::time::timeout(CONNECTION_TIMEOUT, served).await) }
    };
    accept::serve("admin listener", CONNECTIONS_MAX, accept, bounded).await;
}

async fn converse(stream: TcpStream, pages: Rc<Pages>) {
    let service = service_fn(|request: Request<Incoming>| {
        let answer = pages.answer(request.method(), named(&request), request.uri().path());
        async move { Ok::<_, Infallible>(answer) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "admin connection ended early");
    }
}

/// The one Host field. A target in absolute form names its host a second time
/// and overrules the field (RFC 9112 3.2.2); no scraper sends one, so it is
/// not answered.
fn named<B>(request: &Request<B>) -> Option<&HeaderValue> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next();
    let only = hosts.next().is_none() && request.uri().authority().is_none();
    host.filter(|_| only)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::SystemClock;
    use crate::metrics::Registry;
    use http_body_util::BodyExt;

    fn pages(readiness: Readiness) -> Pages {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        Pages {
            certificates: Box::new(String::new),
            collector: Arc::new(Collector::new(Registry::new(), clock.mono())),
            clock,
            readiness: Arc::new(move || readiness.clone()),
            is_host: Box::new(|name| name == "cache.example"),
        }
    }

    fn running() -> Pages {
        pages(Readiness {
            phase: Phase::Running,
            reasons: Vec::new(),
        })
    }

    fn status(pages: &Pages, host: &str, path: &str) -> u16 {
        let host = HeaderValue::from_str(host).unwrap();
        pages
            .answer(&Method::GET, Some(&host), path)
            .status()
            .as_u16()
    }

    async fn text(page: Page) -> String {
        let bytes = page.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn only_local_and_configured_names_are_answered() {
        let pages = running();
        for host in [
            "127.0.0.1",
            "127.0.0.1:8083",
            "[::1]:8083",
            "LocalHost:1",
            "cache.example",
        ] {
            assert_eq!(status(&pages, host, "/healthz"), 200, "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "",
            "[::1",
            "::1:x",
        ] {
            assert_eq!(status(&pages, host, "/healthz"), 421, "{host}");
        }
        assert_eq!(pages.answer(&Method::GET, None, "/healthz").status(), 421);
    }

    #[test]
    fn a_second_host_makes_the_first_one_void() {
        let request = |uri: &str, hosts: &[&str]| {
            let mut request = Request::get(uri);
            for host in hosts {
                request = request.header(HOST, *host);
            }
            request.body(()).unwrap()
        };
        assert!(named(&request("/", &["localhost"])).is_some());
        assert!(named(&request("/", &["localhost", "evil.example"])).is_none());
        assert!(named(&request("http://evil.example/", &["localhost"])).is_none());
    }

    #[test]
    fn nothing_but_reading_is_allowed() {
        let host = HeaderValue::from_static("localhost");
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::CONNECT] {
            let answer = running().answer(&method, Some(&host), "/metrics");
            assert_eq!(answer.status(), 405, "{method}");
        }
        assert_eq!(status(&running(), "localhost", "/other"), 404);
    }

    #[tokio::test]
    async fn readyz_gives_each_reason_for_not_being_ready() {
        let missing = pages(Readiness {
            phase: Phase::Running,
            reasons: vec!["span /dev/sdb is not ours".into()],
        });
        let answer = missing.get("/readyz");
        assert_eq!(answer.status(), 503);
        let said = text(answer).await;
        assert_eq!(said, "not ready: span /dev/sdb is not ours\n");
        let starting = pages(Readiness {
            phase: Phase::Starting,
            reasons: vec!["stripes are still being read".into()],
        });
        let said = text(starting.get("/readyz")).await;
        assert_eq!(said, "not ready: starting\nstripes are still being read\n");
        assert_eq!(running().get("/readyz").status(), 200);
    }

    #[tokio::test]
    async fn metrics_and_stats_are_pages() {
        let pages = running();
        assert!(text(pages.get("/metrics")).await.contains("\nramhit 0\n"));
        let stats = text(pages.get("/_stats")).await;
        assert!(stats.starts_with("{\"global\":"), "{stats}");
    }
}
