//! Devices that die, are replaced, or were away for a while.

use crate::http;
use crate::loop_device::LoopDevice;
use crate::peers::{Jtest, Nginx};
use crate::site::{Site, free_port};
use crate::until::until;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;

const DOCUMENTS: u32 = 600;
const DEVICE_BYTES: u64 = 64 << 20;
const NAMES: [&str; 4] = ["one", "two", "three", "four"];

fn spans(site: &Site) -> Vec<Value> {
    let list = site.ctl_ok(&["storage", "list", "-f", "json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    list["spans"].as_array().unwrap().clone()
}

fn span(site: &Site, name: &str) -> Value {
    let path = site.path(name);
    let mut spans = spans(site).into_iter();
    spans
        .find(|span| span["path"] == path.to_str().unwrap())
        .unwrap()
}

fn put_in(site: &Site, name: &str, device: &LoopDevice) {
    drop(fs::remove_file(site.path(name)));
    symlink(device.path(), site.path(name)).unwrap();
}

/// The control file of the faults: this span is dead from now on.
fn kill_device(site: &Site, name: &str) {
    let line = format!("{} dead\n", site.path(name).display());
    fs::write(site.path("faults"), line).unwrap();
}

#[test]
#[cfg_attr(
    not(all(feature = "devices", feature = "faults")),
    ignore = "needs root and loop devices: cargo test --features devices,faults"
)]
fn a_device_that_dies_under_load_costs_its_own_hits_only_until_it_is_replaced() {
    let mut devices = NAMES.map(|_| LoopDevice::zeroed(DEVICE_BYTES));
    let mut jtest = Jtest {
        origin: free_port(),
        documents: DOCUMENTS,
    };
    let mut site = Site::new(
        "CONFIG proxy.config.cache.ram_cache_cutoff INT 40\n",
        &format!(
            "map http://127.0.0.1:{0}/ http://127.0.0.1:{0}\n",
            jtest.origin
        ),
        &NAMES.map(|name| format!("{name} tier=capacity\n")).concat(),
    );
    for (name, device) in NAMES.iter().zip(&devices) {
        put_in(&site, name, device);
    }
    fs::write(site.path("faults"), "").unwrap();
    site.start();
    assert_eq!(jtest.sweep(&site, true).fetches, u64::from(DOCUMENTS));
    jtest.sweep(&site, false);
    let on_it = span(&site, "three")["entries_used"].as_u64().unwrap();

    let asked = || site.metric("proxy.process.http.incoming_requests");
    let before = asked();
    let loaded = std::thread::scope(|scope| {
        let load = ["-c", "200", "--requests", "20000"];
        let site = &site;
        let load = scope.spawn(move || jtest.run(site, &load));
        until("load", || asked() > before + 2000);
        kill_device(site, "three");
        load.join().unwrap()
    });
    assert_eq!(span(&site, "three")["state"], "offline");
    // What is fetched again was on it, or was written to it as it died.
    let fetched = loaded.fetches + jtest.sweep(&site, true).fetches;
    assert!(fetched > 0 && fetched <= 2 * on_it, "{fetched} of {on_it}");
    jtest.sweep(&site, false);

    assert!(site.stop().success());
    site.start();
    assert_eq!(span(&site, "three")["state"], "refused");
    jtest.sweep(&site, false);

    devices[2] = LoopDevice::zeroed(DEVICE_BYTES);
    put_in(&site, "three", &devices[2]);
    fs::write(site.path("faults"), "").unwrap();
    site.ctl_ok(&["storage", "online", "three"]);
    until("a span online", || {
        span(&site, "three")["state"] == "online"
    });
    // Nothing of what the others hold is lost by its coming.
    jtest.sweep(&site, false);
    jtest.documents = DOCUMENTS * 2;
    jtest.sweep(&site, true);
    let before = site.reads();
    jtest.sweep(&site, false);
    assert_eq!(site.reads().since(before).disk, u64::from(2 * DOCUMENTS));
    let grown = span(&site, "three")["entries_used"].as_u64().unwrap();
    assert!(grown > u64::from(DOCUMENTS) / 8, "{grown}");
}

/// The sizes of all answers, each of which must be whole.
fn sizes(site: &Site, urls: &[String]) -> Vec<usize> {
    let get = |path: &String| http::get(site.port, path).unwrap();
    let answers = urls.iter().map(get);
    answers
        .map(|answer| {
            assert_eq!(answer.status, 200, "{}", answer.head);
            answer.body.len()
        })
        .collect()
}

#[test]
fn what_a_span_missed_while_it_was_away_is_asked_of_the_origin() {
    let nginx = Nginx::start(1000, "expires 1h;");
    let mut site = Site::new(
        "CONFIG proxy.config.cache.ram_cache_cutoff INT 40\n",
        &format!("map / http://127.0.0.1:{}/\n", nginx.port),
        "one 64M tier=capacity\ntwo 64M tier=capacity\n",
    );
    site.start();
    let paths: Vec<String> = (0..24).map(|n| format!("/image?{n}")).collect();
    assert_eq!(sizes(&site, &paths), [1000; 24]);
    assert_eq!(sizes(&site, &paths), [1000; 24]);
    let fetched = nginx.requests().len();
    assert_eq!(fetched, 24, "the second time all are hits");

    site.ctl_ok(&["storage", "offline", "two"]);
    nginx.replace_image(2000);
    let urls: Vec<String> = paths.iter().map(|path| site.url(path)).collect();
    let mut purge = vec!["cache", "purge"];
    purge.extend(urls.iter().map(String::as_str));
    site.ctl_ok(&purge);
    // Some are stored anew while it is away, some are not.
    assert_eq!(sizes(&site, &paths[..6]), [2000; 6]);
    site.ctl_ok(&["storage", "online", "two"]);
    until("a span that was read", || {
        span(&site, "two")["state"] == "suspect"
    });
    assert_eq!(sizes(&site, &paths), [2000; 24]);
    assert_eq!(sizes(&site, &paths), [2000; 24]);

    assert!(site.stop().success());
    nginx.replace_image(3000);
    fs::remove_dir_all(site.path("var")).unwrap();
    site.start();
    assert_eq!(sizes(&site, &paths), [3000; 24], "the state is lost");
    let fetched = nginx.requests().len();
    assert_eq!(sizes(&site, &paths), [3000; 24]);
    assert_eq!(nginx.requests().len(), fetched, "hits again");
}

/// The control file of the faults: this span blocks who waits for it.
fn block_device(site: &Site, name: &str) {
    let line = format!("{} stuck\n", site.path(name).display());
    fs::write(site.path("faults"), line).unwrap();
}

#[test]
#[cfg_attr(
    not(feature = "faults"),
    ignore = "needs a device that fails as told: cargo test --features faults"
)]
fn a_device_that_blocks_its_threads_holds_up_no_start_no_command_and_no_stop() {
    let nginx = Nginx::start(1000, "expires 1h;");
    let mut site = Site::new(
        "CONFIG proxy.config.cache.ram_cache_cutoff INT 40\n\
         CONFIG proxy.config.strata.cache.io_timeout INT 1\n",
        &format!("map / http://127.0.0.1:{}/\n", nginx.port),
        "one 64M tier=capacity\ntwo 64M tier=capacity\n",
    );
    let paths: Vec<String> = (0..24).map(|n| format!("/image?{n}")).collect();
    block_device(&site, "one");
    site.start();
    let one = span(&site, "one");
    assert_eq!(one["state"], "refused", "{one}");
    assert_eq!(sizes(&site, &paths), [1000; 24]);

    fs::write(site.path("faults"), "").unwrap();
    until("a device that is let go", || {
        site.ctl(&["storage", "online", "one"]).status.success()
    });
    site.ctl_ok(&["cache", "clear"]);
    for _ in 0..2 {
        assert_eq!(sizes(&site, &paths), [1000; 24]);
    }
    // What waits to be written is served from memory: a start has nothing there.
    assert!(site.stop().success());
    site.start();
    block_device(&site, "one");
    until("a span offline", || {
        assert_eq!(sizes(&site, &paths), [1000; 24]);
        span(&site, "one")["state"] == "offline"
    });
    assert!(!site.ctl(&["storage", "online", "one"]).status.success());
    assert_eq!(sizes(&site, &paths), [1000; 24]);
    assert!(site.stop().success());
}
