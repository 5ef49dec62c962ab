//! Conditions and ranges of clients.

use super::proxy;
use crate::proxy::testing::{Script, local, ok};
use std::rc::Rc;
use tokio::sync::Notify;
use tokio::task::spawn_local;

const TAGGED: &str = "Cache-Control: max-age=60\r\nETag: \"v1\"\r\nLast-Modified: Thu, 01 Jan 2015 00:00:00 GMT\r\nX-Other: 1\r\n";

#[tokio::test]
async fn a_current_client_gets_304_with_the_fields_that_belong_there() {
    local(async {
        let (proxy, origin) = proxy(|_, _| ok(TAGGED, "body")).await;
        proxy.get("/a", "").await;
        for condition in [
            "If-None-Match: \"v1\"\r\n",
            "If-None-Match: \"x\", W/\"v1\"\r\n",
            "If-Modified-Since: Thu, 01 Jan 2015 00:00:00 GMT\r\n",
        ] {
            let answer = proxy.get("/a", condition).await;
            assert_eq!(answer.status, 304, "{condition}");
            assert_eq!(answer.field("etag"), "\"v1\"");
            assert_eq!(answer.field("x-other"), "");
        }
        assert_eq!(
            proxy.get("/a", "If-None-Match: \"v2\"\r\n").await.status,
            200
        );
        assert_eq!(origin.count(), 1);
        assert_eq!(proxy.outcomes()[1], "hit_ims");
    })
    .await;
}

/// RFC 9111 4.3.2: what the origin has may be another by now.
#[tokio::test]
async fn a_condition_that_what_is_held_does_not_meet_is_for_the_origin_to_judge() {
    local(async {
        let (proxy, origin) = proxy(|head, _| match head.contains("\"v2\"") {
            true => ok("Cache-Control: max-age=60\r\nETag: \"v2\"\r\n", "newer"),
            false if head.contains("if-match") || head.contains("if-unmodified") => {
                "HTTP/1.1 412 Precondition Failed\r\nX-By: origin\r\nContent-Length: 0\r\n\r\n"
                    .to_owned()
            }
            false => ok(TAGGED, "body"),
        })
        .await;
        proxy.get("/a", "").await;
        let newer = proxy.get("/a", "If-Match: \"v2\"\r\n").await;
        assert_eq!((newer.status, newer.text()), (200, "newer"));
        let old = "If-Unmodified-Since: Wed, 31 Dec 2014 00:00:00 GMT\r\n";
        for condition in ["If-Match: \"v3\"\r\n", old] {
            let refused = proxy.get("/a", condition).await;
            assert_eq!((refused.status, refused.field("x-by")), (412, "origin"));
        }
        let barred = "If-Match: \"v2\"\r\nCache-Control: only-if-cached\r\n";
        assert_eq!(proxy.get("/a", barred).await.status, 504);
        assert_eq!(origin.count(), 4);
        // What holds is answered from the cache, as is what says nothing.
        for condition in ["If-Match: \"v1\"\r\n", "If-Match: *\r\n", ""] {
            assert_eq!(proxy.get("/a", condition).await.text(), "body");
        }
        assert_eq!(origin.count(), 4);
    })
    .await;
}

#[tokio::test]
async fn who_follows_a_fetch_has_its_condition_judged_by_the_origin_too() {
    local(async {
        let gate = Rc::new(Notify::new());
        let opens = Rc::clone(&gate);
        let (proxy, origin) = proxy(move |head, _| match head.contains("\"v2\"") {
            true => ok("ETag: \"v2\"\r\n", "newer").into(),
            false => Script {
                text: format!("HTTP/1.1 200 OK\r\n{TAGGED}Content-Length: 3\r\n\r\no"),
                gate: Some(Rc::clone(&opens)),
                rest: "ld".to_owned(),
                close: false,
            },
        })
        .await;
        let before = proxy.clone();
        let first = spawn_local(async move { before.get("/a", "").await });
        while origin.count() < 1 {
            tokio::task::yield_now().await;
        }
        let newer = proxy.get("/a", "If-Match: \"v2\"\r\n").await;
        assert_eq!((newer.status, newer.text()), (200, "newer"));
        gate.notify_one();
        assert_eq!(first.await.unwrap().text(), "old");
    })
    .await;
}

#[tokio::test]
async fn if_unmodified_since_says_nothing_of_what_has_no_last_modified_rfc_9110_13_1_4() {
    local(async {
        let (proxy, origin) = proxy(|_, _| ok("Cache-Control: max-age=60\r\n", "body")).await;
        for _ in 0..2 {
            let old = "If-Unmodified-Since: Wed, 31 Dec 2014 00:00:00 GMT\r\n";
            assert_eq!(proxy.get("/a", old).await.text(), "body");
        }
        assert_eq!(origin.count(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_conditional_miss_fetches_the_whole_and_answers_304_itself() {
    local(async {
        let (proxy, origin) = proxy(|_, _| ok(TAGGED, "body")).await;
        let answer = proxy.get("/a", "If-None-Match: \"v1\"\r\n").await;
        assert_eq!(answer.status, 304);
        assert!(!origin.seen()[0].to_lowercase().contains("if-none-match"));
        assert_eq!(proxy.get("/a", "").await.text(), "body");
        assert_eq!(origin.count(), 1);
    })
    .await;
}

#[tokio::test]
async fn single_ranges_are_cut_from_the_stored_whole() {
    local(async {
        let (proxy, origin) = proxy(|_, _| ok(TAGGED, "0123456789")).await;
        proxy.get("/a", "").await;
        for (range, status, content_range, body) in [
            ("bytes=2-4", 206, "bytes 2-4/10", "234"),
            ("bytes=7-", 206, "bytes 7-9/10", "789"),
            ("bytes=-3", 206, "bytes 7-9/10", "789"),
            ("bytes=0-99", 206, "bytes 0-9/10", "0123456789"),
            ("bytes=10-", 416, "bytes */10", ""),
            ("bytes=0-0,2-3", 206, "bytes 0-3/10", "0123"),
            ("lines=0-0", 200, "", "0123456789"),
        ] {
            let answer = proxy.get("/a", &format!("Range: {range}\r\n")).await;
            assert_eq!((answer.status, answer.text()), (status, body), "{range}");
            assert_eq!(answer.field("content-range"), content_range, "{range}");
        }
        assert_eq!(origin.count(), 1);
    })
    .await;
}

#[tokio::test]
async fn if_range_gives_the_part_of_the_same_and_the_whole_of_another() {
    local(async {
        let (proxy, _) = proxy(|_, _| ok(TAGGED, "0123456789")).await;
        proxy.get("/a", "").await;
        let of = |tag: &str| format!("Range: bytes=0-0\r\nIf-Range: {tag}\r\n");
        assert_eq!(proxy.get("/a", &of("\"v1\"")).await.status, 206);
        assert_eq!(proxy.get("/a", &of("\"v2\"")).await.status, 200);
        assert_eq!(proxy.get("/a", &of("W/\"v1\"")).await.status, 200);
    })
    .await;
}

#[tokio::test]
async fn a_range_of_nothing_held_is_passed_on_and_its_part_never_stored_as_whole() {
    local(async {
        let (proxy, origin) = proxy(|head, _| {
            if head.to_lowercase().contains("range: bytes=0-1") {
                return "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/10\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\n01".to_owned();
            }
            ok(TAGGED, "0123456789")
        })
        .await;
        let part = proxy.get("/a", "Range: bytes=0-1\r\n").await;
        assert_eq!((part.status, part.text()), (206, "01"));
        assert_eq!(proxy.get("/a", "").await.text(), "0123456789");
        assert_eq!(origin.count(), 2);
        assert_eq!(proxy.outcomes(), ["miss_range", "miss_cold"]);
    })
    .await;
}

#[tokio::test]
async fn a_range_of_something_stale_is_cut_from_what_the_origin_confirms_or_sends() {
    local(async {
        for (answer, status, body) in [
            ("HTTP/1.1 304 Not Modified\r\n\r\n".to_owned(), 206, "56"),
            (ok(TAGGED, "abcdefghij"), 206, "fg"),
            (
                "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno".to_owned(),
                404,
                "no",
            ),
        ] {
            let (proxy, _) = proxy(move |_, nth| {
                if nth == 0 {
                    ok(TAGGED, "0123456789")
                } else {
                    answer.clone()
                }
            })
            .await;
            proxy.get("/a", "").await;
            proxy.world.advance(100);
            let answer = proxy.get("/a", "Range: bytes=5-6\r\n").await;
            assert_eq!((answer.status, answer.text()), (status, body));
        }
    })
    .await;
}

/// reported.md: the whole as 200, 200 with five bytes, or 206 of an error.
#[tokio::test]
async fn a_range_of_something_stale_is_a_part_or_the_error_however_the_original_came() {
    local(async {
        const CHUNKED: &str = "Transfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n";
        let error = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nno");
        for framing in ["Content-Length: 10\r\n\r\n0123456789", CHUNKED] {
            for (directive, answer, status, body) in [
                (
                    "max-age=60",
                    "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned(),
                    206,
                    "56789",
                ),
                ("max-age=60", ok(TAGGED, "abcdefghij"), 206, "fghij"),
                ("max-age=60", error("404 Not Found"), 404, "no"),
                ("max-age=60", error("500 Oops"), 206, "56789"),
                ("max-age=60, must-revalidate", error("500 Oops"), 500, "no"),
            ] {
                let first = format!(
                    "HTTP/1.1 200 OK\r\nCache-Control: {directive}\r\nETag: \"v1\"\r\n{framing}"
                );
                let told = answer.clone();
                let script = move |_: &str, nth| {
                    if nth == 0 {
                        first.clone()
                    } else {
                        told.clone()
                    }
                };
                let (proxy, _) = proxy(script).await;
                proxy.get("/a", "").await;
                proxy.world.advance(100);
                let part = proxy.get("/a", "Range: bytes=5-9\r\n").await;
                assert_eq!((part.status, part.text()), (status, body), "{answer}");
                let is_part = part.field("content-range") == "bytes 5-9/10";
                assert_eq!(is_part, status == 206, "{answer}");
            }
        }
    })
    .await;
}
