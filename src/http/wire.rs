//! Field lines as they go out.

use ::http::header::HeaderName;

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

/// Names that are not written word by word.
const NAMES: [&str; 14] = [
    "Content-DPR",
    "Content-MD5",
    "DNT",
    "ETag",
    "Expect-CT",
    "NEL",
    "P3P",
    "SourceMap",
    "TE",
    "WWW-Authenticate",
    "X-DNS-Prefetch-Control",
    "X-UA-Compatible",
    "X-WebKit-CSP",
    "X-XSS-Protection",
];

fn put_name(out: &mut Vec<u8>, name: &HeaderName) {
    let name = name.as_str();
    if let Some(known) = NAMES.iter().find(|known| known.eq_ignore_ascii_case(name)) {
        return out.extend_from_slice(known.as_bytes());
    }
    let mut begins = true;
    for byte in name.bytes() {
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
            ("x-xss-protection", "X-XSS-Protection: v\r\n"),
        ];
        for (name, line) in rows {
            let mut out = b"..".to_vec();
            let at = put_field(&mut out, &name.parse().unwrap(), b"v");
            assert_eq!(out, format!("..{line}").as_bytes());
            assert_eq!(out.get(at), Some(&b'v'));
        }
    }
}
