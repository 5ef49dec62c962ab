//! `storage`: its plan, by a server or without one, and its answers as text.

use super::{rows, shown, start_fault};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use strata::mgmt::client::{self, CallError};
use strata::mgmt::control::plan_answer;
use strata::mgmt::paths::{self, ConfigDir};
use strata::mgmt::rpc::{Call, Fault, FaultKind};
use strata::server::{self, Options};

/// The files to plan with in place of the configured ones.
#[derive(Debug, clap::Args)]
pub(crate) struct Files {
    /// Lines in place of storage.config
    #[arg(long, value_name = "FILE")]
    storage: Option<PathBuf>,
    /// Lines in place of volume.config
    #[arg(long, value_name = "FILE")]
    volumes: Option<PathBuf>,
}

/// What a restart would keep.
///
/// # Errors
///
/// Why there is no plan.
pub(crate) fn plan(dir: &ConfigDir, files: &Files) -> Result<Value, CallError> {
    let storage = files.storage.as_deref().map(read).transpose()?;
    let volumes = files.volumes.as_deref().map(read).transpose()?;
    let params = json!({ "storage": storage, "volumes": volumes });
    match client::call_server(&dir.path, &Call::new("storage.plan", params)) {
        Err(CallError::NoServer { .. }) => Ok(alone(dir, storage.as_deref(), volumes.as_deref())?),
        answer => answer,
    }
}

fn read(path: &Path) -> Result<String, Fault> {
    std::fs::read_to_string(path).map_err(|error| {
        let what = format!("{}: {error}", path.display());
        Fault::new(FaultKind::Params, what)
    })
}

fn alone(dir: &ConfigDir, storage: Option<&str>, volumes: Option<&str>) -> Result<Value, Fault> {
    let options = Options {
        config_dir: dir.path.clone(),
        environment: paths::environment_here(),
        ..Options::default()
    };
    let plan = server::plan_storage(&options, storage, volumes);
    let spans = plan.map_err(|found| start_fault(dir, &found))?;
    Ok(plan_answer(&spans))
}

/// A line for each span, one for each of its stripes, and the sums.
pub(crate) fn plan_text(plan: &Value) -> String {
    let mut text: String = rows(&plan["spans"]).map(span_text).collect();
    let sums = ["kept", "dropped"].map(|sum| holding(&plan[sum]));
    let [kept, dropped] = sums;
    // A String takes every line.
    writeln!(text, "in all: {kept} kept, {dropped} dropped").ok();
    text
}

fn span_text(span: &Value) -> String {
    let mut text = shown(&span["path"]);
    match (&span["refused"], &span["gone"]) {
        (Value::String(why), _) => text += &format!(": left out: {why}"),
        (_, Value::Bool(true)) => text += ": no longer configured",
        _ => {}
    }
    text.push('\n');
    for stripe in rows(&span["stripes"]) {
        let (volume, bytes) = (&stripe["volume"], &stripe["bytes_total"]);
        let from = stripe["from"].as_u64();
        let fate = from.map_or_else(
            || shown(&stripe["fate"]),
            |from| format!("kept, from volume {from}"),
        );
        let held = holding(stripe);
        // As above.
        writeln!(text, "  volume {volume}, {bytes} bytes: {fate}, {held}").ok();
    }
    text
}

fn holding(of: &Value) -> String {
    let suspect = of["suspect"].as_bool().unwrap_or(false);
    let after = if suspect { ", after revalidation" } else { "" };
    let text = format!("{} objects in {} bytes{after}", of["objects"], of["bytes"]);
    match of["partial"].as_bool() {
        Some(true) => format!("at least {text} (still loading)"),
        Some(false) | None => text,
    }
}

/// `storage list`.
pub(crate) fn spans_text(result: &Value) -> String {
    rows(&result["spans"]).map(span_line).collect()
}

/// `storage online`, which does not wait until the span has been read.
pub(crate) fn online_text(result: &Value) -> String {
    rows(&result["spans"]).map(online_line).collect()
}

fn online_line(row: &Value) -> String {
    let (span, state) = (shown(&row["span"]), shown(&row["state"]));
    match state.as_str() {
        "loading" => format!("{span} is loading; traffic_ctl storage list shows its state\n"),
        _ => format!("{span} is {state}\n"),
    }
}

/// `PATH tier=fast state=online bytes_used=… bytes_total=… errors=0
/// checksum_errors=0 id=… uuid=…`, and why a span was refused.
fn span_line(span: &Value) -> String {
    let mut line = shown(&span["path"]);
    let keys = ["tier", "state", "bytes_used", "bytes_total", "errors"];
    for key in keys.into_iter().chain(["checksum_errors"]) {
        line += &format!(" {key}={}", shown(&span[key]));
    }
    for key in ["id", "uuid", "reason"] {
        if !span[key].is_null() {
            line += &format!(" {key}={}", shown(&span[key]));
        }
    }
    line + "\n"
}
