//! The command of ATS 4.2: its flags, its output, its exit codes.

use clap::{ArgGroup, Parser};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use strata::mgmt::client::{self, CallError};
use strata::mgmt::paths::{self, ConfigDir};
use strata::mgmt::rpc::{Call, FaultKind};
use strata::mgmt::terminal::{print, tell};

/// Ask a running server, or tell it something.
#[derive(Debug, Parser)]
#[command(name = "traffic_line", disable_version_flag = true)]
#[command(group = ArgGroup::new("action").required(true))]
struct Args {
    /// Directory of records.config [else $STRATA_CONFIG, the working
    /// directory, /etc/strata]
    #[arg(long, value_name = "DIR")]
    config: Option<PathBuf>,
    /// Print the value of a record or metric
    #[arg(short, long = "read_var", value_name = "NAME", group = "action")]
    read_var: Option<String>,
    /// Print name and value of every record and metric that matches
    #[arg(short, long = "match_var", value_name = "REGEX", group = "action")]
    match_var: Option<String>,
    /// Set a record, at once and in records.config
    #[arg(
        short,
        long = "set_var",
        value_name = "NAME",
        group = "action",
        requires = "value"
    )]
    set_var: Option<String>,
    /// The value for --set_var
    #[arg(
        short,
        long,
        value_name = "VALUE",
        requires = "set_var",
        allow_hyphen_values = true
    )]
    value: Option<String>,
    /// Read the configuration files again
    #[arg(short = 'x', long = "reread_config", group = "action")]
    reread_config: bool,
    /// Stop the server
    #[arg(short = 'S', long, group = "action")]
    shutdown: bool,
    /// Say whether the server runs
    #[arg(long, group = "action")]
    status: bool,
    /// Take a span out of use; its path, id or UUID
    #[arg(long, value_name = "SPAN", group = "action")]
    offline: Option<String>,
    /// Set every counter to zero
    #[arg(short, long = "clear_node", short_alias = 'C', group = "action")]
    clear_node: bool,
    /// Set one counter to zero
    #[arg(
        short,
        long = "zero_node",
        short_alias = 'Z',
        value_name = "NAME",
        group = "action"
    )]
    zero_node: Option<String>,
    /// Print the version
    #[arg(short = 'V', long, group = "action")]
    version: bool,
}

/// What `--status` prints of a server that runs.
const ON: &str = "Proxy -- on\n";

/// A method of the control socket and its parameters.
fn request(args: &Args) -> (&'static str, Value) {
    if let Some(name) = &args.read_var {
        return ("value.get", json!({ "name": name }));
    }
    if let Some(pattern) = &args.match_var {
        return ("value.match", json!({ "pattern": pattern }));
    }
    if let (Some(name), Some(value)) = (&args.set_var, &args.value) {
        let params = json!({ "name": name, "value": value, "persist": true });
        return ("config.set", params);
    }
    if let Some(span) = &args.offline {
        return ("storage.offline", json!({ "spans": [span] }));
    }
    if let Some(name) = &args.zero_node {
        return ("metric.zero", json!({ "names": [name] }));
    }
    let none = json!({});
    match (args.reread_config, args.shutdown, args.clear_node) {
        (true, _, _) => ("config.reload", none),
        (_, true, _) => ("server.stop", none),
        (_, _, true) => ("metric.zero", none),
        (false, false, false) => ("server.status", none),
    }
}

fn call(args: &Args, dir: &Path) -> Result<Value, CallError> {
    let (method, params) = request(args);
    client::call_server(dir, &Call::new(method, params))
}

/// What 4.2 prints on success; most actions are silent.
fn text(args: &Args, result: &Value) -> String {
    if args.read_var.is_some() {
        return line(&result["value"]);
    }
    let Some(values) = result["values"].as_array() else {
        return if args.status {
            ON.into()
        } else {
            String::new()
        };
    };
    let rows = values.iter();
    rows.map(|row| format!("{} {}", word(&row["name"]), line(&row["value"])))
        .collect()
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn line(value: &Value) -> String {
    format!("{}\n", word(value))
}

/// What 4.2 is silent about, and an operator should know.
fn note(result: &Value) {
    for name in result["at_restart"].as_array().into_iter().flatten() {
        tell(format_args!(
            "traffic_line: {}: holds after a restart",
            word(name)
        ));
    }
    // Of a bad one the version before is served on: nobody would see it.
    for fault in result["certificates"].as_array().into_iter().flatten() {
        tell(format_args!("traffic_line: warning: {}", word(fault)));
    }
    for note in result["notes"].as_array().into_iter().flatten() {
        let name = word(&result["name"]);
        tell(format_args!("traffic_line: {name}: {}", word(note)));
    }
}

fn fail(args: &Args, dir: &ConfigDir, error: &CallError) -> ExitCode {
    let absent = matches!(error, CallError::NoServer { .. });
    if args.status && absent {
        let _printed = print("Proxy -- off\n");
        return ExitCode::FAILURE;
    }
    tell(format_args!("traffic_line: {error}"));
    if absent {
        tell(format_args!("traffic_line: {}", dir.explanation()));
    }
    if args.status && matches!(error, CallError::Elsewhere { .. }) {
        return print(ON);
    }
    if let CallError::Fault(fault) = error {
        for finding in fault.findings() {
            tell(finding);
        }
        // Refused without findings, it was not for the name or the value.
        let sound = fault.code == FaultKind::Refused.code() && fault.findings().next().is_none();
        if args.set_var.is_some() && !sound {
            tell("Please correct your variable name and|or value");
        }
    }
    ExitCode::FAILURE
}

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Its own exit code is 4.2's only for help.
            let _printed = error.print();
            return if error.use_stderr() {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    if args.version {
        return print(&format!(
            "Strata - traffic_line - {}\n",
            env!("CARGO_PKG_VERSION")
        ));
    }
    let dir = paths::config_dir_here(args.config.clone());
    match call(&args, &dir.path) {
        Ok(result) => {
            note(&result);
            print(&text(&args, &result))
        }
        Err(error) => fail(&args, &dir, &error),
    }
}
