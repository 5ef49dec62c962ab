//! The `@` options of rules.

use super::super::{Action, Plugin, Source};
use super::{error, parsed, rule, warnings};

#[test]
fn options_are_read_in_written_order() {
    let (file, found) = parsed(
        "map /demo/ http://o/ tag @plugin=generator.so @pparam=a @pparam=b=c \
         @action=deny @method=get @method=BAKE @src_ip=~10.0.0.0/8 @src_ip=::1",
    );
    assert_eq!(found.errors, []);
    let rule = &file.rules[0];
    assert_eq!(rule.tag.as_deref(), Some("tag"));
    assert_eq!(rule.plugins[0].plugin, Plugin::Generator);
    assert_eq!(rule.plugins[0].params, ["a", "b=c"]);
    let filter = &rule.filters[0];
    assert_eq!(filter.action, Action::Deny);
    assert_eq!(filter.methods, ["GET", "BAKE"]);
    let shown = |s: &Source| (s.range.to_string(), s.inverted);
    let sources: Vec<_> = filter.sources.iter().map(shown).collect();
    let expected = [("10.0.0.0-10.255.255.255", true), ("::1", false)];
    assert_eq!(sources, expected.map(|(r, i)| (r.to_owned(), i)));
}

#[test]
fn parameters_of_a_plugin_that_takes_none_are_warned_of() {
    let rule = "map /demo/ http://o/ @plugin=generator.so";
    assert_eq!(warnings(rule), [""; 0]);
    let said = warnings(&format!("{rule} @pparam=delay=5 @pparam=x"));
    assert_eq!(
        said,
        [
            "remap.config:1:22: generator.so takes no @pparam: it has no effect \
          (at \"delay=5\"); write options in the path: /SIZE/delay=200/NAME"
        ]
    );
}

#[test]
fn actions_have_aliases_and_default_to_allow() {
    let action = |option: &str| rule(&format!("map /a http://o {option}")).filters[0].action;
    for allow in ["allow", "1", "on", "enable", "ALLOW"] {
        assert_eq!(
            action(&format!("@action={allow}")),
            Action::Allow,
            "{allow}"
        );
    }
    for deny in ["deny", "0", "off", "disable"] {
        assert_eq!(action(&format!("@action={deny}")), Action::Deny, "{deny}");
    }
    assert_eq!(action("@method=GET"), Action::Allow);
}

#[test]
fn wrong_options_are_named_at_their_place() {
    let bad = |option: &str| error(&format!("map /a http://o {option}"));
    assert_eq!(
        bad("@methd=GET"),
        "1:17: unknown option (at \"@methd=GET\"); did you mean method?"
    );
    assert_eq!(
        bad("@src_ip=10.0.0.300"),
        "1:25: \"10.0.0.300\" is no IPv4 or IPv6 address (at \"10.0.0.300\")"
    );
    assert!(bad("@src_ip=~10.0.0.0/40").starts_with("1:26: prefix length \"40\""));
    assert_eq!(
        bad("@action=dney"),
        "1:25: unknown action (at \"dney\"); did you mean deny?"
    );
    assert!(bad("@plugin=header_rewrite.so").contains("unknown plugin"));
    assert!(bad("@plugin=genrator.so").contains("did you mean generator.so?"));
    assert!(bad("@pparam=x").contains("before any @plugin"));
    assert!(bad("@method=").contains("@method has no value"));
    assert!(bad("@method=a/b").contains("no method"));
}

#[test]
fn overrides_of_records_are_read_and_named_at_their_place_when_wrong() {
    let rule = "map /a http://o/ @plugin=conf_remap.so";
    let help = "write @pparam=NAME=VALUE behind it";
    let said = warnings(rule);
    assert!(said[0].ends_with(help), "{said:?}");
    let with = |param: &str| format!("{rule} @pparam=proxy.config.{param}");
    let (file, found) = parsed(&with("http.insert_client_ip=0"));
    assert_eq!(found, crate::config::Findings::default());
    let records = crate::config::records::Records::default();
    let ruled = records.overridden(&file.rules[0].overrides);
    assert_eq!(ruled.http_insert_client_ip, 0);
    assert_eq!(
        error(&with("http.insert_client_ip=7")),
        "1:48: proxy.config.http.insert_client_ip: 7 is outside its range: 0 to 2 \
         (at \"proxy.config.http.insert_client_ip=7\")"
    );
    let said = warnings(&with("http.keep_alive_enabled_in=0"));
    assert!(said[0].contains("1:48: proxy.config.http.keep_alive_enabled_in holds before"));
}
