//! The file of the cache rules: named by a record, read by a reload.

use crate::support::Config;

#[test]
fn cache_rules_are_read_from_the_file_that_the_record_names() {
    let name = "CONFIG proxy.config.cache.control.filename STRING rules.config\n";
    let config = Config::new(name);
    config.write("cache.config", "nothing of this is read\n");
    config.write("rules.config", "dest_domain=a ttl-in-cache=soon\n");
    let told = "rules.config:1:28: this is no time (at \"soon\")";
    let said = config.start_fails(&[]);
    assert!(said.contains(told), "{said}");
    config.write("rules.config", "dest_domain=a ttl-in-cache=1d\n");
    let _server = config.start();
    config.write("rules.config", "dest_domain=a ttl-in-cache=soon\n");
    let refused = config.ctl(&["config", "reload"]);
    assert!(refused.err().contains(told), "{}", refused.err());
    config.write("rules.config", "dest_domain=a ttl-in-cache=2d\n");
    let answer = config.ctl(&["config", "reload"]).ok();
    assert!(answer.contains("in force: rules.config\n"), "{answer}");
}
