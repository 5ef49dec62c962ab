//! A partition as a span: nothing outside it is touched, and the disk around
//! it is left to its owner.

use crate::http;
use crate::loop_device::{LoopDevice, Mount, make_ext4};
use crate::peers::Jtest;
use crate::site::{Site, bytes, free_port};
use crate::until::until;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

const DOCUMENTS: u32 = 300;
const PARTITION_BYTES: u64 = 64 << 20;
/// Where the first partition begins, as sfdisk has it.
const FIRST: usize = 1 << 20;

/// What lies before the first partition, and behind it: the table, the other
/// partition, the table's copy.
fn around_first(device: &LoopDevice) -> (Vec<u8>, Vec<u8>) {
    let mut before = bytes(&device.backing());
    let mut first = before.split_off(FIRST);
    let behind = first.split_off(usize::try_from(PARTITION_BYTES).unwrap());
    assert_eq!(&before[512..520], b"EFI PART");
    assert_eq!(&behind[behind.len() - 512..][..8], b"EFI PART");
    (before, behind)
}

/// A disk with somebody's file system in its second partition.
fn shared_disk() -> LoopDevice {
    let device = LoopDevice::in_two(PARTITION_BYTES);
    make_ext4(&device.partition(2));
    device
}

fn site(spans: &[&Path], origin: u16) -> Site {
    let lines: Vec<String> = spans
        .iter()
        .map(|path| format!("{} tier=fast\n", path.display()))
        .collect();
    Site::new(
        "CONFIG proxy.config.cache.ram_cache_cutoff INT 40\n",
        &format!("map http://127.0.0.1:{origin}/ http://127.0.0.1:{origin}\n"),
        &lines.concat(),
    )
}

fn verified(site: &Site) -> Output {
    site.server(&["-C", "verify_config"])
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn a_partition_is_a_span_and_nothing_around_it_changes() {
    let device = shared_disk();
    let around = around_first(&device);
    let jtest = Jtest {
        origin: free_port(),
        documents: DOCUMENTS,
    };
    let mut site = site(&[&device.partition(1)], jtest.origin);
    let ran = verified(&site);
    assert!(ran.status.success(), "{ran:?}");
    site.start();
    assert_eq!(jtest.sweep(&site, true).fetches, u64::from(DOCUMENTS));
    jtest.sweep(&site, false);
    assert_eq!(site.reads().ssd, u64::from(DOCUMENTS));
    let list = site.ctl_ok(&["storage", "list"]);
    let named = device.partition(1).display().to_string();
    assert!(
        list.contains(&named) && list.contains(" state=online"),
        "{list}"
    );
    assert!(site.stop().success());
    // Another name of the partition, as udev makes them.
    let by_uuid = site.path("by-partuuid");
    symlink(device.partition(1), &by_uuid).unwrap();
    let line = format!("{} tier=fast\n", by_uuid.display());
    fs::write(site.path("storage.config"), line).unwrap();
    site.start();
    jtest.sweep(&site, false);
    assert_eq!(site.reads().ssd, u64::from(DOCUMENTS));
    assert!(site.stop().success());
    assert!(around_first(&device) == around, "written outside");
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn clear_and_init_empty_a_partition_and_nothing_around_it() {
    let device = shared_disk();
    let around = around_first(&device);
    let partition = device.partition(1);
    let name = partition.to_str().unwrap();
    let jtest = Jtest {
        origin: free_port(),
        documents: DOCUMENTS,
    };
    let mut site = site(&[&partition], jtest.origin);
    let empty = |site: &mut Site| {
        site.start();
        assert_eq!(jtest.sweep(site, true).fetches, u64::from(DOCUMENTS));
        assert!(site.stop().success());
    };
    empty(&mut site);
    let ran = site.server(&["-C", "clear"]);
    assert!(ran.status.success(), "{ran:?}");
    empty(&mut site);
    let told = site.ctl_ok(&["storage", "init", name]);
    assert!(told.starts_with(&format!("{name} is an empty")), "{told}");
    empty(&mut site);
    site.start();
    site.line_ok(&["--offline", name]);
    site.ctl_ok(&["storage", "init", name]);
    site.ctl_ok(&["storage", "online", name]);
    assert_eq!(jtest.sweep(&site, true).fetches, u64::from(DOCUMENTS));
    assert!(site.stop().success());
    assert!(around_first(&device) == around, "written outside");
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn the_disk_around_a_partition_is_refused_by_name_and_left_as_it_was() {
    let device = shared_disk();
    let before = bytes(&device.backing());
    let mut site = site(&[device.path()], free_port());
    let ran = verified(&site);
    let told = String::from_utf8(ran.stderr).unwrap();
    let named = format!("{} holds a GPT", device.path().display());
    assert!(!ran.status.success() && told.contains(&named), "{told}");
    site.spawn();
    let admin = site.admin;
    until("a 503 that says why", || {
        http::get(admin, "/readyz").is_ok_and(|a| a.status == 503 && a.text().contains(&named))
    });
    assert!(site.log().contains(&named), "{}", site.log());
    assert!(site.stop().success());
    assert!(bytes(&device.backing()) == before, "written to");
}

/// The partition that is in use here keeps its disk from being taken, by
/// force too.
#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn a_disk_beside_its_partition_costs_the_partition_nothing() {
    let device = shared_disk();
    let around = around_first(&device);
    let jtest = Jtest {
        origin: free_port(),
        documents: DOCUMENTS,
    };
    let mut site = site(&[&device.partition(1), device.path()], jtest.origin);
    site.start();
    let disk = device.path().to_str().unwrap();
    let forced = site.ctl(&["storage", "init", "--force", disk]);
    let told = String::from_utf8(forced.stderr).unwrap();
    assert!(!forced.status.success() && told.contains("EBUSY"), "{told}");
    assert!(told.contains("a partition of it"), "{told}");
    jtest.sweep(&site, true);
    jtest.sweep(&site, false);
    assert_eq!(site.reads().ssd, u64::from(DOCUMENTS));
    assert!(site.stop().success());
    assert!(around_first(&device) == around, "written outside");
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn a_mounted_partition_is_refused_by_force_too() {
    let device = shared_disk();
    let partition = device.partition(2);
    let mount = Mount::of(&partition);
    fs::write(mount.path("file"), "kept").unwrap();
    let mut site = site(&[&partition], free_port());
    site.spawn();
    let admin = site.admin;
    until("a 503 that says why", || {
        http::get(admin, "/readyz").is_ok_and(|a| {
            let text = a.text();
            a.status == 503 && text.contains("EBUSY") && text.contains("unmount")
        })
    });
    let name = partition.to_str().unwrap();
    let forced = site.ctl(&["storage", "init", "--force", name]);
    assert!(!forced.status.success(), "{forced:?}");
    assert!(site.stop().success());
    drop(mount);
    let mount = Mount::of(&partition);
    assert_eq!(fs::read(mount.path("file")).unwrap(), b"kept");
}
