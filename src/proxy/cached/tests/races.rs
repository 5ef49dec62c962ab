//! Responses that come in another order than they were asked for, and what
//! invalidates them on their way.

use super::{obedient, proxy, with};
use crate::proxy::testing::{Answer, Origin, Proxy, Script, local, ok};
use std::rc::Rc;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, spawn_local};

const FRESH: &str = "Cache-Control: max-age=60\r\n";

/// The head and a first byte at once, the rest when the gate opens.
fn slow(fields: &str, gate: &Rc<Notify>) -> Script {
    Script {
        text: format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 3\r\n\r\no"),
        gate: Some(Rc::clone(gate)),
        rest: "ld".to_owned(),
        close: false,
    }
}

fn begun(proxy: &Proxy, fields: &'static str) -> JoinHandle<Answer> {
    let proxy = proxy.clone();
    spawn_local(async move { proxy.get("/a", fields).await })
}

async fn asked(origin: &Origin, count: usize) {
    while origin.count() < count {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    // Its answer is on its way.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
}

async fn idle(proxy: &Proxy) {
    while !proxy.world.shared.fills.is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_older_response_never_takes_the_place_of_one_asked_for_later() {
    local(async {
        for vary in ["", "Vary: X-A\r\n"] {
            let gate = Rc::new(Notify::new());
            let opens = Rc::clone(&gate);
            let fields = format!("{FRESH}{vary}");
            let (proxy, origin) = with(obedient(), move |_, nth| match nth {
                0 => slow(&fields, &opens),
                _ => ok(&fields, "new").into(),
            })
            .await;
            let first = begun(&proxy, "X-A: 1\r\n");
            asked(&origin, 1).await;
            proxy.world.advance(1);
            let again = "X-A: 1\r\nCache-Control: no-cache\r\n";
            assert_eq!(proxy.get("/a", again).await.text(), "new");
            gate.notify_one();
            assert_eq!(first.await.unwrap().text(), "old", "its own client gets it");
            idle(&proxy).await;
            let hit = proxy.get("/a", "X-A: 1\r\n").await;
            assert_eq!((hit.text(), origin.count()), ("new", 2), "{vary}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_older_response_never_takes_the_place_of_one_confirmed_later() {
    local(async {
        for method in ["GET", "HEAD"] {
            let gate = Rc::new(Notify::new());
            let opens = Rc::clone(&gate);
            let tagged = format!("{FRESH}ETag: \"e\"\r\n");
            let (proxy, origin) = with(obedient(), move |_, nth| match nth {
                0 => ok(&tagged, "held").into(),
                1 => slow(FRESH, &opens),
                _ => format!("HTTP/1.1 304 Not Modified\r\n{tagged}\r\n").into(),
            })
            .await;
            assert_eq!(proxy.get("/a", "").await.text(), "held");
            let first = begun(&proxy, "Cache-Control: no-cache\r\n");
            asked(&origin, 2).await;
            let confirmed = proxy.ask(method, "/a", "Cache-Control: no-cache\r\n");
            assert_eq!(confirmed.await.status, 200);
            gate.notify_one();
            assert_eq!(first.await.unwrap().text(), "old");
            idle(&proxy).await;
            let hit = proxy.get("/a", "").await;
            assert_eq!((hit.text(), origin.count()), ("held", 3), "{method}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_newer_response_takes_the_place_of_an_older_one_and_of_another_alternate_none() {
    local(async {
        let gate = Rc::new(Notify::new());
        let opens = Rc::clone(&gate);
        let (proxy, origin) = with(obedient(), move |head, nth| {
            let fields = format!("{FRESH}Vary: X-A\r\n");
            match nth {
                0 => slow(&fields, &opens),
                _ if head.to_lowercase().contains("x-a: 2") => ok(&fields, "two").into(),
                _ => ok(&fields, "new").into(),
            }
        })
        .await;
        let first = begun(&proxy, "X-A: 1\r\n");
        asked(&origin, 1).await;
        assert_eq!(proxy.get("/a", "X-A: 2\r\n").await.text(), "two");
        gate.notify_one();
        assert_eq!(first.await.unwrap().text(), "old");
        idle(&proxy).await;
        for (fields, text) in [("X-A: 1\r\n", "old"), ("X-A: 2\r\n", "two")] {
            assert_eq!(proxy.get("/a", fields).await.text(), text);
        }
        assert_eq!(origin.count(), 2);
        let anew = "X-A: 1\r\nCache-Control: no-cache\r\n";
        assert_eq!(proxy.get("/a", anew).await.text(), "new");
        assert_eq!(proxy.get("/a", "X-A: 1\r\n").await.text(), "new");
    })
    .await;
}

#[tokio::test]
async fn nobody_follows_a_fetch_that_an_unsafe_method_has_overtaken() {
    local(async {
        for named in ["", "Location: /a\r\n"] {
            let gate = Rc::new(Notify::new());
            let opens = Rc::clone(&gate);
            let (proxy, origin) = proxy(move |head, nth| match (head.starts_with("POST"), nth) {
                (true, _) => format!("HTTP/1.1 204 No Content\r\n{named}\r\n").into(),
                (false, 0) => slow(FRESH, &opens),
                (false, _) => ok(FRESH, "new").into(),
            })
            .await;
            let first = begun(&proxy, "");
            asked(&origin, 1).await;
            let path = if named.is_empty() { "/a" } else { "/b" };
            proxy.ask("POST", path, "Content-Length: 0\r\n").await;
            assert_eq!(proxy.get("/a", "").await.text(), "new", "{named}");
            gate.notify_one();
            assert_eq!(first.await.unwrap().text(), "old");
            idle(&proxy).await;
            assert_eq!(proxy.get("/a", "").await.text(), "new", "{named}");
            assert_eq!(origin.count(), 3);
        }
    })
    .await;
}
