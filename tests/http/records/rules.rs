//! Records of the rules' language, and of requests that no rule takes.

use super::lines;
use crate::support::{Client, Origin, Proxy};

/// Rules of one kind, what of them is asked for, and the record that changes
/// the answer's status.
struct Case {
    record: (&'static str, &'static str),
    from: &'static str,
    ask: &'static str,
    statuses: [u16; 2],
}

const CASES: &[Case] = &[
    Case {
        record: ("strata.remap.host_regex", "search"),
        from: "regex_map http://cdn.test/",
        ask: "GET / HTTP/1.1\r\nHost: a.cdn.test.b\r\n\r\n",
        statuses: [404, 200],
    },
    Case {
        record: ("strata.remap.path_prefix", "byte"),
        from: "map http://h/b",
        ask: "GET /bzz HTTP/1.1\r\nHost: h\r\n\r\n",
        statuses: [404, 200],
    },
    Case {
        record: (
            "header.parse.no_host_url_redirect",
            "http://elsewhere.test/",
        ),
        from: "map http://h/",
        ask: "GET / HTTP/1.0\r\n\r\n",
        statuses: [400, 302],
    },
];

#[test]
fn rules_take_what_the_records_say_from_the_reload_on() {
    let origin = Origin::with_body("hello");
    for case in CASES {
        let rules = format!("{} http://{}/\n", case.from, origin.address);
        let proxy = Proxy::start(&rules);
        let ask = || Client::connect(proxy.address).ask(case.ask).status;
        let before = ask();
        proxy.reload(&lines(&[case.record]), &rules);
        assert_eq!([before, ask()], case.statuses, "{}", case.record.0);
    }
}
