//! What `etc/` gives to the system: the systemd unit and the udev rule, and
//! the packages that bring them.

use crate::http;
use crate::loop_device::LoopDevice;
use crate::site::{Site, run};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

fn shipped(name: &str) -> String {
    fs::read_to_string(etc().join(name)).unwrap()
}

fn etc() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("etc")
}

/// The unit with the programs of this build in the place of `/usr/bin`'s.
fn unit_of_this_build() -> String {
    shipped("systemd/strata.service")
        .replace(
            "/usr/bin/traffic_server",
            env!("CARGO_BIN_EXE_traffic_server"),
        )
        .replace("/usr/bin/traffic_line", env!("CARGO_BIN_EXE_traffic_line"))
}

#[test]
fn systemd_takes_the_unit_without_a_word() {
    let dir = tempfile::tempdir().unwrap();
    let unit = dir.path().join("strata.service");
    let unit = unit.to_str().unwrap();
    let verify = |text: String| {
        fs::write(unit, text).unwrap();
        String::from_utf8(run("systemd-analyze", &["verify", unit]).stderr).unwrap()
    };
    let of_ours = |said: String| said.lines().any(|line| line.contains("strata.service"));
    assert_eq!(verify(unit_of_this_build()), "");
    let misspelt = unit_of_this_build().replace("TimeoutStopSec", "TimeoutStopsSec");
    assert!(of_ours(verify(misspelt)), "verify finds nothing at all");
}

#[test]
fn the_unit_stops_the_server_by_the_signal_it_drains_at_and_keeps_its_state() {
    let unit = shipped("systemd/strata.service");
    for line in [
        "KillSignal=SIGTERM",
        "Environment=PROXY_CONFIG_LOCAL_STATE_DIR=/var/lib/strata",
        "StateDirectory=strata",
    ] {
        assert!(unit.lines().any(|found| found == line), "{line}");
    }
}

/// As the unit starts it: root binds and opens, and then is nobody for good.
#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn a_server_that_root_starts_serves_from_a_raw_device_as_the_records_user() {
    let device = LoopDevice::zeroed(64 << 20);
    let demo = "map /demo/ http://generator.invalid/ @plugin=generator.so\n";
    let storage = format!("{} tier=fast\n", device.path().display());
    let user = "CONFIG proxy.config.admin.user_id STRING nobody\n";
    let mut site = Site::new(user, demo, &storage);
    fs::set_permissions(site.path("."), Permissions::from_mode(0o755)).unwrap();
    site.start();
    let nobody = 65_534;
    for name in ["Uid:", "Gid:"] {
        let ids = site.status_line(name);
        let ids: Vec<u32> = ids.split_whitespace().flat_map(str::parse).collect();
        assert_eq!(ids, [nobody; 4], "{name}");
    }
    let groups = site.status_line("Groups:");
    assert!(
        groups.split_whitespace().all(|group| group != "0"),
        "{groups}"
    );
    assert_eq!(fs::metadata(site.path("var")).unwrap().uid(), nobody);
    assert_eq!(http::get(site.port, "/demo/15000/a").unwrap().status, 200);
    assert!(site.stop().success());
    site.start();
    let hit = http::get(site.port, "/demo/15000/a").unwrap();
    let detail = hit.field("cache-status").unwrap_or("");
    assert!(detail.ends_with("; detail=ssd"), "{}", hit.head);
}

/// udev reads its rules in the order of their names, and what names a disk
/// for good (ID_SERIAL) is found out by 60-persistent-storage.rules.
#[test]
fn the_rule_of_udev_is_read_once_the_serial_of_a_disk_is_known() {
    let dir = fs::read_dir(etc().join("udev")).unwrap();
    let names: Vec<String> = dir
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(!names.is_empty());
    for name in names {
        assert!(name.as_str() > "60-persistent-storage.rules", "{name}");
        let text = shipped(&format!("udev/{name}"));
        assert!(text.contains("ENV{ID_SERIAL}=="), "{name}: {text}");
    }
}
