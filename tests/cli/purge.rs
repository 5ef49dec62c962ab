//! Purging by the URL that a client would ask for.

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
