//! Messages by a grammar, and what can be done to them.

use strata::base::prng::Prng;

/// Chance, from one seed.
pub(super) struct Dice(Prng);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(Prng::seeded(seed))
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        let number = self.0.below(u64::try_from(bound).unwrap());
        usize::try_from(number).unwrap()
    }

    pub(super) fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const METHODS: &[&str] = &[
    "GET", "GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "BREW",
];
const TARGETS: &[&str] = &[
    "/",
    "/a?b",
    "/a//b/../c",
    "/%41%2f",
    "/a|{b}\"",
    "//a/b",
    "http://h/a",
    "HTTP://x.cn:80/b?c",
    "http://h",
    "http://h?q",
    "/a;b=c,d",
    "/?",
    "/:80",
    "/@h",
];
const VERSIONS: &[&str] = &["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/1.2"];
const FIELDS: &[&str] = &[
    "X: a",
    "X:",
    "X: \"a, b\"",
    "Accept: */*",
    "Accept-Encoding: gzip",
    "Cookie: a=b",
    "Connection: keep-alive",
    "Connection: close",
    "Connection: X, Y\r\nY: 1",
    "Connection: Host, Content-Length, Transfer-Encoding",
    "Expect: 100-continue",
    "TE: trailers",
    "Trailer: Sum",
    "Transfer-Encodings: chunked",
    "Content-Lengthy: 9",
    "X-Content-Length: 9",
    "Upgrade: websocket\r\nConnection: upgrade",
    "Keep-Alive: 5",
    "Proxy-Connection: keep-alive",
    "X-Obs: \u{e9}",
    "Range: bytes=0-0",
];
const OF_RESPONSES: &[&str] = &[
    "Cache-Control: max-age=60",
    "Cache-Control: no-store",
    "ETag: \"a\"",
    "Set-Cookie: a=b",
    "Connection: close",
    "Connection: X\r\nX: 1",
    "Trailer: Sum",
    "Date: never",
    "Vary: X",
    "X-Obs: \u{e9}",
    "Content-Type: text/plain",
    "Age: 1",
    "Keep-Alive: 5",
    "Connection: keep-alive",
];
/// Lines on which two readers could differ.
const EVIL: &[&str] = &[
    "Content-Length: 0",
    "Content-Length: 3",
    "Content-Length: 5",
    "Content-Length: +5",
    "Content-Length: 0x5",
    "Content-Length: 5, 5",
    "Content-Length: 5, 6",
    "Content-Length: 05",
    "Content-Length: -1",
    "Content-Length: 18446744073709551616",
    "Content-Length : 5",
    "Content-Length: 5 5",
    "Content-Length:",
    "Content-Length: 5;",
    "\tContent-Length: 5",
    " Content-Length: 5",
    "Content_Length: 5",
    "Content-Length\u{0}: 5",
    "Content-Length: 5\u{0}",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding:\u{b}chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding:\r\n chunked",
    "Transfer-Encoding: chunked;q=1",
    "Transfer-Encoding:",
    "Transfer-Encoding: ,chunked",
    "Transfer-Encoding\r: chunked",
    "X: a\nTransfer-Encoding: chunked",
    "X: a\rContent-Length: 5",
    "X: a\u{0}b",
    ": x",
    "X",
    "Host: h",
    "Host: a, b",
    "Host:",
    "Host: h:70000",
    "",
    "GET /smuggled HTTP/1.1",
    "X: a\r\n\r\nGET /smuggled HTTP/1.1",
];
const BYTES: &[u8] = b"\0\r\n \t:;,'\"#@/%0x9aZ\x0b\x7f\x80\xff";
const LINE_ENDS: &[&str] = &[
    "\n", "\r", "\r\r\n", "\n\r", "\r\n\r\n", "\r\n ", " \r\n", "",
];
const SIZES: &[&str] = &[
    "0",
    "00",
    "0x",
    "+",
    "-",
    " ",
    "ffffffffffffffff",
    "ffffffffffffffff1",
    "\t",
    "g",
];

/// A request that every reader takes alike.
pub(super) fn request(dice: &mut Dice) -> Vec<u8> {
    let line = [dice.pick(METHODS), dice.pick(TARGETS), dice.pick(VERSIONS)].join(" ");
    let (framing, body) = framed(dice, !line.ends_with("1.0"));
    let mut fields = vec!["Host: h".to_owned()];
    fields.extend((0..dice.below(4)).map(|_| dice.pick(FIELDS).to_owned()));
    fields.extend(framing);
    shuffle(dice, &mut fields);
    assembled(&line, &fields, &body)
}

/// A response that every reader takes alike, behind interim ones.
pub(super) fn response(dice: &mut Dice) -> Vec<u8> {
    let mut interim = String::new();
    if dice.one_in(4) {
        let status = dice.pick(&["100 Continue", "103 Early Hints"]);
        interim = format!("HTTP/1.1 {status}\r\nLink: </a>\r\n\r\n");
    }
    let version = dice.pick(&["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0"]);
    let status = dice.pick(&[
        "200 OK", "200 OK", "200 OK", "404 ", "500 No", "204 No", "304 No",
    ]);
    let has_body = !status.ends_with(" No") || status.starts_with("500");
    let framed = framed(dice, version != "HTTP/1.0");
    let (framing, body) = if has_body { framed } else { (None, Vec::new()) };
    let mut fields: Vec<String> = framing.into_iter().collect();
    fields.extend((0..dice.below(4)).map(|_| dice.pick(OF_RESPONSES).to_owned()));
    shuffle(dice, &mut fields);
    let message = assembled(&format!("{version} {status}"), &fields, &body);
    [interim.into_bytes(), message].concat()
}

fn assembled(line: &str, fields: &[String], body: &[u8]) -> Vec<u8> {
    let head = format!(
        "{line}\r\n{}\r\n",
        fields
            .iter()
            .map(|field| format!("{field}\r\n"))
            .collect::<String>()
    );
    [head.as_bytes(), body].concat()
}

fn shuffle(dice: &mut Dice, lines: &mut [String]) {
    for at in 1..lines.len() {
        lines.swap(at, dice.below(at + 1));
    }
}

/// The field that frames a body, and the body.
fn framed(dice: &mut Dice, may_chunk: bool) -> (Option<String>, Vec<u8>) {
    match dice.below(if may_chunk { 4 } else { 2 }) {
        0 => (None, Vec::new()),
        1 => {
            let body = content(dice);
            (Some(format!("Content-Length: {}", body.len())), body)
        }
        _ => (Some("Transfer-Encoding: chunked".to_owned()), chunks(dice)),
    }
}

/// Content that looks like other things.
fn content(dice: &mut Dice) -> Vec<u8> {
    let text = dice.pick(&[
        "",
        "hello",
        "0\r\n\r\n",
        "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n",
        "\0\r\n\n",
    ]);
    text.as_bytes().to_vec()
}

fn chunks(dice: &mut Dice) -> Vec<u8> {
    let mut body = Vec::new();
    for _ in 0..dice.below(4) {
        let data = content(dice);
        if data.is_empty() {
            continue;
        }
        let extension = dice.pick(&["", "", ";a=b", ";a", ";a=\"b;c\""]);
        let zeros = dice.pick(&["", "", "0", "00"]);
        body.extend(format!("{zeros}{:x}{extension}\r\n", data.len()).bytes());
        body.extend(data);
        body.extend(b"\r\n");
    }
    let trailers = dice.pick(&["", "", "Sum: 7\r\n", "Content-Length: 9\r\nSum: 7\r\n"]);
    body.extend(format!("0\r\n{trailers}\r\n").bytes());
    body
}

/// Does one thing to a message.
pub(super) fn mutate(dice: &mut Dice, message: &mut Vec<u8>) {
    let at = dice.below(message.len() + 1);
    match dice.below(12) {
        0 => message.insert(at, BYTES[dice.below(BYTES.len())]),
        1 => replace(message, at, 1, b""),
        2 => replace(message, at, 1, &[BYTES[dice.below(BYTES.len())]]),
        3..=5 => {
            let line = dice.pick(EVIL).to_owned() + "\r\n";
            let at = line_start(dice, message);
            replace(message, at, 0, line.as_bytes());
        }
        6 | 7 => {
            let at = line_start(dice, message);
            let end = dice.pick(LINE_ENDS);
            replace(message, at.saturating_sub(2), 2, end.as_bytes());
        }
        8 => {
            let at = line_start(dice, message);
            let size = dice.pick(SIZES);
            replace(message, at, 0, size.as_bytes());
        }
        9 => {
            let slice: Vec<u8> = message[at..].iter().copied().take(dice.below(60)).collect();
            replace(message, at, 0, &slice);
        }
        10 => replace(message, at, dice.below(30), b""),
        _ => message.truncate(at),
    }
}

/// Where one of its lines begins.
fn line_start(dice: &mut Dice, message: &[u8]) -> usize {
    let ends = message.windows(2).enumerate();
    let mut starts: Vec<usize> = ends
        .filter(|(_, two)| two == b"\r\n")
        .map(|(at, _)| at + 2)
        .collect();
    starts.push(0);
    starts[dice.below(starts.len())]
}

fn replace(message: &mut Vec<u8>, at: usize, count: usize, by: &[u8]) {
    let end = (at + count).min(message.len());
    message.splice(at.min(end)..end, by.iter().copied());
}
