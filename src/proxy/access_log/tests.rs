//! Lines from event threads to the file.

use super::*;
use crate::base::clock::WallTime;
use crate::metrics::Registry;
use crate::proxy::outcome::{Ended, Outcome};
use std::net::IpAddr;
use tokio::task::LocalSet;

fn options(dir: &std::path::Path) -> LogOptions {
    LogOptions {
        dir: dir.join("log"),
        format: Format::named("strata"),
        flush: Duration::from_secs(3600),
        enabled: true,
    }
}

fn write(sink: &LogSink, times: usize) {
    let ended = Ended::new(Outcome::HitRam, 200);
    for _ in 0..times {
        sink.write(&Entry {
            ended: &ended,
            begun: WallTime::from_secs(1),
            took: Duration::ZERO,
            client: IpAddr::from([127, 0, 0, 1]),
            method: "GET",
            url: "http://a/",
            version: None,
            session: None,
            name: None,
        });
    }
}

fn lines(path: &std::path::Path) -> usize {
    std::fs::read_to_string(path).unwrap().lines().count()
}

#[tokio::test]
async fn every_line_is_in_the_file_after_a_stop() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::new();
    let log = AccessLog::start(options(dir.path())).unwrap();
    let local = LocalSet::new();
    local
        .run_until(async { write(&log.sink(registry.cells()), 1000) })
        .await;
    drop(local);
    log.stop();
    assert_eq!(lines(&dir.path().join("log/strata.log")), 1000);
    assert_eq!(registry.get(Metric::LogEntriesOk), 1000);
}

#[tokio::test]
async fn after_a_rotation_lines_go_to_a_new_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log/strata.log");
    let moved = dir.path().join("log/old");
    let log = AccessLog::start(options(dir.path())).unwrap();
    LocalSet::new()
        .run_until(async {
            let sink = log.sink(Registry::new().cells());
            write(&sink, 1);
            sink.flush();
            std::fs::rename(&path, &moved).unwrap();
            log.reopen();
            write(&sink, 2);
            sink.flush();
        })
        .await;
    log.stop();
    assert_eq!((lines(&moved), lines(&path)), (1, 2));
}

#[tokio::test]
async fn lines_nobody_takes_are_dropped_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::new();
    let log = AccessLog::start(options(dir.path())).unwrap();
    log.stop();
    LocalSet::new()
        .run_until(async { write(&log.sink(registry.cells()), 3) })
        .await;
    assert_eq!(registry.get(Metric::LogEntriesFail), 3);
}

#[tokio::test(start_paused = true)]
async fn lines_get_no_older_than_the_flush_period() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::new();
    let records = Records {
        log_max_secs_per_buffer: 20,
        ..Records::default()
    };
    let options = LogOptions::from_records(&records, dir.path().to_owned());
    let log = AccessLog::start(options).unwrap();
    LocalSet::new()
        .run_until(async {
            let sink = log.sink(registry.cells());
            write(&sink, 1);
            tokio::time::sleep(Duration::from_secs(19)).await;
            assert_eq!(registry.get(Metric::LogEntriesOk), 0);
            tokio::time::sleep(Duration::from_secs(2)).await;
            assert_eq!(registry.get(Metric::LogEntriesOk), 1);
        })
        .await;
    log.stop();
}

#[tokio::test]
async fn a_disabled_log_makes_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let log = AccessLog::start(LogOptions {
        enabled: false,
        ..options(dir.path())
    })
    .unwrap();
    LocalSet::new()
        .run_until(async { write(&log.sink(Registry::new().cells()), 1) })
        .await;
    log.stop();
    assert!(!dir.path().join("log").exists());
}
