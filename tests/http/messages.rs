//! What a request and its response look like on the other side.

use crate::support::{Client, Origin, Proxy, ok, until};
use strata::metrics::Metric;

#[test]
fn head_has_the_fields_and_length_of_get_and_no_body() {
    let origin =
        Origin::answering(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: 1\r\n\r\n".to_vec());
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    client.send("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n");
    let response = client.head().unwrap();
    assert_eq!(response.fields("content-length"), ["5"]);
    assert_eq!(response.fields("x"), ["1"]);
    client.send("HEAD /b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert_eq!(client.head().unwrap().status, 200);
    assert!(client.is_closed());
}

#[test]
fn chunked_bodies_pass_both_ways_with_trailers_for_those_who_take_them() {
    let origin = Origin::answering(|request| {
        let length = request.body.len();
        let body = String::from_utf8_lossy(&request.body);
        let chunk = format!("{length:x}\r\n{body}\r\n0\r\nSum: 7\r\n\r\n");
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}").into_bytes()
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let chunked = "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    let response = client.ask(format!("POST / HTTP/1.1\r\nHost: h\r\n{chunked}"));
    assert_eq!(response.text(), "hello world");
    assert_eq!(
        origin.requests()[0].fields("transfer-encoding"),
        ["chunked"]
    );
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nConnection: TE, close\r\n{chunked}"
    ));
    let (rest, _) = client.rest();
    let rest = String::from_utf8(rest).unwrap().to_ascii_lowercase();
    assert!(rest.ends_with("0\r\nsum: 7\r\n\r\n"), "{rest}");
}

#[test]
fn an_expecting_client_is_invited_and_its_body_arrives() {
    let origin = Origin::answering(|request| ok(&String::from_utf8_lossy(&request.body)));
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    client.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(client.head().unwrap().status, 100);
    assert_eq!(client.ask("hello").text(), "hello");
    assert_eq!(origin.requests()[0].fields("expect"), [""; 0]);
}

#[test]
fn an_expecting_client_is_not_invited_to_a_refusal() {
    let proxy = Proxy::start("");
    let mut client = Client::connect(proxy.address);
    client.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert_eq!(client.response().unwrap().status, 404);
    assert!(client.is_closed());
}

#[test]
fn interim_responses_reach_http11_clients_only() {
    let origin = Origin::answering(|_| {
        let mut answer = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_vec();
        answer.extend_from_slice(&ok("final"));
        answer
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    let hints = client.head().unwrap();
    assert_eq!((hints.status, hints.fields("link")), (103, vec!["</a>"]));
    assert_eq!(client.response().unwrap().text(), "final");
    let mut old = Client::connect(proxy.address);
    let response = old.ask("POST / HTTP/1.0\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(response.text(), "final");
}

#[test]
fn fields_that_connection_names_stop_here_but_not_those_that_frame() {
    let origin = Origin::answering(|_| {
        b"HTTP/1.1 200 OK\r\nConnection: a, b, Content-Length, Cache-Control\r\n\
          A: 1\r\nB: 2\r\nC: 3\r\nCache-Control: no-store\r\nContent-Length: 2\r\n\r\nok"
            .to_vec()
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let response = client.ask(
        "POST / HTTP/1.1\r\nHost: h\r\nConnection: X-Secret, Host, Content-Length\r\n\
         X-Secret: 1\r\nX-Open: 2\r\nKeep-Alive: 5\r\nUpgrade: x\r\nContent-Length: 2\r\n\r\nhi",
    );
    assert_eq!(response.text(), "ok");
    assert_eq!(response.fields("a").len() + response.fields("b").len(), 0);
    assert_eq!(response.fields("c"), ["3"]);
    assert_eq!(response.fields("cache-control"), ["no-store"]);
    let seen = &origin.requests()[0];
    for gone in ["x-secret", "keep-alive", "upgrade"] {
        assert_eq!(seen.fields(gone), [""; 0], "{gone}");
    }
    assert_eq!(seen.fields("x-open"), ["2"]);
    assert_eq!(seen.body, b"hi");
}

#[test]
fn fields_that_a_response_s_connection_names_are_not_stored_either() {
    let origin = Origin::answering(|_| {
        b"HTTP/1.1 200 OK\r\nConnection: a, b, Cache-Control\r\nA: 1\r\nB: 2\r\nC: 3\r\n\
          Cache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok"
            .to_vec()
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for _ in 0..3 {
        let response = client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(response.fields("a").len() + response.fields("b").len(), 0);
        assert_eq!(response.fields("c"), ["3"]);
        assert_eq!(response.fields("cache-control"), ["max-age=60"]);
        assert_eq!(response.fields("connection"), [""; 0]);
    }
    assert_eq!(
        origin.requests().len(),
        1,
        "hits, which the directive allowed"
    );
}

#[test]
fn the_origin_learns_of_the_client_and_of_us() {
    let origin = Origin::with_body("hello");
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let response = client.ask(
        "POST / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 10.0.0.1\r\nClient-ip: 10.0.0.2\r\n\
         Via: 1.0 other\r\nContent-Length: 0\r\n\r\n",
    );
    let seen = &origin.requests()[0];
    assert_eq!(seen.fields("x-forwarded-for"), ["10.0.0.1, 127.0.0.1"]);
    assert_eq!(seen.fields("client-ip"), ["127.0.0.1"]);
    assert_eq!(
        seen.fields("via"),
        ["1.0 other, 1.1 strata.test[0123-test] (Strata)"]
    );
    assert_eq!(response.fields("via"), ["1.1 strata.test (Strata)"]);
    assert_eq!(response.fields("server"), ["Strata"]);
    assert_eq!(response.fields("date").len(), 1);
}

#[test]
fn a_request_that_comes_back_is_a_loop() {
    let origin = Origin::with_body("hello");
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let via = "Via: 1.1 other, 1.1 strata.test[0123-test] (Strata)";
    let response = client.ask(format!("GET / HTTP/1.1\r\nHost: h\r\n{via}\r\n\r\n"));
    assert_eq!(response.status, 400);
    assert!(response.text().contains("Cycle Detected"));
    assert_eq!(origin.requests().len(), 0);
}

#[test]
fn host_follows_pristine_host_hdr() {
    let origin = Origin::with_body("hello");
    let pristine = "CONFIG proxy.config.url_remap.pristine_host_hdr INT 1\n";
    for (records, host) in [
        ("", origin.address.to_string()),
        (pristine, "client.cn:99".to_owned()),
    ] {
        let proxy = Proxy::with(records, &origin.map("/"));
        let mut client = Client::connect(proxy.address);
        client.ask("POST / HTTP/1.1\r\nHost: client.cn:99\r\nContent-Length: 0\r\n\r\n");
        let seen = origin.requests();
        assert_eq!(seen.last().unwrap().fields("host"), [host.as_str()]);
    }
}

#[test]
fn another_major_version_of_http_is_505_and_a_higher_minor_one_is_ours() {
    let origin = Origin::with_body("hello");
    let proxy = Proxy::start(&origin.map("/"));
    for (version, status) in [
        ("HTTP/2.0", 505),
        ("HTTP/0.9", 505),
        ("HTTP/3.1", 505),
        ("HTTP/1.2", 200),
        ("HTTP/2", 400),
        ("http/2.0", 400),
    ] {
        let mut client = Client::connect(proxy.address);
        let response = client.ask(format!("GET / {version}\r\nHost: h\r\n\r\n"));
        assert_eq!(response.status, status, "{version}");
        assert!(response.head.starts_with("HTTP/1.1 "), "{}", response.head);
        assert!(status == 200 || client.is_closed(), "{version}");
    }
    let mut client = Client::connect(proxy.address);
    let preface = client.ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!(preface.status, 505);
}

#[test]
fn unmatched_requests_are_refused_in_the_words_of_their_form() {
    let proxy = Proxy::start("map http://known.cn/ http://127.0.0.1:1/\n");
    for (request, status, title) in [
        (
            "GET http://x.cn/ HTTP/1.1\r\nHost: x.cn",
            404,
            "<h1>Not Found</h1>",
        ),
        (
            "GET / HTTP/1.1\r\nHost: x.cn",
            404,
            "Not Found on Accelerator",
        ),
        ("GET / HTTP/1.0", 400, "Host Header Required"),
        ("OPTIONS * HTTP/1.1\r\nHost: x.cn", 200, "proxy itself"),
        (
            "PUSH http://known.cn/ HTTP/1.1\r\nHost: x",
            403,
            "Access Denied",
        ),
        (
            "CONNECT x.cn:443 HTTP/1.1\r\nHost: x",
            403,
            "Tunnel Forbidden",
        ),
    ] {
        let mut client = Client::connect(proxy.address);
        let response = client.ask(format!("{request}\r\n\r\n"));
        assert_eq!(response.status, status, "{request}");
        assert!(
            response.text().contains(title),
            "{request}: {}",
            response.text()
        );
    }
}

#[test]
fn redirect_rules_answer_with_their_location() {
    let proxy = Proxy::start(
        "redirect http://a.cn/ http://b.cn/new/\n\
         redirect_temporary http://c.cn/ http://d.cn/\n",
    );
    let mut client = Client::connect(proxy.address);
    let moved = client.ask("GET /x?q HTTP/1.1\r\nHost: a.cn\r\n\r\n");
    assert_eq!(
        (moved.status, moved.fields("location")),
        (301, vec!["http://b.cn/new/x?q"])
    );
    let temporary = client.ask("GET / HTTP/1.1\r\nHost: c.cn\r\n\r\n");
    assert_eq!(
        (temporary.status, temporary.fields("location")),
        (307, vec!["http://d.cn/"])
    );
}

#[test]
fn forwarded_has_an_element_of_ours_with_the_parts_that_the_record_names_rfc_7239() {
    let origin = Origin::with_body("hello");
    let records = "CONFIG proxy.config.http.insert_forwarded STRING for|by=ip|proto|host\n";
    let proxy = Proxy::with(records, &origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let ours = "for=127.0.0.1;by=127.0.0.1;proto=http;host=h";
    let added = format!("for=10.0.0.9, {ours}");
    for (fields, told) in [
        ("", ours),
        ("Forwarded: for=10.0.0.9\r\n", &*added),
        ("Forwarded: for=\"10.0.0.9\r\n", ours),
        (
            "Forwarded: for=x\r\nConnection: Forwarded\r\n",
            &*format!("for=x, {ours}"),
        ),
    ] {
        client.ask(format!(
            "GET / HTTP/1.1\r\nHost: h\r\n{fields}Cache-Control: no-store\r\n\r\n"
        ));
        let requests = origin.requests();
        assert_eq!(
            requests.last().unwrap().fields("forwarded"),
            [told],
            "{fields}"
        );
    }
    proxy.reload("", &origin.map("/"));
    client.ask("GET / HTTP/1.1\r\nHost: h\r\nForwarded: for=x\r\nCache-Control: no-store\r\n\r\n");
    let requests = origin.requests();
    assert_eq!(requests.last().unwrap().fields("forwarded"), ["for=x"]);
}

#[test]
fn reverse_map_gives_the_client_its_own_names() {
    let origin = Origin::answering(|_| {
        b"HTTP/1.1 302 Found\r\nLocation: http://inner.cn/a?b#c\r\nContent-Length: 0\r\n\r\n"
            .to_vec()
    });
    let rules = origin.map("/") + "reverse_map http://inner.cn/ http://outer.cn/\n";
    let proxy = Proxy::start(&rules);
    let mut client = Client::connect(proxy.address);
    let response = client.ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(response.fields("location"), ["http://outer.cn/a?b#c"]);
}

#[test]
fn reverse_map_rewrites_what_is_stored_as_what_is_relayed() {
    let origin = Origin::answering(|_| {
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"e\"\r\nServer: s\r\n\
          Content-Location: http://inner.cn/a\r\nContent-Length: 4\r\n\r\nbody"
            .to_vec()
    });
    let rules = origin.map("/") + "reverse_map http://inner.cn/ http://outer.cn/\n";
    let proxy = Proxy::start(&rules);
    let mut client = Client::connect(proxy.address);
    for (fields, status) in [
        ("", 200),
        ("", 200),
        ("If-None-Match: \"e\"\r\n", 304),
        ("Range: bytes=1-2\r\n", 206),
        ("Range: bytes=0-0,2-3\r\n", 206),
    ] {
        let response = client.ask(format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
        assert_eq!(response.status, status, "{fields}");
        let location = response.fields("content-location");
        assert_eq!(location, ["http://outer.cn/a"], "{fields}");
    }
    assert_eq!(origin.requests().len(), 1);
}

#[test]
fn a_trace_answered_here_is_counted_by_its_bytes() {
    let origin = Origin::with_body("hello");
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let trace = "TRACE / HTTP/1.1\r\nHost: h\r\nMax-Forwards: 0\r\n\r\n";
    let response = client.ask(trace);
    assert_eq!(response.fields("date").len(), 1);
    until("the transaction's end", || {
        proxy.counter(Metric::OutcomeAnsweredOptions) == 1
    });
    let body = u64::try_from(response.body.len()).unwrap();
    assert_eq!(proxy.counter(Metric::ClientResponseBodyBytes), body);
    assert!(proxy.counter(Metric::ClientResponseHeadBytes) > 0);
}

#[test]
fn trace_ends_here_when_its_forwards_are_used_up_and_tells_no_secrets() {
    let origin = Origin::with_body("hello");
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let trace = |forwards: u32| {
        format!(
            "TRACE / HTTP/1.1\r\nHost: h\r\nCookie: c\r\nX: y\r\nMax-Forwards: {forwards}\r\n\r\n"
        )
    };
    let response = client.ask(trace(0));
    assert_eq!(response.fields("content-type"), ["message/http"]);
    assert!(response.text().contains("x: y\r\n") && !response.text().contains("cookie"));
    assert_eq!(origin.requests().len(), 0);
    client.ask(trace(5));
    assert_eq!(origin.requests()[0].fields("max-forwards"), ["4"]);
}

#[test]
fn interim_responses_reach_the_client_and_are_not_stored() {
    let origin = Origin::answering(|_| {
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x\r\nContent-Length: 5\r\nX: 1\r\n\r\nHTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\r\nx".to_vec()
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let hints = client.ask(request);
    assert_eq!((hints.status, hints.fields("link")), (103, vec!["</a>"]));
    assert!(hints.fields("content-length").is_empty());
    assert_eq!(hints.fields("x"), [""; 0]);
    assert_eq!(client.response().unwrap().status, 200);
    assert_eq!(client.ask(request).status, 200, "a hit");
    let mut old = Client::connect(proxy.address);
    assert_eq!(old.ask("GET /1.0 HTTP/1.0\r\nHost: h\r\n\r\n").status, 200);
}
