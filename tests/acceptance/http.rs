//! The least client that shows what came over the wire.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// An answer, its head as text.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The value of a field, or nothing.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// GET on a connection of its own.
pub(crate) fn get(port: u16, path: &str) -> io::Result<Answer> {
    let host = format!("127.0.0.1:{port}");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    exchange(port, request.as_bytes())
}

/// Sends bytes as they are, and reads until the server hangs up.
pub(crate) fn exchange(port: u16, request: &[u8]) -> io::Result<Answer> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(request)?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    parse(&bytes).ok_or_else(|| io::Error::other(format!("no answer in {bytes:?}")))
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer {
        status,
        head,
        body: bytes[end + 4..].to_vec(),
    })
}
