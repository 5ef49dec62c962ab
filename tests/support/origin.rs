//! An origin that answers by script and records every byte it was sent.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// One request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// Request line and field lines, the empty line included.
    pub(crate) head: String,
    /// The body, chunk framing taken off.
    pub(crate) body: Vec<u8>,
}

impl Recorded {
    /// The request line's target.
    pub(crate) fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or("")
    }

    /// The values of a field, in order.
    pub(crate) fn fields(&self, name: &str) -> Vec<&str> {
        super::fields(&self.head, name)
    }
}

/// Answers a request on its connection; whether that may be kept.
type Script = dyn Fn(&Recorded, &TcpStream) -> bool + Send + Sync;

/// A running origin; it stops when dropped.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Recorded>>>,
    stop: Arc<AtomicBool>,
}

impl Origin {
    /// Answers each request with the bytes that `script` makes. The connection
    /// is closed after an answer that says `Connection: close`.
    pub(crate) fn answering(script: impl Fn(&Recorded) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::speaking(move |request, mut stream| {
            let answer = script(request);
            let text = String::from_utf8_lossy(&answer).to_ascii_lowercase();
            stream.write_all(&answer).is_ok() && !text.contains("connection: close")
        })
    }

    /// Answers each request as `script` does, which gets the connection to write
    /// to, and says whether it may be kept.
    pub(crate) fn speaking(
        script: impl Fn(&Recorded, &TcpStream) -> bool + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let origin = Self {
            address,
            seen: Arc::default(),
            stop: Arc::default(),
        };
        let (seen, stop) = (Arc::clone(&origin.seen), Arc::clone(&origin.stop));
        let script: Arc<Script> = Arc::new(script);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
                thread::spawn(move || serve(&stream.unwrap(), &seen, &script));
            }
        });
        origin
    }

    /// Answers 200 with `body` to everything.
    pub(crate) fn with_body(body: &str) -> Self {
        let answer = ok(body);
        Self::answering(move |_| answer.clone())
    }

    /// What was asked so far.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.seen.lock().unwrap().clone()
    }

    /// A remap rule from `path` to this origin.
    pub(crate) fn map(&self, path: &str) -> String {
        format!("map {path} http://{}{path}\n", self.address)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the accept; an origin that is gone already needs no waking.
        drop(TcpStream::connect(self.address));
    }
}

/// A 200 with a length.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

fn serve(stream: &TcpStream, seen: &Mutex<Vec<Recorded>>, script: &Arc<Script>) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader) {
        seen.lock().unwrap().push(request.clone());
        if !script(&request, stream) {
            return;
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<Recorded> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let body = read_body(reader, &head)?;
    Some(Recorded { head, body })
}

fn read_body(reader: &mut impl BufRead, head: &str) -> Option<Vec<u8>> {
    if super::fields(head, "transfer-encoding") == ["chunked"] {
        return super::read_chunked(reader);
    }
    let length = super::fields(head, "content-length");
    let length = length.first().map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}
