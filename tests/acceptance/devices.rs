//! Raw devices: kept through restarts, and never taken from others.

use crate::http;
use crate::loop_device::LoopDevice;
use crate::peers::Jtest;
use crate::site::{Site, bytes, free_port, quiet};
use crate::until::until;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const DOCUMENTS: u32 = 300;
const DEVICE_BYTES: u64 = 256 << 20;

fn device_site(device: &LoopDevice, origin: u16) -> Site {
    Site::new(
        "CONFIG proxy.config.cache.ram_cache_cutoff INT 40\n",
        &format!("map http://127.0.0.1:{origin}/ http://127.0.0.1:{origin}\n"),
        &format!("{} tier=fast\n", device.path().display()),
    )
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn a_raw_device_keeps_all_through_stop_kill_and_renumbering() {
    let device = LoopDevice::zeroed(DEVICE_BYTES);
    let jtest = Jtest {
        origin: free_port(),
        documents: DOCUMENTS,
    };
    let mut site = device_site(&device, jtest.origin);
    site.start();
    assert_eq!(jtest.sweep(&site, true).fetches, u64::from(DOCUMENTS));
    assert!(site.stop().success());
    site.start();
    jtest.sweep(&site, false);
    assert_eq!(site.reads().ssd, u64::from(DOCUMENTS));
    quiet(Duration::from_secs(2));
    site.kill();
    site.start();
    jtest.sweep(&site, false);
    assert!(site.stop().success());
    let device = device.renumbered();
    fs::write(
        site.path("storage.config"),
        format!("{} tier=fast\n", device.path().display()),
    )
    .unwrap();
    site.start();
    jtest.sweep(&site, false);
    assert_eq!(site.reads().ssd, u64::from(DOCUMENTS));
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn a_device_with_a_file_system_is_refused_by_name_and_left_as_it_was() {
    let device = LoopDevice::zeroed(64 << 20);
    device.make_ext4();
    let before = bytes(&device.backing());
    let mut site = Site::new("", "", &format!("{}\n", device.path().display()));
    site.spawn();
    let admin = site.admin;
    until("a 503 that says why", || {
        http::get(admin, "/readyz").is_ok_and(|a| a.status == 503 && a.text().contains("ext4"))
    });
    let log = site.log();
    assert!(
        log.contains("ext4") && log.contains(device.path().to_str().unwrap()),
        "{log}"
    );
    assert!(log.contains("storage init"), "names the cure: {log}");
    assert!(site.stop().success());
    assert!(
        bytes(&device.backing()) == before,
        "the device was written to"
    );
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn spans_of_another_owner_are_told_with_what_cures_them() {
    let device = LoopDevice::zeroed(64 << 20);
    let storage = format!("file\n{}\n", device.path().display());
    let site = Site::new("", "", &storage);
    fs::write(site.path("file"), [0; 4096]).unwrap();
    fs::set_permissions(site.path("file"), Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(site.path("."), Permissions::from_mode(0o755)).unwrap();
    let ran = site.server_as(65_534, &["-C", "verify_config"]);
    assert!(!ran.status.success());
    let told = String::from_utf8(ran.stderr).unwrap();
    let (file, device) = (site.path("file"), device.path());
    for cure in [
        format!("{}: EACCES", file.display()),
        format!("chown nobody {}, and let nobody", file.display()),
        format!("{}: EACCES", device.display()),
        format!("chown nobody {}, and for good a line", device.display()),
        "61-strata.rules".to_owned(),
    ] {
        assert!(told.contains(&cure), "no {cure:?} in {told}");
    }
}
