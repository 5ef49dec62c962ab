//! Commands that go over all that is stored: part by part, telling as they go.

use super::{Format, rows, shown};
use serde_json::{Value, json};
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use strata::mgmt::client::{self, CallError};
use strata::mgmt::rpc::Call;
use strata::mgmt::terminal::write;

/// Columns of the bar.
const BAR: u64 = 40;

/// Asks for part after part, until there is none or `each` wants no more.
fn walk(
    dir: &Path,
    method: &str,
    params: &Value,
    mut each: impl FnMut(&Value) -> bool,
) -> Result<(), CallError> {
    let mut from = Value::Null;
    loop {
        let mut params = params.clone();
        params["from"] = from;
        let part = client::call_server(dir, &Call::new(method, params))?;
        from = part["next"].clone();
        if !each(&part) || from.is_null() {
            return Ok(());
        }
    }
}

/// `cache list`: text is printed as it comes, JSON in one piece.
///
/// # Errors
///
/// Why there is no whole list.
pub(crate) fn list(dir: &Path, params: Value, format: Format) -> Result<Value, CallError> {
    let mut objects = Vec::new();
    let mut written = Ok(());
    walk(dir, "cache.list", &params, |part| {
        if format == Format::Json {
            objects.extend(rows(&part["objects"]).cloned());
            return true;
        }
        let lines: String = rows(&part["objects"]).map(line).collect();
        written = write(&lines);
        written.is_ok()
    })?;
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(CallError::Output(error)),
        Ok(()) | Err(_) => Ok(json!({ "objects": objects })),
    }
}

fn line(object: &Value) -> String {
    let mut line = shown(&object["key"]);
    for key in ["tier", "volume", "bytes"] {
        line += &format!(" {key}={}", shown(&object[key]));
    }
    for word in ["marker", "suspect"] {
        if object[word] == true {
            line += &format!(" {word}");
        }
    }
    line + "\n"
}

/// `storage scan`: the sums of all parts; meanwhile a bar on a terminal.
///
/// # Errors
///
/// Why it is not done.
pub(crate) fn scan(dir: &Path, params: Value) -> Result<Value, CallError> {
    let shows = std::io::stderr().is_terminal();
    let sums = ["bytes", "whole", "damaged", "unread"];
    let mut total = json!({ "bytes": 0, "whole": 0, "damaged": 0, "unread": 0 });
    let walked = walk(dir, "storage.scan", &params, |part| {
        for key in sums {
            let sum = number(&total[key]) + number(&part[key]);
            total[key] = sum.into();
        }
        if shows {
            draw(&bar(part, &total));
        }
        true
    });
    if shows {
        draw("\n");
    }
    walked.map(|()| total)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn bar(part: &Value, total: &Value) -> String {
    let (done, of) = (number(&part["done"]), number(&part["of"]).max(1));
    let share = |of_all: u64| done.saturating_mul(of_all) / of;
    let full = "#".repeat(usize::try_from(share(BAR)).unwrap_or(0));
    let (percent, damaged) = (share(100), shown(&total["damaged"]));
    let width = usize::try_from(BAR).unwrap_or(0);
    format!("\r[{full:width$}] {percent:3} %  {damaged} damaged")
}

/// What a terminal can't take is no reason to stop the scan.
fn draw(text: &str) {
    let mut terminal = std::io::stderr();
    drop(terminal.write_all(text.as_bytes()));
    drop(terminal.flush());
}

/// What a scan found.
pub(crate) fn scan_text(result: &Value) -> String {
    let [whole, damaged, unread, bytes] =
        ["whole", "damaged", "unread", "bytes"].map(|key| shown(&result[key]));
    format!(
        "{whole} fragments whole, {damaged} damaged and dropped, {unread} not read; {bytes} bytes read\n"
    )
}
