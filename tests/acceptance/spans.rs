//! Spans that come and go, grow, and change their names and order.

use crate::loop_device::LoopDevice;
use crate::peers::Jtest;
use crate::site::{Site, free_port};
use std::fs::{self, File};
use std::process::Command;

const DOCUMENTS: u32 = 3000;
const DEVICE_BYTES: u64 = 128 << 20;

fn lines(devices: &[LoopDevice]) -> String {
    let lines = devices
        .iter()
        .map(|device| format!("{} tier=capacity\n", device.path().display()));
    lines.collect()
}

fn restart_over(site: &mut Site, storage: &str) {
    assert!(site.stop().success());
    fs::write(site.path("storage.config"), storage).unwrap();
    site.start();
}

/// A site on these devices whose documents are all stored.
fn filled(devices: &[LoopDevice]) -> (Site, Jtest) {
    let jtest = Jtest {
        origin: free_port(),
        documents: DOCUMENTS,
    };
    let mut site = Site::new(
        "CONFIG proxy.config.cache.ram_cache_cutoff INT 40\n",
        &format!(
            "map http://127.0.0.1:{0}/ http://127.0.0.1:{0}\n",
            jtest.origin
        ),
        &lines(devices),
    );
    site.start();
    assert_eq!(jtest.sweep(&site, true).fetches, u64::from(DOCUMENTS));
    (site, jtest)
}

/// What `storage plan` says of the objects: kept and dropped.
fn planned(site: &Site) -> (u64, u64) {
    let plan = site.ctl_ok(&["storage", "plan", "-f", "json"]);
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    let objects = |sum: &str| plan[sum]["objects"].as_u64().unwrap();
    (objects("kept"), objects("dropped"))
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn a_fourth_device_keeps_the_hits_and_other_names_in_another_order_keep_all() {
    let mut devices: Vec<LoopDevice> = (0..3).map(|_| LoopDevice::zeroed(DEVICE_BYTES)).collect();
    let (mut site, jtest) = filled(&devices);
    devices.push(LoopDevice::zeroed(DEVICE_BYTES));
    restart_over(&mut site, &lines(&devices));
    let lost = jtest.sweep(&site, true).fetches;
    assert!(lost <= u64::from(DOCUMENTS / 100), "{lost} lost");

    assert!(site.stop().success());
    let mut devices: Vec<LoopDevice> = devices.into_iter().map(LoopDevice::renumbered).collect();
    devices.reverse();
    devices.swap(0, 1);
    fs::write(site.path("storage.config"), lines(&devices)).unwrap();
    site.start();
    let before = site.reads();
    assert_eq!(jtest.sweep(&site, true).fetches, 0);
    assert_eq!(site.reads().since(before).disk, u64::from(DOCUMENTS));
    assert!(site.stop().success());
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn a_device_that_is_removed_costs_its_own_objects_as_was_planned() {
    let mut devices: Vec<LoopDevice> = (0..3).map(|_| LoopDevice::zeroed(DEVICE_BYTES)).collect();
    let (mut site, jtest) = filled(&devices);
    let removed = devices.remove(1);
    fs::write(site.path("storage.config"), lines(&devices)).unwrap();
    let (kept, dropped) = planned(&site);
    assert_eq!(kept + dropped, u64::from(DOCUMENTS));
    assert!(dropped > u64::from(DOCUMENTS / 5), "{dropped} dropped");
    restart_over(&mut site, &lines(&devices));
    assert_eq!(jtest.sweep(&site, true).fetches, dropped);
    assert!(site.stop().success());
    drop(removed);
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn a_device_that_grew_gets_a_second_stripe_and_one_that_shrank_is_told_of() {
    let devices = [(); 2].map(|()| LoopDevice::zeroed(DEVICE_BYTES));
    let (mut site, jtest) = filled(&devices);
    assert!(site.stop().success());
    resize(&devices[0], 2 * DEVICE_BYTES);
    site.start();
    assert!(site.log().contains("the span has grown"), "{}", site.log());
    let list = site.ctl_ok(&["storage", "list", "-f", "json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let stripes = |n: usize| list["spans"][n]["stripes"].as_array().unwrap().len();
    assert_eq!((stripes(0), stripes(1)), (2, 1));
    assert_eq!(jtest.sweep(&site, true).fetches, 0);
    assert!(site.stop().success());

    resize(&devices[1], DEVICE_BYTES / 2);
    site.start();
    let told = format!(
        "{} is a span of {DEVICE_BYTES} bytes",
        devices[1].path().display()
    );
    assert!(site.log().contains(&told), "{}", site.log());
    let plan = site.ctl_ok(&["storage", "plan"]);
    assert!(plan.contains(&told), "{plan}");
    let counts = jtest.sweep(&site, true);
    assert!(
        (1..u64::from(DOCUMENTS)).contains(&counts.fetches),
        "{counts:?}"
    );
    assert!(site.stop().success());
}

/// Another size for a device, and for the file under it.
fn resize(device: &LoopDevice, bytes: u64) {
    let backing = File::options().write(true).open(device.backing()).unwrap();
    backing.set_len(bytes).unwrap();
    let told = Command::new("losetup")
        .arg("-c")
        .arg(device.path())
        .status();
    assert!(told.unwrap().success());
}
