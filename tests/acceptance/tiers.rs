//! Both tiers on raw devices: what is hot moves to the SSD, within its budget,
//! and losing the SSD costs speed and nothing else.

use crate::loop_device::LoopDevice;
use crate::peers::Jtest;
use crate::site::{Reads, Site, free_port, quiet};
use crate::until::until;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;
use strata::base::clock::{Clock, SystemClock};
use strata::base::prng::Prng;

/// Bytes of a document of the Zipf load.
const DOCUMENT: usize = 16_384;
const FAST_BYTES: u64 = 64 << 20;
/// Documents: four times what the fast device holds.
const DOCUMENTS: usize = 16_384;
const CLIENTS: u64 = 8;
/// Bytes that may go to the fast device a day, and at once.
const BUDGET: u64 = 8 << 30;
const BURST: u64 = 56 << 20;

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn the_seed_s_machine_serves_all_from_its_ssd_once_it_is_warm() {
    let jtest = Jtest {
        origin: free_port(),
        documents: 1000,
    };
    let devices = [(); 3].map(|()| LoopDevice::zeroed(256 << 20));
    let [one, other, fast] = devices.each_ref().map(|d| d.path().display());
    let mut site = Site::new(
        "CONFIG proxy.config.cache.ram_cache_cutoff INT 40\n\
         CONFIG proxy.config.cache.interim.migrate_threshold INT 2\n",
        &format!(
            "map http://127.0.0.1:{0}/ http://127.0.0.1:{0}\n",
            jtest.origin
        ),
        &format!("{one} tier=capacity\n{other} tier=capacity\n{fast} tier=fast\n"),
    );
    site.start();
    let counts = jtest.run(&site, &["-c", "500", "--requests", "20000"]);
    assert_eq!(counts.fetches, 1000);
    let spilt = || {
        let before = site.reads();
        jtest.sweep(&site, true);
        site.reads().since(before).disk
    };
    until("all documents on the SSD", || spilt() == 0);

    let before = site.reads();
    let counts = jtest.run(&site, &["-c", "500", "--requests", "20000"]);
    let warm = site.reads().since(before);
    assert_eq!((counts.errors, counts.fetches), (0, 0));
    assert_eq!((warm.ram, warm.disk), (0, 0), "{warm:?}");
    assert_eq!(warm.ssd, warm.all);
    until("ssdhit 100", || site.gauge("ssdhit ") == 100.0);
    assert_eq!((site.gauge("ramhit "), site.gauge("hddhit ")), (0.0, 0.0));
}

/// The ranks of a Zipf distribution, by their running sums.
fn zipf(exponent: f64) -> Vec<f64> {
    let mut sum = 0.0;
    let weights = (1..=DOCUMENTS).map(|rank| {
        let rank = u32::try_from(rank).unwrap();
        f64::from(rank).powf(-exponent)
    });
    let sums = weights.map(|weight| {
        sum += weight;
        sum
    });
    sums.collect()
}

/// A client that keeps its connection.
struct Client {
    stream: BufReader<TcpStream>,
    prng: Prng,
}

impl Client {
    fn new(site: &Site, seed: u64) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", site.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        Self {
            stream: BufReader::new(stream),
            prng: Prng::seeded(seed),
        }
    }

    /// Asks for documents as they are liked; each must come whole.
    fn ask(&mut self, sums: &[f64], requests: u64) {
        let last = sums.last().unwrap();
        for _ in 0..requests {
            let at = self.prng.fraction() * last;
            let document = sums.partition_point(|sum| *sum < at);
            let get = format!("GET /{DOCUMENT}/{document} HTTP/1.1\r\nHost: a.example\r\n\r\n");
            self.stream.get_mut().write_all(get.as_bytes()).unwrap();
            self.answer();
        }
    }

    fn answer(&mut self) {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
        while line != "\r\n" {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
        }
        let mut body = vec![0; DOCUMENT];
        self.stream.read_exact(&mut body).unwrap();
    }
}

/// A load of all clients at once; the cache reads that it came to.
fn load(site: &Site, seed: u64, requests: u64) -> Reads {
    let sums = zipf(0.9);
    let before = site.reads();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let mut client = Client::new(site, seed * CLIENTS + client);
            let sums = &sums;
            scope.spawn(move || client.ask(sums, requests / CLIENTS));
        }
    });
    site.reads().since(before)
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn a_small_ssd_takes_most_disk_hits_within_its_budget_and_may_be_lost() {
    let clock = SystemClock::new();
    let fast = LoopDevice::zeroed(FAST_BYTES);
    let capacity = LoopDevice::zeroed(512 << 20);
    let mut site = Site::new(
        &format!(
            "CONFIG proxy.config.cache.ram_cache_cutoff INT 1\n\
             CONFIG proxy.config.strata.tier.fast.write_budget INT {BUDGET}\n\
             CONFIG proxy.config.strata.tier.fast.write_burst INT {BURST}\n"
        ),
        "map http://a.example/ http://generator.invalid/demo/ @plugin=generator.so\n",
        &format!(
            "{} tier=fast\n{} tier=capacity\n",
            fast.path().display(),
            capacity.path().display()
        ),
    );
    site.start();
    load(&site, 1, 40_000);
    let warm = load(&site, 2, 10_000);
    assert_eq!(warm.ram, 0);
    let share = warm.ssd * 100 / warm.all;
    assert!(share >= 70, "{share} % of {warm:?}");

    let allowed = BURST + BUDGET / 86_400_000 * (clock.mono().as_nanos() / 1_000_000);
    // What is not a copy is charged, and can't be held back.
    let written = site.metric("strata.tier.fast.bytes_written");
    assert!(written <= allowed + allowed / 50, "{written} of {allowed}");

    let path = fast.path().to_str().unwrap();
    let lost = std::thread::scope(|scope| {
        let loads = scope.spawn(|| load(&site, 3, 20_000));
        quiet(Duration::from_millis(500));
        let ctl = Command::new(env!("CARGO_BIN_EXE_traffic_ctl"))
            .arg("--config")
            .arg(site.path(""))
            .args(["storage", "offline", path])
            .status();
        assert!(ctl.unwrap().success());
        loads.join().unwrap()
    });
    assert!(lost.disk > 1000, "{lost:?}");
    let after = load(&site, 4, 5_000);
    assert_eq!(after.ssd, 0);
    assert!(after.disk > 4_000, "{after:?}");
}
