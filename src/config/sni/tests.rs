//! Entries in both forms, good and bad.

use super::*;

fn errors(file: &str, text: &str) -> Vec<String> {
    let (_, found) = parse(file, text.as_bytes());
    found.errors.iter().map(ToString::to_string).collect()
}

fn warnings(text: &str) -> Vec<String> {
    let (_, found) = parse("sni.toml", text.as_bytes());
    assert_eq!(found.errors, [], "{text}");
    found.warnings.iter().map(ToString::to_string).collect()
}

const TOML: &str = r#"
[[sni]]
fqdn = "A.example"
verify_client = "STRICT"
verify_client_ca_certs = "clients.pem"
valid_tls_versions_in = ["TLSv1_3"]
http2 = "off"
host_sni_policy = "PERMISSIVE"
ip_allow = ["10.0.0.0/8", "::1"]

[[sni]]
fqdn = "*.b.example"
tunnel_route = "$1.backend:8443"
verify_server_policy = "DISABLED"
verify_server_properties = "ALL"
client_cert = "own.pem"
client_key = "own.key"
"#;

const YAML: &str = "
sni:
- fqdn: A.example
  verify_client: STRICT
  verify_client_ca_certs: {file: clients.pem}
  valid_tls_versions_in: [TLSv1_3]
  disable_h2: true
  host_sni_policy: PERMISSIVE
  ip_allow: 10.0.0.0/8,::1
- fqdn: '*.b.example'
  tunnel_route: $1.backend:8443
  verify_server_policy: DISABLED
  verify_server_properties: ALL
  client_cert: own.pem
  client_key: own.key
";

#[test]
fn both_forms_say_the_same() {
    let read = |file: &str, text: &str| {
        let (file, found) = parse(file, text.as_bytes());
        assert_eq!(found, Findings::default());
        file.entries
    };
    for entries in [read("sni.toml", TOML), read("sni.yaml", YAML)] {
        let [a, b] = entries.as_slice() else {
            panic!("{entries:?}")
        };
        assert_eq!(a.name.text(), "a.example");
        assert_eq!(a.verify_client, Some(ClientCheck::Strict));
        assert_eq!(a.client_authorities.as_ref().unwrap().1, "clients.pem");
        assert_eq!(a.versions.as_deref(), Some(&[TlsVersion::V1_3][..]));
        assert_eq!(a.http2, Some(false));
        assert_eq!(a.host_policy, Some(Policy::Permissive));
        assert_eq!(a.clients.as_ref().map(Vec::len), Some(2));
        let route = b.tunnel.as_ref().unwrap();
        assert_eq!((route.host(&["x"]), route.port), ("x.backend".into(), 8443));
        assert_eq!(b.verify_server, Some(Policy::Disabled));
        assert_eq!(b.certificate.as_ref().unwrap().1, "own.pem");
        assert_eq!(b.key.as_deref(), Some("own.key"));
    }
}

#[test]
fn a_file_without_entries_says_nothing() {
    for (file, text) in [
        ("sni.toml", "# none\n"),
        ("sni.yaml", "# none\n"),
        ("sni.yaml", "sni:\n"),
        ("sni.toml", "sni = []\n"),
    ] {
        let read = parse(file, text.as_bytes());
        assert_eq!(read, (SniFile::default(), Findings::default()), "{text}");
    }
}

#[test]
fn every_fault_is_told_at_once_with_its_place() {
    let text = r#"
[[sni]]
fqdn = "a b"
verify_clinet = "STRICT"
[[sni]]
fqdn = "a"
verify_client = "MAYBE"
ip_allow = ["10.0.0.0/33"]
valid_tls_versions_in = ["TLSv1_4"]
tunnel_route = "$1"
forward_route = "b"
[[sni]]
http2 = "on"
[more]
"#;
    let expected = [
        "sni.toml:4:1: unknown field (at \"verify_clinet\"); did you mean verify_client?",
        "sni.toml:3:8: no host name of 1 to 253 characters (at \"a b\")",
        "sni.toml:11:1: forward_route is not supported yet (at \"forward_route\")",
        "sni.toml:9:26: no version of TLS (at \"TLSv1_4\"); did you mean TLSv1_2?",
        "sni.toml:9:25: no version is left to speak; list TLSv1_2, TLSv1_3 or both",
        "sni.toml:7:17: none of NONE, MODERATE, STRICT (at \"MAYBE\")",
        "sni.toml:8:13: prefix length \"33\" is no number from 0 to 32 (at \"10.0.0.0/33\")",
        "sni.toml:8:12: ip_allow holds no address",
        "sni.toml:10:16: $1 is none of the name's 0 * (at \"$1\")",
        "sni.toml:12:1: the entry has no fqdn",
    ];
    let said = errors("sni.toml", text);
    assert_eq!(said[0], "sni.toml:14:2: unknown key (at \"more\")");
    assert_eq!(said[1..], expected);
    let said = errors("sni.yaml", "sni:\n- fqdn: a\n  fqdn: b\n");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(errors("sni.yaml", "sni: {fqdn: a}\n")[0].contains("no list"));
}

#[test]
fn what_has_no_effect_is_warned_of_by_name() {
    let said = warnings(
        "[[sni]]\nfqdn = \"a\"\nhttp2_buffer_water_mark = 1\n\
         [[sni]]\nfqdn = \"A\"\nclient_key = \"k\"\nverify_client_ca_certs = \"c\"\n\
         valid_tls_versions_in = [\"TLSv1_1\", \"TLSv1_2\"]\n\
         [[sni]]\nfqdn = \"t\"\ntunnel_route = \"b\"\nverify_client = \"STRICT\"\n",
    );
    let about: Vec<_> = said
        .iter()
        .map(|text| text.split(": ").next().unwrap())
        .collect();
    let places = ["3:1", "8:26", "6:14", "7:26", "12:17", "4:1"];
    assert_eq!(about, places.map(|at| format!("sni.toml:{at}")), "{said:?}");
}
