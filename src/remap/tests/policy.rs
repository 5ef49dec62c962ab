//! Who may use the proxy, and where a client may send it.

use crate::config::ip_allow::{IpAllowFile, parse};
use crate::remap::{Client, ForwardPolicy, IpAllow, Refusal};
use std::net::SocketAddr;

fn ip_allow(yaml: &str) -> IpAllow {
    let (file, findings) = parse("ip_allow.yaml", format!("ip_allow:\n{yaml}").as_bytes());
    assert_eq!(findings.errors, []);
    IpAllow::new(&file)
}

fn out(ranges: &str, action: &str) -> String {
    format!("  - {{apply: out, ip_addrs: [{ranges}], action: {action}}}\n")
}

fn client<'m>(address: &str, method: &'m str) -> Client<'m> {
    Client::new(address.parse().unwrap(), method)
}

fn refusal(rules: &IpAllow, target: &str) -> Option<Refusal> {
    let own: [SocketAddr; 3] =
        ["0.0.0.0:8080", "127.0.0.1:8083", "[::]:8443"].map(|own| own.parse().unwrap());
    rules.refuses_address(target.parse().unwrap(), "GET", &own)
}

fn refused(rules: &IpAllow, target: &str) -> bool {
    refusal(rules, target).is_some()
}

#[test]
fn without_a_file_only_loopback_may_purge_and_push() {
    let rules = IpAllow::default();
    for (address, method, allowed) in [
        ("127.0.0.1", "PURGE", true),
        ("::1", "PUSH", true),
        ("::ffff:127.0.0.1", "PURGE", true),
        ("10.0.0.1", "GET", true),
        ("10.0.0.1", "PURGE", false),
        ("2001:db8::1", "PUSH", false),
        ("10.0.0.1", "DELETE", true),
    ] {
        let client = client(address, method);
        assert_eq!(rules.allows_client(&client), allowed, "{address} {method}");
    }
}

#[test]
fn a_relayed_purge_push_or_forwarded_request_matches_no_loopback_rule() {
    let rules = IpAllow::default();
    let loopback = |method| client("127.0.0.1", method);
    assert!(!rules.allows_client(&loopback("PURGE").relayed(true, false)));
    assert!(!rules.allows_client(&loopback("PUSH").relayed(true, false)));
    assert!(rules.allows_client(&loopback("PURGE").relayed(false, false)));
    assert!(rules.allows_client(&loopback("GET").relayed(true, true)));
    let forward = ForwardPolicy::parse("127.0.0.0/8 ::1").unwrap();
    assert!(forward.allows(&loopback("GET").relayed(false, true)));
    assert!(!forward.allows(&loopback("GET").relayed(true, true)));
    assert!(!forward.allows(&client("::1", "CONNECT").relayed(true, true)));
}

#[test]
fn only_clients_of_forward_allow_choose_the_origin() {
    let forward = ForwardPolicy::parse("10.0.0.0/8, ::1").unwrap();
    for (address, allowed) in [
        ("10.1.1.1", true),
        ("::ffff:10.1.1.1", true),
        ("11.0.0.1", false),
    ] {
        assert_eq!(
            forward.allows(&client(address, "GET")),
            allowed,
            "{address}"
        );
    }
    assert!(
        !ForwardPolicy::parse("")
            .unwrap()
            .allows(&client("127.0.0.1", "GET"))
    );
    assert_eq!(ForwardPolicy::parse("10.0.0.0/8 x y").unwrap_err().len(), 2);
}

#[test]
fn the_first_rule_that_covers_a_client_decides_and_no_rule_denies() {
    let rules = ip_allow(
        "  - {apply: in, ip_addrs: 10.0.0.1, action: deny, methods: POST}\n  \
           - {apply: in, ip_addrs: 10.0.0.0/8, action: allow, methods: [POST, HEAD]}\n",
    );
    for (address, method, allowed) in [
        ("10.0.0.1", "POST", false),
        ("10.0.0.1", "GET", true),
        ("10.0.0.2", "POST", true),
        ("10.0.0.2", "GET", false),
        ("11.0.0.1", "GET", false),
        ("::1", "GET", false),
    ] {
        let client = client(address, method);
        assert_eq!(rules.allows_client(&client), allowed, "{address} {method}");
    }
    let covered = ["10.9.9.9", "11.0.0.1"].map(|a| rules.covers(a.parse().unwrap()));
    assert_eq!(covered, [true, false]);
}

#[test]
fn without_out_rules_reserved_addresses_are_refused_and_others_are_not() {
    let rules = IpAllow::default();
    for target in [
        "127.0.0.1:443",
        "[::1]:443",
        "0.0.0.0:443",
        "[::]:443",
        "169.254.169.254:80",
        "[fe80::1]:80",
        "224.0.0.1:80",
        "[ff02::1]:80",
        "[::ffff:127.0.0.1]:443",
        "[::ffff:169.254.169.254]:80",
        "[64:ff9b::7f00:1]:80",
    ] {
        assert!(refused(&rules, target), "{target}");
    }
    for target in [
        "93.184.216.34:80",
        "10.0.0.1:80",
        "[2001:db8::1]:443",
        "[::ffff:10.0.0.1]:80",
    ] {
        assert_eq!(refusal(&rules, target), None, "{target}");
    }
}

#[test]
fn an_out_rule_for_a_reserved_block_opens_it_and_nothing_else() {
    let rules = ip_allow(&out("127.0.0.0/8", "allow"));
    assert_eq!(refusal(&rules, "127.0.0.1:443"), None);
    for target in ["[::1]:443", "169.254.169.254:80", "[::ffff:127.0.0.1]:443"] {
        assert!(refused(&rules, target), "{target}");
    }
    let mapped = ip_allow(&out("'::ffff:127.0.0.0/104'", "allow"));
    assert_eq!(refusal(&mapped, "[::ffff:127.0.0.1]:443"), None);
}

#[test]
fn a_rule_for_everything_opens_no_reserved_block() {
    let everything = out("0/0, '::/0'", "allow");
    let rules = ip_allow(&everything);
    assert!(refused(&rules, "127.0.0.1:443") && refused(&rules, "[::1]:443"));
    assert_eq!(refusal(&rules, "10.0.0.1:443"), None);
    let then_loopback = ip_allow(&(everything + &out("127.0.0.1", "allow")));
    assert_eq!(refusal(&then_loopback, "127.0.0.1:443"), None);
    assert!(refused(&then_loopback, "127.0.0.2:443"));
}

#[test]
fn our_own_listeners_are_refused_whatever_the_rules_say() {
    let rules = ip_allow(&out("127.0.0.0/8, '::1', 0.0.0.0/8", "allow"));
    for target in [
        "127.0.0.1:8080",
        "127.9.9.9:8080",
        "0.0.0.0:8080",
        "[::1]:8080",
        "127.0.0.1:8083",
        "[::ffff:127.0.0.1]:8083",
        "[::1]:8443",
        "127.0.0.1:8443",
    ] {
        let refusal = refusal(&rules, target);
        assert!(
            matches!(refusal, Some(Refusal::OwnListener(_))),
            "{target} {refusal:?}"
        );
    }
    assert_eq!(refusal(&rules, "127.0.0.2:8083"), None);
    assert_eq!(refusal(&IpAllow::default(), "10.0.0.1:8080"), None);
}

#[test]
fn out_rules_deny_by_first_match_in_either_form_of_an_address() {
    let rules = ip_allow(&(out("10.0.0.1", "allow") + &out("10.0.0.0/8", "deny")));
    assert_eq!(refusal(&rules, "10.0.0.1:80"), None);
    for target in ["10.0.0.2:80", "[::ffff:10.0.0.2]:80"] {
        let refusal = refusal(&rules, target).unwrap().to_string();
        assert!(refusal.contains("ip_allow.yaml:3:5"), "{refusal}");
    }
    assert_eq!(refusal(&rules, "11.0.0.1:80"), None);
}

#[test]
fn out_rules_judge_the_method() {
    let yaml = "  - {apply: out, ip_addrs: 10.0.0.0/8, action: deny, methods: [PUSH]}\n";
    let rules = ip_allow(yaml);
    let target = "10.0.0.1:80".parse().unwrap();
    assert!(rules.refuses_address(target, "PUSH", &[]).is_some());
    assert_eq!(rules.refuses_address(target, "GET", &[]), None);
}

#[test]
fn a_deny_rule_for_reserved_addresses_opens_nothing() {
    let yaml = "  - {apply: out, ip_addrs: 127.0.0.1, action: deny, methods: [PUSH]}\n";
    assert!(refused(&ip_allow(yaml), "127.0.0.1:443"));
}

#[test]
fn in_rules_say_nothing_about_origins() {
    let file = IpAllowFile::built_in();
    assert!(refused(&IpAllow::new(&file), "127.0.0.1:443"));
}
