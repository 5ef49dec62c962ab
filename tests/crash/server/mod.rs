//! The server killed at random moments under mixed load, on both tiers: every
//! start is ready soon, and what it serves is right.

mod documents;
mod http;
mod key;
mod load;

use crate::process::{ConfigDir, Process};
use crate::until::until;
use crate::{loop_device::LoopDevice, number};
use documents::Documents;
use http::Client;
use key::Key;
use load::{End, Load};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::TcpListener;
use std::sync::LazyLock;
use std::time::Duration;
use strata::base::clock::{Clock, MonoTime, SystemClock};
use strata::base::prng::{Prng, system_u64};

/// Clients at a time.
const CLIENTS: u64 = 4;
/// Keys of each.
const KEYS: u64 = 60;
/// Rounds in which all must be right.
const ROUNDS: u64 = 4;
/// The longest that a server works before it is killed.
const LONGEST: Duration = Duration::from_millis(2500);

static CLOCK: LazyLock<SystemClock> = LazyLock::new(SystemClock::new);

/// This moment, by the one clock of all clients.
fn now() -> MonoTime {
    CLOCK.mono()
}

#[test]
fn a_server_killed_under_load_keeps_what_was_written_and_nothing_else() {
    kill_and_check("fast 256M tier=fast\ncapacity 256M tier=capacity\n");
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn a_server_on_raw_devices_killed_under_load_keeps_what_was_written_and_nothing_else() {
    let devices = ["fast", "capacity"].map(|tier| (LoopDevice::zeroed(256 << 20), tier));
    let line =
        |(device, tier): &(LoopDevice, &str)| format!("{} tier={tier}\n", device.path().display());
    kill_and_check(&devices.iter().map(line).collect::<String>());
}

fn kill_and_check(storage: &str) {
    let seed = number("STRATA_CRASH_SEED").unwrap_or_else(system_u64);
    let rounds = number("STRATA_CRASH_ROUNDS").unwrap_or(ROUNDS);
    let mut bench = Bench::new(storage, seed);
    let mut starts = Vec::new();
    for round in 0..rounds {
        let (mut server, ready) = bench.start();
        starts.push(ready);
        let worked = bench
            .check(round)
            .and_then(|()| bench.work(&mut server, round));
        assert_eq!(
            worked,
            Ok(()),
            "seed {seed}, round {round}; server.log: {}",
            bench.log()
        );
    }
    bench.told(starts);
    assert!(bench.promoted > 0, "nothing was promoted: {}", bench.log());
}

/// A server's directory, its origin, and what is known of its keys.
struct Bench {
    dir: ConfigDir,
    port: u16,
    admin: u16,
    documents: Documents,
    clients: Vec<BTreeMap<u64, Key>>,
    prng: Prng,
    promoted: u64,
    /// Keys that were found after a start.
    found: u64,
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

impl Bench {
    fn new(storage: &str, seed: u64) -> Self {
        let (port, admin) = (free_port(), free_port());
        let records = "CONFIG proxy.config.cache.ram_cache_cutoff INT 1\n\
             CONFIG proxy.config.http.cache.ignore_client_cc_max_age INT 0\n";
        let documents = Documents::start();
        let dir = ConfigDir::new(port, admin, records);
        dir.write("storage.config", storage);
        dir.write("remap.config", &documents.origin.map("/"));
        let keys = |client| (0..KEYS).map(move |key| (key * CLIENTS + client, Key::default()));
        Self {
            dir,
            port,
            admin,
            documents,
            clients: (0..CLIENTS).map(|client| keys(client).collect()).collect(),
            prng: Prng::seeded(seed),
            promoted: 0,
            found: 0,
        }
    }

    fn log(&self) -> String {
        let log = std::fs::read_to_string(self.dir.path("server.log"));
        let lines = log.unwrap_or_default();
        let last: Vec<&str> = lines.lines().rev().take(40).collect();
        last.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    /// Starts the server; how long it took to be ready.
    fn start(&self) -> (Process, Duration) {
        let log = File::create(self.dir.path("server.log")).unwrap();
        let mut command = self.dir.command(env!("CARGO_BIN_EXE_traffic_server"));
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let begun = now();
        let server = Process::start(&mut command);
        until("a server that is ready", || is_ready(self.admin));
        (server, now().since(begun))
    }

    /// What the server has of every key against what it may have.
    fn check(&mut self, round: u64) -> Result<(), String> {
        let mut client = Client::connect(self.port).map_err(|error| error.to_string())?;
        let last = self.documents.last();
        for (key, known) in self.clients.iter_mut().flatten() {
            let found = load::look(&mut client, *key)?;
            self.found += u64::from(found.is_some());
            let judged = known.found(found, round, last);
            judged.map_err(|wrong| format!("key {key} after the start: {wrong}"))?;
        }
        Ok(())
    }

    /// Has the clients work, and kills the server meanwhile.
    fn work(&mut self, server: &mut Process, round: u64) -> Result<(), String> {
        let most = LONGEST.as_millis().try_into().unwrap_or(u64::MAX);
        let time = Duration::from_millis(50 + self.prng.below(most));
        let (port, documents) = (self.port, &self.documents);
        let prng = &mut self.prng;
        let mut promoted = 0;
        let (killed, ends) = std::thread::scope(|scope| {
            let start = |keys| {
                let prng = Prng::seeded(prng.next_u64());
                let load = Load {
                    documents,
                    keys,
                    prng,
                };
                scope.spawn(move || load.run(port))
            };
            let clients: Vec<_> = self.clients.iter_mut().map(start).collect();
            std::thread::park_timeout(time);
            promoted = promotions(self.admin);
            let killed = now();
            server.child.kill().unwrap();
            let ends = clients.into_iter().map(|client| client.join().unwrap());
            (killed, ends.collect::<Vec<_>>())
        });
        self.promoted += promoted;
        server.child.wait().unwrap();
        for known in self.clients.iter_mut().flatten() {
            known.1.killed(killed, round);
        }
        ends.into_iter().try_for_each(|end| judge_end(end, killed))
    }

    #[expect(clippy::print_stderr, reason = "how a run that takes long went")]
    fn told(&self, mut starts: Vec<Duration>) {
        starts.sort();
        let (slowest, median) = (starts.last(), starts.get(starts.len() / 2));
        let (found, promoted) = (self.found, self.promoted);
        eprintln!(
            "{} starts, ready within {slowest:?}, half of them within {median:?}; {found} keys found, {promoted} promoted",
            starts.len()
        );
    }
}

/// A connection breaks when the server is killed, and not before.
fn judge_end(end: End, killed: MonoTime) -> Result<(), String> {
    match end {
        End::Broken(at, _) if at >= killed => Ok(()),
        End::Broken(_, error) => Err(format!("an answer that broke off: {error}")),
        End::Wrong(what) => Err(what),
    }
}

fn is_ready(admin: u16) -> bool {
    let asked = Client::connect(admin).and_then(|mut client| client.ask("GET", "/readyz", ""));
    asked.is_ok_and(|answer| answer.status == 200)
}

/// Promotions of this run of the server.
fn promotions(admin: u16) -> u64 {
    let asked = Client::connect(admin).and_then(|mut client| client.ask("GET", "/metrics", ""));
    let page = asked.map(|answer| answer.body).unwrap_or_default();
    let page = String::from_utf8_lossy(&page);
    let row = page
        .lines()
        .find_map(|line| line.strip_prefix("strata_tier_promotions "));
    row.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}
