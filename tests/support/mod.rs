//! What end-to-end tests are written in: an origin, a proxy, a client, and the
//! proxy's counters.

mod client;
mod origin;
mod proxy;
mod until;

pub(crate) use client::{Client, Response};
pub(crate) use origin::{Origin, Recorded, ok};
pub(crate) use proxy::{Proxy, UUID, multicert_file, named_parts, snapshot};
pub(crate) use until::until;

use std::io::BufRead;

/// The values of a field in a head, in order, without the blanks around them.
pub(crate) fn fields<'a>(head: &'a str, name: &str) -> Vec<&'a str> {
    let lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
    lines
        .filter(|(field, _)| field.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
        .collect()
}

/// A chunked body up to its last CRLF; none if it breaks off.
pub(crate) fn read_chunked(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = usize::from_str_radix(line(reader)?.split(';').next()?, 16).ok()?;
        if size == 0 {
            while !line(reader)?.is_empty() {}
            return Some(body);
        }
        let start = body.len();
        body.resize(start + size, 0);
        reader.read_exact(&mut body[start..]).ok()?;
        if !line(reader)?.is_empty() {
            return None;
        }
    }
}

fn line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    Some(line.strip_suffix("\r\n")?.to_owned())
}
