//! `kill -9` at random moments: what was written is there afterwards, byte for
//! byte; what was replaced, removed or purged is not.
//!
//! Of the cache alone, whose spans change their tiers from round to round, so
//! that a key lies now here, now there; and of the server under mixed load. On
//! files, and with the feature `devices` on raw devices.
//!
//! Rounds: 8 and 4, or as many as `STRATA_CRASH_ROUNDS` says. The seed of a run
//! is printed when it fails; `STRATA_CRASH_SEED` runs it again, though the
//! moment of the kill is the system's.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod damage;
mod history;
#[expect(dead_code, reason = "the tests of devices use the rest of it")]
#[path = "../support/loop_device.rs"]
mod loop_device;
#[expect(dead_code, reason = "the tests of programs use the rest of it")]
#[path = "../support/process.rs"]
mod process;
mod server;
#[expect(
    dead_code,
    unused_imports,
    reason = "the tests of the proxy use the rest of it"
)]
#[path = "../support/mod.rs"]
mod support;
mod writer;

/// Where the programs' tests look for it.
mod until {
    pub(crate) use crate::support::until;
}

use history::{History, Verdict};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use strata::base::prng::{Prng, system_u64};
use strata::cache::Cache;

/// Lines of progress after which the writer is killed, at most.
const LONGEST: u64 = 40;

#[test]
fn a_killed_cache_loses_nothing_written_and_brings_nothing_back() {
    let dir = tempfile::tempdir().unwrap();
    kill_and_check(dir.path());
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn a_killed_cache_on_raw_devices_loses_nothing_and_brings_nothing_back() {
    let dir = tempfile::tempdir().unwrap();
    let devices = on_devices(dir.path());
    kill_and_check(dir.path());
    drop(devices);
}

/// Puts raw devices in the places of the spans' files.
fn on_devices(dir: &Path) -> [loop_device::LoopDevice; 2] {
    writer::SPANS.map(|span| {
        let device = loop_device::LoopDevice::zeroed(128 << 20);
        std::os::unix::fs::symlink(device.path(), dir.join(span)).unwrap();
        device
    })
}

fn kill_and_check(dir: &Path) {
    let seed = number("STRATA_CRASH_SEED").unwrap_or_else(system_u64);
    let rounds = number("STRATA_CRASH_ROUNDS").unwrap_or(8);
    let mut prng = Prng::seeded(seed);
    let mut history = History::starting_with(prng.next_u64());
    for round in 0..rounds {
        let lines = 1 + prng.below(LONGEST);
        run_and_kill(dir, &mut history, (lines, round));
        let cache = writer::open(dir, round + 1);
        let checked = runtime().block_on(check(&cache, &history));
        assert_eq!(checked, Ok(()), "seed {seed}, round {round}");
        history.go_on_behind();
        close(cache, dir);
    }
}

/// The process that is killed; started by the test above.
#[test]
#[ignore = "is run as a process of its own by the test above"]
fn writer_process() {
    let Some(dir) = std::env::var_os("STRATA_CRASH_DIR") else {
        return;
    };
    let seed = number("STRATA_CRASH_OPS").unwrap();
    let from = number("STRATA_CRASH_FROM").unwrap();
    let turn = number("STRATA_CRASH_TURN").unwrap();
    let cache = writer::open(Path::new(&dir), turn);
    runtime().block_on(writer::work(&cache, seed, from));
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
}

/// Starts the writer, takes down what it says, and kills it after `lines`
/// lines.
fn run_and_kill(dir: &Path, history: &mut History, (lines, turn): (u64, u64)) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["writer_process", "--exact", "--ignored", "--nocapture"])
        .env("STRATA_CRASH_DIR", dir)
        .env("STRATA_CRASH_OPS", history.seed().to_string())
        .env("STRATA_CRASH_FROM", history.from().to_string())
        .env("STRATA_CRASH_TURN", turn.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stdout.take().unwrap()).lines();
    let progress = said.map_while(Result::ok);
    let progress = progress.filter(|line| line.contains("at "));
    for line in progress.take(usize::try_from(lines).unwrap()) {
        history.hear(&line);
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Every key's state against what the history allows.
async fn check(cache: &Cache, history: &History) -> Result<(), String> {
    cache.loaded().await;
    let mut hits = 0;
    for key in 0..history::KEYS {
        let found = writer::version_of(cache, key).await?;
        hits += u64::from(found.is_some());
        let verdict = history.judge(key, found);
        if verdict != Verdict::Right {
            return Err(format!("key {key} has {found:?}: {verdict:?}"));
        }
    }
    if hits == 0 && history.heard() {
        return Err("nothing is left at all".to_owned());
    }
    Ok(())
}

/// Lets the cache go without a stop, and waits until its files are free.
fn close(cache: Arc<Cache>, dir: &Path) {
    let mut held = cache;
    while let Err(again) = Arc::try_unwrap(held).map(drop) {
        held = again;
        std::thread::yield_now();
    }
    for span in writer::SPANS {
        let file = std::fs::File::open(dir.join(span)).unwrap();
        file.lock().unwrap();
    }
}
