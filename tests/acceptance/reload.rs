//! `traffic_line -x` is all or nothing.

use crate::http;
use crate::site::Site;
use std::fmt::Write as _;
use std::fs;

const DEMO: &str = "http://generator.invalid/ @plugin=generator.so";

#[test]
fn one_bad_line_among_ten_thousand_changes_nothing_and_is_named() {
    let mut site = Site::new("", &format!("map /old/ {DEMO}\n"), "");
    site.start();
    assert_eq!(http::get(site.port, "/old/10/a").unwrap().status, 200);
    let mut rules = format!("map /new/ {DEMO}\n");
    for rule in 0..9_999 {
        let kind = if rule == 7_000 { "mpa" } else { "map" };
        writeln!(rules, "{kind} http://h{rule}.test/ http://127.0.0.1:1/").unwrap();
    }
    fs::write(site.path("remap.config"), &rules).unwrap();
    let refused = site.line(&["-x"]);
    assert!(!refused.status.success());
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("remap.config:7002:1:"), "{said}");
    assert!(said.contains("mpa"), "{said}");
    assert_eq!(http::get(site.port, "/old/10/a").unwrap().status, 200);
    assert_eq!(http::get(site.port, "/new/10/a").unwrap().status, 404);
    fs::write(site.path("remap.config"), rules.replace("mpa", "map")).unwrap();
    site.line_ok(&["-x"]);
    assert_eq!(http::get(site.port, "/new/10/a").unwrap().status, 200);
    assert_eq!(http::get(site.port, "/old/10/a").unwrap().status, 404);
}

#[test]
fn a_record_set_by_the_command_line_holds_at_once_and_in_the_file() {
    let records = "# how long\nCONFIG proxy.config.http.insert_age_in_response INT 1 # seconds\n";
    let mut site = Site::new(records, &format!("map /demo/ {DEMO}\n"), "");
    site.start();
    let age = |site: &Site| {
        http::get(site.port, "/demo/10/a").unwrap();
        let hit = http::get(site.port, "/demo/10/a").unwrap();
        hit.field("age").map(str::to_owned)
    };
    assert!(age(&site).is_some());
    let name = "proxy.config.http.insert_age_in_response";
    site.line_ok(&["-s", name, "-v", "0"]);
    assert_eq!(site.line_ok(&["-r", name]), "0\n");
    assert_eq!(age(&site), None);
    let text = fs::read_to_string(site.path("records.config")).unwrap();
    assert!(text.contains("# how long\n"), "{text}");
    assert!(text.contains("insert_age_in_response INT 0"), "{text}");
}
