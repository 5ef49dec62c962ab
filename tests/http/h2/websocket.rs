//! Tunnels over a stream: CONNECT (RFC 9113 8.5) and extended CONNECT for
//! WebSocket (RFC 8441).

use super::client::{H2Client, request, run};
use super::raw::{GET, Raw};
use super::{ON, proxy};
use crate::support::{Origin, Proxy, Recorded, ok, until};
use base64::prelude::{BASE64_STANDARD, Engine};
use bytes::Bytes;
use h2::ext::Protocol;
use http::Request;
use sha1_smol::Sha1;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use strata::metrics::Metric;

/// Switches whoever asks for it, and sends back whatever comes.
fn echo(request: &Recorded, mut stream: &TcpStream) -> bool {
    if request.fields("upgrade").is_empty() || request.target() == "/refused" {
        return stream.write_all(&ok("plain")).is_ok();
    }
    let switch = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                   Connection: Upgrade\r\nSec-WebSocket-Protocol: chat\r\n";
    let mut proof = Sha1::new();
    proof.update(request.fields("sec-websocket-key")[0].as_bytes());
    proof.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    let proof = BASE64_STANDARD.encode(proof.digest().bytes());
    let accept = format!("Sec-WebSocket-Accept: {proof}\r\n\r\nhi");
    stream
        .write_all(&[&switch[..], accept.as_bytes()].concat())
        .unwrap();
    send_back(stream);
    false
}

fn send_back(mut stream: &TcpStream) {
    let mut buffer = [0; 1000];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
}

fn connect(path: &str, protocol: &str) -> Request<()> {
    let mut ask = request("CONNECT", path);
    ask.extensions_mut().insert(Protocol::from(protocol));
    ask
}

/// A client that has learnt that it may.
async fn client(proxy: &Proxy) -> H2Client {
    let client = H2Client::connect(proxy.address).await;
    client.get("/plain").await;
    assert!(client.knows_extended_connect());
    client
}

/// The next so many bytes of a tunnel.
async fn bytes(recv: &mut h2::RecvStream, count: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < count {
        let part = recv.data().await.unwrap().unwrap();
        recv.flow_control().release_capacity(part.len()).unwrap();
        all.extend_from_slice(&part);
    }
    all
}

/// Whether the stream ends without another byte.
async fn ends(recv: &mut h2::RecvStream) -> bool {
    while let Some(part) = recv.data().await {
        if !part.unwrap().is_empty() {
            return false;
        }
    }
    true
}

#[test]
fn a_websocket_passes_both_ways_over_a_stream() {
    let origin = Origin::speaking(echo);
    let proxy = proxy("", &origin);
    run(async {
        let client = client(&proxy).await;
        let (response, mut send) = client.begin(connect("/chat", "websocket"), false).await;
        let (head, mut recv) = response.await.unwrap().into_parts();
        assert_eq!(head.status, 200);
        for gone in [
            "upgrade",
            "connection",
            "sec-websocket-accept",
            "content-length",
        ] {
            assert!(!head.headers.contains_key(gone), "{gone}");
        }
        assert_eq!(head.headers["sec-websocket-protocol"], "chat");
        assert_eq!(bytes(&mut recv, 2).await, b"hi");
        for text in ["first", "second"] {
            send.send_data(Bytes::from(text), false).unwrap();
            assert_eq!(bytes(&mut recv, text.len()).await, text.as_bytes());
        }
        send.send_data(Bytes::from_static(b"last"), true).unwrap();
        assert_eq!(bytes(&mut recv, 4).await, b"last");
        assert!(ends(&mut recv).await, "the origin's end is the stream's");
        assert_eq!(client.get("/plain").await.text(), "plain");
    });
    until("the outcome", || proxy.counter(Metric::OutcomeTunnel) == 1);
    let requests = origin.requests();
    let seen = requests
        .iter()
        .find(|seen| seen.target() == "/chat")
        .unwrap();
    assert!(
        seen.head.starts_with("GET /chat HTTP/1.1\r\n"),
        "{}",
        seen.head
    );
    assert_eq!(seen.fields("upgrade"), ["websocket"]);
    assert_eq!(seen.fields("sec-websocket-key")[0].len(), 24);
}

#[test]
fn no_other_answer_than_a_switch_looks_like_a_tunnel() {
    let origin = Origin::speaking(echo);
    let proxy = proxy("", &origin);
    run(async {
        let client = client(&proxy).await;
        let (response, _send) = client.begin(connect("/refused", "websocket"), false).await;
        assert_eq!(response.await.unwrap().status(), 502);
        let (response, _send) = client.begin(connect("/chat", "connect-udp"), false).await;
        assert_eq!(response.await.unwrap().status(), 501);
    });
    assert_eq!(proxy.counter(Metric::OutcomeTunnel), 0);
}

#[test]
fn connect_opens_a_tunnel_where_one_may_be_and_closes_no_connection_elsewhere() {
    let records = format!(
        "{ON}CONFIG proxy.config.url_remap.remap_required INT 0\n\
         CONFIG proxy.config.http.connect_ports STRING *\n"
    );
    let local = "ip_allow:\n\
        - {apply: in, ip_addrs: 127.0.0.1, action: allow, methods: ALL}\n\
        - {apply: out, ip_addrs: 127.0.0.0/8, action: allow, methods: ALL}\n";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let echo = std::thread::spawn(move || send_back(&listener.accept().unwrap().0));
    let proxy = Proxy::with_ip_allow(&records, "", local);
    let ask = |host: &str| {
        let ask = Request::builder().method("CONNECT");
        ask.uri(format!("{host}:{port}")).body(()).unwrap()
    };
    run(async {
        let client = H2Client::connect(proxy.address).await;
        let (response, _send) = client.begin(ask("169.254.169.254"), false).await;
        assert_eq!(response.await.unwrap().status(), 403);
        let (response, mut send) = client.begin(ask("127.0.0.1"), false).await;
        let (head, mut recv) = response.await.unwrap().into_parts();
        assert_eq!((head.status.as_u16(), head.headers.len()), (200, 0));
        send.send_data(Bytes::from_static(b"there and back"), true)
            .unwrap();
        assert_eq!(bytes(&mut recv, 14).await, b"there and back");
        assert!(ends(&mut recv).await);
    });
    echo.join().unwrap();
}

/// The connection's idle time is for a connection without streams: a tunnel has
/// a record of its own.
#[test]
fn a_quiet_websocket_outlives_the_idle_time_of_connections() {
    let origin = Origin::speaking(echo);
    let proxy = proxy(
        "CONFIG proxy.config.http2.no_activity_timeout_in INT 1\n",
        &origin,
    );
    run(async {
        let client = client(&proxy).await;
        let (response, mut send) = client.begin(connect("/chat", "websocket"), false).await;
        let (_, mut recv) = response.await.unwrap().into_parts();
        assert_eq!(bytes(&mut recv, 2).await, b"hi");
        let idle = H2Client::connect(proxy.address).await;
        while idle.is_open().await {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        send.send_data(Bytes::from_static(b"still here"), true)
            .unwrap();
        assert_eq!(bytes(&mut recv, 10).await, b"still here");
    });
}

/// Opens a tunnel to a server that holds its end as `server` does.
fn tunnel<T: Send>(
    server: impl FnOnce(TcpStream) -> T + Send,
    client: impl AsyncFnOnce(h2::SendStream<Bytes>, h2::RecvStream),
) -> T {
    let records = format!(
        "{ON}CONFIG proxy.config.url_remap.remap_required INT 0\n\
         CONFIG proxy.config.http.connect_ports STRING *\n"
    );
    let local = "ip_allow:\n\
        - {apply: in, ip_addrs: 127.0.0.1, action: allow, methods: ALL}\n\
        - {apply: out, ip_addrs: 127.0.0.0/8, action: allow, methods: ALL}\n";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let proxy = Proxy::with_ip_allow(&records, "", local);
    std::thread::scope(|scope| {
        let served = scope.spawn(move || server(listener.accept().unwrap().0));
        run(async {
            let connection = H2Client::connect(proxy.address).await;
            let ask = Request::builder().method("CONNECT");
            let ask = ask.uri(format!("127.0.0.1:{port}")).body(()).unwrap();
            let (response, send) = connection.begin(ask, false).await;
            client(send, response.await.unwrap().into_body()).await;
        });
        until("the tunnel's end", || {
            proxy.counter(Metric::CurrentClientTransactions) == 0
        });
        served.join().unwrap()
    })
}

/// An origin that sees an orderly end takes half a file for the whole.
#[test]
fn a_stream_that_is_reset_resets_the_tunnel_s_other_end() {
    let (told, reached) = std::sync::mpsc::channel();
    let end = tunnel(
        move |mut stream| {
            let mut half = [0; 4];
            stream.read_exact(&mut half).unwrap();
            told.send(()).unwrap();
            stream.read(&mut half).map_err(|error| error.kind())
        },
        async |mut send, _recv| {
            send.send_data(Bytes::from_static(b"half"), false).unwrap();
            while reached.try_recv().is_err() {
                tokio::task::yield_now().await;
            }
            send.send_reset(h2::Reason::CANCEL);
        },
    );
    assert_eq!(end, Err(std::io::ErrorKind::ConnectionReset));
}

#[test]
fn an_origin_that_resets_its_end_of_a_tunnel_resets_the_stream() {
    tunnel(
        |mut stream| {
            // One that ended before would be no connection at all.
            stream.read_exact(&mut [0; 2]).unwrap();
            let socket = socket2::SockRef::from(&stream);
            socket.set_linger(Some(std::time::Duration::ZERO)).unwrap();
        },
        async |mut send, mut recv| {
            send.send_data(Bytes::from_static(b"go"), false).unwrap();
            let error = recv.data().await.unwrap().unwrap_err();
            assert_eq!(error.reason(), Some(h2::Reason::CONNECT_ERROR));
        },
    );
}

/// A client that is told goes back to HTTP/1, or does without.
#[test]
fn extended_connect_is_there_only_where_websockets_are_passed_on() {
    let origin = Origin::speaking(echo);
    for (record, known) in [("none", false), ("chat, WebSocket", true)] {
        let record = format!("CONFIG proxy.config.http.upgrade_protocols STRING {record}\n");
        let proxy = proxy(&record, &origin);
        run(async {
            let client = H2Client::connect(proxy.address).await;
            client.get("/plain").await;
            assert_eq!(client.knows_extended_connect(), known, "{record}");
        });
        if !known {
            let mut bold = Raw::connect(proxy.address);
            let mut ask = GET.to_vec();
            ask[0].1 = "CONNECT";
            ask.push((":protocol", "websocket"));
            bold.head(1, false, &ask).settle();
        }
    }
    let seen = origin.requests();
    assert!(seen.iter().all(|request| request.target() == "/plain"));
}
