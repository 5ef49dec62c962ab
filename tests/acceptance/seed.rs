//! The published ATS test: jtest, 500 clients, a raw SSD, three RAM cutoffs.

use crate::loop_device::LoopDevice;
use crate::peers::{Jtest, jtest_alone};
use crate::site::{Site, free_port};
use crate::until::until;
use std::fs;
use strata::base::clock::{Clock, SystemClock};

const DOCUMENTS: u32 = 1000;

/// The seed's files in a site's directory, its records verbatim.
fn seed_site(device: &LoopDevice, origin: u16) -> Site {
    let seed = concat!(env!("CARGO_MANIFEST_DIR"), "/etc/seed");
    let records = fs::read_to_string(format!("{seed}/records.config")).unwrap();
    let scenario: String = records
        .lines()
        .filter(|line| !line.contains("server_ports") && !line.contains("user_id"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(scenario.contains("ram_cache_cutoff INT 40 "), "{scenario}");
    let remap = fs::read_to_string(format!("{seed}/remap.config")).unwrap();
    Site::new(
        &scenario,
        &remap.replace(":9080", &format!(":{origin}")),
        &format!("{} tier=fast\n", device.path().display()),
    )
}

fn set_cutoff(site: &Site, bytes: &str) {
    site.line_ok(&["-s", "proxy.config.cache.ram_cache_cutoff", "-v", bytes]);
    site.line_ok(&["-x"]);
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn the_seed_scenario_hits_where_its_cutoff_says() {
    let device = LoopDevice::zeroed(256 << 20);
    let jtest = Jtest {
        origin: free_port(),
        documents: DOCUMENTS,
    };
    let mut site = seed_site(&device, jtest.origin);
    site.start();
    site.line_ok(&["-x"]);

    let load = ["-c", "500", "--requests", "20000"];
    let counts = jtest.run(&site, &load);
    assert_eq!(counts.fetches, u64::from(DOCUMENTS));
    let first = site.reads();
    assert_eq!((first.ram, first.disk), (0, 0), "{first:?}");
    assert_eq!(first.ssd, first.all);
    until("ssdhit 100", || site.gauge("ssdhit ") == 100.0);
    assert_eq!(site.gauge("ramhit "), 0.0);

    set_cutoff(&site, "40960");
    jtest.sweep(&site, false);
    let before = site.reads();
    jtest.sweep(&site, false);
    let mixed = site.reads().since(before);
    let small = small_documents(40_960);
    assert_eq!((mixed.ram, mixed.ssd), (small, 1000 - small), "{mixed:?}");
    until("ramhit + ssdhit = 100", || {
        (site.gauge("ramhit ") + site.gauge("ssdhit ") - 100.0).abs() < 1e-6
    });

    set_cutoff(&site, "0");
    jtest.sweep(&site, false);
    let before = site.reads();
    jtest.sweep(&site, false);
    let all_ram = site.reads().since(before);
    assert_eq!((all_ram.ram, all_ram.ssd), (1000, 0), "{all_ram:?}");
}

/// How many of jtest's documents are smaller than `cutoff`.
fn small_documents(cutoff: u64) -> u64 {
    let shares = [0.039, 0.098, 0.186, 0.363, 0.716, 0.834, 0.905, 0.955];
    let size = |index: u32| {
        let share = f64::from(index) / f64::from(DOCUMENTS);
        let within = (share * 618.034).fract();
        let nth = shares.iter().filter(|bound| within >= **bound).count() as u64 + 1;
        let step = match share {
            s if s < 0.35 => 100,
            s if s < 0.85 => 1000,
            s if s < 0.99 => 10_000,
            _ => 100_000,
        };
        nth * step
    };
    (0..DOCUMENTS).filter(|index| size(*index) < cutoff).count() as u64
}

#[test]
fn a_proxy_that_is_not_there_is_told_of_once_a_second_with_a_count() {
    let clock = SystemClock::new();
    let begun = clock.mono();
    let output = jtest_alone(2);
    let seconds = usize::try_from(clock.mono().since(begun).as_secs()).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    let complaints: Vec<_> = said
        .lines()
        .filter(|line| line.contains("can't connect"))
        .collect();
    assert!((1..=seconds + 1).contains(&complaints.len()), "{said}");
    let later = &complaints[1..];
    assert!(later.iter().all(|line| line.contains(" more)")), "{said}");
    let last = said.lines().last().unwrap();
    let errors = last
        .strip_prefix("jtest: ")
        .and_then(|rest| rest.strip_suffix(" errors"));
    assert!(errors.unwrap().parse::<u32>().unwrap() >= 200, "{said}");
}
