//! What is passed on, and what stays on its connection.

use super::super::testing::{Origin, Proxy, World, local, ok};
use crate::config::records::Records;
use crate::metrics::Metric;

#[tokio::test]
async fn a_post_goes_through_with_its_body_and_comes_back_chunked() {
    local(async {
        let origin = Origin::start(|_, _| {
            "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-Kept: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n"
        })
        .await;
        let proxy = Proxy::new(&World::new(Records::default()), origin.port);
        let answer = proxy.ask("POST", "/x", "Content-Length: 0\r\n").await;
        assert_eq!((answer.status, answer.text()), (201, "ok"));
        assert!(answer.is_whole);
        assert_eq!(answer.field("x-kept"), "2");
        assert_eq!(answer.field("x-hop"), "");
        assert_eq!(answer.field("cache-status"), "strata; fwd=method");
        assert_eq!(answer.field("via"), "1.1 edge (Strata)");
        assert!(origin.seen()[0].starts_with("POST /x HTTP/1.1\r\n"));
        assert_eq!(proxy.outcomes(), ["miss_method"]);
    })
    .await;
}

#[tokio::test]
async fn a_response_that_breaks_off_is_cut_not_ended() {
    local(async {
        let origin = Origin::start(|_, _| super::super::testing::Script {
            close: true,
            ..ok("", "whole").replace("whole", "wh").into()
        })
        .await;
        let proxy = Proxy::new(&World::new(Records::default()), origin.port);
        let answer = proxy.ask("POST", "/x", "Content-Length: 0\r\n").await;
        assert!(!answer.is_whole);
        assert_eq!(proxy.outcomes(), ["origin_closed"]);
    })
    .await;
}

#[tokio::test]
async fn an_origin_that_is_not_there_is_a_502() {
    local(async {
        let proxy = Proxy::new(&World::new(Records::default()), 1);
        let answer = proxy.ask("DELETE", "/x", "").await;
        assert_eq!(answer.status, 502);
        assert_eq!(proxy.outcomes(), ["origin_connect"]);
        assert_eq!(proxy.get("/x", "").await.status, 502);
        assert_eq!(proxy.world.count(Metric::OutcomeOriginConnect), 2);
    })
    .await;
}

#[tokio::test]
async fn interim_responses_come_before_the_final_one() {
    local(async {
        let origin = Origin::start(|_, _| {
            format!(
                "HTTP/1.1 103 Early Hints\r\nLink: </s>\r\nKeep-Alive: x\r\n\r\n{}",
                ok("", "x")
            )
        })
        .await;
        let proxy = Proxy::new(&World::new(Records::default()), origin.port);
        let mut client = proxy.client();
        client.send("OPTIONS /x HTTP/1.1\r\nHost: a\r\n\r\n").await;
        let (status, fields) = client.head().await;
        assert_eq!(status, 103);
        assert_eq!(fields["link"], "</s>");
        assert!(!fields.contains_key("keep-alive"));
        assert_eq!(client.answer("OPTIONS").await.text(), "x");
    })
    .await;
}
