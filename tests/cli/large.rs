//! An object far larger than memory and than the cache, served by ranges.

use crate::support::{Config, Server};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

const LEN: u64 = 50_000_000_000;
const MIB: u64 = 1 << 20;

/// Bytes of content that the origin has sent.
static SENT: AtomicU64 = AtomicU64::new(0);

/// The object's bytes at `range`.
fn content(range: Range<u64>) -> Vec<u8> {
    range
        .map(|at| {
            let word = (at / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            word.to_le_bytes()[usize::try_from(at % 8).unwrap()]
        })
        .collect()
}

/// An origin of the object; it lives as long as the process.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(&stream));
        }
    });
    address
}

fn serve(mut stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let range = asked(&mut reader)?;
        let (last, length) = (range.end - 1, range.end - range.start);
        let head = format!(
            "HTTP/1.1 206 Partial Content\r\nETag: \"e\"\r\nCache-Control: max-age=600\r\n\
             Content-Range: bytes {}-{last}/{LEN}\r\nContent-Length: {length}\r\n\r\n",
            range.start
        );
        stream.write_all(head.as_bytes()).ok()?;
        for start in (range.start..range.end).step_by(65_536) {
            let piece = content(start..range.end.min(start + 65_536));
            stream.write_all(&piece).ok()?;
        }
        SENT.fetch_add(length, Ordering::SeqCst);
    }
}

/// The range of the next request.
fn asked(reader: &mut impl BufRead) -> Option<Range<u64>> {
    let mut range = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let lower = line.trim_end().to_ascii_lowercase();
        if lower.is_empty() {
            return range;
        }
        if let Some(bounds) = lower.strip_prefix("range: bytes=") {
            let (first, last) = bounds.split_once('-')?;
            let end = last.parse::<u64>().ok()? + 1;
            range = Some(first.parse().ok()?..end.min(LEN));
        }
    }
}

/// Asks for a range, and judges the answer as it comes.
fn get(address: SocketAddr, range: Range<u64>) {
    let mut stream = TcpStream::connect(address).unwrap();
    let last = range.end - 1;
    let request = format!(
        "GET /a HTTP/1.1\r\nHost: a.example\r\nRange: bytes={}-{last}\r\nConnection: close\r\n\r\n",
        range.start
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    assert!(head.starts_with("HTTP/1.1 206 "), "{head}");
    for start in (range.start..range.end).step_by(65_536) {
        let expected = content(start..range.end.min(start + 65_536));
        let mut piece = vec![0; expected.len()];
        reader.read_exact(&mut piece).unwrap();
        assert!(piece == expected, "at {start} of {range:?}");
    }
    assert_eq!(reader.read(&mut [0]).unwrap(), 0);
}

/// The most bytes of memory that the server has had.
fn peak(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
    kilobytes.parse::<u64>().unwrap() * 1024
}

#[test]
fn an_object_of_50_gb_is_served_by_ranges_in_little_memory() {
    let config = Config::new("");
    let rule = format!("map http://a.example/ http://{}/\n", origin());
    config.write("remap.config", &rule);
    config.write("storage.config", "span 64M\n");
    let server = config.start();
    config.spans_read();
    get(server.port(), LEN - 5..LEN);
    let before = peak(&server);
    for n in 0..12 {
        let start = n * 4_100_000_007;
        get(server.port(), start..start + 12 * MIB);
    }
    // What is held is not fetched again.
    let sent = SENT.load(Ordering::SeqCst);
    get(server.port(), LEN - 3..LEN);
    get(
        server.port(),
        11 * 4_100_000_007..11 * 4_100_000_007 + 12 * MIB,
    );
    assert!(SENT.load(Ordering::SeqCst) - sent <= MIB);
    // Twice what the span holds went through it.
    let grown = peak(&server) - before;
    assert!(grown < 80 * MIB, "{} MiB", grown / MIB);
}
