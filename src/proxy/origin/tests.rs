//! The pool against a scripted origin.

use super::*;
use crate::base::clock::SystemClock;
use crate::config::records::Records;
use crate::metrics::Registry;
use crate::proxy::resolve::ResolverOptions;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::LocalSet;

struct Bench {
    pool: OriginPool,
    registry: Arc<Registry>,
    listener: TcpListener,
    port: u16,
}

impl Bench {
    async fn new(options: OriginOptions) -> Self {
        let registry = Registry::new();
        let names = NameSources::read(ResolverOptions::default()).into();
        let resolver = Resolver::new(names, registry.cells());
        let parts = PoolParts {
            counts: Arc::default(),
            cells: registry.cells(),
            clock: Arc::new(SystemClock::new()),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        Self {
            pool: OriginPool::new(Arc::new(options), resolver, parts),
            registry,
            listener,
            port,
        }
    }

    fn request(&self, method: Method) -> OriginRequest {
        let upstream = Upstream {
            place: Place::http("127.0.0.1", self.port),
            path_and_query: "/x".to_owned(),
            guard: None,
            options: None,
            introduction: None,
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("a"));
        OriginRequest::new(upstream, method, headers)
    }

    /// Sends a GET and answers it with `answer` on a new connection.
    async fn get(&self, answer: &str) -> (Result<OriginResponse, OriginError>, TcpStream) {
        let origin = async {
            let (mut stream, _) = self.listener.accept().await.unwrap();
            read_head(&mut stream).await;
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream
        };
        tokio::join!(self.pool.send(self.request(Method::GET)), origin)
    }
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

async fn whole(mut response: OriginResponse) -> Result<Vec<u8>, OriginError> {
    let mut all = Vec::new();
    while let Some(part) = response.body.next().await? {
        all.extend_from_slice(&part);
    }
    Ok(all)
}

/// What a GET that is answered so comes to, its body read to the end; whether
/// the origin then closes.
async fn answered(answer: &str, closes: bool) -> Result<Vec<u8>, OriginError> {
    let bench = Bench::new(OriginOptions::default()).await;
    let (response, stream) = bench.get(answer).await;
    let _kept = (!closes).then_some(stream);
    whole(response?).await
}

async fn local<F: Future>(test: F) -> F::Output {
    LocalSet::new().run_until(test).await
}

#[tokio::test]
async fn a_kept_connection_carries_the_next_request() {
    local(async {
        let bench = Bench::new(OriginOptions::default()).await;
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let (response, mut stream) = bench.get(ok).await;
        assert_eq!(whole(response.unwrap()).await.unwrap(), b"ok");
        let origin = async {
            read_head(&mut stream).await;
            stream.write_all(ok.as_bytes()).await.unwrap();
        };
        let (second, ()) = tokio::join!(bench.pool.send(bench.request(Method::GET)), origin);
        assert_eq!(whole(second.unwrap()).await.unwrap(), b"ok");
        assert_eq!(bench.registry.get(Metric::OriginReuse), 1);
        assert_eq!(bench.registry.get(Metric::OriginMakeNew), 1);
    })
    .await;
}

#[tokio::test]
async fn ambiguous_framing_is_refused() {
    local(async {
        for fields in [
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            "Transfer-Encoding: chunked, identity\r\n",
            "Transfer-Encoding: gzip, chunked, x\r\n",
            "Transfer-Encoding: xchunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: 5,6\r\n",
            "Content-Length: 18446744073709551616\r\n",
            "Content-Length : 5\r\n",
            "X: a\r\n b\r\nContent-Length: 5\r\n",
        ] {
            let answer = format!("HTTP/1.1 200 OK\r\n{fields}\r\n5\r\nhello\r\n0\r\n\r\n");
            let error = answered(&answer, false).await.expect_err(fields);
            assert!(
                matches!(error, OriginError::Malformed(_)),
                "{fields}: {error}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn an_early_close_is_an_error_not_an_end() {
    local(async {
        for answer in [
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello",
        ] {
            let error = answered(answer, true).await.expect_err(answer);
            assert!(
                matches!(error, OriginError::Closed(_)),
                "{answer}: {error:?}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_broken_chunk_is_malformed() {
    local(async {
        for body in [
            "5\r\nhelloXX0\r\n\r\n",
            "zz\r\nhello\r\n",
            "5\nhello\r\n0\r\n\r\n",
        ] {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let answer = format!("{head}{body}");
            let error = answered(&answer, false).await.expect_err(body);
            assert!(
                matches!(error, OriginError::Malformed(_)),
                "{body:?}: {error:?}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn trailers_come_after_the_end() {
    local(async {
        let bench = Bench::new(OriginOptions::default()).await;
        let answer =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n";
        let (response, _stream) = bench.get(answer).await;
        let mut response = response.unwrap();
        while response.body.next().await.unwrap().is_some() {}
        assert_eq!(response.body.trailers().unwrap()["x-sum"], "7");
    })
    .await;
}

#[tokio::test]
async fn interim_responses_are_handed_on() {
    local(async {
        let bench = Bench::new(OriginOptions::default()).await;
        let (to, mut interim) = mpsc::channel(4);
        let mut request = bench.request(Method::GET);
        request.interim = Some(to);
        let origin = async {
            let (mut stream, _) = bench.listener.accept().await.unwrap();
            read_head(&mut stream).await;
            let answer =
                "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream
        };
        let (response, _stream) = tokio::join!(bench.pool.send(request), origin);
        assert_eq!(response.unwrap().status, 204);
        let (status, fields) = interim.recv().await.unwrap();
        assert_eq!(
            (status.as_u16(), &fields["link"]),
            (103, &HeaderValue::from_static("</a>"))
        );
    })
    .await;
}

#[tokio::test]
async fn a_request_is_sent_again_when_a_kept_connection_was_closed() {
    local(async {
        let bench = Bench::new(OriginOptions::default()).await;
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let (response, mut stream) = bench.get(ok).await;
        whole(response.unwrap()).await.unwrap();
        let origin = async {
            read_head(&mut stream).await;
            drop(stream);
            let (mut stream, _) = bench.listener.accept().await.unwrap();
            read_head(&mut stream).await;
            stream.write_all(ok.as_bytes()).await.unwrap();
            stream
        };
        let (again, _stream) = tokio::join!(bench.pool.send(bench.request(Method::GET)), origin);
        assert_eq!(whole(again.unwrap()).await.unwrap(), b"ok");
    })
    .await;
}

#[tokio::test]
async fn a_post_that_was_sent_is_never_sent_again() {
    local(async {
        let bench = Bench::new(OriginOptions::default()).await;
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        let (response, mut stream) = bench.get(ok).await;
        whole(response.unwrap()).await.unwrap();
        let origin = async {
            read_head(&mut stream).await;
            drop(stream);
        };
        let (post, ()) = tokio::join!(bench.pool.send(bench.request(Method::POST)), origin);
        assert!(matches!(post, Err(OriginError::Closed(_))));
        assert_eq!(bench.registry.get(Metric::OriginMakeNew), 1);
    })
    .await;
}

#[tokio::test]
async fn a_request_body_is_streamed_with_its_length_or_in_chunks() {
    local(async {
        for (length, framing) in [
            (Some(5), "content-length: 5"),
            (None, "transfer-encoding: chunked"),
        ] {
            let bench = Bench::new(OriginOptions::default()).await;
            let (sender, body) = RequestBody::streamed(length);
            let mut request = bench.request(Method::POST);
            request.body = body;
            let feed = async {
                assert!(sender.send(Bytes::from_static(b"he")).await);
                assert!(sender.send(Bytes::from_static(b"llo")).await);
                sender.finish(None).await;
            };
            let origin = async {
                let (mut stream, _) = bench.listener.accept().await.unwrap();
                let head = read_head(&mut stream).await;
                let mut body = [0; 5];
                if length.is_some() {
                    stream.read_exact(&mut body).await.unwrap();
                    assert_eq!(&body, b"hello");
                }
                stream
                    .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
                    .await
                    .unwrap();
                (head, stream)
            };
            let (response, (head, _stream), ()) =
                tokio::join!(Box::pin(bench.pool.send(request)), origin, feed);
            assert_eq!(response.unwrap().status, 204);
            assert!(head.to_lowercase().contains(framing), "{head}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_request_body_that_breaks_off_is_the_clients_fault() {
    local(async {
        let bench = Bench::new(OriginOptions::default()).await;
        let (sender, body) = RequestBody::streamed(None);
        let mut request = bench.request(Method::POST);
        request.body = body;
        let feed = async {
            sender.send(Bytes::from_static(b"he")).await;
            drop(sender);
        };
        let origin = async {
            let (mut stream, _) = bench.listener.accept().await.unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).await.ok();
            all
        };
        let (response, sent, ()) = tokio::join!(Box::pin(bench.pool.send(request)), origin, feed);
        assert!(
            matches!(response, Err(OriginError::RequestBody(_))),
            "{response:?}"
        );
        assert!(!sent.ends_with(b"0\r\n\r\n"));
    })
    .await;
}

#[tokio::test]
async fn the_address_that_is_checked_is_the_one_that_counts() {
    local(async {
        let bench = Bench::new(OriginOptions::default()).await;
        let mut request = bench.request(Method::GET);
        request.upstream.guard = Some(Rc::new(|ip| Err(format!("{ip} is denied"))));
        let error = bench.pool.send(request).await.unwrap_err();
        assert!(matches!(error, OriginError::Refused { .. }));
        assert_eq!(error.answer().code(), 403);
    })
    .await;
}

#[tokio::test]
async fn a_kept_connection_to_a_denied_address_is_not_used() {
    local(async {
        let bench = Bench::new(OriginOptions::default()).await;
        let (response, _stream) = bench.get("HTTP/1.1 204 No Content\r\n\r\n").await;
        response.unwrap();
        let mut request = bench.request(Method::GET);
        request.upstream.guard = Some(Rc::new(|_| Err("denied".to_owned())));
        let error = bench.pool.send(request).await.unwrap_err();
        assert!(matches!(error, OriginError::Refused { .. }));
        assert_eq!(bench.registry.get(Metric::OriginReuse), 0);
    })
    .await;
}

#[tokio::test]
async fn a_silent_origin_times_out() {
    local(async {
        let options = OriginOptions {
            no_activity: Duration::from_millis(20),
            ..OriginOptions::default()
        };
        let bench = Bench::new(options).await;
        let error = bench
            .pool
            .send(bench.request(Method::GET))
            .await
            .unwrap_err();
        assert!(matches!(error, OriginError::Stalled(_)));
        assert_eq!(error.answer().code(), 504);
    })
    .await;
}

#[tokio::test]
async fn no_more_connections_than_the_limit_are_opened() {
    local(async {
        let options = OriginOptions {
            per_server_max: 1,
            ..OriginOptions::default()
        };
        let bench = Bench::new(options).await;
        let (held, stream) = bench
            .get("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
            .await;
        let error = bench
            .pool
            .send(bench.request(Method::GET))
            .await
            .unwrap_err();
        assert!(matches!(error, OriginError::Busy(1)));
        drop((held, stream));
    })
    .await;
}

#[tokio::test]
async fn a_refused_connection_is_named() {
    local(async {
        let bench = Bench::new(OriginOptions::default()).await;
        let request = bench.request(Method::GET);
        drop(bench.listener);
        let error = bench.pool.send(request).await.unwrap_err();
        assert!(matches!(error, OriginError::Connect { .. }));
        assert_eq!(error.answer().code(), 502);
    })
    .await;
}

/// A port whose queue is full, so that connecting to it takes for ever.
fn deaf() -> (socket2::Socket, Vec<std::net::TcpStream>) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    socket.listen(0).unwrap();
    let at = socket.local_addr().unwrap().as_socket().unwrap();
    let patience = Duration::from_millis(200);
    let connect = || std::net::TcpStream::connect_timeout(&at, patience).ok();
    (socket, std::iter::from_fn(connect).collect())
}

#[tokio::test(start_paused = true)]
async fn connecting_is_tried_as_often_and_for_as_long_as_the_records_say() {
    local(async {
        let options = OriginOptions::from_records(&Records {
            http_connect_attempts_timeout: 7,
            http_connect_attempts_max_retries: 2,
            ..Records::default()
        });
        let mut bench = Bench::new(options).await;
        let (socket, _waiting) = deaf();
        let at = socket.local_addr().unwrap().as_socket().unwrap();
        bench.port = at.port();
        let begun = tokio::time::Instant::now();
        let error = bench.pool.send(bench.request(Method::GET)).await;
        let error = error.unwrap_err();
        assert!(
            matches!(error, OriginError::ConnectTimeout { .. }),
            "{error}"
        );
        assert_eq!(begun.elapsed().as_secs(), 3 * 7);
    })
    .await;
}
