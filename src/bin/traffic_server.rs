//! The proxy.

use clap::{Parser, ValueEnum};
use std::path::PathBuf;
use std::process::ExitCode;
use strata::cache::SpanOutcome;
use strata::config::ConfigError;
use strata::mgmt::paths::{self, ConfigDir};
use strata::mgmt::terminal::{print, tell};
use strata::mgmt::verify::Checked;
use strata::server::{self, Options, StartError};
use tikv_jemallocator::Jemalloc;
use tracing_subscriber::EnvFilter;

/// Gives back to the system what a burst of clients took (decision 0020).
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// A tiered HTTP cache and proxy.
#[derive(Debug, Parser)]
#[command(name = "traffic_server", disable_version_flag = true)]
struct Args {
    /// Directory of records.config [else $STRATA_CONFIG, the working
    /// directory, /etc/strata]
    #[arg(long, value_name = "DIR")]
    config: Option<PathBuf>,
    /// Run a command and exit
    #[arg(short = 'C', long = "command", value_enum, value_name = "COMMAND")]
    command: Option<Command>,
    /// Listen on this port instead of the configured ones
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,
    /// Print the version
    #[arg(short = 'V', long)]
    version: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Command {
    /// Read and check every file
    VerifyConfig,
    /// Read the spans, tell what is damaged, and change nothing
    Check,
    /// Empty the spans
    Clear,
}

fn options(args: &Args, dir: &ConfigDir) -> Options {
    Options {
        config_dir: dir.path.clone(),
        environment: paths::environment_here(),
        port: args.port,
        change_user: true,
        signals: true,
    }
}

fn fail(error: &dyn std::fmt::Display) -> ExitCode {
    tell(format_args!("traffic_server: {error}"));
    ExitCode::FAILURE
}

/// The files' names in the errors are relative to the directory, which may not
/// be the one that was meant.
fn fail_start(error: &StartError, dir: &ConfigDir) -> ExitCode {
    let code = fail(error);
    if matches!(error, StartError::Config(_)) {
        return fail(&dir.explanation());
    }
    code
}

fn verify_config(options: &Options, dir: &ConfigDir) -> ExitCode {
    match server::verify(options) {
        Ok(loaded) => {
            let checked = Checked::of(&loaded, loaded.warnings.len());
            print(&format!("{}{checked}\n", warnings(&loaded.warnings)))
        }
        Err(found) => fail_start(&StartError::Config(found), dir),
    }
}

fn warnings(warnings: &[ConfigError]) -> String {
    let lines = warnings.iter();
    lines
        .map(|warning| format!("warning: {warning}\n"))
        .collect()
}

/// Fails if anything is damaged, or if a start would leave a span out.
fn check(options: &Options, dir: &ConfigDir) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    let checked = server::check(options, |span| {
        let told = match span.is_sound() {
            true => print(&format!("{span}\n")),
            false => fail(&span),
        };
        if told != ExitCode::SUCCESS {
            code = told;
        }
    });
    match checked {
        Ok(()) => code,
        Err(error) => fail_start(&error, dir),
    }
}

fn clear(options: &Options, dir: &ConfigDir) -> ExitCode {
    let reports = match server::clear(options) {
        Ok(reports) => reports,
        Err(error) => return fail_start(&error, dir),
    };
    let mut refused = None;
    for report in reports {
        let path = report.path.display();
        match report.outcome {
            SpanOutcome::Used { .. } => tracing::info!(span = %path, "cleared"),
            SpanOutcome::Refused(why) => refused = Some(fail(&why)),
        }
    }
    refused.unwrap_or(ExitCode::SUCCESS)
}

fn run(options: Options, dir: &ConfigDir) -> ExitCode {
    let running = match server::start(options) {
        Ok(running) => running,
        Err(error) => return fail_start(&error, dir),
    };
    match running.wait() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

/// Logs go to standard error; `STRATA_LOG` filters them, `info` without it.
/// Where nobody reads them any more the server goes on unheard: an error that
/// is itself written to standard error would end the thread that logs.
fn log() {
    let filter = EnvFilter::try_from_env("STRATA_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .log_internal_errors(false)
        .init();
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.version {
        return print(&format!(
            "Strata - traffic_server - {}\n",
            env!("CARGO_PKG_VERSION")
        ));
    }
    log();
    let dir = paths::config_dir_here(args.config.clone());
    let options = options(&args, &dir);
    match args.command {
        Some(Command::VerifyConfig) => verify_config(&options, &dir),
        Some(Command::Check) => check(&options, &dir),
        Some(Command::Clear) => clear(&options, &dir),
        None => run(options, &dir),
    }
}
