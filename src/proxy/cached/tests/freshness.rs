//! Stale responses: validated, replaced, or served all the same.

use super::{proxy, with};
use crate::config::records::Records;
use crate::proxy::testing::{Proxy, Script, local, ok};
use std::rc::Rc;
use tokio::sync::Notify;
use tokio::task::spawn_local;

fn tagged(max_age: u32) -> String {
    format!("Cache-Control: max-age={max_age}\r\nETag: \"v1\"\r\nContent-Encoding: x\r\n")
}

#[tokio::test]
async fn a_304_updates_fields_but_nothing_of_the_body() {
    local(async {
        let (proxy, origin) = proxy(|_, nth| {
            if nth == 0 {
                return ok(&tagged(10), "body");
            }
            "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=100\r\nContent-Length: 10\r\nContent-Encoding: y\r\nX-New: 1\r\nETag: \"v1\"\r\n\r\n".to_owned()
        })
        .await;
        proxy.get("/a", "").await;
        proxy.world.advance(20);
        let confirmed = proxy.get("/a", "").await;
        assert_eq!((confirmed.status, confirmed.text()), (200, "body"));
        assert_eq!(confirmed.field("cache-status"), "strata; fwd=stale; fwd-status=304");
        assert!(origin.seen()[1].to_lowercase().contains("if-none-match: \"v1\"\r\n"));
        proxy.world.advance(7);
        let hit = proxy.get("/a", "").await;
        assert_eq!(hit.field("cache-status"), "strata; hit; ttl=93; detail=ram");
        assert_eq!((hit.field("age"), hit.field("x-new")), ("7", "1"));
        assert_eq!((hit.field("content-length"), hit.field("content-encoding")), ("4", "x"));
        assert_eq!(proxy.outcomes(), ["miss_cold", "hit_revalidated", "hit_ram"]);
    })
    .await;
}

#[tokio::test]
async fn a_head_never_grows_however_often_it_is_validated() {
    local(async {
        let (proxy, origin) = proxy(|_, nth| {
            if nth == 0 {
                return ok("Cache-Control: max-age=0\r\nETag: \"v1\"\r\n", "body");
            }
            "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=0\r\nX-A: 1\r\nETag: \"v1\"\r\n\r\n".to_owned()
        })
        .await;
        let mut sizes = Vec::new();
        for _ in 0..50 {
            let answer = proxy.get("/a", "").await;
            assert_eq!(answer.text(), "body");
            sizes.push(answer.fields.len());
        }
        assert_eq!(sizes[2], sizes[49]);
        assert_eq!(origin.count(), 50);
    })
    .await;
}

#[tokio::test]
async fn a_304_about_another_representation_fetches_the_whole() {
    local(async {
        let (proxy, origin) = proxy(|_, nth| match nth {
            0 => ok(&tagged(10), "old"),
            1 => "HTTP/1.1 304 Not Modified\r\nETag: \"v2\"\r\n\r\n".to_owned(),
            _ => ok("Cache-Control: max-age=10\r\nETag: \"v2\"\r\n", "new"),
        })
        .await;
        proxy.get("/a", "").await;
        proxy.world.advance(20);
        assert_eq!(proxy.get("/a", "").await.text(), "new");
        assert_eq!(proxy.get("/a", "").await.text(), "new");
        assert_eq!(origin.count(), 3);
    })
    .await;
}

#[tokio::test]
async fn a_changed_representation_replaces_the_old_one() {
    local(async {
        for (fields, outcome) in [
            (tagged(10), "miss_changed"),
            ("Cache-Control: max-age=10\r\n".to_owned(), "miss_expired"),
        ] {
            let (proxy, _) = proxy(move |_, nth| ok(&fields, &nth.to_string())).await;
            proxy.get("/a", "").await;
            proxy.world.advance(20);
            assert_eq!(proxy.get("/a", "").await.text(), "1");
            assert_eq!(proxy.get("/a", "").await.text(), "1");
            assert_eq!(proxy.outcomes()[1], outcome);
        }
    })
    .await;
}

/// Stores, lets it go stale for 20 s, asks again.
async fn stale_then(first: &str, then: impl Fn() -> Script + 'static) -> (Proxy, (u16, String)) {
    let first = ok(first, "held");
    let (proxy, _) = proxy(move |_, nth| {
        if nth == 0 {
            first.clone().into()
        } else {
            then()
        }
    })
    .await;
    proxy.get("/a", "").await;
    proxy.world.advance(20);
    let answer = proxy.get("/a", "").await;
    let seen = (answer.status, answer.text().to_owned());
    (proxy, seen)
}

#[tokio::test]
async fn a_failing_origin_is_stood_in_for_unless_the_response_forbids_it() {
    local(async {
        let error = || Script::from("HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\nno");
        let held = (200, "held".to_owned());
        let failed = (503, "no".to_owned());
        for (said, expected) in [
            ("max-age=1", &held),
            ("max-age=1, stale-if-error=60", &held),
            ("max-age=1, stale-if-error=5", &failed),
            ("max-age=1, must-revalidate", &failed),
            ("s-maxage=1", &failed),
            ("s-maxage=1, stale-if-error=60", &held),
        ] {
            let fields = format!("Cache-Control: {said}\r\nETag: \"v\"\r\n");
            let (proxy, seen) = stale_then(&fields, error).await;
            assert_eq!(&seen, expected, "{said}");
            if seen.0 == 200 {
                assert_eq!(proxy.outcomes()[1], "stale_origin_error");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_closed_connection_is_a_failing_origin_too() {
    local(async {
        let close = || Script {
            close: true,
            ..Script::from("")
        };
        let (proxy, seen) = stale_then("Cache-Control: max-age=1\r\n", close).await;
        assert_eq!(seen, (200, "held".to_owned()));
        assert_eq!(proxy.outcomes()[1], "stale_origin_failed");
    })
    .await;
}

#[tokio::test]
async fn a_404_is_no_failure_and_replaces_what_was_held() {
    local(async {
        let gone = || {
            Script::from(
                "HTTP/1.1 404 No\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\ngone",
            )
        };
        let (proxy, seen) = stale_then("Cache-Control: max-age=1\r\n", gone).await;
        assert_eq!(seen, (404, "gone".to_owned()));
        assert_eq!(proxy.get("/a", "").await.status, 404);
    })
    .await;
}

/// reported.md: a 502 with max-age goes stale, and another 502 comes.
#[tokio::test]
async fn a_new_error_replaces_an_old_stored_error() {
    local(async {
        let error = |body: &str| {
            format!(
                "HTTP/1.1 502 No\r\nCache-Control: max-age=60\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        };
        let (proxy, origin) = proxy(move |_, nth| error(&nth.to_string())).await;
        assert_eq!(proxy.get("/a", "").await.text(), "0");
        assert_eq!(proxy.get("/a", "").await.text(), "0");
        proxy.world.advance(100);
        assert_eq!(proxy.get("/a", "").await.text(), "1");
        assert_eq!(proxy.get("/a", "").await.text(), "1");
        assert_eq!(origin.count(), 2);
    })
    .await;
}

/// reported.md: positive objects are not replaced by negative ones that they
/// may stand in for.
#[tokio::test]
async fn an_error_does_not_take_the_place_of_what_may_stand_in_for_it() {
    local(async {
        let error = "HTTP/1.1 503 No\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nno";
        let (proxy, origin) = proxy(move |_, nth| match nth {
            0 => ok("Cache-Control: max-age=10\r\n", "held"),
            1 | 2 => error.to_owned(),
            _ => ok("Cache-Control: max-age=10\r\n", "new"),
        })
        .await;
        proxy.get("/a", "").await;
        proxy.world.advance(20);
        for text in ["held", "held", "new", "new"] {
            assert_eq!(proxy.get("/a", "").await.text(), text);
        }
        assert_eq!(origin.count(), 4);
    })
    .await;
}

#[tokio::test]
async fn stale_while_revalidate_serves_at_once_and_asks_once() {
    local(async {
        let (proxy, origin) = proxy(|_, nth| {
            ok(
                "Cache-Control: max-age=10, stale-while-revalidate=60\r\n",
                &nth.to_string(),
            )
        })
        .await;
        proxy.get("/a", "").await;
        proxy.world.advance(20);
        let stale = proxy.get("/a", "").await;
        assert_eq!(stale.text(), "0");
        assert_eq!(
            stale.field("cache-status"),
            "strata; hit; ttl=-10; detail=ram"
        );
        while !proxy.world.shared.fills.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(proxy.get("/a", "").await.text(), "1");
        assert_eq!(origin.count(), 2);
        assert_eq!(
            proxy.outcomes(),
            ["miss_cold", "stale_while_revalidate", "hit_ram"]
        );
    })
    .await;
}

/// What requests at these seconds of a lifetime of 100 are served under the
/// records `fuzz.time`, `fuzz.min_time` and `fuzz.probability`: the number of
/// the fetch that it came by.
async fn served_by_fetch(fuzz: (i64, i64, f64), seconds: &[u64]) -> Vec<String> {
    let records = Records {
        http_cache_fuzz_time: fuzz.0,
        http_cache_fuzz_min_time: fuzz.1,
        http_cache_fuzz_probability: fuzz.2,
        ..Records::default()
    };
    let fresh = |_: &str, nth: usize| ok("Cache-Control: max-age=100\r\n", &nth.to_string());
    let (proxy, _) = with(records, fresh).await;
    let mut served = Vec::new();
    let mut now = 0;
    for second in seconds {
        proxy.world.advance(second - now);
        now = *second;
        served.push(proxy.get("/a", "").await.text().to_owned());
        while !proxy.world.shared.fills.is_empty() {
            tokio::task::yield_now().await;
        }
    }
    let hits = proxy.outcomes().split_off(1);
    assert!(hits.iter().all(|outcome| *outcome == "hit_ram"), "{hits:?}");
    served
}

#[tokio::test]
async fn a_response_is_refreshed_before_it_expires_and_nobody_waits_for_it() {
    local(async {
        for (fuzz, expected) in [
            ((0, 0, 0.0), ["0", "0", "0", "0"]),
            ((50, 0, 1.0), ["0", "0", "0", "1"]),
            ((70, 0, 1.0), ["0", "0", "1", "1"]),
            ((50, 0, 0.0), ["0", "0", "0", "0"]),
            ((1000, 10, 1.0), ["0", "0", "0", "0"]),
            ((1000, 50, 1.0), ["0", "0", "0", "1"]),
        ] {
            let seen = served_by_fetch(fuzz, &[0, 40, 60, 61]).await;
            assert_eq!(seen, expected, "{fuzz:?}");
        }
    })
    .await;
}

/// Stores a body under `held`, lets it go stale, and validates it by a 304 with
/// `told`; the fields of the next hit, and how often the origin was asked.
async fn after_304(
    held: &'static str,
    told: &'static str,
) -> (crate::proxy::testing::Answer, usize) {
    let (proxy, origin) = proxy(move |asked, nth| {
        let is_conditional = asked.to_lowercase().contains("\r\nif-");
        match (nth, is_conditional) {
            (0, _) => ok(&format!("Cache-Control: max-age=10\r\n{held}"), "old"),
            (_, true) => {
                format!("HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\n{told}\r\n")
            }
            (_, false) => ok(&format!("Cache-Control: max-age=60\r\n{told}"), "new"),
        }
    })
    .await;
    proxy.get("/a", "").await;
    proxy.world.advance(20);
    proxy.get("/a", "").await;
    (proxy.get("/a", "").await, origin.count())
}

#[tokio::test]
async fn a_304_gives_no_body_a_strong_tag_that_it_never_had_rfc_9111_4_3_4() {
    local(async {
        const DATED: &str = "Last-Modified: Thu, 01 Jan 2015 00:00:00 GMT\r\n";
        for (held, told, text, tag, fetches) in [
            ("ETag: W/\"a\"\r\n", "ETag: \"a\"\r\n", "old", "W/\"a\"", 2),
            (
                "ETag: W/\"a\"\r\n",
                "ETag: W/\"a\"\r\n",
                "old",
                "W/\"a\"",
                2,
            ),
            ("ETag: \"a\"\r\n", "ETag: \"a\"\r\n", "old", "\"a\"", 2),
            ("ETag: \"a\"\r\n", "ETag: W/\"a\"\r\n", "old", "W/\"a\"", 2),
            ("ETag: W/\"a\"\r\n", "ETag: \"b\"\r\n", "new", "\"b\"", 3),
            (DATED, "ETag: \"b\"\r\n", "new", "\"b\"", 3),
            (DATED, DATED, "old", "", 2),
        ] {
            let (hit, asked) = after_304(held, told).await;
            let seen = (hit.text(), hit.field("etag"), asked);
            assert_eq!(seen, (text, tag, fetches), "{held} {told}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_304_that_forbids_storing_is_served_with_its_own_words_and_the_copy_is_taken_out() {
    local(async {
        for said in ["no-store", "private"] {
            let (proxy, origin) = proxy(move |_, nth| match nth {
                1 => format!(
                    "HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\nCache-Control: {said}\r\nX-A: 2\r\n\r\n"
                ),
                _ => ok("Cache-Control: max-age=9\r\nETag: \"e\"\r\nX-A: 1\r\n", "x"),
            })
            .await;
            proxy.get("/a", "").await;
            proxy.world.advance(20);
            let told = proxy.get("/a", "").await;
            let seen = (told.text(), told.field("cache-control"), told.field("x-a"));
            assert_eq!(seen, ("x", said, "2"));
            proxy.get("/a", "").await;
            assert_eq!(origin.count(), 3, "{said}");
        }
    })
    .await;
}

#[tokio::test]
async fn age_counts_up_to_the_moment_of_sending() {
    local(async {
        let gate = Rc::new(Notify::new());
        let held = Rc::clone(&gate);
        let (proxy, origin) = proxy(move |_, nth| match nth {
            0 => ok("Cache-Control: max-age=10\r\n", "x").into(),
            _ => Script {
                text: String::new(),
                gate: Some(Rc::clone(&held)),
                rest: String::new(),
                close: true,
            },
        })
        .await;
        proxy.get("/a", "").await;
        proxy.world.advance(20);
        let waits = proxy.clone();
        let waits = spawn_local(async move { waits.get("/a", "").await });
        while origin.count() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        proxy.world.advance(30);
        // A connection that ends before its answer is tried once more.
        while !waits.is_finished() {
            gate.notify_one();
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let stale = waits.await.unwrap();
        assert_eq!((stale.text(), stale.field("age")), ("x", "50"));
    })
    .await;
}
