//! Responses that vary.

use super::{proxy, with};
use crate::config::records::Records;
use crate::proxy::testing::{local, ok};

/// Answers with the value of X-Lang.
fn by_lang(head: &str, _: usize) -> String {
    let lines = head.lines().filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("x-lang").then_some(value)
    });
    let value = lines.collect::<Vec<_>>().join("+");
    ok("Cache-Control: max-age=60\r\nVary: X-Lang\r\n", &value)
}

#[tokio::test]
async fn each_selection_has_its_alternate() {
    local(async {
        let (proxy, origin) = proxy(by_lang).await;
        for _ in 0..2 {
            for lang in ["de", "fr", ""] {
                let fields = format!("X-Lang: {lang}\r\n");
                assert_eq!(proxy.get("/a", &fields).await.text(), lang);
            }
            assert_eq!(proxy.get("/a", "").await.text(), "");
        }
        assert_eq!(origin.count(), 4);
        let last = proxy.get("/a", "X-Lang: it\r\n").await;
        assert_eq!(last.field("cache-status"), "strata; fwd=vary-miss; stored");
    })
    .await;
}

#[tokio::test]
async fn lines_of_a_selecting_field_are_combined() {
    local(async {
        let (proxy, origin) = proxy(by_lang).await;
        proxy.get("/a", "X-Lang: de\r\nX-Lang: fr\r\n").await;
        assert_eq!(proxy.get("/a", "X-Lang: de\r\n").await.text(), "de");
        proxy.get("/a", "X-Lang: de, fr\r\n").await;
        assert_eq!(origin.count(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_star_on_any_line_is_never_reused() {
    local(async {
        let fields = "Cache-Control: max-age=60\r\nVary:\r\nVary: *\r\n";
        let (proxy, origin) = proxy(move |_, _| ok(fields, "x")).await;
        proxy.get("/a", "").await;
        proxy.get("/a", "").await;
        assert_eq!(origin.count(), 2);
        assert_eq!(proxy.outcomes()[0], "uncacheable_vary");
    })
    .await;
}

#[tokio::test]
async fn a_purge_takes_every_alternate() {
    local(async {
        let (proxy, origin) = proxy(by_lang).await;
        for lang in ["de", "fr"] {
            proxy.get("/a", &format!("X-Lang: {lang}\r\n")).await;
        }
        assert_eq!(proxy.ask("PURGE", "/a", "").await.status, 200);
        assert_eq!(proxy.ask("PURGE", "/a", "").await.status, 404);
        for lang in ["de", "fr"] {
            proxy.get("/a", &format!("X-Lang: {lang}\r\n")).await;
        }
        assert_eq!(origin.count(), 4);
    })
    .await;
}

/// reported.md: `Accept-Encoding` of junk must not miss for ever.
#[tokio::test]
async fn junk_in_accept_encoding_means_identity() {
    local(async {
        let records = Records {
            http_normalize_ae: 1,
            ..Records::default()
        };
        let fields = "Cache-Control: max-age=60\r\nVary: Accept-Encoding\r\n";
        let (proxy, origin) = with(records, move |_, _| ok(fields, "x")).await;
        proxy.get("/a", "").await;
        for junk in [",;q=", "\u{7f}".trim_matches('\u{7f}'), &"x".repeat(8000)] {
            proxy
                .get("/a", &format!("Accept-Encoding: {junk}\r\n"))
                .await;
        }
        // An empty field differs from none (RFC 9110 12.5.3) only where it is
        // not brought into its normal form.
        assert_eq!(origin.count(), 1);
    })
    .await;
}
