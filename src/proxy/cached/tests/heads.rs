//! HEAD of what is held: it asks for a head, and brings the stored one up to
//! date or takes the response out (RFC 9111 4.3.5).

use super::{obedient, proxy, with};
use crate::proxy::testing::{Origin, Proxy, Script, local, ok, request};
use std::rc::Rc;
use tokio::sync::Notify;
use tokio::task::spawn_local;

const HELD: &str = "Cache-Control: max-age=10\r\nETag: \"v1\"\r\nX-A: old\r\nX-B: kept\r\n";

/// A head without a body.
fn head(status: &str, fields: &str) -> Script {
    format!("HTTP/1.1 {status}\r\n{fields}\r\n").into()
}

/// Stores `held`, lets it go stale, and asks HEAD, which the origin answers so.
async fn stale_head(status: &'static str, fields: &'static str) -> (Proxy, Origin, u16) {
    let (proxy, origin) = proxy(move |asked, nth| match (asked.starts_with("HEAD"), nth) {
        (true, _) => head(status, fields),
        (false, 0) => ok(HELD, "held").into(),
        (false, _) => ok("Cache-Control: max-age=10\r\nETag: \"v2\"\r\n", "new").into(),
    })
    .await;
    proxy.get("/a", "").await;
    proxy.world.advance(20);
    let answer = proxy.ask("HEAD", "/a", "").await;
    (proxy, origin, answer.status)
}

#[tokio::test]
async fn a_head_that_speaks_of_what_is_held_freshens_it_rfc_9111_4_3_5() {
    local(async {
        for (status, fields) in [
            (
                "200 OK",
                "Cache-Control: max-age=50\r\nETag: \"v1\"\r\nContent-Length: 4\r\nX-A: new\r\n",
            ),
            ("200 OK", "Cache-Control: max-age=50\r\nX-A: new\r\n"),
            (
                "304 Not Modified",
                "Cache-Control: max-age=50\r\nETag: \"v1\"\r\nX-A: new\r\n",
            ),
        ] {
            let (proxy, origin, answered) = stale_head(status, fields).await;
            assert_eq!(answered, 200, "{fields}");
            let asked = origin.seen()[1].to_lowercase();
            assert!(asked.starts_with("head /a "), "{asked}");
            assert!(asked.contains("if-none-match: \"v1\"\r\n"), "{asked}");
            proxy.world.advance(40);
            let hit = proxy.get("/a", "").await;
            assert_eq!((hit.text(), hit.field("x-a")), ("held", "new"));
            assert_eq!((hit.field("x-b"), hit.field("age")), ("kept", "40"));
            assert_eq!(hit.field("content-length"), "4");
            let outcomes = ["miss_cold", "hit_revalidated", "hit_ram"];
            assert_eq!(proxy.outcomes(), outcomes, "{fields}");
            assert_eq!(origin.count(), 2);
        }
    })
    .await;
}

#[tokio::test]
async fn a_head_that_speaks_of_another_response_takes_out_what_is_held() {
    local(async {
        for (status, fields, code) in [
            (
                "200 OK",
                "Cache-Control: max-age=50\r\nETag: \"v2\"\r\n",
                200,
            ),
            (
                "200 OK",
                "Cache-Control: max-age=50\r\nContent-Length: 5\r\n",
                200,
            ),
            (
                "200 OK",
                "Last-Modified: Thu, 01 Jan 2015 00:00:00 GMT\r\n",
                200,
            ),
            ("200 OK", "Content-Encoding: gzip\r\n", 200),
            ("410 Gone", "Cache-Control: max-age=50\r\n", 410),
            ("404 Not Found", "", 404),
        ] {
            let (proxy, origin, answered) = stale_head(status, fields).await;
            assert_eq!(answered, code, "{fields}");
            let taken = proxy.get("/a", "Cache-Control: max-stale\r\n").await;
            assert_eq!(taken.text(), "new", "{fields}");
            assert_eq!(origin.count(), 3, "{fields}");
            assert_eq!(proxy.outcomes()[1], "miss_changed", "{fields}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_head_that_fails_leaves_what_is_held_and_is_stood_in_for() {
    local(async {
        let (proxy, origin, answered) = stale_head("503 No", "").await;
        assert_eq!((answered, proxy.outcomes()[1]), (200, "stale_origin_error"));
        let (proxy2, _, answered) = stale_head("403 No", "").await;
        assert_eq!((answered, proxy2.outcomes()[1]), (403, "miss_changed"));
        for (proxy, body) in [(proxy, "held"), (proxy2, "held")] {
            let stale = proxy.get("/a", "Cache-Control: max-stale\r\n").await;
            assert_eq!(stale.text(), body);
        }
        assert_eq!(origin.count(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_304_to_head_about_another_response_asks_again_without_conditions() {
    local(async {
        let (proxy, origin) = proxy(|asked, nth| match (asked.starts_with("HEAD"), nth) {
            (true, 1) => head("304 Not Modified", "ETag: \"v9\"\r\n"),
            (true, _) => head("200 OK", "ETag: \"v9\"\r\nContent-Length: 9\r\n"),
            (false, _) => ok(HELD, "held").into(),
        })
        .await;
        proxy.get("/a", "").await;
        proxy.world.advance(20);
        let answer = proxy.ask("HEAD", "/a", "").await;
        assert_eq!((answer.status, answer.field("content-length")), (200, "9"));
        assert!(!origin.seen()[2].to_lowercase().contains("if-none-match"));
        assert_eq!(origin.count(), 3);
    })
    .await;
}

#[tokio::test]
async fn a_fresh_response_that_a_head_s_no_cache_finds_changed_is_not_served_again() {
    local(async {
        let script = |asked: &str, nth: usize| match asked.starts_with("HEAD") {
            true => head("200 OK", "ETag: \"v2\"\r\n"),
            false => ok(HELD, &nth.to_string()).into(),
        };
        let (proxy, _) = with(obedient(), script).await;
        proxy.get("/a", "").await;
        proxy.ask("HEAD", "/a", "Cache-Control: no-cache\r\n").await;
        assert_eq!(proxy.get("/a", "").await.text(), "2");
    })
    .await;
}

#[tokio::test]
async fn a_get_that_waited_for_a_head_gets_its_body() {
    local(async {
        for told in ["\"v1\"", "\"v2\""] {
            let gate = std::rc::Rc::new(tokio::sync::Notify::new());
            let held_back = std::rc::Rc::clone(&gate);
            let (proxy, origin) = proxy(move |asked, nth| {
                if asked.starts_with("HEAD") {
                    return Script {
                        gate: Some(std::rc::Rc::clone(&held_back)),
                        rest: format!(
                            "HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\nETag: {told}\r\n\r\n"
                        ),
                        ..Script::from("")
                    };
                }
                ok(HELD, if nth == 0 { "old" } else { "new" }).into()
            })
            .await;
            proxy.get("/a", "").await;
            proxy.world.advance(20);
            let waits = async {
                while origin.count() < 2 {
                    tokio::task::yield_now().await;
                }
                let get = proxy.get("/a", "");
                let open = async { gate.notify_one() };
                tokio::join!(get, open).0
            };
            let (_, got) = tokio::join!(proxy.ask("HEAD", "/a", ""), waits);
            let expected = if told == "\"v1\"" { "old" } else { "new" };
            assert_eq!(got.text(), expected);
        }
    })
    .await;
}

#[tokio::test]
async fn a_head_behind_a_fetch_that_it_can_not_share_asks_for_a_head_and_not_for_a_body() {
    local(async {
        let endless = |fields: &str, gate: &Rc<Notify>| Script {
            text: String::new(),
            gate: Some(Rc::clone(gate)),
            rest: format!("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n{fields}\r\nbegun"),
            close: false,
        };
        for fields in [
            "Cache-Control: no-store\r\n",
            "Cache-Control: max-age=60\r\nVary: X-A\r\n",
            "Cache-Control: max-age=60\r\nVary: *\r\n",
        ] {
            let gate = Rc::new(Notify::new());
            let opens = Rc::clone(&gate);
            let (proxy, origin) = proxy(move |asked, nth| match asked.starts_with("HEAD") {
                true => head("200 OK", "Content-Length: 1000000000\r\n"),
                false if nth == 0 => endless(fields, &opens),
                false => ok("", "never").into(),
            })
            .await;
            let mut get = proxy.client();
            get.send(&request("GET", "/a", "X-A: 1\r\n")).await;
            while origin.count() == 0 {
                tokio::task::yield_now().await;
            }
            let waits = proxy.clone();
            let waits = spawn_local(async move { waits.ask("HEAD", "/a", "").await });
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            gate.notify_one();
            let told = waits.await.unwrap();
            assert_eq!(told.field("content-length"), "1000000000");
            let asked = origin.seen();
            assert!(
                asked[1..].iter().all(|head| head.starts_with("HEAD")),
                "{asked:?}"
            );
            assert_eq!(get.head().await.0, 200);
        }
    })
    .await;
}
