//! A client of one connection that takes a broken one for an answer too.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long an answer may take before that is a hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// A whole answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    /// The value of a field.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

/// A connection to the server.
pub(super) struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    pub(super) fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            reader: BufReader::new(stream),
        })
    }

    /// Sends a request without a body, with these field lines, and reads the
    /// answer to its end.
    pub(super) fn ask(&mut self, method: &str, path: &str, fields: &str) -> io::Result<Answer> {
        let length = if method == "POST" {
            "Content-Length: 0\r\n"
        } else {
            ""
        };
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{length}{fields}\r\n");
        self.reader.get_mut().write_all(request.as_bytes())?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.reader.read_line(&mut head)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let status = head.get(9..12).and_then(|code| code.parse().ok());
        let mut answer = Answer {
            status: status.ok_or_else(|| io::Error::other(head.clone()))?,
            head,
            body: Vec::new(),
        };
        let length = answer.field("content-length").map_or("0", |length| length);
        let length: usize = length.parse().map_err(io::Error::other)?;
        answer.body.resize(length, 0);
        self.reader.read_exact(&mut answer.body)?;
        Ok(answer)
    }
}
