//! Many requests for one thing.

use super::proxy;
use crate::config::records::Records;
use crate::proxy::testing::{Origin, Proxy, Script, World, local, ok};
use std::rc::Rc;
use tokio::sync::Notify;
use tokio::task::spawn_local;

/// Starts `count` requests, and gives their answers when all have come.
async fn together(proxy: &Proxy, count: usize, fields: &str) -> Vec<crate::proxy::testing::Answer> {
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            let (proxy, fields) = (proxy.clone(), fields.to_owned());
            spawn_local(async move { proxy.get("/a", &fields).await })
        })
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

fn gated(text: String, gate: &Rc<Notify>) -> Script {
    Script {
        text: String::new(),
        gate: Some(Rc::clone(gate)),
        rest: text,
        close: false,
    }
}

/// Lets every task run until nothing more happens without the gate.
async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
}

#[tokio::test]
async fn one_fetch_serves_all_who_wait() {
    local(async {
        let gate = Rc::new(Notify::new());
        let held = Rc::clone(&gate);
        let (proxy, origin) =
            proxy(move |_, _| gated(ok("Cache-Control: max-age=60\r\n", "body"), &held)).await;
        let waiting = {
            let proxy = proxy.clone();
            spawn_local(async move { together(&proxy, 50, "").await })
        };
        settle().await;
        gate.notify_one();
        let answers = waiting.await.unwrap();
        assert!(answers.iter().all(|answer| answer.text() == "body"));
        assert_eq!(origin.count(), 1);
        let outcomes = proxy.outcomes();
        let shared = outcomes.iter().filter(|outcome| **outcome == "hit_rww");
        assert_eq!(shared.count(), 49);
        let collapsed = answers
            .iter()
            .filter(|answer| answer.field("cache-status") == "strata; fwd=uri-miss; collapsed");
        assert_eq!(collapsed.count(), 49);
    })
    .await;
}

#[test]
fn one_fetch_serves_several_threads() {
    let world = World::new(Records::default());
    let (port_to, port_from) = std::sync::mpsc::channel();
    let (done_to, done_from) = tokio::sync::oneshot::channel::<()>();
    let origin = std::thread::spawn(move || {
        run(async move {
            let origin = Origin::start(|_, _| ok("Cache-Control: max-age=60\r\n", "body")).await;
            port_to.send(origin.port).unwrap();
            done_from.await.ok();
            origin.count()
        })
    });
    let port = port_from.recv().unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let shared = world.clone();
            std::thread::spawn(move || {
                run(async move {
                    let proxy = Proxy::new(&shared, port);
                    let answers = together(&proxy, 10, "").await;
                    assert!(answers.iter().all(|answer| answer.text() == "body"));
                    // The pump of the fill may still run when its clients have
                    // all they asked for.
                    while !shared.shared.fills.is_empty() {
                        tokio::task::yield_now().await;
                    }
                })
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    done_to.send(()).unwrap();
    assert_eq!(origin.join().unwrap(), 1);
}

fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(local(test))
}

#[tokio::test]
async fn uncacheable_releases_all_at_once_and_is_remembered() {
    local(async {
        let gate = Rc::new(Notify::new());
        let held = Rc::clone(&gate);
        let (proxy, origin) = proxy(move |_, nth| {
            let text = ok("Cache-Control: no-store\r\n", &nth.to_string());
            if nth == 0 {
                gated(text, &held)
            } else {
                text.into()
            }
        })
        .await;
        let waiting = {
            let proxy = proxy.clone();
            spawn_local(async move { together(&proxy, 20, "").await })
        };
        settle().await;
        assert_eq!(origin.count(), 1);
        gate.notify_one();
        assert_eq!(waiting.await.unwrap().len(), 20);
        assert_eq!(origin.count(), 20);
        proxy.get("/a", "").await;
        assert_eq!(proxy.outcomes().last(), Some(&"uncacheable_remembered"));
    })
    .await;
}

#[tokio::test]
async fn who_may_not_share_gets_a_response_of_his_own() {
    local(async {
        let gate = Rc::new(Notify::new());
        let held = Rc::clone(&gate);
        let (proxy, origin) = proxy(move |head, nth| {
            let lang = if head.contains("x-lang: fr") {
                "fr"
            } else {
                "de"
            };
            let text = ok("Cache-Control: max-age=60\r\nVary: X-Lang\r\n", lang);
            if nth == 0 {
                gated(text, &held)
            } else {
                text.into()
            }
        })
        .await;
        let ask = |fields: &'static str| {
            let proxy = proxy.clone();
            spawn_local(async move { proxy.get("/a", fields).await })
        };
        let first = ask("X-Lang: de\r\n");
        settle().await;
        let (same, other) = (ask("X-Lang: de\r\n"), ask("X-Lang: fr\r\n"));
        settle().await;
        gate.notify_one();
        assert_eq!(first.await.unwrap().text(), "de");
        assert_eq!(same.await.unwrap().text(), "de");
        assert_eq!(other.await.unwrap().text(), "fr");
        assert_eq!(origin.count(), 2);
    })
    .await;
}

#[tokio::test]
async fn each_alternate_of_a_cold_key_is_fetched_once_and_all_are_kept() {
    local(async {
        let gate = Rc::new(Notify::new());
        let held = Rc::clone(&gate);
        let (proxy, origin) = proxy(move |head, nth| {
            let lang = head.split("x-lang: ").nth(1).unwrap().get(..2).unwrap();
            let text = ok("Cache-Control: max-age=60\r\nVary: X-Lang\r\n", lang);
            if nth == 0 {
                gated(text, &held)
            } else {
                text.into()
            }
        })
        .await;
        let ask = |lang: &'static str| {
            let proxy = proxy.clone();
            spawn_local(async move {
                let answer = proxy.get("/a", &format!("X-Lang: {lang}\r\n")).await;
                assert_eq!(answer.text(), lang);
            })
        };
        let first = ask("de");
        settle().await;
        let others: Vec<_> = ["fr", "de", "it"]
            .iter()
            .cycle()
            .take(30)
            .map(|lang| ask(lang))
            .collect();
        settle().await;
        gate.notify_one();
        first.await.unwrap();
        for other in others {
            other.await.unwrap();
        }
        assert_eq!(origin.count(), 3);
        for lang in ["fr", "de", "it"] {
            ask(lang).await.unwrap();
        }
        assert_eq!(origin.count(), 3, "all are stored");
    })
    .await;
}

#[tokio::test]
async fn all_who_wait_for_an_origin_that_breaks_off_are_cut() {
    local(async {
        let gate = Rc::new(Notify::new());
        let held = Rc::clone(&gate);
        let (proxy, _) = proxy(move |_, _| Script {
            text: "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 10\r\n\r\nhalf"
                .to_owned(),
            gate: Some(Rc::clone(&held)),
            rest: String::new(),
            close: true,
        })
        .await;
        let waiting = {
            let proxy = proxy.clone();
            spawn_local(async move { together(&proxy, 10, "").await })
        };
        settle().await;
        gate.notify_one();
        for answer in waiting.await.unwrap() {
            assert!(!answer.is_whole);
        }
    })
    .await;
}

#[tokio::test]
async fn one_validation_serves_all_who_wait() {
    local(async {
        let gate = Rc::new(Notify::new());
        let held = Rc::clone(&gate);
        let (proxy, origin) = proxy(move |_, nth| {
            if nth == 0 {
                return ok("Cache-Control: max-age=0\r\nETag: \"v\"\r\n", "body").into();
            }
            gated(
                "HTTP/1.1 304 Not Modified\r\nETag: \"v\"\r\n\r\n".to_owned(),
                &held,
            )
        })
        .await;
        proxy.get("/a", "").await;
        let waiting = {
            let proxy = proxy.clone();
            spawn_local(async move { together(&proxy, 10, "").await })
        };
        settle().await;
        gate.notify_one();
        assert!(
            waiting
                .await
                .unwrap()
                .iter()
                .all(|answer| answer.text() == "body")
        );
        assert_eq!(origin.count(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_fill_goes_on_when_its_client_leaves() {
    local(async {
        let gate = Rc::new(Notify::new());
        let held = Rc::clone(&gate);
        let (proxy, origin) = proxy(move |_, _| Script {
            text: "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 8\r\n\r\nhalf"
                .to_owned(),
            gate: Some(Rc::clone(&held)),
            rest: "full".to_owned(),
            close: false,
        })
        .await;
        let mut client = proxy.client();
        client.send("GET /a HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
        client.head().await;
        drop(client);
        settle().await;
        gate.notify_one();
        while !proxy.world.shared.fills.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(proxy.get("/a", "").await.text(), "halffull");
        assert_eq!(origin.count(), 1);
    })
    .await;
}
