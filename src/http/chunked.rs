//! The chunked transfer coding as it is read (RFC 9112 7.1).
//!
//! The decoder takes exactly the grammar: CRLF and nothing else ends a line, a
//! chunk extension is checked and dropped, trailer lines pass the same checks
//! as header lines. It gives the same bytes, trailers and errors however the
//! body was cut into segments.

use super::forwarding::{CLIENT_IP, is_hop_by_hop};
use super::head::{HeadError, check_field_line, is_tchar, is_value_byte};
use ::http::HeaderMap;
use ::http::header::{self, HeaderName, HeaderValue};
use bytes::{Bytes, BytesMut};

/// Bounds on what is not data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Bytes of chunk extensions in the whole body.
    pub extensions: usize,
    /// Bytes of the trailer section, its CRLFs included.
    pub trailers: usize,
}

impl Default for ChunkLimits {
    fn default() -> Self {
        Self {
            extensions: 16_384,
            trailers: 16_384,
        }
    }
}

/// Why a chunked body is refused: a request gets 400 and the connection
/// closes; a response counts as cut off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// Another byte than a hex digit, `;` or CR in a chunk-size line.
    #[error("byte 0x{0:02x} in a chunk size")]
    Size(u8),
    /// A chunk size of more than 64 bits.
    #[error("a chunk size of 2^64 or more")]
    SizeOverflow,
    /// A byte that the grammar of extensions forbids where it is.
    #[error("byte 0x{0:02x} in a chunk extension")]
    Extension(u8),
    /// Extensions above [`ChunkLimits::extensions`].
    #[error("more than {0} bytes of chunk extensions")]
    TooManyExtensions(usize),
    /// Something else than CRLF after a chunk size or after chunk data.
    #[error("byte 0x{0:02x} where CRLF must be")]
    LineEnd(u8),
    /// Trailers above [`ChunkLimits::trailers`].
    #[error("more than {0} bytes of trailers")]
    TooManyTrailers(usize),
    /// A malformed trailer line.
    #[error("in the trailers: {0}")]
    Trailer(#[from] HeadError),
}

/// What the decoder found next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// Data, at least one byte, not necessarily a whole chunk.
    Data(Bytes),
    /// The body is complete; what is left in the buffer belongs to the next
    /// message.
    End,
    /// The buffer is used up and the body is not complete.
    More,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In a chunk size, with how many digits seen.
    Size(u32),
    Extension(Ext),
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailer,
    End,
}

/// Where in `*( BWS ";" BWS name [ BWS "=" BWS value ] )` the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ext {
    /// Whitespace was seen: only `;` may follow.
    Semicolon,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Value,
    Quoted,
    QuotedPair,
    AfterQuoted,
}

/// Decodes one chunked body. After an error it must not be used again.
#[derive(Clone, Debug)]
pub struct ChunkDecoder {
    state: State,
    limits: ChunkLimits,
    remaining: u64,
    extension_bytes: usize,
    trailer_bytes: usize,
    line: Vec<u8>,
    trailers: HeaderMap,
}

impl ChunkDecoder {
    /// A decoder at the first chunk.
    #[must_use]
    pub fn new(limits: ChunkLimits) -> Self {
        Self {
            state: State::Size(0),
            limits,
            remaining: 0,
            extension_bytes: 0,
            trailer_bytes: 0,
            line: Vec::new(),
            trailers: HeaderMap::new(),
        }
    }

    /// Takes bytes off the front of `input` up to the next data, the end of the
    /// body, or the end of `input`. Data is split off, not copied.
    ///
    /// # Errors
    /// Any [`ChunkError`], at the first byte that the grammar forbids.
    pub fn decode(&mut self, input: &mut BytesMut) -> Result<Decoded, ChunkError> {
        while self.state != State::End && !input.is_empty() {
            if self.state == State::Data {
                return Ok(Decoded::Data(self.take_data(input)));
            }
            let byte = input.split_to(1).first().copied().unwrap_or_default();
            self.state = self.step(byte)?;
        }
        Ok(if self.state == State::End {
            Decoded::End
        } else {
            Decoded::More
        })
    }

    /// Judges bytes that somebody else decodes: those of the body, and any that
    /// follow it.
    ///
    /// # Errors
    /// As [`Self::decode`].
    pub fn pass_over(&mut self, mut input: &[u8]) -> Result<(), ChunkError> {
        while self.state != State::End {
            if self.state == State::Data {
                let data = self.take(input.len());
                input = input.get(data..).unwrap_or_default();
            }
            let Some((byte, rest)) = input.split_first() else {
                break;
            };
            self.state = self.step(*byte)?;
            input = rest;
        }
        Ok(())
    }

    /// Whether the body is complete.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state == State::End
    }

    /// The trailer fields, whole once [`Decoded::End`] was given. Those that
    /// frame, route, authenticate, or control the message are dropped
    /// (RFC 9110 6.5.1).
    #[must_use]
    pub fn into_trailers(self) -> HeaderMap {
        self.trailers
    }

    fn take_data(&mut self, input: &mut BytesMut) -> Bytes {
        let taken = self.take(input.len());
        input.split_to(taken).freeze()
    }

    /// How many of the next bytes are data, of `len` that there are.
    fn take(&mut self, len: usize) -> usize {
        let wanted = usize::try_from(self.remaining).unwrap_or(usize::MAX);
        let taken = wanted.min(len);
        let bytes = u64::try_from(taken).unwrap_or(u64::MAX);
        self.remaining = self.remaining.saturating_sub(bytes);
        if self.remaining == 0 {
            self.state = State::DataCr;
        }
        taken
    }

    fn step(&mut self, byte: u8) -> Result<State, ChunkError> {
        match self.state {
            State::Size(digits) => self.size(digits, byte),
            State::Extension(ext) => self.extension(ext, byte),
            State::SizeLf => expect(byte, b'\n', self.after_size()),
            State::DataCr => expect(byte, b'\r', State::DataLf),
            State::DataLf => expect(byte, b'\n', State::Size(0)),
            State::Trailer => self.trailer(byte),
            State::Data | State::End => Ok(self.state),
        }
    }

    fn size(&mut self, digits: u32, byte: u8) -> Result<State, ChunkError> {
        if let Some(digit) = char::from(byte).to_digit(16) {
            self.remaining = self
                .remaining
                .checked_mul(16)
                .ok_or(ChunkError::SizeOverflow)?
                | u64::from(digit);
            // Sixteen digits hold 64 bits: more are zeros that mean no good.
            return if digits < 16 {
                Ok(State::Size(digits + 1))
            } else {
                Err(ChunkError::SizeOverflow)
            };
        }
        match byte {
            _ if digits == 0 => Err(ChunkError::Size(byte)),
            b'\r' => Ok(State::SizeLf),
            b';' => Ok(State::Extension(Ext::BeforeName)),
            b' ' | b'\t' => Ok(State::Extension(Ext::Semicolon)),
            _ => Err(ChunkError::Size(byte)),
        }
    }

    fn extension(&mut self, ext: Ext, byte: u8) -> Result<State, ChunkError> {
        self.extension_bytes += 1;
        if self.extension_bytes > self.limits.extensions {
            return Err(ChunkError::TooManyExtensions(self.limits.extensions));
        }
        let may_end = matches!(ext, Ext::Name | Ext::Value | Ext::AfterQuoted);
        if byte == b'\r' && may_end {
            return Ok(State::SizeLf);
        }
        let next = ext.next(byte).ok_or(ChunkError::Extension(byte))?;
        Ok(State::Extension(next))
    }

    const fn after_size(&self) -> State {
        if self.remaining == 0 {
            State::Trailer
        } else {
            State::Data
        }
    }

    fn trailer(&mut self, byte: u8) -> Result<State, ChunkError> {
        self.trailer_bytes += 1;
        if self.trailer_bytes > self.limits.trailers {
            return Err(ChunkError::TooManyTrailers(self.limits.trailers));
        }
        if byte != b'\n' {
            self.line.push(byte);
            return Ok(State::Trailer);
        }
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").ok_or(HeadError::LineEnd)?;
        if line.is_empty() {
            return Ok(State::End);
        }
        self.keep_trailer(line)?;
        Ok(State::Trailer)
    }

    fn keep_trailer(&mut self, line: &[u8]) -> Result<(), ChunkError> {
        let (name, value) = check_field_line(line)?;
        let name = HeaderName::from_bytes(name).map_err(|_| HeadError::FieldName)?;
        let value = HeaderValue::from_bytes(value).map_err(|_| HeadError::FieldValue(0))?;
        if is_trailer_field(&name) {
            self.trailers.append(name, value);
        }
        Ok(())
    }
}

impl Ext {
    /// The place after `byte`, unless the grammar forbids it here.
    const fn next(self, byte: u8) -> Option<Self> {
        match self {
            Self::Quoted => match byte {
                b'"' => Some(Self::AfterQuoted),
                b'\\' => Some(Self::QuotedPair),
                _ if is_value_byte(byte) => Some(Self::Quoted),
                _ => None,
            },
            Self::QuotedPair => {
                if is_value_byte(byte) {
                    Some(Self::Quoted)
                } else {
                    None
                }
            }
            Self::Semicolon
            | Self::BeforeName
            | Self::Name
            | Self::AfterName
            | Self::BeforeValue
            | Self::Value
            | Self::AfterQuoted => self.next_outside_quotes(byte),
        }
    }

    const fn next_outside_quotes(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::BeforeName | Self::BeforeValue | Self::AfterName, b' ' | b'\t') => Some(self),
            (Self::Name, b' ' | b'\t') => Some(Self::AfterName),
            (Self::Value | Self::AfterQuoted | Self::Semicolon, b' ' | b'\t') => {
                Some(Self::Semicolon)
            }
            (Self::BeforeValue, b'"') => Some(Self::Quoted),
            (Self::Name | Self::AfterName, b'=') => Some(Self::BeforeValue),
            (Self::BeforeName | Self::BeforeValue, b';') => None,
            (_, b';') => Some(Self::BeforeName),
            (Self::BeforeName | Self::Name, _) if is_tchar(byte) => Some(Self::Name),
            (Self::BeforeValue | Self::Value, _) if is_tchar(byte) => Some(Self::Value),
            _ => None,
        }
    }
}

const fn expect(byte: u8, wanted: u8, then: State) -> Result<State, ChunkError> {
    if byte == wanted {
        Ok(then)
    } else {
        Err(ChunkError::LineEnd(byte))
    }
}

/// Whether a field may stand in a trailer section: none that frames, routes,
/// authenticates, makes conditions or controls, nor one of a connection
/// (RFC 9110 6.5.1).
#[must_use]
pub fn is_trailer_field(name: &HeaderName) -> bool {
    const FORBIDDEN: [HeaderName; 23] = [
        header::AGE,
        header::AUTHORIZATION,
        header::CACHE_CONTROL,
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_RANGE,
        header::CONTENT_TYPE,
        CLIENT_IP,
        header::COOKIE,
        header::DATE,
        header::EXPECT,
        header::EXPIRES,
        header::FORWARDED,
        header::HOST,
        header::LOCATION,
        header::MAX_FORWARDS,
        header::PRAGMA,
        header::RANGE,
        header::SET_COOKIE,
        header::TRAILER,
        header::VARY,
        header::VIA,
        header::WWW_AUTHENTICATE,
    ];
    const FORBIDDEN_KINDS: [&str; 2] = ["if-", "x-forwarded-"];
    let begins = |kind: &str| name.as_str().starts_with(kind);
    !FORBIDDEN.contains(name) && !is_hop_by_hop(name) && !FORBIDDEN_KINDS.into_iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Whole = Result<(Vec<u8>, bool, HeaderMap, usize), ChunkError>;

    /// Data, whether complete, trailers, and bytes left, of a body that comes
    /// in the given segments.
    fn decode_segments(segments: &[&[u8]]) -> Whole {
        let mut decoder = ChunkDecoder::new(ChunkLimits {
            extensions: 40,
            trailers: 40,
        });
        let mut input = BytesMut::new();
        let mut data = Vec::new();
        for segment in segments {
            input.extend_from_slice(segment);
            while let Decoded::Data(bytes) = decoder.decode(&mut input)? {
                assert!(!bytes.is_empty());
                data.extend_from_slice(&bytes);
            }
        }
        let complete = decoder.is_complete();
        Ok((data, complete, decoder.into_trailers(), input.len()))
    }

    fn decode(body: &[u8]) -> Whole {
        decode_segments(&[body])
    }

    #[test]
    fn data_trailers_and_the_next_message_are_told_apart() {
        let (data, complete, trailers, left) =
            decode(b"5\r\nhello\r\nA\r\n0123456789\r\n0\r\nX-Sum: 1\r\nHost: x\r\n\r\nGET")
                .unwrap();
        assert_eq!(data, b"hello0123456789");
        assert!(complete);
        assert_eq!(left, 3);
        assert_eq!(trailers.len(), 1);
        assert_eq!(trailers["x-sum"], "1");
    }

    #[test]
    fn good_sizes_and_extensions_are_accepted_and_dropped() {
        let rows: [&[u8]; 9] = [
            b"1",
            b"01",
            b"0000000000000001",
            b"1;a",
            b"1;a=b",
            b"1 ; a = b ;c",
            b"1;a=\"x;\\\" \t\xff\"",
            b"1;a=\"\" ;b",
            b"1\t;a",
        ];
        for size in rows {
            let body = [size, b"\r\nZ\r\n0\r\n\r\n"].concat();
            let (data, complete, _, _) = decode(&body).unwrap();
            assert_eq!((&data[..], complete), (&b"Z"[..], true), "{size:?}");
        }
    }

    #[test]
    fn other_chunk_size_lines_are_refused_rfc_9112_7_1() {
        let rows: [&[u8]; 26] = [
            b"",
            b"-1",
            b"+1",
            b"0x1",
            b" 1",
            b"1 ",
            b"1,",
            b"g",
            b"1\n",
            b"1\r\r",
            b"1\0",
            b"10000000000000000",
            b"00000000000000001",
            b"1;",
            b"1;;a",
            b"1;a=",
            b"1;=b",
            b"1;a=b=c",
            b"1;a b",
            b"1;a ",
            b"1;a=\"x",
            b"1;a=\"x\"y",
            b"2\r\r;a",
            b"1;\r;a",
            b"5;a=\"x\ny\"",
            b"5;a=\"x\ry\"",
        ];
        for size in rows {
            let body = [size, b"\r\nZ\r\n0\r\n\r\n"].concat();
            assert!(
                decode(&body).is_err(),
                "{:?}",
                String::from_utf8_lossy(size)
            );
        }
    }

    #[test]
    fn only_crlf_ends_data_and_trailers() {
        let rows: [&[u8]; 9] = [
            b"1\r\nZxx0\r\n\r\n",
            b"1\r\nZ\n0\r\n\r\n",
            b"1\r\nZ\r0\r\n\r\n",
            b"1\r\nZ0\r\n\r\n",
            b"0\r\n\n",
            b"0\r\nA: b\n\r\n",
            b"0\r\nA : b\r\n\r\n",
            b"0\r\nA: b\r\n c\r\n\r\n",
            b"0\r\nA: b\rc\r\n\r\n",
        ];
        for body in rows {
            assert!(decode(body).is_err(), "{:?}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn extensions_and_trailers_are_bounded_over_the_whole_body() {
        let chunk = b"1;aaaaaaaa\r\nZ\r\n".repeat(5);
        assert_eq!(decode(&chunk), Err(ChunkError::TooManyExtensions(40)));
        let trailers = [b"0\r\n", &b"A: b\r\n".repeat(7)[..]].concat();
        assert_eq!(decode(&trailers), Err(ChunkError::TooManyTrailers(40)));
    }

    #[test]
    fn a_body_that_stops_is_never_complete() {
        let body = b"5;a=\"b\"\r\nhello\r\n0\r\nA: b\r\n\r\n";
        for end in 0..body.len() {
            let (_, complete, _, _) = decode(&body[..end]).unwrap();
            assert!(!complete, "after {end} bytes");
        }
        assert!(decode(body).unwrap().1);
    }

    /// What another reader makes of a body: its data, and how much is behind it.
    fn by_lines_and_counts(mut body: &[u8]) -> Option<(Vec<u8>, usize)> {
        let mut data = Vec::new();
        loop {
            let (line, rest) = cut_line(body)?;
            let digits = line.split(|byte| !byte.is_ascii_hexdigit()).next()?;
            let size = usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
            body = rest;
            if size == 0 {
                break;
            }
            data.extend_from_slice(body.get(..size)?);
            body = body.get(size..)?.strip_prefix(b"\r\n")?;
        }
        loop {
            let (line, rest) = cut_line(body)?;
            body = rest;
            if line.is_empty() {
                return Some((data, body.len()));
            }
        }
    }

    fn cut_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
        let end = bytes.iter().position(|byte| b"\r\n".contains(byte))?;
        let (line, rest) = bytes.split_at(end);
        Some((line, rest.strip_prefix(b"\r\n")?))
    }

    fn bodies() -> impl Strategy<Value = Vec<u8>> {
        let pieces: Vec<&[u8]> = vec![
            b"1\r\nZ\r\n",
            b"3\r\nabc\r\n",
            b"0\r\n\r\n",
            b"0\r\n",
            b"A: b\r\n",
            b"\r\n",
            b"\r",
            b"\n",
            b";",
            b"a",
            b"=",
            b"\"",
            b"\\",
            b" ",
            b"2;a=\"b\"\r\nab\r\n",
            b"f",
            b":",
            b"\xff",
        ];
        let piece = proptest::sample::select(pieces);
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn a_body_decodes_alike_for_any_segmentation(
            body in bodies(), cuts in proptest::collection::vec(0usize..50, 0..8),
        ) {
            let mut ends: Vec<usize> = cuts.iter().map(|c| (*c).min(body.len())).collect();
            ends.sort_unstable();
            ends.push(body.len());
            let mut start = 0;
            let mut segments = Vec::new();
            for end in ends {
                segments.push(&body[start..end]);
                start = end;
            }
            let bytewise: Vec<&[u8]> = body.chunks(1).collect();
            let whole = decode(&body);
            prop_assert_eq!(&decode_segments(&segments), &whole);
            prop_assert_eq!(&decode_segments(&bytewise), &whole);
        }

        #[test]
        fn a_body_that_is_taken_for_whole_is_read_alike_by_lines_and_counts(body in bodies()) {
            if let Ok((data, true, _, left)) = decode(&body) {
                let read = by_lines_and_counts(&body);
                prop_assert_eq!(read, Some((data, left)));
            }
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            let decoded = decode(&body);
            prop_assert!(decoded.map_or(true, |(data, ..)| data.len() <= body.len()));
        }

        #[test]
        fn a_body_that_is_passed_over_is_judged_as_if_it_were_decoded(
            body in bodies(), cut in 0usize..50,
        ) {
            let mut decoder = ChunkDecoder::new(ChunkLimits { extensions: 40, trailers: 40 });
            let (first, second) = body.split_at(cut.min(body.len()));
            let judged = decoder.pass_over(first).and_then(|()| decoder.pass_over(second));
            let decoded = decode(&body).map(|(_, complete, trailers, _)| (complete, trailers));
            let complete = decoder.is_complete();
            prop_assert_eq!(judged.map(|()| (complete, decoder.into_trailers())), decoded);
        }
    }
}
