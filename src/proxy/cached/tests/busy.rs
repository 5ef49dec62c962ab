//! Requests for what another one fetches, by record.

use super::with;
use crate::config::records::Records;
use crate::proxy::testing::{Script, local, ok};
use std::rc::Rc;
use tokio::sync::Notify;

const OLD: &str = "Cache-Control: max-age=10\r\nETag: \"v\"\r\n";

/// What the second of two requests got: status and body; how often the origin
/// was asked before the first was answered.
async fn second(records: Records, held: Option<&'static str>) -> (u16, String, usize) {
    let gate = Rc::new(Notify::new());
    let shut = Rc::clone(&gate);
    let stored = usize::from(held.is_some());
    let (proxy, origin) = with(records, move |_, nth| match (held, nth) {
        (Some(fields), 0) => ok(fields, "old").into(),
        _ if nth == stored => Script {
            gate: Some(Rc::clone(&shut)),
            rest: ok("Cache-Control: max-age=60\r\n", "first"),
            ..Script::from("")
        },
        _ => ok("Cache-Control: max-age=60\r\n", "own").into(),
    })
    .await;
    if held.is_some() {
        proxy.get("/a", "").await;
        proxy.world.advance(20);
    }
    let behind = async {
        while origin.count() == stored {
            tokio::task::yield_now().await;
        }
        let opens = async {
            // Who follows has nothing until the first is answered.
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            gate.notify_one();
        };
        let (answer, ()) = tokio::join!(proxy.get("/a", ""), opens);
        (
            answer.status,
            answer.text().to_owned(),
            origin.count() - stored,
        )
    };
    let (first, answer) = tokio::join!(proxy.get("/a", ""), behind);
    assert_eq!(first.text(), "first");
    answer
}

#[tokio::test]
async fn who_comes_behind_another_does_what_open_write_fail_action_says() {
    local(async {
        const FORBIDS: &str = "Cache-Control: max-age=10, must-revalidate\r\nETag: \"v\"\r\n";
        let rows = [
            (0, None, 200, "own"),
            (1, None, 502, ""),
            (1, Some(OLD), 200, "own"),
            (2, None, 200, "own"),
            (2, Some(OLD), 200, "old"),
            (2, Some(FORBIDS), 200, "own"),
            (3, None, 502, ""),
            (3, Some(OLD), 200, "old"),
            (4, Some(OLD), 502, ""),
            (5, None, 200, "first"),
            (5, Some(OLD), 200, "first"),
            (6, Some(OLD), 200, "old"),
            (6, Some(FORBIDS), 200, "first"),
        ];
        for (action, held, status, body) in rows {
            let records = Records {
                http_cache_open_write_fail_action: action,
                http_cache_max_open_write_retries: 0,
                ..Records::default()
            };
            let fetches = if body == "own" { 2 } else { 1 };
            let expected = (status, body.to_owned(), fetches);
            assert_eq!(
                Box::pin(second(records, held)).await,
                expected,
                "{action} {held:?}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn who_may_not_follow_waits_for_the_other_s_end_as_long_as_the_records_say() {
    local(async {
        for (action, retries, status, body) in [
            (0, 0, 200, "own"),
            (0, 10_000, 200, "first"),
            (1, 0, 502, ""),
            (1, 10_000, 200, "first"),
            (4, 10_000, 200, "first"),
        ] {
            let records = Records {
                http_cache_open_write_fail_action: action,
                http_cache_max_open_write_retries: retries,
                ..Records::default()
            };
            let (got, text, _) = Box::pin(second(records, None)).await;
            assert_eq!((got, text.as_str()), (status, body), "{action} {retries}");
        }
    })
    .await;
}

#[tokio::test]
async fn who_waits_for_another_waits_no_longer_than_the_records_say() {
    local(async {
        let gate = Rc::new(Notify::new());
        let shut = Rc::clone(&gate);
        let records = Records {
            http_cache_max_open_read_retries: 5,
            http_cache_open_read_retry_time: 10,
            ..Records::default()
        };
        let (proxy, origin) = with(records, move |_, nth| {
            if nth == 0 {
                return Script {
                    gate: Some(Rc::clone(&shut)),
                    rest: ok("Cache-Control: max-age=60\r\n", "first"),
                    ..Script::from("")
                };
            }
            ok("Cache-Control: max-age=60\r\n", "own").into()
        })
        .await;
        let behind = async {
            while origin.count() == 0 {
                tokio::task::yield_now().await;
            }
            let began = tokio::time::Instant::now();
            let answer = proxy.get("/a", "").await;
            assert!(began.elapsed().as_millis() >= 50);
            gate.notify_one();
            answer
        };
        let (first, second) = tokio::join!(proxy.get("/a", ""), behind);
        assert_eq!((first.text(), second.text()), ("first", "own"));
        assert_eq!(proxy.get("/a", "").await.text(), "first");
    })
    .await;
}
