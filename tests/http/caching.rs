//! What is stored, for whom, and how requests reach it, end to end.

use crate::support::{Client, Origin, Proxy};
use strata::metrics::Metric;

/// A 200 of `body` with these field lines, each with its CRLF.
fn response(fields: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

fn request(method: &str, fields: &str) -> String {
    format!("{method} /a HTTP/1.1\r\nHost: h\r\n{fields}\r\n")
}

#[test]
fn what_is_not_stored_still_reaches_the_client_that_caused_it() {
    let cases = [
        ("Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n", "set-cookie", 2),
        (
            "Cache-Control: private=\"x-own\"\r\nX-Own: 1\r\n",
            "x-own",
            1,
        ),
    ];
    for (fields, name, count) in cases {
        let fields = format!("Cache-Control: max-age=60\r\n{fields}");
        let origin = Origin::answering(move |_| response(&fields, "x"));
        let proxy = Proxy::start(&origin.map("/"));
        let mut client = Client::connect(proxy.address);
        let first = client.ask(request("GET", ""));
        assert_eq!(first.fields(name).len(), count, "{}", first.head);
        let second = client.ask(request("GET", ""));
        assert_eq!(second.fields(name).len(), 0, "{}", second.head);
        assert_eq!(origin.requests().len(), 1);
    }
}

#[test]
fn a_cookie_of_a_304_reaches_the_client_that_asked_and_no_other() {
    let origin = Origin::answering(|request| {
        if request.fields("if-none-match").is_empty() {
            return response("Cache-Control: max-age=0\r\nETag: \"e\"\r\n", "x");
        }
        b"HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\nCache-Control: max-age=60\r\nSet-Cookie: a=1\r\n\r\n".to_vec()
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let cookies = [0, 1, 0].map(|count| {
        let answer = client.ask(request("GET", ""));
        (answer.fields("set-cookie").len(), count)
    });
    assert!(
        cookies.iter().all(|(had, count)| had == count),
        "{cookies:?}"
    );
}

#[test]
fn every_get_and_head_asks_for_the_same_encodings() {
    let origin = Origin::answering(|_| response("", "x"));
    let proxy = Proxy::start(&origin.map("/"));
    for (method, fields) in [("GET", ""), ("GET", "Range: bytes=0-\r\n"), ("HEAD", "")] {
        let fields = format!("{fields}Accept-Encoding: gzip;q=0.5, x, br\r\n");
        let mut client = Client::connect(proxy.address);
        client.send(request(method, &fields)).head().unwrap();
    }
    for asked in origin.requests() {
        assert_eq!(asked.fields("accept-encoding"), ["gzip"], "{}", asked.head);
    }
}

#[test]
fn a_get_with_content_is_passed_on_and_one_that_says_it_has_none_is_a_hit_rfc_9110_9_3_1() {
    let origin = Origin::answering(|_| response("Cache-Control: max-age=60\r\n", "x"));
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for (content, fetches) in [("0\r\n", 1), ("0\r\n", 1), ("1\r\n", 2), ("1\r\n", 3)] {
        let body = if content.starts_with('1') { "y" } else { "" };
        let fields = format!("Content-Length: {content}");
        let answer = client.ask(request("GET", &fields) + body);
        assert_eq!(answer.text(), "x");
        assert_eq!(origin.requests().len(), fetches, "{content}");
    }
}

#[test]
fn how_the_cache_came_to_a_response_is_told_to_those_who_look_after_it_only() {
    let origin = Origin::answering(|_| response("Cache-Control: max-age=60\r\n", "x"));
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for (fields, told) in [
        ("", 1),
        ("X-Forwarded-For: 192.0.2.1\r\n", 0),
        ("Forwarded: for=192.0.2.1\r\n", 0),
        ("Via: 1.1 balancer\r\n", 0),
        ("", 1),
    ] {
        for method in ["GET", "POST"] {
            let fields = format!("Content-Length: 0\r\n{fields}");
            let answer = client.ask(request(method, &fields));
            let count = answer.fields("cache-status").len();
            assert_eq!(count, told, "{method} {fields}");
        }
    }
}

#[test]
fn ages_that_are_no_numbers_do_not_count_and_the_first_line_does_rfc_9111_5_1() {
    let cases = [
        ("Age: 7200.0\r\n", 1),
        ("Age: -5\r\n", 1),
        ("Age: 0\r\nAge: 7200\r\n", 1),
        ("Age: 7200\r\nAge: 0\r\n", 2),
        ("Age: 2147483648\r\n", 2),
        ("Age: 99999999999999999999999\r\n", 2),
    ];
    for (age, fetches) in cases {
        let fields = format!("Cache-Control: max-age=3600\r\n{age}");
        let origin = Origin::answering(move |_| response(&fields, "x"));
        let proxy = Proxy::start(&origin.map("/"));
        let mut client = Client::connect(proxy.address);
        client.ask(request("GET", ""));
        client.ask(request("GET", ""));
        assert_eq!(origin.requests().len(), fetches, "{age}");
    }
}

#[test]
fn a_hit_is_no_way_around_the_judgement_of_addresses() {
    let origin = Origin::answering(|_| response("Cache-Control: max-age=60\r\n", "inside"));
    let records = "CONFIG proxy.config.url_remap.remap_required INT 0\n\
                   CONFIG proxy.config.dns.nameservers STRING 127.0.0.1:1\n\
                   CONFIG proxy.config.hostdb.lookup_timeout INT 1\n";
    let port = origin.address.port();
    let rule = format!("map http://h/ http://localhost:{port}/\n");
    let proxy = Proxy::with(records, &rule);
    let mut client = Client::connect(proxy.address);
    assert_eq!(client.ask(request("GET", "")).text(), "inside");
    assert_eq!(client.ask(request("GET", "")).text(), "inside");
    for (host, status) in [
        ("127.0.0.1", 403),
        ("localhost", 403),
        ("LOCALHOST", 403),
        ("no.such.name.invalid", 502),
    ] {
        for method in ["GET", "HEAD"] {
            let around = format!("{method} http://{host}:{port}/a HTTP/1.1\r\nHost: x\r\n\r\n");
            let mut client = Client::connect(proxy.address);
            let answer = client.send(around).head().unwrap();
            assert_eq!(answer.status, status, "{method} {host}");
        }
    }
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn what_is_held_is_served_while_dns_has_no_answer_for_its_server() {
    let origin = Origin::answering(|request| match request.target() {
        "/fresh" => response("Cache-Control: max-age=60\r\n", "held"),
        // No connection is kept, so that DNS is asked again.
        _ => response(
            "Cache-Control: max-age=0, stale-if-error=60\r\nConnection: close\r\n",
            "held",
        ),
    });
    let dir = tempfile::tempdir().unwrap();
    let hosts = dir.path().join("hosts");
    std::fs::write(&hosts, "127.0.0.1 site.example\n").unwrap();
    let records = |hosts: &str| {
        format!(
            "CONFIG proxy.config.url_remap.remap_required INT 0\n\
             CONFIG proxy.config.dns.nameservers STRING 127.0.0.1:1\n\
             CONFIG proxy.config.hostdb.lookup_timeout INT 1\n\
             CONFIG proxy.config.hostdb.host_file.path STRING {hosts}\n"
        )
    };
    let open = "ip_allow:\n\
        - {apply: in, ip_addrs: [127.0.0.1, '::1'], action: allow, methods: ALL}\n\
        - {apply: out, ip_addrs: 127.0.0.0/8, action: allow, methods: ALL}\n";
    let proxy = Proxy::with_ip_allow(&records(&hosts.display().to_string()), "", open);
    let mut client = Client::connect(proxy.address);
    let mut statuses = || {
        ["/fresh", "/stale"].map(|path| {
            let url = format!("http://site.example:{}{path}", origin.address.port());
            let asked = client.ask(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n"));
            asked.status
        })
    };
    assert_eq!(statuses(), [200, 200]);
    let gone = dir.path().join("none").display().to_string();
    proxy.reload_ip_allow(&records(&gone), "", open);
    assert_eq!(statuses(), [200, 200]);
    assert_eq!(origin.requests().len(), 2);
    // The addresses that it had are judged as any others.
    proxy.reload(&records(&gone), "");
    assert_eq!(statuses(), [403, 403]);
}

#[test]
fn what_credentials_alone_met_is_remembered_of_no_other_request() {
    let origin = Origin::answering(|request| {
        if request.fields("authorization").is_empty() {
            return response("Cache-Control: max-age=60\r\n", "shared");
        }
        b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"
            .to_vec()
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let made_up = request("GET", "Authorization: Basic x\r\n");
    assert_eq!(client.ask(made_up).status, 401);
    assert_eq!(client.ask(request("GET", "")).text(), "shared");
    assert_eq!(client.ask(request("GET", "")).text(), "shared");
    assert_eq!(proxy.counter(Metric::OutcomeUncacheableRemembered), 0);
}

#[test]
fn purge_takes_an_object_from_loopback_itself_only() {
    let cases = [
        ("", 200, 2),
        ("X-Forwarded-For: 10.0.0.1\r\n", 403, 1),
        ("Forwarded: for=10.0.0.1\r\n", 403, 1),
        ("Via: 1.1 x\r\n", 403, 1),
    ];
    for (fields, status, fetches) in cases {
        let origin = Origin::answering(|_| response("Cache-Control: max-age=60\r\n", "x"));
        let proxy = Proxy::start(&origin.map("/"));
        let mut client = Client::connect(proxy.address);
        client.ask(request("GET", ""));
        assert_eq!(client.ask(request("PURGE", fields)).status, status);
        client.ask(request("GET", ""));
        assert_eq!(origin.requests().len(), fetches, "{fields}");
    }
}

/// The comments of Via in the answers to `requests`, and in what the origin was
/// asked, with both records at `level`.
fn vias(level: u8, requests: &[String]) -> (Vec<String>, Vec<String>) {
    let origin = Origin::answering(|request| match request.target() {
        "/old" if !request.fields("if-none-match").is_empty() => {
            b"HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\n\r\n".to_vec()
        }
        "/old" => response("Cache-Control: max-age=0\r\nETag: \"e\"\r\n", "x"),
        "/private" => response("Cache-Control: private\r\n", "x"),
        _ => response("Cache-Control: max-age=60\r\nETag: \"e\"\r\n", "x"),
    });
    let record = |which| format!("CONFIG proxy.config.http.insert_{which}_via_str INT {level}\n");
    let records = record("response") + &record("request");
    let proxy = Proxy::with(&records, &origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let comment = |via: Vec<&str>| {
        let (_, comment) = via[0].split_once('(').unwrap();
        comment.trim_end_matches(')').to_owned()
    };
    let answers = requests.iter().map(|request| client.ask(request));
    let answers = answers
        .map(|answer| comment(answer.fields("via")))
        .collect();
    let asked = origin.requests();
    let asked = asked.iter().map(|request| comment(request.fields("via")));
    (answers, asked.collect())
}

#[test]
fn via_tells_more_at_each_level_from_2_on() {
    let ask = request("GET", "");
    for (level, miss, hit, asked) in [
        (1, "Strata", "Strata", "Strata"),
        (2, "Strata [cMsSfW]", "Strata [cRs f ]", "Strata [cMs f ]"),
        (
            3,
            "Strata [uScMsSfWpSeN:t cCMp sS]",
            "Strata [uScRs f p eN:t cCHp s ]",
            "Strata [uScMs f p eN:t cCMp s ]",
        ),
        (
            4,
            "Strata [uScMsSfWpSeN:t cCMp sS] [http/1.1 tcp ipv4]",
            "Strata [uScRs f p eN:t cCHp s ] [http/1.1 tcp ipv4]",
            "Strata [uScMs f p eN:t cCMp s ] [http/1.1 tcp ipv4]",
        ),
    ] {
        let (answers, asks) = vias(level, &[ask.clone(), ask.clone()]);
        assert_eq!(answers, [miss, hit], "{level}");
        assert_eq!(asks, [asked], "{level}");
    }
}

#[test]
fn via_tells_what_the_client_asked_and_what_came_of_it() {
    let of = |line: &str, fields: &str| format!("{line} HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    let requests = [
        of("GET /a", "Cookie: a\r\n"),
        of("GET /a", "If-None-Match: \"e\"\r\n"),
        of("POST /a", "Content-Length: 0\r\n"),
        of("GET /private", ""),
        of("GET /old", ""),
        of("GET /old", ""),
    ];
    let (answers, asks) = vias(3, &requests);
    let expected = [
        "uCcMsSfWpSeN:t cCMp sS",
        "uIcRs f pNeN:t cCNp s ",
        "uSc sSf pSeN:tMcCDp sS",
        "uScMsSf pSeN:t cCMp sS",
        "uScMsSfWpSeN:t cCMp sS",
        "uScSsNfUpReN:t cCSp sS",
    ];
    assert_eq!(answers, expected.map(|codes| format!("Strata [{codes}]")));
    assert_eq!(asks.last().unwrap(), "Strata [uScSs f p eN:t cCSp s ]");
}

#[test]
fn via_is_told_at_level_1_and_not_at_0() {
    for (level, members) in [(0, 0), (1, 1)] {
        let origin = Origin::answering(|_| response("Cache-Control: max-age=60\r\n", "x"));
        let records = format!("CONFIG proxy.config.http.insert_response_via_str INT {level}\n");
        let proxy = Proxy::with(&records, &origin.map("/"));
        let mut client = Client::connect(proxy.address);
        for _ in 0..2 {
            let answer = client.ask(request("GET", ""));
            assert_eq!(answer.fields("via").len(), members, "{}", answer.head);
        }
    }
}

const FAILING: [&str; 2] = [
    "If-Match: \"zz\"\r\n",
    "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
];

#[test]
fn a_precondition_that_fails_is_412_however_the_response_came_rfc_9110_13_2() {
    let modified = "ETag: \"e\"\r\nLast-Modified: Wed, 01 Jan 2020 00:00:00 GMT\r\n";
    for cache_control in ["max-age=60", "private", "no-cache"] {
        for failing in FAILING {
            let fields = format!("{modified}Cache-Control: {cache_control}\r\n");
            let origin = Origin::answering(move |request| {
                // Conditions that come as far are the origin's to judge.
                let conditional = ["if-match", "if-unmodified-since"]
                    .iter()
                    .any(|name| !request.fields(name).is_empty());
                if conditional && request.fields("if-match") != ["\"e\""] {
                    return b"HTTP/1.1 412 Precondition Failed\r\nDate: x\r\nContent-Length: 0\r\n\r\n".to_vec();
                }
                response(&fields, "x")
            });
            let proxy = Proxy::start(&origin.map("/"));
            let mut client = Client::connect(proxy.address);
            for _ in 0..2 {
                let answer = client.ask(request("GET", failing));
                assert_eq!(answer.status, 412, "{cache_control}, {failing}");
                assert_eq!(answer.fields("date").len(), 1);
                let passing = client.ask(request("GET", "If-Match: \"e\"\r\n"));
                assert_eq!(passing.status, 200, "{cache_control}");
            }
        }
    }
}

/// Field lines of Server in the answers to a miss, a hit and a hit that is 304.
fn servers(enabled: u8, fields: &str) -> Vec<String> {
    let fields = format!("ETag: \"e\"\r\n{fields}X: y\r\n");
    let origin = Origin::answering(move |_| response(&fields, "x"));
    let records = format!(
        "CONFIG proxy.config.http.response_server_enabled INT {enabled}\n\
         CONFIG proxy.config.http.response_server_str STRING Ours\n"
    );
    let proxy = Proxy::with(&records, &origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let asked = ["", "", "If-None-Match: \"e\"\r\n"];
    let answers = asked.map(|conditions| client.ask(request("GET", conditions)));
    assert_eq!(answers[1].fields("x"), ["y"], "{}", answers[1].head);
    let joined = answers.map(|answer| answer.fields("server").join("+"));
    joined.into()
}

#[test]
fn server_is_whose_the_record_says_on_misses_and_hits_alike() {
    const KEPT: &str = "Cache-Control: max-age=60\r\n";
    const MOVED: &str = "Cache-Control: max-age=60\r\nContent-Location: /b\r\n";
    for own in [KEPT, MOVED] {
        let theirs = format!("Server: a\r\n{own}Server: b\r\n");
        assert_eq!(servers(0, own), ["", "", ""]);
        assert_eq!(servers(0, &theirs), ["a+b", "a+b", ""]);
        assert_eq!(servers(1, own), ["Ours", "Ours", "Ours"]);
        assert_eq!(servers(1, &theirs), ["Ours", "Ours", "Ours"]);
        assert_eq!(servers(2, own), ["Ours", "Ours", "Ours"]);
        assert_eq!(servers(2, &theirs), ["a+b", "a+b", ""]);
    }
}

#[test]
fn a_hit_has_no_server_of_the_origin_s_where_urls_are_rewritten_or_built_in() {
    let origin = Origin::answering(|_| {
        b"HTTP/1.1 301 Moved Permanently\r\nServer: a\r\nLocation: /b\r\n\
          Cache-Control: max-age=60\r\nContent-Length: 0\r\n\r\n"
            .to_vec()
    });
    let generated = "map http://g/ http://g/ @plugin=generator.so\n";
    let proxy = Proxy::start(&(generated.to_owned() + &origin.map("/")));
    let mut client = Client::connect(proxy.address);
    for _ in 0..2 {
        let moved = client.ask(request("GET", ""));
        assert_eq!(moved.fields("server"), ["Strata"], "{}", moved.head);
        let made = client.ask("GET /5/a HTTP/1.1\r\nHost: g\r\n\r\n");
        assert_eq!(made.fields("server"), ["Strata"], "{}", made.head);
    }
    assert_eq!(origin.requests().len(), 1);
}
