//! Several parts of a representation in one message: multipart/byteranges
//! (RFC 9110 14.6).

use super::range::Part;
use std::ops::Range;

/// Such a body, of which only the representation's own bytes are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multipart {
    boundary: String,
    /// The value of the representation's Content-Type.
    content_type: Option<String>,
    parts: Vec<Part>,
}

impl Multipart {
    /// The parts in this order. The boundary, at most 70 letters and digits,
    /// must not occur in them: it is to be random.
    #[must_use]
    pub const fn new(boundary: String, content_type: Option<String>, parts: Vec<Part>) -> Self {
        Self {
            boundary,
            content_type,
            parts,
        }
    }

    /// The value of the message's Content-Type.
    #[must_use]
    pub fn media_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary)
    }

    /// Bytes of the whole body.
    #[must_use]
    pub fn len(&self) -> u64 {
        let between = self.parts.iter().map(|part| self.before(part).len());
        let between = between.sum::<usize>() + self.end().len();
        let own: u64 = self.parts.iter().map(Part::len).sum();
        own.saturating_add(u64::try_from(between).unwrap_or(u64::MAX))
    }

    /// Always false: the last delimiter at least is there.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Which bytes of the representation are sent, and what stands before each
    /// of them.
    pub fn pieces(&self) -> impl Iterator<Item = (String, Range<u64>)> {
        let parts = self.parts.iter();
        parts.map(|part| (self.before(part), part.first..part.last + 1))
    }

    /// What stands behind the last.
    #[must_use]
    pub fn end(&self) -> String {
        format!("\r\n--{}--\r\n", self.boundary)
    }

    fn before(&self, part: &Part) -> String {
        let kind = self.content_type.as_ref();
        let kind = kind.map_or(String::new(), |kind| format!("Content-Type: {kind}\r\n"));
        format!(
            "\r\n--{}\r\n{kind}Content-Range: {}\r\n\r\n",
            self.boundary,
            part.content_range()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(content_type: Option<&str>) -> (Multipart, String) {
        let whole = 26;
        let part = |first, last| Part { first, last, whole };
        let parts = vec![part(20, 25), part(0, 1)];
        let multipart = Multipart::new("B".into(), content_type.map(String::from), parts);
        let text = "abcdefghijklmnopqrstuvwxyz";
        let bound = |at: u64| usize::try_from(at).unwrap();
        let mut body = String::new();
        for (before, range) in multipart.pieces() {
            body += &before;
            body += text.get(bound(range.start)..bound(range.end)).unwrap();
        }
        body += &multipart.end();
        (multipart, body)
    }

    #[test]
    fn each_part_tells_its_type_and_place_rfc_9110_14_6() {
        let (multipart, body) = written(Some("text/plain"));
        assert_eq!(
            body,
            "\r\n--B\r\nContent-Type: text/plain\r\nContent-Range: bytes 20-25/26\r\n\r\nuvwxyz\
             \r\n--B\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/26\r\n\r\nab\
             \r\n--B--\r\n"
        );
        assert_eq!(multipart.media_type(), "multipart/byteranges; boundary=B");
    }

    #[test]
    fn the_length_is_known_before_anything_is_sent() {
        for content_type in [None, Some("image/png")] {
            let (multipart, body) = written(content_type);
            assert_eq!(multipart.len(), u64::try_from(body.len()).unwrap());
            assert!(!multipart.is_empty());
        }
    }
}
