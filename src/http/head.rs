//! The syntax of a message head, as strictly as RFC 9112 2.2, 3 and 5 state it.
//!
//! Stricter than httparse, which lets through bare LF, and depending on its
//! options whitespace before a colon and folded lines. What is refused: a line
//! that does not end in CRLF, CR or NUL or any other control but tab inside a
//! line, whitespace before the colon, a folded line, an empty or malformed
//! field name, more than one space in the request-line.
//!
//! Judgement is passed on whole heads only, so it can't depend on how the head
//! was cut into segments.

use memchr::{memchr, memchr2};

/// Bounds on one head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes from the first of the head to its empty line inclusive, with the
    /// empty lines skipped before a request-line.
    pub bytes: usize,
    /// Field lines.
    pub fields: usize,
    /// Bytes of the request-target.
    pub target: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        Self {
            bytes: 131_072,
            fields: 1000,
            target: 65_534,
        }
    }
}

/// Why a head is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// The head has no end within its limit.
    #[error("the head is longer than {0} bytes")]
    TooLong(usize),
    /// Too many field lines.
    #[error("more than {0} field lines")]
    TooManyFields(usize),
    /// The request-target is too long.
    #[error("a request-target of {0} bytes")]
    TargetTooLong(usize),
    /// A line ends in LF without CR, or CR stands elsewhere than before LF.
    #[error("a line does not end in exactly CRLF")]
    LineEnd,
    /// The first line is not `method SP target SP HTTP/d.d`.
    #[error("malformed request-line")]
    RequestLine,
    /// The first line is not `HTTP/1.d SP 3DIGIT SP reason`.
    #[error("malformed status-line")]
    StatusLine,
    /// Another major version than 1 (RFC 9110 15.6.6).
    #[error("HTTP major version {}", char::from(*.0))]
    Version(u8),
    /// A field line begins with whitespace: obs-fold (RFC 9112 5.2), or
    /// whitespace before the first field (2.2).
    #[error("a line begins with whitespace")]
    Folded,
    /// No colon, an empty name, or a byte in the name that is no tchar, such as
    /// whitespace before the colon (RFC 9112 5.1).
    #[error("malformed field name")]
    FieldName,
    /// A control character in a field value (RFC 9110 5.5).
    #[error("byte 0x{0:02x} in a field value")]
    FieldValue(u8),
}

impl HeadError {
    /// The status that answers a request with this fault: 431, 414, 505 or 400.
    /// The connection closes after each.
    #[must_use]
    pub const fn status(&self) -> u16 {
        match self {
            Self::TooLong(_) | Self::TooManyFields(_) => 431,
            Self::TargetTooLong(_) => 414,
            Self::Version(_) => 505,
            Self::LineEnd
            | Self::RequestLine
            | Self::StatusLine
            | Self::Folded
            | Self::FieldName
            | Self::FieldValue(_) => 400,
        }
    }
}

/// Where a whole head lies in a buffer: from `start`, after skipped empty
/// lines, to `end`, after its own empty line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadSpan {
    /// Offset of the first byte of the first line.
    pub start: usize,
    /// Offset just after the empty line.
    pub end: usize,
}

/// Finds the end of a head in a growing buffer, looking at each byte once.
#[derive(Clone, Debug)]
pub struct HeadScanner {
    limits: HeadLimits,
    /// Bytes looked at.
    seen: usize,
    /// Where the head begins.
    start: usize,
    /// Where the line under way begins.
    line: usize,
}

impl HeadScanner {
    /// A scanner for one head; make a new one for the next.
    #[must_use]
    pub const fn new(limits: HeadLimits) -> Self {
        Self {
            limits,
            seen: 0,
            start: 0,
            line: 0,
        }
    }

    /// Looks at what was added to `buf`, which must begin with the same bytes
    /// as at the calls before. `None` asks for more.
    ///
    /// Empty lines before the first line are skipped (RFC 9112 2.2). A line
    /// that ends in a bare LF counts as a line here, so that
    /// [`read_request_head`] can refuse it.
    ///
    /// # Errors
    /// [`HeadError::TooLong`] when the head does not end within the limit.
    pub fn find_end(&mut self, buf: &[u8]) -> Result<Option<HeadSpan>, HeadError> {
        let bound = buf.len().min(self.limits.bytes);
        while let Some(at) = memchr(b'\n', buf.get(self.seen..bound).unwrap_or_default()) {
            let line = buf.get(self.line..self.seen + at).unwrap_or_default();
            self.seen += at + 1;
            self.line = self.seen;
            if line.iter().all(|byte| *byte == b'\r')
                && let Some(span) = self.empty_line()
            {
                return Ok(Some(span));
            }
        }
        self.seen = bound;
        if self.seen >= self.limits.bytes {
            return Err(HeadError::TooLong(self.limits.bytes));
        }
        Ok(None)
    }

    const fn empty_line(&mut self) -> Option<HeadSpan> {
        // At most one CRLF was seen since `start`: these lines precede the head.
        if self.seen - self.start <= 2 {
            self.start = self.seen;
            return None;
        }
        Some(HeadSpan {
            start: self.start,
            end: self.seen,
        })
    }
}

/// The tokens of a request-line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLine<'h> {
    /// A token.
    pub method: &'h [u8],
    /// Not empty and without spaces; [`super::target`] judges the rest.
    pub target: &'h [u8],
    /// The minor version of HTTP/1: 0 or 1.
    pub minor: u8,
}

/// Reads a whole request head, as [`HeadScanner`] found it: from the first byte
/// of the request-line to its empty line. `field` is given each field's name
/// and its value without the whitespace around it, in order.
///
/// # Errors
/// The first fault in the order of the bytes, and whatever `field` fails with.
pub fn read_request_head<'h, E: From<HeadError>>(
    head: &'h [u8],
    limits: &HeadLimits,
    field: impl FnMut(&'h [u8], &'h [u8]) -> Result<(), E>,
) -> Result<RequestLine<'h>, E> {
    let mut lines = Lines { rest: head };
    let first = lines.next().ok_or(HeadError::RequestLine)??;
    let request = request_line(first, limits)?;
    read_fields(lines, limits, field)?;
    Ok(request)
}

/// What a status-line says (RFC 9112 4). Its reason is of no interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusLine {
    /// The minor version of HTTP/1: 0 or 1.
    pub minor: u8,
    /// Three digits.
    pub status: u16,
}

/// Reads a whole response head; else as [`read_request_head`].
///
/// # Errors
/// As [`read_request_head`], with [`HeadError::StatusLine`].
pub fn read_response_head<'h, E: From<HeadError>>(
    head: &'h [u8],
    limits: &HeadLimits,
    field: impl FnMut(&'h [u8], &'h [u8]) -> Result<(), E>,
) -> Result<StatusLine, E> {
    let mut lines = Lines { rest: head };
    let first = lines.next().ok_or(HeadError::StatusLine)??;
    let status = status_line(first)?;
    read_fields(lines, limits, field)?;
    Ok(status)
}

fn read_fields<'h, E: From<HeadError>>(
    lines: Lines<'h>,
    limits: &HeadLimits,
    mut field: impl FnMut(&'h [u8], &'h [u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut fields = 0;
    for line in lines {
        let line = line?;
        if line.is_empty() {
            return Ok(());
        }
        fields += 1;
        if fields > limits.fields {
            return Err(HeadError::TooManyFields(limits.fields).into());
        }
        let (name, value) = check_field_line(line)?;
        field(name, value)?;
    }
    Err(HeadError::LineEnd.into())
}

/// Checks one field line, given without its CRLF, and gives its name and its
/// value without the whitespace around it (RFC 9112 5, RFC 9110 5.5).
///
/// # Errors
/// [`HeadError::Folded`], [`HeadError::FieldName`] or
/// [`HeadError::FieldValue`].
pub fn check_field_line(line: &[u8]) -> Result<(&[u8], &[u8]), HeadError> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(HeadError::Folded);
    }
    let end = line.iter().position(|b| !is_tchar(*b));
    let (name, rest) = line
        .split_at_checked(end.unwrap_or_default())
        .unwrap_or_default();
    let value = rest.strip_prefix(b":").ok_or(HeadError::FieldName)?;
    if name.is_empty() {
        return Err(HeadError::FieldName);
    }
    // Looks at every byte, good or bad, so that it takes many at a time.
    if value.iter().fold(true, |good, b| good & is_value_byte(*b)) {
        return Ok((name, value.trim_ascii()));
    }
    let bad = value.iter().find(|b| !is_value_byte(**b));
    Err(HeadError::FieldValue(bad.copied().unwrap_or_default()))
}

/// The fields of proactive negotiation (RFC 9110 12.5): preferences, which may
/// come as garbage without anything else of the message coming into doubt.
const PREFERENCES: [&[u8]; 4] = [
    b"accept",
    b"accept-charset",
    b"accept-encoding",
    b"accept-language",
];

/// The head with a space in place of each control character that
/// [`HeadError::FieldValue`] refuses in a preference (RFC 9110 5.5 lets a
/// recipient do either); such a field then is one that prefers nothing. In any
/// other field, which may frame, route or authenticate, they stay and stay
/// refused.
#[must_use]
pub fn blank_preferences(head: &[u8]) -> Vec<u8> {
    let mut blanked = head.to_vec();
    for line in blanked.split_mut(|byte| *byte == b'\n') {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        if PREFERENCES
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
        {
            let controls = line
                .iter_mut()
                .filter(|byte| !is_value_byte(**byte) && **byte != b'\r');
            controls.for_each(|byte| *byte = b' ');
        }
    }
    blanked
}

/// Whether `byte` may stand in a token (RFC 9110 5.6.2).
#[must_use]
pub const fn is_tchar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// Whether `byte` may stand in a field value (RFC 9110 5.5): visible ASCII,
/// obs-text, space and tab.
#[must_use]
pub const fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Splits `method SP target SP HTTP/d.d`.
fn request_line<'h>(line: &'h [u8], limits: &HeadLimits) -> Result<RequestLine<'h>, HeadError> {
    let mut parts = line.split(|b| *b == b' ');
    let method = parts.next().unwrap_or_default();
    let target = parts.next().unwrap_or_default();
    let version = parts.next().unwrap_or_default();
    if target.len() > limits.target {
        return Err(HeadError::TargetTooLong(target.len()));
    }
    let is_method = !method.is_empty() && method.iter().copied().all(is_tchar);
    if !is_method || target.is_empty() || parts.next().is_some() {
        return Err(HeadError::RequestLine);
    }
    let minor = minor_version(version)?;
    Ok(RequestLine {
        method,
        target,
        minor,
    })
}

/// Reads `HTTP/1.d SP 3DIGIT SP [reason]`. That the last SP is missing where
/// there is no reason, as in many servers' lines, leaves nothing in doubt.
fn status_line(line: &[u8]) -> Result<StatusLine, HeadError> {
    let (version, rest) = line.split_at_checked(8).ok_or(HeadError::StatusLine)?;
    let minor = minor_version(version).map_err(|_| HeadError::StatusLine)?;
    let &[
        b' ',
        a @ b'1'..=b'9',
        b @ b'0'..=b'9',
        c @ b'0'..=b'9',
        ref reason @ ..,
    ] = rest
    else {
        return Err(HeadError::StatusLine);
    };
    let is_apart = matches!(reason, [] | [b' ', ..]);
    if !is_apart || !reason.iter().copied().all(is_value_byte) {
        return Err(HeadError::StatusLine);
    }
    let digit = |digit: u8| u16::from(digit - b'0');
    Ok(StatusLine {
        minor,
        status: digit(a) * 100 + digit(b) * 10 + digit(c),
    })
}

/// A minor version above ours counts as ours (RFC 9110 2.5).
const fn minor_version(version: &[u8]) -> Result<u8, HeadError> {
    match version {
        b"HTTP/1.1" => Ok(1),
        b"HTTP/1.0" => Ok(0),
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0'..=b'9'] => Ok(1),
        [
            b'H',
            b'T',
            b'T',
            b'P',
            b'/',
            major @ b'0'..=b'9',
            b'.',
            b'0'..=b'9',
        ] => Err(HeadError::Version(*major)),
        _ => Err(HeadError::RequestLine),
    }
}

/// The lines of a head, without their CRLF.
struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Lines<'a> {
    type Item = Result<&'a [u8], HeadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = memchr2(b'\r', b'\n', self.rest)?;
        let (line, after) = self.rest.split_at_checked(at)?;
        let Some(rest) = after.strip_prefix(b"\r\n") else {
            self.rest = &[];
            return Some(Err(HeadError::LineEnd));
        };
        self.rest = rest;
        Some(Ok(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(head: &[u8]) -> Result<(), HeadError> {
        check_within(head, &HeadLimits::default())
    }

    fn check_within(head: &[u8], limits: &HeadLimits) -> Result<(), HeadError> {
        read_request_head(head, limits, |_, _| Ok(())).map(drop)
    }

    fn check_field(line: &[u8]) -> Result<(), HeadError> {
        check(&[b"GET / HTTP/1.1\r\nHost: a\r\n", line, b"\r\n\r\n"].concat())
    }

    #[test]
    fn good_heads_pass() {
        assert_eq!(check(b"GET / HTTP/1.0\r\n\r\n"), Ok(()));
        for line in [
            "A:",
            "A: \t",
            "A:b",
            "A: b\tc ",
            "!#$: \u{e9}",
            "A: b:c",
            "a_b: 1",
        ] {
            assert_eq!(check_field(line.as_bytes()), Ok(()), "{line:?}");
        }
    }

    #[test]
    fn malformed_field_lines_are_refused_rfc_9112_5() {
        let rows: [(&[u8], HeadError); 13] = [
            (b"Content-Length : 5", HeadError::FieldName),
            (b"Content-Length\t: 5", HeadError::FieldName),
            (b": x", HeadError::FieldName),
            (b"NoColon", HeadError::FieldName),
            (b"A b: x", HeadError::FieldName),
            (b"A\x80: x", HeadError::FieldName),
            (b"A\0: x", HeadError::FieldName),
            (b" folded: x", HeadError::Folded),
            (b"A: b\r\n\tc", HeadError::Folded),
            (b"A: b\0c", HeadError::FieldValue(0)),
            (b"A: b\x7f", HeadError::FieldValue(0x7f)),
            (b"A: b\rc", HeadError::LineEnd),
            (b"A: b\nB: c", HeadError::LineEnd),
        ];
        for (line, error) in rows {
            assert_eq!(check_field(line), Err(error), "{line:?}");
        }
        assert_eq!(
            check(b"GET / HTTP/1.1\r\n A: b\r\n\r\n"),
            Err(HeadError::Folded)
        );
    }

    #[test]
    fn controls_are_blanked_in_preferences_and_nowhere_else_rfc_9110_5_5() {
        for name in [
            "Accept",
            "accept-CHARSET",
            "Accept-Encoding",
            "Accept-Language",
        ] {
            let line = format!("{name}: \0a\x7f\x01b\x1f");
            let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{line}\r\nB: c\r\n\r\n");
            assert!(check(head.as_bytes()).is_err(), "{name}");
            let blanked = blank_preferences(head.as_bytes());
            let expected = head.replace(['\0', '\x7f', '\x01', '\x1f'], " ");
            assert_eq!(blanked, expected.as_bytes());
            assert_eq!(check(&blanked), Ok(()), "{name}");
        }
        for line in [
            "Host: a\0",
            "Content-Length: 5\0",
            "Accept\0: a",
            "X-Accept: \0",
            "Accept: a\rb",
        ] {
            let head = format!("GET / HTTP/1.1\r\n{line}\r\n\r\n");
            assert_eq!(blank_preferences(head.as_bytes()), head.as_bytes());
        }
    }

    #[test]
    fn malformed_request_lines_are_refused_rfc_9112_3() {
        let lines: [&[u8]; 14] = [
            b"GET  / HTTP/1.1",
            b" GET / HTTP/1.1",
            b"GET / HTTP/1.1 ",
            b"GET /  HTTP/1.1",
            b"GET\t/ HTTP/1.1",
            b"GET /",
            b"GET / HTTP/1.10",
            b"GET / HTTP/1",
            b"GET / HTTP/2",
            b"GET / HTTP/x.1",
            b"GET / http/1.1",
            b"G(T / HTTP/1.1",
            b"GET / a HTTP/1.1",
            b"",
        ];
        for line in lines {
            let head = [line, b"\r\nHost: a\r\n\r\n"].concat();
            assert_eq!(check(&head), Err(HeadError::RequestLine), "{line:?}");
        }
    }

    #[test]
    fn another_major_version_is_told_from_nonsense_rfc_9110_2_5() {
        for major in b"023456789" {
            let line = format!("GET / HTTP/{}.1\r\n\r\n", char::from(*major));
            let refused = check(line.as_bytes()).unwrap_err();
            assert_eq!(refused, HeadError::Version(*major));
            assert_eq!(refused.status(), 505);
        }
        let read = |line| read_request_head(line, &HeadLimits::default(), |_, _| Ok(()));
        let higher: Result<_, HeadError> = read(b"GET / HTTP/1.9\r\n\r\n");
        assert_eq!(higher.map(|line| line.minor), Ok(1));
    }

    #[test]
    fn status_lines_are_read_strictly_rfc_9112_4() {
        let read = |line: &[u8]| {
            let head = [line, b"\r\nA: b\r\n\r\n"].concat();
            let limits = HeadLimits::default();
            let read: Result<_, HeadError> = read_response_head(&head, &limits, |_, _| Ok(()));
            read.map(|line| (line.minor, line.status))
        };
        assert_eq!(read(b"HTTP/1.1 200 OK"), Ok((1, 200)));
        assert_eq!(read(b"HTTP/1.0 404 "), Ok((0, 404)));
        assert_eq!(read(b"HTTP/1.1 999 Not \xe9 it"), Ok((1, 999)));
        assert_eq!(read(b"HTTP/1.1 200"), Ok((1, 200)));
        let lines: [&[u8]; 9] = [
            b"HTTP/1.1 200\t",
            b"HTTP/1.1  200 OK",
            b"HTTP/1.1 20 OK",
            b"HTTP/1.1 2000 OK",
            b"HTTP/1.1 099 OK",
            b"HTTP/2.0 200 OK",
            b"HTTP/1.1 200 O\0K",
            b"GET / HTTP/1.1",
            b"",
        ];
        for line in lines {
            assert_eq!(read(line), Err(HeadError::StatusLine), "{line:?}");
        }
    }

    #[test]
    fn limits_have_their_statuses() {
        let limits = HeadLimits {
            bytes: 40,
            fields: 1,
            target: 3,
        };
        let check = |head: &[u8]| check_within(head, &limits).unwrap_err().status();
        assert_eq!(check(b"GET /abc HTTP/1.1\r\n\r\n"), 414);
        assert_eq!(check(b"GET / HTTP/1.1\r\nA: b\r\nC: d\r\n\r\n"), 431);
        let mut scanner = HeadScanner::new(limits);
        assert_eq!(scanner.find_end(&[b'a'; 39]), Ok(None));
        assert_eq!(scanner.find_end(&[b'a'; 40]), Err(HeadError::TooLong(40)));
        assert_eq!(HeadError::LineEnd.status(), 400);
    }

    #[test]
    fn empty_lines_before_a_request_are_skipped_rfc_9112_2_2() {
        let mut scanner = HeadScanner::new(HeadLimits::default());
        assert_eq!(scanner.find_end(b"\r\n\r\n"), Ok(None));
        let span = scanner.find_end(b"\r\n\r\nA\r\nB\r\n\r\nrest").unwrap();
        assert_eq!(span, Some(HeadSpan { start: 4, end: 12 }));
    }

    /// Bytes that matter in a head, and any.
    fn noise() -> impl Strategy<Value = u8> {
        let special = proptest::sample::select(b"\r\n\r\n: \t\0;,aZ-_\x7f\xe9".to_vec());
        prop_oneof![special, any::<u8>()]
    }

    fn pieces() -> impl Strategy<Value = Vec<u8>> {
        let pieces: Vec<&[u8]> = vec![
            b"\r\n",
            b"\r",
            b"\n",
            b" ",
            b"\t",
            b"\0",
            b":",
            b"A",
            b"GET / HTTP/1.1\r\n",
            b"A: b\r\n",
            b"\r\n\r\n",
        ];
        let piece = proptest::sample::select(pieces);
        proptest::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn a_head_ends_at_the_same_byte_for_any_segmentation(
            bytes in pieces(), cuts in proptest::collection::vec(0usize..60, 0..6),
        ) {
            let limits = HeadLimits { bytes: 50, ..HeadLimits::default() };
            let whole = HeadScanner::new(limits).find_end(&bytes);
            let mut ends: Vec<usize> = cuts.iter().map(|c| (*c).min(bytes.len())).collect();
            ends.sort_unstable();
            ends.push(bytes.len());
            let mut scanner = HeadScanner::new(limits);
            let mut found = Ok(None);
            for end in ends {
                found = scanner.find_end(&bytes[..end]);
                if found != Ok(None) { break; }
            }
            prop_assert_eq!(&found, &whole);
            if let Ok(Some(span)) = found {
                // Never panics; a passed head is one that httparse takes too.
                let head = &bytes[span.start..span.end];
                if check(head).is_ok() {
                    let mut fields = [httparse::EMPTY_HEADER; 64];
                    let mut request = httparse::Request::new(&mut fields);
                    prop_assert!(request.parse(head).unwrap().is_complete());
                }
            }
        }

        #[test]
        fn any_bytes_make_a_head_of_which_nothing_is_lost_or_none(
            line in "(GET|POST|\\PC{0,4}) (/|\\PC{0,6}) HTTP/1[.][0-9]|\\PC{0,20}",
            rest in proptest::collection::vec(noise(), 0..24),
        ) {
            let head = [line.as_bytes(), b"\r\n", &rest, b"\r\n\r\n"].concat();
            let mut again = Vec::new();
            let read = read_request_head(&head, &HeadLimits::default(), |name, value| {
                again.push([name, b":", value].concat());
                Ok::<_, HeadError>(())
            });
            if let Ok(first) = read {
                prop_assert!(first.method.iter().copied().all(is_tchar));
                let text = String::from_utf8_lossy(&head);
                let end = text.find("\r\n\r\n").unwrap();
                let lines: Vec<_> = text.get(..end).unwrap().split("\r\n").skip(1).collect();
                prop_assert_eq!(lines.len(), again.len());
                for (line, field) in lines.iter().zip(&again) {
                    prop_assert!(!line.contains(['\r', '\n', '\0']), "{line:?}");
                    let blanks = |text: &str| text.replace([' ', '\t'], "");
                    prop_assert_eq!(blanks(line), blanks(&String::from_utf8_lossy(field)));
                }
            }
        }
    }
}
