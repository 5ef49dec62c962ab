//! Conditional and range requests for what is stored (RFC 9110 13 and 14).

use crate::support::{Client, Origin, Proxy, Response};
use strata::metrics::Metric;

const BODY: &str = "abcdefghijklmnopqrstuvwxyz";
const MODIFIED: &str = "Wed, 01 Jan 2020 10:00:00 GMT";
const BEFORE: &str = "Wed, 01 Jan 2020 09:59:59 GMT";
const AFTER: &str = "Wed, 01 Jan 2020 10:00:01 GMT";

fn stored() -> (Origin, Proxy) {
    let origin = Origin::answering(|request| {
        let conditions = ["if-match", "if-unmodified-since"];
        if conditions
            .iter()
            .any(|name| !request.fields(name).is_empty())
        {
            return b"HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n".to_vec();
        }
        format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nETag: \"a\"\r\n\
             Last-Modified: {MODIFIED}\r\nContent-Type: text/plain\r\n\
             Content-Length: {}\r\n\r\n{BODY}",
            BODY.len()
        )
        .into_bytes()
    });
    let proxy = Proxy::start(&origin.map("/"));
    assert_eq!(ask(&proxy, "GET", "").status, 200);
    (origin, proxy)
}

fn ask(proxy: &Proxy, method: &str, fields: &str) -> Response {
    let fields = fields.replace("; ", "\r\n");
    let lines = if fields.is_empty() {
        fields
    } else {
        fields + "\r\n"
    };
    let request = format!("{method} /a HTTP/1.1\r\nHost: h\r\n{lines}\r\n");
    let mut client = Client::connect(proxy.address);
    match method {
        "HEAD" => client.send(request).head().unwrap(),
        _ => client.ask(request),
    }
}

/// Fields of a request, separated by `; `, the status of the answer and its
/// body.
type Row = (&'static str, u16, &'static str);

fn check(rows: &[Row]) {
    let (origin, proxy) = stored();
    for (fields, status, body) in rows {
        let fields = fields
            .replace("{modified}", MODIFIED)
            .replace("{before}", BEFORE)
            .replace("{after}", AFTER);
        let answer = ask(&proxy, "GET", &fields);
        assert_eq!(answer.status, *status, "{fields}");
        assert_eq!(answer.text(), *body, "{fields}");
    }
    // What does not hold for what is stored, the origin judges.
    let judged = rows.iter().filter(|(_, status, _)| *status == 412).count();
    assert_eq!(
        origin.requests().len(),
        1 + judged,
        "what is stored was answered from"
    );
}

#[test]
fn preconditions_count_in_the_order_of_rfc_9110_13_2_2() {
    check(&[
        // 1: If-Match, by strong comparison.
        ("If-Match: \"a\"", 200, BODY),
        ("If-Match: *", 200, BODY),
        ("If-Match: \"b\", \"a\"", 200, BODY),
        ("If-Match: \"b\"", 412, ""),
        ("If-Match: W/\"a\"", 412, ""),
        ("If-Match: \"b\"; If-None-Match: \"a\"", 412, ""),
        // 2: If-Unmodified-Since, only without If-Match.
        ("If-Unmodified-Since: {modified}", 200, BODY),
        ("If-Unmodified-Since: {before}", 412, ""),
        ("If-Match: \"a\"; If-Unmodified-Since: {before}", 200, BODY),
        (
            "If-Unmodified-Since: {before}; If-None-Match: \"a\"",
            412,
            "",
        ),
        ("If-Unmodified-Since: yesterday", 200, BODY),
        // 3: If-None-Match, by weak comparison.
        ("If-None-Match: \"a\"", 304, ""),
        ("If-None-Match: W/\"a\"", 304, ""),
        ("If-None-Match: *", 304, ""),
        ("If-None-Match: \"b\"", 200, BODY),
        ("If-Match: \"a\"; If-None-Match: \"a\"", 304, ""),
        // 4: If-Modified-Since, only without If-None-Match.
        ("If-Modified-Since: {modified}", 304, ""),
        ("If-Modified-Since: {after}", 304, ""),
        ("If-Modified-Since: {before}", 200, BODY),
        (
            "If-None-Match: \"b\"; If-Modified-Since: {after}",
            200,
            BODY,
        ),
        // 5: If-Range, after all of these.
        ("Range: bytes=0-1; If-None-Match: \"a\"", 304, ""),
        ("Range: bytes=0-1; If-Match: \"b\"", 412, ""),
        ("Range: bytes=99-; If-None-Match: \"a\"", 304, ""),
        ("Range: bytes=0-1; If-None-Match: \"b\"", 206, "ab"),
    ]);
}

#[test]
fn if_range_lets_a_range_count_by_strong_comparison_rfc_9110_13_1_5() {
    check(&[
        ("Range: bytes=0-1; If-Range: \"a\"", 206, "ab"),
        ("Range: bytes=0-1; If-Range: \"b\"", 200, BODY),
        ("Range: bytes=0-1; If-Range: W/\"a\"", 200, BODY),
        ("Range: bytes=0-1; If-Range: {modified}", 206, "ab"),
        ("Range: bytes=0-1; If-Range: {after}", 200, BODY),
        ("Range: bytes=0-1; If-Range: {before}", 200, BODY),
        ("Range: bytes=0-1; If-Range: a", 200, BODY),
        ("Range: bytes=99-; If-Range: \"b\"", 200, BODY),
        ("If-Range: \"b\"", 200, BODY),
    ]);
}

#[test]
fn one_range_is_answered_by_its_part_rfc_9110_14_1_2() {
    check(&[
        ("Range: bytes=0-0", 206, "a"),
        ("Range: bytes=24-", 206, "yz"),
        ("Range: bytes=24-99", 206, "yz"),
        ("Range: bytes=-3", 206, "xyz"),
        ("Range: bytes=-99", 206, BODY),
        ("Range: bytes=0-", 206, BODY),
        ("Range: lines=0-1", 200, BODY),
        ("Range: bytes=2-1", 200, BODY),
        ("Range: bytes=a", 200, BODY),
        // Several that come to one.
        ("Range: bytes=0-1,2-3", 206, "abcd"),
        ("Range: bytes=0-1,99-", 206, "ab"),
    ]);
    let (_origin, proxy) = stored();
    let part = ask(&proxy, "GET", "Range: bytes=-3");
    assert_eq!(part.fields("content-range"), ["bytes 23-25/26"]);
    assert_eq!(part.fields("content-length"), ["3"]);
    assert_eq!(part.fields("content-type"), ["text/plain"]);
}

#[test]
fn a_range_beyond_the_end_is_416_with_the_length_rfc_9110_15_5_17() {
    let (_origin, proxy) = stored();
    for fields in [
        "Range: bytes=26-",
        "Range: bytes=-0",
        "Range: bytes=99-,88-90",
    ] {
        let answer = ask(&proxy, "GET", fields);
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (416, ""),
            "{fields}"
        );
        assert_eq!(answer.fields("content-range"), ["bytes */26"]);
        assert_eq!(answer.fields("content-length"), ["0"]);
    }
}

#[test]
fn range_has_no_meaning_for_head_rfc_9110_14_2() {
    let (_origin, proxy) = stored();
    for range in ["bytes=0-1", "bytes=99-", "bytes=0-0,25-25"] {
        let answer = ask(&proxy, "HEAD", &format!("Range: {range}"));
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, ""),
            "{range}"
        );
        assert_eq!(answer.fields("content-length"), ["26"]);
    }
}

/// A body long enough that ranges of it are not near each other.
fn long() -> String {
    (0..1000).map(|n| format!("{n:04}")).collect()
}

fn stored_long(chunked: bool) -> (Origin, Proxy) {
    let origin = Origin::answering(move |_| {
        let body = long();
        let framing = if chunked {
            "Transfer-Encoding: chunked".to_owned()
        } else {
            format!("Content-Length: {}", body.len())
        };
        let body = if chunked {
            format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len())
        } else {
            body
        };
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Type: text/plain";
        format!("{head}\r\n{framing}\r\n\r\n{body}").into_bytes()
    });
    let proxy = Proxy::start(&origin.map("/"));
    (origin, proxy)
}

/// The parts of a multipart answer: Content-Range and content.
fn parts(answer: &Response) -> Vec<(String, String)> {
    let media_type = answer.fields("content-type")[0];
    let boundary = media_type
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap();
    let text = answer.text();
    let body = text
        .strip_suffix(&format!("\r\n--{boundary}--\r\n"))
        .unwrap();
    let delimiter = format!("\r\n--{boundary}\r\n");
    body.split(&delimiter)
        .skip(1)
        .map(|part| {
            let (head, content) = part.split_once("\r\n\r\n").unwrap();
            let range = head
                .strip_prefix("Content-Type: text/plain\r\nContent-Range: ")
                .unwrap();
            (range.to_owned(), content.to_owned())
        })
        .collect()
}

#[test]
fn several_ranges_are_one_multipart_answer_rfc_9110_14_6() {
    let asked = "Range: bytes=3996-3999,0-3,2000-2007,2004-2011,9999-";
    let ranges = [(3996, 3999), (0, 3), (2000, 2011)];
    for chunked in [false, true] {
        let (origin, proxy) = stored_long(chunked);
        assert_eq!(ask(&proxy, "GET", "").status, 200);
        let answer = ask(&proxy, "GET", asked);
        assert_eq!(answer.status, 206);
        let length = answer.fields("content-length")[0].parse::<usize>().unwrap();
        assert_eq!(length, answer.body.len());
        assert_eq!(answer.fields("content-range"), [""; 0]);
        let expected = ranges.map(|(first, last)| {
            let range = format!("bytes {first}-{last}/4000");
            (range, long().get(first..=last).unwrap().to_owned())
        });
        assert_eq!(parts(&answer), expected);
        assert_eq!(origin.requests().len(), 1);
    }
}

#[test]
fn several_ranges_of_a_body_under_way_are_served_as_it_comes() {
    let (origin, proxy) = stored_long(false);
    proxy.reload(
        "CONFIG proxy.config.http.cache.range.write INT 1\n",
        &origin.map("/"),
    );
    let answer = ask(&proxy, "GET", "Range: bytes=3000-3003,0-3,1000-1003");
    assert_eq!(answer.status, 206);
    let mut contents: Vec<_> = parts(&answer).into_iter().map(|part| part.1).collect();
    contents.sort();
    assert_eq!(contents, ["0000", "0250", "0750"]);
    assert_eq!(origin.requests().len(), 1);
    assert_eq!(proxy.counter(Metric::FillCut), 0);
}
