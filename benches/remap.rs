//! Remap tables of many rules: time and memory to load, time to look up, and
//! memory after many reloads. `cargo bench --bench remap` prints a row each.
#![expect(clippy::unwrap_used, reason = "a measurement stops at a surprise")]
#![expect(clippy::print_stdout, reason = "the rows are what it is for")]

use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use strata::base::clock::{Clock, SystemClock};
use strata::config::remap::parse;
use strata::http::target::RequestUrl;
use strata::remap::{Found, RemapOptions, Table};

const LOOKUPS: u64 = 200_000;

fn regex_rules(count: usize) -> String {
    let mut text = String::new();
    for n in 0..count {
        let from = format!(r"http://(.*)\.site{n}\.example\.com/");
        writeln!(text, "regex_map {from} http://$1.origin{n}.example.net/").unwrap();
    }
    text
}

fn literal_rules(count: usize) -> String {
    let mut text = String::new();
    for n in 0..count {
        writeln!(text, "map http://w.site{n}.example.com/ http://origin{n}/").unwrap();
    }
    text
}

fn table(text: &str) -> Table {
    let no_include = |_: &str| Err("no includes here".to_owned());
    let (file, findings) = parse("remap.config", text.as_bytes(), &no_include);
    assert!(findings.errors.is_empty(), "{:?}", findings.errors);
    let (table, findings) = Table::build(&file, &RemapOptions::default());
    assert!(findings.errors.is_empty(), "{:?}", findings.errors);
    table
}

fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.unwrap().split_whitespace().nth(1);
    number.unwrap().parse().unwrap()
}

/// Nanoseconds a lookup of `host`, which the table takes or not.
fn lookup_ns(clock: &SystemClock, table: &Table, host: &str, taken: bool) -> u64 {
    let url = RequestUrl::parse(&format!("http://{host}/a/b.jpg")).unwrap();
    let found = table.find(&url);
    assert_eq!(matches!(found, Found::Map { .. }), taken, "{host}");
    let begin = clock.mono();
    for _ in 0..LOOKUPS {
        black_box(table.find(black_box(&url)));
    }
    clock.mono().as_nanos().saturating_sub(begin.as_nanos()) / LOOKUPS
}

fn measure(clock: &SystemClock, name: &str, text: &str) {
    let (begin, before_kib) = (clock.mono(), resident_kib());
    let table = table(text);
    let load_ms = clock.mono().since(begin).as_millis();
    let loaded_kib = resident_kib().saturating_sub(before_kib);
    let hit_ns = lookup_ns(clock, &table, "w.site5000.example.com", true);
    let miss_ns = lookup_ns(clock, &table, "w.site5000.example.org", false);
    let rules = table.len();
    println!(
        "{name}: {rules} rules, load {load_ms} ms, {loaded_kib} KiB, \
         hit {hit_ns} ns, miss {miss_ns} ns"
    );
}

fn reload(text: &str, times: u32) {
    let mut held = table(text);
    let first_kib = resident_kib();
    for _ in 0..times {
        // As a reload does: the old table lives until the new one is whole.
        held = table(text);
    }
    let last_kib = resident_kib();
    println!(
        "reload: {} rules {times} times, {first_kib} KiB, then {last_kib} KiB",
        held.len()
    );
}

fn main() {
    let clock = SystemClock::default();
    measure(&clock, "regex", &regex_rules(10_000));
    measure(&clock, "literal", &literal_rules(30_000));
    reload(&(regex_rules(3_850) + &literal_rules(3_850)), 50);
}
