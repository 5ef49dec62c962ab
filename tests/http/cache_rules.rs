//! The rules of cache.config, end to end.

use crate::support::{Client, Origin, Proxy, until};
use strata::metrics::Metric;

/// Rules, what is asked one after the other, the fields of every answer, and
/// how many of the requests come to the origin.
struct Case {
    rules: &'static str,
    asks: &'static [&'static str],
    fields: &'static str,
    fetches: usize,
}

/// Two requests for one page.
const TWICE: &[&str] = &["GET /a.jpg", "GET /a.jpg"];

const CASES: &[Case] = &[
    Case {
        rules: "dest_domain=. suffix=.jpg ttl-in-cache=1d",
        asks: &["GET /a.jpg", "GET /a.jpg", "GET /a.txt", "GET /a.txt"],
        fields: "Cache-Control: no-store\r\n",
        fetches: 3,
    },
    Case {
        rules: "dest_domain=. ttl-in-cache=0",
        asks: TWICE,
        fields: "Cache-Control: max-age=60\r\n",
        fetches: 2,
    },
    Case {
        rules: "dest_domain=. suffix=.jpg action=never-cache",
        asks: TWICE,
        fields: "Cache-Control: max-age=60\r\n",
        fetches: 2,
    },
    Case {
        rules: "dest_domain=. suffix=.txt action=never-cache",
        asks: TWICE,
        fields: "Cache-Control: max-age=60\r\n",
        fetches: 1,
    },
    Case {
        rules: "dest_domain=. action=ignore-server-no-cache",
        asks: TWICE,
        fields: "Cache-Control: no-cache, no-store, max-age=60\r\n",
        fetches: 1,
    },
    Case {
        rules: "dest_domain=. action=ignore-no-cache",
        asks: &[
            "GET /a.jpg",
            "GET /a.jpg HTTP/1.1\r\nCache-Control: no-cache",
        ],
        fields: "Cache-Control: no-cache, max-age=60\r\n",
        fetches: 1,
    },
    Case {
        rules: "dest_domain=. revalidate=0",
        asks: TWICE,
        fields: "Cache-Control: max-age=60\r\n",
        fetches: 2,
    },
    Case {
        rules: "dest_host=elsewhere.test ttl-in-cache=1d",
        asks: TWICE,
        fields: "",
        fetches: 2,
    },
    Case {
        rules: "dest_domain=. cache-responses-to-cookies=0",
        asks: &["GET /a HTTP/1.1\r\nCookie: a=1", "GET /a"],
        fields: "Cache-Control: max-age=60\r\n",
        fetches: 2,
    },
];

#[test]
fn each_rule_has_its_effect_on_what_it_is_for_and_on_nothing_else() {
    for case in CASES {
        let fields = case.fields;
        let origin = Origin::answering(move |_| {
            format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 1\r\n\r\nx").into_bytes()
        });
        let proxy = Proxy::with_cache_rules(case.rules, &origin.map("/"));
        for ask in case.asks {
            let (line, fields) = ask.split_once(" HTTP/1.1").unwrap_or((ask, ""));
            let request = format!("{line} HTTP/1.1\r\nHost: h{fields}\r\n\r\n");
            assert_eq!(Client::connect(proxy.address).ask(request).status, 200);
        }
        let fetches = origin.requests().len();
        assert_eq!(fetches, case.fetches, "{}", case.rules);
    }
}

#[test]
fn what_a_rule_pins_is_pinned_where_the_record_permits_it() {
    let fields = "Cache-Control: max-age=60\r\n";
    let origin = Origin::answering(move |_| {
        format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 1\r\n\r\nx").into_bytes()
    });
    let dir = tempfile::tempdir().unwrap();
    let proxy = Proxy::on_disk("", &origin.map("/"), dir.path());
    let rule = "dest_domain=. suffix=pinned pin-in-cache=1d";
    let get = |path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_eq!(Client::connect(proxy.address).ask(request).status, 200);
    };
    let writes = || proxy.counter(Metric::CacheWriteBytes);
    proxy.reload_cache_rules("", rule, &origin.map("/"));
    get("/not-permitted-to-be-pinned");
    let permit = "CONFIG proxy.config.cache.permit.pinning INT 1\n";
    proxy.reload_cache_rules(permit, rule, &origin.map("/"));
    get("/not");
    until("two objects on the device", || writes() > 0);
    assert_eq!(proxy.counter(Metric::CachePinnedBytes), 0);
    get("/pinned");
    until("an object that is pinned", || {
        proxy.counter(Metric::CachePinnedBytes) > 0
    });
}
