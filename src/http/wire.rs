//! Field lines as they go out.

use ::http::header::{ETAG, HeaderName, TE, WWW_AUTHENTICATE};

/// Appends `Name: value\r\n`, and gives the offset in `out` at which the value
/// begins.
///
/// Names are written as most servers write them, `Content-Type`: the case means
/// nothing, but some clients compare it.
pub fn put_field(out: &mut Vec<u8>, name: &HeaderName, value: &[u8]) -> usize {
    put_name(out, name);
    out.extend_from_slice(b": ");
    let at = out.len();
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
    at
}

fn put_name(out: &mut Vec<u8>, name: &HeaderName) {
    if *name == ETAG {
        return out.extend_from_slice(b"ETag");
    }
    if *name == WWW_AUTHENTICATE {
        return out.extend_from_slice(b"WWW-Authenticate");
    }
    if *name == TE {
        return out.extend_from_slice(b"TE");
    }
    let mut begins = true;
    for byte in name.as_str().bytes() {
        out.push(if begins {
            byte.to_ascii_uppercase()
        } else {
            byte
        });
        begins = byte == b'-';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_servers_write_them() {
        let rows = [
            ("content-type", "Content-Type: v\r\n"),
            ("etag", "ETag: v\r\n"),
            ("x-a--b", "X-A--B: v\r\n"),
            ("www-authenticate", "WWW-Authenticate: v\r\n"),
            ("te", "TE: v\r\n"),
        ];
        for (name, line) in rows {
            let mut out = b"..".to_vec();
            let at = put_field(&mut out, &name.parse().unwrap(), b"v");
            assert_eq!(out, format!("..{line}").as_bytes());
            assert_eq!(out.get(at), Some(&b'v'));
        }
    }
}
