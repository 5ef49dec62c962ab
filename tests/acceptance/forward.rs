//! The forward proxy opens only what the operator opened.

use crate::peers::{Nginx, TlsOrigin};
use crate::site::{Site, run};
use std::fs;

fn forward_site(connect_port: u16, open: bool) -> Site {
    let records = format!(
        "CONFIG proxy.config.url_remap.remap_required INT 0\n\
         CONFIG proxy.config.http.connect_ports STRING {connect_port}\n\
         CONFIG proxy.config.cache.ip_allow.filename STRING ip_allow.yaml\n"
    );
    let mut site = Site::new(&records, "", "");
    let out = if open {
        "  - apply: out\n    ip_addrs: 127.0.0.0/8\n    action: allow\n    methods: ALL\n"
    } else {
        ""
    };
    let rules = format!(
        "ip_allow:\n  - apply: in\n    ip_addrs: 127.0.0.1\n    action: allow\n    methods: ALL\n{out}"
    );
    fs::write(site.path("ip_allow.yaml"), rules).unwrap();
    site.start();
    site
}

/// curl's status code through the proxy: of the answer, or of the CONNECT.
fn through(site: &Site, url: &str) -> String {
    let proxy = format!("http://127.0.0.1:{}", site.port);
    let format = "%{http_connect} %{http_code}";
    let args = [
        "-sk",
        "-o",
        "/dev/null",
        "-m",
        "10",
        "-w",
        format,
        "-x",
        &proxy,
        url,
    ];
    String::from_utf8(run("curl", &args).stdout).unwrap()
}

#[test]
fn an_out_rule_opens_http_and_connect_to_loopback() {
    let (nginx, tls) = (Nginx::start(1000, ""), TlsOrigin::start());
    let site = forward_site(tls.port, true);
    let http_url = format!("http://127.0.0.1:{}/image", nginx.port);
    assert_eq!(through(&site, &http_url), "000 200");
    let tls_url = format!("https://127.0.0.1:{}/", tls.port);
    assert_eq!(through(&site, &tls_url), "200 200");
    let named = format!("https://localhost:{}/", tls.port);
    assert_eq!(through(&site, &named), "200 200");
}

#[test]
fn without_an_out_rule_loopback_is_refused_in_every_spelling() {
    let (nginx, tls) = (Nginx::start(1000, ""), TlsOrigin::start());
    let site = forward_site(tls.port, false);
    for host in [
        "127.0.0.1",
        "localhost",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
        "0.0.0.0",
    ] {
        let http_url = format!("http://{host}:{}/image", nginx.port);
        assert_eq!(through(&site, &http_url), "000 403", "{http_url}");
        let tls_url = format!("https://{host}:{}/", tls.port);
        assert_eq!(through(&site, &tls_url), "403 000", "{tls_url}");
    }
    assert!(nginx.requests().is_empty());
}

#[test]
fn an_out_rule_does_not_open_other_ports_or_our_own_listeners() {
    let tls = TlsOrigin::start();
    let site = forward_site(tls.port, true);
    let other = format!("https://127.0.0.1:{}/", tls.port.wrapping_add(1));
    assert_eq!(through(&site, &other), "403 000");
    for own in [site.admin, site.port] {
        let url = format!("http://127.0.0.1:{own}/metrics");
        assert_eq!(through(&site, &url), "000 403", "{url}");
    }
    let site = forward_site(site.admin, true);
    let admin = format!("https://127.0.0.1:{}/", site.admin);
    assert_eq!(through(&site, &admin), "403 000");
}
