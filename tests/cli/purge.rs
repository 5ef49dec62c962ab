//! Purging by the URL that a client would ask for, and clearing.

use crate::support::Config;

#[test]
fn a_client_url_goes_through_the_rules_to_its_key() {
    let config = Config::new("");
    let _server = config.start();
    let url = "http://a.example/x?y=1";
    let answer = config.ctl(&["cache", "purge", url, "-f", "json"]).ok();
    let json: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(json["purged"][0]["key"], "http://b.example/x?y=1");
    assert_eq!(json["purged"][0]["found"], false);
    assert_eq!(
        config.ctl(&["cache", "purge", url]).ok(),
        format!("not stored {url} key http://b.example/x?y=1\n")
    );
}

#[test]
fn with_the_client_s_host_kept_the_key_is_the_client_s_url() {
    let pristine = "CONFIG proxy.config.url_remap.pristine_host_hdr INT 1\n";
    let config = Config::new(pristine);
    let _server = config.start();
    let answer = config.ctl(&["cache", "purge", "http://A.example/x"]).ok();
    assert!(answer.ends_with(" key http://a.example/x\n"), "{answer}");
}

#[test]
fn a_url_that_no_rule_takes_purges_nothing() {
    let config = Config::new("");
    let _server = config.start();
    for url in ["http://other.example/", "/x", "ftp://a.example/"] {
        let ran = config.ctl(&["cache", "purge", "http://a.example/x", url]);
        assert_eq!((ran.code(), ran.out().as_str()), (2, ""));
        assert!(ran.err().contains(url), "{}", ran.err());
    }
}

#[test]
fn a_clear_is_of_all_or_of_a_volume_that_there_is() {
    let config = Config::new("");
    config.write("storage.config", "one 64M volume=1\ntwo 64M volume=2\n");
    let _server = config.start();
    assert_eq!(config.ctl(&["cache", "clear"]).ok(), "");
    assert_eq!(config.ctl(&["cache", "clear", "--volume", "2"]).ok(), "");
    let unknown = config.ctl(&["cache", "clear", "--volume", "7"]);
    assert_eq!(unknown.code(), 2);
    let told = "7: there is no such volume; there is 1, 2";
    assert!(unknown.err().contains(told), "{}", unknown.err());
}
