//! `etc/bench/bench.py`, run for real but briefly: it ends in order, its table
//! has figures, and nothing stays behind.

use crate::site::stdout;
use crate::until::until;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A directory of its own for all that the script makes, by which its
/// processes are known as well.
struct Bench(TempDir);

impl Bench {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// One short round with this build's programs.
    fn start(&self, args: &[&str]) -> Child {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("etc/bench/bench.py");
        let programs = Path::new(env!("CARGO_BIN_EXE_traffic_server")).parent();
        let mut command = Command::new(script);
        command.args([
            "--rounds",
            "1",
            "--seconds",
            "1",
            "--without",
            "trafficserver",
        ]);
        command.arg("--programs").arg(programs.unwrap()).args(args);
        command.env("TMPDIR", self.0.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).spawn().unwrap()
    }

    /// What it printed, once it has ended well.
    fn table(&self, args: &[&str]) -> String {
        let output = self.start(args).wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{:?}: {text}", output.status);
        text
    }

    fn assert_nothing_is_left(&self) {
        let home = self.0.path().to_str().unwrap();
        let loops = stdout(
            "losetup",
            &["--list", "--noheadings", "--output", "BACK-FILE"],
        );
        assert!(!loops.contains(home), "{loops}");
        assert_eq!(processes_with(home), [""; 0]);
        assert_eq!(fs::read_dir(home).unwrap().count(), 0);
    }
}

/// The command lines of the processes whose environment holds this text.
fn processes_with(text: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc")
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let ours = processes.filter(|process| {
        // What is no process, another's, or gone has none that can be read.
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(text)
    });
    ours.map(|process| fs::read_to_string(process.join("cmdline")).unwrap_or_default())
        .collect()
}

/// CPU a request, requests a second and the ratio to Strata, of each row.
fn figures(table: &str, server: &str) -> Vec<[f64; 3]> {
    let rows = table.lines().map(|line| line.split_whitespace().collect());
    let rows = rows.filter(|words: &Vec<&str>| words.first() == Some(&server));
    rows.map(|words| [1, 4, 6].map(|index| words[index].parse().unwrap()))
        .collect()
}

#[test]
fn the_bench_measures_from_ram_and_leaves_nothing_behind() {
    let bench = Bench::new();
    let table = bench.table(&["--only", "ram", "--without", "nginx"]);
    assert!(
        table.starts_with("left out: trafficserver, nginx\n"),
        "{table}"
    );
    let rows = figures(&table, "strata");
    assert_eq!(rows.len(), 4, "{table}");
    for [cpu, rate, ratio] in rows {
        assert!(cpu > 0.0 && rate > 0.0 && ratio == 1.0, "{table}");
    }
    for title in ["\nW5 ", "\nW1 "] {
        assert!(table.contains(title), "{table}");
    }
    bench.assert_nothing_is_left();
}

#[test]
#[cfg_attr(
    not(feature = "devices"),
    ignore = "needs root and loop devices: cargo test --features devices"
)]
fn the_bench_measures_from_loop_devices_and_leaves_nothing_behind() {
    let bench = Bench::new();
    let table = bench.table(&["--only", "device", "--objects", "100"]);
    assert!(table.contains("\nW3  100 objects "), "{table}");
    for server in ["strata", "nginx"] {
        let rows = figures(&table, server);
        let [[cpu, rate, ratio]] = rows[..] else {
            panic!("{server}: {table}");
        };
        assert!(cpu > 0.0 && rate > 0.0 && ratio > 0.0, "{table}");
    }
    bench.assert_nothing_is_left();
}

#[test]
fn a_bench_that_is_stopped_by_a_signal_leaves_nothing_behind() {
    let bench = Bench::new();
    let mut script = bench.start(&["--only", "ram", "--without", "nginx"]);
    let mut said = BufReader::new(script.stdout.take().unwrap()).lines();
    assert!(said.next().unwrap().unwrap().starts_with("left out"));
    let home = bench.0.path().to_str().unwrap();
    until("a server", || {
        let running = processes_with(home);
        running.iter().any(|line| line.contains("traffic_server"))
    });
    let id = script.id().to_string();
    stdout("kill", &["-TERM", &id]);
    let ended = script.wait().unwrap();
    assert_eq!(ended.code(), Some(128 + 15), "{ended:?}");
    bench.assert_nothing_is_left();
}
