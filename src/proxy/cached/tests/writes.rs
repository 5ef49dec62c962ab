//! How a hit is written: in one call, of bytes that are not copied.

use super::proxy;
use crate::proxy::h1::recorder::{Part, Writes};
use crate::proxy::testing::{Proxy, local, ok, request};

/// The writes of one more request for `/a`.
async fn writes(proxy: &Proxy) -> Vec<Vec<Part>> {
    let writes = Writes::default();
    let mut client = proxy.client_recorded(&writes);
    client.send(&request("GET", "/a", "")).await;
    let answer = client.answer("GET").await;
    assert!(answer.is_whole);
    writes.take()
}

#[tokio::test]
async fn a_ram_hit_is_one_write_of_dynamic_fields_stored_fields_and_body() {
    local(async {
        let body = "0123456789".repeat(20_000);
        let answer = ok("Cache-Control: max-age=60\r\nX-Kept: 1\r\n", &body);
        let (proxy, origin) = proxy(move |_, _| answer.clone()).await;
        proxy.get("/a", "").await;
        let (first, second) = (writes(&proxy).await, writes(&proxy).await);
        assert_eq!(proxy.outcomes(), ["miss_cold", "hit_ram", "hit_ram"]);
        assert_eq!(origin.count(), 1);
        let ([first], [second]) = (&*first, &*second) else {
            panic!("{} and {} writes", first.len(), second.len());
        };
        let [dynamic, stored, end, body_part] = &**first else {
            panic!("{} parts", first.len());
        };
        assert!(dynamic.text.starts_with("HTTP/1.1 200 OK\r\n"));
        assert!(dynamic.text.contains("\r\nAge: 0\r\n"), "{dynamic:?}");
        assert!(!dynamic.text.contains("X-Kept"), "{dynamic:?}");
        assert!(stored.text.contains("X-Kept: 1\r\n"), "{stored:?}");
        assert!(!stored.text.contains("Age:"), "{stored:?}");
        assert_eq!(end.text, "\r\n");
        assert!(body_part.text == body, "another body");
        // The cache's own memory goes out, not a copy made for one client.
        assert_eq!((stored, body_part), (&second[1], &second[3]));
    })
    .await;
}
