//! Input of odd size and shape.

use super::super::parse;
use super::{error, errors, no_include, parsed, rule, warnings};
use proptest::prelude::*;

#[test]
fn a_syntax_error_at_line_28500_of_30000_is_found_there() {
    let mut text = String::new();
    for n in 1..=30_000 {
        if n == 28_500 {
            text.push_str("map http://bad host.cn/ http://o.cn/\n");
        } else {
            text.push_str(&format!("map http://h{n}.cn/ http://o{n}.cn/\n"));
        }
    }
    let (file, findings) = parsed(&text);
    assert_eq!(file.rules.len(), 29_999);
    assert_eq!(findings.errors.len(), 1);
    let error = findings.errors[0].to_string();
    assert!(
        error.starts_with("remap.config:28500:16: TO has no scheme"),
        "{error}"
    );
}

#[test]
fn a_line_of_a_megabyte_is_read_or_refused_in_short_words() {
    let long = "x".repeat(1 << 20);
    assert_eq!(
        rule(&format!("map http://a.cn/{long} http://o/y/"))
            .from
            .path
            .len(),
        1 << 20
    );
    let error = error(&format!("map http://{long}/ http://o/"));
    assert!(
        error.len() < 300 && error.starts_with("1:12:"),
        "{}",
        error.len()
    );
    let options = "@method=GET ".repeat(80_000);
    assert_eq!(
        rule(&format!("map /a http://o/ {options}")).filters[0]
            .methods
            .len(),
        80_000
    );
    let words = "w ".repeat(1 << 19);
    assert_eq!(errors(&words).len(), 1);
}

#[test]
fn glued_paths_are_warned_about() {
    let warned = warnings("map http://d.cn/deep/ http://o/deep");
    assert_eq!(warned.len(), 1);
    assert!(warned[0].contains("http://o/deep/"), "{warned:?}");
    assert_eq!(warnings("redirect /a http://o/ @method=GET").len(), 1);
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(text in prop::collection::vec(any::<u8>(), 0..400)) {
        let (file, _) = parse("f", &text, &no_include);
        prop_assert!(file.rules.len() <= text.len());
    }

    #[test]
    fn no_text_of_the_grammars_letters_makes_it_panic(
        text in "([ \t\r\n\\\\#@.:/$()\\[\\]*?~=é0-9a-z]|map |regex_map |http://|@src_ip=|\\.include |\\.usefilter ){0,60}"
    ) {
        let (file, findings) = parse("f", text.as_bytes(), &no_include);
        prop_assert!(file.rules.len() + findings.errors.len() <= 2 * text.len());
    }
}
