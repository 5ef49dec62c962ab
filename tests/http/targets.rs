//! What is asked for: the target's forms, bytes and length (RFC 9112 3.2,
//! RFC 9110 4.2).

use crate::support::{Client, Origin, Proxy, ok};

/// An origin whose responses may be stored, and name what was asked for.
fn naming() -> Origin {
    Origin::answering(|request| {
        let body = String::from_utf8(ok(request.target())).unwrap();
        let fresh = "200 OK\r\nCache-Control: max-age=60";
        body.replacen("200 OK", fresh, 1).into_bytes()
    })
}

#[test]
fn the_authority_of_an_absolute_target_counts_and_host_does_not() {
    let origin = naming();
    let pristine = "CONFIG proxy.config.url_remap.pristine_host_hdr INT 1\n";
    let proxy = Proxy::with(pristine, &origin.map("/"));
    let mut client = Client::connect(proxy.address);
    client.ask("GET http://a.cn/x HTTP/1.1\r\nHost: b.cn\r\n\r\n");
    let seen = &origin.requests()[0];
    assert_eq!((seen.target(), seen.fields("host")), ("/x", vec!["a.cn"]));
    // One object, by whichever form it is asked for; another under the other name.
    client.ask("GET /x HTTP/1.1\r\nHost: A.cn:80\r\n\r\n");
    assert_eq!(origin.requests().len(), 1);
    client.ask("GET /x HTTP/1.1\r\nHost: b.cn\r\n\r\n");
    assert_eq!(origin.requests().len(), 2);
}

#[test]
fn a_target_is_keyed_and_passed_on_byte_for_byte() {
    let origin = naming();
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let targets = [
        "/A",
        "/%41",
        "/a%2Fb",
        "/a%2fb",
        "/a/b",
        "/a//b",
        "/a/./b",
        "/a/../a/b",
        "/a%zz",
        "/%",
        "/a?",
        "/a",
        "/a?x=%20",
        "/a?x=+",
        "/a?x=1&&",
        "/a|{b}^\"\\",
        "/?a?b",
        "/a%00b",
        "/~a",
        "/%7Ea",
    ];
    for target in targets {
        let ask = format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(client.ask(&ask).text(), target);
        assert_eq!(client.ask(&ask).text(), target);
    }
    let seen = origin.requests();
    let seen: Vec<_> = seen.iter().map(|request| request.target()).collect();
    assert_eq!(seen, targets, "each once: none stands for another");
}

#[test]
fn a_target_that_no_origin_should_read_is_400() {
    let origin = naming();
    let proxy = Proxy::start(&origin.map("/"));
    for target in [
        "http://u@h/",
        "http://u:p@h/",
        "http://h@evil.cn/",
        "/a#b",
        "http://h/#",
        "/a\u{e9}",
        "/a<b",
        "/a?b>",
        "/`",
        "/a\tb",
        "/a\0",
        "a",
        "http:/h/",
        "http:///a",
        "ftp://h/a",
        "ws://h/a",
        "*",
        "h:80",
        "http://h:0/",
        "http://h:65536/",
        "http://[::1/",
        "http://a..b/",
        "http://h\\@x/",
    ] {
        let mut client = Client::connect(proxy.address);
        let answer = client.ask(format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        assert_eq!(answer.status, 400, "{target:?}");
        assert!(client.is_closed(), "{target:?}");
    }
    assert!(origin.requests().is_empty());
}

#[test]
fn a_target_and_a_head_are_bounded_by_414_and_431() {
    let origin = naming();
    let proxy = Proxy::start(&origin.map("/"));
    let long = |bytes: usize| format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(bytes - 1));
    let field = |bytes: usize| {
        format!(
            "GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n",
            "x".repeat(bytes)
        )
    };
    let fields = |count: usize| {
        let lines = "X: y\r\n".repeat(count - 1);
        format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n")
    };
    for (request, status) in [
        (long(65_534), 200),
        (long(65_535), 414),
        (field(130_000), 200),
        (field(131_072), 431),
        (fields(1000), 200),
        (fields(1001), 431),
    ] {
        let mut client = Client::connect(proxy.address);
        let answer = client.ask(&request);
        assert_eq!(answer.status, status, "{} bytes", request.len());
        assert!(status == 200 || client.is_closed());
    }
    assert_eq!(
        origin.requests().len(),
        2,
        "the field and the fields share one object"
    );
}

#[test]
fn a_target_that_a_rule_makes_too_long_is_414() {
    let origin = naming();
    let rule = format!("map / http://{}/prefix/\n", origin.address);
    let proxy = Proxy::start(&rule);
    let mut client = Client::connect(proxy.address);
    let long = "x".repeat(65_530);
    let answer = client.ask(format!("GET /{long} HTTP/1.1\r\nHost: h\r\n\r\n"));
    assert_eq!(answer.status, 414);
    assert_eq!(client.ask("GET /a HTTP/1.1\r\nHost: h\r\n\r\n").status, 200);
}

/// `https` is for connections that are secured: its rules may ask for a client
/// certificate, and its objects are not for everybody on the way (RFC 9110 7.4).
#[test]
fn a_rule_for_https_is_not_reached_in_clear() {
    let origin = naming();
    let rules = format!(
        "map https://a.cn/ http://{0}/\nmap http://b.cn/ http://{0}/\n\
         redirect https://c.cn/ https://d.cn/\nmap wss://a.cn/ ws://{0}/\n",
        origin.address
    );
    let proxy = Proxy::start(&rules);
    let socket = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    for (target, fields, status) in [
        ("https://a.cn/secret", "", 421),
        ("HTTPS://a.cn:443/secret", "", 421),
        ("https://c.cn/", "", 421),
        ("https://a.cn/chat", socket, 421),
        ("https://nobody.cn/", "", 404),
        ("http://b.cn/", "", 200),
    ] {
        let mut client = Client::connect(proxy.address);
        let ask = format!("GET {target} HTTP/1.1\r\nHost: a.cn\r\n{fields}\r\n");
        assert_eq!(client.ask(ask).status, status, "{target}");
    }
    assert_eq!(origin.requests().len(), 1);
}

/// A client that lets the proxy speak TLS for it asks of another server.
#[test]
fn https_is_forwarded_for_a_client_in_clear_who_may() {
    let records = "CONFIG proxy.config.url_remap.remap_required INT 0\n";
    let proxy = Proxy::with(records, "map https://a.cn/ http://127.0.0.1:1/\n");
    let mut client = Client::connect(proxy.address);
    let ask = "GET https://127.0.0.1:1/ HTTP/1.1\r\nHost: h\r\n\r\n";
    // Loopback is no place to forward to: the rule on forwarding has spoken.
    assert_eq!(client.ask(ask).status, 403);
}
