//! Never an open proxy, never a way in.

use crate::support::{Client, Origin, Proxy};
use std::net::SocketAddr;

/// Forwarding is on, for loopback clients, to the ports that tests use.
const OPEN: &str = "CONFIG proxy.config.url_remap.remap_required INT 0\n\
                    CONFIG proxy.config.http.connect_ports STRING *\n";

fn get(proxy: SocketAddr, url: &str, fields: &str) -> u16 {
    let mut client = Client::connect(proxy);
    client
        .ask(format!("GET {url} HTTP/1.1\r\nHost: x\r\n{fields}\r\n"))
        .status
}

fn connect(proxy: SocketAddr, authority: &str) -> u16 {
    let mut client = Client::connect(proxy);
    client.send(format!(
        "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n"
    ));
    client.head().unwrap().status
}

#[test]
fn addresses_inside_are_refused_to_clients_who_choose_the_origin() {
    let origin = Origin::with_body("inside");
    let proxy = Proxy::with(OPEN, "");
    let port = origin.address.port();
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "[::]",
        "169.254.169.254",
        "[fe80::1]",
        "224.0.0.1",
        "127.9.9.9",
    ] {
        let url = format!("http://{host}:{port}/");
        assert_eq!(get(proxy.address, &url, ""), 403, "GET {url}");
        let authority = format!("{host}:{port}");
        assert_eq!(
            connect(proxy.address, &authority),
            403,
            "CONNECT {authority}"
        );
    }
    let own = proxy.address.port();
    assert_eq!(connect(proxy.address, &format!("127.0.0.1:{own}")), 403);
    assert_eq!(origin.requests().len(), 0);
}

/// Loopback origins are opened by name, as for a proxy in front of local ones.
const LOCAL: &str = "ip_allow:\n\
    - {apply: in, ip_addrs: [127.0.0.1, '::1'], action: allow, methods: ALL}\n\
    - {apply: out, ip_addrs: 127.0.0.0/8, action: allow, methods: ALL}\n";

#[test]
fn an_outbound_rule_opens_its_block_and_no_other() {
    let origin = Origin::with_body("inside");
    let proxy = Proxy::with_ip_allow(OPEN, "", LOCAL);
    let port = origin.address.port();
    for (host, status) in [
        ("127.0.0.1", 200),
        ("localhost", 200),
        ("169.254.169.254", 403),
        ("[::1]", 403),
        ("0.0.0.0", 403),
    ] {
        let url = format!("http://{host}:{port}/");
        assert_eq!(get(proxy.address, &url, ""), status, "GET {url}");
    }
    let own = proxy.address.port();
    assert_eq!(
        get(proxy.address, &format!("http://127.0.0.1:{own}/"), ""),
        403
    );
    assert_eq!(connect(proxy.address, &format!("127.0.0.1:{own}")), 403);
    let seen = origin.requests();
    assert_eq!(
        seen[0].fields("host"),
        [format!("127.0.0.1:{port}").as_str()]
    );
    assert_eq!(seen[0].target(), "/");
}

#[test]
fn a_tunnel_carries_bytes_both_ways_until_both_ends_are_done() {
    let origin = Origin::with_body("through the tunnel");
    let proxy = Proxy::with_ip_allow(OPEN, "", LOCAL);
    let mut client = Client::connect(proxy.address);
    let authority = origin.address;
    client.send(format!(
        "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n"
    ));
    let opened = client.head().unwrap();
    assert_eq!(opened.status, 200);
    assert_eq!(
        opened.fields("content-length").len() + opened.fields("transfer-encoding").len(),
        0
    );
    let response = client.ask("GET /inner HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(response.text(), "through the tunnel");
    assert_eq!(origin.requests()[0].target(), "/inner");
    client.finish();
    assert!(client.is_closed());
}

#[test]
fn what_follows_a_refused_connect_is_no_tunnel_and_no_request() {
    let origin = Origin::with_body("inside");
    let at = origin.address;
    let ports = "CONFIG proxy.config.url_remap.remap_required INT 0\n";
    for (why, records, authority) in [
        ("a rule is required", "", at.to_string()),
        ("the port", ports, at.to_string()),
        ("the address", OPEN, at.to_string()),
        ("the name", OPEN, "no.such.name.invalid:443".to_owned()),
    ] {
        let records = format!("{records}CONFIG proxy.config.hostdb.lookup_timeout INT 1\n");
        let proxy = Proxy::with(&records, &origin.map("/"));
        for length in ["", "Content-Length: 3\r\n"] {
            let mut client = Client::connect(proxy.address);
            client.send(format!(
                "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{length}\r\n"
            ));
            client.send("abcGET / HTTP/1.1\r\nHost: h\r\n\r\n");
            let refusal = client.response().unwrap();
            assert!(refusal.status >= 400, "{why}");
            assert_eq!(refusal.fields("connection"), ["close"], "{why}");
            assert!(client.is_closed(), "{why}");
        }
    }
    assert_eq!(origin.requests().len(), 0);
}

#[test]
fn private_networks_are_closed_by_the_defaults_and_by_a_rule_in_any_form() {
    const RULED: &str = "ip_allow:\n\
        - {apply: in, ip_addrs: 127.0.0.1, action: allow, methods: ALL}\n\
        - {apply: out, ip_addrs: 10.0.0.0/8, action: deny, methods: ALL}\n";
    let closed = Proxy::start("");
    let ruled = Proxy::with_ip_allow(OPEN, "", RULED);
    for host in ["10.0.0.1", "[::ffff:10.0.0.1]"] {
        let authority = format!("{host}:443");
        assert_eq!(connect(closed.address, &authority), 403, "{host}");
        assert_eq!(connect(ruled.address, &authority), 403, "{host}");
    }
}

#[test]
fn a_client_outside_forward_allow_may_not_choose_the_origin() {
    let origin = Origin::with_body("inside");
    let records = format!("{OPEN}CONFIG proxy.config.http.forward_allow STRING 10.0.0.0/8\n");
    let proxy = Proxy::with_ip_allow(&records, "", LOCAL);
    let url = format!("http://{}/", origin.address);
    assert_eq!(get(proxy.address, &url, ""), 403);
    assert_eq!(connect(proxy.address, &origin.address.to_string()), 403);
    assert_eq!(origin.requests().len(), 0);
}

#[test]
fn an_inbound_rule_refuses_the_methods_it_denies() {
    let origin = Origin::with_body("inside");
    let rules = "ip_allow:\n\
        - {apply: in, ip_addrs: 127.0.0.1, action: deny, methods: [DELETE, PURGE]}\n\
        - {apply: in, ip_addrs: 0/0, action: allow, methods: ALL}\n";
    let proxy = Proxy::with_ip_allow("", &origin.map("/"), rules);
    for (method, status) in [
        ("GET", 200),
        ("DELETE", 403),
        ("PURGE", 403),
        ("WHATEVER", 200),
    ] {
        let mut client = Client::connect(proxy.address);
        let request = format!("{method} / HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(client.ask(request).status, status, "{method}");
    }
}

#[test]
fn a_rule_that_captures_its_target_host_is_forwarding() {
    let origin = Origin::with_body("inside");
    let port = origin.address.port();
    let proxy = Proxy::start(&format!("regex_map http://(.*) http://$1:{port}\n"));
    assert_eq!(get(proxy.address, "http://127.0.0.1/", ""), 403);
    assert_eq!(origin.requests().len(), 0);
}

#[test]
fn a_literal_target_may_be_anywhere() {
    let origin = Origin::with_body("inside");
    let proxy = Proxy::start(&origin.map("/"));
    assert_eq!(get(proxy.address, "/", ""), 200);
}

#[test]
fn connect_needs_an_open_proxy_and_one_of_its_ports() {
    let closed = Proxy::start("");
    assert_eq!(connect(closed.address, "example.com:443"), 403);
    let records = "CONFIG proxy.config.url_remap.remap_required INT 0\n";
    let proxy = Proxy::with(records, "");
    for port in [25, 22, 8080, proxy.address.port()] {
        assert_eq!(connect(proxy.address, &format!("example.com:{port}")), 403);
    }
}

#[test]
fn a_relayed_request_proves_nothing_by_coming_from_loopback() {
    let origin = Origin::with_body("hello");
    let proxy = Proxy::with(OPEN, &origin.map("/known/"));
    for mark in [
        "Via: 1.1 b",
        "Forwarded: for=10.0.0.1",
        "X-Forwarded-For: 10.0.0.1",
    ] {
        let fields = format!("{mark}\r\n");
        assert_eq!(
            get(proxy.address, "http://192.0.2.1/", &fields),
            403,
            "{mark}"
        );
        let mut client = Client::connect(proxy.address);
        let purge = format!("PURGE /known/a HTTP/1.1\r\nHost: h\r\n{mark}\r\n\r\n");
        assert_eq!(client.ask(purge).status, 403, "{mark}");
    }
    let mut client = Client::connect(proxy.address);
    let purge = client.ask("PURGE /known/a HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(purge.status, 404);
}

#[test]
fn the_generator_of_loopback_is_not_there_for_whom_a_balancer_lets_in() {
    let of_loopback = "@action=allow @src_ip=127.0.0.1 @src_ip=::1";
    let origin = Origin::with_body("hello");
    let demo = format!("map /demo/ http://g/ @plugin=generator.so {of_loopback}\n");
    let plain = format!("map /plain/ http://{}/ {of_loopback}\n", origin.address);
    let proxy = Proxy::start(&(demo + &plain));
    assert_eq!(get(proxy.address, "/demo/5/a", ""), 200);
    for mark in [
        "Via: 1.1 b",
        "Forwarded: for=10.0.0.1",
        "X-Forwarded-For: 10.0.0.1",
    ] {
        let fields = format!("{mark}\r\n");
        assert_eq!(get(proxy.address, "/demo/5/a", &fields), 403, "{mark}");
        assert_eq!(get(proxy.address, "/plain/a", &fields), 200, "{mark}");
    }
}

#[test]
fn who_a_request_comes_from_cannot_be_nominated_away() {
    let origin = Origin::with_body("x");
    let proxy = Proxy::start(&origin.map("/"));
    let fields = "X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\nVia: 1.1 a\r\n";
    let nominated = "Connection: X-Forwarded-For, Forwarded, Via, Client-ip\r\n";
    let request = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}{nominated}\r\n");
    let answer = Client::connect(proxy.address).ask(request);
    assert_eq!(answer.fields("cache-status").len(), 0, "{}", answer.head);
    let asked = &origin.requests()[0];
    assert_eq!(asked.fields("x-forwarded-for"), ["192.0.2.1, 127.0.0.1"]);
    assert_eq!(asked.fields("forwarded"), ["for=192.0.2.1"]);
    assert!(
        asked.fields("via")[0].starts_with("1.1 a, "),
        "{}",
        asked.head
    );
    assert_eq!(asked.fields("client-ip"), ["127.0.0.1"]);
}
