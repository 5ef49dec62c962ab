//! Responses that vary, end to end.

use crate::support::{Client, Origin, Proxy};
use std::sync::atomic::{AtomicUsize, Ordering};

/// An origin whose Vary names the fields of `sets` in turn, and whose body shows
/// what selected it.
fn varying(sets: &'static [&'static str]) -> (Origin, Proxy) {
    let asked = AtomicUsize::new(0);
    let origin = Origin::answering(move |request| {
        let vary = sets[asked.fetch_add(1, Ordering::SeqCst) % sets.len()];
        let body = format!("{vary}={}", request.fields(vary).join(","));
        format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nVary: {vary}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    });
    let proxy = Proxy::start(&origin.map("/"));
    (origin, proxy)
}

fn get(client: &mut Client, fields: &str) -> String {
    let request = format!("GET /v HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    client.ask(request).text()
}

#[test]
fn no_more_alternates_are_kept_than_the_record_allows() {
    let (origin, proxy) = varying(&["X-A"]);
    let mut client = Client::connect(proxy.address);
    let mut ask = |n: usize| {
        let fields = format!("X-A: {n}\r\n");
        assert_eq!(get(&mut client, &fields), format!("X-A={n}"));
        origin.requests().len()
    };
    for n in 1..=6 {
        assert_eq!(ask(n), n);
    }
    for n in 2..=6 {
        assert_eq!(ask(n), 6, "one of the five newest is a hit");
    }
    assert_eq!(ask(1), 7, "the oldest had left");
}

#[test]
fn the_record_of_alternates_holds_from_the_reload_on() {
    let (origin, proxy) = varying(&["X-A"]);
    let records = "CONFIG proxy.config.cache.limits.http.max_alts INT 1\n";
    proxy.reload(records, &origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for n in [1, 2, 1, 2] {
        let fields = format!("X-A: {n}\r\n");
        assert_eq!(get(&mut client, &fields), format!("X-A={n}"));
    }
    assert_eq!(origin.requests().len(), 4, "each expels the other");
}

#[test]
fn two_sets_of_selecting_fields_in_turn_never_mix_responses_up() {
    let (origin, proxy) = varying(&["X-A", "X-B"]);
    let mut client = Client::connect(proxy.address);
    for _ in 0..3 {
        for (a, b) in [(1, 1), (1, 2), (2, 2), (2, 1)] {
            let text = get(&mut client, &format!("X-A: {a}\r\nX-B: {b}\r\n"));
            let own = [format!("X-A={a}"), format!("X-B={b}")];
            assert!(own.contains(&text), "{text} for {own:?}");
        }
    }
    assert!(origin.requests().len() <= 8, "{}", origin.requests().len());
}

#[test]
fn a_thousand_alternates_are_all_found_where_the_record_sets_no_bound() {
    let (origin, proxy) = varying(&["X-A"]);
    let records = "CONFIG proxy.config.cache.limits.http.max_alts INT 0\n";
    proxy.reload(records, &origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for round in 0..2 {
        for n in 0..1000 {
            let text = get(&mut client, &format!("X-A: {n}\r\n"));
            assert_eq!(text, format!("X-A={n}"), "{round}");
        }
    }
    assert_eq!(origin.requests().len(), 1000, "each was fetched once");
}

#[test]
fn responses_whose_vary_differs_are_held_side_by_side() {
    // One URL: what selects depends on the request.
    let origin = Origin::answering(|request| {
        let a = request.fields("x-a").join("");
        let (vary, body) = match a.as_str() {
            "" => ("X-A, X-B", request.fields("x-b").join("")),
            _ => ("x-a", a),
        };
        let head = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nVary: {vary}");
        format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    let asks = ["X-A: 1", "X-A: 2", "X-B: 3", "X-B: 4"];
    let mut fetches = Vec::new();
    for _ in 0..3 {
        for ask in asks {
            let body = get(&mut client, &format!("{ask}\r\n"));
            assert!(ask.ends_with(&body), "{body} for {ask}");
        }
        fetches.push(origin.requests().len());
    }
    assert_eq!(
        fetches[1], fetches[2],
        "all four are hits once the fields are known"
    );
}

#[test]
fn a_304_that_adds_a_selecting_field_leaves_nothing_for_others() {
    let origin = Origin::answering(|request| {
        let a = request.fields("x-a").join(",");
        if request.fields("if-none-match").is_empty() {
            let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=0\r\nETag: \"e\"";
            return format!("{head}\r\nContent-Length: {}\r\n\r\n{a}", a.len()).into_bytes();
        }
        b"HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\nVary: X-A\r\nCache-Control: max-age=60\r\n\r\n"
            .to_vec()
    });
    let proxy = Proxy::start(&origin.map("/"));
    let mut client = Client::connect(proxy.address);
    for a in ["de", "de", "fr"] {
        assert_eq!(get(&mut client, &format!("X-A: {a}\r\n")), a);
    }
}

#[test]
fn garbage_in_a_preference_is_as_good_as_none_and_still_a_hit() {
    let (origin, proxy) = varying(&["Accept-Encoding"]);
    let mut client = Client::connect(proxy.address);
    assert_eq!(get(&mut client, ""), "Accept-Encoding=");
    let long = ",;q=\u{1}".repeat(2000);
    for garbage in ["\0,;q=", "\0", "\u{7f}\u{1}", ";;,=;q=\u{1b}gzip", &long] {
        let fields = format!("Accept-Encoding: {garbage}\r\n");
        assert_eq!(get(&mut client, &fields), "Accept-Encoding=", "{garbage:?}");
    }
    assert_eq!(origin.requests().len(), 1);
    for name in ["Cookie", "X-Any", "Accept-Ranges"] {
        let mut client = Client::connect(proxy.address);
        let request = format!("GET /v HTTP/1.1\r\nHost: h\r\n{name}: \0a\r\n\r\n");
        assert_eq!(client.ask(request).status, 400, "{name}");
    }
}

/// What the origin did not see does not select its response (RFC 9111 4.1).
#[test]
fn a_field_that_connection_nominates_selects_as_if_it_were_not_there() {
    for name in ["Accept-Language", "Origin", "X-Lang"] {
        let origin = Origin::answering(move |request| {
            let value = request.fields(name).join(",");
            let head = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nVary: {name}");
            format!("{head}\r\nContent-Length: {}\r\n\r\n{value}", value.len()).into_bytes()
        });
        let proxy = Proxy::start(&origin.map("/"));
        let mut client = Client::connect(proxy.address);
        for fields in ["", "Connection: keep-alive\r\n"] {
            let nominated = format!("{name}: de\r\nConnection: x, {name}\r\n");
            assert_eq!(get(&mut client, &nominated), "", "{name}");
            assert_eq!(get(&mut client, &format!("{name}: de\r\n{fields}")), "de");
            assert_eq!(get(&mut client, fields), "", "{name}");
        }
        assert_eq!(origin.requests().len(), 2, "{name}");
    }
}

/// The origin sees the client's address there, which selects nothing we keep.
#[test]
fn a_response_that_varies_by_what_the_proxy_itself_says_is_not_stored() {
    for name in ["X-Forwarded-For", "Client-ip", "Forwarded", "Via"] {
        let origin = Origin::answering(move |request| {
            assert_eq!(request.fields(name).len(), 1, "{}", request.head);
            let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 0";
            format!("{head}\r\nVary: {name}\r\n\r\n").into_bytes()
        });
        let records = "CONFIG proxy.config.http.insert_forwarded STRING for\n";
        let proxy = Proxy::with(records, &origin.map("/"));
        let mut client = Client::connect(proxy.address);
        for asked in 1..=2 {
            get(&mut client, "");
            assert_eq!(origin.requests().len(), asked, "{name}");
        }
    }
}
