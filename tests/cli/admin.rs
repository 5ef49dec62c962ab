//! The admin listener of a running server.

use crate::support::{Config, get};

#[test]
fn only_local_names_are_answered() {
    let config = Config::new("CONFIG proxy.config.admin.hosts STRING cache.example\n");
    let server = config.start();
    let port = server.admin().port();
    for host in ["localhost", "cache.example", &format!("127.0.0.1:{port}")] {
        let answer = get(server.admin(), "/healthz", host);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{host}: {answer}");
    }
    let answer = get(server.admin(), "/metrics", "evil.example");
    assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
    assert!(!answer.contains("proxy_process"), "{answer}");
}

#[test]
fn metrics_have_the_names_that_dashboards_read() {
    let config = Config::new("");
    let server = config.start();
    let page = get(server.admin(), "/metrics", "localhost");
    for line in [
        "ramhit 0",
        "ssdhit 0",
        "hddhit 0",
        "strata_hit_ratio{tier=\"ram\"} 0",
        "strata_hit_ratio{tier=\"ssd\"} 0",
        "strata_hit_ratio{tier=\"hdd\"} 0",
        "proxy_process_cache_ram_read_success 0",
        "proxy_process_cache_ssd_read_success 0",
        "proxy_process_cache_disk_read_success 0",
        "proxy_process_cache_read_success 0",
    ] {
        assert!(page.lines().any(|l| l == line), "{line}\n{page}");
    }
    let stats = get(server.admin(), "/_stats", "localhost");
    let (_, body) = stats.split_once("\r\n\r\n").unwrap();
    let json: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(json["global"]["proxy.process.cache.read.success"], "0");
}

#[test]
fn a_ready_server_says_so() {
    let config = Config::new("");
    let server = config.start();
    let answer = get(server.admin(), "/readyz", "localhost");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}
