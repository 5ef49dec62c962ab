//! The programs as an operator runs them: real binaries, real files.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod admin;
mod aio;
mod cache_rules;
mod certificates;
mod large;
mod live;
mod operations;
mod purge;
mod records;
mod reload;
mod settings;
mod start;
mod storage;
mod support;
mod survey;
mod tiers;
mod tsar;
mod volumes;

#[path = "../support/pki.rs"]
mod pki;
#[path = "../support/process.rs"]
mod process;
#[path = "../support/until.rs"]
mod until;
