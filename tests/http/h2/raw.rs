//! A client that sends frames as they are.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a client waits before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
pub(super) const ACK: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
pub(super) const PADDED: u8 = 8;

pub(super) const PROTOCOL_ERROR: u32 = 1;
pub(super) const INTERNAL_ERROR: u32 = 2;
pub(super) const ENHANCE_YOUR_CALM: u32 = 11;

/// The pseudo-fields of a GET of `/`.
pub(super) const GET: &[(&str, &str)] = &[
    (":method", "GET"),
    (":scheme", "http"),
    (":authority", "h"),
    (":path", "/"),
];

/// A frame as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

impl Frame {
    /// The error code of RST_STREAM or GOAWAY.
    pub(super) fn code(&self) -> u32 {
        let last = self
            .payload
            .get(if self.kind == GOAWAY { 4..8 } else { 0..4 });
        u32::from_be_bytes(last.unwrap().try_into().unwrap())
    }
}

/// A connection to the proxy.
pub(super) struct Raw {
    stream: TcpStream,
}

impl Raw {
    /// A connection on which nothing was said yet.
    pub(super) fn silent(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream }
    }

    /// A connection with its preface and these settings sent.
    pub(super) fn with_settings(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let mut raw = Self::silent(address);
        let each = settings.iter();
        let payload = each.flat_map(|(id, value)| {
            let (id, value) = (id.to_be_bytes(), value.to_be_bytes());
            id.into_iter().chain(value)
        });
        let payload: Vec<u8> = payload.collect();
        raw.send(&[PREFACE, &frame(SETTINGS, 0, 0, &payload)].concat());
        raw
    }

    pub(super) fn connect(address: SocketAddr) -> Self {
        Self::with_settings(address, &[])
    }

    /// Sends bytes; a proxy that closed already is found out by reading.
    pub(super) fn send(&mut self, bytes: &[u8]) -> &mut Self {
        drop(self.stream.write_all(bytes));
        self
    }

    /// Opens the connection's window as far as it goes.
    pub(super) fn wide(&mut self) -> &mut Self {
        let all = 0x7fff_0000_u32.to_be_bytes();
        self.frame(WINDOW_UPDATE, 0, 0, &all)
    }

    pub(super) fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> &mut Self {
        self.send(&frame(kind, flags, stream, payload))
    }

    /// Sends a whole head.
    pub(super) fn head(&mut self, stream: u32, ends: bool, fields: &[(&str, &str)]) -> &mut Self {
        let flags = END_HEADERS | if ends { END_STREAM } else { 0 };
        self.frame(HEADERS, flags, stream, &block(fields))
    }

    /// The next frame; none at the connection's end.
    pub(super) fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut payload).ok()?;
        Some(Frame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes(head[5..].try_into().unwrap()) & 0x7fff_ffff,
            payload,
        })
    }

    /// The frames up to the first of this type; it is the last of them. At the
    /// connection's end, all that came.
    pub(super) fn until(&mut self, kind: u8) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next() {
            let is_last = frame.kind == kind && (kind != PING || frame.flags & ACK != 0);
            frames.push(frame);
            if is_last {
                break;
            }
        }
        frames
    }

    /// Everything that came before the proxy answers a PING.
    pub(super) fn settle(&mut self) -> Vec<Frame> {
        self.frame(PING, 0, 0, &[7; 8]).until(PING)
    }

    /// The error code by which the proxy closes the connection.
    pub(super) fn goaway(&mut self) -> Option<u32> {
        let frames = self.until(GOAWAY);
        let last = frames.last().filter(|frame| frame.kind == GOAWAY);
        last.map(Frame::code)
    }

    /// Whether the connection ends.
    pub(super) fn is_closed(&mut self) -> bool {
        self.until(u8::MAX);
        let mut byte = [0];
        self.stream.read(&mut byte).map_or_else(
            |error| error.kind() == std::io::ErrorKind::ConnectionReset,
            |read| read == 0,
        )
    }
}

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// Fields as HPACK literals that no table remembers (RFC 7541 6.2.2).
pub(super) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let each = fields.iter();
    each.flat_map(|(name, value)| [vec![0], text(name), text(value)].concat())
        .collect()
}

/// A string without Huffman coding (RFC 7541 5.1 and 5.2).
fn text(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut left = text.len();
    if left < 127 {
        bytes.push(u8::try_from(left).unwrap());
    } else {
        bytes.push(127);
        left -= 127;
        while left >= 128 {
            bytes.push(u8::try_from(left % 128 + 128).unwrap());
            left /= 128;
        }
        bytes.push(u8::try_from(left).unwrap());
    }
    bytes.extend_from_slice(text.as_bytes());
    bytes
}
