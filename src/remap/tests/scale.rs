//! Tables of many rules.

use super::{table, to};

#[test]
fn thousands_of_hosts_paths_and_patterns_are_all_found() {
    let mut text = String::new();
    for n in 0..400 {
        text.push_str(&format!("map http://h{n}.cn/ http://exact{n}/\n"));
        text.push_str(&format!("map http://one.cn/p{n}/ http://path{n}/\n"));
        text.push_str(&format!(
            "regex_map http://(.*)\\.site{n}\\.com http://site{n}/\n"
        ));
    }
    let table = table(&text);
    assert_eq!(table.len(), 1_200);
    for n in [0, 1, 10, 99, 399] {
        assert_eq!(
            to(&table, &format!("http://h{n}.cn/x")),
            format!("http://exact{n}/x")
        );
        assert_eq!(
            to(&table, &format!("http://one.cn/p{n}/x")),
            format!("http://path{n}/x")
        );
        assert_eq!(
            to(&table, &format!("http://w.site{n}.com/x")),
            format!("http://site{n}/x")
        );
    }
    assert_eq!(to(&table, "http://site1.com.evil/"), "-");
}
