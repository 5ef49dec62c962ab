//! What of a request is part of the key, by record.

use crate::support::{Client, Origin, Proxy};

const GENERATION: &str = "CONFIG proxy.config.http.cache.generation INT";

fn origin() -> Origin {
    Origin::answering(|request| {
        let asked = request.target().to_owned();
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nLocation: /b?x";
        format!("{head}\r\nContent-Length: {}\r\n\r\n{asked}", asked.len()).into_bytes()
    })
}

fn ask(proxy: &Proxy, method: &str, target: &str) -> String {
    let request = format!("{method} {target} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    Client::connect(proxy.address).ask(request).text()
}

#[test]
fn another_generation_is_an_empty_cache_and_the_old_one_is_still_there() {
    let origin = origin();
    let rules = origin.map("/");
    let proxy = Proxy::start(&rules);
    for (generation, fetches) in [(-1, 1), (1, 2), (1, 2), (2, 3), (-1, 3), (1, 3)] {
        proxy.reload(&format!("{GENERATION} {generation}\n"), &rules);
        ask(&proxy, "GET", "/a");
        assert_eq!(origin.requests().len(), fetches, "{generation}");
    }
}

#[test]
fn a_purge_and_an_unsafe_method_reach_what_the_records_keyed() {
    let origin = origin();
    let records = format!("{GENERATION} 7\nCONFIG proxy.config.http.cache.ignore_query INT 1\n");
    let proxy = Proxy::with(&records, &origin.map("/"));
    let mut fetched = 0;
    for (method, target) in [("POST", "/a"), ("POST", "/elsewhere"), ("PURGE", "/b?z")] {
        fetched += 1;
        ask(&proxy, "GET", "/b?y");
        ask(&proxy, "GET", "/b");
        assert_eq!(origin.requests().len(), fetched, "{method} {target}");
        ask(&proxy, method, target);
        fetched += usize::from(method == "POST");
    }
    ask(&proxy, "GET", "/b");
    assert_eq!(origin.requests().len(), fetched + 1);
}

#[test]
fn a_query_that_is_left_out_of_the_key_still_goes_to_the_origin() {
    let origin = origin();
    let records = "CONFIG proxy.config.http.cache.ignore_query INT 1\n";
    let proxy = Proxy::with(records, &origin.map("/"));
    assert_eq!(ask(&proxy, "GET", "/a?1"), "/a?1");
    assert_eq!(ask(&proxy, "GET", "/a?2"), "/a?1");
    assert_eq!(ask(&proxy, "GET", "/A?1"), "/A?1");
    assert_eq!(origin.requests().len(), 2);
}
