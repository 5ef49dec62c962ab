//! Messages as one strict reader takes them, independent of the proxy's code.

/// Bytes that no strict reader takes for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// A whole message, or none yet.
type Read<T> = Result<Option<T>, Malformed>;

/// What begins a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The words of the first line; a status line has two.
    pub(super) line: Vec<String>,
    fields: Vec<(String, String)>,
    bytes: usize,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    None,
    Length(usize),
    Chunked,
    Close,
}

/// A message, and where the next one begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
    pub(super) end: usize,
}

impl Head {
    /// The field's values.
    pub(super) fn all(&self, name: &str) -> Vec<&str> {
        let fields = self.fields.iter().filter(|(field, _)| field == name);
        fields.map(|(_, value)| value.as_str()).collect()
    }

    fn is_old(&self, version: usize) -> bool {
        self.line
            .get(version)
            .is_some_and(|word| word == "HTTP/1.0")
    }

    /// What the fields say, which must be one thing.
    pub(super) fn framing(&self, version: usize) -> Result<Option<Framing>, Malformed> {
        let (codings, lengths) = (self.all("transfer-encoding"), self.all("content-length"));
        if codings.is_empty() {
            return length(&lengths).map(|length| length.map(Framing::Length));
        }
        let is_chunked = codings.len() == 1 && codings[0].eq_ignore_ascii_case("chunked");
        if is_chunked && lengths.is_empty() && !self.is_old(version) {
            return Ok(Some(Framing::Chunked));
        }
        Err(Malformed)
    }
}

fn length(lines: &[&str]) -> Result<Option<usize>, Malformed> {
    let mut elements = lines.iter().flat_map(|line| line.split(',')).map(str::trim);
    let Some(first) = elements.next() else {
        return Ok(None);
    };
    let digits = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || elements.any(|other| other != first) {
        return Err(Malformed);
    }
    first.parse().map(Some).map_err(|_| Malformed)
}

fn is_token(text: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_tchar)
}

/// The head, blank lines before it passed over.
fn head(input: &[u8]) -> Read<Head> {
    let blank = input
        .iter()
        .take_while(|byte| b"\r\n".contains(byte))
        .count();
    let mut lines = Vec::new();
    let mut at = blank;
    loop {
        let rest = &input[at..];
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let line = rest[..end].strip_suffix(b"\r").ok_or(Malformed);
        at += end + 1;
        if line == Ok(b"") {
            break;
        }
        lines.push(line);
    }
    let mut lines = lines.into_iter();
    let first = lines.next().ok_or(Malformed)??;
    let fields: Result<Vec<_>, Malformed> = lines.map(|line| field(line?)).collect();
    Ok(Some(Head {
        line: words(first),
        fields: fields?,
        bytes: at,
    }))
}

fn words(line: &[u8]) -> Vec<String> {
    let words = line.split(|byte| *byte == b' ');
    words
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

fn field(line: &[u8]) -> Result<(String, String), Malformed> {
    let colon = line
        .iter()
        .position(|byte| *byte == b':')
        .ok_or(Malformed)?;
    let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
    let value = &line[colon + 1..];
    let is_good = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
    // Garbage in a preference is no preference (RFC 9110 5.5).
    let is_preference = name == "accept" || name.starts_with("accept-");
    let is_value = value.iter().all(is_good) || (is_preference && !value.contains(&b'\r'));
    if !is_token(&name) || !is_value {
        return Err(Malformed);
    }
    let value = String::from_utf8_lossy(value);
    Ok((name, value.trim_matches([' ', '\t']).to_owned()))
}

/// The request at the beginning of `input`.
pub(super) fn request(input: &[u8]) -> Read<Message> {
    let Some(head) = head(input)? else {
        return Ok(None);
    };
    let [method, target, version] = head.line.as_slice() else {
        return Err(Malformed);
    };
    let is_version = version.strip_prefix("HTTP/1.").is_some_and(|minor| {
        let mut minor = minor.bytes();
        minor.next().is_some_and(|digit| digit.is_ascii_digit()) && minor.next().is_none()
    });
    let is_target = target
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b'#');
    let hosts = head.all("host").len();
    let is_hosted = hosts == 1 || (hosts == 0 && head.is_old(2));
    if !is_token(method) || target.is_empty() || !is_target || !is_version || !is_hosted {
        return Err(Malformed);
    }
    let framing = head.framing(2)?.unwrap_or(Framing::None);
    message(input, head, framing)
}

/// The final response at the beginning of `input`, which is all that comes, to
/// a request that is a HEAD or not. Interim ones are passed over.
pub(super) fn response(input: &[u8], to_head: bool) -> Read<Message> {
    let mut begin = 0;
    loop {
        let Some(head) = head(&input[begin..])? else {
            return Ok(None);
        };
        let status = status(&head).ok_or(Malformed)?;
        let framing = match status {
            100..200 | 204 => Framing::None,
            _ => {
                let framing = head.framing(0)?.unwrap_or(Framing::Close);
                if to_head || status == 304 {
                    Framing::None
                } else {
                    framing
                }
            }
        };
        if status == 101 {
            return Err(Malformed);
        }
        if status >= 200 {
            let message = message(&input[begin..], head, framing)?;
            return Ok(message.map(|message| Message {
                end: begin + message.end,
                ..message
            }));
        }
        begin += head.bytes;
    }
}

/// The status of a response.
pub(super) fn status(head: &Head) -> Option<u16> {
    let [version, status, ..] = head.line.as_slice() else {
        return None;
    };
    let version = version.strip_prefix("HTTP/1.")?;
    let is_three = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
    let status = status.parse().ok().filter(|status| *status >= 100)?;
    (is_three && ["0", "1"].contains(&version)).then_some(status)
}

fn message(input: &[u8], head: Head, framing: Framing) -> Read<Message> {
    let rest = &input[head.bytes..];
    let body = match framing {
        Framing::None => Some((Vec::new(), 0)),
        Framing::Length(length) => rest.get(..length).map(|body| (body.to_vec(), length)),
        Framing::Chunked => chunked(rest)?,
        Framing::Close => Some((rest.to_vec(), rest.len())),
    };
    Ok(body.map(|(body, taken)| Message {
        end: head.bytes + taken,
        head,
        body,
    }))
}

/// The line up to CRLF; LF alone is in no line.
fn line(input: &[u8]) -> Read<&[u8]> {
    let Some(end) = input.iter().position(|byte| b"\r\n".contains(byte)) else {
        return Ok(None);
    };
    match (input[end], input.get(end + 1)) {
        (b'\r', None) => Ok(None),
        (b'\r', Some(b'\n')) => Ok(Some(&input[..end])),
        _ => Err(Malformed),
    }
}

fn chunked(input: &[u8]) -> Read<(Vec<u8>, usize)> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let Some(size_line) = line(&input[at..])? else {
            return Ok(None);
        };
        at += size_line.len() + 2;
        let size = chunk_size(size_line)?;
        if size == 0 {
            break;
        }
        let Some(data) = input.get(at..at.saturating_add(size)) else {
            return Ok(None);
        };
        body.extend_from_slice(data);
        at += size;
        match line(&input[at..])? {
            None => return Ok(None),
            Some(b"") => at += 2,
            Some(_) => return Err(Malformed),
        }
    }
    loop {
        let Some(trailer) = line(&input[at..])? else {
            return Ok(None);
        };
        at += trailer.len() + 2;
        if trailer.is_empty() {
            return Ok(Some((body, at)));
        }
        field(trailer)?;
    }
}

fn chunk_size(line: &[u8]) -> Result<usize, Malformed> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit());
    let (digits, rest) = line.split_at(digits.count());
    let is_extension = rest
        .trim_ascii_start()
        .first()
        .is_none_or(|byte| *byte == b';');
    let has_control = rest
        .iter()
        .any(|byte| *byte != b'\t' && byte.is_ascii_control());
    if !is_extension || has_control {
        return Err(Malformed);
    }
    let digits = std::str::from_utf8(digits).map_err(|_| Malformed)?;
    usize::from_str_radix(digits, 16).map_err(|_| Malformed)
}
