//! Filters of rules: who gets 403.

use super::{Found, table, url};
use crate::remap::Client;

fn passes(options: &str, client: Client<'_>) -> bool {
    let table = table(&format!("map /x http://o/ {options}"));
    match table.find(&url("http://a.cn/x")) {
        Found::Map { rule, .. } => rule.refused_by(&client).is_none(),
        Found::Redirect { .. } | Found::None => false,
    }
}

fn client<'m>(address: &str, method: &'m str) -> Client<'m> {
    Client::new(address.parse().unwrap(), method)
}

#[test]
fn an_allow_filter_refuses_whom_it_does_not_match() {
    let options = "@action=allow @src_ip=10.0.0.0/8 @method=GET @method=HEAD";
    assert!(passes(options, client("10.1.1.1", "GET")));
    assert!(passes(options, client("10.1.1.1", "HEAD")));
    assert!(!passes(options, client("10.1.1.1", "POST")));
    assert!(!passes(options, client("11.1.1.1", "GET")));
}

#[test]
fn a_deny_filter_lets_pass_whom_it_does_not_match() {
    let options = "@action=deny @src_ip=10.0.0.0/8 @method=PURGE";
    assert!(!passes(options, client("10.1.1.1", "PURGE")));
    assert!(passes(options, client("10.1.1.1", "GET")));
    assert!(passes(options, client("11.1.1.1", "PURGE")));
}

#[test]
fn an_inverted_source_takes_those_outside() {
    let options = "@action=deny @src_ip=~10.0.0.0/8";
    assert!(passes(options, client("10.1.1.1", "GET")));
    assert!(!passes(options, client("11.1.1.1", "GET")));
}

#[test]
fn one_of_several_sources_is_enough_and_families_do_not_mix() {
    let options = "@action=allow @src_ip=10.0.0.1-10.0.0.9 @src_ip=::1";
    for (address, passed) in [
        ("10.0.0.9", true),
        ("::1", true),
        ("::ffff:10.0.0.9", true),
        ("10.0.0.10", false),
        ("::2", false),
    ] {
        assert_eq!(passes(options, client(address, "GET")), passed, "{address}");
    }
}

#[test]
fn every_active_filter_must_let_the_client_pass() {
    let table = table(
        ".definefilter net @action=allow @src_ip=10.0.0.0/8\n.activatefilter net\n\
         map /x http://o/ @action=deny @method=POST",
    );
    let Found::Map { rule, .. } = table.find(&url("http://a.cn/x")) else {
        panic!("the rule takes it");
    };
    let refused = |address, method| {
        let by = rule.refused_by(&client(address, method));
        by.map(|filter| filter.name.clone().unwrap_or_default())
    };
    assert_eq!(refused("10.0.0.1", "GET"), None);
    assert_eq!(refused("11.0.0.1", "GET"), Some("net".into()));
    assert_eq!(refused("10.0.0.1", "POST"), Some("".into()));
}

#[test]
fn a_relayed_purge_gains_nothing_from_a_loopback_address() {
    let loopback = "@action=allow @src_ip=127.0.0.1 @src_ip=::1";
    let purge = client("127.0.0.1", "PURGE");
    assert!(passes(loopback, purge));
    assert!(!passes(loopback, purge.relayed(true, false)));
    let get = client("127.0.0.1", "GET");
    assert!(passes(loopback, get.relayed(true, false)));
    assert!(!passes(loopback, get.relayed(true, true)));
    assert!(passes(loopback, get.relayed(false, true)));
}

#[test]
fn a_relayed_purge_is_refused_by_rules_against_either_view_of_it() {
    let purge = client("127.0.0.1", "PURGE").relayed(true, false);
    assert!(!passes("@action=deny @src_ip=127.0.0.1", purge));
    assert!(!passes("@action=deny @src_ip=~127.0.0.1", purge));
    assert!(passes("@action=allow @src_ip=0.0.0.0/0", purge));
    assert!(passes("@action=allow @method=PURGE", purge));
}
