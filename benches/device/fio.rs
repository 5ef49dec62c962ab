//! The same reads by fio, whose io_uring engine is the yardstick.

use crate::SIZE;
use crate::reads::{Load, Reads};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

pub(super) fn run(path: &Path, load: Load) -> Reads {
    let output = Command::new("fio")
        .args(["--name=reads", "--rw=randread", "--direct=1"])
        .args(["--ioengine=io_uring", "--time_based", "--norandommap"])
        .args(["--output-format=json", "--readonly"])
        .arg(format!("--filename={}", path.display()))
        .arg(format!("--size={SIZE}"))
        .arg(format!("--bs={}", load.bytes))
        .arg(format!("--iodepth={}", load.depth))
        .arg(format!("--runtime={}", load.time.as_secs()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let job = &told["jobs"][0];
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let each_second = number(&job["read"]["iops"]);
    let busy = number(&job["usr_cpu"]) + number(&job["sys_cpu"]);
    let percentile = |name: &str| number(&job["read"]["clat_ns"]["percentile"][name]) / 1000.0;
    Reads {
        each_second,
        cpu_micros: busy / 100.0 * 1e6 / each_second,
        latencies: vec![percentile("50.000000"), percentile("99.000000")],
    }
}
