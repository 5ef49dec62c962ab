//! `jtest`: a pool of checking clients and their origin in one process.
//!
//! The clients ask a proxy for synthetic documents in absolute form over
//! HTTP/1.0, as ATS's tool of that name does; the origin serves each document
//! from its path alone. Every byte that comes back is checked.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command prints"
)]

mod args;
mod client;
mod document;
mod origin;
mod report;

use anyhow::{Context, Result};
use args::Args;
use clap::Parser;
use report::{Report, Totals};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;
use strata::base::clock::{Clock, SystemClock};
use strata::base::complaints::Complaints;
use tokio::task::LocalSet;

/// What every task of the process shares.
struct Shared {
    args: Args,
    proxy: SocketAddr,
    origin: SocketAddr,
    totals: Totals,
    complaints: Complaints,
    clock: SystemClock,
}

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(errors) => {
            eprintln!("jtest: {errors} errors");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("jtest: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs to the end the arguments set, and returns the number of errors.
fn run(args: Args) -> Result<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("can't start the event loop")?;
    LocalSet::new().block_on(&runtime, load(args))
}

async fn load(args: Args) -> Result<u64> {
    let proxy = resolve(&args.proxy_host, args.proxy_port).await?;
    let origin = resolve(&args.server_host, args.origin_port()).await?;
    let shared = Rc::new(Shared {
        args,
        proxy,
        origin,
        totals: Totals::default(),
        complaints: Complaints::default(),
        clock: SystemClock::new(),
    });
    if !shared.args.client_only {
        origin::listen(&shared).await?;
    }
    if !shared.args.server_only {
        client::spawn_all(&shared);
    }
    watch(&shared).await;
    println!("{}", shared.totals.summary());
    Ok(shared.totals.errors.get())
}

/// Prints a row an interval until time, requests or patience (SIGINT) end.
async fn watch(shared: &Rc<Shared>) {
    let interval = Duration::from_secs(shared.args.interval.max(1));
    let mut report = Report::new(shared.args.average_over);
    let mut ticks = tokio::time::interval(interval);
    ticks.tick().await;
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                for line in report.rows(&shared.totals, shared.clock.mono()) {
                    println!("{line}");
                }
            }
            () = shared.totals.finished.notified() => return,
            _ = &mut interrupted => return,
        }
        if shared.args.is_over(shared.clock.mono()) {
            return;
        }
    }
}

async fn resolve(host: &str, port: u16) -> Result<SocketAddr> {
    let mut found = tokio::net::lookup_host((host, port))
        .await
        .with_context(|| format!("can't resolve {host}"))?;
    found
        .next()
        .with_context(|| format!("{host} has no address"))
}
