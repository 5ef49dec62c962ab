//! The operator's command: one subcommand is one call on the control socket.

mod storage;
mod walks;

use clap::{Parser, Subcommand, ValueEnum};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use strata::base::clock::WallTime;
use strata::config::Findings;
use strata::http::date;
use strata::mgmt::client::{self, CallError};
use strata::mgmt::paths::{self, ConfigDir};
use strata::mgmt::rpc::{Call, Fault, FaultKind};
use strata::mgmt::terminal::{print, tell};
use strata::server::{self, Options, StartError};

/// Exit code when the server refuses, as traffic_ctl 9 has it.
const REFUSED: u8 = 2;

/// Control a running traffic_server.
#[derive(Debug, Parser)]
#[command(name = "traffic_ctl", version)]
struct Args {
    /// Directory of records.config [else $STRATA_CONFIG, the working
    /// directory, /etc/strata]
    #[arg(long, value_name = "DIR", global = true)]
    config: Option<PathBuf>,
    /// How to print
    #[arg(short, long, value_enum, default_value = "text", global = true)]
    format: Format,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Lines for people and scripts
    Text,
    /// The whole answer
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Records and configuration files
    #[command(subcommand)]
    Config(Config),
    /// Counters and gauges
    #[command(subcommand)]
    Metric(Metric),
    /// The server as a whole
    #[command(subcommand)]
    Server(Server),
    /// Spans
    #[command(subcommand)]
    Storage(Storage),
    /// Stored objects
    #[command(subcommand)]
    Cache(Cache),
}

#[derive(Debug, Subcommand)]
enum Config {
    /// Read the files again: all of them take effect, or none
    Reload,
    /// Print records
    Get {
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Change the running value of a record, until the server restarts
    Set {
        name: String,
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Print the records whose name matches a regular expression
    Match { pattern: String },
    /// What is loaded, since when, and what waits for a restart
    Status,
    /// Read and check the files, and change nothing
    Verify,
}

#[derive(Debug, Subcommand)]
enum Metric {
    /// Print metrics
    Get {
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Print the metrics whose name matches a regular expression
    Match { pattern: String },
    /// Set counters to zero; all of them if none is named
    Zero { names: Vec<String> },
}

#[derive(Debug, Subcommand)]
enum Server {
    /// Whether it runs and is ready
    Status,
    /// Stop it: drain, flush, exit
    Stop,
    /// Accept nothing more and finish what is begun
    Drain,
}

#[derive(Debug, Subcommand)]
enum Storage {
    /// Every configured span and its state
    List,
    /// Take spans out of use
    Offline {
        /// The path, id or UUID of each
        #[arg(required = true, value_name = "SPAN")]
        spans: Vec<String>,
    },
    /// Put spans in use again
    Online {
        /// The path, id or UUID of each
        #[arg(required = true, value_name = "SPAN")]
        spans: Vec<String>,
    },
    /// Verify what is stored, and drop what is damaged, while it is served
    Scan {
        /// Its path, id or UUID; all spans without it
        span: Option<String>,
        /// Bytes a second to read at most [32 MiB]
        #[arg(long, value_name = "BYTES")]
        rate: Option<u64>,
    },
    /// What a restart would keep of what is stored, and drop; also without a
    /// server
    Plan(storage::Files),
    /// Format a span, whose objects are lost; also without a server
    Init {
        /// Its path, id or UUID
        span: String,
        /// Even if something else lies on it
        #[arg(long)]
        force: bool,
    },
}

#[derive(Debug, Subcommand)]
enum Cache {
    /// Forget what is stored for client URLs, durably
    Purge {
        #[arg(required = true)]
        urls: Vec<String>,
    },
    /// Where the copies of a client URL are, with their heads and freshness
    Lookup {
        url: String,
        /// A field of the request, where responses vary: 'Name: value'
        #[arg(short = 'H', long = "header", value_name = "LINE")]
        fields: Vec<String>,
    },
    /// Print what lies on the spans under keys that begin so
    List {
        prefix: String,
        /// Of this volume only
        #[arg(long, value_name = "N")]
        volume: Option<u32>,
        /// Bytes a second to read at most [32 MiB]
        #[arg(long, value_name = "BYTES")]
        rate: Option<u64>,
    },
    /// Forget all that is stored, at once and durably
    Clear {
        /// Of this volume only
        #[arg(long, value_name = "N")]
        volume: Option<u32>,
    },
}

/// A method of the control socket and its parameters.
fn request(command: &Command) -> (&'static str, Value) {
    match command {
        Command::Config(command) => config_request(command),
        Command::Metric(Metric::Get { names }) => ("metric.get", json!({ "names": names })),
        Command::Metric(Metric::Match { pattern }) => {
            ("metric.match", json!({ "pattern": pattern }))
        }
        Command::Metric(Metric::Zero { names }) => ("metric.zero", json!({ "names": names })),
        Command::Server(Server::Status) => ("server.status", json!({})),
        Command::Server(Server::Stop) => ("server.stop", json!({})),
        Command::Server(Server::Drain) => ("server.drain", json!({})),
        Command::Storage(command) => storage_request(command),
        Command::Cache(command) => cache_request(command),
    }
}

fn config_request(command: &Config) -> (&'static str, Value) {
    match command {
        Config::Reload => ("config.reload", json!({})),
        Config::Get { names } => ("config.get", json!({ "names": names })),
        Config::Set { name, value } => ("config.set", json!({ "name": name, "value": value })),
        Config::Match { pattern } => ("config.match", json!({ "pattern": pattern })),
        Config::Status => ("config.status", json!({})),
        Config::Verify => ("config.verify", json!({})),
    }
}

fn storage_request(command: &Storage) -> (&'static str, Value) {
    match command {
        Storage::List => ("storage.list", json!({})),
        Storage::Plan(_) => ("storage.plan", json!({})),
        Storage::Offline { spans } => ("storage.offline", json!({ "spans": spans })),
        Storage::Online { spans } => ("storage.online", json!({ "spans": spans })),
        Storage::Scan { span, rate } => ("storage.scan", json!({ "span": span, "rate": rate })),
        Storage::Init { span, force } => ("storage.init", json!({ "span": span, "force": force })),
    }
}

fn cache_request(command: &Cache) -> (&'static str, Value) {
    match command {
        Cache::Purge { urls } => ("cache.purge", json!({ "urls": urls })),
        Cache::Lookup { url, fields } => ("cache.lookup", json!({ "url": url, "fields": fields })),
        Cache::List {
            prefix,
            volume,
            rate,
        } => {
            let params = json!({ "prefix": prefix, "volume": volume, "rate": rate });
            ("cache.list", params)
        }
        Cache::Clear { volume } => ("cache.clear", json!({ "volume": volume })),
    }
}

fn call(args: &Args, dir: &ConfigDir) -> Result<Value, CallError> {
    let (method, params) = request(&args.command);
    if let Command::Cache(Cache::List { .. }) = args.command {
        return walks::list(&dir.path, params, args.format);
    }
    if let Command::Storage(Storage::Plan(files)) = &args.command {
        return storage::plan(dir, files);
    }
    if let Command::Storage(Storage::Scan { .. }) = args.command {
        return walks::scan(&dir.path, params);
    }
    let answer = client::call_server(&dir.path, &Call::new(method, params));
    match (&args.command, answer) {
        (Command::Storage(Storage::Init { span, force }), Err(CallError::NoServer { .. })) => {
            Ok(init_alone(dir, span, *force)?)
        }
        (_, answer) => answer,
    }
}

/// `storage init` without a server, such as one that a span keeps from
/// starting.
fn init_alone(dir: &ConfigDir, span: &str, force: bool) -> Result<Value, Fault> {
    let options = Options {
        config_dir: dir.path.clone(),
        environment: paths::environment_here(),
        change_user: true,
        ..Options::default()
    };
    let made = server::init_span(&options, span, force);
    made.map_err(|error| init_fault(dir, &error))?;
    Ok(json!({ "next": "start traffic_server" }))
}

fn init_fault(dir: &ConfigDir, error: &StartError) -> Fault {
    let StartError::Config(found) = error else {
        return Fault::new(FaultKind::Refused, error.to_string());
    };
    start_fault(dir, found)
}

/// The errors of files that were read without a server.
fn start_fault(dir: &ConfigDir, found: &Findings) -> Fault {
    let errors = found.errors.iter();
    let errors: Vec<Value> = errors
        .map(|error| json!({ "text": error.to_string() }))
        .collect();
    Fault::new(FaultKind::Refused, dir.explanation()).with_data(json!({ "errors": errors }))
}

/// The answer as lines; an action that has nothing to say prints nothing.
fn text(command: &Command, result: &Value) -> String {
    match command {
        Command::Config(Config::Get { .. } | Config::Match { .. }) => {
            pairs(&result["values"], ": ")
        }
        Command::Metric(Metric::Get { .. } | Metric::Match { .. }) => pairs(&result["values"], " "),
        Command::Config(Config::Set { name, .. }) => set_text(name, result),
        Command::Config(Config::Reload) => reload_text(result),
        Command::Config(Config::Verify) => {
            format!("{}{}\n", reload_text(result), shown(&result["text"]))
        }
        Command::Config(Config::Status) => status_text(result),
        Command::Server(Server::Status) => format!("Proxy -- on\n{}", fields(result)),
        Command::Storage(Storage::List) => storage::spans_text(result),
        Command::Storage(Storage::Plan(_)) => storage::plan_text(result),
        Command::Storage(Storage::Online { .. }) => storage::online_text(result),
        Command::Storage(Storage::Init { span, .. }) => {
            format!(
                "{span} is an empty span; next: {}\n",
                shown(&result["next"])
            )
        }
        Command::Cache(Cache::Purge { .. }) => purge_text(result),
        Command::Cache(Cache::Lookup { url, .. }) => lookup_text(url, result),
        Command::Storage(Storage::Scan { .. }) => walks::scan_text(result),
        Command::Metric(Metric::Zero { .. })
        | Command::Server(Server::Stop | Server::Drain)
        | Command::Storage(Storage::Offline { .. })
        | Command::Cache(Cache::Clear { .. } | Cache::List { .. }) => String::new(),
    }
}

fn rows(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// A value as a person reads it: strings bare, lists by commas.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

fn pairs(list: &Value, between: &str) -> String {
    let lines = rows(list);
    lines
        .map(|row| format!("{}{between}{}\n", shown(&row["name"]), shown(&row["value"])))
        .collect()
}

/// A line for each field; none for an empty list.
fn fields(result: &Value) -> String {
    let fields = result.as_object().into_iter().flatten();
    fields
        .filter(|(_, value)| value.as_array().is_none_or(|items| !items.is_empty()))
        .map(|(name, value)| format!("{name}: {}\n", shown(value)))
        .collect()
}

/// The fields with the time as a date, and each error as a reload prints it.
fn status_text(result: &Value) -> String {
    let mut shown = result.clone();
    if let Some(at) = result["loaded_at"].as_u64() {
        shown["loaded_at"] = date::format(WallTime::from_secs(at)).into();
    }
    shown["last_errors"] = json!([]);
    let mut text = fields(&shown);
    for error in rows(&result["last_errors"]) {
        put(&mut text, "last_error", &error["text"]);
    }
    text
}

fn set_text(name: &str, result: &Value) -> String {
    let mut text = match result["effect"].as_str() {
        Some("restart") => format!("set {name}, restart is required\n"),
        _ => format!("set {name}, restart is not required\n"),
    };
    for note in rows(&result["notes"]) {
        put(&mut text, "note", note);
    }
    text
}

fn reload_text(result: &Value) -> String {
    let mut text = String::new();
    for warning in rows(&result["warnings"]) {
        put(&mut text, "warning", &warning["text"]);
    }
    for (key, title) in [("now", "in force"), ("at_restart", "at the next restart")] {
        for change in rows(&result[key]) {
            put(&mut text, title, change);
        }
    }
    if let Some(generation) = result["generation"].as_u64() {
        put(&mut text, "generation", &generation.into());
    }
    text
}

fn put(text: &mut String, title: &str, value: &Value) {
    writeln!(text, "{title}: {}", shown(value)).expect("a String takes all writes");
}

fn purge_text(result: &Value) -> String {
    let mut text = String::new();
    for row in rows(&result["purged"]) {
        let what = if row["found"] == true {
            "purged"
        } else {
            "not stored"
        };
        let (url, key) = (shown(&row["url"]), shown(&row["key"]));
        writeln!(text, "{what} {url} key {key}").expect("a String takes all writes");
    }
    text
}

/// The key, then each copy on a line, its stored fields indented below.
fn lookup_text(url: &str, result: &Value) -> String {
    let (key, hash) = (shown(&result["key"]), shown(&result["hash"]));
    let mut text = format!("{url} key {key} hash {hash}\n");
    if rows(&result["copies"]).next().is_none() {
        text += "not stored\n";
    }
    for copy in rows(&result["copies"]) {
        text += &copy_text(copy);
    }
    text
}

fn copy_text(copy: &Value) -> String {
    let marker = if copy["marker"] == true {
        " marker"
    } else {
        ""
    };
    let mut text = format!("tier={}{marker}", shown(&copy["tier"]));
    let keys = [
        "span",
        "offset",
        "bytes",
        "fragments",
        "status",
        "state",
        "age",
    ];
    for key in keys.into_iter().chain(["lifetime"]) {
        if !copy[key].is_null() {
            text += &format!(" {key}={}", shown(&copy[key]));
        }
    }
    text.push('\n');
    for line in shown(&copy["fields"])
        .lines()
        .filter(|line| *line != "null")
    {
        text += &format!("  {line}\n");
    }
    text
}

fn fail(args: &Args, dir: &ConfigDir, error: &CallError) -> ExitCode {
    tell(format_args!("traffic_ctl: {error}"));
    match error {
        CallError::NoServer { .. } => {
            tell(format_args!("traffic_ctl: {}", dir.explanation()));
        }
        CallError::Fault(fault) => fail_fault(args, fault),
        CallError::Elsewhere { .. }
        | CallError::NoRights { .. }
        | CallError::Broken(_)
        | CallError::Output(_) => {}
    }
    ExitCode::from(REFUSED)
}

fn fail_fault(args: &Args, fault: &Fault) {
    if args.format == Format::Json {
        let _printed = print(&format!("{:#}\n", json!({ "error": fault })));
        return;
    }
    for finding in fault.findings() {
        tell(finding);
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let dir = paths::config_dir_here(args.config.clone());
    match call(&args, &dir) {
        Ok(result) if args.format == Format::Json => print(&format!("{result:#}\n")),
        Ok(result) => print(&text(&args.command, &result)),
        Err(error) => fail(&args, &dir, &error),
    }
}
