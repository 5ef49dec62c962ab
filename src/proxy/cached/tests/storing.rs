//! What is stored, and what comes back.

use super::{obedient, proxy, with};
use crate::config::records::Records;
use crate::metrics::Metric;
use crate::proxy::testing::{Script, local, ok, request};

#[tokio::test]
async fn the_second_request_is_a_ram_hit_that_says_so() {
    local(async {
        let fields =
            "Cache-Control: max-age=60\r\nX-Kept: 1\r\nAge: 5\r\nConnection: X-Hop\r\nX-Hop: 1\r\n";
        let (proxy, origin) = proxy(move |_, _| ok(fields, "body")).await;
        let miss = proxy.get("/a", "").await;
        assert_eq!((miss.status, miss.text()), (200, "body"));
        assert_eq!(miss.field("cache-status"), "strata; fwd=uri-miss; stored");
        proxy.world.advance(10);
        let hit = proxy.get("/a", "").await;
        assert_eq!((hit.status, hit.text()), (200, "body"));
        assert_eq!(hit.field("cache-status"), "strata; hit; ttl=45; detail=ram");
        assert_eq!(hit.field("age"), "15");
        assert_eq!(hit.field("via"), "1.1 edge (Strata)");
        assert_eq!(hit.field("x-kept"), "1");
        assert_eq!(hit.field("x-hop"), "");
        assert_eq!(origin.count(), 1);
        assert_eq!(proxy.outcomes(), ["miss_cold", "hit_ram"]);
        assert_eq!(proxy.world.count(Metric::CacheRamReadSuccess), 1);
    })
    .await;
}

#[tokio::test]
async fn a_first_hand_response_has_no_age() {
    local(async {
        let (proxy, _) = proxy(|_, _| ok("Cache-Control: max-age=60\r\n", "x")).await;
        assert_eq!(proxy.get("/a", "").await.field("age"), "");
        assert_eq!(proxy.get("/a", "").await.field("age"), "0");
    })
    .await;
}

#[tokio::test]
async fn an_early_close_is_cut_for_the_client_and_never_stored() {
    local(async {
        for answer in [
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 100\r\n\r\npart",
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n",
        ] {
            let (proxy, origin) = proxy(move |_, nth| Script {
                close: nth == 0,
                ..if nth == 0 { answer.into() } else { ok("Cache-Control: max-age=60\r\n", "whole").into() }
            })
            .await;
            let first = proxy.get("/a", "").await;
            assert!(!first.is_whole, "{answer}");
            assert_eq!(proxy.get("/a", "").await.text(), "whole");
            assert_eq!(proxy.get("/a", "").await.text(), "whole");
            assert_eq!(origin.count(), 2);
            assert_eq!(proxy.outcomes(), ["origin_closed", "miss_cold", "hit_ram"]);
        }
    })
    .await;
}

#[tokio::test]
async fn a_chunked_body_of_nothing_is_stored_and_ages() {
    local(async {
        for status in ["200 OK", "404 Not Found"] {
            let head = format!("HTTP/1.1 {status}\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
            let (proxy, origin) = proxy(move |_, _| head.clone()).await;
            proxy.get("/a", "").await;
            proxy.world.advance(3);
            let hit = proxy.get("/a", "").await;
            assert_eq!(hit.field("age"), "3");
            assert_eq!(hit.field("content-length"), "0");
            assert_eq!(origin.count(), 1);
        }
    })
    .await;
}

#[tokio::test]
async fn a_response_to_authorization_is_shared_only_when_it_says_so() {
    local(async {
        let cases = [
            ("max-age=100", 2),
            ("max-age=100, public", 1),
            ("s-maxage=100", 1),
            ("max-age=100, must-revalidate", 1),
        ];
        for (said, fetches) in cases {
            let fields = format!("Cache-Control: {said}\r\n");
            let (proxy, origin) = proxy(move |_, _| ok(&fields, "secret")).await;
            proxy.get("/a", "Authorization: Basic eA==\r\n").await;
            proxy.get("/a", "").await;
            assert_eq!(origin.count(), fetches, "{said}");
        }
    })
    .await;
}

#[tokio::test]
async fn head_after_get_has_the_length_and_get_after_head_the_body() {
    local(async {
        let (proxy, origin) = proxy(|head, _| {
            let full = ok("Cache-Control: max-age=60\r\n", "four");
            if head.starts_with("HEAD") {
                full.replace("\r\n\r\nfour", "\r\n\r\n")
            } else {
                full
            }
        })
        .await;
        let cold = proxy.ask("HEAD", "/a", "").await;
        assert_eq!((cold.status, cold.field("content-length")), (200, "4"));
        assert_eq!(proxy.get("/a", "").await.text(), "four");
        let hit = proxy.ask("HEAD", "/a", "").await;
        assert_eq!(hit.field("content-length"), "4");
        assert_eq!(hit.field("cache-status"), "strata; hit; ttl=60; detail=ram");
        assert_eq!(origin.count(), 2);
    })
    .await;
}

#[tokio::test]
async fn an_unsafe_method_invalidates_what_is_stored() {
    local(async {
        let (proxy, origin) = proxy(|head, nth| {
            if head.starts_with("POST") {
                return "HTTP/1.1 204 No Content\r\nLocation: /b\r\nContent-Location: http://evil.test/c\r\n\r\n".to_owned();
            }
            ok("Cache-Control: max-age=60\r\n", &nth.to_string())
        })
        .await;
        for path in ["/a", "/b"] {
            proxy.get(path, "").await;
        }
        proxy.ask("POST", "/a", "Content-Length: 0\r\n").await;
        assert_eq!(proxy.get("/a", "").await.text(), "3");
        assert_eq!(proxy.get("/b", "").await.text(), "4");
        assert_eq!(origin.count(), 5);
    })
    .await;
}

#[tokio::test]
async fn a_failed_unsafe_request_invalidates_nothing() {
    local(async {
        let (proxy, origin) = proxy(|head, _| {
            if head.starts_with("DELETE") {
                return "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_owned();
            }
            ok("Cache-Control: max-age=60\r\n", "x")
        })
        .await;
        proxy.get("/a", "").await;
        proxy.ask("DELETE", "/a", "").await;
        proxy.get("/a", "").await;
        assert_eq!(origin.count(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_request_that_says_no_store_leaves_nothing_behind() {
    local(async {
        let (proxy, origin) = proxy(|_, _| ok("Cache-Control: max-age=60\r\n", "x")).await;
        proxy.get("/a", "Cache-Control: no-store\r\n").await;
        proxy.get("/a", "").await;
        assert_eq!(origin.count(), 2);
        assert_eq!(proxy.outcomes(), ["miss_no_store", "miss_cold"]);
    })
    .await;
}

#[tokio::test]
async fn no_cache_of_a_client_that_counts_replaces_what_is_stored() {
    local(async {
        let script = |_: &str, nth: usize| ok("Cache-Control: max-age=60\r\n", &nth.to_string());
        let (proxy, _) = with(obedient(), script).await;
        proxy.get("/a", "").await;
        assert_eq!(
            proxy.get("/a", "Cache-Control: no-cache\r\n").await.text(),
            "1"
        );
        assert_eq!(proxy.get("/a", "").await.text(), "1");
        assert_eq!(proxy.outcomes(), ["miss_cold", "miss_no_cache", "hit_ram"]);
    })
    .await;
}

#[tokio::test]
async fn only_if_cached_is_answered_504_without_asking() {
    local(async {
        let (proxy, origin) = proxy(|_, _| ok("", "x")).await;
        let answer = proxy.get("/a", "Cache-Control: only-if-cached\r\n").await;
        assert_eq!((answer.status, origin.count()), (504, 0));
        assert_eq!(proxy.outcomes(), ["answered_only_if_cached"]);
    })
    .await;
}

#[tokio::test]
async fn set_cookie_is_not_replayed_to_others() {
    local(async {
        let fields = "Cache-Control: max-age=60\r\nSet-Cookie: a=1\r\n";
        let (proxy, origin) = proxy(move |_, _| ok(fields, "x")).await;
        proxy.get("/a", "").await;
        let hit = proxy.get("/a", "").await;
        assert_eq!((hit.field("set-cookie"), origin.count()), ("", 1));
    })
    .await;
}

#[tokio::test]
async fn a_body_larger_than_a_window_arrives_whole_and_is_stored() {
    local(async {
        let body = "0123456789abcdef".repeat(512 * 1024);
        let answer = ok("Cache-Control: max-age=60\r\n", &body);
        let (proxy, _) = proxy(move |_, _| answer.clone()).await;
        let answer = proxy.get("/a", "").await;
        assert!(answer.is_whole);
        assert!(answer.text() == body, "{} bytes", answer.body.len());
    })
    .await;
}

#[tokio::test]
async fn a_304_to_authorization_needs_leave_to_be_shared_as_a_new_response_does() {
    local(async {
        for (said, fetches) in [("max-age=60", 3), ("max-age=60, public", 2)] {
            let (proxy, origin) = proxy(move |_, nth| match nth {
                1 => format!("HTTP/1.1 304 Not Modified\r\nCache-Control: {said}\r\n\r\n"),
                _ => ok("Cache-Control: max-age=9, public\r\nETag: \"e\"\r\n", "x"),
            })
            .await;
            proxy.get("/a", "Authorization: a\r\n").await;
            proxy.world.advance(20);
            let validated = proxy.get("/a", "Authorization: a\r\n").await;
            assert_eq!((validated.status, validated.text()), (200, "x"));
            proxy.get("/a", "").await;
            assert_eq!(origin.count(), fetches, "{said}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_counts_among_lifetimes_and_targeted_fields_decides_of_storing() {
    local(async {
        for (fields, seconds, fetches) in [
            ("Cache-Control: max-age=0, s-maxage=15", 14, 1),
            ("Cache-Control: max-age=0, s-maxage=15", 16, 2),
            (
                "Cache-Control: max-age=60\r\nCDN-Cache-Control: no-store",
                1,
                2,
            ),
            (
                "Cache-Control: no-store\r\nCDN-Cache-Control: max-age=60",
                1,
                1,
            ),
            (
                "Cache-Control: max-age=60\r\nCDN-Cache-Control: max-age=0;;(",
                1,
                1,
            ),
            (
                "Cache-Control: no-store\r\nCDN-Cache-Control: max-age=60;;(",
                1,
                2,
            ),
        ] {
            let lines = format!("{fields}\r\n");
            let (proxy, origin) = proxy(move |_, _| ok(&lines, "x")).await;
            proxy.get("/a", "").await;
            proxy.world.advance(seconds);
            proxy.get("/a", "").await;
            assert_eq!(origin.count(), fetches, "{fields} after {seconds}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_head_of_what_came_in_chunks_has_the_length_of_its_get() {
    local(async {
        let chunked =
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
        let (proxy, origin) = proxy(move |head, _| {
            let is_head = head.starts_with("HEAD");
            format!(
                "{chunked}{}",
                if is_head {
                    ""
                } else {
                    "4\r\nfour\r\n0\r\n\r\n"
                }
            )
        })
        .await;
        let cold = proxy.ask("HEAD", "/a", "").await;
        assert_eq!((cold.status, cold.field("content-length")), (200, ""));
        assert_eq!(proxy.get("/a", "").await.text(), "four");
        let hit = proxy.ask("HEAD", "/a", "").await;
        assert_eq!((hit.status, hit.field("content-length")), (200, "4"));
        assert_eq!(origin.count(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_304_to_authorization_does_not_take_out_what_was_stored_without() {
    local(async {
        let (proxy, origin) = proxy(|_, nth| match nth {
            0 => ok("Cache-Control: max-age=9\r\nETag: \"e\"\r\nX-A: 0\r\n", "x"),
            nth => format!(
                "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nX-A: {nth}\r\n\r\n"
            ),
        })
        .await;
        proxy.get("/a", "").await;
        proxy.world.advance(20);
        for (fields, told) in [("Authorization: a\r\n", "1"), ("", "2"), ("", "2")] {
            let answer = proxy.get("/a", fields).await;
            assert_eq!((answer.text(), answer.field("x-a")), ("x", told));
        }
        assert_eq!(origin.count(), 3);
        assert_eq!(proxy.outcomes()[2], "hit_revalidated", "the copy was left");
    })
    .await;
}

#[tokio::test]
async fn authorization_revalidates_nothing_behind_the_scenes_that_it_may_not_share() {
    local(async {
        for (said, asked) in [("max-age=9", 1), ("max-age=9, public", 2)] {
            let fields =
                format!("Cache-Control: {said}, stale-while-revalidate=60\r\nETag: \"e\"\r\n");
            let (proxy, origin) = proxy(move |_, _| ok(&fields, "x")).await;
            proxy.get("/a", "").await;
            proxy.world.advance(20);
            let stale = proxy.get("/a", "Authorization: a\r\n").await;
            assert_eq!(stale.text(), "x");
            while !proxy.world.shared.fills.is_empty() {
                tokio::task::yield_now().await;
            }
            assert_eq!(origin.count(), asked, "{said}");
        }
    })
    .await;
}

/// RFC 9111 5.2.1.7.
#[tokio::test]
async fn only_if_cached_asks_the_origin_for_nothing_whatever_else_the_request_is() {
    local(async {
        let off = Records {
            http_cache_http: 0,
            ..Records::default()
        };
        let only = "Cache-Control: only-if-cached\r\n";
        for (records, fields, body) in [
            (off, "", ""),
            (Records::default(), "Content-Length: 1\r\n", "y"),
            (
                Records::default(),
                "Connection: upgrade\r\nUpgrade: websocket\r\n",
                "",
            ),
        ] {
            let (proxy, origin) = with(records, |_, _| ok("", "x")).await;
            let mut client = proxy.client();
            let text = request("GET", "/a", &format!("{fields}{only}"));
            client.send(&(text + body)).await;
            assert_eq!(client.answer("GET").await.status, 504, "{fields}");
            assert_eq!(origin.count(), 0, "{fields}");
            assert_eq!(proxy.outcomes(), ["answered_only_if_cached"]);
        }
        let fields = "Cache-Control: max-age=9, stale-while-revalidate=60\r\n";
        let (proxy, origin) = proxy(move |_, _| ok(fields, "x")).await;
        proxy.get("/a", "").await;
        proxy.world.advance(20);
        assert_eq!(proxy.get("/a", only).await.text(), "x");
        while !proxy.world.shared.fills.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(origin.count(), 1);
    })
    .await;
}

/// design: in reverse mode a client's no-cache and max-age do not reach the
/// origin, unless the records have them count; a fill is shared by all.
#[tokio::test]
async fn directives_that_do_not_count_are_not_passed_on_in_reverse_mode() {
    local(async {
        let said = "Cache-Control: no-cache, max-age=0\r\nCache-Control: max-stale=5, min-fresh=1, no-transform, x=\"a, max-age=1\"\r\nPragma: no-cache\r\n";
        let kept = "no-transform, x=\"a, max-age=1\"";
        let counted = "no-cache, max-age=0, no-transform, x=\"a, max-age=1\"";
        for (records, method, expected, pragmas) in [
            (Records::default(), "GET", kept, 0),
            (Records::default(), "HEAD", kept, 0),
            (obedient(), "GET", counted, 1),
        ] {
            let (proxy, origin) = with(records, |_, _| ok("", "")).await;
            proxy.ask(method, "/a", said).await;
            let asked = origin.seen().remove(0).to_lowercase();
            let line = format!("\r\ncache-control: {expected}\r\n");
            assert!(asked.contains(&line), "{method}: {asked}");
            assert_eq!(asked.matches("\r\ncache-control:").count(), 1, "{asked}");
            assert_eq!(asked.matches("\r\npragma:").count(), pragmas, "{asked}");
        }
        let (proxy, origin) = proxy(|_, _| ok("", "")).await;
        proxy.get("/a", "Pragma: no-cache\r\nCache-Control: max-age=0\r\n").await;
        proxy.ask("POST", "/a", "Content-Length: 0\r\nCache-Control: no-cache\r\n").await;
        let asked = origin.seen().iter().map(|head| head.to_lowercase()).collect::<Vec<_>>();
        assert!(!asked[0].contains("\r\ncache-control:"), "{asked:?}");
        assert!(asked[1].contains("\r\ncache-control: no-cache\r\n"), "{asked:?}");
    })
    .await;
}
